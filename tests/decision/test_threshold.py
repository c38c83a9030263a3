import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.decision import tune_threshold

from .simulate import rare_votes

SPECS = ["f1", ("fbeta", 2), {"recall": 0.75}, {"precision": 0.5}, {"cost": (1, 3)}]


@st.composite
def weighted_rows(draw):
    n = draw(st.integers(2, 14))
    vote = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    signs[:2], weight[:2] = [1, -1], [max(w, 1) for w in weight[:2]]
    return np.array(vote) / 4, np.array(signs), np.array(weight)


def slow_preference(spec, vote, signs, weight, threshold):
    """In fractions, so that ties are ties; floors of 3/4 and 1/2."""
    found = alarms = positives = 0
    for v, s, w in zip(vote, signs, weight, strict=True):
        w = Fraction(int(w))
        positives += w * int(s > 0)
        found += w * int(s > 0 and v > threshold)
        alarms += w * int(s < 0 and v > threshold)
    recall = found / positives
    precision = found / (found + alarms) if found + alarms else Fraction(0)
    if spec == "f1" or spec == ("fbeta", 2):
        b = 1 if spec == "f1" else 4
        return ((1 + b) * found / (b * positives + found + alarms),)
    if "cost" in spec:
        return (-(alarms + 3 * (positives - found)),)
    kept, goal = (recall, precision) if "recall" in spec else (precision, recall)
    floor = Fraction(3, 4) if "recall" in spec else Fraction(1, 2)
    return (goal, kept) if kept >= floor else (kept - 2, kept)


def slow_decisions(spec, vote, signs, weight):
    """All cuts, one at a time, and the rule for plateaus in plain loops."""
    distinct = sorted({v for v, w in zip(vote, weight, strict=True) if w})
    cuts = [distinct[0] - 1, *distinct]
    liked = [slow_preference(spec, vote, signs, weight, cut) for cut in cuts]
    runs, run = [], []
    for j, one in enumerate(liked):
        if one == max(liked):
            run.append(j)
        elif run:
            runs.append(run)
            run = []
    runs += [run] if run else []
    longest = max(len(run) for run in runs)
    run = [run for run in runs if len(run) == longest][-1]
    return vote > cuts[run[len(run) // 2]]


def quiet_threshold(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no threshold reaches")
        return tune_threshold(*args, **kwargs)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=60, deadline=None)
@given(rows=weighted_rows())
def test_no_better_threshold_exists(spec, rows):
    vote, signs, weight = rows
    threshold = quiet_threshold(vote, signs, spec, sample_weight=weight)
    counts = weight > 0
    decided = (vote > threshold)[counts]
    assert (decided == slow_decisions(spec, vote, signs, weight)[counts]).all()


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=30, deadline=None)
@given(rows=weighted_rows())
def test_a_weight_is_a_repetition_and_its_unit_does_not_matter(spec, rows):
    vote, signs, weight = rows
    repeated = quiet_threshold(vote.repeat(weight), signs.repeat(weight), spec)
    for unit in (1, 0.1, 1e-200, 1e300):
        found = quiet_threshold(vote, signs, spec, sample_weight=weight * unit)
        assert found == repeated


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=30, deadline=None)
@given(rows=weighted_rows(), seed=st.integers(0, 99))
def test_only_the_order_of_votes_matters(spec, rows, seed):
    vote, signs, weight = rows
    decided = vote > quiet_threshold(vote, signs, spec, sample_weight=weight)
    for moved in (1e6 * vote + 3, np.exp(3 * vote), vote**3 * 1e-9):
        threshold = quiet_threshold(moved, signs, spec, sample_weight=weight)
        assert ((moved > threshold) == decided)[weight > 0].all()
    order = np.random.default_rng(seed).permutation(len(vote))
    shuffled = quiet_threshold(vote[order], signs[order], spec, sample_weight=weight[order])
    assert ((vote > shuffled) == decided).all()


def test_fixed_thresholds_are_taken_as_they_are():
    vote, signs = rare_votes()
    assert tune_threshold(vote, signs, "vote") == 0
    assert tune_threshold(vote, signs, -0.125) == -0.125


def test_rows_without_a_vote_or_a_weight_are_left_out():
    vote, signs = rare_votes(300)
    alone = tune_threshold(vote, signs, "f1")
    padded = np.append(vote, [np.nan, np.nan, 0.9, 0.95])
    more = np.append(signs, [1, -1, -1, -1])
    weight = np.append(np.ones(300), [1, 5, 0, 0])
    assert tune_threshold(padded, more, "f1", sample_weight=weight) == alone


def test_the_middle_of_the_gap():
    assert tune_threshold([0.0, 1.0, 2.0, 4.0], [-1, -1, 1, 1], "f1") == 1.5


def test_neighbouring_floats_stay_apart():
    low = 1.0
    high = np.nextafter(low, 2)
    for pair in ((low, high), (0.0, 5e-324), (-5e-324, 0.0)):
        threshold = tune_threshold(pair, [-1, 1], "f1")
        assert pair[0] <= threshold < pair[1]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e308])
def test_thresholds_are_finite_and_just_outside_when_all_or_none_is_best(scale):
    vote = np.array([-1.0, -0.5, 0.5, 1.0]) * scale
    everything = tune_threshold(vote, [1, 1, 1, -1], {"cost": (1, 9)})
    nothing = tune_threshold(vote, [-1, 1, -1, -1], {"cost": (9, 1)})
    assert np.isfinite([everything, nothing]).all()
    assert everything < vote[0]
    assert everything == pytest.approx(vote[0], rel=1e-12)
    assert nothing == pytest.approx(vote[-1], rel=1e-12)
    assert not (vote > nothing).any()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_equal_votes_are_decided_together(spec):
    threshold = quiet_threshold(np.full(40, 0.3), np.tile([1, -1], 20), spec)
    assert np.isfinite(threshold)
    assert threshold < 0.3  # flagging all of them is best, or as close as it gets


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_perfect_votes_are_cut_between_the_classes(spec):
    vote = np.array([-0.9, -0.7, 0.1, 0.5, 0.6])
    assert tune_threshold(vote, [-1, -1, 1, 1, 1], spec) == pytest.approx(-0.3)


def test_inverted_votes_and_a_single_positive():
    vote = np.linspace(-1, 1, 21)
    signs = np.full(21, -1)
    signs[0] = 1
    assert tune_threshold(vote, signs, "f1") < -1
    assert tune_threshold(-vote, signs, "f1") == pytest.approx(0.95)


def test_floors():
    vote, signs = rare_votes(5000)
    threshold = tune_threshold(vote, signs, {"recall": 0.9})
    assert (vote[signs > 0] > threshold).mean() >= 0.9
    threshold = tune_threshold(vote, signs, {"precision": 0.6})
    assert (signs[vote > threshold] > 0).mean() >= 0.6


def test_a_floor_out_of_reach_gives_the_closest_and_says_so():
    vote, signs = [0.1, 0.2, 0.3, 0.4], [1, 1, -1, -1]
    with pytest.warns(UserWarning, match=r"precision floor of 0\.9.*closest has 0\.5"):
        threshold = tune_threshold(vote, signs, {"precision": 0.9})
    assert threshold < 0.1


def test_a_cost_for_each_row():
    vote = np.array([-0.8, -0.4, 0.0, 0.4, 0.8])
    signs = np.array([1, -1, -1, 1, 1])
    amounts = np.array([1.0, 0, 0, 10, 10])
    cut = {"cost": (2, amounts)}
    assert tune_threshold(vote, signs, cut) == pytest.approx(0.2)
    amounts[0] = 100  # missing it would be dearer than two false alarms
    assert tune_threshold(vote, signs, cut) < -0.8
    amounts[0], vote[0] = 100, np.nan
    assert tune_threshold(vote, signs, cut) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("vote", "signs", "weight", "culprit"),
    [
        ([[0.1]], [1], None, "vote has shape"),
        ([0.1, np.inf], [1, -1], None, "infinities"),
        ([0.1, 0.2], [1, 0], None, "0.* is among them"),
        ([0.1, 0.2], [1], None, "signs has shape"),
        ([0.1, 0.2], [1, -1], [1, -1], "not negative"),
        ([0.1, 0.2], [1, -1], [1], "sample_weight has shape"),
        ([0.1, 0.2], [1, -1], [0, 0], "no row has both"),
        ([np.nan, np.nan], [1, -1], None, "never out of sample"),
        ([0.1, 0.2], [-1, -1], None, "is positive; both classes"),
        ([0.1, 0.2], [1, -1], [1, 0], "is negative; both classes"),
    ],
)
def test_bad_rows_are_named(vote, signs, weight, culprit):
    with pytest.raises(ValueError, match=culprit):
        tune_threshold(vote, signs, "f1", sample_weight=weight)


def test_speed():
    vote, signs = rare_votes(200_000, rate=0.01)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        tune_threshold(vote, signs, "f1")
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.15  # 0.02 on a quiet machine
