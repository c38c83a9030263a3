"""Out-of-sample votes: which rows, which voters, which weights."""

import numpy as np
import pytest
from scipy.optimize import nnls

from damvi import votes as out_of_sample
from damvi.folds import deal_folds
from damvi.moments import Moments
from damvi.solvers import exact
from damvi.voters import BootstrapSampling
from damvi.weighting import crossfit_weights


@pytest.fixture
def judged():
    rng = np.random.RandomState(0)
    signs = np.where(rng.rand(120) < 0.3, 1, -1).astype(np.int8)
    right = rng.rand(120, 6) < np.linspace(0.55, 0.8, 6)
    votes = np.where(right, signs[:, None], -signs[:, None]).astype(np.int8)
    return votes, signs


def others_of(by_fold):
    whole = sum(by_fold)
    return [whole - fold for fold in by_fold]


def out_of_bag_vote(votes, draws, folds, fits):
    bits = draws.out_of_bag_bits(votes.shape[1])
    return out_of_sample.out_of_bag_vote(votes, bits, folds, fits, n_classes=2)


def distribution(fold):
    return fold.weights / fold.weights.sum()


def test_the_weights_of_a_fold_are_learned_on_the_other_rows(judged):
    votes, signs = judged
    folds = deal_folds(signs, seed=0, n_folds=3)
    fits = crossfit_weights(
        others_of(Moments.by_fold(votes, signs, None, folds, 3)), "exact"
    )
    for fold in range(3):
        rest = folds != fold
        expected = exact(Moments.of(votes[rest], signs[rest])).weights
        np.testing.assert_allclose(distribution(fits[fold]), expected, atol=1e-14)


def test_labels_of_a_fold_do_not_reach_the_weights_that_judge_it(judged):
    votes, signs = judged
    folds = deal_folds(signs, seed=0, n_folds=3)
    flipped = np.where(folds == 1, -signs, signs)
    fits, others = (
        crossfit_weights(others_of(Moments.by_fold(votes, y, None, folds, 3)), "exact")
        for y in (signs, flipped)
    )
    np.testing.assert_array_equal(fits[1].weights, others[1].weights)
    assert (fits[0].weights != others[0].weights).any()


def test_with_no_row_outside_the_fold_the_weights_are_uniform(judged):
    votes, signs = judged
    folds = np.zeros(len(signs), dtype=np.int8)
    fits = crossfit_weights(
        others_of(Moments.by_fold(votes, signs, None, folds, 2)), "exact"
    )
    np.testing.assert_allclose(distribution(fits[0]), 1 / 6)
    expected = exact(Moments.of(votes, signs)).weights
    np.testing.assert_allclose(distribution(fits[1]), expected, atol=1e-14)


@pytest.mark.parametrize("max_samples", [0.2, 1.0])
def test_each_row_is_judged_as_if_the_voters_trained_on_it_had_never_been(
    judged, max_samples
):
    votes, signs = judged
    draws = BootstrapSampling.plan(signs, max_samples=max_samples, seed=7)
    folds = deal_folds(signs, seed=0, n_folds=2)
    by_fold = Moments.by_fold(votes, signs, None, folds, 2)
    fits = crossfit_weights(others_of(by_fold), "exact")
    vote = out_of_bag_vote(votes, draws, folds, fits)
    outside = np.stack([draws.out_of_bag(k) for k in range(6)], axis=1)
    for i in range(len(signs)):
        if not outside[i].any():
            assert np.isnan(vote[i])
            continue
        # The slow way: least squares on the rows of the other fold, these voters only.
        rest = folds != folds[i]
        w, _ = nnls(votes[rest][:, outside[i]].astype(float), signs[rest].astype(float))
        expected = (
            w @ votes[i, outside[i]] / w.sum() if w.any() else votes[i, outside[i]].mean()
        )
        assert vote[i] == pytest.approx(expected, abs=0.01)


def test_with_many_rows_a_voter_keeps_its_weight_whoever_else_is_out(judged):
    votes, signs = (np.repeat(part, 40, axis=0) for part in judged)
    draws = BootstrapSampling.plan(signs, max_samples=0.2, seed=7)
    folds = deal_folds(signs, seed=0, n_folds=2)
    fits = crossfit_weights(
        others_of(Moments.by_fold(votes, signs, None, folds, 2)), "exact"
    )
    vote = out_of_bag_vote(votes, draws, folds, fits)
    outside = np.stack([draws.out_of_bag(k) for k in range(6)], axis=1)
    weights = outside * np.stack([fits[fold].weights for fold in folds])
    judged = weights.any(axis=1)
    expected = (weights * votes).sum(axis=1)[judged] / weights.sum(axis=1)[judged]
    np.testing.assert_allclose(vote[judged], expected)


def test_a_plain_vote_is_the_mean_of_the_voters_not_trained_on_the_row(judged):
    votes, signs = judged
    draws = BootstrapSampling.plan(signs, max_samples=0.5, seed=7)
    folds = deal_folds(signs, seed=0, n_folds=2)
    fits = crossfit_weights(
        others_of(Moments.by_fold(votes, signs, None, folds, 2)), "uniform"
    )
    vote = out_of_bag_vote(votes, draws, folds, fits)
    outside = np.stack([draws.out_of_bag(k) for k in range(6)], axis=1)
    for i in np.flatnonzero(outside.any(axis=1)):
        assert vote[i] == pytest.approx(votes[i, outside[i]].mean())
    np.testing.assert_array_equal(np.isnan(vote), ~outside.any(axis=1))
