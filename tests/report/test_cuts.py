"""The thresholds on offer: exact counts, and none better left out."""

import numpy as np
import pytest

from damvi.decision import tune_threshold
from damvi.report import cuts as module
from damvi.report.cuts import best_with_recall, cheapest, offer_cuts


def votes_of(n, rate, seed, digits=None):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    positive[:2] = True, False
    vote = np.tanh(positive - 0.5 + 0.7 * rng.normal(size=n))
    return vote if digits is None else vote.round(digits), positive


@pytest.mark.parametrize(
    ("n", "rate", "digits", "most"),
    [
        (300, 0.1, None, 2000),
        (300, 0.1, 1, 2000),
        (2000, 0.3, None, 20),
        (50, 0.0, None, 3),
    ],
)
def test_counts_are_those_of_the_rows_and_nothing_cheaper_is_left_out(
    n, rate, digits, most, monkeypatch
):
    monkeypatch.setattr(module, "MAX_CUTS", most)
    vote, positive = votes_of(n, rate, 0, digits)
    cuts = offer_cuts(vote, positive, own=0.05)
    assert (np.diff(cuts.threshold) < 0).all()
    assert cuts.threshold[cuts.own] == 0.05
    for threshold, found, alarms in zip(
        cuts.threshold, cuts.found, cuts.alarms, strict=True
    ):
        flagged = vote > threshold
        assert (flagged & positive).sum() == found
        assert (flagged & ~positive).sum() == alarms
    assert cuts.found[0] == cuts.alarms[0] == 0
    assert (cuts.found[-1], cuts.alarms[-1]) == (positive.sum(), (~positive).sum())

    for miss in (0.1, 1, 2.5, 7, 40, 300, 1e4):
        best = vote > tune_threshold(vote, positive, {"cost": (1, miss)})
        least = miss * (positive & ~best).sum() + (best & ~positive).sum()
        k = cheapest(cuts, miss)
        assert miss * (cuts.positives - cuts.found[k]) + cuts.alarms[k] == pytest.approx(
            least
        )


@pytest.mark.parametrize("floor", [0.01, 0.5, 0.8, 1.0])
def test_a_floor_of_recall_is_kept_at_the_highest_precision(floor):
    vote, positive = votes_of(400, 0.1, 3)
    cuts = offer_cuts(vote, positive, own=0.0)
    k = best_with_recall(cuts, floor)
    best = vote > tune_threshold(vote, positive, {"recall": floor})
    precision = (best & positive).sum() / best.sum()
    assert cuts.found[k] >= floor * positive.sum() - 1e-9
    assert cuts.found[k] / (cuts.found[k] + cuts.alarms[k]) == pytest.approx(precision)


def test_ties_and_one_value():
    positive = np.array([True, False, False])
    cuts = offer_cuts(np.zeros(3), positive, own=0.0)
    assert cuts.found.tolist() == [0, 1]
    assert cuts.alarms.tolist() == [0, 2]
    assert cheapest(cuts, 1.0) == 0
    assert cheapest(cuts, 2.0) == 0  # as dear as flagging all: the fewest are flagged
    assert cheapest(cuts, 2.1) == 1


def test_neighbouring_floats_are_told_apart():
    vote = np.array([0.1, np.nextafter(0.1, 1)])
    cuts = offer_cuts(vote, np.array([False, True]), own=-1.0)
    k = cheapest(cuts, 1.0)
    assert (vote > cuts.threshold[k]).tolist() == [False, True]
