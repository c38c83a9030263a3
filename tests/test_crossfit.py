"""Out-of-sample votes: which rows, which voters, which weights."""

import numpy as np
import pytest

from damvi.crossfit import N_FOLDS, crossfit_weights, deal_folds, out_of_bag_vote
from damvi.moments import Moments
from damvi.solvers import exact
from damvi.voters import Draws


@pytest.fixture
def election():
    rng = np.random.RandomState(0)
    signs = np.where(rng.rand(120) < 0.3, 1, -1).astype(np.int8)
    right = rng.rand(120, 6) < np.linspace(0.55, 0.8, 6)
    votes = np.where(right, signs[:, None], -signs[:, None]).astype(np.int8)
    return votes, signs


def test_folds_are_even_within_each_class():
    signs = np.repeat([1, -1], [13, 94])
    folds = deal_folds(signs, seed=3)
    for sign in (1, -1):
        sizes = np.bincount(folds[signs == sign], minlength=N_FOLDS)
        assert sizes.max() - sizes.min() <= 1


def test_folds_depend_on_the_seed_alone():
    signs = np.repeat([1, -1], [30, 70])
    np.testing.assert_array_equal(deal_folds(signs, 1), deal_folds(signs, 1))
    assert (deal_folds(signs, 1) != deal_folds(signs, 2)).any()


def test_the_weights_of_a_fold_are_learned_on_the_other_rows(election):
    votes, signs = election
    folds = deal_folds(signs, seed=0, n_folds=3)
    weights = crossfit_weights(Moments.by_fold(votes, signs, None, folds, 3), exact)
    for fold in range(3):
        rest = folds != fold
        expected = exact(Moments.of(votes[rest], signs[rest])).weights
        np.testing.assert_array_equal(weights[fold], expected)


def test_labels_of_a_fold_do_not_reach_the_weights_that_judge_it(election):
    votes, signs = election
    folds = deal_folds(signs, seed=0, n_folds=3)
    flipped = np.where(folds == 1, -signs, signs)
    weights, others = (
        crossfit_weights(Moments.by_fold(votes, y, None, folds, 3), exact)
        for y in (signs, flipped)
    )
    np.testing.assert_array_equal(weights[1], others[1])
    assert (weights[0] != others[0]).any()


def test_with_no_row_outside_the_fold_the_weights_are_uniform(election):
    votes, signs = election
    folds = np.zeros(len(signs), dtype=np.int8)
    weights = crossfit_weights(Moments.by_fold(votes, signs, None, folds, 2), exact)
    np.testing.assert_allclose(weights[0], 1 / 6)
    np.testing.assert_array_equal(weights[1], exact(Moments.of(votes, signs)).weights)


def test_only_voters_that_have_not_seen_a_row_judge_it(election):
    votes, signs = election
    draws = Draws.plan(signs, max_samples=0.2, seed=7)
    folds = deal_folds(signs, seed=0, n_folds=2)
    weights = np.random.RandomState(1).dirichlet(np.ones(6), size=2)
    vote = out_of_bag_vote(votes, draws, folds, weights)
    unseen = np.stack([draws.out_of_bag(k) for k in range(6)], axis=1)
    assert unseen.any(axis=1).all()
    for i in range(len(signs)):
        voters, Q = unseen[i], weights[folds[i]]
        expected = (Q[voters] @ votes[i, voters]) / Q[voters].sum()
        assert vote[i] == pytest.approx(expected, abs=1e-14)


def test_rows_that_every_voter_with_weight_has_seen_get_nan(election):
    votes, signs = election
    draws = Draws.plan(signs, max_samples=0.5, seed=7)
    folds = np.zeros(len(signs), dtype=np.int8)
    lone = np.eye(6)[:1]
    vote = out_of_bag_vote(votes, draws, folds, lone)
    np.testing.assert_array_equal(np.isnan(vote), ~draws.out_of_bag(0))
    np.testing.assert_array_equal(vote[draws.out_of_bag(0)], votes[draws.out_of_bag(0), 0])
