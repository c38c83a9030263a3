"""The exact solver: the least C-bound there is, with a certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from damvi.moments import FRACTIONAL_BITS, Moments
from damvi.solvers import exact

EITHER = st.booleans()


@st.composite
def elections(draw, soft=EITHER):
    """Votes, signs and rounded weights; some voters duplicated, inverted or constant."""
    n, K = draw(st.integers(2, 60)), draw(st.integers(1, 12))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    signs = np.where(rng.rand(n) < draw(st.sampled_from([0.1, 0.5])), 1, -1)
    right = rng.rand(n, K) < draw(st.floats(0.35, 0.95))
    votes = np.where(right, signs[:, None], -signs[:, None]).astype(np.int8)
    for voter in range(K):
        votes[:, voter] = draw(
            st.sampled_from([votes[:, voter], votes[:, 0], -votes[:, 0], np.ones(n)])
        )
    if draw(soft):
        votes = votes * rng.rand(n, K)
    weights = rng.rand(n) ** draw(st.sampled_from([0, 1, 6]))
    return votes, signs, np.maximum(np.rint(np.ldexp(weights, 30)), 1) / 2.0**30


def least_residual(votes, signs, weights):
    """SciPy's answer, judged by its weights: with equal columns its norm can be wrong."""
    root = np.sqrt(weights / weights.sum())
    w, _ = nnls(root[:, None] * votes, root * signs, maxiter=1000)
    return residual(votes, signs, weights, w)


def residual(votes, signs, weights, w):
    return np.average((signs - votes @ w) ** 2, weights=weights)


@given(elections())
def test_the_c_bound_is_the_nonnegative_least_squares_residual(election):
    votes, signs, weights = election
    moments = Moments.of(votes, signs, weights)
    solution = exact(moments)
    least = least_residual(votes, signs, weights)
    assert solution.c_bound <= least + 1e-9
    if np.linalg.cond(moments.normalised()[1]) < 1e6:
        assert solution.c_bound == pytest.approx(least, abs=1e-9)
    Q = solution.weights
    if moments.mu1(Q) > 0:
        w = Q * moments.mu1(Q) / moments.mu2(Q)
        fit = residual(votes, signs, weights, w)
        assert fit == pytest.approx(solution.c_bound, abs=1e-9)


@given(elections())
def test_the_kkt_residual_is_below_1e_9_and_is_what_it_says(election):
    votes, signs, weights = election
    moments = Moments.of(votes, signs, weights)
    solution = exact(moments)
    assert solution.converged
    assert solution.kkt_residual <= 1e-9
    if solution.informative:
        m, M = moments.normalised()
        Q = solution.weights
        gradient = m - M @ (Q * moments.mu1(Q) / moments.mu2(Q))
        scale = np.abs(m).max()
        assert (gradient <= 1e-9 * scale).all()
        assert (np.abs(gradient[Q > 0]) <= 1e-9 * scale).all()


@given(elections())
def test_weights_lie_on_the_simplex_and_on_the_grid(election):
    Q = exact(Moments.of(*election)).weights
    assert (Q >= 0).all()
    assert Q.sum() == pytest.approx(1, abs=len(Q) * 2.0**-52)
    np.testing.assert_array_equal(Q * 2.0**52, np.rint(Q * 2.0**52))


@given(elections(), st.sampled_from([2.0**-8, 0.25, 2.0]))
def test_the_scale_of_the_examples_weights_changes_no_weight(election, factor):
    votes, signs, weights = election
    weights = np.ldexp(np.rint(np.ldexp(weights, 20)), -20) + 2.0**-20
    Q, scaled = (
        exact(Moments.of(votes, signs, D)).weights for D in (weights, weights * factor)
    )
    np.testing.assert_array_equal(Q, scaled)


@given(elections(), st.data())
def test_permuting_the_voters_permutes_the_weights_or_at_least_keeps_the_vote(
    election, data
):
    votes, signs, weights = election
    order = np.array(data.draw(st.permutations(range(votes.shape[1]))))
    moments = Moments.of(votes, signs, weights)
    solution = exact(moments)
    permuted = exact(Moments.of(votes[:, order], signs, weights))
    if not solution.informative:
        return
    np.testing.assert_allclose(
        scaled_vote(moments, votes, solution.weights),
        scaled_vote(moments, votes[:, order], permuted.weights, order),
        atol=1e-6,
    )
    if np.linalg.cond(moments.normalised()[1]) < 1e6:
        np.testing.assert_allclose(permuted.weights, solution.weights[order], atol=1e-8)


def scaled_vote(moments, votes, Q, order=None):
    """Hw at the optimal scale: unique even where the weights are not."""
    back = Q if order is None else Q[np.argsort(order)]
    return votes @ Q * moments.mu1(back) / moments.mu2(back)


@given(elections(soft=st.just(False)), st.data())
def test_duplicates_of_a_voter_change_no_prediction_at_fixed_weights_of_the_examples(
    election, data
):
    votes, signs, weights = election
    K = votes.shape[1]
    copies = data.draw(st.lists(st.integers(0, K - 1), min_size=1, max_size=4))
    longer = np.concatenate([votes, votes[:, copies]], axis=1)
    moments = Moments.of(votes, signs, weights)
    solution = exact(moments)
    if not solution.informative:
        return
    with_copies = exact(Moments.of(longer, signs, weights)).weights
    merged = with_copies[:K].copy()
    np.add.at(merged, copies, with_copies[K:])
    assert moments.c_bound(merged) == pytest.approx(solution.c_bound, abs=1e-12)
    if np.linalg.cond(moments.normalised()[1]) < 1e6:
        # Then the weights are unique, so every conceivable row is judged alike.
        np.testing.assert_allclose(merged, solution.weights, atol=1e-9)
    np.testing.assert_allclose(
        scaled_vote(moments, votes, merged),
        scaled_vote(moments, votes, solution.weights),
        atol=1e-6,
    )


@given(elections(), st.integers(0, 2**32 - 1))
def test_no_rival_beats_the_solution_by_more_than_the_duality_gap(election, seed):
    votes, signs, weights = election
    moments = Moments.of(votes, signs, weights)
    solution = exact(moments)
    if not solution.informative:
        return
    Q = solution.weights
    size = moments.mu1(Q) / moments.mu2(Q)
    rng = np.random.RandomState(seed)
    assert solution.duality_gap >= -1e-12
    assert solution.duality_gap <= 1e-6 * (1 + size)
    for _ in range(20):
        rival = rng.dirichlet(np.full(len(Q), 0.3)) * rng.uniform(0, 2) * size
        lead = solution.c_bound - residual(votes, signs, weights, rival)
        assert lead <= solution.duality_gap + 1e-12


def test_one_voter_gets_all_the_weight():
    votes = np.array([[1], [1], [-1], [-1], [1]])
    signs = np.array([1, 1, -1, -1, -1])
    solution = exact(Moments.of(votes, signs))
    np.testing.assert_array_equal(solution.weights, [1.0])
    assert solution.c_bound == pytest.approx(1 - 0.6**2)


def test_no_voter_better_than_a_coin_gives_uniform_weights_and_says_so():
    signs = np.array([1, -1, 1, -1])
    votes = np.stack([-signs, np.ones(4, int)], axis=1)
    solution = exact(Moments.of(votes, signs))
    np.testing.assert_array_equal(solution.weights, [0.5, 0.5])
    assert solution.c_bound == 1.0
    assert not solution.informative


@pytest.mark.parametrize("lightest", [2.0**-FRACTIONAL_BITS, 1e-6, 1.0])
def test_one_positive_of_any_weight(lightest):
    rng = np.random.RandomState(0)
    signs = np.array([1] + [-1] * 49)
    weights = np.array([lightest] + [1.0] * 49)
    votes = np.where(rng.rand(50, 10) < 0.7, signs[:, None], -signs[:, None])
    solution = exact(Moments.of(votes, signs, weights))
    weights = np.rint(np.ldexp(weights, FRACTIONAL_BITS))
    assert solution.c_bound == pytest.approx(least_residual(votes, signs, weights))


def test_many_voters_with_hardly_any_rows():
    rng = np.random.RandomState(0)
    signs = rng.choice([-1, 1], 12)
    votes = np.where(rng.rand(12, 150) < 0.55, signs[:, None], -signs[:, None])
    solution = exact(Moments.of(votes, signs))
    assert solution.kkt_residual <= 1e-9
    assert solution.c_bound == pytest.approx(
        least_residual(votes, signs, np.ones(12)), abs=1e-9
    )


def test_gains_too_small_for_the_objective_to_show_are_still_taken():
    # The second voter lowers the residual by about 1e-16, the gradient by 1e-8.
    votes, signs = np.array([[1, 1], [1, -1], [-1, 1]]), np.ones(3, int)
    solution = exact(Moments.of(votes, signs, [0.36, 0.64, 6.5e-9]))
    assert solution.weights[1] > 0
    assert solution.kkt_residual <= 1e-9
