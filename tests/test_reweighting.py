"""Step 2: positives gain weight as the plain vote misses them, negatives keep theirs."""

import numpy as np

from damvi.reweighting import emphasize_missed_positives, uniform_vote

VOTES = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1], [1, 1, 1]], dtype=np.int8)
SIGNS = np.array([1, 1, 1, -1], dtype=np.int8)


def test_a_positive_is_weighted_by_exp_of_minus_its_uniform_vote():
    D = emphasize_missed_positives(VOTES, SIGNS)
    np.testing.assert_allclose(D, [np.exp(-1), np.exp(-1 / 3), np.e, 1], rtol=1e-15)


def test_it_starts_from_the_given_weights_and_leaves_them_alone():
    base = np.array([0.5, 0.0, 1.0, 0.25])
    D = emphasize_missed_positives(VOTES, SIGNS, base)
    np.testing.assert_allclose(D, [0.5 * np.exp(-1), 0, np.e, 0.25], rtol=1e-15)
    np.testing.assert_array_equal(base, [0.5, 0.0, 1.0, 0.25])


def test_the_exponent_is_the_real_vote_and_not_its_sign():
    D = emphasize_missed_positives(VOTES, SIGNS)
    assert D[0] < D[1] < D[2]


def test_one_byte_votes_of_many_voters_do_not_overflow():
    votes = np.ones((2, 1000), dtype=np.int8)
    np.testing.assert_array_equal(uniform_vote(votes), [1.0, 1.0])


def test_soft_votes_are_averaged():
    votes = np.array([[0.5, -0.25], [0.0, 1.0]])
    np.testing.assert_allclose(uniform_vote(votes), [0.125, 0.5])
    D = emphasize_missed_positives(votes, np.array([1, -1]))
    np.testing.assert_allclose(D, [np.exp(-0.125), 1.0])
