"""The paper's quantities and the inequalities between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi import risks

VOTES = np.array([[1, 1, -1], [-1, 1, -1], [1, -1, -1], [1, -1, 1]])
SIGNS = np.array([1, -1, -1, 1])


@st.composite
def any_votes(draw):
    n, K = draw(st.integers(1, 30)), draw(st.integers(1, 7))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    signs = rng.choice([-1, 1], n)
    right = rng.rand(n, K) < draw(st.floats(0.05, 0.95))
    votes = np.where(right, signs[:, None], -signs[:, None])
    if draw(st.booleans()):
        votes = votes * rng.rand(n, K)
    D = None if draw(st.booleans()) else rng.dirichlet(np.full(n, 0.5)) + 1e-9
    return votes, signs, rng.dirichlet(np.ones(K)), D


def test_a_worked_example():
    Q = np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(risks.margins(VOTES, SIGNS, Q), [0.5, 0.5, 0, 0.5])
    assert risks.vote_risk(VOTES, SIGNS, Q) == 0.25  # the tie is an error
    assert risks.gibbs_risk(VOTES, SIGNS, Q) == pytest.approx(0.3125)
    assert risks.gibbs_bound(VOTES, SIGNS, Q) == pytest.approx(0.625)
    assert risks.disagreement(VOTES, Q) == pytest.approx((1 - 0.1875) / 2)
    assert risks.c_bound(VOTES, SIGNS, Q) == pytest.approx(1 - 0.375**2 / 0.1875)


@given(any_votes())
def test_risks_count_what_they_say(given_votes):
    votes, signs, Q, D = given_votes
    D = np.full(len(signs), 1 / len(signs)) if D is None else D / D.sum()
    hard = np.sign(votes) + (votes == 0)
    voters_risk = (D[:, None] * (hard != signs[:, None])).sum(axis=0)
    assert risks.gibbs_risk(hard, signs, Q, D) == pytest.approx(Q @ voters_risk)
    differ = hard[:, :, None] != hard[:, None, :]
    pairs = np.einsum("i,ijk,j,k->", D, differ, Q, Q)
    assert risks.disagreement(hard, Q, D) == pytest.approx(pairs, abs=1e-12)


@given(any_votes())
def test_the_vote_risk_is_below_both_bounds(given_votes):
    votes, signs, Q, D = given_votes
    risk = risks.vote_risk(votes, signs, Q, D)
    assert risk <= risks.gibbs_bound(votes, signs, Q, D) + 1e-12
    assert risk <= risks.c_bound(votes, signs, Q, D) + 1e-9


@given(any_votes(), st.floats(1e-6, 1e6))
def test_only_ratios_of_example_weights_matter(given_votes, factor):
    votes, signs, Q, D = given_votes
    D = np.ones(len(signs)) if D is None else D
    for risk in (risks.vote_risk, risks.gibbs_risk, risks.c_bound):
        assert risk(votes, signs, Q, factor * D) == pytest.approx(
            risk(votes, signs, Q, D), abs=1e-9
        )


def test_the_c_bound_is_1_for_a_vote_worse_than_a_coin():
    assert risks.c_bound(-SIGNS[:, None], SIGNS, [1.0]) == 1.0
    assert risks.c_bound(SIGNS[:, None], SIGNS, [1.0]) == 0.0


def test_disagreement_needs_no_labels_and_is_0_for_one_voter():
    assert risks.disagreement(VOTES, [0, 1, 0]) == 0.0
    assert risks.disagreement(np.array([[1, -1]]), [0.5, 0.5]) == 0.5
