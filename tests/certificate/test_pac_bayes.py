"""The bounds of a vote on rows: the quantities behind them, the classes, the threshold."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi import risks
from damvi.certificate import c_bound, kl_divergence, pac_bayes, tandem, twice_gibbs

BOUNDS = ("twice_gibbs", "tandem", "c_bound")


def election(seed, n=400, K=9, soft=False, positives=0.3, right=0.9):
    rng = np.random.RandomState(seed)
    signs = np.where(rng.rand(n) < positives, 1, -1)
    votes = np.where(rng.rand(n, K) < right, 1, -1) * signs[:, None]
    if soft:
        votes = votes * rng.rand(n, K)
    return votes, signs, rng.dirichlet(np.ones(K))


def voter_by_voter(votes, signs, Q):
    """r, d and e as the mean over pairs of voters, each voting +1 by a coin of its own."""
    error = (1 - signs[:, None] * votes) / 2
    yes = (1 + votes) / 2
    differ = yes[:, :, None] * (1 - yes[:, None, :]) + (1 - yes[:, :, None]) * yes[:, None]
    return (
        (error @ Q).mean(),
        np.einsum("nkl,k,l->n", differ, Q, Q).mean(),
        np.einsum("nk,nl,k,l->n", error, error, Q, Q).mean(),
    )


@pytest.mark.parametrize("soft", [False, True])
def test_they_are_the_bounds_of_pairs_of_voters(soft):
    votes, signs, Q = election(0, soft=soft)
    found = pac_bayes(votes @ Q, signs, Q, delta=0.05)
    kl = kl_divergence(Q, np.full(9, 1 / 9))
    assert found.kl == pytest.approx(kl)
    groups = {"overall": signs != 0, "missed": signs > 0, "false_alarms": signs < 0}
    for name, rows in groups.items():
        # δ is shared by three bounds, and by the two classes where there are two.
        delta = 0.05 / 3 if name == "overall" else 0.05 / 6
        r, d, e = voter_by_voter(votes[rows], signs[rows], Q)
        n = rows.sum()
        expected = (
            twice_gibbs(r, n, kl, delta),
            tandem(e, n, kl, delta),
            c_bound(r, d, n, kl, delta),
        )
        bounds = [getattr(getattr(found, bound), name) for bound in BOUNDS]
        assert bounds == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@given(st.integers(0, 2**31), st.booleans(), st.floats(-0.9, 0.9), st.floats(0.4, 1))
def test_no_bound_is_below_the_risk_on_the_rows(seed, soft, threshold, right):
    votes, signs, Q = election(seed, n=60, K=4, soft=soft, right=right)
    vote = votes @ Q
    found = pac_bayes(vote, signs, Q, threshold=threshold)
    wrong = signs * (vote - threshold) <= 1e-12
    for name, rows in (
        ("overall", signs != 0),
        ("missed", signs > 0),
        ("false_alarms", signs < 0),
    ):
        if rows.any():
            for bound in BOUNDS:
                assert getattr(getattr(found, bound), name) >= wrong[rows].mean() - 1e-12


def test_a_threshold_is_one_more_voter():
    votes, signs, Q = election(1)
    t = 0.25
    found = pac_bayes(votes @ Q, signs, Q, threshold=t)
    # Weights Q/(1+t) and t/(1+t); prior 1/10 each, the constant's halved for its sign.
    K, w = 9, t / (1 + t)
    entropy = -np.sum(Q / (1 + t) * np.log(Q / (1 + t))) - w * log(w)
    assert found.kl == pytest.approx(log(K + 1) - entropy + w * log(2))
    more = np.column_stack([votes, np.full(len(signs), -1)])
    r = risks.gibbs_risk(more, signs, np.append(Q / (1 + t), w))
    expected = twice_gibbs(r, len(signs), found.kl, 0.05 / 3)
    assert found.twice_gibbs.overall == pytest.approx(expected, abs=1e-12)
    assert (found.n_voters, found.threshold) == (9, t)
    assert "1/10" in found.prior


def test_no_threshold_no_voter():
    votes, signs, Q = election(1)
    found = pac_bayes(votes @ Q, signs, np.full(9, 1 / 9))
    assert found.kl == 0
    assert found.prior == "uniform, 1/9 each"


def test_good_votes_on_many_rows_are_not_vacuous():
    votes, signs, Q = election(2, n=20_000, right=0.99)
    found = pac_bayes(votes @ Q, signs, Q)
    for bound in BOUNDS:
        assert not getattr(found, bound).vacuous_overall
        assert not getattr(found, bound).vacuous_by_class
        assert getattr(found, bound).overall < 0.1


def test_an_overall_bound_must_beat_never_flagging():
    votes, signs, Q = election(2, n=20_000, right=0.99, positives=0.01)
    found = pac_bayes(votes @ Q, signs, Q)
    assert 0.01 < found.twice_gibbs.overall < 0.1
    assert found.twice_gibbs.vacuous_overall


def test_class_bounds_must_beat_a_coin():
    # Never flagging: all positives missed, no false alarm.
    signs = np.repeat([1, -1], 5000)
    found = pac_bayes(np.full(10_000, -1.0), signs, [1.0])
    assert found.twice_gibbs.missed == 1
    assert found.twice_gibbs.false_alarms < 0.01
    assert found.twice_gibbs.vacuous_by_class


def test_a_class_without_rows_is_bounded_by_1():
    found = pac_bayes(np.full(100, -1.0), np.full(100, -1), [1.0])
    assert found.tandem.missed == found.c_bound.missed == found.twice_gibbs.missed == 1
    assert found.tandem.vacuous_by_class
    assert found.tandem.vacuous_overall


def test_votes_outside_their_range_are_refused():
    with pytest.raises(ValueError, match=r"one vote in \[-1, 1\]"):
        pac_bayes([0.5, 1.5], [1, -1], [1.0])
    with pytest.raises(ValueError, match=r"one vote in \[-1, 1\]"):
        pac_bayes([0.5, np.nan], [1, -1], [1.0])
    with pytest.raises(ValueError, match="Q must be a distribution"):
        pac_bayes([0.5, 0.5], [1, -1], [1.0, 1.0])
