"""Steps 2 and 3 on any votes, and moments over the rows that voters have not seen."""

import numpy as np
import pytest
from damvi.ballots import Ballots
from damvi.unseen_moments import UnseenMoments, nearest_semi_definite
from damvi.weighing import Rule, weigh
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from damvi.moments import Moments
from damvi.reweighting import emphasize_missed_positives
from damvi.solvers import exact


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
@given(seed=st.integers(0, 300))
def test_unseen_moments_are_means_over_the_rows_of_each_pair(soft, seed):
    votes, signs, unseen, folds = some_votes(seed, soft=soft)
    weights = np.random.default_rng(seed).uniform(0.1, 1, len(signs))
    by_fold = UnseenMoments.by_fold(votes, unseen, signs, weights, folds, 3)
    whole = by_fold[0] + by_fold[1] + by_fold[2]
    without = whole - by_fold[1]
    for sums, rows in ((whole, folds >= 0), (without, folds != 1)):
        for k in range(5):
            mine = rows & unseen[:, k]
            D = weights[mine]
            m = (D * signs[mine] * votes[mine, k]).sum() / D.sum()
            assert sums.sums.m[k] / sums.rows.M[k, k] == pytest.approx(m, abs=1e-6)
            for other in range(5):
                both = mine & unseen[:, other]
                D = weights[both]
                M = (D * votes[both, k] * votes[both, other]).sum() / D.sum()
                entry = sums.sums.M[k, other] / sums.rows.M[k, other]
                assert entry == pytest.approx(M, abs=1e-6)
    m, M = whole.moments().normalised()
    assert np.linalg.eigvalsh(M)[0] > 0


@given(st.integers(0, 300))
def test_the_nearest_semi_definite_matrix(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 6))
    A = A + A.T
    near = nearest_semi_definite(A)
    assert np.linalg.eigvalsh(near)[0] >= -1e-9
    # No other one is nearer.
    for _ in range(20):
        B = rng.normal(size=(6, 6))
        assert np.linalg.norm(A - near) <= np.linalg.norm(A - B @ B.T) + 1e-4
    good = A @ A.T + np.eye(6)
    assert nearest_semi_definite(good) is good


def test_voters_that_share_no_row_count_as_independent():
    votes = np.ones((4, 2), np.int8)
    unseen = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    signs = np.array([1, -1, 1, 1])
    (fold,) = UnseenMoments.by_fold(votes, unseen, signs, None, np.zeros(4, int), 1)
    m, M = fold.moments().normalised()
    np.testing.assert_allclose(m, [0, 1])
    np.testing.assert_allclose(M, [[1, 0], [0, 1]])


@pytest.mark.parametrize("soft", [False, True])
@given(seed=st.integers(0, 200), emphasis=st.sampled_from([0.0, 0.5, 1.0]))
def test_weighing_is_the_two_steps(soft, seed, emphasis):
    votes, signs, _, folds = some_votes(seed, soft=soft)
    ballots = Ballots(votes, signs, None, folds.astype(np.int8))
    found = weigh(ballots, Rule(emphasis))
    D = emphasize_missed_positives(votes, signs, None, emphasis)
    moments = Moments.of(votes, signs, D)
    expected = exact(moments)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-7)
    assert found.c_bound == pytest.approx(expected.c_bound, abs=1e-9)
    # Each row's vote by weights of the other folds.
    others = exact(Moments.of(votes[folds != 2], signs[folds != 2], _part(D, folds != 2)))
    if others.informative:
        np.testing.assert_allclose(
            found.unseen_vote[folds == 2], votes[folds == 2] @ others.weights, atol=1e-5
        )


def _part(D, rows):
    return None if D is None else D[rows]


def test_all_rows_unseen_is_as_if_there_were_no_mask():
    votes, signs, _, folds = some_votes(3)
    everyone = np.packbits(np.ones((5, len(signs)), bool), axis=1)
    folds = folds.astype(np.int8)
    plain = weigh(Ballots(votes, signs, None, folds))
    masked = weigh(Ballots(votes, signs, None, folds, everyone, only_unseen=True))
    np.testing.assert_allclose(masked.weights, plain.weights, atol=1e-9)


def test_emphasis_counts_unseen_votes_only():
    votes = np.array([[1, -1], [1, 1]], np.int8)
    mask = np.array([[False, True], [False, False]])
    D = emphasize_missed_positives(votes, np.array([1, 1]), None, 1.0, mask)
    np.testing.assert_allclose(D, [np.e, 1])


@pytest.mark.parametrize("soft", [False, True])
@given(seed=st.integers(0, 100))
def test_a_joint_threshold_is_a_constant_among_the_voters(soft, seed):
    votes, signs, _, folds = some_votes(seed, n=80, soft=soft)
    found = weigh(Ballots(votes, signs, None, folds), Rule(0.0, jointly=True))
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
    # A fold's threshold is its own, and its vote is moved to where the common one cuts.
    rest = folds != 1
    if len(np.unique(folds)) == 3:
        other = weigh(
            Ballots(votes[rest], signs[rest], None, np.zeros(rest.sum(), int)),
            Rule(0.0, jointly=True),
        )
        above = votes[~rest] @ other.weights > other.threshold + 1e-6
        assert (found.unseen_vote[~rest][above] > found.threshold).all()


@pytest.mark.parametrize("only_unseen", [False, True])
def test_a_joint_threshold_with_votes_on_unseen_rows(only_unseen):
    votes, signs, mask, folds = some_votes(0, n=3000)
    unseen = np.packbits(mask.T, axis=1)
    ballots = Ballots(votes, signs, None, folds, unseen, only_unseen)
    found = weigh(ballots, Rule(0.0, jointly=True))
    everyone = weigh(Ballots(votes, signs, None, folds), Rule(0.0, jointly=True))
    assert found.threshold == pytest.approx(everyone.threshold, abs=0.1)
    assert 0 < found.c_bound < 1


@given(seed=st.integers(0, 100), lean=st.sampled_from([0.2, 1.0, 3.7]))
def test_leaning_is_a_weight_of_the_positives(seed, lean):
    votes, signs, mask, folds = some_votes(seed)
    base = np.random.default_rng(seed).uniform(0.1, 1, len(signs))
    leaning = np.where(signs > 0, lean, 1.0) * base
    for unseen in (None, np.packbits(mask.T, axis=1)):
        only = unseen is not None
        found = weigh(Ballots(votes, signs, base, folds, unseen, only, lean), Rule(0.0))
        scaled = leaning / leaning.max()
        plain = weigh(Ballots(votes, signs, scaled, folds, unseen, only), Rule(0.0))
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-6)


@pytest.mark.parametrize("soft", [False, True])
def test_the_vote_on_unseen_rows_by_the_obvious_loop(soft):
    votes, signs, mask, folds = some_votes(7, n=9000, soft=soft)
    unseen = np.packbits(mask.T, axis=1)
    found = weigh(Ballots(votes, signs, None, folds))
    masked = weigh(Ballots(votes, signs, None, folds, unseen))
    for fold in range(3):
        here = folds == fold
        D = emphasize_missed_positives(votes, signs)
        Q = exact(Moments.of(votes[~here], signs[~here], D[~here])).weights
        expected = votes[here].astype(float) @ Q
        np.testing.assert_allclose(found.unseen_vote[here], expected, atol=1e-12)
        own = mask[here] * Q
        seen_by_none = own.sum(axis=1) > 0
        expected = (own * votes[here]).sum(axis=1)[seen_by_none]
        expected /= own.sum(axis=1)[seen_by_none]
        np.testing.assert_allclose(
            masked.unseen_vote[here][seen_by_none], expected, atol=1e-12
        )
