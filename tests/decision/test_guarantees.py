from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.decision import guarantee, promising_cuts
from damvi.decision.guarantees import RATES, fewest, most_beyond, parse_guarantee

LEVELS = st.sampled_from([Fraction(1, 2), Fraction(7, 10), Fraction(9, 10)])
RISKS = st.sampled_from([Fraction(1, 20), Fraction(1, 10), Fraction(3, 10)])


def at_most(k, n, p):
    """The chance of k hits or fewer of n, term by term and exactly."""
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))


@st.composite
def rows(draw):
    n = draw(st.integers(1, 60))
    vote = draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    targets = draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n))
    return np.array(vote) / 5, np.array(targets)


@settings(max_examples=150, deadline=None)
@given(rows(), st.sampled_from(["recall", "false_alarm_rate"]), LEVELS, RISKS)
def test_the_threshold_is_the_best_whose_tail_is_small_enough(some, rate, level, risk):
    vote, targets = some
    found = guarantee(vote, targets, rate, float(level), confidence=float(1 - risk))
    own = np.sort(vote[targets == (rate == "recall")])
    share = 1 - level if rate == "recall" else level
    allowed = [k for k in range(len(own)) if at_most(k, len(own), share) <= risk]
    assert (found.threshold is None) == (not allowed)
    assert (found.threshold is None) == (len(own) < found.needed)
    if not allowed:
        return
    flagged = own > found.threshold
    if rate == "recall":
        # Ties with the cut are flagged as well, so never more are missed than allowed.
        assert (~flagged).sum() <= max(allowed)
        higher = own[own > own[max(allowed)]]
        assert not len(higher) or (own < higher[0]).sum() > max(allowed)
        assert own[flagged].min() == own[max(allowed)]
    else:
        assert flagged.sum() <= max(allowed)
        assert (own >= found.threshold).sum() > max(allowed)


@settings(max_examples=100, deadline=None)
@given(rows(), LEVELS, RISKS)
def test_precision_is_tested_cut_by_cut_until_one_fails(some, level, risk):
    vote, targets = some
    cuts = np.array([0.6, 0.2, -0.2, -0.6])
    asked = float(level), float(1 - risk)
    found = guarantee(vote, targets, "precision", asked[0], confidence=asked[1], cuts=cuts)
    expected = None
    for cut in cuts:
        n, hits = (vote > cut).sum(), targets[vote > cut].sum()
        if not n or 1 - at_most(int(hits) - 1, int(n), level) > risk:
            break
        expected = cut
    assert found.threshold == expected


@settings(max_examples=60, deadline=None)
@given(rows(), st.sampled_from(["recall", "false_alarm_rate"]))
def test_more_asked_is_never_easier(some, rate):
    """A higher recall or confidence flags more, fewer false alarms flag fewer."""
    levels = [0.5, 0.7, 0.9] if rate == "recall" else [0.5, 0.3, 0.1]
    asks = [(level, sure) for sure in (0.8, 0.9, 0.95) for level in levels]
    cuts = {
        ask: guarantee(*some, rate, ask[0], confidence=ask[1]).threshold for ask in asks
    }
    sign = 1 if rate == "recall" else -1
    hard = [np.inf if cut is None else -sign * cut for cut in cuts.values()]
    grid = np.reshape(hard, (3, 3))
    assert (grid[:, 1:] >= grid[:, :-1]).all()
    assert (grid[1:] >= grid[:-1]).all()


@settings(max_examples=200, deadline=None)
@given(st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_the_fewest_rows_are_the_fewest(share, risk):
    n = fewest(share, risk)
    assert most_beyond(n, share, risk) == 0 or n == 1
    assert most_beyond(n - 1, share, risk) == -1


@pytest.mark.parametrize("rate", RATES)
def test_groups_count_once(rate):
    """Copies of a row in its group change nothing, and a group alone promises nothing."""
    rng = np.random.default_rng(0)
    targets = np.repeat([0, 1], [200, 60])
    vote = rng.normal(size=260) + 3 * targets
    groups, level = np.arange(260), 0.2 if rate == "false_alarm_rate" else 0.8
    how = {"cuts": [2.5, 2.0]} if rate == "precision" else {}
    alone = guarantee(vote, targets, rate, level, **how)
    copies = [np.tile(column, 3) for column in (vote, targets, groups)]
    found = guarantee(*copies[:2], rate, level, groups=copies[2], **how)
    assert found.threshold == alone.threshold is not None
    assert found.counted == alone.counted
    assert "groups with" in found.words
    one = guarantee(vote, targets, rate, level, groups=np.zeros(260), **how)
    assert one.threshold is None
    assert one.needed > 1


def test_what_keeps_nothing_is_said():
    few = guarantee([0.1, 0.2, 0.9], [0, 0, 1], "recall", 0.9)
    assert "there is 1 positive, but 22 are needed" in few.words
    with pytest.raises(ValueError, match="found on other rows"):
        guarantee([0.1, 0.2], [0, 1], "precision", 0.5)
    with pytest.raises(ValueError, match="has NaN"):
        guarantee([0.1, np.nan], [0, 1], "recall", 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        guarantee([0.1, 0.2], [0, 1], "recall", 1.0)
    none = guarantee([0.1, 0.2], [0, 1], "precision", 0.5, cuts=[])
    assert none.threshold is None
    assert "flagged positives" in none.words


@pytest.mark.parametrize("asked", ["rates=0.5", 0.9, {"recall": "x"}, {}])
def test_promises_that_cannot_be_read(asked):
    with pytest.raises(ValueError, match="is unknown"):
        parse_guarantee(asked)


def test_levels_out_of_range_are_named():
    with pytest.raises(ValueError, match="the level of recall is 2; give a number between"):
        parse_guarantee("recall=2")


def test_promising_cuts():
    assert not len(promising_cuts([0.5], [1], 0.5, 10))
    assert not len(promising_cuts(np.zeros(20), np.arange(20) % 2, 0.5, 10))
    rng = np.random.default_rng(1)
    targets = (rng.random(4000) < 0.1).astype(int)
    vote = rng.normal(size=4000) + 2 * targets
    vote[:3] = np.nan
    cuts = promising_cuts(vote, targets, 0.6, 1000)
    assert (np.diff(cuts) < 0).all()
    assert targets[vote > cuts[0]].mean() > 0.6


@pytest.mark.slow
def test_promises_are_kept():
    """Of 400 promises with 80 % confidence not many more than 80 are broken."""
    broken = dict.fromkeys(RATES, 0)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        targets = (rng.random(600) < 0.15).astype(int)
        vote = rng.normal(size=600) + 1.5 * targets
        truth = (rng.random(20_000) < 0.15).astype(int)
        new = rng.normal(size=20_000) + 1.5 * truth
        cuts = promising_cuts(vote[:200], targets[:200], 0.6, 400)
        for rate, level in (("recall", 0.7), ("precision", 0.6), ("false_alarm_rate", 0.1)):
            how = {"cuts": cuts} if rate == "precision" else {}
            promised = guarantee(
                vote[200:], targets[200:], rate, level, confidence=0.8, **how
            )
            if promised.threshold is None:
                continue
            flagged = new > promised.threshold
            kept = {
                "recall": flagged[truth == 1].mean() >= level,
                "precision": truth[flagged].mean() >= level,
                "false_alarm_rate": flagged[truth == 0].mean() <= level,
            }[rate]
            broken[rate] += not kept
    assert max(broken.values()) <= 80 + 3 * np.sqrt(400 * 0.2 * 0.8)
