"""Models as scikit-learn's own classes, and as skops files."""

import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import damvi.datasets
from damvi import DAMVIClassifier, FastTreeClassifier
from damvi.io import to_sklearn, to_skops

from .tables import frame


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
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(*table)
    with pytest.raises(ValueError, match=r"a pool's votes are soft.*onnx or skops"):
        to_sklearn(model)
    model = DAMVIClassifier(LogisticRegression(), n_estimators=3, random_state=0)
    with pytest.raises(ValueError, match=r"voter \d \(Log.*only trees"):
        to_sklearn(model.fit(*table))


def test_skops_round_trip_of_trees_with_categories(tmp_path):
    X, y = frame(300, seed=0)
    fresh, _ = frame(300, seed=1, surprises=True)
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
