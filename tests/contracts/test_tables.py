"""Tables of any kind: the same answers from each, and columns by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.voters import FastForestClassifier, NumberEncoder
from damvi.voters.columns import scaled_table

NAMES = ["a", "b", "c", "d"]
KINDS = {
    "lists": np.ndarray.tolist,
    "Fortran order": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES, index=range(7, 7 + len(X))),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
}


def model(estimator=None, **options):
    return DAMVIClassifier(estimator, n_estimators=6, random_state=0, **options)


def same(one, other, X, Z):
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(Z))
    np.testing.assert_allclose(one.vote(X), other.vote(Z), atol=1e-9)
    np.testing.assert_allclose(one.oob_decision_function_, other.oob_decision_function_)


@pytest.mark.parametrize(
    "estimator", [None, LogisticRegression(), DecisionTreeClassifier()]
)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_table_gives_the_answers_of_an_array(table, fresh, kind, estimator):
    X, y = table
    # Halves of small integers: the same in single precision, as trees see them.
    X, fresh = np.rint(2 * X) / 2, np.rint(2 * fresh) / 2
    expected = model(estimator).fit(X, y)
    same(expected, model(estimator).fit(kind(X), y), fresh, kind(fresh))


@pytest.mark.parametrize(
    "column",
    [
        list,
        pd.Series,
        pl.Series,
        lambda y: pd.Series(y, index=range(9, 9 + len(y))),
        lambda y: pd.Series(np.array(["no", "yes"])[y], dtype="category"),
        lambda y: pd.Series(np.array(["no", "yes"], dtype=object)[y]),
        lambda y: y.astype(bool),
    ],
)
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_labels_come_in_any_container_and_type(table, fresh, column, estimator):
    X, y = table
    frame, new = (pd.DataFrame(Z, columns=NAMES) for Z in (X, fresh))
    expected = model(estimator).fit(frame, y)
    other = model(estimator).fit(frame, column(y))
    np.testing.assert_array_equal(other.vote(new), expected.vote(new))
    assert other.classes_.tolist() == sorted(set(column(y)))
    assert set(other.predict(new)) <= set(other.classes_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_names_of_columns_are_remembered(table, frame, estimator):
    X, y = table
    fitted = model(estimator).fit(frame(dict(zip(NAMES, X.T, strict=True))), y)
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.n_features_in_ == 4


def test_an_array_has_no_names(table):
    assert not hasattr(model().fit(*table), "feature_names_in_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_pipeline_picks_its_columns_by_name(table, frame, bootstrap):
    X, y = table
    colours = np.array(["red", "green", "blue"])[np.arange(len(y)) % 3]
    mixed = frame({"amount": X[:, 0], "colour": colours, "noise": X[:, 2]})
    voter = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["amount"]),
            (OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ),
        LogisticRegression(),
    )
    fitted = model(voter, bootstrap=bootstrap).fit(mixed, y)
    assert fitted.feature_names_in_.tolist() == ["amount", "colour", "noise"]
    assert fitted.score(mixed, y) > 0.85
    silent = frame({"amount": X[:, 0], "colour": colours, "noise": 0 * X[:, 2]})
    np.testing.assert_array_equal(fitted.vote(silent), fitted.vote(mixed))


def test_a_column_of_strings_needs_an_estimator_that_takes_it(table):
    _, y = table
    X = pd.DataFrame({"colour": np.where(y, "red", "blue")})
    with pytest.raises(
        ValueError, match=r"could not convert string to float: '(red|blue)'"
    ):
        model(DecisionTreeClassifier()).fit(X, y)
    assert model().fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier()])
def test_missing_values_pass_where_the_voters_take_them(table, fresh, estimator):
    X, y = table
    holes = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    fitted = model(estimator).fit(holes, y)
    assert fitted.score(holes, y) > 0.85
    assert set(fitted.predict(np.full((2, 4), np.nan))) <= {0, 1}


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
def test_missing_values_are_refused_where_the_voters_do_not(table, frame):
    X, y = table
    holes = X.copy()
    holes[:, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model(LogisticRegression()).fit(frame(holes), y)


def test_sparse_tables_are_refused_where_the_voters_do_not_take_them(table):
    class Dense(DecisionTreeClassifier):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.sparse = False
            return tags

    X, y = table
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        model(Dense()).fit(sparse.csr_array(X), y)


def small_pool():
    """Voters that read categories in three ways: as sets, as numbers, as indicators."""
    boosted = HistGradientBoostingClassifier(max_iter=5)
    named = [
        ("forest", FastForestClassifier(5)),
        ("hist_boosting", make_pipeline(NumberEncoder(), boosted)),
        ("linear", make_pipeline(scaled_table(), LogisticRegression())),
    ]
    return DAMVIVotingClassifier(named, cv=2)


@pytest.mark.parametrize("estimator", [model(), small_pool()], ids=["trees", "pool"])
def test_text_and_categories_are_the_same_at_fit_and_at_predict(estimator):
    """Line 5 of issue 16's table."""
    rng = np.random.default_rng(0)
    shop, size = rng.choice(["north", "south", "web"], 300), rng.normal(size=300)
    y = ((shop == "web") & (size > 0)).astype(int)
    text = pd.DataFrame({"shop": shop.astype(object), "size": size})
    text.loc[5, "shop"] = None
    known = text.astype({"shop": "category"})
    expected = clone(estimator).set_params(random_state=0).fit(known, y)
    found = clone(estimator).set_params(random_state=0).fit(text, y)
    vote = expected.vote(known)
    for fitted in (expected, found):
        for X in (text, known, text.astype({"shop": "string"})):
            np.testing.assert_array_equal(fitted.vote(X), vote)
    unseen = text.head(2).assign(shop=["elsewhere", None])
    assert np.isfinite(expected.vote(unseen)).all()
    with pytest.raises(ValueError, match="'shop'"):
        expected.vote(text.assign(shop=pd.Timestamp(0)))
