"""Shrinkage: from the C-bound's weights to equal ones, and no further."""

import numpy as np
from damvi.shrinkage import shrink
from hypothesis import given
from hypothesis import strategies as st

from damvi.moments import Moments
from damvi.solvers import exact


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


def test_voters_worse_than_a_coin():
    moments = Moments.of(np.full((10, 3), -1, np.int8), np.ones(10))
    assert not exact(shrink(moments, 0.5)).informative
