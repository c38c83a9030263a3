"""Dataframes with categories, from pandas and from polars."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from damvi import DAMVIClassifier, FastTreeClassifier
from damvi.validation import Categories, FrameTable, HashedCategories

COLOURS = ["red", "green", "blue", "grey"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 4, 600)
    amount = rng.normal(size=600)
    y = ((colour == 2) & (amount > 0.3)).astype(int)
    return [COLOURS[i] for i in colour], amount, y


def pandas_frame(colour, amount, categories=None):
    return pd.DataFrame(
        {"colour": pd.Categorical(colour, categories=categories), "amount": amount}
    )


def polars_frame(colour, amount):
    return pl.DataFrame(
        {"colour": pl.Series(colour, dtype=pl.Categorical), "amount": amount}
    )


def fitted(X, y):
    return DAMVIClassifier(n_estimators=8, max_samples=0.5, random_state=0).fit(X, y)


def test_categories_are_learned_from_pandas_and_polars_alike(table):
    colour, amount, y = table
    a, b = pandas_frame(colour, amount), polars_frame(colour, amount)
    on_pandas, on_polars = fitted(a, y), fitted(b, y)
    np.testing.assert_array_equal(on_pandas.vote(a), on_polars.vote(b))
    assert on_pandas.score(a, y) > 0.99


def test_the_order_of_the_categories_does_not_matter_at_predict(table):
    colour, amount, y = table
    model = fitted(pandas_frame(colour, amount), y)
    other = pandas_frame(
        colour, amount, categories=["blue", "mauve", "grey", "red", "green"]
    )
    np.testing.assert_array_equal(
        model.vote(pandas_frame(colour, amount)), model.vote(other)
    )


def test_unseen_and_missing_categories_are_answered(table):
    colour, amount, y = table
    model = fitted(pandas_frame(colour, amount), y)
    new = pandas_frame(["mauve", None, "blue"], [1.0, 1.0, 1.0])
    assert model.predict(new).shape == (3,)
    assert model.predict(new)[2] == 1


def test_missing_categories_are_learned(table):
    colour, amount, y = table
    holes = [None if c == "blue" else c for c in colour]
    X = pandas_frame(holes, amount)
    assert fitted(X, y).score(X, y) > 0.99


def test_columns_named_as_categorical_are_categories(table):
    colour, amount, y = table
    X = pd.DataFrame({"colour": [COLOURS.index(c) for c in colour], "amount": amount})
    tree = FastTreeClassifier(categorical_features=["colour"], random_state=0).fit(X, y)
    by_place = FastTreeClassifier(categorical_features=[0], random_state=0).fit(X, y)
    by_mask = FastTreeClassifier(categorical_features=[True, False], random_state=0).fit(
        X, y
    )
    np.testing.assert_array_equal(tree.predict(X), by_place.predict(X))
    np.testing.assert_array_equal(tree.predict(X), by_mask.predict(X))
    assert tree.get_n_leaves() == 3  # blue and a threshold


@pytest.mark.parametrize("kind", [object, "string"])
def test_text_is_a_category(table, kind):
    colour, amount, y = table
    known = pandas_frame(colour, amount)
    text = known.astype({"colour": kind})
    by_text, by_category = fitted(text, y), fitted(known, y)
    for X in (text, known, pl.from_pandas(text.astype({"colour": object}))):
        np.testing.assert_array_equal(
            by_text.predict_proba(X), by_category.predict_proba(X)
        )
        np.testing.assert_array_equal(
            by_category.predict_proba(X), by_text.predict_proba(X)
        )


def test_numbers_that_were_categories_may_come_as_text(table):
    colour, amount, y = table
    numbers = pd.Categorical([COLOURS.index(c) for c in colour])
    X = pd.DataFrame({"colour": numbers, "amount": amount})
    model = fitted(X, y)
    text = X.assign(colour=X["colour"].astype(str))
    np.testing.assert_array_equal(model.predict_proba(text), model.predict_proba(X))


@pytest.mark.parametrize("value", [["a"], {"a": 1}, date(2020, 1, 1)])
def test_what_is_no_value_is_refused_by_name_with_the_cure(table, value):
    colour, amount, y = table
    X = pandas_frame(colour, amount).assign(note=pd.Series([value] * len(y)))
    with pytest.raises(ValueError, match=r"'note' is not numeric.*astype\('category'\)"):
        fitted(X, y)


def test_text_where_numbers_were_is_refused_by_name(table):
    colour, amount, y = table
    model = fitted(pandas_frame(colour, amount), y)
    with pytest.raises(ValueError, match="'amount' has categories or text, but"):
        model.predict(pd.DataFrame({"colour": ["blue"], "amount": ["much"]}))


def test_very_many_categories_are_known_by_their_hashes():
    texts = [f"person {number}" for number in range(400)]
    X = pd.DataFrame({"who": pd.Categorical(texts), "size": 1.0})
    known = Categories.learn(X)
    assert known.by_column == (HashedCategories(254), None)
    whole = FrameTable(X, known)[:][:, 0]
    assert len(np.unique(whole)) > 180
    assert whole.max() < 254
    new = pd.DataFrame({"who": ["person 7", "nobody", None], "size": 1.0})
    found = FrameTable(new, known)[:][:, 0]
    assert found[0] == whole[7]
    assert np.isnan(found).tolist() == [False, False, True]


def test_columns_of_the_same_name_are_refused(table):
    _, amount, y = table
    X = pd.DataFrame(np.column_stack([amount, amount]), columns=["a", "a"])
    with pytest.raises(ValueError, match=r"more than one column named \['a'\]"):
        fitted(X, y)


def test_infinity_is_refused_by_name(table):
    colour, amount, y = table
    X = pandas_frame(colour, amount)
    X.loc[3, "amount"] = np.inf
    with pytest.raises(ValueError, match="'amount' contains infinity"):
        fitted(X, y)


def test_another_kind_of_column_at_predict_is_refused_by_name(table):
    colour, amount, y = table
    model = fitted(pandas_frame(colour, amount), y)
    numbers = pd.DataFrame({"colour": 1.0, "amount": amount})
    with pytest.raises(ValueError, match="'colour' had categories in fit"):
        model.predict(numbers)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [(["hue"], r"has \['hue'\]"), ([5], "from 0 to 1"), ([True], "mask of shape")],
)
def test_bad_categorical_features_are_named(table, chosen, message):
    colour, amount, y = table
    X = pd.DataFrame({"colour": [COLOURS.index(c) for c in colour], "amount": amount})
    with pytest.raises(ValueError, match=message):
        FastTreeClassifier(categorical_features=chosen).fit(X, y)
