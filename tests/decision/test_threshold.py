import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from damvi.decision import calibrate_vote, decide, tune_threshold
from damvi.decision.factors import FactorSearch, confusion, f1_by_class
from damvi.labels import Labels, settle

from .simulate import rare_votes

SPECS = ["f1", ("fbeta", 2), {"recall": 0.75}, {"precision": 0.5}, {"cost": (1, 3)}]


@st.composite
def weighted_rows(draw):
    n = draw(st.integers(2, 14))
    vote = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    targets = draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    targets[:2], weight[:2] = [1, 0], [max(w, 1) for w in weight[:2]]
    return np.array(vote) / 4, np.array(targets), np.array(weight)


def slow_preference(spec, vote, targets, weight, threshold):
    """In fractions, so that ties are ties; floors of 3/4 and 1/2."""
    found = alarms = positives = 0
    for v, s, w in zip(vote, targets, weight, strict=True):
        w = Fraction(int(w))
        positives += w * int(s == 1)
        found += w * int(s == 1 and v > threshold)
        alarms += w * int(s == 0 and v > threshold)
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


def slow_decisions(spec, vote, targets, weight):
    """All cuts, one at a time, and the rule for plateaus in plain loops."""
    distinct = sorted({v for v, w in zip(vote, weight, strict=True) if w})
    cuts = [distinct[0] - 1, *distinct]
    liked = [slow_preference(spec, vote, targets, weight, cut) for cut in cuts]
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
    vote, targets, weight = rows
    threshold = quiet_threshold(vote, targets, spec, sample_weight=weight)
    counts = weight > 0
    decided = (vote > threshold)[counts]
    assert (decided == slow_decisions(spec, vote, targets, weight)[counts]).all()


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=30, deadline=None)
@given(rows=weighted_rows())
def test_a_weight_is_a_repetition_and_its_unit_does_not_matter(spec, rows):
    vote, targets, weight = rows
    repeated = quiet_threshold(vote.repeat(weight), targets.repeat(weight), spec)
    for unit in (1, 0.1, 1e-200, 1e300):
        found = quiet_threshold(vote, targets, spec, sample_weight=weight * unit)
        assert found == repeated


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=30, deadline=None)
@given(rows=weighted_rows(), seed=st.integers(0, 99))
def test_only_the_order_of_votes_matters(spec, rows, seed):
    vote, targets, weight = rows
    decided = vote > quiet_threshold(vote, targets, spec, sample_weight=weight)
    for moved in (1e6 * vote + 3, np.exp(3 * vote), vote**3 * 1e-9):
        threshold = quiet_threshold(moved, targets, spec, sample_weight=weight)
        assert ((moved > threshold) == decided)[weight > 0].all()
    order = np.random.default_rng(seed).permutation(len(vote))
    shuffled = quiet_threshold(
        vote[order], targets[order], spec, sample_weight=weight[order]
    )
    assert ((vote > shuffled) == decided).all()


def test_fixed_thresholds_are_taken_as_they_are():
    vote, targets = rare_votes()
    assert tune_threshold(vote, targets, "vote") == 0
    assert tune_threshold(vote, targets, -0.125) == -0.125


def test_rows_without_a_vote_or_a_weight_are_left_out():
    vote, targets = rare_votes(300)
    alone = tune_threshold(vote, targets, "f1")
    padded = np.append(vote, [np.nan, np.nan, 0.9, 0.95])
    more = np.append(targets, [1, 0, 0, 0])
    weight = np.append(np.ones(300), [1, 5, 0, 0])
    assert tune_threshold(padded, more, "f1", sample_weight=weight) == alone


def test_the_middle_of_the_gap():
    assert tune_threshold([0.0, 1.0, 2.0, 4.0], [0, 0, 1, 1], "f1") == 1.5


def test_neighbouring_floats_stay_apart():
    low = 1.0
    high = np.nextafter(low, 2)
    for pair in ((low, high), (0.0, 5e-324), (-5e-324, 0.0)):
        threshold = tune_threshold(pair, [0, 1], "f1")
        assert pair[0] <= threshold < pair[1]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e308])
def test_thresholds_are_finite_and_just_outside_when_all_or_none_is_best(scale):
    vote = np.array([-1.0, -0.5, 0.5, 1.0]) * scale
    everything = tune_threshold(vote, [1, 1, 1, 0], {"cost": (1, 9)})
    nothing = tune_threshold(vote, [0, 1, 0, 0], {"cost": (9, 1)})
    assert np.isfinite([everything, nothing]).all()
    assert everything < vote[0]
    assert everything == pytest.approx(vote[0], rel=1e-12)
    assert nothing == pytest.approx(vote[-1], rel=1e-12)
    assert not (vote > nothing).any()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_equal_votes_are_decided_together(spec):
    threshold = quiet_threshold(np.full(40, 0.3), np.tile([1, 0], 20), spec)
    assert np.isfinite(threshold)
    assert threshold < 0.3  # flagging all of them is best, or as close as it gets


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_perfect_votes_are_cut_between_the_classes(spec):
    vote = np.array([-0.9, -0.7, 0.1, 0.5, 0.6])
    assert tune_threshold(vote, [0, 0, 1, 1, 1], spec) == pytest.approx(-0.3)


def test_inverted_votes_and_a_single_positive():
    vote = np.linspace(-1, 1, 21)
    targets = np.zeros(21)
    targets[0] = 1
    assert tune_threshold(vote, targets, "f1") < -1
    assert tune_threshold(-vote, targets, "f1") == pytest.approx(0.95)


def test_floors():
    vote, targets = rare_votes(5000)
    threshold = tune_threshold(vote, targets, {"recall": 0.9})
    assert (vote[targets == 1] > threshold).mean() >= 0.9
    threshold = tune_threshold(vote, targets, {"precision": 0.6})
    assert targets[vote > threshold].mean() >= 0.6


def test_a_floor_out_of_reach_gives_the_closest_and_says_so():
    vote, targets = [0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0]
    with pytest.warns(UserWarning, match=r"a precision of 0\.9.*closest has 0\.5"):
        threshold = tune_threshold(vote, targets, {"precision": 0.9})
    assert threshold < 0.1


def test_a_cost_for_each_row():
    vote = np.array([-0.8, -0.4, 0.0, 0.4, 0.8])
    targets = np.array([1, 0, 0, 1, 1])
    amounts = np.array([1.0, 0, 0, 10, 10])
    cut = {"cost": (2, amounts)}
    assert tune_threshold(vote, targets, cut) == pytest.approx(0.2)
    amounts[0] = 100  # missing it would be dearer than two false alarms
    assert tune_threshold(vote, targets, cut) < -0.8
    amounts[0], vote[0] = 100, np.nan
    assert tune_threshold(vote, targets, cut) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("vote", "targets", "weight", "culprit"),
    [
        ([[0.1]], [1], None, "vote has shape"),
        ([[0.1, 0.9]], [1], None, "vote has shape"),
        ([[0.1, 0.7, 0.2]], [3], None, "0 to 2, but contain .*3"),
        (np.full((1, 3), np.nan), [0], None, "never out of sample"),
        ([0.1, np.inf], [1, 0], None, "infinities"),
        ([0.1, 0.2], [1, -1], None, "but contain .*-1"),
        ([0.1, 0.2], [1], None, "targets has shape"),
        ([0.1, 0.2], [1, 0], [1, -1], "not negative"),
        ([0.1, 0.2], [1, 0], [1], "sample_weight has shape"),
        ([0.1, 0.2], [1, 0], [0, 0], "no row has both"),
        ([np.nan, np.nan], [1, 0], None, "never out of sample"),
        ([0.1, 0.2], [0, 0], None, "is of class 1; rows of every class"),
        ([0.1, 0.2], [1, 0], [1, 0], "is of class 0; rows of every class"),
    ],
)
def test_bad_rows_are_named(vote, targets, weight, culprit):
    with pytest.raises(ValueError, match=culprit):
        tune_threshold(vote, targets, "vote", sample_weight=weight)


# Three or more classes.


def random_rows(seed, n=None, n_classes=None, levels=None):
    rng = np.random.default_rng(seed)
    n_classes = n_classes or int(rng.integers(3, 6))
    n = n or int(rng.integers(3, 40))
    vote = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    vote = np.round(vote * levels) / levels if levels else vote
    targets = rng.integers(0, n_classes, n)
    return vote, targets, rng.choice([0.5, 1, 2], n), rng.permutation(n_classes), rng


def sum_of_f1(vote, targets, weight, factors, order):
    table = confusion(targets, decide(vote, factors, order), weight, len(factors))
    return f1_by_class(table).sum()


def test_f1_is_scikit_learns():
    vote, targets, weight, order, _ = random_rows(0, n=50, n_classes=4)
    decided = decide(vote, np.ones(4), order)
    expected = f1_score(targets, decided, average=None, sample_weight=weight)
    np.testing.assert_allclose(
        f1_by_class(confusion(targets, decided, weight, 4)), expected
    )


@given(seed=st.integers(0, 10**6), levels=st.sampled_from([None, 4]))
def test_no_factor_of_one_class_does_better(seed, levels):
    vote, targets, weight, order, rng = random_rows(seed, levels=levels)
    factors = rng.choice([0.5, 1, 2.0], vote.shape[1])
    c = int(rng.integers(vote.shape[1]))
    order = np.arange(vote.shape[1])
    search = FactorSearch(vote, targets, weight, rng.choice([0.5, 1, 2.0], vote.shape[1]))
    for other, known in enumerate(factors):
        search.set_factor(other, known)
    value, factor = search.best_factor(c)
    if not np.isfinite(value):
        assert not vote[:, c].any()
        return
    # Points where rows turn, and between them; none is exactly on one but by a tie.
    scores = np.delete(vote * factors, c, axis=1).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        points = np.unique((scores / vote[:, c])[vote[:, c] > 0])
    tried = np.concatenate([points * (1 - 1e-9), points * (1 + 1e-9), [1e-9, 1e9]])
    changed = [np.where(np.arange(len(factors)) == c, one, factors) for one in tried]
    best = max(
        sum_of_f1(vote, targets, weight, one, order) for one in changed if one[c] > 0
    )
    chosen = np.where(np.arange(len(factors)) == c, factor, factors)
    assert sum_of_f1(vote, targets, weight, chosen, order) == pytest.approx(value, abs=1e-9)
    assert value >= best - 1e-9


@given(seed=st.integers(0, 10**6))
def test_factors_are_never_worse_than_the_plain_vote(seed):
    vote, targets, weight, order, _ = random_rows(seed)
    factors = tune_threshold(vote, targets, "macro_f1", sample_weight=weight, order=order)
    tuned, plain = (
        sum_of_f1(vote, targets, weight, one, order)
        for one in (factors, np.ones(len(factors)))
    )
    assert tuned >= plain - 1e-9
    assert (factors > 0).all()
    assert factors[order[0]] == 1


def test_a_shift_of_the_votes_is_put_right():
    rng = np.random.default_rng(0)
    targets = rng.choice(3, 3000, p=[0.8, 0.15, 0.05])
    votes = rng.dirichlet([1, 1, 1], size=3000) + 0.5 * np.eye(3)[targets]
    held_back = votes * [1, 0.4, 0.1]
    order = np.arange(3)
    plain, tuned, as_if_not = (
        f1_score(targets, decide(vote, factors, order), average="macro")
        for vote, factors in (
            (held_back, np.ones(3)),
            (held_back, tune_threshold(held_back, targets, "macro_f1")),
            (votes, tune_threshold(votes, targets, "macro_f1")),
        )
    )
    assert plain + 0.1 < tuned == pytest.approx(as_if_not, abs=0.005)


def test_rows_without_a_vote_or_a_weight_have_no_part_in_factors():
    vote, targets, weight, order, _ = random_rows(1, n=30, n_classes=3)
    plain = tune_threshold(vote, targets, "macro_f1", sample_weight=weight, order=order)
    more = np.vstack([vote, np.full((1, 3), np.nan), vote[:5]])
    counts = np.concatenate([weight, [1.0], np.zeros(5)])
    all_targets = np.append(targets, [0, 1, 2, 0, 1, 2])
    again = tune_threshold(more, all_targets, "macro_f1", sample_weight=counts, order=order)
    np.testing.assert_array_equal(plain, again)


def test_ties_are_settled_by_the_smallest_step():
    scores = np.array([[0.4, 0.4, 0.2], [0.1, 0.3, 0.3], [np.nan, np.nan, np.nan]])
    found = settle(scores, np.array([2, 1, 0]))
    assert found[:2].argmax(axis=1).tolist() == [1, 2]
    np.testing.assert_allclose(found, scores, rtol=1e-15)
    two = np.array([-0.5, 0.0, 0.5, np.nan])
    for order, tied in (((0, 1), 0), ((1, 0), 1)):
        found = Labels.restored(np.array([0, 1]), 1, np.array(order)).scores(two, 0.0)
        assert (found > 0).tolist() == [False, tied == 1, True, False]
        np.testing.assert_allclose(found, two, atol=1e-15)
        assert decide(two[:3], 0.0, order).tolist() == [0, tied, 1]


@given(seed=st.integers(0, 10**6))
def test_factors_that_change_one_by_one_are_those_of_a_new_start(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 7))
    vote = rng.integers(0, 4, (30, n_classes)) / 4  # with ties, and classes without votes
    targets, weight = rng.integers(0, n_classes, 30), rng.choice([0.5, 1, 2], 30)
    search = FactorSearch(vote, targets, weight, np.ones(n_classes))
    for _ in range(6):
        search.set_factor(
            int(rng.integers(n_classes)), float(rng.choice([0.25, 0.5, 1, 3]))
        )
    again = FactorSearch(vote, targets, weight, search.factors.copy())
    assert search.sum_of_f1() == again.sum_of_f1()
    for c in range(n_classes):
        assert search.best_factor(c) == again.best_factor(c)


def test_speed():
    vote, targets = rare_votes(200_000, rate=0.01)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        tune_threshold(vote, targets, "f1")
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.15  # 0.02 on a quiet machine


def few_positives(seed, n_positives=40, n_negatives=2000):
    rng = np.random.default_rng(seed)
    targets = np.repeat([1, 0], [n_positives, n_negatives])
    vote = np.tanh(0.8 * targets - 1 + 0.4 * rng.standard_normal(len(targets)))
    return vote, targets


def test_a_smoothed_threshold_has_the_best_expected_f1():
    vote, targets = few_positives(0)
    chance = calibrate_vote(vote, targets)(vote)

    def expected_f1(threshold):
        flagged = vote > threshold
        return 2 * chance[flagged].sum() / (flagged.sum() + chance.sum())

    found = expected_f1(tune_threshold(vote, targets, "f1", smooth=True))
    assert found >= max(map(expected_f1, np.sort(vote)[:-1])) - 1e-12


@pytest.mark.parametrize(("false_alarm", "miss"), [(1, 20), (3, 7), (1, 1)])
def test_a_smoothed_threshold_for_costs_is_where_both_errors_cost_the_same(
    false_alarm, miss
):
    vote, targets = few_positives(1)
    costs = {"cost": (false_alarm, miss)}
    threshold = tune_threshold(vote, targets, costs, smooth=True)
    chance = calibrate_vote(vote, targets)
    below, above = vote[vote <= threshold].max(), vote[vote > threshold].min()
    assert chance(below) <= false_alarm / (false_alarm + miss) <= chance(above)


def test_costs_of_single_rows_are_counted():
    vote, targets = few_positives(2)
    # What is at stake may tell the class: nothing, unless the row is positive.
    amounts = np.random.default_rng(2).uniform(1, 50, len(vote)) * targets
    costs = {"cost": (1, amounts)}
    plain = tune_threshold(vote, targets, costs)
    assert tune_threshold(vote, targets, costs, smooth=True) == plain


@pytest.mark.parametrize(
    "objective", [{"recall": 0.9}, {"precision": 0.5}, {"flags": 30}, 0.1]
)
def test_floors_and_budgets_are_not_smoothed(objective):
    vote, targets = few_positives(3)
    plain = tune_threshold(vote, targets, objective)
    assert tune_threshold(vote, targets, objective, smooth=True) == plain


def test_many_positives_speak_for_themselves():
    vote, targets = few_positives(4, n_positives=300)
    plain = tune_threshold(vote, targets, "f1")
    assert tune_threshold(vote, targets, "f1", smooth=True) == plain
    one_less = tune_threshold(vote[1:], targets[1:], "f1", smooth=True)
    assert one_less != tune_threshold(vote[1:], targets[1:], "f1")


def test_weights_of_all_rows_change_no_smoothed_threshold():
    vote, targets = few_positives(5)
    plain = tune_threshold(vote, targets, "f1", smooth=True)
    heavy = np.full(len(vote), 8.0)
    assert tune_threshold(vote, targets, "f1", sample_weight=heavy, smooth=True) == plain


@pytest.mark.parametrize("n_positives", [1, 2])
def test_one_positive_is_enough_for_a_smoothed_threshold(n_positives):
    vote, targets = few_positives(6, n_positives, 50)
    threshold = tune_threshold(vote, targets, "f1", smooth=True)
    assert vote.min() - 1e-9 <= threshold <= vote.max()


def test_smoothing_pays_on_new_rows():
    gains = []
    for seed in range(40):
        vote, targets = few_positives(seed, 20)
        new, truth = few_positives(1000 + seed, 2000, 200_000)
        plain, smooth = (
            f1_score(truth, new > tune_threshold(vote, targets, "f1", smooth=smooth))
            for smooth in (False, True)
        )
        gains.append(smooth - plain)
    assert np.mean(gains) > 2 * np.std(gains) / len(gains) ** 0.5


def test_very_many_rows_are_counted(monkeypatch):
    vote, targets = few_positives(7)
    plain, smooth = (tune_threshold(vote, targets, "f1", smooth=s) for s in (False, True))
    assert smooth != plain
    monkeypatch.setattr("damvi.decision.decision.MOST_SMOOTHED", len(vote) - 1)
    assert tune_threshold(vote, targets, "f1", smooth=True) == plain


def test_votes_that_tell_nothing_flag_all_rows():
    vote, targets = few_positives(8)
    threshold = tune_threshold(-vote, targets, "f1", smooth=True)
    assert (-vote > threshold).all()  # the best F1 that is to be expected
