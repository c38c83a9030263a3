"""The paper's solver, its guard, and that it is never better than the exact one."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from damvi import risks, solvers
from damvi.moments import Moments
from damvi.solvers import SOLVERS, Solution, exact, slsqp, solve, uniform

SLACK = 1e-12


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
def elections(draw):
    n, K = draw(st.integers(5, 60)), draw(st.integers(1, 10))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    signs = rng.choice([-1, 1], n)
    right = rng.rand(n, K) < rng.uniform(0.3, 0.9, K)
    votes = np.where(right, signs[:, None], -signs[:, None])
    if draw(st.booleans()):
        votes = votes * rng.rand(n, K)
    return votes, signs, rng.rand(n)


@given(elections())
def test_exact_is_never_worse_where_some_voter_beats_a_coin(election):
    moments = Moments.of(*election)
    best, local, plain = exact(moments), slsqp(moments), uniform(moments)
    assert best.informative == local.informative == bool((moments.m > 0).any())
    assert best.c_bound <= local.c_bound + SLACK
    assert best.c_bound <= plain.c_bound + SLACK


@given(elections())
def test_slsqp_ends_no_worse_than_the_plain_vote(election):
    moments = Moments.of(*election)
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
    with pytest.warns(UserWarning, match="No voter does better than a coin.*plain vote"):
        solution = solve(moments, solver)
    np.testing.assert_array_equal(solution.weights, [0.5, 0.5])
    assert solution.c_bound == 1.0


def test_stopping_early_is_a_warning_that_names_the_cure(monkeypatch):
    def tired(moments):
        return Solution(np.ones(1), 0.5, 1e-3, 1e-3, converged=False)

    monkeypatch.setitem(SOLVERS, "slsqp", tired)
    with pytest.warns(ConvergenceWarning, match="stopped before it converged.*'exact'"):
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
