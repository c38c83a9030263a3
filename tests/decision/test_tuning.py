import json
import time
import warnings

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from damvi import DAMVIClassifier, load, save
from damvi.decision import (
    Tuning,
    crossfit_decisions,
    crossfit_thresholds,
    decide,
    tune,
    tune_threshold,
)

from .simulate import rare_votes

SPECS = ["vote", "f1", 0.1, ("fbeta", 2), {"recall": 0.8}, {"cost": (1, 20)}]


def test_the_honest_value_is_that_of_thresholds_tuned_on_other_folds():
    vote, targets = rare_votes(800)
    folds = np.arange(800) % 4
    flagged = np.empty(800, dtype=bool)
    for fold in range(4):
        here = folds == fold
        flagged[here] = vote[here] > tune_threshold(vote[~here], targets[~here], "f1")
    tuning = tune(vote, targets, "f1", folds=folds)
    assert tuning.honest_value == pytest.approx(f1_score(targets, flagged))
    assert tuning.threshold == tune_threshold(vote, targets, "f1")
    assert tuning.value == pytest.approx(f1_score(targets, vote > tuning.threshold))
    assert tuning.honest_recall == pytest.approx(flagged[targets == 1].mean())
    assert tuning.honest_f1 == tuning.honest_value
    assert tuning.honest_precision == pytest.approx(targets[flagged].mean())


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("spec", ["f1", {"recall": 0.7}, 0.5])
def test_who_wins_a_tie_decides_votes_at_the_threshold_of_other_folds(spec, order):
    """Quarters, so that a threshold in the middle of two is a vote of the fold left out."""
    rng = np.random.default_rng(3)
    targets = rng.integers(0, 2, 300)
    vote = np.round(4 * (0.6 * targets - 0.3 + 0.4 * rng.standard_normal(300))) / 4
    folds = np.arange(300) % 2
    vote[folds == 0] = np.round(2 * vote[folds == 0]) / 2
    thresholds = crossfit_thresholds(vote, targets, spec, folds, order=order)
    assert (vote == thresholds).any()
    expected = decide(vote, thresholds, order)
    decided = crossfit_decisions(vote, targets, spec, folds, order=order)
    np.testing.assert_array_equal(decided, expected)
    tuning = tune(vote, targets, spec, folds=folds, order=order)
    assert tuning.honest_f1 == pytest.approx(f1_score(targets, expected))
    if spec == 0.5:  # draws are decided alike
        assert tuning.value == tuning.honest_value
        assert sum(tuning.value_interval) / 2 == pytest.approx(tuning.value, abs=0.02)


def test_a_threshold_between_neighbouring_floats_flags_the_upper_one_whoever_wins():
    vote = np.array([0.5, 0.5, np.nextafter(0.5, 1)])
    for order in ([0, 1], [1, 0]):
        threshold = tune_threshold(vote, [0, 0, 1], "f1", order=order)
        assert decide(vote, threshold, order).tolist() == [0, 0, 1]


def test_what_is_judged_on_a_fold_does_not_depend_on_its_labels():
    vote, targets = rare_votes(800)
    folds = np.arange(800) % 2
    turned = np.where(folds == 0, 1 - targets, targets)
    one, two = (crossfit_decisions(vote, own, "f1", folds) for own in (targets, turned))
    assert (one == two)[folds == 0].all()
    assert (one != two)[folds == 1].any()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_intervals_hold_what_they_are_about(spec):
    vote, targets = rare_votes(3000, seed=1)
    tuning = tune(vote, targets, spec)
    low, high = tuning.threshold_interval
    assert low <= tuning.threshold <= high
    low, high = tuning.value_interval
    assert low < tuning.honest_value < high
    if spec in ("vote", 0.1):
        assert tuning.threshold_interval == (tuning.threshold, tuning.threshold)
        assert tuning.value == tuning.honest_value


def test_tuning_is_repeatable_and_seeded():
    vote, targets = rare_votes(1000)
    assert tune(vote, targets, "f1") == tune(vote, targets, "f1")
    assert tune(vote, targets, "f1") != tune(vote, targets, "f1", seed=1)


def test_more_rows_make_narrower_intervals():
    widths = []
    for n in (500, 50_000):
        tuning = tune(*rare_votes(n), "f1")
        widths.append(np.subtract(*tuning.value_interval[::-1]))
    assert widths[1] < widths[0] / 4


@pytest.mark.slow
def test_the_interval_of_the_value_covers():
    """What thresholds tuned on 1,000 rows are worth on average, in 9 of 10 intervals."""
    fresh, truth = rare_votes(200_000, seed=10**6)
    worth, intervals = [], []
    for seed in range(60):
        vote, targets = rare_votes(1000, seed=seed)
        tuning = tune(vote, targets, "f1", seed=seed)
        intervals.append(tuning.value_interval)
        worth.append(f1_score(truth, fresh > tuning.threshold))
    low, high = np.transpose(intervals)
    covered = np.mean((low <= np.mean(worth)) & (np.mean(worth) <= high))
    assert 0.78 <= covered <= 0.99


def test_a_weight_for_all_changes_nothing():
    vote, targets = rare_votes(1000)
    plain = tune(vote, targets, {"cost": (1, 20)})
    scaled = tune(vote, targets, {"cost": (1, 20)}, sample_weight=np.full(1000, 4.0))
    assert scaled == plain


def test_costs_are_a_mean_over_the_rows_and_may_differ_by_row():
    vote, targets = rare_votes(1000)
    vote[::10] = np.nan
    amounts = np.random.default_rng(0).exponential(50, 1000)
    tuning = tune(vote, targets, {"cost": (2, amounts)})
    seen = ~np.isnan(vote)
    flagged = vote > tuning.threshold
    missed = amounts[seen & (targets == 1) & ~flagged].sum()
    alarms = 2 * (seen & (targets == 0) & flagged).sum()
    assert tuning.value == pytest.approx((missed + alarms) / seen.sum())
    assert tuning.value <= tuning.honest_value


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("inverted", [1, -1])
def test_one_positive(spec, inverted):
    vote = inverted * np.linspace(-1, 1, 30)
    targets = np.zeros(30)
    targets[-1] = 1
    tuning = tune(vote, targets, spec)
    numbers = [tuning.threshold, tuning.honest_value, *tuning.value_interval]
    assert np.isfinite([*numbers, *tuning.threshold_interval]).all()


def test_huge_weights_and_equal_votes():
    targets = np.tile([1, 0, 0], 20)
    tuning = tune(np.zeros(60), targets, "f1", sample_weight=np.full(60, 1e306))
    assert tuning.value == tuning.honest_value == pytest.approx(0.5)


def test_coin_flips_are_at_chance():
    """Tuned on themselves they beat every constant rule; on other folds they do not."""
    rate, seen, honest = 0.05, [], []
    for seed in range(40):
        vote, targets = rare_votes(1000, rate=rate, seed=seed, strength=0)
        tuning = tune(vote, targets, "f1", seed=seed)
        seen.append(tuning.value)
        honest.append(tuning.honest_value)
    flag_all = 2 * rate / (1 + rate)
    assert np.mean(seen) > flag_all + 0.008
    error = np.std(honest) / np.sqrt(len(honest))
    assert np.mean(honest) <= flag_all + 2 * error
    assert np.mean(honest) >= flag_all - 0.03


def coin_votes(seed, n):
    """Votes on three classes, and targets that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(3, 0.7), size=n), rng.integers(0, 3, n)


def test_coin_flips_of_many_classes_are_worth_nothing_on_rows_not_tuned_on():
    seen, honest = [], []
    for seed in range(20):
        vote, targets = coin_votes(seed, n=200)
        tuning = tune(vote, targets, "macro_f1", folds=np.arange(200) % 5)
        seen.append(tuning.value)
        honest.append(tuning.honest_value)
        assert tuning.as_dict()["objective"] == "macro F1"
    assert np.mean(honest) == pytest.approx(1 / 3, abs=0.02)
    assert np.mean(seen) > np.mean(honest) + 0.02


def test_the_interval_of_macro_f1_holds_what_other_rows_say():
    vote, targets = coin_votes(3, n=3000)
    vote = vote + 0.3 * np.eye(3)[targets]
    half = np.arange(3000) < 600
    tuning = tune(vote[half], targets[half], "macro_f1", folds=np.arange(600) % 5)
    decided = decide(vote[~half], np.array(tuning.threshold))
    low, high = tuning.value_interval
    assert low < f1_score(targets[~half], decided, average="macro") < high
    assert high - low < 0.1


def test_the_honest_figures_of_many_classes_are_those_of_other_folds():
    vote, targets = coin_votes(0, n=400)
    vote[7] = np.nan
    folds, order = np.arange(400) % 4, np.array([2, 0, 1])
    tuning = tune(vote, targets, "macro_f1", folds=folds, order=order)
    decided = crossfit_decisions(vote, targets, "macro_f1", folds, order=order)
    assert decided[7] == 2
    known = np.arange(400) != 7
    for fold in range(4):
        here = known & (folds == fold)
        rest = folds != fold
        factors = tune_threshold(vote[rest], targets[rest], "macro_f1", order=order)
        np.testing.assert_array_equal(decide(vote[here], factors, order), decided[here])
    rates = precision_recall_fscore_support(targets[known], decided[known])
    honest = tuning.honest_precision, tuning.honest_recall, tuning.honest_f1
    np.testing.assert_allclose(honest, rates[:3])
    assert tuning.honest_value == pytest.approx(np.mean(tuning.honest_f1))
    assert "F1 by class" in str(tuning)
    assert Tuning(**tuning.as_dict()) == tuning
    fixed = tune(vote, targets, "vote", folds=folds)
    assert fixed.value == fixed.honest_value
    assert fixed.threshold == (1.0, 1.0, 1.0)


def test_a_single_fold_is_refused():
    vote, targets = rare_votes(100)
    with pytest.raises(ValueError, match="single fold"):
        tune(vote, targets, "f1", folds=np.zeros(100, dtype=int))
    with pytest.raises(ValueError, match="folds has shape"):
        tune(vote, targets, "f1", folds=np.zeros(99, dtype=int))


def test_a_model_whose_votes_are_of_a_single_fold_has_no_tuning(tmp_path):
    """Each voter has seen the third row, and the other two are in the same fold."""
    X = np.array([[0.146, 0.4], [-0.249, 0.588], [-0.169, 0.444]])
    model = DAMVIClassifier(
        fit_intercept=True,
        max_samples=1.0,
        n_estimators=3,
        random_state=94,
        reweight=0.0,
        shrinkage=0.999,
        threshold={"cost": (1, 20)},
        votes="oob",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, [1, 0, 0])
    assert np.isnan(model.oob_decision_function_).sum() == 1
    assert model.tuning_ is None
    save(model, tmp_path / "model.damvi")
    again = load(tmp_path / "model.damvi")
    assert again.tuning_ is None
    assert again.threshold_ == model.threshold_


def test_an_unreachable_floor_is_said_once():
    vote, targets = rare_votes(500, strength=0)
    with pytest.warns(UserWarning, match="no threshold reaches") as caught:
        tune(vote, targets, {"precision": 1.0})
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_the_result_reads_and_goes_to_json():
    tuning = tune(*rare_votes(500), {"recall": 0.8})
    assert "precision at recall >= 0.8" in str(tuning)
    assert "on rows not tuned on" in str(tuning)
    back = json.loads(json.dumps(tuning.as_dict()))
    for name in ("threshold_interval", "value_interval"):
        back[name] = tuple(back[name])
    assert Tuning(**back) == tuning


def test_speed():
    vote, targets = rare_votes(200_000, rate=0.05)
    start = time.process_time()
    tune(vote, targets, "f1")
    assert time.process_time() - start < 1  # 0.3 on a quiet machine


def test_a_smoothed_threshold_is_tuned_and_judged():
    rng = np.random.default_rng(0)
    targets = (rng.random(3000) < 0.02).astype(int)
    vote = np.tanh(targets - 1 + 0.4 * rng.standard_normal(3000))
    tuning = tune(vote, targets, "f1", smooth=True)
    assert tuning.threshold == tune_threshold(vote, targets, "f1", smooth=True)
    low, high = tuning.threshold_interval
    assert low < tuning.threshold < high
    low, high = tuning.value_interval
    assert low < tuning.honest_value < high
    folds = np.arange(3000) % 5
    cuts = crossfit_thresholds(vote, targets, "f1", folds, smooth=True)
    for fold in range(5):
        others = folds != fold
        own = tune_threshold(vote[others], targets[others], "f1", smooth=True)
        assert (cuts[~others] == own).all()
    decided = crossfit_decisions(vote, targets, "f1", folds, smooth=True)
    np.testing.assert_array_equal(decided, vote > cuts)


def test_folds_are_smoothed_if_all_rows_are():
    rng = np.random.default_rng(1)
    targets = np.repeat([1, 0], [330, 3000])  # 264 positives in four folds of five
    vote = np.tanh(targets - 1 + 0.4 * rng.standard_normal(len(targets)))
    folds = rng.integers(0, 5, len(targets))
    plain, smooth = (
        crossfit_thresholds(vote, targets, "f1", folds, smooth=smooth)
        for smooth in (False, True)
    )
    np.testing.assert_array_equal(plain, smooth)


@pytest.mark.parametrize("n_positives", [1, 2, 5])
def test_few_rows_can_be_tuned_smoothly(n_positives):
    rng = np.random.default_rng(2)
    targets = np.repeat([1, 0], [n_positives, 30])
    vote = np.tanh(targets - 1 + 0.4 * rng.standard_normal(len(targets)))
    tuning = tune(vote, targets, "f1", smooth=True)
    low, high = tuning.threshold_interval
    assert -1 <= low <= tuning.threshold <= high <= 1


def test_a_threshold_is_within_its_own_interval():
    """Also where there are so many positives that the draws only try some thresholds."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        targets = (rng.random(20_000) < 0.1).astype(int)
        vote = np.tanh(rng.normal(size=20_000) / 3 + targets)
        found = tune(vote, targets, "f1", seed=seed)
        low, high = found.threshold_interval
        assert low <= found.threshold <= high
