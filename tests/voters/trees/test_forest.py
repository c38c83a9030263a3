"""Votes: all nodes at once, step by step, and one row after the other agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.voters.trees.forest import Forest, find_leaves, walk

from .test_grow import SEEDS, grow_fast, tables


def forest_of(table, seed):
    return Forest.of_tree(grow_fast(*table, seed))


@settings(max_examples=100, deadline=None)
@given(tables(), SEEDS, st.integers(0, 2**32))
def test_the_three_ways_to_a_vote_agree(table, seed, new):
    codes, weights, labels, n_classes, categorical = table
    first = forest_of(table, seed)
    other = codes, weights, n_classes - 1 - labels, n_classes, 1 - categorical
    second = forest_of(other, seed)
    forest, n_features = Forest.join([first, second]), codes.shape[1]
    codes = np.random.default_rng(new).integers(0, 256, (1100, n_features)).astype(np.uint8)
    for at_once in ([True, True], [False, False], [True, False]):
        forest.__dict__["at_once"] = np.array(at_once)
        votes = forest.no_votes(len(codes))
        forest.cast(codes, np.arange(2), votes)
        for k, tree in enumerate((first, second)):
            leaves = np.empty(len(codes), np.uint32)
            find_leaves(codes, tree.nodes, tree.sets, leaves)
            one_by_one = [walk(codes, i, tree.nodes, tree.sets) for i in range(len(codes))]
            np.testing.assert_array_equal(leaves, one_by_one)
            np.testing.assert_array_equal(votes[:, k], tree.node_votes[leaves])


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1023, 1024, 1025, 16385])
@pytest.mark.parametrize("at_once", [True, False])
def test_any_number_of_rows_is_asked(rows, at_once):
    table = (
        np.arange(1, 41, dtype=np.uint8)[:, np.newaxis],
        np.ones(40, np.int64),
        np.arange(40) % 3 == 0,
        2,
        np.zeros(1, np.uint8),
    )
    forest = forest_of(table, 1)
    forest.__dict__["at_once"] = np.array([at_once])
    codes = (1 + np.arange(rows) % 40).astype(np.uint8)[:, np.newaxis]
    votes = np.zeros((rows, 1), np.int8, order="F")
    forest.cast(codes, np.arange(1), votes)
    np.testing.assert_array_equal(votes[:, 0], np.where((codes[:, 0] - 1) % 3 == 0, 1, -1))


def test_large_trees_walk_and_small_ones_are_asked_at_once():
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 250, (3000, 5)).astype(np.uint8)
    ones, numeric = np.ones(3000, np.int64), np.zeros(5, np.uint8)
    noise = codes, ones, rng.random(3000) < 0.4, 2, numeric
    rare = codes, ones, rng.random(3000) < 0.005, 2, numeric
    assert not forest_of(noise, 1).at_once[0]
    assert forest_of(rare, 1).at_once[0]
