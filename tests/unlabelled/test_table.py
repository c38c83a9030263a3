"""Unlabelled tables: what is refused, what is left alone, how they join labelled ones."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from damvi.unlabelled import split_unlabelled, stack_rows
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

from damvi import DAMVIClassifier, Unlabeled


def model(estimator=None, **options):
    return DAMVIClassifier(estimator, n_estimators=5, random_state=0, **options)


def frame(X, names="abcd"):
    return pd.DataFrame(X, columns=list(names))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda U: U[:0], "X_unlabeled has 0 rows; leave it out"),
        (lambda U: [], "X_unlabeled has 0 rows"),
        (lambda U: "more.csv", "X_unlabeled is a str, and not a table; read it first"),
        (lambda U: U[:, :3], "X_unlabeled does not go with X: X has 3 features.*4"),
        (lambda U: U[:300], "X_unlabeled has 300 rows, as many as X.*damvi.Unlabeled"),
        (lambda U: Unlabeled(U[:0]), "X_unlabeled has 0 rows"),
        (lambda U: np.where(U > 2, np.inf, U), "X_unlabeled does not go with X.*infinity"),
    ],
)
def test_bad_unlabelled_rows(table, fresh, given, message):
    for unlabeled in ("auto", None):
        with pytest.raises(ValueError, match=message):
            model(unlabeled=unlabeled).fit(*table, X_unlabeled=given(fresh))


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_other_columns_are_named(table, fresh, estimator):
    X, y = table
    with pytest.raises(ValueError, match=r"(?s)does not go with X.*unseen at fit.*- e"):
        model(estimator).fit(frame(X), y, X_unlabeled=frame(fresh, "abce"))
    with pytest.raises(ValueError, match=r"(?s)does not go with X.*missing.*- d"):
        model(estimator).fit(frame(X), y, X_unlabeled=frame(fresh[:, :3], "abc"))
    if estimator is not None:
        with pytest.raises(ValueError, match="DataFrame and X_unlabeled a ndarray"):
            model(estimator).fit(frame(X), y, X_unlabeled=fresh)


@pytest.mark.parametrize(
    "parameters",
    [
        {"unlabeled": "magic"},
        {"unlabeled": ("kmeans", "self")},
        {"unlabeled": ("disagreement", "magic")},
        {"eta": 1.0},
        {"eta": -0.1},
        {"positive_rate": 0.0},
        {"positive_rate": 1},
    ],
)
def test_bad_settings_are_named(table, parameters):
    ((name, _),) = parameters.items()
    with pytest.raises(ValueError, match=name):
        model(**parameters).fit(*table)


def test_rows_without_a_label_are_told_where_to_go(table):
    X, y = table
    gaps = np.where(np.arange(len(y)) % 3 == 1, np.nan, y)
    with pytest.raises(
        ValueError, match=r"NaN or None.* in 100 of 300 rows.*first is row 1"
    ):
        model().fit(X, gaps)
    for empty in ([None] * 300, np.full(300, np.nan), pd.Series([pd.NA] * 300)):
        with pytest.raises(ValueError, match=r"no label at all.*300 values"):
            model().fit(X, empty)


@pytest.mark.parametrize(
    "labels",
    [
        lambda y: np.where(y < 0, np.nan, y.astype(float)),
        lambda y: [None if label < 0 else label for label in y.tolist()],
        lambda y: pd.Series(y).astype("Int64").where(y >= 0),
        lambda y: pl.Series([None if label < 0 else label for label in y.tolist()]),
        lambda y: [None if label < 0 else "ny"[label] for label in y.tolist()],
    ],
)
def test_labelled_and_unlabelled_rows_come_apart(table, labels):
    X, y = table
    y = np.where(np.arange(len(y)) % 3 == 1, -1, y)
    rows, known, others = split_unlabelled(X, labels(y))
    np.testing.assert_array_equal(rows, X[y >= 0])
    np.testing.assert_array_equal(others.X, X[y < 0])
    as_text = known.dtype.kind == "U"
    expected = np.where(y[y >= 0] == 1, "y", "n") if as_text else y[y >= 0]
    np.testing.assert_array_equal(known, expected)
    fitted = model(unlabeled="disagreement").fit(rows, known, X_unlabeled=others)
    assert set(fitted.predict(X)) <= set(known)
    assert split_unlabelled(rows, known)[2] is None


def test_what_cannot_be_split_is_not_lost(table):
    X, y = table
    with pytest.raises(ValueError, match="X has 300 rows and y 20"):
        split_unlabelled(X, y[:20])
    with pytest.raises(ValueError, match=r"no label at all.*300 values"):
        split_unlabelled(X, [None] * 300)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Watched(DAMVIClassifier):
    """Notes the sizes of what it was given."""

    def fit(self, X, y, sample_weight=None, X_unlabeled=None):
        super().fit(X, y, sample_weight, X_unlabeled)
        self.sizes_ = len(X), X_unlabeled.X.shape[0]
        return self


@pytest.mark.usefixtures("routing")
def test_a_search_leaves_as_many_unlabelled_rows_as_labelled_ones_whole(table, fresh):
    X, y = table
    for given in (fresh[:300], sparse.csr_matrix(fresh[:300]), frame(fresh[:300])):
        asks = Watched(n_estimators=5, unlabeled="disagreement", random_state=0)
        asks.set_fit_request(X_unlabeled=True)
        rows = frame(X) if hasattr(given, "columns") else X
        search = GridSearchCV(asks, {"eta": [0.0, 0.5]}, cv=2, error_score="raise")
        search.fit(rows, y, X_unlabeled=Unlabeled(given))
        assert search.best_estimator_.sizes_ == (300, 300)
        found = cross_validate(
            asks,
            rows,
            y,
            cv=2,
            params={"X_unlabeled": Unlabeled(given)},
            return_estimator=True,
            error_score="raise",
        )
        assert [one.sizes_ for one in found["estimator"]] == [(150, 300), (150, 300)]


@pytest.mark.usefixtures("routing")
def test_a_table_that_a_search_would_cut_is_an_error_and_not_half_a_table(table, fresh):
    asks = model(unlabeled="disagreement").set_fit_request(X_unlabeled=True)
    search = GridSearchCV(asks, {"eta": [0.0, 0.5]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"150 rows, as many as X.*damvi.Unlabeled"):
        search.fit(*table, X_unlabeled=fresh[:300])
    search.fit(*table, X_unlabeled=fresh)  # of another length, it is left alone


def test_the_wrapper_has_nothing_to_cut_it_by(fresh):
    wrapped = pickle.loads(pickle.dumps(Unlabeled(fresh)))
    np.testing.assert_array_equal(wrapped.X, fresh)
    assert repr(wrapped) == "<Unlabeled ndarray of 400 rows>"
    for name in ("shape", "__len__", "__array__", "__getitem__"):
        assert not hasattr(wrapped, name)


def test_tables_are_stacked_in_the_form_of_the_first():
    colours = pd.DataFrame({"a": [1.0, 2.0], "c": pd.Categorical(["red", "blue"])})
    more = pd.DataFrame({"a": [3], "c": ["green"]})
    both = stack_rows(colours, more)
    assert both.dtypes.astype(str).tolist() == ["float64", "category"]
    assert both["a"].tolist() == [1, 2, 3]
    assert both["c"].tolist() == ["red", "blue", "green"]
    with pytest.raises(ValueError, match="column 'a' holds no numbers"):
        stack_rows(colours, pd.DataFrame({"a": ["much"], "c": ["red"]}))
    polar = stack_rows(pl.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [2]}))
    assert polar["a"].to_list() == [1.0, 2.0]
    thin = stack_rows(sparse.csr_matrix(np.eye(2)), np.ones((1, 2)))
    np.testing.assert_array_equal(thin.toarray(), [[1, 0], [0, 1], [1, 1]])
