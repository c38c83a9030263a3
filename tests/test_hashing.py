"""One number a row: the same for the same values, whatever holds them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from damvi import DAMVIClassifier
from damvi.hashing import hash_step, row_hashes, thinned, without_labels

NAMES = ["a", "b", "c", "d"]
KINDS = {
    "lists": np.ndarray.tolist,
    "objects": lambda X: X.astype(object),
    "Fortran order": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES, index=range(7, 7 + len(X))),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "arrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
}


def hashes(X, positive=False):
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return row_hashes(X, np.full(n, int(positive)))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_holds_the_values_does_not_matter(kind):
    X = np.random.RandomState(0).choice([0.0, 1.0, -2.5, 1e300], (200, 4))
    X[5] = X[150] = 0
    np.testing.assert_array_equal(hashes(kind(X)), hashes(X))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32])
def test_the_type_of_the_numbers_does_not_matter(dtype):
    X = np.random.RandomState(0).choice([0, 1], (50, 3))
    np.testing.assert_array_equal(hashes(X.astype(dtype)), hashes(X.astype(float)))


def test_rows_are_the_same_exactly_when_their_values_are():
    X = np.random.RandomState(0).choice([0.0, 0.1, 0.2, 3.0], (20_000, 7))
    places = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    same = np.unique(hashes(X), return_inverse=True)[1]
    assert len(set(zip(places, same, strict=True))) == places.max() + 1 == same.max() + 1


def test_the_place_of_a_value_counts():
    assert len(np.unique(hashes(np.eye(300)))) == 300
    assert len(np.unique(hashes(np.array([[1.0, 2.0], [2.0, 1.0]])))) == 2


def test_zeros_of_either_sign_are_one_value_and_so_are_all_nan():
    quiet = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    X = np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, quiet]])
    assert len(np.unique(hashes(X))) == 1
    assert hashes(X)[0] != hashes(np.zeros((1, 2)))[0]


def test_the_last_bit_is_the_label():
    X = np.random.RandomState(0).normal(size=(30, 2))
    negative, positive = hashes(X), hashes(X, positive=True)
    assert not set(negative) & set(positive)
    np.testing.assert_array_equal(without_labels(negative), without_labels(positive))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["red", None, "blue", "red"]),
        pd.Series(["red", None, "blue", "red"], dtype="category"),
        pd.Series(["red", None, "blue", "red"], dtype="string"),
        pl.Series(["red", None, "blue", "red"]),
        pl.Series(["red", None, "blue", "red"], dtype=pl.Categorical),
        np.array(["red", None, "blue", "red"], dtype=object),
    ],
)
def test_texts_and_categories_are_compared_by_their_text(column):
    if isinstance(column, np.ndarray):
        found = hashes(column[:, np.newaxis])
    else:
        frame = pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame
        found = hashes(frame({"colour": column}))
    assert found[0] == found[3]
    assert len(np.unique(found)) == 3
    # The same in every process, on every machine: it is kept in model files.
    assert found[0] == 25652482529007026


@pytest.mark.parametrize("dtype", ["Int64", "float64", "object", "Float32"])
def test_missing_numbers_are_nan(dtype):
    column = pd.Series([1, None, 3], dtype=dtype)
    expected = hashes(np.array([[1.0], [np.nan], [3.0]]))
    np.testing.assert_array_equal(hashes(pd.DataFrame({"a": column})), expected)


def test_dates_and_lists_have_hashes():
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"])
    frame = pd.DataFrame({"day": days, "tags": [["a"], ["b"], ["a"]]})
    found = hashes(frame)
    assert found[0] == found[2] != found[1]


def test_a_table_without_entries_has_hashes():
    assert len(hashes(np.zeros((0, 3)))) == 0
    assert len(np.unique(hashes(sparse.csr_array((4, 3))))) == 1
    np.testing.assert_array_equal(
        hashes(sparse.csr_array((4, 3))), hashes(np.zeros((4, 3)))
    )


@given(st.lists(st.floats(width=32), min_size=1, max_size=5), st.integers(0, 4))
def test_one_value_changed_is_another_row(row, place):
    X = np.array([row, row])
    X[1, place % len(row)] = 1.5 if X[1, place % len(row)] != 1.5 else 2.5
    one, other = hashes(X)
    assert one != other


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_the_model_keeps_the_hashes_of_its_rows(table, estimator):
    X, y = table
    model = DAMVIClassifier(estimator, n_estimators=3, random_state=0).fit(X, y)
    expected = np.sort(row_hashes(X, y))
    assert model.row_hashes_.dtype == np.uint64
    np.testing.assert_array_equal(model.row_hashes_, expected)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.row_hashes_, expected)


@pytest.mark.skipif(
    sklearn.__version__ < "1.7", reason="older scikit-learn takes no Arrow tables"
)
def test_arrow_tables_can_still_be_given_to_fit(table):
    X, y = table
    arrow = pa.table(dict(zip(NAMES, X.T, strict=True)))
    model = DAMVIClassifier(LogisticRegression(), n_estimators=3, random_state=0)
    expected = np.sort(row_hashes(X, y))
    np.testing.assert_array_equal(model.fit(arrow, y).row_hashes_, expected)


def test_of_many_rows_few_are_remembered_and_alike_ones_together():
    assert [hash_step(n) for n in (10, 2**20 - 1, 2**20, 2**24)] == [1, 1, 2, 32]
    X = np.repeat(np.random.RandomState(0).normal(size=(4000, 2)), 2, axis=0)
    negative, positive = hashes(X), hashes(X, positive=True)
    assert thinned(negative, 1) is negative
    some = thinned(negative, 8)
    assert 700 < len(some) < 1300
    assert set(np.unique(some, return_counts=True)[1]) == {2}
    # What is chosen does not depend on the label.
    np.testing.assert_array_equal(without_labels(thinned(positive, 8)), some)
