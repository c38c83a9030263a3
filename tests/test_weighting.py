"""Steps 2 and 3 on any votes, whoever cast them, and the out-of-sample vote."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from damvi import DAMVIClassifier, load, save
from damvi.moments import Moments
from damvi.solvers import exact
from damvi.votes import Votes, emphasis, plain_margin
from damvi.weighting import Settings, crossfit_weights

from .conftest import weigh


def votes_of(votes, signs, folds, **options):
    return Votes(votes, (signs > 0).astype(int), folds, **options)


def emphasized(votes, signs, strength=1.0, counted=None):
    """The rows' weights after step 2."""
    margin = plain_margin(votes, np.ones(len(votes), int), 2, counted)
    return np.where(signs > 0, emphasis(margin, strength), 1.0)


def bits(outside):
    """As votes hold it: a bit for each voter and row out of bag."""
    return np.packbits(outside.T, axis=1)


def some_votes(seed, n=120, n_voters=5, soft=False):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.25, 1, -1).astype(np.int8)
    signs[:2] = 1, -1
    leaning = signs[:, np.newaxis] * 0.5 + rng.normal(size=(n, n_voters))
    votes = np.tanh(leaning).astype(np.float32)
    if not soft:
        votes = np.where(votes > 0, 1, -1).astype(np.int8)
    return votes, signs, rng.random((n, n_voters)) < 0.7, rng.integers(0, 3, n)


@pytest.mark.parametrize("soft", [False, True])
@given(seed=st.integers(0, 200), strength=st.sampled_from([0.0, 0.5, 1.0]))
def test_weighting_is_the_two_steps(soft, seed, strength):
    votes, signs, _, folds = some_votes(seed, soft=soft)
    found = weigh(votes_of(votes, signs, folds), Settings(strength))
    D = emphasized(votes, signs, strength)
    expected = exact(Moments.of(votes, signs, D))
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-7)
    assert found.c_bound == pytest.approx(expected.c_bound, abs=1e-9)
    # Each row's vote by weights of the other folds.
    rest = folds != 2
    others = exact(Moments.of(votes[rest], signs[rest], D[rest]))
    if others.informative:
        np.testing.assert_allclose(
            found.out_of_sample_vote[~rest], votes[~rest] @ others.weights, atol=1e-5
        )


def test_all_rows_out_of_bag_is_as_if_there_were_no_mask():
    votes, signs, outside, folds = some_votes(3)
    everyone = bits(np.ones_like(outside))
    plain = weigh(votes_of(votes, signs, folds))
    masked = weigh(votes_of(votes, signs, folds, out_of_bag=everyone, only_out_of_bag=True))
    np.testing.assert_allclose(masked.weights, plain.weights, atol=1e-9)


@pytest.mark.parametrize("soft", [False, True])
@given(seed=st.integers(0, 100))
def test_the_intercept_is_a_constant_among_the_voters(soft, seed):
    votes, signs, _, folds = some_votes(seed, n=80, soft=soft)
    how = Settings(0.0, fit_intercept=True)
    found = weigh(votes_of(votes, signs, folds), how)
    constant = np.ones((len(signs), 1))
    # scipy's solver knows no free sign, so the constant comes twice.
    columns = np.hstack([votes, constant, -constant]).astype(float)
    w, _ = nnls(columns, signs.astype(float))
    if w[:5].sum() < 1e-9:
        return
    np.testing.assert_allclose(found.weights, w[:5] / w[:5].sum(), atol=1e-6)
    threshold = -(w[5] - w[6]) / w[:5].sum()
    assert found.threshold == pytest.approx(threshold, abs=1e-6)
    residual = np.mean((signs - columns @ w) ** 2)
    assert found.c_bound == pytest.approx(residual, abs=1e-6)
    # A fold's constant is its own, and its vote is moved to where the common one cuts.
    rest = folds != 1
    if len(np.unique(folds)) == 3:
        one_fold = np.zeros(rest.sum(), int)
        other = weigh(votes_of(votes[rest], signs[rest], one_fold), how)
        above = votes[~rest] @ other.weights > other.threshold + 1e-6
        assert (found.aligned_vote[~rest][above] > found.threshold).all()
        expected = votes[~rest] @ other.weights
        np.testing.assert_allclose(found.out_of_sample_vote[~rest], expected, atol=1e-5)


@pytest.mark.parametrize("only", [False, True])
def test_an_intercept_with_out_of_bag_votes(only):
    votes, signs, outside, folds = some_votes(0, n=3000)
    how, some = Settings(0.0, fit_intercept=True), bits(outside)
    masked = votes_of(votes, signs, folds, out_of_bag=some, only_out_of_bag=only)
    found = weigh(masked, how)
    everyone = weigh(votes_of(votes, signs, folds), how)
    assert found.threshold == pytest.approx(everyone.threshold, abs=0.1)
    assert 0 < found.c_bound < 1


@given(seed=st.integers(0, 100), weight=st.sampled_from([0.2, 1.0, 3.7]))
def test_the_class_weight_is_a_weight_of_the_positives(seed, weight):
    votes, signs, outside, folds = some_votes(seed)
    base = np.random.default_rng(seed).uniform(0.1, 1, len(signs))
    heavier = np.where(signs > 0, weight, 1.0) * base
    for options in ({}, {"out_of_bag": bits(outside), "only_out_of_bag": True}):
        by_class = votes_of(
            votes,
            signs,
            folds,
            sample_weight=base,
            class_weight=np.array([1.0, weight]),
            **options,
        )
        by_row = votes_of(
            votes, signs, folds, sample_weight=heavier / heavier.max(), **options
        )
        found, plain = (weigh(each, Settings(0.0)) for each in (by_class, by_row))
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True])
def test_the_out_of_sample_vote_by_the_obvious_loop(soft):
    votes, signs, outside, folds = some_votes(7, n=9000, soft=soft)
    found = weigh(votes_of(votes, signs, folds))
    masked = weigh(votes_of(votes, signs, folds, out_of_bag=bits(outside)))
    D = emphasized(votes, signs)
    for fold in range(3):
        here = folds == fold
        Q = exact(Moments.of(votes[~here], signs[~here], D[~here])).weights
        expected = votes[here].astype(float) @ Q
        np.testing.assert_allclose(found.out_of_sample_vote[here], expected, atol=1e-12)
        own = outside[here] * Q
        judged = own.sum(axis=1) > 0
        expected = (own * votes[here]).sum(axis=1)[judged] / own.sum(axis=1)[judged]
        np.testing.assert_allclose(
            masked.out_of_sample_vote[here][judged], expected, atol=1e-12
        )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("votes", ["train", "oob"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shrinkage", [0.0, 0.5])
@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_a_fold_without_others_is_judged_by_the_plain_vote(
    labels, shrinkage, intercept, votes, tmp_path
):
    """A row of each class: they are all in one fold, and no other has any."""
    model = DAMVIClassifier(
        n_estimators=4,
        max_samples=1,
        bootstrap=False,
        shrinkage=shrinkage,
        fit_intercept=intercept,
        votes=votes,
        random_state=0,
    )
    model.fit(np.array([[-0.5], [1.0], [-0.8]])[: len(labels)], labels)
    save(model, tmp_path / "model.damvi")
    again = load(tmp_path / "model.damvi")
    known = again.oob_decision_function_
    np.testing.assert_array_equal(known, model.oob_decision_function_)
    settings = Settings(shrinkage=shrinkage, fit_intercept=intercept)
    [others] = model.decision_.weighting.others
    [found] = crossfit_weights([settings.moments(others)], "exact")
    np.testing.assert_array_equal(found.weights, np.full(4, 0.25))
