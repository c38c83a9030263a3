"""What is loaded is what was saved, to the last bit, for two classes and for more."""

import json
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi import (
    DAMVIClassifier,
    DAMVIVotingClassifier,
    FastTreeClassifier,
    load,
    save,
)
from damvi.certificate import certify
from damvi.io import ModelFileError, summarize
from damvi.io.container import SKLEARN
from damvi.io.files import ATTRIBUTES
from damvi.model import Model
from damvi.tables import Target
from damvi.voters import FastForestClassifier

from .models import (
    DATA,
    NAMES,
    POOL,
    X4,
    Y4,
    X,
    Y,
    frame,
    same,
    small_strong_pool,
    whole_model,
    with_holes,
)

HOLES = with_holes(X)
NOT_SAVED = {"votes_", "slow_votes_", "seconds_", "left_out_", "estimators_used_"}
METHODS = ("cast_votes", "vote", "decision_function", "predict", "predict_proba")


def without_addresses(shown):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(shown))


def check(model, X, tmp_path, **options):
    path = tmp_path / "model.damvi"
    save(model, path, **options)
    loaded = load(path, **options)
    for method in METHODS:
        same(getattr(model, method)(X), getattr(loaded, method)(X))
    kept = vars(model).keys() - NOT_SAVED
    for name in kept - {"voters_", "decision_", "labels_", "estimator", "estimators"}:
        same(getattr(model, name), getattr(loaded, name))
    for name in ("tuning_", "oob_decision_function_"):
        same(getattr(model, name), getattr(loaded, name))
    assert kept == vars(loaded).keys()
    try:
        same(model.feature_importances_, loaded.feature_importances_)
    except AttributeError:
        with pytest.raises(AttributeError, match="have no feature_importances_"):
            loaded.feature_importances_  # noqa: B018
    if not isinstance(model.random_state, np.random.RandomState):  # shows its address
        assert without_addresses(loaded) == without_addresses(model)
        params = [clone(one).get_params() for one in (loaded, model)]
        assert without_addresses(params[0]) == without_addresses(params[1])
    with pytest.raises(AttributeError, match="fit it again"):
        loaded.reweigh(shrinkage=0.1)
    again = tmp_path / "again.damvi"
    save(model, again, **options)
    return loaded, path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("table", "labels"),
    [
        (X, Y),
        (HOLES, Y.astype(bool)),
        (HOLES, np.where(Y, "fraud", "fine")),
        (X.astype(np.float32), np.where(Y, -1.0, 2.0)),
        (frame(), np.where(Y, "yes", "nö").astype(object)),
        (pl.from_pandas(frame()[["x 0", "x 1", "names"]]), Y),
        (frame().drop(columns=["names", "sizes"]), Y),
        (X4, Y4),
        (with_holes(X4), NAMES[Y4]),
        (X4.astype(np.float32), Y4 - 2.0),
        (frame(X4), NAMES[Y4].astype(object)),
    ],
)
def test_built_in_trees(table, labels, tmp_path):
    model = DAMVIClassifier(n_estimators=15, random_state=0).fit(table, labels)
    loaded, is_repeatable = check(model, table, tmp_path)
    assert is_repeatable
    known = set(ATTRIBUTES) | model.get_params().keys()
    known |= {"labels_", "classes_", "pos_label_", "decision_", "votes_"}
    assert vars(model).keys() <= known
    if len(model.classes_) > 2:
        assert loaded.vote(table).shape == loaded.oob_decision_function_.shape == (400, 4)
    for ours, theirs in zip(model.estimators_, loaded.estimators_, strict=True):
        if isinstance(table, np.ndarray):  # the voters know no names of columns
            same(ours.predict_proba(table), theirs.predict_proba(table))
        assert ours.get_depth() == theirs.get_depth()


def test_unknown_categories_and_missing_columns_after_loading(tmp_path):
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(frame(), Y)
    loaded, _ = check(model, frame(), tmp_path)
    strange = frame()
    strange["names"] = strange["names"].cat.rename_categories({"a": "new"})
    same(model.vote(strange), loaded.vote(strange))
    with pytest.raises(ValueError, match="sizes"):
        loaded.vote(frame().drop(columns="sizes"))


TREE = FastTreeClassifier(max_depth=2, categorical_features=[0, 3])


@pytest.mark.parametrize(
    ("n_classes", "options"),
    [
        (2, {"random_state": np.random.RandomState(3)}),
        (2, {"estimator": TREE}),
        (2, {"threshold": {"cost": (1, 20)}, "votes": "oob", "stratified": True}),
        (2, {"threshold": {"fbeta": 2.0}, "pos_label": np.int64(0), "solver": "uniform"}),
        (2, {"threshold": -0.25, "bootstrap": False, "max_samples": 100}),
        (2, {"warm_start": True}),
        (4, {"threshold": "macro_f1", "votes": "oob", "stratified": True}),
        (4, {"threshold": [1.0, 2.0, 0.5, 3.0], "warm_start": True}),
        (4, {"estimator": TREE}),
        (4, {"estimator": DecisionTreeClassifier(max_features=2), "solver": "uniform"}),
    ],
)
def test_settings(n_classes, options, tmp_path):
    table, labels = DATA[n_classes]
    table = table.copy()
    table[:, [0, 3]] = np.round(table[:, [0, 3]])
    model = DAMVIClassifier(**{"n_estimators": 8, "random_state": 0, **options})
    check(model.fit(table, labels), table, tmp_path)


def test_a_warm_start_goes_on_after_loading(tmp_path):
    model = DAMVIClassifier(n_estimators=8, warm_start=True, random_state=0).fit(X, Y)
    loaded, _ = check(model, X, tmp_path)
    for one in (model, loaded):
        one.set_params(n_estimators=12).fit(X, Y)
    same(model.vote(X), loaded.vote(X))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_certificate_still_knows_the_training_rows(n_classes, tmp_path):
    X, labels = DATA[n_classes]
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(X, labels)
    loaded, _ = check(model, X, tmp_path)
    with pytest.raises(ValueError, match="include training rows"):
        certify(loaded, X, labels)


def test_bagged_trees_of_scikit_learn(tmp_path):
    # 4 positives: some samples hold one class only, and their voter is a constant.
    few = np.flatnonzero((np.cumsum(Y) <= 4) | (Y == 0))
    voter = DecisionTreeClassifier(max_features=2)
    model = DAMVIClassifier(voter, n_estimators=10, max_samples=0.2, random_state=1)
    model.fit(HOLES[few], Y[few])
    assert {type(one).__name__ for one in model.estimators_} == {
        "DecisionTreeClassifier",
        "DummyClassifier",
    }
    _, is_repeatable = check(model, HOLES, tmp_path)
    assert is_repeatable


@pytest.mark.parametrize(
    "voter", [None, DecisionTreeClassifier(max_depth=3), LogisticRegression()]
)
def test_a_class_that_some_samples_miss(voter, tmp_path):
    few = np.flatnonzero((Y4 != 2) | (np.cumsum(Y4 == 2) <= 2))
    model = DAMVIClassifier(voter, n_estimators=6, max_samples=0.1, random_state=1)
    with pytest.warns(UserWarning, match="drew none of the"):
        model.fit(X4[few], NAMES[Y4[few]])
    check(model, X4, tmp_path)


@pytest.fixture(scope="module")
def strong():
    """Trained once."""
    pool = small_strong_pool()
    return DAMVIVotingClassifier(pool, cv=2, shrinkage=0.5, random_state=0).fit(frame(), Y)


@pytest.mark.slow
def test_the_strong_pool(strong, tmp_path):
    assert len(strong.estimators_) >= 9
    loaded, _ = check(strong, frame(), tmp_path)
    for (_, ours), theirs in zip(strong.estimators, loaded.estimators_, strict=True):
        assert repr(ours) == repr(clone(theirs).set_params(**ours.get_params()))
    for name, ours, theirs in zip(
        strong.voters_.names, strong.estimators_, loaded.estimators_, strict=True
    ):
        assert type(ours) is type(theirs)
        same(ours.predict_proba(frame()), theirs.predict_proba(frame()))
        if hasattr(ours, "steps") and hasattr(ours[-1], "feature_importances_"):
            same(ours[-1].feature_importances_, theirs[-1].feature_importances_), name


@pytest.mark.slow
def test_the_strong_pool_of_many_classes(tmp_path):
    table, pool = frame(X4), small_strong_pool()
    model = DAMVIVotingClassifier(pool, cv=2, shrinkage=0.5, random_state=0)
    loaded, _ = check(model.fit(table, NAMES[Y4]), table, tmp_path)
    for ours, theirs in zip(model.estimators_, loaded.estimators_, strict=True):
        assert type(ours) is type(theirs)
        same(ours.predict_proba(table), theirs.predict_proba(table))


def test_boosters_that_have_missed_a_class(tmp_path):
    """A class of one row: boosters without it learn other numbers than they stand for."""
    labels = np.where(Y4 == 1, 0, Y4)
    labels[np.flatnonzero(labels == 0)[0]] = 1
    for name, voter in small_strong_pool():
        if "boost" in name or name == "lightgbm":
            model = DAMVIClassifier(voter, n_estimators=3, max_samples=0.5, random_state=0)
            with pytest.warns(UserWarning, match="drew none of the"):
                model.fit(X4, labels)
            assert "Relabelled" in {type(one).__name__ for one in model.estimators_}
            check(model, X4, tmp_path)


@pytest.mark.slow
def test_the_strong_pool_needs_no_skops(strong, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    check(strong, frame(), tmp_path)


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
def test_a_booster_that_is_not_there_is_named(strong, package, tmp_path, monkeypatch):
    if package not in strong.voters_.names:
        pytest.skip(f"{package} is not installed")
    save(strong, tmp_path / "model.damvi")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        load(tmp_path / "model.damvi")


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options",
    [
        {"voting": "hard"},
        {"calibration": None, "threshold": "vote"},
        {"calibration": "isotonic"},
        {"cv": StratifiedKFold(3, shuffle=True, random_state=1)},
    ],
    ids=str,
)
def test_pools(n_classes, options, tmp_path):
    X, labels = DATA[n_classes]
    extra_trees = FastForestClassifier(5, splitter="random", bootstrap=False)
    pool = [*POOL, ("forest", FastForestClassifier(5)), ("extra_trees", extra_trees)]
    pool = [*pool, ("tree", FastTreeClassifier(splitter="random"))]
    model = DAMVIVotingClassifier(pool, **{"cv": 3, "random_state": 0, **options})
    check(model.fit(X, NAMES[labels]), X, tmp_path)


def test_a_prefit_pool_with_a_model_of_fewer_classes(tmp_path):
    names = NAMES[Y4]
    known = names != "lost"
    pool = [
        ("all", LogisticRegression().fit(X4, names)),
        ("some", GaussianNB().fit(X4[known], names[known])),
    ]
    model = DAMVIVotingClassifier(pool, cv="prefit", random_state=0).fit(X4, names)
    check(model, X4, tmp_path)


def test_a_prefit_pool_is_stored_once(tmp_path):
    forest = FastForestClassifier(50, random_state=0).fit(X, Y)
    alone = DAMVIVotingClassifier([("forest", forest)], cv="prefit", random_state=0)
    loaded, _ = check(alone.fit(X[:200], Y[:200]), X, tmp_path)
    assert loaded.estimators_[0] is loaded.estimators[0][1]


NUMBERS = np.abs(np.round(X))
STEPS = {
    "FunctionTransformer": {"func": np.log1p},
    "OneHotEncoder": {"handle_unknown": "ignore"},
    "OrdinalEncoder": {"handle_unknown": "use_encoded_value", "unknown_value": -1},
}


@pytest.mark.parametrize("name", sorted(SKLEARN))
def test_estimators_of_scikit_learn(name, tmp_path, monkeypatch):
    """All that are on the list, without skops."""
    monkeypatch.setitem(sys.modules, "skops", None)
    estimator = getattr(import_module(SKLEARN[name]), name)
    apart = (
        "Fold",
        "TimeSeriesSplit",
        "Label",
        "ColumnTransformer",
        "Union",
        "Pipeline",
        "CategoricalNB",
        "Missing",
    )
    if any(word in name for word in apart):
        pytest.skip("no voter, and no step by itself")
    voter = estimator(**STEPS.get(name, {}))
    if not is_classifier(voter):
        voter = make_pipeline(voter, LogisticRegression(max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some do not converge, or find collinear columns
        model = DAMVIVotingClassifier([("one", voter)], cv=2, random_state=0)
        model.fit(NUMBERS, Y)
        check(model, NUMBERS, tmp_path)


class Mine(GaussianNB):
    """A classifier that no list knows."""


def test_unknown_types_are_named_and_can_be_trusted(tmp_path):
    model = DAMVIVotingClassifier([("my own", Mine()), *POOL], cv=2, random_state=0).fit(
        X, Y
    )
    path = tmp_path / "model.damvi"
    kind = f"{Mine.__module__}.Mine"
    complaint = r"voter 'my own' .*test_round_trips\.Mine.*trusted="
    with pytest.raises(ModelFileError, match=complaint):
        save(model, path)
    assert not path.exists()
    check(model, X, tmp_path, trusted=[kind])
    with pytest.raises(ModelFileError, match=r"could run code.*trusted"):
        load(path)


def test_compiled_indices_that_nobody_checks_are_not_taken(tmp_path):
    voter = KNeighborsClassifier()
    model = DAMVIVotingClassifier([("near", voter), *POOL], cv=2, random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"voter 'near' .*KNeighborsClassifier"):
        save(model, tmp_path / "model.damvi")
    named = ["sklearn.neighbors._classification.KNeighborsClassifier"]
    with pytest.raises(ModelFileError, match=r"voter 'near' .*KDTree"):
        save(model, tmp_path / "model.damvi", trusted=named)
    with pytest.raises(ModelFileError, match=r"voter 'near' "):
        save(model, tmp_path / "model.damvi")


def test_what_cannot_be_saved_says_so(tmp_path):
    path = tmp_path / "model.damvi"
    with pytest.raises(ModelFileError, match="not fitted"):
        save(DAMVIClassifier(), path)
    with pytest.raises(
        ModelFileError, match="DAMVIVotingClassifier can be saved, not GaussianNB"
    ):
        save(GaussianNB(), path)
    odd = GaussianNB()
    odd.predict = lambda X: X
    model = DAMVIClassifier(n_estimators=2, random_state=0).fit(X, Y)
    model.estimator = odd
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_whole_model(n_classes, tmp_path):
    model, path = whole_model(n_classes), tmp_path / "model.damvi"
    table = frame(DATA[n_classes][0])
    save(model, path)
    loaded = load(path)
    same(model.classifier.predict_proba(table), loaded.classifier.predict_proba(table))
    assert loaded.schema == model.schema
    assert loaded.target == model.target
    for name in ("hashes", "vote", "labels"):
        same(getattr(model.training, name), getattr(loaded.training, name))
    assert repr(loaded.scores) == repr(model.scores)
    assert loaded.made == model.made
    summary = summarize(path)
    assert summary["format"] == 1
    json.dumps(summary, allow_nan=False)
    if n_classes == 2:
        assert loaded.training.positive is loaded.training.labels
        assert summary["target"]["positives"] == model.training.labels.sum()
        return
    with pytest.raises(ValueError, match="use labels"):
        loaded.training.positive  # noqa: B018
    assert summary["positive"] is None
    by_class = summary["target"]["classes"]
    assert [one["label"] for one in by_class] == NAMES.tolist()
    assert sum(one["rows"] for one in by_class) == summary["target"]["rows"]
    assert len(summary["threshold"]["value"]) == 4


def test_a_target_of_other_classes_is_not_saved(tmp_path):
    model = whole_model(4)
    odd = Model(model.classifier, model.schema, Target("x", "no", "yes"), model.training)
    with pytest.raises(ModelFileError, match="has 2 labels, but the classifier has 4"):
        save(odd, tmp_path / "model.damvi")


def test_a_file_gives_back_what_was_put_in(tmp_path):
    model, path = whole_model(), tmp_path / "model.damvi"
    for one in (model, model.classifier):
        save(one, path)
        assert type(load(path)) is type(one)


@pytest.mark.slow
def test_the_same_in_another_process(tmp_path):
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(HOLES, Y)
    save(model, tmp_path / "model.damvi")
    np.save(tmp_path / "x.npy", HOLES)
    code = (
        "import sys, numpy as np, damvi\n"
        "model = damvi.load(sys.argv[1] + '/model.damvi')\n"
        "np.save(sys.argv[1] + '/y.npy', model.vote(np.load(sys.argv[1] + '/x.npy')))\n"
        "print([m for m in ('skops', 'lightgbm') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(damvi.__file__).parent.parent)},
    )
    assert run.stdout.strip() == "[]"
    same(np.load(tmp_path / "y.npy"), model.vote(HOLES))


def test_no_warning_for_the_same_versions_and_one_for_others(tmp_path, monkeypatch):
    from damvi.io import files

    path = tmp_path / "model.damvi"
    voter = DecisionTreeClassifier(max_depth=2)
    model = DAMVIClassifier(voter, n_estimators=3, random_state=0).fit(X, Y)
    save(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)
    real = files._installed
    monkeypatch.setattr(
        files, "_installed", lambda name: "0.21.3" if "learn" in name else real(name)
    )
    with pytest.warns(
        UserWarning, match=r"scikit-learn \d.* \(installed: 0\.21\.3\)"
    ) as caught:
        load(path)
    assert len(caught) == 1
    save(DAMVIClassifier(n_estimators=3, random_state=0).fit(X, Y), path)
    monkeypatch.setattr(files, "_installed", real)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)  # arrays of our own are the same with any release


@pytest.mark.parametrize(
    "model",
    [
        DAMVIClassifier(n_estimators=10, unlabeled_weight=0.5, votes="oob", random_state=0),
        DAMVIVotingClassifier(POOL, unlabeled_weight=0.5, cv=3, random_state=0),
    ],
)
def test_models_that_learned_from_unlabelled_rows(model, tmp_path):
    model.fit(X4[:150], Y4[:150] > 1, X_unlabeled=X4[150:])
    assert len(model.row_hashes_) == 400
    loaded, _ = check(model, X4, tmp_path)
    with pytest.raises(ValueError, match="include training rows"):
        certify(loaded, X4[150:], Y4[150:] > 1)
