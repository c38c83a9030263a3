"""Members by LightGBM, XGBoost and CatBoost: checked before these libraries see them."""

import json
import re

import numpy as np
import pytest

from damvi import DAMVIClassifier, DAMVIVotingClassifier, load_model, save_model
from damvi.io import ModelFileError

from .models import X, Y
from .test_hostile_files import find, opened, refused, sealed
from .test_round_trips import check

THREE = Y + (Y & (X[:, 0] > 0))


def saved(voter, tmp_path, labels=Y):
    model = DAMVIVotingClassifier([("booster", voter)], cv=2, random_state=0).fit(X, labels)
    check(model, X, tmp_path)
    return (tmp_path / "model.damvi").read_bytes()


def changed(content, kind, change, tmp_path):
    """The file with the text of its booster changed, and a digest that fits."""
    said, members = opened(content, tmp_path)
    name = find(said["classifier"]["fitted"], kind)["trained"]["model"]
    text = members[name].decode()
    hostile = change(text)
    assert hostile != text
    return sealed(said, {**members, name: hostile.encode()})


def lightgbm_text(pattern, replacement):
    """Change a line of a tree, and the sizes of the trees with it."""

    def change(text):
        hostile = re.sub(pattern, replacement, text, count=1)
        blocks = re.split(r"(?m)^(?=Tree=\d+$|end of trees$)", hostile)[1:-1]
        sizes = " ".join(str(len(block)) for block in blocks)
        return re.sub(r"tree_sizes=[^\n]*", f"tree_sizes={sizes}", hostile)

    return change


@pytest.fixture(scope="module")
def by_lightgbm(tmp_path_factory):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=5, n_jobs=1, verbose=-1)
    return saved(voter, tmp_path_factory.mktemp("lightgbm"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lightgbm_text(r"left_child=\S+", "left_child=0"), "children before"),
        (lightgbm_text(r"left_child=\S+", "left_child=99"), "children out of range"),
        (lightgbm_text(r"right_child=\S+", "right_child=-99"), "children out of range"),
        (lightgbm_text(r"left_child=\S+", "left_child=1.5"), "no whole number"),
        (lightgbm_text(r"left_child=\S+ ", "left_child="), "numbers for"),
        (lightgbm_text(r"split_feature=\S+", "split_feature=999"), "features out of"),
        (lightgbm_text(r"threshold=\S+", "threshold=nan"), "thresholds are NaN"),
        (lightgbm_text(r"threshold=\S+", "threshold=%s%n"), "what is no number"),
        (lightgbm_text(r"decision_type=\S+", "decision_type=1"), "splits on no"),
        (lightgbm_text(r"leaf_value=[^\n]+", "leaf_value=0.1"), "numbers for"),
        (lightgbm_text(r"num_leaves=\d+", "num_leaves=100000"), "numbers for"),
        (lightgbm_text(r"num_cat=0", "num_cat=5"), "broken"),
        (lightgbm_text(r"is_linear=0", "is_linear=1"), "leaves of no known kind"),
        (lightgbm_text(r"max_feature_idx=\d+", "max_feature_idx=9999"), "names of"),
        (lightgbm_text(r"Tree=1\n", "Tree=0\n"), "broken"),
        (lambda text: text.replace("tree_sizes=", "tree_sizes=1"), "sizes of trees"),
        (lambda text: text[:200], "no trees of LightGBM"),
        (lambda text: "", "no trees of LightGBM"),
    ],
)
def test_lightgbm(by_lightgbm, change, match, tmp_path):
    refused(changed(by_lightgbm, "LGBMClassifier", change, tmp_path), tmp_path, match)


def edit(change):
    """Change the values of a JSON text."""

    def edited(text):
        said = json.loads(text)
        change(said)
        return json.dumps(said)

    return edited


def xgboost_tree(**columns):
    def change(said):
        tree = said["learner"]["gradient_booster"]["model"]["trees"][0]
        for name, value in columns.items():
            tree[name][0] = value

    return edit(change)


@pytest.fixture(scope="module")
def by_xgboost(tmp_path_factory):
    xgboost = pytest.importorskip("xgboost")
    voter = xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1)
    return saved(voter, tmp_path_factory.mktemp("xgboost"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (xgboost_tree(left_children=0, right_children=0), "children before"),
        (xgboost_tree(left_children=99999), "children outside"),
        (xgboost_tree(left_children=-7), "children before"),
        (xgboost_tree(left_children=-1), "one child"),
        (xgboost_tree(left_children=1e300), "no whole number"),
        (xgboost_tree(left_children="x"), "broken"),
        (xgboost_tree(split_indices=99999999), "features out of range"),
        (xgboost_tree(split_type=1), "categories"),
        (xgboost_tree(split_conditions=float("nan")), "split_conditions"),
        (
            edit(
                lambda said: said["learner"]["gradient_booster"]["model"]["trees"][0][
                    "tree_param"
                ].update(num_nodes="100000")
            ),
            "broken",
        ),
        (
            edit(lambda said: said["learner"]["gradient_booster"]["model"]["trees"].pop()),
            "trees missing",
        ),
        (
            edit(lambda said: said["learner"]["gradient_booster"].update(name="dart")),
            "dart",
        ),
        (lambda text: text[:100], "broken"),
        (lambda text: "[" * 100_000, "broken"),
    ],
)
def test_xgboost(by_xgboost, change, match, tmp_path):
    refused(changed(by_xgboost, "XGBClassifier", change, tmp_path), tmp_path, match)


def catboost_split(**values):
    return edit(lambda said: said["oblivious_trees"][0]["splits"][0].update(values))


def catboost_feature(**values):
    return edit(lambda said: said["features_info"]["float_features"][0].update(values))


@pytest.fixture(scope="module")
def by_catboost(tmp_path_factory):
    catboost = pytest.importorskip("catboost")
    voter = catboost.CatBoostClassifier(
        iterations=3, depth=3, thread_count=1, verbose=False, allow_writing_files=False
    )
    return saved(voter, tmp_path_factory.mktemp("catboost"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (catboost_split(split_index=-1), "borders out of range"),
        (catboost_split(split_index=10**6), "borders out of range"),
        (catboost_split(split_type="OneHotFeature"), "splits of no known kind"),
        (catboost_feature(flat_feature_index=10**6), "broken"),
        (catboost_feature(feature_index=10**6), "broken"),
        (catboost_feature(borders=[2.0, 1.0]), "borders out of order"),
        (edit(lambda said: said["oblivious_trees"].pop()), "number of leaves"),
        (edit(lambda said: said["oblivious_trees"][0].update(leaf_values=[1.0])), "fit"),
        (edit(lambda said: said.update(scale_and_bias=[1, [0, 0]])), "bias"),
        (edit(lambda said: said["features_info"].update(ctrs=[])), "no numbers"),
        (lambda text: text[:100], "broken"),
    ],
)
def test_catboost(by_catboost, change, match, tmp_path):
    content = changed(by_catboost, "CatBoostClassifier", change, tmp_path)
    refused(content, tmp_path, match)


def test_kinds_that_are_not_checked_are_not_saved(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    voter = xgboost.XGBClassifier(n_estimators=2, booster="gblinear", n_jobs=1)
    model = DAMVIVotingClassifier([("odd one", voter)], cv=2, random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"voter 'odd one' .* xgboost .*'gblinear'"):
        save_model(model, tmp_path / "model.damvi")


def test_categories_and_early_stopping_of_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    table = X.copy()
    table[:, 0] = np.random.RandomState(0).permutation(40)[np.arange(len(Y)) % 40]
    table[:, 0] += 40 * (Y & (X[:, 1] > 0))
    voter = lightgbm.LGBMClassifier(
        n_estimators=50,
        min_child_samples=5,
        min_data_per_group=5,
        cat_smooth=1.0,
        max_cat_to_onehot=1,
        n_jobs=1,
        verbose=-1,
        random_state=0,
    )
    voter.fit(
        table[:300],
        Y[:300],
        categorical_feature=[0],
        eval_X=table[300:],
        eval_y=Y[300:],
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )
    assert 0 < voter.best_iteration_ < 50
    assert re.search(r"num_cat=[1-9]", voter.booster_.model_to_string())
    model = DAMVIVotingClassifier([("booster", voter)], cv="prefit", random_state=0)
    loaded, _ = check(model.fit(table, Y), table, tmp_path)
    assert loaded.estimators_[0].best_iteration_ == voter.best_iteration_


def test_boosters_that_are_not_fitted_are_kept_as_options(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1)
    model = DAMVIClassifier(voter, n_estimators=2, max_samples=0.5, random_state=0)
    loaded, _ = check(model.fit(X, Y), X, tmp_path)
    assert loaded.estimator.get_params() == voter.get_params()
    assert load_model(tmp_path / "model.damvi").estimator.n_estimators == 2


# What boosters count by classes, with three.


@pytest.fixture(scope="module")
def classes_by_lightgbm(tmp_path_factory):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
    return saved(voter, tmp_path_factory.mktemp("lightgbm"), THREE)


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
def test_lightgbm_of_many_classes(classes_by_lightgbm, change, match, tmp_path):
    refused(
        changed(classes_by_lightgbm, "LGBMClassifier", change, tmp_path), tmp_path, match
    )


def test_an_objective_of_many_classes_on_trees_of_two(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    voter = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
    model = DAMVIVotingClassifier([("booster", voter)], cv=2, random_state=0).fit(X, Y)
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
def classes_by_xgboost(tmp_path_factory):
    xgboost = pytest.importorskip("xgboost")
    voter = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
    return saved(voter, tmp_path_factory.mktemp("xgboost"), THREE)


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
def test_xgboost_of_many_classes(classes_by_xgboost, change, match, tmp_path):
    content = changed(classes_by_xgboost, "XGBClassifier", edit(change), tmp_path)
    refused(content, tmp_path, match)


@pytest.fixture(scope="module")
def classes_by_catboost(tmp_path_factory):
    catboost = pytest.importorskip("catboost")
    voter = catboost.CatBoostClassifier(
        iterations=2, depth=2, thread_count=1, verbose=False, allow_writing_files=False
    )
    return saved(voter, tmp_path_factory.mktemp("catboost"), THREE)


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
def test_catboost_of_many_classes(classes_by_catboost, change, match, tmp_path):
    content = changed(classes_by_catboost, "CatBoostClassifier", edit(change), tmp_path)
    refused(content, tmp_path, match)


@pytest.mark.parametrize("bias", [0.5, [0.0, 0.0], [0.0] * 4, ["x"] * 3, [np.inf] * 3])
def test_the_exact_bias_of_catboost(classes_by_catboost, bias, tmp_path):
    said, members = opened(classes_by_catboost, tmp_path)
    parts = find(said["classifier"]["fitted"], "CatBoostClassifier")["trained"]
    listed = bias if isinstance(bias, float) else {"is": "tuple", "items": bias}
    if isinstance(bias, list) and np.inf in bias:
        listed["items"] = [{"is": "float", "value": "inf"}] * 3
    parts["scale_and_bias"]["items"][1] = listed
    refused(sealed(said, members), tmp_path, "broken")
