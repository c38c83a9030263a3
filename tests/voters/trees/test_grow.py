"""The kernel grows the reference's trees, and each split is as good as CART's best."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.tree import DecisionTreeClassifier

from damvi.voters.trees.cuts import CLASS_SHIFT
from damvi.voters.trees.forest import FEATURE, LEFT, SHIFT, THRESHOLD, goes_left
from damvi.voters.trees.grow import (
    FLOOR,
    ROWS,
    TABLE_END,
    grow,
    make_subtree_table,
    room_for_tables,
)

from .reference import grow_slowly

SEEDS = st.integers(1, 2**31)


@st.composite
def tables(draw, max_code=6, max_rows=40, max_classes=5, missing=True, categories=True):
    """Codes, weights, labels, the number of classes and which features are categories.

    Categories come with two classes alone, where their order is exact.
    """
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 4))
    n_classes = draw(st.integers(2, max_classes))
    codes = draw(
        arrays(np.uint8, (n, d), elements=st.integers(0 if missing else 1, max_code))
    )
    weights = draw(arrays(np.int64, n, elements=st.integers(1, 5)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    categorical = np.zeros(d, np.uint8)
    if n_classes == 2 and categories:
        categorical = draw(arrays(np.uint8, d, elements=st.integers(0, 1)))
    return codes, weights, labels, n_classes, categorical


def grow_fast(
    codes,
    weights,
    labels,
    n_classes,
    categorical,
    seed,
    max_depth=0,
    min_leaf=1,
    features=None,
    random=False,
    near_rows=2**20,
    size=np.int32,
):
    labels = np.asarray(labels, np.int64)
    n_codes = codes.max(axis=0).astype(np.int64) + 1
    return grow(
        np.ascontiguousarray(codes.T if random else codes),
        labels << CLASS_SHIFT | weights,
        np.argsort(labels, kind="stable").astype(np.uint32),
        np.bincount(labels, weights, n_classes).astype(size),
        np.concatenate([[0], np.cumsum(n_codes)]).astype(np.uint32),
        categorical,
        max_depth,
        min_leaf,
        features or codes.shape[1],
        np.uint64(seed),
        near_rows,
        random,
    )


def left_codes(node, sets, present):
    """The codes of a node's rows that go left."""
    return frozenset(
        int(code) for code in present if goes_left(code, node[THRESHOLD], node[SHIFT], sets)
    )


def rows_of_nodes(nodes, sets, codes):
    """The rows that reach each node, walked one by one."""
    reach = [[] for _ in nodes]
    for i in range(len(codes)):
        k = 0
        while True:
            reach[k].append(i)
            if nodes[k, LEFT] == k:
                break
            f = nodes[k, FEATURE]
            k = nodes[k, LEFT] + (
                codes[i, f] not in left_codes(nodes[k], sets, [codes[i, f]])
            )
    return reach


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


@settings(max_examples=300, deadline=None)
@given(tables(), SEEDS)
def test_the_tree_is_the_reference_tree(table, seed):
    assert_same_tree(grow_fast(*table, seed), grow_slowly(*table, seed), table[0])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    tables(),
    SEEDS,
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0, 0, 3]),
    st.booleans(),
)
def test_random_cuts_and_features_are_those_of_the_reference(
    table, seed, features, min_leaf, max_depth, random
):
    codes, weights, labels, n_classes, categorical = table
    if random:  # whose subsets have no order
        categorical = (np.arange(codes.shape[1]) % 3 == 1).astype(np.uint8)
    table = codes, weights, labels, n_classes, categorical
    options = {"features": min(features, codes.shape[1]), "random": random}
    options |= {"min_leaf": min_leaf, "max_depth": max_depth}
    slow = grow_slowly(*table, seed, **options)
    assert_same_tree(grow_fast(*table, seed, **options), slow, codes)


@pytest.mark.parametrize("n_classes", [2, 3, 50])
@pytest.mark.parametrize("max_code", [1, 5, 250])
@pytest.mark.parametrize("options", [{}, {"features": 2, "min_leaf": 3}])
def test_random_cuts_of_large_nodes_are_those_of_the_reference(
    n_classes, max_code, options
):
    rng = np.random.default_rng(max_code)
    codes = rng.integers(0, max_code + 1, (400, 4)).astype(np.uint8)
    codes[:, 3] = 7  # a constant
    codes[200:] = codes[:200]  # duplicates
    labels = np.where(rng.random(400) < 0.5, codes[:, 0] * 7, codes[:, 2]) % n_classes
    weights = rng.choice([1, 3, 2**20 - 1], 400)
    categorical = np.array([0, 0, 1, 0], np.uint8)
    table = codes, weights, labels, n_classes, categorical
    options = options | {"random": True}
    slow = grow_slowly(*table, max_code, **options)
    for size in (np.int32, np.int64):
        assert_same_tree(grow_fast(*table, max_code, **options, size=size), slow, codes)


def test_a_random_cut_falls_anywhere_between_the_least_and_the_greatest_code():
    codes = np.array([[10], [20], [20]], np.uint8)
    table = codes, np.ones(3, np.int64), np.array([0, 1, 1]), 2, np.zeros(1, np.uint8)
    cuts = [grow_fast(*table, seed, random=True)[0][0] for seed in range(1, 400)]
    codes_left = [node[THRESHOLD] + node[SHIFT] for node in cuts]
    assert set(codes_left) == set(range(10, 20))
    assert np.bincount(codes_left)[10:].min() > 20


@settings(max_examples=100, deadline=None)
@given(tables(max_rows=12), SEEDS, st.data())
def test_weights_far_apart_lose_no_digit_that_a_cut_depends_on(table, seed, data):
    codes, _, *rest = table
    far_apart = st.sampled_from([1, 7, 2**10 + 1, 2**20 - 3, 2**22])
    weights = data.draw(arrays(np.int64, len(codes), elements=far_apart))
    table = codes, weights, *rest
    assert_same_tree(grow_fast(*table, seed), grow_slowly(*table, seed), codes)


@settings(max_examples=100, deadline=None)
@given(tables(), SEEDS, st.integers(1, 4), st.integers(1, 5))
def test_depth_and_leaf_size_are_obeyed_as_in_the_reference(
    table, seed, max_depth, min_leaf
):
    fast = grow_fast(*table, seed, max_depth, min_leaf)
    assert_same_tree(fast, grow_slowly(*table, seed, max_depth, min_leaf), table[0])


@pytest.mark.parametrize("options", [{}, {"near_rows": 40}, {"min_leaf": 4}])
@pytest.mark.parametrize("n_classes", [2, 3, 6, 50])
@pytest.mark.parametrize("max_code", [1, 5, 40])
def test_large_nodes_grow_the_reference_tree(n_classes, max_code, options):
    rng = np.random.default_rng(max_code)
    codes = rng.integers(0, max_code + 1, (500, 3)).astype(np.uint8)
    noise = rng.integers(0, n_classes, 500)
    labels = np.where(rng.random(500) < 0.8, codes[:, 0] * 7 % n_classes, noise)
    categorical = np.array([0, 0, n_classes == 2], np.uint8)
    table = codes, rng.integers(1, 4, 500), labels, n_classes, categorical
    slow = grow_slowly(*table, max_code, min_leaf=options.get("min_leaf", 1))
    assert_same_tree(grow_fast(*table, max_code, **options), slow, codes)


@pytest.mark.parametrize("seed", range(5))
def test_nodes_that_halve_their_rows_keep_as_many_histograms_as_there_can_be(seed):
    rng = np.random.default_rng(seed)
    codes = (1 + (np.arange(256)[:, np.newaxis] >> np.arange(8) & 1)).astype(np.uint8)
    labels = rng.integers(0, 2, 256)
    table = codes, np.ones(256, np.int64), labels, 2, np.zeros(8, np.uint8)
    assert_same_tree(grow_fast(*table, seed + 1), grow_slowly(*table, seed + 1), codes)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(tables(max_code=8, categories=False), SEEDS)
def test_each_split_is_as_good_as_the_best_of_scikit_learn(table, seed):
    codes, weights, labels, n_classes, categorical = table
    if sklearn.__version__ < "1.7":  # 1.6 splits off what is all missing, from nothing
        codes = np.maximum(codes, 1)
    nodes, totals, _, sets, _ = grow_fast(
        codes, weights, labels, n_classes, categorical, seed
    )
    values = np.where(codes == 0, np.nan, codes)
    for k, rows in enumerate(rows_of_nodes(nodes, sets, codes)):
        stump = DecisionTreeClassifier(max_depth=1, random_state=0)
        stump.fit(values[rows], labels[rows], sample_weight=weights[rows])
        if nodes[k, LEFT] == k:
            assert stump.tree_.node_count == 1 or (totals[k] > 0).sum() < 2
            continue
        children = totals[nodes[k, LEFT] : nodes[k, LEFT] + 2].astype(float)
        ours = sum((part @ part) / part.sum() for part in children)
        share = stump.tree_.weighted_n_node_samples * (1 - stump.tree_.impurity)
        best = share[1] + share[2] if len(share) > 1 else 0
        # scikit-learn may miss the best place for missing values, but never beats us.
        assert ours >= best - 1e-9
        if not np.isnan(values[rows]).any():
            assert ours == pytest.approx(best, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(tables(max_code=5, max_classes=2, missing=False), SEEDS)
def test_a_split_on_categories_is_the_best_of_all_subsets(table, seed):
    codes, weights, labels, _, _ = table
    codes, positive = codes[:, :1], labels == 1
    fast = grow_fast(codes, weights, labels, 2, np.ones(1, np.uint8), seed)
    nodes, totals = fast[0], fast[1]
    present = sorted(set(codes[:, 0].tolist()))
    if len(present) < 2 or positive.all() or not positive.any():
        assert len(nodes) == 1
        return

    def value(members):
        left = np.isin(codes[:, 0], members)
        parts = [(left, positive), (~left, positive)]
        sums = [(weights[s & ~p].sum(), weights[s & p].sum()) for s, p in parts]
        return sum((n * n + p * p) / (n + p) for n, p in sums)

    subsets = [
        [code for j, code in enumerate(present) if bits >> j & 1]
        for bits in range(1, 2 ** len(present) - 1)
    ]
    left = nodes[0, LEFT]
    ours = sum((n * n + p * p) / (n + p) for n, p in totals[left : left + 2].astype(float))
    assert ours == pytest.approx(max(map(value, subsets)), rel=1e-12)


@pytest.mark.parametrize("n_classes", [3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_categories_of_many_classes_are_cut_along_their_first_component(n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 12, 400), rng.integers(1, 5, 400)]).astype(
        np.uint8
    )
    labels = (codes[:, 0] * 5 + rng.integers(0, 3, 400)) % n_classes
    weights = rng.integers(1, 1000, 400)
    table = codes, weights, labels, n_classes, np.array([1, 0], np.uint8)
    fast = grow_fast(*table, 1, max_depth=1)
    feature, codes_left, _, own = grow_slowly(*table, 1, max_depth=1)[0]
    np.testing.assert_array_equal(fast[1][0], own)
    assert fast[0][0, FEATURE] == feature == 0
    ours = left_codes(fast[0][0], fast[3], range(12))
    assert ours in (codes_left, frozenset(range(12)) - codes_left)  # either end is first


@settings(max_examples=100, deadline=None)
@given(tables(), SEEDS, st.randoms(), st.integers(0, 12), st.integers(1, 3))
def test_neither_the_order_of_the_rows_nor_where_they_are_matters(
    table, seed, random, near_rows, min_leaf
):
    codes, weights, labels, n_classes, _ = table
    categorical = np.arange(codes.shape[1], dtype=np.uint8) % 2
    order = list(range(len(codes)))
    random.shuffle(order)
    shuffled = codes[order], weights[order], labels[order], n_classes, categorical
    assert_same_arrays(
        grow_fast(codes, weights, labels, n_classes, categorical, seed, min_leaf=min_leaf),
        grow_fast(*shuffled, seed, near_rows=near_rows, min_leaf=min_leaf),
    )


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": 2},
        {"min_leaf": 3},
        {"max_depth": 4},
        {"features": 1, "min_leaf": 2},
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_large_trees_are_the_same_on_tables_of_their_own(options, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 40, (5000, 4)).astype(np.uint8)  # 0 is missing
    odd = rng.random(5000) < 0.02 + 0.3 * (codes[:, 0] > 35) * (codes[:, 3] % 3 == 0)
    labels = np.where(odd, rng.integers(1, n_classes, 5000), 0)
    weights = rng.integers(1, 2**16, 5000)
    table = codes, weights, labels, n_classes, np.array([0, 0, 0, 1], dtype=np.uint8)
    whole = grow_fast(*table, seed + 1, **options)
    for near_rows in (0, 30, 1000):
        assert_same_arrays(
            whole, grow_fast(*table, seed + 1, **options, near_rows=near_rows)
        )
    assert_same_arrays(whole, grow_fast(*table, seed + 1, **options, size=np.int64))


def test_weights_far_beyond_32_bits_are_counted_exactly():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 20, (3000, 3)).astype(np.uint8)
    labels = (rng.random(3000) < 0.1 + 0.5 * (codes[:, 0] > 15)).astype(np.int64)
    table = codes, np.ones(3000, np.int64), labels, 2, np.array([0, 0, 1], np.uint8)
    heavy = codes, np.full(3000, 2**30), *table[2:]
    for options in ({}, {"features": 1}, {"min_leaf": 7}):
        nodes, weights, *rest, decrease = grow_fast(*table, 1, **options)
        scaled = grow_fast(*heavy, 1, **options, size=np.int64)
        assert_same_arrays(
            (nodes, weights * 2**30, *rest, decrease * 2.0**30),
            scaled,
        )


def test_weights_of_a_thousand_million_in_all_are_counted_exactly():
    codes = np.arange(1, 5, dtype=np.uint8)[:, np.newaxis]
    weights = np.array([2**28, 2**28, 2**28 - 1, 2**28])
    labels = np.array([0, 1, 2, 0])
    _, totals, *_ = grow_fast(codes, weights, labels, 3, np.zeros(1, np.uint8), 1)
    assert totals[0].tolist() == [2**29, 2**28, 2**28 - 1]
    assert (totals[1:].astype(np.int64).sum(axis=1) > 0).all()


def test_unseen_missing_values_go_with_the_heavier_child():
    codes = np.array([[1], [1], [1], [2]], dtype=np.uint8)
    rest = np.array([0, 0, 0, 1]), 2, np.zeros(1, np.uint8), 1
    nodes, *_ = grow_fast(codes, np.ones(4, np.int64), *rest)
    assert left_codes(nodes[0], np.empty((0, 32), np.uint8), [0]) == {0}
    nodes, *_ = grow_fast(codes, np.array([1, 1, 1, 9]), *rest)
    assert left_codes(nodes[0], np.empty((0, 32), np.uint8), [0]) == frozenset()


def test_a_random_subset_of_features_still_splits_impure_nodes():
    rng = np.random.default_rng(0)
    codes = np.ones((200, 20), dtype=np.uint8)
    codes[:, 13] = rng.integers(1, 200, 200)  # the only feature that varies
    table = codes, np.ones(200, np.int64), codes[:, 13] > 100, 2, np.zeros(20, np.uint8)
    nodes, *_ = grow_fast(*table, 5, features=1)
    assert len(nodes) == 3
    assert nodes[0, FEATURE] == 13


def test_the_table_of_a_subtree_begins_where_the_one_around_it_ends():
    codes, tags = np.arange(64, dtype=np.uint8)[:, np.newaxis], np.arange(64) * 100
    room = room_for_tables(64, 0)
    block, own = np.zeros((room, 1), dtype=np.uint8), np.zeros(room, dtype=np.int64)
    tables, level = np.zeros((8, 3), dtype=np.int64), 0
    for floor, size in enumerate([16, 4, 1]):
        rows = np.arange(7, 7 + size, dtype=np.uint32)
        level = make_subtree_table(codes, tags, rows, floor, tables, level, block, own)
        # They move with their weights and are numbered anew.
        assert block[rows, 0].tolist() == list(range(7, 7 + size))
        assert own[rows].tolist() == [100 * row for row in range(7, 7 + size)]
    assert tables[1:4, [FLOOR, TABLE_END, ROWS]].tolist() == [
        [0, 16, 16],
        [1, 20, 4],
        [2, 21, 1],
    ]
    assert tables[level, TABLE_END] <= room
