"""Trees in onnxruntime against a walk step by step, our kernels, and boosters' scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from damvi.io.onnx_graph import LEAF, LEQ, LT, MEMBER, Trees
from damvi.io.onnx_models import (
    read_catboost,
    read_hist_boosting,
    read_lightgbm,
    read_own_trees,
    read_xgboost,
)
from damvi.voters import FastForestClassifier

from .running import near, run_own_forest, run_trees, walk_trees
from .tables import X4, Y4

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
@given(tables(), st.booleans(), st.sampled_from(["best", "random"]))
def test_own_trees_are_what_the_kernels_do(table, with_categories, splitter):
    X, y = table
    options = {"categorical_features": [1]} if with_categories else {}
    model = FastForestClassifier(
        5, splitter=splitter, max_features=None, random_state=0, **options
    ).fit(X, y)
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


# Boosted trees of other libraries: their raw scores, to the last bit.


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) * [1.0, 1e6, 1e-6, 1.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = np.nan_to_num(X[:, 3].round(1))  # nothing missing at fit
    return X, (np.nan_to_num(X[:, 0]) + rng.standard_normal(400) > 1.5).astype(int)


def lightgbm(**options):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1, **options)


def xgboost(**options):
    return pytest.importorskip("xgboost").XGBClassifier(
        n_estimators=30, n_jobs=1, **options
    )


def catboost(**options):
    library = pytest.importorskip("catboost")
    return library.CatBoostClassifier(
        iterations=30, thread_count=1, verbose=False, allow_writing_files=False, **options
    )


def hist(**options):
    return HistGradientBoostingClassifier(max_iter=10, **options)


CASES = {
    "lightgbm": (lightgbm, read_lightgbm, lambda m, X: m.predict(X, raw_score=True)),
    "xgboost": (xgboost, read_xgboost, lambda m, X: m.predict(X, output_margin=True)),
    "catboost": (
        catboost,
        read_catboost,
        lambda m, X: m.predict(X, prediction_type="RawFormulaVal"),
    ),
    "hist": (hist, read_hist_boosting, lambda m, X: m.decision_function(X)),
}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_raw_scores_are_the_same(rows, name, n_classes):
    make, read, raw = CASES[name]
    X, y = rows if n_classes == 2 else (X4, Y4)
    model = make().fit(X, y)
    boosted = read(model)
    asked = [X, np.where(X > 1, np.nan, X), X * 1e30, X * 1e-30]
    for f in range(X.shape[1]):
        own = (boosted.trees.feature == f) & (boosted.trees.left != LEAF)
        at = near(boosted.trees.threshold[own])
        if boosted.single_values:
            at = np.append(at, near(boosted.trees.threshold[own].astype(np.float32)))
        at = at[:: 1 + len(at) // 1000]
        more = X[np.arange(len(at)) % len(X)].copy()
        more[:, f] = at
        asked.append(more)
    asked = np.concatenate(asked)
    read_as = asked.astype(np.float32).astype(float) if boosted.single_values else asked
    values = run_trees(boosted.trees, read_as)
    dtype = np.float32 if boosted.single_sum else np.float64
    scores = np.reshape(raw(model, asked), (len(asked), -1))
    assert scores.shape[1] == len(boosted.start) == (1 if n_classes == 2 else 4)
    for c, (start, bias) in enumerate(zip(boosted.start, boosted.bias, strict=True)):
        own = values[:, boosted.of_class == c]
        terms = np.column_stack([np.full(len(asked), start), own]).astype(dtype)
        total = np.cumsum(terms, axis=1)[:, -1] * dtype(boosted.slope) + dtype(bias)
        np.testing.assert_array_equal(total, scores[:, c])


def test_what_lightgbm_takes_as_zero_and_as_infinity():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 0.0, 1.0, np.nan], size=(400, 1))
    for wanted in (X[:, 0] < 0, X[:, 0] <= 0, np.isnan(X[:, 0])):
        model = lightgbm().fit(X, wanted)
        boosted = read_lightgbm(model)
        edges = np.float64(np.float32([1e-35, -1e-35]))
        values = np.concatenate([edges, [1e300, -1e300, 1.7e308, np.nan, 0.0, 1e-300]])
        asked = np.concatenate(
            [values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]
        )[:, np.newaxis]
        total = np.cumsum(run_trees(boosted.trees, asked), axis=1)[:, -1]
        np.testing.assert_array_equal(total, model.predict(asked, raw_score=True))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lightgbm", {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, "rf"),
        ("lightgbm", {"zero_as_missing": True}, "zero_as_missing"),
        ("lightgbm", {"linear_tree": True}, "linear trees"),
        ("xgboost", {"booster": "dart"}, "exported with booster 'gbtree'"),
        ("xgboost", {"objective": "binary:logitraw"}, "logitraw"),
        ("xgboost", {"missing": -999.0}, "leave it at NaN"),
        ("catboost", {"grow_policy": "Depthwise"}, "only symmetric trees"),
        ("hist", {"categorical_features": [3]}, "categorical splits"),
    ],
)
def test_what_is_refused(rows, name, options, message):
    make, read, _ = CASES[name]
    X, y = rows
    if options.get("categorical_features"):
        X = X.copy()
        X[:, 3] = y * 3 + np.arange(len(y)) % 2
    with pytest.raises(ValueError, match=message):
        read(make(**options).fit(X, y))


def test_xgboost_stops_where_it_stopped(rows):
    X, y = rows
    model = xgboost(early_stopping_rounds=2, learning_rate=0.9)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    assert len(read_xgboost(model).trees) == model.best_iteration + 1 < 30


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lightgbm", {"objective": "multiclassova"}, "the objective 'multiclass'"),
        ("xgboost", {"multi_strategy": "multi_output_tree"}, "multi_strategy"),
        ("catboost", {"loss_function": "MultiClassOneVsAll"}, "only loss_function 'Multi"),
    ],
)
def test_what_is_refused_of_four_classes(name, options, message):
    make, read, _ = CASES[name]
    with pytest.raises(ValueError, match=message):
        read(make(**options).fit(X4, Y4))
