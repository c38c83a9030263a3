"""Calibration of voters: right, increasing, and blind to the labels that it judges."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from damvi.decision import calibrate_votes
from damvi.decision.calibration import (
    ENOUGH_FOR_ISOTONIC,
    Isotonic,
    Platt,
    fit_logistic,
    log_odds,
)
from damvi.folds import deal_folds

METHODS = ["platt", "isotonic"]


def boasting_votes(n=2000, n_voters=3, shift=-2.0, seed=0):
    """Votes that exaggerate, with noise of their own; targets; folds."""
    rng = np.random.RandomState(seed)
    truth = rng.normal(size=n) + shift
    targets = (rng.rand(n) < 1 / (1 + np.exp(-truth))).astype(int)
    scores = truth[:, None] * np.linspace(0.5, 3, n_voters) + rng.normal(size=(n, n_voters))
    return np.tanh(scores / 2).astype(np.float32), targets, np.arange(n) % 5


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose only column is its decision function."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("n", [300, 20_000])  # without and with a start from bins
def test_platt_is_that_of_scikit_learn(n):
    votes, targets, _ = boasting_votes(n)
    scores = log_odds(votes[:, 0])
    oracle = CalibratedClassifierCV(FrozenEstimator(Scores()), method="sigmoid")
    expected = oracle.fit(scores[:, None], targets == 1).predict_proba(scores[:, None])[
        :, 1
    ]
    (slope,), intercept = fit_logistic([scores], targets == 1, np.ones(n))
    ours = Platt(slope, intercept)(votes[:, 0])
    np.testing.assert_allclose((1 + ours) / 2, expected, atol=2e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [300, 8000])
def test_platt_is_a_logistic_regression_on_smoothed_targets(n, weighted):
    votes, targets, _ = boasting_votes(n)
    scores, positive = log_odds(votes[:, 2]), targets == 1
    weights = np.random.RandomState(0).rand(n) if weighted else np.ones(n)
    gain, loss = (
        w.sum() ** 2 / (w**2).sum() for w in (weights[positive], weights[~positive])
    )
    target = np.where(positive, (gain + 1) / (gain + 2), 1 / (loss + 2))
    oracle = LogisticRegression(
        C=1e12, tol=1e-12, max_iter=10_000, solver="newton-cholesky"
    )
    oracle.fit(
        np.tile(scores, 2)[:, None],
        np.repeat([1, 0], n),
        sample_weight=np.concatenate([weights * target, weights * (1 - target)]),
    )
    (slope,), intercept = fit_logistic([scores], positive, weights)
    assert slope == pytest.approx(oracle.coef_[0, 0], rel=1e-6)
    assert intercept == pytest.approx(oracle.intercept_[0], rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [1, 5])  # many ties, and none
def test_isotonic_is_that_of_scikit_learn(digits, weighted):
    votes, targets, folds = boasting_votes()
    votes = votes.round(digits).astype(float)  # scikit-learn ties what is near in float32
    weights = np.random.RandomState(0).randint(0, 3, len(targets)).astype(float)
    weights = weights if weighted else np.ones(len(targets))
    ours, final = calibrate_votes(
        votes, targets, folds, method="isotonic", sample_weight=weights
    )
    for fold in range(5):
        judged = folds == fold
        # scikit-learn averages tied rows of weight 0 too, so they are left out here.
        others = ~judged & (weights > 0)
        for k in range(3):
            oracle = IsotonicRegression(out_of_bounds="clip").fit(
                votes[others, k], (targets == 1)[others], sample_weight=weights[others]
            )
            expected = 2 * oracle.predict(votes[judged, k]) - 1
            np.testing.assert_allclose(ours[judged, k], expected, atol=1e-6)
    assert all(isinstance(one, Isotonic) for one in final)


@pytest.mark.parametrize("method", METHODS)
def test_a_folds_labels_have_no_part_in_its_own_votes(method):
    votes, targets, folds = boasting_votes()
    before, _ = calibrate_votes(votes, targets, folds, method=method)
    for fold in range(5):
        judged = folds == fold
        for other in (np.where(judged, 1 - targets, targets), np.where(judged, 1, targets)):
            after, _ = calibrate_votes(votes, other, folds, method=method)
            np.testing.assert_array_equal(after[judged], before[judged])
            assert (after[~judged] != before[~judged]).any()


def test_nor_in_the_choice_of_method():
    n = 6 * ENOUGH_FOR_ISOTONIC
    votes, targets, folds = boasting_votes(n, 1)
    chosen, _ = calibrate_votes(votes, targets, folds)
    judged = folds == 0
    # With all of the fold's rows negative there are too few positives in total.
    after, _ = calibrate_votes(votes, np.where(judged, 0, targets), folds)
    np.testing.assert_array_equal(after[judged], chosen[judged])


@pytest.mark.parametrize(("n", "kind"), [(2000, Platt), (80_000, Isotonic)])
def test_the_number_of_positives_chooses(n, kind):
    votes, targets, folds = boasting_votes(n)
    assert ((targets == 1).sum() >= ENOUGH_FOR_ISOTONIC) == (kind is Isotonic)
    calibrated, final = calibrate_votes(votes, targets, folds)
    assert all(isinstance(one, kind) for one in final)
    # The class that is rare counts, whichever it is.
    mirrored, final = calibrate_votes(-votes, 1 - targets, folds)
    assert all(isinstance(one, kind) for one in final)
    np.testing.assert_allclose(mirrored, -calibrated, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_votes_end_up_calibrated(method):
    votes, targets, folds = boasting_votes(8000)
    calibrated, final = calibrate_votes(votes, targets, folds, method=method)
    assert calibrated.dtype == np.float32
    assert calibrated.shape == votes.shape
    new, new_targets, _ = boasting_votes(8000, seed=1)
    for k in range(3):
        raw = brier_score_loss(new_targets == 1, (1 + new[:, k]) / 2)
        right = (1 + final[k](new[:, k])) / 2
        assert brier_score_loss(new_targets == 1, right) < raw
        assert right.mean() == pytest.approx((new_targets == 1).mean(), abs=0.01)
    assert ((1 + calibrated) / 2).mean() == pytest.approx((targets == 1).mean(), abs=0.003)


@pytest.mark.parametrize("method", METHODS)
def test_calibrators_increase_and_stay_in_bounds(method):
    votes, targets, folds = boasting_votes()
    grid = np.linspace(-1, 1, 1001).astype(np.float32)
    for one in calibrate_votes(votes, targets, folds, method=method)[1]:
        right = one(grid)
        assert right.dtype == np.float32
        assert (np.diff(right) >= 0).all()
        assert np.abs(right).max() <= 1
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(one))(grid), right)


@pytest.mark.parametrize("method", METHODS)
def test_a_voter_that_is_wrong_is_silenced_not_turned_round(method):
    votes, targets, folds = boasting_votes()
    _, (one,) = calibrate_votes(-votes[:, :1], targets, folds, method=method)
    said = one(np.linspace(-1, 1, 101))
    assert np.ptp(said) < 0.2
    assert (1 + said.mean()) / 2 == pytest.approx((targets == 1).mean(), abs=0.05)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "votes",
    [
        np.zeros(100),  # no opinion
        np.where(np.arange(100) < 10, 1.0, -1.0),  # right, and certain of it
        np.where(np.arange(100) < 10, -1.0, 1.0),  # wrong, and certain of it
        np.where(np.arange(100) < 10, 1e-30, -1e-30),
    ],
)
def test_extreme_votes_are_no_trouble(votes, method):
    targets = (np.arange(100) < 10).astype(int)
    right, (final,) = calibrate_votes(
        votes[:, None], targets, np.arange(100) % 5, method=method
    )
    assert np.isfinite(right).all()
    assert np.abs(right).max() <= 1
    assert np.isfinite(final(np.array([-1.0, 0.0, 1.0]))).all()


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_do_not_count(method):
    votes, targets, folds = boasting_votes()
    keep = np.arange(len(targets)) % 3 > 0
    weighted, _ = calibrate_votes(
        votes, np.where(keep, targets, 1), folds, method=method, sample_weight=1.0 * keep
    )
    without, _ = calibrate_votes(votes[keep], targets[keep], folds[keep], method=method)
    np.testing.assert_allclose(weighted[keep], without, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_on_coin_flips_nobody_learns_anything(method):
    rng = np.random.RandomState(0)
    votes, targets = rng.uniform(-1, 1, (4000, 2)), (rng.rand(4000) < 0.05).astype(int)
    folds = deal_folds(targets, seed=0)  # uneven ones would tell what they lack
    calibrated, _ = calibrate_votes(votes, targets, folds, method=method)
    assert abs(np.corrcoef(calibrated[:, 0], targets)[0, 1]) < 0.05


def test_calibration_is_one_against_the_rest_and_adds_up():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 2, 1], size=3000)
    targets = (rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    boasts = p**2 / (p**2).sum(axis=1, keepdims=True)
    votes = np.stack([p, boasts], axis=1).astype(np.float32)
    right, curves = calibrate_votes(votes, targets, np.arange(3000) % 5)
    np.testing.assert_allclose(right.sum(axis=2), 1, atol=1e-6)
    assert abs(right[:, 1] - p).mean() < abs(boasts - p).mean() / 2
    np.testing.assert_allclose(curves[1](votes[:, 1]), right[:, 1], atol=0.05)


def test_bad_input_is_refused():
    votes, targets, folds = boasting_votes(50)
    with pytest.raises(ValueError, match="only soft votes"):
        calibrate_votes(targets[:, None], targets, folds)
    with pytest.raises(ValueError, match="same number of rows"):
        calibrate_votes(votes, targets[1:], folds)
    with pytest.raises(ValueError, match="method='beta'"):
        calibrate_votes(votes, targets, folds, method="beta")
    with pytest.raises(ValueError, match="must be in"):
        calibrate_votes(2 * votes, targets, folds)
    with pytest.raises(ValueError, match="there is only one"):
        calibrate_votes(votes, targets, 0 * folds)
