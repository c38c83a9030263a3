"""Models as scikit-learn's own classes, and as skops files."""

import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import damvi.datasets
from damvi import DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier
from damvi.io import to_sklearn, to_skops

from .running import agree, weighted
from .tables import FRAMES, FRESH4, FULL4, NAMES, X4, Y4, frame


def same(model, X):
    plain = to_sklearn(model)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(
        plain.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12
    )
    return plain


@pytest.mark.parametrize("pos_label", ["a", "b"])
@pytest.mark.parametrize("threshold", ["vote", 0.25, -0.5])
def test_the_bundled_data_with_holes(pos_label, threshold):
    data = damvi.datasets.load("mammography")
    X, y = data.data[::2].copy(), np.array(["a", "b"])[data.target[::2].astype(int)]
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = DAMVIClassifier(
        n_estimators=20, pos_label=pos_label, threshold=threshold, random_state=0
    ).fit(X, y)
    same(model, X)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_ties(table, pos_label):
    X, y = table
    model = DAMVIClassifier(
        FastTreeClassifier(max_depth=1),
        n_estimators=4,
        solver="uniform",
        pos_label=pos_label,
        random_state=1,
    ).fit(X, y)
    assert (model.vote(X) == 0).any()
    same(model, X)


def test_a_file_of_it_holds_nothing_of_ours(table, fresh, tmp_path):
    X, y = table
    names = ["a", "b", "c", "d"]
    model = DAMVIClassifier(n_estimators=9, random_state=0)
    model.fit(pd.DataFrame(X, columns=names), y)
    fresh = pd.DataFrame(fresh, columns=names)
    types = to_skops(same(model, fresh), tmp_path / "plain.skops")
    assert not any(name.startswith("damvi") for name in types)
    again = skops.io.load(tmp_path / "plain.skops", trusted=types)
    np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))


def test_trees_of_scikit_learn_and_samples_of_one_class(table, fresh):
    model = DAMVIClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=12, max_samples=10, random_state=0
    ).fit(*table)
    model.weights_ = np.full(12, 1 / 12)
    same(model, fresh)


def test_what_scikit_learn_cannot_say(table):
    X, y = frame(300, seed=0)
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"voter \d+ \(FastTree.*splits on cat.*onnx or"):
        to_sklearn(model)
    pool = [("linear", LogisticRegression())]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(*table)
    with pytest.raises(ValueError, match=r"a pool's soft votes .*onnx or skops"):
        to_sklearn(model)
    model = DAMVIClassifier(LogisticRegression(), n_estimators=3, random_state=0)
    with pytest.raises(ValueError, match=r"voter \d \(Log.*only trees"):
        to_sklearn(model.fit(*table))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_skops_round_trip_of_trees_with_categories(n_classes, tmp_path):
    X, y = FRAMES[n_classes](300, seed=0)
    fresh, _ = FRAMES[n_classes](300, seed=1, surprises=True)
    model = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, y)
    types = to_skops(model, tmp_path / "model.skops")
    assert all(name.startswith("damvi.") for name in types)
    again = skops.io.load(tmp_path / "model.skops", trusted=types)
    np.testing.assert_array_equal(again.vote(fresh), model.vote(fresh))
    np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))
    with pytest.raises(Exception, match="Untrusted types"):
        skops.io.load(tmp_path / "model.skops", trusted=[])


def test_a_failed_write_leaves_the_old_file(table, tmp_path, monkeypatch):
    model = DAMVIClassifier(n_estimators=2, random_state=0).fit(*table)
    path = tmp_path / "model.skops"
    to_skops(model, path)
    old = path.read_bytes()

    def is_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", is_full)
    with pytest.raises(OSError, match="No space left"):
        to_skops(model, path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_without_skops(table, tmp_path, monkeypatch):
    model = DAMVIClassifier(n_estimators=2, random_state=0).fit(*table)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'damvi\[export\]'"):
        to_skops(model, tmp_path / "model.skops")


# Four classes.


@pytest.mark.parametrize("voter", [DecisionTreeClassifier(max_depth=3), None])
def test_samples_that_miss_classes(voter):
    few = np.flatnonzero((Y4 != 2) | (np.cumsum(Y4 == 2) <= 2))
    model = DAMVIClassifier(voter, n_estimators=12, max_samples=5, random_state=0)
    with pytest.warns(UserWarning, match="drew none of the"):
        model.fit(FULL4[few], NAMES[Y4[few]])
    weighted(model, np.full(12, 1 / 12))
    agree(model, FULL4)
    assert (to_sklearn(model).predict(FULL4) == model.predict(FULL4)).all()


def test_plain_scikit_learn(tmp_path):
    table = pd.DataFrame(X4, columns=list("abcdef"))
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(table, NAMES[Y4])
    plain = to_sklearn(model)
    assert type(plain).__name__ == "VotingClassifier"
    fresh = pd.DataFrame(FRESH4, columns=list("abcdef"))
    np.testing.assert_allclose(
        plain.predict_proba(fresh), model.predict_proba(fresh), rtol=0, atol=1e-11
    )
    types = to_skops(plain, tmp_path / "plain.skops")
    assert not any(name.startswith("damvi") for name in types)
    again = skops.io.load(tmp_path / "plain.skops", trusted=types)
    assert (again.predict(fresh) == model.predict(fresh)).all()


def test_plain_scikit_learn_with_factors(tmp_path):
    model = DAMVIClassifier(n_estimators=20, threshold="macro_f1", random_state=0)
    model.fit(X4, NAMES[Y4])
    assert len(set(model.threshold_.tolist())) > 1
    plain = to_sklearn(model)
    np.testing.assert_allclose(
        plain.decision_function(FRESH4), model.decision_function(FRESH4), rtol=0, atol=1e-10
    )
    types = to_skops(plain, tmp_path / "plain.skops")
    assert not any(name.startswith("damvi") for name in types)
    again = skops.io.load(tmp_path / "plain.skops", trusted=types)
    assert (again.predict(FRESH4) == model.predict(FRESH4)).all()
    assert not hasattr(plain, "predict_proba")
