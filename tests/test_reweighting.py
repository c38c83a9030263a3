"""Step 2: positives gain weight as the plain vote misses them, negatives keep theirs."""

import numpy as np
import pytest

from damvi.moments import Moments
from damvi.votes import Votes, emphasis, plain_margin
from damvi.weighting import emphasize_missed_positives

VOTES = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1], [1, 1, 1]], dtype=np.int8)
TARGETS = np.array([1, 1, 1, 0])
SIGNS = np.array([1, 1, 1, -1])


def whole(votes, strength=1.0):
    first, *others = emphasize_missed_positives(votes, strength)
    return sum(others, start=first).moments()


def test_a_positive_is_weighted_by_exp_of_minus_its_margin():
    D = np.array([np.exp(-1), np.exp(-1 / 3), np.e, 1])
    votes = Votes(VOTES, TARGETS, np.array([0, 1, 0, 1]))
    assert whole(votes) == Moments.of(VOTES, SIGNS, D)
    assert whole(votes, 0.5) == Moments.of(VOTES, SIGNS, D**0.5)
    assert whole(votes, 0.0) == Moments.of(VOTES, SIGNS)


def test_it_starts_from_the_given_weights_and_leaves_them_alone():
    base = np.array([0.5, 0.0, 1.0, 0.25])
    votes = Votes(VOTES, TARGETS, np.zeros(4, int), sample_weight=base)
    D = [0.5 * np.exp(-1), 0, np.e, 0.25]
    assert whole(votes) == Moments.of(VOTES, SIGNS, D)
    np.testing.assert_array_equal(base, [0.5, 0.0, 1.0, 0.25])


def test_only_out_of_bag_votes_count_if_the_weights_are_learned_from_them():
    votes = np.array([[1, -1], [1, 1]], np.int8)
    counted = np.array([[False, True], [False, False]])
    margin = plain_margin(votes, np.array([1, 1]), 2, counted)
    np.testing.assert_allclose(emphasis(margin, 1.0), [np.e, 1])


def test_of_many_classes_those_below_their_even_share_gain_weight():
    votes = np.array([[2, 2, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0]], np.uint8)
    targets = np.array([2, 1, 0, 0])
    rare = np.array([False, True, True])
    given = Votes(
        votes, targets, np.zeros(4, int), reweighted=rare, class_weight=np.ones(3)
    )
    right = np.where(votes == targets[:, None], 1, -1)
    D = [np.exp(-1 / 3), np.exp(-1), 1, 1]
    assert whole(given) == Moments.of(right, np.ones(4), D)


def test_one_byte_votes_of_many_voters_do_not_overflow():
    votes = np.ones((2, 1000), dtype=np.int8)
    np.testing.assert_array_equal(plain_margin(votes, np.array([1, 1]), 2), [1.0, 1.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_soft_votes_are_averaged(n_classes):
    signed = np.array([[0.5, -0.25], [0.0, 1.0]])
    votes = signed
    if n_classes == 3:  # as shares of three classes, none for the last
        votes = np.stack([(1 - signed) / 2, (1 + signed) / 2, 0 * signed], axis=2)
    margin = plain_margin(votes, np.array([1, 1]), n_classes)
    np.testing.assert_allclose(margin, [0.125, 0.5])
