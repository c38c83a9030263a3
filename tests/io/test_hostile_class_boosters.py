"""Boosters of three classes: what they count by classes is checked, too."""

import numpy as np
import pytest

from damvi import DAMVIClassifier

from .test_hostile_boosters import changed, edit, lightgbm_text
from .test_hostile_files import find, opened, refused, sealed
from .test_round_trips import X, Y, check

LABELS = Y + (Y & (X[:, 0] > 0))


def saved(voter, tmp_path):
    model = DAMVIClassifier([("booster", voter)], cv=2, random_state=0).fit(X, LABELS)
    check(model, X, tmp_path)
    return (tmp_path / "model.damvi").read_bytes()


@pytest.fixture(scope="module")
def by_lightgbm(tmp_path_factory):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
    return saved(voter, tmp_path_factory.mktemp("lightgbm"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.replace("num_class:3", "num_class:3000"), "objective of other"),
        (lambda t: t.replace("num_class:3", ""), "objective of other"),
        (lambda t: t.replace("num_class=3", "num_class=1"), "trees for classes"),
        (lambda t: t.replace("=3\n", "=2\n").replace(":3", ":2"), "number of classes"),
        (lambda t: t.replace("=3\n", "=999\n").replace(":3", ":999"), "number of classes"),
        (lambda t: t.replace("=3\n", "=4\n").replace(":3", ":4"), "missing for some"),
        (lambda t: t.replace("num_class=3", "num_class=-3"), "no number"),
        (lightgbm_text(r"left_child=\S+", "left_child=99"), "children out of range"),
    ],
)
def test_lightgbm(by_lightgbm, change, match, tmp_path):
    refused(changed(by_lightgbm, "LGBMClassifier", change, tmp_path), tmp_path, match)


def test_an_objective_of_many_classes_on_trees_of_two(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
    model = DAMVIClassifier([("booster", voter)], cv=2, random_state=0).fit(X, Y)
    check(model, X, tmp_path)
    content = (tmp_path / "model.damvi").read_bytes()

    def change(text):
        return text.replace("binary sigmoid:1", "multiclass num_class:100000")

    refused(changed(content, "LGBMClassifier", change, tmp_path), tmp_path, "objective of")


def learner(said):
    return said["learner"]


def trees(said):
    return learner(said)["gradient_booster"]["model"]


@pytest.fixture(scope="module")
def by_xgboost(tmp_path_factory):
    xgboost = pytest.importorskip("xgboost")
    voter = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
    return saved(voter, tmp_path_factory.mktemp("xgboost"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda said: trees(said)["tree_info"].__setitem__(0, 3), "trees for other"),
        (lambda said: trees(said)["tree_info"].__setitem__(0, -1), "trees for other"),
        (lambda said: trees(said)["tree_info"].__setitem__(0, 0.5), "no whole number"),
        (lambda said: trees(said)["tree_info"].pop(), "trees for no class"),
        (
            lambda said: learner(said)["learner_model_param"].update(num_class="2"),
            "number of classes",
        ),
        (
            lambda said: learner(said)["learner_model_param"].update(num_class="4"),
            "objective of other classes",
        ),
        (
            lambda said: learner(said)["learner_model_param"].update(num_class="100000"),
            "number of classes",
        ),
        (
            lambda said: learner(said)["learner_model_param"].update(base_score="[1,2]"),
            "starts for other classes",
        ),
        (
            lambda said: learner(said)["objective"].update(
                softmax_multiclass_param={"num_class": "100"}
            ),
            "objective of other classes",
        ),
        (
            lambda said: learner(said)["objective"].pop("softmax_multiclass_param"),
            "objective of other classes",
        ),
    ],
)
def test_xgboost(by_xgboost, change, match, tmp_path):
    content = changed(by_xgboost, "XGBClassifier", edit(change), tmp_path)
    refused(content, tmp_path, match)


@pytest.fixture(scope="module")
def by_catboost(tmp_path_factory):
    catboost = pytest.importorskip("catboost")
    voter = catboost.CatBoostClassifier(
        iterations=2, depth=2, thread_count=1, verbose=False, allow_writing_files=False
    )
    return saved(voter, tmp_path_factory.mktemp("catboost"))


def classes(said):
    return said["model_info"]["class_params"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda said: said.update(scale_and_bias=[1, [0, 0]]), "bias"),
        (lambda said: said.update(scale_and_bias=[1, [0]]), "bias|fit"),
        (lambda said: said.update(scale_and_bias=[1, [0] * 4]), "bias|fit"),
        (lambda said: said.update(scale_and_bias=[1, [0] * 300]), "bias"),
        (lambda said: classes(said)["class_names"].pop(), "names of classes"),
        (lambda said: classes(said).update(class_names=[0, 0, 1]), "names of classes"),
        (lambda said: classes(said).update(class_to_label=[0, 1, 10**6]), "numbers of"),
        (lambda said: classes(said).update(class_to_label=[0]), "numbers of classes"),
        (lambda said: classes(said).update(classes_count=10**6), "number of classes"),
        (lambda said: said["model_info"].pop("class_params"), "broken"),
        (lambda said: said["oblivious_trees"][0]["leaf_values"].pop(), "do not fit"),
        (lambda said: said["oblivious_trees"].pop(), "number of leaves"),
    ],
)
def test_catboost(by_catboost, change, match, tmp_path):
    content = changed(by_catboost, "CatBoostClassifier", edit(change), tmp_path)
    refused(content, tmp_path, match)


@pytest.mark.parametrize("bias", [0.5, [0.0, 0.0], [0.0] * 4, ["x"] * 3, [np.inf] * 3])
def test_the_exact_bias_of_catboost(by_catboost, bias, tmp_path):
    said, members = opened(by_catboost, tmp_path)
    parts = find(said["classifier"]["fitted"], "CatBoostClassifier")["trained"]
    listed = bias if isinstance(bias, float) else {"is": "tuple", "items": bias}
    if isinstance(bias, list) and np.inf in bias:
        listed["items"] = [{"is": "float", "value": "inf"}] * 3
    parts["scale_and_bias"]["items"][1] = listed
    refused(sealed(said, members), tmp_path, "broken")
