"""Step 3: the least C-bound there is, with a certificate; SLSQP; and shrinkage."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from damvi import risks, solvers
from damvi.moments import FRACTIONAL_BITS, Moments
from damvi.solvers import SOLVERS, Solution, exact, shrink, slsqp, solve, uniform
from damvi.votes import Votes
from damvi.weighting import Settings

from .conftest import weigh

EITHER = st.booleans()
SLACK = 1e-12


@st.composite
def problems(draw, soft=EITHER):
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


@given(problems())
def test_the_c_bound_is_the_nonnegative_least_squares_residual(problem):
    votes, signs, weights = problem
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


@given(problems())
def test_the_kkt_residual_is_below_1e_9_and_is_what_it_says(problem):
    votes, signs, weights = problem
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


@given(problems())
def test_weights_lie_on_the_simplex_and_on_the_grid(problem):
    Q = exact(Moments.of(*problem)).weights
    assert (Q >= 0).all()
    assert Q.sum() == pytest.approx(1, abs=len(Q) * 2.0**-52)
    np.testing.assert_array_equal(Q * 2.0**52, np.rint(Q * 2.0**52))


@given(problems(), st.sampled_from([2.0**-8, 0.25, 2.0]))
def test_the_scale_of_the_examples_weights_changes_no_weight(problem, factor):
    votes, signs, weights = problem
    weights = np.ldexp(np.rint(np.ldexp(weights, 20)), -20) + 2.0**-20
    Q, scaled = (
        exact(Moments.of(votes, signs, D)).weights for D in (weights, weights * factor)
    )
    np.testing.assert_array_equal(Q, scaled)


@given(problems(), st.data())
def test_permuting_the_voters_permutes_the_weights_or_at_least_keeps_the_vote(
    problem, data
):
    votes, signs, weights = problem
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


@given(problems(soft=st.just(False)), st.data())
def test_duplicates_of_a_voter_change_no_prediction_at_fixed_weights_of_the_examples(
    problem, data
):
    votes, signs, weights = problem
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


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_rival_beats_the_solution_by_more_than_the_duality_gap(problem, seed):
    votes, signs, weights = problem
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


def sign_trap():
    """Fifteen voters that err together, five good ones: the uniform vote is inverted."""
    rng = np.random.RandomState(0)
    signs = rng.choice([-1, 1], 400)
    awful = np.where(rng.rand(400) < 0.2, signs, -signs)
    bad = np.where(rng.rand(400, 15) < 0.9, awful[:, None], -awful[:, None])
    good = np.where(rng.rand(400, 5) < 0.8, signs[:, None], -signs[:, None])
    return np.concatenate([bad, good], axis=1), signs


def singular():
    rng = np.random.RandomState(1)
    signs = rng.choice([-1, 1], 60)
    votes = np.where(rng.rand(60, 4) < 0.7, signs[:, None], -signs[:, None])
    return np.concatenate([votes, votes, -votes, np.ones((60, 1), int)], axis=1), signs


def lone_voter():
    return np.array([[1], [1], [-1], [1]]), np.array([1, 1, -1, -1])


@st.composite
def pools(draw):
    n, K = draw(st.integers(5, 60)), draw(st.integers(1, 10))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    signs = rng.choice([-1, 1], n)
    right = rng.rand(n, K) < rng.uniform(0.3, 0.9, K)
    votes = np.where(right, signs[:, None], -signs[:, None])
    if draw(st.booleans()):
        votes = votes * rng.rand(n, K)
    return votes, signs, rng.rand(n)


@given(pools())
def test_exact_is_never_worse_where_some_voter_beats_a_coin(pool):
    moments = Moments.of(*pool)
    best, local, plain = exact(moments), slsqp(moments), uniform(moments)
    assert best.informative == local.informative == bool((moments.m > 0).any())
    assert best.c_bound <= local.c_bound + SLACK
    assert best.c_bound <= plain.c_bound + SLACK


@given(pools())
def test_slsqp_ends_no_worse_than_the_plain_vote(pool):
    moments = Moments.of(*pool)
    assert slsqp(moments).c_bound <= uniform(moments).c_bound + SLACK


@pytest.mark.parametrize("pool", [sign_trap, singular, lone_voter])
def test_exact_is_never_worse_in_the_hard_cases(pool):
    moments = Moments.of(*pool())
    assert (moments.m > 0).any()
    assert exact(moments).c_bound <= slsqp(moments).c_bound + SLACK
    assert exact(moments).kkt_residual <= 1e-9


@pytest.mark.parametrize("solver", [exact, slsqp])
def test_the_sign_trap_does_not_invert_the_vote(solver):
    votes, signs = sign_trap()
    moments = Moments.of(votes, signs)
    assert moments.mu1(np.full(20, 1 / 20)) < 0
    Q = solver(moments).weights
    assert moments.mu1(Q) > 0
    assert moments.c_bound(Q) < 0.5
    assert risks.vote_risk(votes, signs, Q) < 0.15


def test_slsqp_comes_close_to_the_optimum_on_an_easy_pool():
    rng = np.random.RandomState(2)
    signs = rng.choice([-1, 1], 200)
    votes = np.where(rng.rand(200, 8) < 0.7, signs[:, None], -signs[:, None])
    moments = Moments.of(votes, signs)
    assert slsqp(moments).c_bound == pytest.approx(exact(moments).c_bound, abs=1e-6)
    assert slsqp(moments).kkt_residual < 1e-2


@pytest.mark.parametrize("solver", ["exact", "slsqp"])
def test_no_voter_better_than_a_coin_is_a_warning_and_the_plain_vote(solver):
    signs = np.array([1, -1, 1, -1])
    moments = Moments.of(np.stack([-signs, -signs], axis=1), signs)
    with pytest.warns(
        UserWarning, match="No voter is better than chance.*weighted equally"
    ):
        solution = solve(moments, solver)
    np.testing.assert_array_equal(solution.weights, [0.5, 0.5])
    assert solution.c_bound == 1.0


def test_stopping_early_is_a_warning_that_names_the_cure(monkeypatch):
    def tired(moments):
        return Solution(np.ones(1), 0.5, 1e-3, 1e-3, converged=False)

    monkeypatch.setitem(SOLVERS, "slsqp", tired)
    with pytest.warns(ConvergenceWarning, match="did not converge.*'exact'"):
        solvers.solve(Moments.of(*lone_voter()), "slsqp")


def test_an_informative_optimum_raises_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve(Moments.of(*singular())).c_bound < 0.7


def test_the_plain_vote_has_equal_weights_and_an_honest_certificate():
    votes, signs = sign_trap()
    solution = uniform(Moments.of(votes[:, 12:], signs))
    assert len(set(solution.weights)) == 1
    assert solution.weights.sum() == pytest.approx(1)
    assert solution.kkt_residual > 0.01


def some_moments(seed, n_voters=6, n=80):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.3, 1, -1)
    right = rng.random((n, n_voters)) < rng.uniform(0.5, 0.9, n_voters)
    votes = np.where(right, signs[:, np.newaxis], -signs[:, np.newaxis]).astype(np.int8)
    return Moments.of(votes, signs)


@given(st.integers(0, 1000))
def test_no_shrinkage_is_the_same_object(seed):
    moments = some_moments(seed)
    assert shrink(moments, 0.0) is moments


@given(st.integers(0, 1000))
def test_much_of_it_gives_equal_weights(seed):
    weights = exact(shrink(some_moments(seed), 1 - 1e-9)).weights
    np.testing.assert_allclose(weights, 1 / 6, atol=1e-6)


@given(st.integers(0, 1000), st.floats(0.01, 0.99))
def test_it_is_the_penalised_least_squares_problem(seed, share):
    moments = some_moments(seed)
    m, M = moments.normalised()
    w = exact(shrink(moments, share)).weights
    c = max(m.sum(), 0) / M.sum()
    strength = share / (1 - share) * np.trace(M) / 6

    def loss(w):
        return w @ M @ w - 2 * m @ w + strength * ((w - c) ** 2).sum()

    # The best point on the ray of the weights, against random others.
    scale = (m @ w + strength * c * w.sum()) / (w @ M @ w + strength * w @ w)
    best = loss(scale * w)
    rng = np.random.default_rng(seed)
    for other in rng.exponential(c + 0.1, size=(50, 6)):
        assert best <= loss(other) + 1e-9


def test_shrinkage_of_voters_worse_than_a_coin():
    moments = Moments.of(np.full((10, 3), -1, np.int8), np.ones(10))
    assert not exact(shrink(moments, 0.5)).informative


@pytest.mark.parametrize("seed", range(280, 300))
def test_voters_that_say_the_same_of_all_rows_get_equal_weights(seed):
    """Trees of one leaf, three even classes, out of bag: the weights were all NaN."""
    rng = np.random.default_rng(seed)
    n, n_voters = 3 * int(rng.integers(5, 20)), 4
    constant = np.repeat(rng.integers(0, 3, n_voters)[np.newaxis].astype(np.uint8), n, 0)
    votes = Votes(
        np.asfortranarray(constant),
        np.repeat(np.arange(3), n // 3),
        np.arange(n) % 5,
        out_of_bag=np.packbits(rng.random((n_voters, n)) < 0.4, axis=1),
        only_out_of_bag=True,
        class_weight=np.ones(3),
        reweighted=np.zeros(3, bool),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No voter is better than chance")
        found = weigh(votes, Settings(0.0))
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights >= 0).all()
    assert np.isfinite(found.c_bound)
    assert not np.isnan(found.out_of_sample_vote[:, 0]).all()


def test_where_only_rounding_is_above_a_coin_the_plain_vote_is_used_and_said():
    moments = Moments(np.full(3, 1.1e-16), np.full((3, 3), -2.1e-15), 1)
    with pytest.warns(UserWarning, match="No voter is better than chance"):
        found = solve(moments)
    np.testing.assert_allclose(found.weights, 1 / 3)
    assert found.c_bound == 1
