"""The tree writer against a walk step by step, and against our own kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.io.onnx_graph import LEAF, LEQ, LT, MEMBER, Trees
from damvi.io.onnx_models import read_own_trees
from damvi.voters import FastForestClassifier

from .running import near, run_own_forest, run_trees, walk_trees

N_FEATURES = 3
VALUES = st.sampled_from(
    [np.nan, -np.inf, np.inf, -1e300, -2.0, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 1e300]
)
CODES = st.sampled_from([0.0, 1.0, 2.0, 31.0, 32.0, 33.0, 63.0, 64.0, 65.0, 128.0, 255.0])
ROWS = st.tuples(*[VALUES] * (N_FEATURES - 1), CODES)  # the last feature is a code


@st.composite
def one_tree(draw):
    feature, mode, threshold, left, right, missing, value, sets = (
        *([] for _ in range(7)),
        {},
    )

    def grow(depth):
        k = len(feature)
        feature.append(draw(st.integers(0, N_FEATURES - 1)))
        mode.append(draw(st.sampled_from([LEQ, LT])))
        if feature[k] == N_FEATURES - 1:
            mode[k] = MEMBER
        threshold.append(draw(VALUES.filter(lambda value: not np.isnan(value))))
        missing.append(mode[k] != MEMBER and draw(st.booleans()))
        value.append(float(len(value)))
        left.append(LEAF)
        right.append(LEAF)
        if mode[k] == MEMBER:
            sets[k] = np.array(draw(st.lists(CODES, max_size=8, unique=True)))
        if depth and draw(st.booleans()):
            left[k] = grow(depth - 1)
            right[k] = grow(depth - 1)
        return k

    grow(draw(st.integers(0, 5)))
    return Trees(
        roots=np.zeros(1, dtype=np.int64),
        feature=np.array(feature),
        mode=np.array(mode, dtype=np.uint8),
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.array(missing),
        value=np.array(value),
        sets=sets,
    )


@settings(max_examples=80, deadline=None)
@given(
    st.lists(one_tree(), min_size=1, max_size=5),
    st.lists(ROWS, min_size=1, max_size=30),
)
def test_any_trees_are_walked_as_written(some, rows):
    trees, X = Trees.join(some), np.array(rows)
    np.testing.assert_array_equal(run_trees(trees, X), walk_trees(trees, X))


@st.composite
def tables(draw):
    n = draw(st.integers(8, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1e-300, 1e-6, 1.0, 1e9, 1e300]))
    X = np.column_stack(
        [
            rng.standard_normal(n) * scale,
            rng.integers(0, draw(st.sampled_from([2, 12, 40])), n) - 3.0,
            np.full(n, 7.0),
        ]
    )
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    y = rng.permutation(np.arange(n) < draw(st.sampled_from([1, n // 3])))
    return X, y.astype(int)


@settings(max_examples=30, deadline=None)
@given(tables(), st.booleans())
def test_own_trees_are_what_the_kernels_do(table, with_categories):
    X, y = table
    options = {"categorical_features": [1]} if with_categories else {}
    model = FastForestClassifier(5, max_features=None, random_state=0, **options).fit(X, y)
    forest, binning = model.trees_.forest, model.trees_.features.binning
    trees = read_own_trees(forest, binning, forest.shares[:, 1])
    asked = rows_around(trees, X)
    shares = np.cumsum(run_own_forest(model, asked), axis=1)[:, -1] / 5
    np.testing.assert_array_equal(shares, model.predict_proba(asked)[:, 1])


def rows_around(trees, X):
    """The rows, rows at and next to thresholds, and categories that nobody knows."""
    rows = [X]
    for f in range(X.shape[1]):
        own = (trees.feature == f) & (trees.left != LEAF) & (trees.mode != MEMBER)
        values = np.append(near(trees.threshold[own]), [-99.0, 0.5, np.nan])
        values = values[~np.isinf(values)]
        more = X[np.arange(len(values)) % len(X)].copy()
        more[:, f] = values
        rows.append(more)
    return np.concatenate(rows)


@pytest.mark.parametrize("n_rows", [1, 2, 1000])
def test_many_trees_and_few_or_many_rows(n_rows):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 4)), np.arange(500) % 7 == 0
    X[rng.random(X.shape) < 0.1] = np.nan
    model = FastForestClassifier(150, random_state=0).fit(X, y)
    asked = rng.standard_normal((n_rows, 4))
    shares = np.cumsum(run_own_forest(model, asked), axis=1)[:, -1] / 150
    np.testing.assert_array_equal(shares, model.predict_proba(asked)[:, 1])
