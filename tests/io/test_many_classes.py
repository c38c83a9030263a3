"""Three and more classes in onnxruntime, scikit-learn's classes and skops."""

import numpy as np
import pandas as pd
import pytest
import skops.io
from onnx import checker
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, FastTreeClassifier
from damvi.io import to_onnx, to_sklearn, to_skops
from damvi.io.onnx_graph import LEAF
from damvi.voters import FastForestClassifier, strong_pool

from .running import agree, near, run_trees
from .tables import frame as frame_of_two
from .test_boosters import CASES
from .test_pools import weighted

NAMES = np.array(["a", "b", "größer", "z"])


def classes_of(n, seed, width=4):
    X, y = make_classification(
        n,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=width,
        weights=[0.55, 0.25, 0.15],
        random_state=seed,
    )
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X, y


X, Y = classes_of(400, 0)
FRESH = np.concatenate([classes_of(300, 1)[0], np.full((1, 6), np.nan), 1e6 * X[:50]])
FULL = np.nan_to_num(X)


def frame(n, seed, surprises=False):
    table, y = frame_of_two(n, seed, surprises)
    bad = y == "bad"
    worst = bad & (table["wide"].fillna(0).to_numpy() > 6e5)
    other = ~bad & (table["colour"] == "blue").to_numpy()
    return table, np.select([worst, bad, other], ["worst", "bad", "other"], "fine")


def test_trees_vote_the_same_to_the_last_bit():
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X, NAMES[Y])
    said = agree(model, FRESH, atol=0)
    assert said["vote"].shape == said["probability"].shape == (len(FRESH), 4)
    assert len(set(said["label"].tolist())) > 2
    checker.check_model(to_onnx(model), full_check=True)


@pytest.mark.parametrize("labels", [NAMES, np.arange(4) * 3, np.array([-1.0, 0, 1, 9])])
def test_labels_and_factors(labels):
    for threshold in ("macro_f1", [1.0, 0.5, 3.0, 7.0]):
        model = DAMVIClassifier(n_estimators=15, threshold=threshold, random_state=0)
        agree(model.fit(X, labels[Y]), FRESH, atol=0)
    said = agree(model, X, labels=("p", "q", "r", "s"))["label"]
    place = np.searchsorted(labels, model.predict(X))
    assert said.tolist() == np.array(["p", "q", "r", "s"])[place].tolist()
    with pytest.raises(ValueError, match="2 labels for 4 classes"):
        to_onnx(model, labels=("no", "yes"))


@pytest.mark.parametrize("turn", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_ties_go_to_the_most_frequent(turn):
    model = DAMVIClassifier(
        FastTreeClassifier(max_depth=2), n_estimators=6, solver="uniform", random_state=1
    ).fit(X, np.array(turn)[Y])
    vote = model.vote(FRESH)
    assert ((vote == vote.max(axis=1, keepdims=True)).sum(axis=1) > 1).any()
    said = agree(model, FRESH, atol=0)
    assert (said["probability"].argmax(axis=1) == model.predict(FRESH)).all()
    assert (to_sklearn(model).predict(FRESH) == model.predict(FRESH)).all()


def test_the_next_double_is_one_step_up():
    from damvi.io.onnx_export import STEP

    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(10000), 2.0 ** -np.arange(9), [1 / 3, 1 - 2**-53]])
    values = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, 1)])
    np.testing.assert_array_equal(values + values * STEP, np.nextafter(values, np.inf))


@pytest.mark.parametrize("n_classes", [3, 12])
def test_many_and_few(n_classes):
    table, y = classes_of(600, 3, 4)
    y = np.where(y == 0, np.arange(600) % n_classes, y - 1)
    agree(DAMVIClassifier(n_estimators=9, random_state=0).fit(table, y), table, atol=0)
    pool = [("forest", FastForestClassifier(5)), ("tree", FastTreeClassifier(max_depth=4))]
    model = DAMVIClassifier(pool, cv=3, random_state=0).fit(table, y)
    agree(weighted(model, [0.5, 0.5]), table, atol=1e-6)


def test_frames_with_categories_missing_and_unknown():
    table, y = frame(500, seed=0)
    fresh, _ = frame(500, seed=1, surprises=True)
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(table, y)
    assert model._voters.forest.on_categories.any()
    agree(model, fresh, atol=0)


VOTERS = [name for name, _ in strong_pool(0)]
SMALLER = {
    "catboostclassifier__iterations": 40,
    "extratreesclassifier__n_estimators": 20,
    "histgradientboostingclassifier__max_iter": 20,
    "lgbmclassifier__n_estimators": 20,
    "n_estimators": 20,
    "xgbclassifier__n_estimators": 20,
}


def smaller(voter):
    known = voter.get_params()
    return voter.set_params(**{k: v for k, v in SMALLER.items() if k in known})


@pytest.fixture(scope="module")
def strong():
    table, y = frame(500, seed=0)
    pool = [(name, smaller(voter)) for name, voter in strong_pool(0)]
    return DAMVIClassifier(pool, cv=2, random_state=0).fit(table, y)


def test_the_strong_pool_as_it_votes(strong):
    weights = np.arange(1.0, len(VOTERS) + 1)
    model = weighted(strong, weights / weights.sum())
    said = agree(model, frame(400, seed=1, surprises=True)[0], atol=1e-6)
    np.testing.assert_allclose(said["probability"].sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("name", VOTERS)
def test_each_voter_of_the_strong_pool(strong, name):
    alone = [voter == name for voter in strong._voters.names]
    agree(weighted(strong, alone), frame(400, seed=1, surprises=True)[0], atol=1e-6)


SMALL = [
    ("forest", FastForestClassifier(9, random_state=0)),
    ("random_forest", RandomForestClassifier(9, random_state=0)),
    ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ("linear", LogisticRegression()),
    ("svm", LinearSVC()),
    ("ridge", RidgeClassifier()),
]


@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "isotonic"},
        {"calibration": "platt"},
        {"calibration": None, "threshold": "vote"},
        {"voting": "hard"},
    ],
    ids=str,
)
def test_ways_of_voting(options):
    model = DAMVIClassifier(SMALL, cv=3, random_state=0, **options).fit(FULL, NAMES[Y])
    fresh = np.nan_to_num(classes_of(300, 1)[0])
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


def test_prefit_voters_that_know_fewer_classes():
    names = NAMES[Y]
    known, two = names != "b", np.isin(names, ["a", "z"])
    pool = [
        ("all", LogisticRegression().fit(FULL, names)),
        ("three", FastForestClassifier(5, random_state=0).fit(FULL[known], names[known])),
        ("two", LogisticRegression().fit(FULL[two], names[two])),
    ]
    for voting in ("soft", "hard"):
        model = DAMVIClassifier(pool, votes="prefit", voting=voting, random_state=0)
        agree(weighted(model.fit(FULL, names), [0.3, 0.3, 0.4]), FULL, atol=1e-6)


def test_a_class_of_one_row():
    """Models that have not met it learn other numbers for the rest."""
    y = np.where(Y == 1, 0, Y)
    y[np.flatnonzero(y == 0)[0]] = 1
    chosen = ("lightgbm", "xgboost", "catboost", "hist_boosting", "linear")
    for voter in (smaller(voter) for name, voter in strong_pool(0) if name in chosen):
        model = DAMVIClassifier(voter, n_estimators=3, max_samples=0.2, random_state=0)
        with pytest.warns(UserWarning, match="drew none of the"):
            model.fit(FULL, y)
        agree(weighted(model, np.full(3, 1 / 3)), FULL, atol=1e-6)


@pytest.mark.parametrize("voter", [DecisionTreeClassifier(max_depth=3), None])
def test_samples_that_miss_classes(voter):
    few = np.flatnonzero((Y != 2) | (np.cumsum(Y == 2) <= 2))
    model = DAMVIClassifier(voter, n_estimators=12, max_samples=5, random_state=0)
    with pytest.warns(UserWarning, match="drew none of the"):
        model.fit(FULL[few], NAMES[Y[few]])
    weighted(model, np.full(12, 1 / 12))
    agree(model, FULL)
    assert (to_sklearn(model).predict(FULL) == model.predict(FULL)).all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_raw_scores_of_boosters_are_the_same(name):
    make, read, raw = CASES[name]
    model = make().fit(X, Y)
    boosted = read(model)
    asked = [X, np.where(X > 1, np.nan, X), X * 1e30, X * 1e-30]
    for f in range(6):
        own = (boosted.trees.feature == f) & (boosted.trees.left != LEAF)
        at = near(boosted.trees.threshold[own])
        at = at[:: 1 + len(at) // 500]
        more = X[np.arange(len(at)) % len(X)].copy()
        more[:, f] = at
        asked.append(more)
    asked = np.concatenate(asked)
    read_as = asked.astype(np.float32).astype(float) if boosted.single_values else asked
    values = run_trees(boosted.trees, read_as)
    dtype = np.float32 if boosted.single_sum else np.float64
    scores = raw(model, asked)
    assert scores.shape == (len(asked), 4)
    for c in range(4):
        own = values[:, boosted.of_class == c]
        terms = np.column_stack([np.full(len(asked), boosted.start[c]), own]).astype(dtype)
        total = np.cumsum(terms, axis=1)[:, -1] * dtype(boosted.slope)
        np.testing.assert_array_equal(total + dtype(boosted.bias[c]), scores[:, c])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lightgbm", {"objective": "multiclassova"}, "only boosting with .*'multiclass'"),
        ("xgboost", {"multi_strategy": "multi_output_tree"}, "multi_strategy"),
        ("catboost", {"loss_function": "MultiClassOneVsAll"}, "only loss_function 'Multi"),
    ],
)
def test_what_is_refused(name, options, message):
    make, read, _ = CASES[name]
    with pytest.raises(ValueError, match=message):
        read(make(**options).fit(X, Y))


def test_what_cannot_be_written_is_named():
    pool = [("odd", GaussianNB()), ("linear", LogisticRegression())]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(FULL, Y)
    with pytest.raises(ValueError, match=r"voter 'odd' \(GaussianNB\).*not known here"):
        to_onnx(weighted(model, [0.5, 0.5]))
    agree(weighted(model, [0.0, 1.0]), FULL, atol=1e-6)


def test_plain_scikit_learn(tmp_path):
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(table, NAMES[Y])
    plain = to_sklearn(model)
    assert type(plain).__name__ == "VotingClassifier"
    fresh = pd.DataFrame(FRESH, columns=list("abcdef"))
    np.testing.assert_allclose(
        plain.predict_proba(fresh), model.predict_proba(fresh), rtol=0, atol=1e-11
    )
    types = to_skops(plain, tmp_path / "plain.skops")
    assert not any(name.startswith("damvi") for name in types)
    again = skops.io.load(tmp_path / "plain.skops", trusted=types)
    assert (again.predict(fresh) == model.predict(fresh)).all()


def test_plain_scikit_learn_with_factors(tmp_path):
    model = DAMVIClassifier(n_estimators=20, threshold="macro_f1", random_state=0)
    model.fit(X, NAMES[Y])
    assert len(set(model.threshold_.tolist())) > 1
    plain = to_sklearn(model)
    np.testing.assert_allclose(
        plain.decision_function(FRESH), model.decision_function(FRESH), rtol=0, atol=1e-10
    )
    types = to_skops(plain, tmp_path / "plain.skops")
    assert not any(name.startswith("damvi") for name in types)
    again = skops.io.load(tmp_path / "plain.skops", trusted=types)
    assert (again.predict(FRESH) == model.predict(FRESH)).all()
    assert not hasattr(plain, "predict_proba")


def test_skops_of_trees_and_of_a_pool(strong, tmp_path):
    table, y = frame(300, seed=0)
    fresh, _ = frame(300, seed=1, surprises=True)
    trees = DAMVIClassifier(n_estimators=9, random_state=0).fit(table, y)
    for model in (trees, strong):
        types = to_skops(model, tmp_path / "model.skops")
        again = skops.io.load(tmp_path / "model.skops", trusted=types)
        np.testing.assert_array_equal(again.vote(fresh), model.vote(fresh))
        np.testing.assert_array_equal(
            again.predict_proba(fresh), model.predict_proba(fresh)
        )
        assert (again.predict(fresh) == model.predict(fresh)).all()
