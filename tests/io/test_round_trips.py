"""What is loaded is what was saved, to the last bit."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi import DAMVIClassifier, FastTreeClassifier, load_model, save_model
from damvi.certificate import certify
from damvi.io import Model, ModelFileError, Target, Training, load, save
from damvi.io.state import ATTRIBUTES
from damvi.tables import Column, Schema
from damvi.voters import FastForestClassifier, strong_pool

X, Y = make_classification(500, 6, weights=[0.85], random_state=0)
HOLES = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
METHODS = ("cast_votes", "vote", "decision_function", "predict", "predict_proba")


def frame(X=X):
    table = pd.DataFrame(X, columns=[f"x {i}" for i in range(X.shape[1])])
    names = np.array(["a", "b", "ç <i>", "d"])[np.digitize(X[:, 0], [-1, 0, 1])]
    table["names"] = pd.Categorical(names).set_categories(["d", "ç <i>", "a", "b", "e"])
    table["sizes"] = pd.Categorical(np.digitize(X[:, 1], [0, 1]))
    table.loc[::7, "names"] = np.nan
    return table


def same(ours, theirs):
    """Equal in type and in every bit."""
    assert type(ours) is type(theirs)
    if isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.dtype.kind == "O" or ours.tobytes() == theirs.tobytes()
        assert ours.dtype.kind != "O" or ours.tolist() == theirs.tolist()
    elif isinstance(ours, np.random.RandomState):
        assert repr(ours.get_state()) == repr(theirs.get_state())
    else:
        assert repr(ours) == repr(theirs)


def without_addresses(shown):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(shown))


def check(model, X, tmp_path, **options):
    path = tmp_path / "model.damvi"
    save_model(model, path, **options)
    loaded = load_model(path, **options)
    for method in METHODS:
        same(getattr(model, method)(X), getattr(loaded, method)(X))
    for name in vars(model).keys() - {"_ballots", "_voters", "_decision", "estimator"}:
        same(getattr(model, name), getattr(loaded, name))
    for name in ("tuning_", "oob_decision_function_"):
        same(getattr(model, name), getattr(loaded, name))
    assert vars(model).keys() - {"_ballots"} == vars(loaded).keys()
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
    save_model(model, again, **options)
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
    ],
    ids=["array", "missing", "texts", "floats", "frame", "polars", "plain frame"],
)
def test_built_in_trees(table, labels, tmp_path):
    model = DAMVIClassifier(n_estimators=15, random_state=0).fit(table, labels)
    loaded, is_repeatable = check(model, table, tmp_path)
    assert is_repeatable
    known = set(ATTRIBUTES) | model.get_params().keys()
    assert vars(model).keys() - {"_ballots", "_decision"} <= known
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


@pytest.mark.parametrize(
    "options",
    [
        {"random_state": np.random.RandomState(3)},
        {"estimator": FastTreeClassifier(max_depth=2, categorical_features=[0, 3])},
        {"threshold": {"cost": (1, 20)}, "votes": "oob", "stratified": True},
        {"threshold": {"fbeta": 2.0}, "pos_label": np.int64(0), "solver": "uniform"},
        {"threshold": -0.25, "bootstrap": False, "max_samples": 100, "warm_start": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_settings(options, tmp_path):
    table = X.copy()
    table[:, [0, 3]] = np.round(table[:, [0, 3]])
    model = DAMVIClassifier(**{"n_estimators": 8, "random_state": 0, **options})
    check(model.fit(table, Y), table, tmp_path)


def test_a_warm_start_goes_on_after_loading(tmp_path):
    model = DAMVIClassifier(n_estimators=8, warm_start=True, random_state=0).fit(X, Y)
    loaded, _ = check(model, X, tmp_path)
    for one in (model, loaded):
        one.set_params(n_estimators=12).fit(X, Y)
    same(model.vote(X), loaded.vote(X))


def test_the_certificate_still_knows_the_rows_of_the_fit(tmp_path):
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(X, Y)
    loaded, _ = check(model, X, tmp_path)
    with pytest.raises(ValueError, match="rows of the fit are among them"):
        certify(loaded, X, Y)


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


def small_strong_pool():
    """One of each of the strong pool, made small."""
    smaller = {
        "catboostclassifier__iterations": 5,
        "extratreesclassifier__n_estimators": 3,
        "histgradientboostingclassifier__max_iter": 5,
        "lgbmclassifier__n_estimators": 5,
        "n_estimators": 3,
        "xgbclassifier__n_estimators": 5,
    }
    pool = []
    for name, voter in strong_pool(0):
        known = voter.get_params()
        small = {key: value for key, value in smaller.items() if key in known}
        pool.append((name, voter.set_params(**small)))
    return pool


@pytest.fixture(scope="module")
def strong():
    """Trained once."""
    pool = small_strong_pool()
    return DAMVIClassifier(pool, cv=2, shrinkage=0.5, random_state=0).fit(frame(), Y)


def test_the_strong_pool(strong, tmp_path):
    assert len(strong.estimators_) >= 9
    loaded, _ = check(strong, frame(), tmp_path)
    for (_, ours), theirs in zip(strong.estimator, loaded.estimators_, strict=True):
        assert repr(ours) == repr(clone(theirs).set_params(**ours.get_params()))
    for name, ours, theirs in zip(
        strong._voters.names, strong.estimators_, loaded.estimators_, strict=True
    ):
        assert type(ours) is type(theirs)
        same(ours.predict_proba(frame()), theirs.predict_proba(frame()))
        if hasattr(ours, "steps") and hasattr(ours[-1], "feature_importances_"):
            same(ours[-1].feature_importances_, theirs[-1].feature_importances_), name


def test_the_strong_pool_needs_no_skops(strong, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    check(strong, frame(), tmp_path)


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
def test_a_booster_that_is_not_there_is_named(strong, package, tmp_path, monkeypatch):
    if package not in strong._voters.names:
        pytest.skip(f"{package} is not installed")
    save_model(strong, tmp_path / "model.damvi")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        load_model(tmp_path / "model.damvi")


POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


@pytest.mark.parametrize(
    "options",
    [
        {"voting": "hard"},
        {"calibration": None},
        {"calibration": "isotonic"},
        {"cv": StratifiedKFold(3, shuffle=True, random_state=1)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_pools(options, tmp_path):
    pool = [*POOL, ("forest", FastForestClassifier(5)), ("tree", FastTreeClassifier())]
    model = DAMVIClassifier(pool, **{"cv": 3, "random_state": 0, **options})
    check(model.fit(X, np.where(Y, "yes", "no")), X, tmp_path)


def test_a_prefit_pool_is_stored_once(tmp_path):
    forest = FastForestClassifier(50, random_state=0).fit(X, Y)
    alone = DAMVIClassifier([("forest", forest)], votes="prefit", random_state=0)
    loaded, _ = check(alone.fit(X[:200], Y[:200]), X, tmp_path)
    assert loaded.estimators_[0] is loaded.estimator[0][1]


def test_other_estimators_of_scikit_learn_go_by_skops(tmp_path):
    ranks = QuantileTransformer(n_quantiles=20)
    voter = make_pipeline(ranks, FunctionTransformer(np.tanh), GaussianNB())
    model = DAMVIClassifier([("odd", voter), *POOL], cv=2, random_state=0).fit(X, Y)
    check(model, X, tmp_path)


class Mine(GaussianNB):
    """A classifier that no list knows."""


def test_unknown_types_are_named_and_can_be_trusted(tmp_path):
    model = DAMVIClassifier([("my own", Mine()), *POOL], cv=2, random_state=0).fit(X, Y)
    path = tmp_path / "model.damvi"
    kind = f"{Mine.__module__}.Mine"
    complaint = r"voter 'my own' .*test_round_trips\.Mine.*trusted="
    with pytest.raises(ModelFileError, match=complaint):
        save_model(model, path)
    assert not path.exists()
    check(model, X, tmp_path, trusted=[kind])
    with pytest.raises(ModelFileError, match=r"could run code.*trusted"):
        load_model(path)


def test_compiled_indices_that_nobody_checks_are_not_taken(tmp_path):
    voter = KNeighborsClassifier()
    model = DAMVIClassifier([("near", voter), *POOL], cv=2, random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"voter 'near' .*KDTree"):
        save_model(model, tmp_path / "model.damvi")


def test_what_cannot_be_saved_says_so(tmp_path):
    path = tmp_path / "model.damvi"
    with pytest.raises(ModelFileError, match="not fitted"):
        save_model(DAMVIClassifier(), path)
    with pytest.raises(ModelFileError, match="this is a GaussianNB"):
        save_model(GaussianNB(), path)
    odd = GaussianNB()
    odd.predict = lambda X: X
    model = DAMVIClassifier(n_estimators=2, random_state=0).fit(X, Y)
    model.estimator = odd
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save_model(model, path)
    assert not path.exists()


def whole_model(classifier=None, table=None):
    table = frame() if table is None else table
    fitted = classifier or DAMVIClassifier(n_estimators=10, random_state=0)
    fitted.fit(table, Y.astype(bool))
    schema = Schema(
        (
            *(Column(name, "number") for name in table.columns[:6]),
            Column("names", "category", ("d", "ç <i>", "a", "b", "e")),
            Column("sizes", "category", ("0", "1", "2")),
            Column("id", "dropped", reason="all values differ"),
        )
    )
    rng = np.random.RandomState(0)
    vote = np.where(rng.rand(len(Y)) < 0.1, np.nan, rng.rand(len(Y)))
    prints = rng.randint(0, 2**62, len(Y)).astype(np.uint64)
    return Model(
        fitted,
        schema,
        Target("is fraud", "no", "yes"),
        Training(prints, vote, Y.astype(bool)),
        scores={"f1": {"mean": 0.5, "folds": [0.4, float("nan")]}, "n": 3, "note": None},
        made={"command": "damvi fit data.csv", "seed": 0, "data": "sha256:12"},
    )


def test_a_whole_model(tmp_path):
    model = whole_model()
    save(model, tmp_path / "model.damvi")
    loaded = load(tmp_path / "model.damvi")
    same(model.classifier.predict_proba(frame()), loaded.classifier.predict_proba(frame()))
    assert loaded.schema == model.schema
    assert loaded.target == model.target
    for name in ("prints", "vote", "positive"):
        same(getattr(model.training, name), getattr(loaded.training, name))
    assert repr(loaded.scores) == repr(model.scores)
    assert loaded.made == model.made
    assert load_model(tmp_path / "model.damvi").weights_ is not None


def test_a_classifier_alone_is_no_whole_model(tmp_path):
    save_model(whole_model().classifier, tmp_path / "model.damvi")
    with pytest.raises(ModelFileError, match=r"damvi\.load_model"):
        load(tmp_path / "model.damvi")


def test_the_same_in_another_process(tmp_path):
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(HOLES, Y)
    save_model(model, tmp_path / "model.damvi")
    np.save(tmp_path / "x.npy", HOLES)
    code = (
        "import sys, numpy as np, damvi\n"
        "model = damvi.load_model(sys.argv[1] + '/model.damvi')\n"
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
    from damvi.io import files as versions

    path = tmp_path / "model.damvi"
    voter = DecisionTreeClassifier(max_depth=2)
    model = DAMVIClassifier(voter, n_estimators=3, random_state=0).fit(X, Y)
    save_model(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(path)
    real = versions._installed
    monkeypatch.setattr(
        versions, "_installed", lambda name: "0.21.3" if "learn" in name else real(name)
    )
    with pytest.warns(UserWarning, match=r"scikit-learn \d.* \(here 0\.21\.3\)") as caught:
        load_model(path)
    assert len(caught) == 1
    save_model(DAMVIClassifier(n_estimators=3, random_state=0).fit(X, Y), path)
    monkeypatch.setattr(versions, "_installed", real)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(path)  # arrays of our own are the same with any release
