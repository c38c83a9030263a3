"""Boosted trees read out of other libraries: their raw scores, to the last bit."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from damvi.io.onnx_graph import LEAF
from damvi.io.onnx_models import (
    read_catboost,
    read_hist_boosting,
    read_lightgbm,
    read_xgboost,
)

from .running import near, run_trees


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


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_raw_scores_are_the_same(rows, name):
    make, read, raw = CASES[name]
    X, y = rows
    model = make().fit(X, y)
    boosted = read(model)
    asked = [X, np.where(X > 1, np.nan, X), X * 1e30, X * 1e-30]
    for f in range(4):
        own = (boosted.trees.feature == f) & (boosted.trees.left != LEAF)
        at = near(boosted.trees.threshold[own])
        if boosted.single_values:
            at = np.append(at, near(boosted.trees.threshold[own].astype(np.float32)))
        more = X[np.arange(len(at)) % len(X)].copy()
        more[:, f] = at
        asked.append(more)
    asked = np.concatenate(asked)
    read_as = asked.astype(np.float32).astype(float) if boosted.single_values else asked
    values = run_trees(boosted.trees, read_as)
    dtype = np.float32 if boosted.single_sum else np.float64
    terms = np.column_stack([np.full(len(asked), boosted.start[0]), values]).astype(dtype)
    total = np.cumsum(terms, axis=1)[:, -1] * dtype(boosted.slope) + dtype(boosted.bias[0])
    np.testing.assert_array_equal(total, raw(model, asked))


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
        ("lightgbm", {"zero_as_missing": True}, "zeros as missing"),
        ("lightgbm", {"linear_tree": True}, "linear models"),
        ("xgboost", {"booster": "dart"}, "only booster 'gbtree'"),
        ("xgboost", {"objective": "binary:logitraw"}, "logitraw"),
        ("xgboost", {"missing": -999.0}, "leave that at NaN"),
        ("catboost", {"grow_policy": "Depthwise"}, "only symmetric trees"),
        ("hist", {"categorical_features": [3]}, "categories of its own"),
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
