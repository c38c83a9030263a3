"""Whole models of trees in onnxruntime: decisions, probabilities and votes."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from onnx import checker
from sklearn.tree import DecisionTreeClassifier

import damvi.datasets
from damvi import DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier
from damvi.io import to_onnx, to_sklearn
from damvi.io.onnx_export import STEP
from damvi.io.onnx_models import read_own_trees
from damvi.voters import FastForestClassifier

from .running import agree, feed_of, near, run, weighted
from .tables import FRAMES, FRESH4, NAMES, X4, Y4, classes_of, frame


def test_the_bundled_data():
    data = damvi.datasets.load("mammography")
    model = DAMVIClassifier(n_estimators=50, random_state=0).fit(data.data, data.target)
    said = agree(model, data.data, atol=0)
    assert said["probability"].shape == (len(data.target), 2)
    assert 0 < said["label"].sum() < len(data.target)
    graph = to_onnx(model)
    checker.check_model(graph, full_check=True)
    assert [tensor.name for tensor in graph.graph.input] == ["X"]


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("ok", "größer"), (1.0, 2.0)])
@pytest.mark.parametrize("flipped", [False, True])
def test_labels_of_any_kind_and_either_class_as_positive(table, fresh, labels, flipped):
    X, y = table
    named = np.array(labels)[y]
    positive = sorted(labels)[0 if flipped else 1]
    model = DAMVIClassifier(n_estimators=9, pos_label=positive, random_state=0)
    said = agree(model.fit(X, named), fresh, atol=0)
    assert set(said["label"].tolist()) == set(labels)


def test_other_names_for_the_labels(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, y)
    said = agree(model, X, labels=("no", "yes"))["label"]
    assert said.tolist() == ["yes" if label else "no" for label in model.predict(X)]
    with pytest.raises(ValueError, match="mixed types"):
        to_onnx(model, labels=(0, "yes"))


@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize("rare", [0, 1])
def test_ties_go_where_they_go_in_python(table, pos_label, rare):
    X, y = table
    y = y if rare else 1 - y
    stumps = FastTreeClassifier(max_depth=1)
    model = DAMVIClassifier(
        stumps, n_estimators=4, solver="uniform", pos_label=pos_label, random_state=1
    ).fit(X, y)
    assert (model.vote(X) == 0).any()
    agree(model, X, atol=0)


def test_trees_of_four_classes_vote_the_same_to_the_last_bit():
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X4, NAMES[Y4])
    said = agree(model, FRESH4, atol=0)
    assert said["vote"].shape == said["probability"].shape == (len(FRESH4), 4)
    assert len(set(said["label"].tolist())) > 2
    checker.check_model(to_onnx(model), full_check=True)


@pytest.mark.parametrize("labels", [NAMES, np.arange(4) * 3, np.array([-1.0, 0, 1, 9])])
def test_labels_and_factors_of_four_classes(labels):
    for threshold in ("macro_f1", [1.0, 0.5, 3.0, 7.0]):
        model = DAMVIClassifier(n_estimators=15, threshold=threshold, random_state=0)
        agree(model.fit(X4, labels[Y4]), FRESH4, atol=0)
    said = agree(model, X4, labels=("p", "q", "r", "s"))["label"]
    place = np.searchsorted(labels, model.predict(X4))
    assert said.tolist() == np.array(["p", "q", "r", "s"])[place].tolist()
    with pytest.raises(ValueError, match="2 labels for 4 classes"):
        to_onnx(model, labels=("no", "yes"))


@pytest.mark.parametrize("turn", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_ties_go_to_the_most_frequent(turn):
    model = DAMVIClassifier(
        FastTreeClassifier(max_depth=2), n_estimators=6, solver="uniform", random_state=1
    ).fit(X4, np.array(turn)[Y4])
    vote = model.vote(FRESH4)
    assert ((vote == vote.max(axis=1, keepdims=True)).sum(axis=1) > 1).any()
    said = agree(model, FRESH4, atol=0)
    assert (said["probability"].argmax(axis=1) == model.predict(FRESH4)).all()
    assert (to_sklearn(model).predict(FRESH4) == model.predict(FRESH4)).all()


def test_the_next_double_is_one_step_up():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(10000), 2.0 ** -np.arange(9), [1 / 3, 1 - 2**-53]])
    values = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, 1)])
    np.testing.assert_array_equal(values + values * STEP, np.nextafter(values, np.inf))


@pytest.mark.parametrize("n_classes", [3, 12])
def test_few_and_many_classes(n_classes):
    table, y = classes_of(600, 3)
    y = np.where(y == 0, np.arange(600) % n_classes, y - 1)
    agree(DAMVIClassifier(n_estimators=9, random_state=0).fit(table, y), table, atol=0)
    pool = [("forest", FastForestClassifier(5)), ("tree", FastTreeClassifier(max_depth=4))]
    model = DAMVIVotingClassifier(pool, cv=3, random_state=0).fit(table, y)
    agree(weighted(model, [0.5, 0.5]), table, atol=1e-6)


def test_a_vote_at_a_threshold_of_its_own(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X, y)
    for threshold in np.unique(model.vote(X))[::20]:
        model.set_params(threshold=float(threshold)).reweigh()
        assert (model.vote(X) == model.threshold_).any()
        agree(model, X, atol=0)


def test_values_at_the_thresholds_and_far_beyond():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) * [1.0, 1e300, 1e-300]
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 2]) * 1e300 > 1.5
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    forest, binning = model.voters_.forest, model.voters_.features.binning
    trees = read_own_trees(forest, binning, forest.shares[:, 1])
    rows = []
    for f in range(3):
        values = near(trees.threshold[trees.feature == f])
        more = X[np.arange(len(values)) % len(X)].copy()
        more[:, f] = values
        rows.append(more[np.isfinite(more).any(axis=1)])
    agree(model, np.concatenate(rows), atol=0)


def test_infinity_counts_as_missing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, X[:, 0] > 1)
    holes, far = X.copy(), X.copy()
    far[np.isnan(far)] = np.inf
    graph = to_onnx(model)
    np.testing.assert_array_equal(
        run(graph, {"X": far})["vote"], run(graph, {"X": holes})["vote"]
    )


def test_one_positive_and_constant_columns():
    X = np.column_stack([np.arange(50.0), np.full(50, 3.0), np.full(50, np.nan)])
    model = DAMVIClassifier(n_estimators=5, stratified=True, random_state=0)
    agree(model.fit(X, np.arange(50) == 20), X, atol=0)


def test_a_model_that_learned_nothing():
    X = np.zeros((30, 2))
    model = DAMVIClassifier(n_estimators=3, stratified=True, random_state=0)
    agree(model.fit(X, np.arange(30) < 5), X, atol=0)


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [-7.0, 2.5, 1e300, -0.0]])
def test_categories_in_arrays(values):
    rng = np.random.default_rng(0)
    kind = rng.choice(values, 400)
    X = np.column_stack([kind, rng.standard_normal(400)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (kind == values[1]) & (rng.random(400) < 0.4)
    tree = FastTreeClassifier(categorical_features=[0])
    model = DAMVIClassifier(tree, n_estimators=10, random_state=0).fit(X, y)
    X[:100, 0] = 0.5  # nobody knows it
    agree(model, X, atol=0)


@pytest.mark.parametrize(
    ("n_classes", "library"), [(2, "pandas"), (2, "polars"), (4, "pandas")]
)
def test_frames_with_categories_missing_and_unknown(n_classes, library):
    X, y = FRAMES[n_classes](500, seed=0)
    fresh, _ = FRAMES[n_classes](500, seed=1, surprises=True)
    if library == "polars":
        X, fresh = as_polars(X), as_polars(fresh)
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    assert model.voters_.forest.on_categories.any()
    agree(model, fresh, atol=0)


def as_polars(X):
    columns = {
        name: pl.Series(name, X[name].astype(object).where(X[name].notna(), None).to_list())
        for name in X.columns
        if name != "grade"
    }
    categories = [name for name in columns if columns[name].dtype == pl.String]
    return pl.DataFrame(columns).with_columns(pl.col(categories).cast(pl.Categorical))


def test_frames_of_numbers_have_an_input_a_column(table, fresh):
    names = ["x", "vote", "vote_", "TreeEnsemble"]
    X = pd.DataFrame(table[0], columns=names)
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, table[1])
    agree(model, pd.DataFrame(fresh, columns=names), atol=0)
    inputs = [tensor.name for tensor in to_onnx(model).graph.input]
    assert inputs == ["x", "vote__", "vote_", "TreeEnsemble"]


def test_categories_of_columns_without_names():
    X, y = frame(300, seed=0)
    X.columns = range(X.shape[1])
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, y)
    graph = to_onnx(model)
    said = run(graph, feed_of(graph, X.rename(columns=str)))
    np.testing.assert_array_equal(said["vote"], model.vote(X))


def test_what_an_unknown_category_counts_as():
    X, y = frame(400, seed=0)
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    known = X.assign(shop="s0", colour="red").astype({"shop": "category"})
    known["colour"] = pd.Categorical(known["colour"], categories=["red", "blue", "green"])
    graph = to_onnx(model, unknown={"shop": "s0", "colour": None})
    feed = feed_of(graph, known)
    as_known = run(graph, feed)["vote"]
    feed["shop"][:] = "never seen"
    np.testing.assert_array_equal(run(graph, feed)["vote"], as_known)
    np.testing.assert_array_equal(as_known, model.vote(known))


def test_categories_that_no_graph_can_hold():
    X, y = frame(300, seed=0)
    X["day"] = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"] * 150))
    model = DAMVIClassifier(n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'day' has a category .*astype\(str\)"):
        to_onnx(model)


def test_trees_of_scikit_learn_also_from_samples_of_one_class(table, fresh):
    X, y = table
    model = DAMVIClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=12, max_samples=10, random_state=0
    ).fit(X, y)
    kinds = {type(voter).__name__ for voter in model.estimators_}
    assert kinds == {"DecisionTreeClassifier", "DummyClassifier"}
    agree(weighted(model, np.full(12, 1 / 12)), fresh)


def test_without_onnx(table, monkeypatch):
    model = DAMVIClassifier(n_estimators=2, random_state=0).fit(*table)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'damvi\[export\]'"):
        to_onnx(model)
