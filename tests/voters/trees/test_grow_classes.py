"""Trees of several classes are the reference's, and with two classes the binary ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.tree import DecisionTreeClassifier

from damvi.voters.trees.class_keys import CLASS_SHIFT
from damvi.voters.trees.forest import FEATURE, LEFT
from damvi.voters.trees.grow_classes import grow_classes

from .class_reference import grow_slowly
from .test_grow import SEEDS, grow_fast, left_codes, rows_of_nodes
from .test_grow import tables as binary_tables


@st.composite
def tables(draw, max_code=6, max_rows=40, max_classes=5, missing=True):
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 4))
    n_classes = draw(st.integers(2, max_classes))
    codes = draw(
        arrays(np.uint8, (n, d), elements=st.integers(0 if missing else 1, max_code))
    )
    weights = draw(arrays(np.int64, n, elements=st.integers(1, 5)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    return codes, weights, labels, n_classes, np.zeros(d, np.uint8)


def grow_many(
    codes,
    weights,
    labels,
    n_classes,
    categorical,
    seed,
    max_depth=0,
    min_leaf=1,
    features=None,
    near_rows=2**20,
):
    codes = np.ascontiguousarray(codes)
    n_codes = codes.max(axis=0).astype(np.int64) + 1
    return grow_classes(
        codes,
        labels << CLASS_SHIFT | weights,
        np.argsort(labels, kind="stable").astype(np.uint32),
        n_classes,
        np.concatenate([[0], np.cumsum(n_codes)]).astype(np.uint32),
        categorical,
        max_depth,
        min_leaf,
        features or codes.shape[1],
        np.uint64(seed),
        near_rows,
    )


def assert_same_arrays(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_same_tree(fast, slow, codes):
    nodes, weights, rows, sets, _ = fast
    assert len(nodes) == len(slow)
    reach = rows_of_nodes(nodes, sets, codes)
    for k, (feature, *rest, own) in enumerate(slow):
        np.testing.assert_array_equal(weights[k], own)
        assert rows[k] == len(reach[k])
        if feature is None:
            assert nodes[k, LEFT] == k
            continue
        codes_left, child = rest
        assert (nodes[k, FEATURE], nodes[k, LEFT]) == (feature, child)
        present = set(codes[reach[k], feature].tolist())
        assert left_codes(nodes[k], sets, present) == codes_left


@settings(max_examples=100, deadline=None)
@given(binary_tables(max_code=9, max_rows=60), SEEDS, st.integers(1, 3))
def test_two_classes_give_the_binary_tree(table, seed, min_leaf):
    codes, weights, positive, categorical = table
    table = codes, weights, positive.astype(np.int64), 2, categorical
    options = {"min_leaf": min_leaf}
    assert_same_arrays(
        grow_many(*table, seed, **options),
        grow_fast(codes, weights, positive, categorical, seed, **options),
    )


@pytest.mark.parametrize(
    "options", [{}, {"features": 2}, {"min_leaf": 3}, {"max_depth": 4}]
)
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_give_the_binary_tree_in_large_nodes_too(seed, options):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 30, (5000, 4)).astype(np.uint8)
    positive = rng.random(5000) < 0.1 + 0.3 * (codes[:, 0] > 25) * (codes[:, 3] % 3 == 0)
    weights = rng.integers(1, 100, 5000)
    categorical = np.array([0, 0, 0, 1], dtype=np.uint8)
    options = {**options, "near_rows": 100}
    assert_same_arrays(
        grow_many(codes, weights, positive.astype(int), 2, categorical, seed, **options),
        grow_fast(codes, weights, positive, categorical, seed, **options),
    )


@settings(max_examples=100, deadline=None)
@given(tables(), SEEDS)
def test_the_tree_is_the_reference_tree(table, seed):
    assert_same_tree(grow_many(*table, seed), grow_slowly(*table, seed), table[0])


@settings(max_examples=100, deadline=None)
@given(tables(), SEEDS, st.integers(1, 4), st.integers(1, 5))
def test_depth_and_leaf_size_are_obeyed_as_in_the_reference(
    table, seed, max_depth, min_leaf
):
    fast = grow_many(*table, seed, max_depth, min_leaf)
    assert_same_tree(fast, grow_slowly(*table, seed, max_depth, min_leaf), table[0])


@pytest.mark.parametrize("near_rows", [2**20, 40])
@pytest.mark.parametrize("n_classes", [3, 6, 50])
@pytest.mark.parametrize("max_code", [1, 5, 40])
def test_large_nodes_with_histograms_grow_the_reference_tree(
    n_classes, max_code, near_rows
):
    rng = np.random.default_rng(max_code)
    codes = rng.integers(0, max_code + 1, (500, 3)).astype(np.uint8)
    noise = rng.integers(0, n_classes, 500)
    labels = np.where(rng.random(500) < 0.8, codes[:, 0] * 7 % n_classes, noise)
    table = codes, rng.integers(1, 4, 500), labels, n_classes, np.zeros(3, np.uint8)
    fast = grow_many(*table, max_code, near_rows=near_rows)
    assert_same_tree(fast, grow_slowly(*table, max_code), codes)


@pytest.mark.parametrize("n_classes", [3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_categories_are_cut_along_their_first_principal_component(n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 12, 400), rng.integers(1, 5, 400)]).astype(
        np.uint8
    )
    labels = (codes[:, 0] * 5 + rng.integers(0, 3, 400)) % n_classes
    weights = rng.integers(1, 1000, 400)
    table = codes, weights, labels, n_classes, np.array([1, 0], np.uint8)
    fast = grow_many(*table, 1, max_depth=1)
    feature, codes_left, _, own = grow_slowly(*table, 1, max_depth=1)[0]
    np.testing.assert_array_equal(fast[1][0], own)
    assert fast[0][0, FEATURE] == feature == 0
    ours = left_codes(fast[0][0], fast[3], range(12))
    assert ours in (codes_left, frozenset(range(12)) - codes_left)  # either end is first


@settings(max_examples=50, deadline=None)
@given(tables(max_code=8, missing=False), SEEDS)
def test_each_split_is_as_good_as_the_best_of_scikit_learn(table, seed):
    codes, weights, labels, _, _ = table
    nodes, totals, _, sets, _ = grow_many(*table, seed)
    for k, rows in enumerate(rows_of_nodes(nodes, sets, codes)):
        stump = DecisionTreeClassifier(max_depth=1, random_state=0)
        stump.fit(codes[rows], labels[rows], sample_weight=weights[rows])
        if nodes[k, LEFT] == k:
            assert stump.tree_.node_count == 1 or (totals[k] > 0).sum() < 2
            continue
        children = totals[nodes[k, LEFT] : nodes[k, LEFT] + 2].astype(float)
        ours = sum((part @ part) / part.sum() for part in children)
        share = stump.tree_.weighted_n_node_samples * (1 - stump.tree_.impurity)
        assert ours == pytest.approx(share[1] + share[2], rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(tables(), SEEDS, st.randoms(), st.integers(0, 12))
def test_neither_the_order_of_the_rows_nor_where_they_are_matters(
    table, seed, random, near_rows
):
    codes, weights, labels, n_classes, _ = table
    categorical = np.arange(codes.shape[1], dtype=np.uint8) % 2
    order = list(range(len(codes)))
    random.shuffle(order)
    assert_same_arrays(
        grow_many(codes, weights, labels, n_classes, categorical, seed),
        grow_many(
            codes[order],
            weights[order],
            labels[order],
            n_classes,
            categorical,
            seed,
            near_rows=near_rows,
        ),
    )


def test_weights_of_a_thousand_million_in_all_are_counted_exactly():
    codes = np.arange(1, 5, dtype=np.uint8)[:, np.newaxis]
    weights = np.array([2**28, 2**28, 2**28 - 1, 2**28])
    labels = np.array([0, 1, 2, 0])
    _, totals, *_ = grow_many(codes, weights, labels, 3, np.zeros(1, np.uint8), 1)
    assert totals[0].tolist() == [2**29, 2**28, 2**28 - 1]
    assert (totals[1:].astype(np.int64).sum(axis=1) > 0).all()
