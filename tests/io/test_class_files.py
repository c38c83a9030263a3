"""Models of three and more classes, and of unlabelled rows: saved, loaded, refused."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, FastTreeClassifier, load_model, save_model
from damvi.certificate import certify
from damvi.io import Model, ModelFileError, Target, Training, load, save, summarize
from damvi.io.container import (
    FORMAT,
    MANIFEST,
    array_from_bytes,
    array_to_bytes,
    pack,
    unpack,
)
from damvi.tables import Column, Schema
from damvi.voters import FastForestClassifier

from .test_hostile_files import find, fitted, flat, opened, refused
from .test_round_trips import check, frame, same, small_strong_pool

X, LABELS = make_classification(
    400,
    6,
    n_informative=5,
    n_redundant=0,
    n_classes=4,
    weights=[0.55, 0.25, 0.15],
    random_state=0,
)
HOLES = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
NAMES = np.array(["fine", "late", "lost", "ölig <b>"])
POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]


@pytest.mark.parametrize(
    ("table", "labels"),
    [
        (X, LABELS),
        (HOLES, NAMES[LABELS]),
        (X.astype(np.float32), LABELS - 2.0),
        (frame(X), NAMES[LABELS].astype(object)),
    ],
    ids=["array", "missing", "floats", "frame"],
)
def test_built_in_trees(table, labels, tmp_path):
    model = DAMVIClassifier(n_estimators=15, random_state=0).fit(table, labels)
    loaded, is_repeatable = check(model, table, tmp_path)
    assert is_repeatable
    assert loaded.vote(table).shape == loaded.oob_decision_function_.shape == (400, 4)
    for ours, theirs in zip(model.estimators_, loaded.estimators_, strict=True):
        if isinstance(table, np.ndarray):
            same(ours.predict_proba(table), theirs.predict_proba(table))


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": "macro_f1", "votes": "oob", "stratified": True},
        {"threshold": [1.0, 2.0, 0.5, 3.0], "warm_start": True},
        {"estimator": FastTreeClassifier(max_depth=2, categorical_features=[0, 3])},
        {"estimator": DecisionTreeClassifier(max_features=2), "solver": "uniform"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_settings(options, tmp_path):
    table = X.copy()
    table[:, [0, 3]] = np.round(table[:, [0, 3]])
    model = DAMVIClassifier(**{"n_estimators": 8, "random_state": 0, **options})
    check(model.fit(table, LABELS), table, tmp_path)


def test_a_class_that_some_samples_miss(tmp_path):
    few = np.flatnonzero((LABELS != 2) | (np.cumsum(LABELS == 2) <= 2))
    for voter in (None, DecisionTreeClassifier(max_depth=3), LogisticRegression()):
        model = DAMVIClassifier(voter, n_estimators=6, max_samples=0.1, random_state=1)
        with pytest.warns(UserWarning, match="drew none of the"):
            model.fit(X[few], NAMES[LABELS[few]])
        check(model, X, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"voting": "hard"},
        {"calibration": None, "threshold": "vote"},
        {"calibration": "isotonic"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_pools(options, tmp_path):
    pool = [*POOL, ("forest", FastForestClassifier(5)), ("tree", FastTreeClassifier())]
    model = DAMVIClassifier(pool, **{"cv": 3, "random_state": 0, **options})
    check(model.fit(X, NAMES[LABELS]), X, tmp_path)


def test_a_prefit_pool_with_a_model_of_fewer_classes(tmp_path):
    names = NAMES[LABELS]
    known = names != "lost"
    pool = [
        ("all", LogisticRegression().fit(X, names)),
        ("some", GaussianNB().fit(X[known], names[known])),
    ]
    model = DAMVIClassifier(pool, votes="prefit", random_state=0).fit(X, names)
    check(model, X, tmp_path)


@pytest.fixture(scope="module")
def strong():
    model = DAMVIClassifier(small_strong_pool(), cv=2, shrinkage=0.5, random_state=0)
    return model.fit(frame(X), NAMES[LABELS])


def test_the_strong_pool(strong, tmp_path):
    loaded, _ = check(strong, frame(X), tmp_path)
    for ours, theirs in zip(strong.estimators_, loaded.estimators_, strict=True):
        assert type(ours) is type(theirs)
        same(ours.predict_proba(frame(X)), theirs.predict_proba(frame(X)))


def test_boosters_that_have_missed_a_class(tmp_path):
    """A class of one row: boosters without it learn other numbers than they stand for."""
    pool = [v for n, v in small_strong_pool() if "boost" in n or n == "lightgbm"]
    labels = np.where(LABELS == 1, 0, LABELS)
    labels[np.flatnonzero(labels == 0)[0]] = 1
    for voter in pool:
        model = DAMVIClassifier(voter, n_estimators=3, max_samples=0.5, random_state=0)
        with pytest.warns(UserWarning, match="drew none of the"):
            model.fit(X, labels)
        assert "Relabelled" in {type(one).__name__ for one in model.estimators_}
        check(model, X, tmp_path)


def whole_model():
    model = DAMVIClassifier(n_estimators=6, random_state=0).fit(X, LABELS)
    vote = model._decision.unseen_vote.copy()
    return Model(
        model,
        Schema(tuple(Column(f"x{i}", "number") for i in range(6))),
        Target("state", classes=tuple(NAMES.tolist())),
        Training(np.arange(400, dtype=np.uint64), vote, LABELS.astype(np.uint8)),
        scores={"macro f1": 0.5},
    )


def test_a_whole_model(tmp_path):
    model, path = whole_model(), tmp_path / "model.damvi"
    save(model, path)
    loaded = load(path)
    same(loaded.classifier.predict_proba(X), model.classifier.predict_proba(X))
    assert loaded.target == model.target
    for name in ("prints", "vote", "labels"):
        same(getattr(model.training, name), getattr(loaded.training, name))
    with pytest.raises(ValueError, match="see labels"):
        loaded.training.positive  # noqa: B018
    said = summarize(path)
    assert said["format"] == FORMAT == 1
    assert said["positive"] is None
    assert [one["label"] for one in said["target"]["classes"]] == NAMES.tolist()
    assert sum(one["rows"] for one in said["target"]["classes"]) == said["target"]["rows"]
    assert len(said["threshold"]["value"]) == 4
    json.dumps(said, allow_nan=False)


def test_a_target_of_other_classes_is_not_saved(tmp_path):
    model = whole_model()
    odd = Model(model.classifier, model.schema, Target("x", "no", "yes"), model.training)
    with pytest.raises(ModelFileError, match="has 2 labels, and the classifier 4"):
        save(odd, tmp_path / "model.damvi")


def test_the_certificate_still_knows_the_rows_of_the_fit(tmp_path):
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(X, LABELS)
    loaded, _ = check(model, X, tmp_path)
    with pytest.raises(ValueError, match="rows of the fit are among them"):
        certify(loaded, X, LABELS)


@pytest.mark.parametrize(
    "options",
    [
        {"unlabeled": "disagreement", "eta": 0.5},
        {"unlabeled": "disagreement", "positive_rate": 0.2},
        {"unlabeled": ("disagreement", "kmeans"), "votes": "oob"},
        {"unlabeled": "self"},
        {"estimator": POOL, "unlabeled": "disagreement", "cv": 3},
    ],
    ids=str,
)
def test_models_that_learned_from_unlabelled_rows(options, tmp_path):
    model = DAMVIClassifier(**{"n_estimators": 10, "random_state": 0, **options})
    model.fit(X[:150], LABELS[:150] > 1, X_unlabeled=X[150:])
    assert len(model._row_prints) == 400
    loaded, _ = check(model, X, tmp_path)
    same(loaded.eta_, model.eta_)
    assert "eta" not in options or loaded.eta_ == options["eta"]
    same(loaded._row_prints, model._row_prints)
    with pytest.raises(ValueError, match="rows of the fit are among them"):
        certify(loaded, X[150:], LABELS[150:] > 1)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.damvi"
    model = DAMVIClassifier(n_estimators=5, threshold="macro_f1", random_state=0)
    save_model(model.fit(X, LABELS), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.damvi"
    named = [
        ("extra", ExtraTreesClassifier(2)),
        ("boosted", HistGradientBoostingClassifier(max_iter=2)),
        ("forest", FastForestClassifier(2)),
    ]
    model = DAMVIClassifier(named, cv=2, calibration="isotonic", random_state=0)
    save_model(model.fit(X, LABELS), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.damvi"
    save(whole_model(), path)
    return path.read_bytes()


def test_random_corruptions_are_clean_errors(trees, whole, pool, tmp_path):
    rng = np.random.RandomState(0)
    for trial in range(60):
        content = bytearray((trees, whole, pool)[trial % 3])
        here = int(rng.randint(len(content)))
        match trial % 4:
            case 0:
                content[here] ^= 1 << rng.randint(8)
            case 1:
                del content[here:]
            case 2:
                content[here:here] = rng.bytes(1 + rng.randint(50))
            case 3:
                del content[here : here + 1 + rng.randint(50)]
        refused(bytes(content), tmp_path)


def sealed(said, members):
    return pack({MANIFEST: json.dumps(said).encode(), **members})


def test_random_numbers_in_any_array(trees, pool, tmp_path):
    """Each array in turn, with one odd number; what loads must answer without a crash."""
    rng = np.random.RandomState(2)
    path = tmp_path / "hostile.damvi"
    n_errors = 0
    for content, step in ((trees, 1), (pool, 4)):
        said, members = opened(content, tmp_path)
        for name in [name for name in members if name.endswith(".npy")][::step]:
            array = array_from_bytes(members[name], name)
            if array.dtype.kind == "U" or array.size == 0:
                continue
            changed = array.copy()
            odd = (-1, 2**31 - 1, 10**4)[rng.randint(3)]
            with np.errstate(all="ignore"):
                changed.flat[rng.randint(array.size)] = np.array(odd).astype(array.dtype)
            path.write_bytes(sealed(said, {**members, name: array_to_bytes(changed)}))
            try:
                load_model(path).predict(X)
            except ValueError:  # ModelFileError is one
                n_errors += 1
    assert n_errors > 10


@pytest.mark.parametrize(
    ("array", "change", "match"),
    [
        ("weights", lambda a: -a, "weights out of range"),
        ("weights", lambda a: 0 * a, "nodes without weight"),
        ("weights", lambda a: a[:, :3].copy(), "voters' classes|without weight"),
        ("weights", lambda a: np.tile(a, 2), "voters' classes"),
        ("weights", lambda a: np.tile(a, 65), "no known classes"),
        ("weights", lambda a: a[:, :1].copy(), "no known classes"),
        ("weights", lambda a: a[:, :2].copy(), "not int64"),
        ("weights", lambda a: a.astype(np.int64), "not int32"),
        ("weights", lambda a: a.astype(np.float64), "not int32"),
        ("weights", lambda a: a[:-1], "shape"),
        ("weights", lambda a: a[:, 0].copy(), "shape"),
    ],
)
def test_hostile_votes_of_leaves(trees, array, change, match, tmp_path):
    said, members = opened(trees, tmp_path)
    name = find(said, "Forest")["state"][array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("array", "change", "match"),
    [
        ("threshold_", flat(1, np.nan), "threshold_"),
        ("threshold_", flat(1, np.inf), "threshold_"),
        ("threshold_", flat(1, 0.0), "threshold_"),
        ("threshold_", flat(1, -2.0), "threshold_"),
        ("threshold_", flat(1, 77.0), "threshold_"),
        ("threshold_", lambda a: a[:3], "threshold_"),
        ("threshold_", lambda a: a.astype(np.float32), "threshold_"),
        ("_majority", flat(0, 9), "majority"),
        ("_majority", lambda a: a * 0, "majority"),
        ("_majority", lambda a: a[:3], "majority"),
        ("_majority", lambda a: a.astype(np.float64), "majority"),
        ("classes_", lambda a: a[:3], "cannot be right"),
        ("classes_", lambda a: a * 0, "classes_"),
        ("classes_", lambda a: a[:1], "classes_"),
        ("classes_", lambda a: np.arange(300), "classes_"),
        ("classes_", lambda a: a.reshape(2, 2), "classes_"),
        ("classes_", lambda a: a[:2], "pos_label_"),
        ("weights_", flat(0, np.nan), "weights_"),
    ],
)
def test_hostile_classes_and_factors(trees, array, change, match, tmp_path):
    said, members = opened(trees, tmp_path)
    name = fitted(said)[array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


def decided(said):
    return said["classifier"]["decided"]


def curves_of(said):
    return find(fitted(said), "ClassCurves")["state"]["curves"]["items"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda said: fitted(said).update(threshold_=0.0), "threshold_|refers"),
        (lambda said: fitted(said).update(pos_label_=1), "pos_label_"),
        (lambda said: decided(said).update(calibrator=0.5), "calibrator"),
        (
            lambda said: decided(said)["calibrator"]["state"]["curves"]["items"].pop(),
            "cal",
        ),
        (lambda said: decided(said)["tuning"]["state"].update(threshold=None), "tuning"),
        (lambda said: decided(said)["tuning"]["state"].update(honest_f1=[1.0]), "tuning"),
        (
            lambda said: find(fitted(said), "PoolVoters")["state"].update(voting="x"),
            "voting",
        ),
        (
            lambda said: find(said, "HalfMultinomialLoss")["state"].update(n_classes=10**9),
            "classes",
        ),
        (
            lambda said: find(said, "HalfMultinomialLoss")["state"].update(n_classes=3),
            "a loss for other classes",
        ),
        (
            lambda said: find(fitted(said), "HistGradientBoostingClassifier")[
                "state"
            ].update(n_trees_per_iteration_=7),
            "trees for other classes",
        ),
    ],
)
def test_hostile_manifests(pool, change, match, tmp_path):
    said, members = opened(pool, tmp_path)
    change(said)
    refused(sealed(said, members), tmp_path, match)


def test_curves_and_classes_of_voters(pool, tmp_path):
    said, members = opened(pool, tmp_path)
    state = find(fitted(said), "PoolVoters")["state"]
    name = state["classes"]["at"]
    for odd in (np.arange(3), np.arange(4)[::-1].copy(), np.arange(1, 5), np.zeros(4, int)):
        hostile = {**members, name: array_to_bytes(odd)}
        refused(sealed(said, hostile), tmp_path, "voters' classes")
    held = curves_of(said).pop()["state"]
    for array in held.values():
        members.pop(array["at"])
    refused(sealed(said, members), tmp_path, "calibrators")


@pytest.mark.parametrize(
    ("part", "name", "change", "match"),
    [
        ("training", "vote", lambda a: a[:, :3].copy(), "do not fit each other"),
        ("training", "vote", lambda a: a[:, 0].copy(), "do not fit each other"),
        ("training", "labels", lambda a: a + np.uint8(1), "labels out of range"),
        ("training", "labels", lambda a: a > 0, "no known kind"),
        ("training", "labels", lambda a: a[:-1], "do not fit each other"),
    ],
)
def test_hostile_training_rows(whole, part, name, change, match, tmp_path):
    said, members = opened(whole, tmp_path)
    at = said[part][name]["at"]
    members[at] = array_to_bytes(change(array_from_bytes(members[at], at)))
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    "classes",
    [["a", "b", "c", "d"], {"is": "tuple", "items": ["a", "b", "c"]}]
    + [{"is": "tuple", "items": items} for items in (["a"], [1, 2, 3, 4], ["a"] * 4)],
    ids=str,
)
def test_hostile_labels(whole, classes, tmp_path):
    said, members = opened(whole, tmp_path)
    said["target"]["classes"] = classes
    refused(sealed(said, members), tmp_path, "target|fit each other|out of range")


def test_the_members_are_those_that_are_documented(trees, tmp_path):
    path = tmp_path / "model.damvi"
    path.write_bytes(trees)
    assert all(name == MANIFEST or name.startswith("arrays/") for name in unpack(path))
