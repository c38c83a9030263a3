"""Boosters in model files: the same to the bit, and checked before their library sees them.

Files hold columns of numbers, so there is no text of LightGBM's or XGBoost's to forge:
what was an attack on their readers is here an array or a number that does not fit.
"""

import re

import numpy as np
import pandas as pd
import pytest

from damvi import DAMVIClassifier, DAMVIVotingClassifier, load, save
from damvi.io import ModelFileError
from damvi.io.container import array_from_bytes, array_to_bytes

from .models import X4, Y4, X, Y, frame, same, with_holes
from .test_hostile_files import find, flat, opened, refused, sealed
from .test_round_trips import check

THREE = Y + (Y & (X[:, 0] > 0))
SMALL = {
    "lightgbm": {"n_estimators": 3, "num_leaves": 5, "n_jobs": 1, "verbose": -1},
    "xgboost": {"n_estimators": 3, "max_depth": 3, "n_jobs": 1},
    "catboost": {
        "iterations": 3,
        "depth": 3,
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
    },
}
NAMES = {
    "lightgbm": "LGBMClassifier",
    "xgboost": "XGBClassifier",
    "catboost": "CatBoostClassifier",
}


def booster(package, **options):
    library = pytest.importorskip(package)
    return getattr(library, NAMES[package])(**{**SMALL[package], **options})


def round_trip(voter, table, labels, tmp_path):
    """A fitted booster as the only voter, saved and loaded, with the same probabilities."""
    model = DAMVIVotingClassifier(  # a constant of ours would leave a constant one nothing
        [("booster", voter)], cv="prefit", fit_intercept=False, random_state=0
    )
    loaded, _ = check(model.fit(table, labels), table, tmp_path)
    again = loaded.estimators_[0]
    same(voter.predict_proba(table), again.predict_proba(table))
    same(voter.feature_importances_, again.feature_importances_)
    return again


def with_categories(n_classes):
    """A table whose categories matter, of texts and of numbers, with holes."""
    table, labels = (X, Y) if n_classes == 2 else (X4, Y4)
    rng = np.random.RandomState(0)
    columns = frame(with_holes(table)).drop(columns="sizes")
    columns.columns = [re.sub(r"\W", "_", name) for name in columns.columns]
    columns["names"] = columns["names"].cat.rename_categories({"ç <i>": "ç"})
    columns["many"] = pd.Categorical(rng.randint(-3, 30, len(labels)))
    odd = (columns["many"].astype(float) % 3 == 1) | (columns["names"] == "a")
    return columns, np.where(odd & (rng.rand(len(labels)) < 0.9), n_classes - 1, labels)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("lightgbm", {}),
        ("lightgbm", {"min_child_samples": 10_000}),
        ("lightgbm", {"boosting_type": "dart"}),
        ("xgboost", {}),
        ("xgboost", {"num_parallel_tree": 2, "subsample": 0.5}),
        ("xgboost", {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0}),
        ("catboost", {}),
    ],
    ids=str,
)
def test_the_same_to_the_bit(package, options, n_classes, tmp_path):
    table, labels = (X, Y) if n_classes == 2 else (X4, Y4)
    table = with_holes(table)
    round_trip(booster(package, **options).fit(table, labels), table, labels, tmp_path)


@pytest.mark.parametrize("labels", [2.0 * Y, Y == 1, np.where(Y, "ö", "a"), 7 * Y], ids=len)
def test_labels_of_catboost(labels, tmp_path):
    round_trip(booster("catboost").fit(X, labels), X, labels, tmp_path)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_lightgbm_with_categories(n_classes, tmp_path):
    table, labels = with_categories(n_classes)
    voter = booster("lightgbm", min_data_per_group=5, cat_smooth=1.0, max_cat_to_onehot=1)
    voter.fit(table, labels)
    assert re.search(r"num_cat=[1-9]", voter.booster_.model_to_string())
    again = round_trip(voter, table, labels, tmp_path)
    strange = table.assign(names=table["names"].cat.set_categories(["b", "new", "a"]))
    same(voter.predict_proba(strange), again.predict_proba(strange))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_xgboost_with_categories(n_classes, tmp_path):
    """They could not be saved."""
    table, labels = with_categories(n_classes)
    voter = booster("xgboost", enable_categorical=True, max_cat_to_onehot=1)
    voter.fit(table, labels)
    again = round_trip(voter, table, labels, tmp_path)
    other = table.assign(
        names=table["names"].cat.reorder_categories(["b", "a", "ç", "d", "e"])
    )
    same(voter.predict_proba(other), again.predict_proba(other))


def whole_numbers():
    """Categories as CatBoost takes them, beside numbers."""
    rng = np.random.RandomState(0)
    table = pd.DataFrame(with_holes(X), columns=list("abcdef"))
    for name, n in {"two": 2, "also": 2, "few": 5, "many": 60}.items():
        table.insert(len(table.columns) // 2, name, rng.randint(0, n, len(X)))
    odd = (table["many"] % 7 == 0) & (table["few"] > 1) | (table["two"] & table["also"])
    return table, Y ^ (odd & (rng.rand(len(X)) < 0.9)).to_numpy()


def on_whole_numbers(n_classes, **options):
    """A table, its labels, and a CatBoost that is fitted to them."""
    table, labels = whole_numbers()
    labels = labels if n_classes == 2 else labels + (labels & (table["few"] > 2))
    settings = {"iterations": 20, "max_ctr_complexity": 3, **options}
    voter = booster("catboost", **settings)
    voter.fit(table, labels, cat_features=["two", "also", "few", "many"])
    return table, labels, voter


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"depth": 6}, {"one_hot_max_size": 100}, {"max_ctr_complexity": 1}],
    ids=str,
)
def test_catboost_with_categories(n_classes, options, tmp_path):
    """They could not be saved."""
    table, labels, voter = on_whole_numbers(n_classes, **options)
    again = round_trip(voter, table, labels, tmp_path)
    strange = table.assign(many=table["many"] + 50, two=7)
    same(voter.predict_proba(strange), again.predict_proba(strange))


def test_tables_of_catboost_that_are_not_checked_are_not_saved(tmp_path):
    table, labels, voter = on_whole_numbers(2, simple_ctr=["Buckets"])
    model = DAMVIVotingClassifier([("odd one", voter)], cv="prefit").fit(table, labels)
    with pytest.raises(ModelFileError, match=r"'odd one' .*catboost.*'Buckets'"):
        save(model, tmp_path / "model.damvi")


@pytest.mark.parametrize("n_classes", [2, 4])
def test_early_stopping(n_classes, tmp_path):
    table, labels = (X, Y) if n_classes == 2 else (X4, Y4)
    import lightgbm

    stop = [lightgbm.early_stopping(2, verbose=False)]
    one = booster("lightgbm", n_estimators=60)
    one.fit(
        table[:300], labels[:300], eval_X=table[300:], eval_y=labels[300:], callbacks=stop
    )
    two = booster("xgboost", n_estimators=60, early_stopping_rounds=2)
    two.fit(
        table[:300], labels[:300], eval_set=[(table[300:], labels[300:])], verbose=False
    )
    assert 0 < one.best_iteration_ < 60
    assert 0 < two.best_iteration < 58
    assert round_trip(one, table, labels, tmp_path).best_iteration_ == one.best_iteration_
    assert round_trip(two, table, labels, tmp_path).best_iteration == two.best_iteration


def test_boosters_that_are_not_fitted_are_kept_as_options(tmp_path):
    voter = booster("lightgbm")
    model = DAMVIClassifier(voter, n_estimators=2, max_samples=0.5, random_state=0)
    loaded, _ = check(model.fit(X, Y), X, tmp_path)
    assert loaded.estimator.get_params() == voter.get_params()


@pytest.mark.parametrize(
    ("package", "options", "match"),
    [
        ("xgboost", {"booster": "gblinear", "max_depth": None}, "'gblinear'"),
        ("xgboost", {"booster": "dart"}, "'dart'"),
        ("lightgbm", {"linear_tree": True}, "'linear_tree'"),
        (
            "lightgbm",
            {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1},
            "'rf'",
        ),
        ("lightgbm", {"predict_disable_shape_check": True}, "'predict_disable_shape_ch"),
        ("catboost", {"grow_policy": "Depthwise"}, "not symmetric"),
    ],
)
def test_kinds_that_are_not_checked_are_not_saved(package, options, match, tmp_path):
    model = DAMVIVotingClassifier([("odd one", booster(package, **options))], cv=2)
    with pytest.raises(ModelFileError, match=rf"voter 'odd one' .* {package} .*{match}"):
        save(model.fit(X, Y), tmp_path / "model.damvi")


# Hostile files.


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Files with a booster in them, of two classes or three."""
    made = {}

    def of(package, n_classes=2):
        if (package, n_classes) not in made:
            voter = booster(package)
            if package == "xgboost":
                voter.set_params(enable_categorical=True, max_cat_to_onehot=1)
                voter.set_params(feature_types=["q"] * 6 + ["c"])
            table = np.column_stack([X, np.arange(len(X)) % 5])
            labels = (Y ^ (table[:, 6] == 1)) if n_classes == 2 else THREE
            if package == "lightgbm":
                voter.fit(table, labels, categorical_feature=[6])
            else:
                voter.fit(table, labels)
            model = DAMVIVotingClassifier([("booster", voter)], cv="prefit")
            folder = tmp_path_factory.mktemp(package)
            check(model.fit(table, labels), table, folder)
            made[package, n_classes] = (folder / "model.damvi").read_bytes()
        return made[package, n_classes]

    return of


def array(name, change):
    """Change a column of the trained model."""

    def edit(trained, members):
        at = trained[name]["at"]
        members[at] = array_to_bytes(change(array_from_bytes(members[at], at)))

    return edit


def value(**values):
    return lambda trained, members: trained.update(values)


def without(name):
    def edit(trained, members):
        members.pop(trained.pop(name)["at"])

    return edit


COMMON = [
    (value(loss="os", objective="os"), "'os'"),
    (value(names=["a"]), "corrupt|invalid content"),
]
CASES = {
    "lightgbm": [
        *COMMON,
        (array("left_child", flat(0, 0)), "children before"),
        (array("left_child", flat(0, 99)), "children out of range"),
        (array("right_child", flat(0, -99)), "children out of range"),
        (
            array("left_child", lambda a: a.astype(np.float64)),
            "left_child has dtype float64",
        ),
        (array("left_child", lambda a: a[:0]), "left_child has shape"),
        (array("threshold", lambda a: a[:-1]), "threshold has shape"),
        (array("threshold", flat(0, np.nan)), "threshold has numbers out of range"),
        (array("threshold", lambda a: a * 0 + 0.5), "sets out of range"),
        (array("threshold", lambda a: a * 0 + 7), "sets out of range"),
        (array("leaf_value", flat(0, np.inf)), "leaf_value has numbers out of range"),
        (array("leaf_value", lambda a: a[:1]), "leaves"),
        (array("split_feature", flat(0, 999)), "features out of range"),
        (array("split_feature", flat(0, -1)), "features out of range"),
        (array("decision_type", flat(0, 12)), "unknown kind of splits"),
        (array("decision_type", lambda a: a | 1), "sets out of range"),
        (array("n_leaves", flat(0, 100_000)), "leaves out of range"),
        (array("n_leaves", flat(0, -5)), "leaves out of range"),
        (array("n_leaves", flat(0, 2**62)), "leaves out of range"),
        (array("n_leaves", lambda a: a[:0]), "no leaves"),
        (array("n_sets", flat(0, 50)), "sets"),
        (array("set_words", flat(0, 10**9)), "set sizes out of range"),
        (array("cat_threshold", lambda a: a[:0]), "set sizes"),
        (array("shrinkage", flat(0, np.nan)), "shrinkage"),
        (array("classes", lambda a: a[:1]), "number of classes"),
        (array("classes", lambda a: np.arange(5)), "number of classes"),
        (array("classes", lambda a: a * 0), "duplicate classes"),
        (value(width=0), "number of classes"),
        (value(width=2), "objective for other classes"),
        (value(width=3_000_000), "number of classes: 3000000"),
        (value(objective="multiclass num_class:4 num_class:3000000"), "objective"),
        (value(objective="binary\rnum_class=9"), "objective"),
        (value(sigmoid=-1.0), "sigmoid"),
        (value(names=["a b", *"cdefgh"]), "feature names"),
        (value(names=["a\rb", *"cdefgh"]), "feature names"),
        (value(names=["a=1\nTree=0", *"cdefgh"]), "feature names"),
        (value(best_iteration=10**6), "best iteration"),
        (value(categories=[1]), "categories"),
        (without("leaf_count"), "missing 'leaf_count'"),
    ],
    "xgboost": [
        *COMMON[:1],
        (array("left_children", flat(0, 0)), "children before"),
        (array("left_children", flat(0, 99_999)), "children outside"),
        (array("left_children", flat(0, -7)), "children before"),
        (array("left_children", flat(0, -1)), "one child"),
        (array("right_children", lambda a: a[:-1]), "right_children has shape"),
        (array("parents", flat(1, 5)), "inconsistent parents"),
        (array("split_indices", flat(0, 99_999_999)), "features out of range"),
        (array("split_indices", lambda a: a.astype(np.int64)), "has dtype int64"),
        (array("split_type", lambda a: a * 0 + 1), "categorical splits without categories"),
        (array("split_type", lambda a: a * 0), "categorical splits without categories"),
        (array("default_left", flat(0, 2)), "default_left"),
        (array("split_conditions", flat(0, np.nan)), "split_conditions"),
        (array("n_nodes", flat(0, 10**6)), "nodes out of range"),
        (array("n_nodes", lambda a: a[:-1]), "nodes do not add up"),
        (
            array("categories", lambda a: np.full_like(a, 2**31 - 1)),
            "categories out of range",
        ),
        (array("categories", lambda a: -a - 1), "categories out of range"),
        (array("categories_nodes", flat(0, 10**6)), "sets of wrong nodes"),
        (array("categories_sizes", flat(0, 10**6)), "set sizes"),
        (array("n_sets", flat(0, 10**6)), "sets out of range"),
        (array("of_class", flat(0, 3)), "wrong classes|wrong number of trees"),
        (array("start", flat(0, np.nan)), "base scores"),
        (array("start", lambda a: np.tile(a, 2)), "base scores for other classes"),
        (value(n_classes=10**7), "number of classes: 10000000"),
        (value(width=100_000), "number of classes: 100000"),
        (value(n_features=10**9), "features: 1000000000"),
        (value(n_features=3), "types|names"),
        (value(n_parallel=0), "trees per round"),
        (value(n_parallel=2), "missing trees"),
        (value(best_iteration=3), "best iteration"),
        (value(types=["q"] * 6 + ["x"]), "feature types"),
        (value(known=[["a", "a"]] + [None] * 6), "categories"),
        (value(known=["ab"]), "categories"),
    ],
    "catboost": [
        *COMMON,
        (array("splits", flat(0, -1)), "borders out of range"),
        (array("splits", flat(0, 10**6)), "borders out of range"),
        (array("n_borders", flat(0, 10**6)), "borders out of range"),
        (array("n_borders", lambda a: a[:-1]), "borders has shape"),
        (array("borders", lambda a: a[::-1].copy()), "borders out of order"),
        (array("borders", flat(0, np.nan)), "borders"),
        (array("borders", flat(-1, 1e300)), "borders out of range"),
        (array("depth", flat(0, 17)), "questions"),
        (array("depth", flat(0, -1)), "questions out of range"),
        (array("depth", lambda a: a[:-1]), "questions do not add up"),
        (array("leaf_values", lambda a: a[:-1]), "leaf_values has shape"),
        (array("leaf_values", flat(0, np.inf)), "leaf_values has numbers"),
        (array("leaf_weights", lambda a: a[:-1]), "leaf_weights has shape"),
        (array("bias", lambda a: np.zeros(2)), "bias"),
        (array("bias", lambda a: np.zeros(300)), "bias"),
        (array("bias", flat(0, np.inf)), "bias"),
        (value(scale={"is": "float", "value": "nan"}), "bias"),
        (array("classes", lambda a: np.arange(300)), "number of classes"),
        (value(missing=[3] * 7), "missing"),
        (value(has_nans=["x"] * 7), "has_nans"),
    ],
}


@pytest.mark.parametrize(
    ("package", "change", "match"),
    [(package, *case) for package, cases in CASES.items() for case in cases],
)
def test_hostile_columns(content, package, change, match, tmp_path):
    said, members = opened(content(package), tmp_path)
    change(find(said["classifier"]["fitted"], NAMES[package])["trained"], members)
    refused(sealed(said, members), tmp_path, match)


@pytest.fixture(scope="module", params=[2, 3])
def categories(request, tmp_path_factory):
    """A file with a CatBoost in it that has tables of categories."""
    table, labels, voter = on_whole_numbers(request.param)
    model = DAMVIVotingClassifier([("booster", voter)], cv="prefit").fit(table, labels)
    path = tmp_path_factory.mktemp("categories") / "model.damvi"
    save(model, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (array("categorical", flat(0, -1)), "categorical features out of range"),
        (array("categorical", flat(-1, 10)), "categorical features out of range"),
        (array("categorical", lambda a: a[::-1].copy()), "categorical features out of o"),
        (array("categorical", lambda a: a[:-1]), "has_nans|values"),
        (array("categorical", lambda a: a[:0]), "no categorical features"),
        (without("categorical"), "has_nans"),
        (array("n_values", flat(0, 10**6)), "values out of range"),
        (array("values", lambda a: a.astype(np.int64)), "values has dtype int64"),
        (array("values", lambda a: a[:-1]), "values"),
        (array("table_kinds", flat(0, 2)), "unknown kind of tables"),
        (array("table_kinds", flat(0, -1)), "unknown kind of tables"),
        (array("table_kinds", lambda a: 1 - a), "counts|classes of rates"),
        (array("table_kinds", lambda a: a[:-1]), "has shape"),
        (array("n_elements", flat(0, 0)), "elements out of range"),
        (array("n_elements", flat(0, 2**62)), "elements out of range"),
        (array("elements", flat(0, -1)), "elements out of range"),
        (array("elements", flat(0, 10**6)), "elements out of range"),
        (array("elements", lambda a: a * 0), "duplicate tables"),
        (array("elements", lambda a: a[::-1].copy()), "elements out of order"),
        (array("n_hashes", flat(0, 0)), "hashes out of range"),
        (array("n_hashes", lambda a: a[::-1].copy()), "hashes|counts"),
        (array("hashes", lambda a: a[:-1]), "hashes do not add up|hashes out of range"),
        (array("hashes", lambda a: a * np.uint64(0)), "hashes out of order"),
        (array("hashes", flat(-1, 2**64 - 1)), "hashes out of range"),
        (array("hashes", lambda a: a.astype(np.int64)), "hashes has dtype int64"),
        (array("counts", lambda a: a[:-1]), "counts has shape"),
        (array("counts", lambda a: np.append(a, a[:1])), "counts has shape"),
        (array("counts", lambda a: a.astype(np.int64)), "counts has dtype int64"),
        (array("counts", flat(0, -1)), "counts out of range"),
        (array("counts", lambda a: np.full_like(a, 2**31 - 1)), "counts out of range"),
        (array("totals", flat(0, -1)), "totals out of range"),
        (array("totals", flat(0, 2**40)), "totals out of range"),
        (array("rate_tables", flat(0, -1)), "tables out of range"),
        (array("rate_tables", flat(0, 10**6)), "tables out of range"),
        (array("rate_classes", flat(0, -1)), "classes of rates out of range"),
        (array("rate_classes", flat(0, 2)), "classes of rates out of range"),
        (array("priors", flat(0, np.nan)), "priors has numbers out of range"),
        (array("priors", flat(0, 1e300)), "priors out of range"),
        (array("priors", flat(1, 0.0)), "priors out of range"),
        (array("priors", lambda a: a[:-1]), "priors has shape"),
        (array("n_rate_borders", flat(0, 0)), "rate_borders"),
        (array("rate_borders", flat(0, np.inf)), "rate_borders has numbers out of range"),
        (array("rate_borders", lambda a: a * 0), "rate_borders out of order"),
        (array("splits", flat(0, 10**6)), "borders out of range"),
        (array("borders", lambda a: a[0] + np.arange(len(a)) * 1e-12), "borders out of or"),
        (without("hashes"), "missing 'hashes'"),
        (value(names=["a"] * 9), "has_nans|features out of range"),
        (value(names=[1] * 10), "feature names"),
    ],
)
def test_hostile_tables_of_categories(categories, change, match, tmp_path):
    said, members = opened(categories, tmp_path)
    change(find(said["classifier"]["fitted"], "CatBoostClassifier")["trained"], members)
    refused(sealed(said, members), tmp_path, match)


def test_combinations_of_very_many_categories(categories, tmp_path):
    """They would be written anew for each rate, and fill the memory."""
    said, members = opened(categories, tmp_path)
    trained = find(said["classifier"]["fitted"], "CatBoostClassifier")["trained"]
    array("n_elements", lambda a: np.append(a[:-1], a[-1] + 16))(trained, members)
    array("elements", lambda a: np.append(a, np.full(16, a[-1])))(trained, members)
    refused(sealed(said, members), tmp_path, "elements out of range")


@pytest.mark.parametrize(
    ("options", "name", "change", "match"),
    [
        ({"one_hot_max_size": 100}, "values", lambda a: a * 0, "duplicate values"),
        # CatBoost would look for a free place from the same one, hash after hash.
        ({}, "hashes", lambda a: np.arange(len(a), dtype=a.dtype) << 36, "hashes alike"),
    ],
)
def test_hostile_categories(options, name, change, match, tmp_path):
    table, labels, voter = on_whole_numbers(2, **options)
    model = DAMVIVotingClassifier([("booster", voter)], cv="prefit").fit(table, labels)
    save(model, tmp_path / "model.damvi")
    said, members = opened((tmp_path / "model.damvi").read_bytes(), tmp_path)
    trained = find(said["classifier"]["fitted"], "CatBoostClassifier")["trained"]
    array(name, change)(trained, members)
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("package", "change", "match"),
    [
        ("lightgbm", value(width=4), "number of classes|missing"),
        ("lightgbm", value(width=1), "objective for other classes"),
        ("lightgbm", array("n_leaves", lambda a: a[:-1]), "leaves"),
        ("xgboost", array("of_class", flat(0, 1)), "wrong number of trees|wrong classes"),
        ("xgboost", array("of_class", lambda a: a[:-1]), "classes of trees"),
        ("xgboost", value(width=2), "wrong number of classes"),
        ("xgboost", value(width=4, n_classes=4), "base scores|trees"),
        ("catboost", array("bias", lambda a: np.zeros(4)), "classes"),
        ("catboost", array("bias", lambda a: np.zeros(1)), "classes"),
        ("catboost", array("classes", lambda a: a[[0, 0, 1]]), "duplicate classes"),
    ],
)
def test_hostile_columns_of_three_classes(content, package, change, match, tmp_path):
    said, members = opened(content(package, 3), tmp_path)
    change(find(said["classifier"]["fitted"], NAMES[package])["trained"], members)
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("package", "params", "match"),
    [
        ("lightgbm", {"n_jobs": 10**6}, "its n_jobs is 1000000, which is invalid"),
        ("xgboost", {"n_jobs": 10**6}, "its n_jobs is 1000000"),
        ("catboost", {"thread_count": 10**6}, "its thread_count is 1000000"),
        ("lightgbm", {"num_threads": 10**6}, "its num_threads is 1000000"),
        ("lightgbm", {"n_jobs": "8"}, "its n_jobs is 8"),
        ("lightgbm", {"verbose": "1 num_threads=1000000"}, "not a number or word"),
        ("lightgbm", {"boosting_type": "gbdt\rnum_threads=9"}, "not a number"),
        ("lightgbm", {"machines": "1.2.3.4:5"}, "parameter 'machines'"),
        ("lightgbm", {"max_bin": 10**12}, "'max_bin' is out of range"),
        ("xgboost", {"missing": "x"}, "missing is not a number"),
    ],
)
def test_settings_are_checked_too(content, package, params, match, tmp_path):
    said, members = opened(content(package), tmp_path)
    find(said["classifier"]["fitted"], NAMES[package])["params"].update(params)
    refused(sealed(said, members), tmp_path, match)


def test_threads_are_no_more_than_there_are_cpus(content, tmp_path, monkeypatch):
    said, members = opened(content("lightgbm"), tmp_path)
    find(said["classifier"]["fitted"], "LGBMClassifier")["params"]["n_jobs"] = 999
    path = tmp_path / "model.damvi"
    path.write_bytes(sealed(said, members))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert load(path).estimators_[0].n_jobs == 1
