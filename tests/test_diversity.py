"""The measures against slow, obvious loops, against scikit-learn, and at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from damvi import risks
from damvi.diversity import (
    kappa,
    kappa_error,
    margins,
    pairwise_disagreement,
    q_statistic,
    voter_errors,
)


@st.composite
def elections(draw, soft=False):
    n, K = draw(st.integers(1, 25)), draw(st.integers(1, 6))
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    y = rng.choice([-1, 1], n, p=[0.8, 0.2])
    right = rng.rand(n, K) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    votes = np.where(right, y[:, None], -y[:, None])
    if soft:
        votes = votes * rng.rand(n, K)
    # Whole ratios, so that the rounding of weights plays no part.
    weights = draw(st.sampled_from([None, rng.randint(0, 5, n) + (np.arange(n) == 0)]))
    return votes, y, weights


def counts(first, second, weights):
    """The 2 x 2 table of two lists of flags, row by row."""
    table = np.zeros((2, 2))
    for i in range(len(first)):
        table[int(first[i]), int(second[i])] += 1 if weights is None else weights[i]
    return table[1, 1], table[1, 0], table[0, 1], table[0, 0]


@given(elections())
def test_all_measures_are_the_slow_ones(election):
    votes, y, weights = election
    disagree = pairwise_disagreement(votes, sample_weight=weights)
    Q = q_statistic(votes, y, sample_weight=weights)
    k = kappa(votes, sample_weight=weights)
    errors = voter_errors(votes, y, sample_weight=weights)
    for i, one in enumerate(votes.T):
        for j, other in enumerate(votes.T):
            both, only_i, only_j, neither = counts(one == y, other == y, weights)
            total = both + only_i + only_j + neither
            assert disagree[i, j] == pytest.approx((only_i + only_j) / total)
            assert errors[i] == pytest.approx((only_j + neither) / total)
            below = both * neither + only_i * only_j
            never_differ = float(only_i == only_j == 0)
            slow = (both * neither - only_i * only_j) / below if below else never_differ
            assert Q[i, j] == pytest.approx(slow)
            shares = np.array(counts(one > 0, other > 0, weights)) / total
            both, only_i, only_j, neither = shares
            chance = (both + only_i) * (both + only_j) + (neither + only_i) * (
                neither + only_j
            )
            if chance < 1 - 1e-9:
                assert k[i, j] == pytest.approx((both + neither - chance) / (1 - chance))
            else:
                assert k[i, j] == 1


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.RandomState(0)
    votes = np.where(rng.rand(200, 5) < 0.2, 1, -1)
    weights = rng.rand(200)
    for D in (None, weights):
        ours = kappa(votes, sample_weight=D)
        for i in range(5):
            for j in range(5):
                theirs = cohen_kappa_score(votes[:, i], votes[:, j], sample_weight=D)
                assert ours[i, j] == pytest.approx(theirs, abs=1e-8)


@given(elections())
def test_symmetry_diagonal_bounds_and_flips(election):
    votes, y, weights = election
    D = {"sample_weight": weights}
    for matrix, flipped, own, low in [
        (pairwise_disagreement(votes, **D), pairwise_disagreement(-votes, **D), 0, 0),
        (q_statistic(votes, y, **D), q_statistic(-votes, -y, **D), 1, -1),
        (kappa(votes, **D), kappa(-votes, **D), 1, -1),
    ]:
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_array_equal(np.diag(matrix), own)
        np.testing.assert_array_equal(matrix, flipped)
        assert ((low <= matrix) & (matrix <= 1)).all()
    errors = voter_errors(votes, y, **D)
    np.testing.assert_array_equal(errors, voter_errors(-votes, -y, **D))
    np.testing.assert_allclose(errors, 1 - voter_errors(-votes, y, **D), atol=1e-15)


@given(elections(soft=True))
def test_soft_votes_are_ballots_or_signs(election):
    votes, y, weights = election
    disagree = pairwise_disagreement(votes, sample_weight=weights)
    np.testing.assert_array_equal(disagree, disagree.T)
    assert ((disagree >= 0) & (disagree <= 1)).all()
    Q = np.random.RandomState(0).dirichlet(np.ones(votes.shape[1]))
    assert Q @ disagree @ Q == pytest.approx(risks.disagreement(votes, Q, weights))
    hard = np.where(votes > 0, 1, -1)
    np.testing.assert_array_equal(kappa(votes), kappa(hard))
    np.testing.assert_array_equal(q_statistic(votes, y), q_statistic(hard, y))
    np.testing.assert_array_equal(voter_errors(votes, y), voter_errors(hard, y))


@given(elections())
def test_whole_weights_are_repeated_rows(election):
    votes, y, weights = election
    weights = np.ones(len(y), int) if weights is None else weights
    more, y_more = np.repeat(votes, weights, axis=0), np.repeat(y, weights)
    np.testing.assert_allclose(
        kappa(votes, sample_weight=7.0 * weights), kappa(more), atol=1e-12
    )
    np.testing.assert_allclose(
        q_statistic(votes, y, sample_weight=weights), q_statistic(more, y_more), atol=1e-12
    )


def test_kappa_error_lists_the_pairs():
    rng = np.random.RandomState(1)
    votes, y = rng.choice([-1, 1], (50, 4)), rng.choice([0, 1], 50)
    k, error = kappa_error(votes, y)
    matrix, errors = kappa(votes), voter_errors(votes, y)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert k.tolist() == [matrix[pair] for pair in pairs]
    assert error.tolist() == [(errors[i] + errors[j]) / 2 for i, j in pairs]


def test_one_voter_has_no_pairs():
    votes, y = [[1], [-1]], [1, 0]
    k, error = kappa_error(votes, y)
    assert k.shape == error.shape == (0,)
    assert kappa(votes).tolist() == q_statistic(votes, y).tolist() == [[1.0]]
    assert pairwise_disagreement(votes).tolist() == [[0.0]]


def test_where_the_ratios_are_undefined():
    # Two voters that are always right, one that never says yes, one always wrong.
    y = np.array([1, 1, -1, -1])
    votes = np.column_stack([y, y, [-1] * 4, -y])
    q = q_statistic(votes, y)
    assert q[0].tolist() == [1, 1, 0, 0]
    assert q[3].tolist() == [0, 0, 0, 1]
    constant = kappa(votes[:, [2, 2, 0]])
    assert constant.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    # A row of weight 0 takes no part, not even by rounding.
    weights = [0.1, 0.7, 0.3, 0.0]
    one_off = np.column_stack([y, [1, 1, -1, 1]])
    assert q_statistic(one_off, y, sample_weight=weights)[0, 1] == 1


def test_margins_by_any_name_of_the_labels():
    votes = np.array([[1, 1, -1], [1, -1, -1], [-1, -1, 1]])
    expected = [1 / 3, 1 / 3, -1 / 3]
    np.testing.assert_allclose(margins(votes, [1, 0, 1]), expected)
    np.testing.assert_allclose(margins(votes, [1, -1, 1]), expected)
    np.testing.assert_allclose(margins(votes, [True, False, True], [5, 5, 5]), expected)
    tie = margins([[1, -1]], [0])
    assert tie[0] == 0
    assert not np.signbit(tie[0])


@pytest.mark.parametrize(
    ("votes", "y", "message"),
    [
        ([1, -1], [1, 0], "one column per voter"),
        ([[1, 0]], [1], "predictions of 0 and 1"),
        ([[True, False]], [1], "predictions of 0 and 1"),
        ([[0.5, 1.5]], [1], r"in \[-1, 1\]"),
        ([[0.5, np.nan]], [1], r"in \[-1, 1\]"),
        ([[1, -1]], [1, 0], "votes has 1 rows"),
        ([[1, -1], [1, 1]], ["a", "b"], "choose the positive one"),
        ([[1], [1], [1]], [0, 1, -1], "y must be 0 and 1"),
    ],
)
def test_bad_votes_and_labels_are_named(votes, y, message):
    with pytest.raises(ValueError, match=message):
        margins(votes, y)


@pytest.mark.parametrize("bad", [[1], [-1, 1], [0, 0], [np.nan, 1], [np.inf, 1]])
def test_bad_weights_are_named(bad):
    votes = [[1, 1], [-1, 1]]
    with pytest.raises(ValueError, match=r"^weights"):
        margins(votes, [1, 0], bad)
    with pytest.raises(ValueError, match=r"^sample_weight"):
        kappa(votes, sample_weight=bad)
