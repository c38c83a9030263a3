"""Contributions add up, and are the Shapley values where these can be had exactly."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier
from damvi.evaluation.voters import voter_names
from damvi.explanation import contributions, explain, importances
from damvi.explanation.columns import as_text

from ..report.toy import make_model, make_table


class Formula:
    """A model of one voter whose vote is any function of the row."""

    weights_ = np.ones(1)
    _is_pool = True

    def __init__(self, function):
        self.function = function

    def vote(self, X):
        return self.function(np.asarray(X))

    def cast_votes(self, X):
        return self.vote(X)[:, None]


def exact(function, x, background):
    """By the definition: the mean over all orders and background rows."""
    n = len(x)
    total = np.zeros(n)
    orders = list(permutations(range(n)))
    for b in background:
        for order in orders:
            row = b.copy()
            for j in order:
                before = function(row[None])[0]
                row[j] = x[j]
                total[j] += function(row[None])[0] - before
    return total / (len(orders) * len(background))


def test_two_columns_are_exact():
    def product(X):
        return X[:, 0] * X[:, 1] + np.abs(X[:, 0])

    rng = np.random.default_rng(0)
    X, background = rng.normal(size=(3, 2)), rng.normal(size=(7, 2))
    found = contributions(Formula(product), X, background, "ab", ["it"])
    for x, said in zip(X, found.by_column, strict=True):
        assert said == pytest.approx(exact(product, x, background))
    assert found.background == 7


def test_sums_of_columns_are_exact_whatever_the_draws():
    weights = np.array([0.5, -2.0, 0.0, 1.0])
    rng = np.random.default_rng(0)
    X, background = rng.normal(size=(2, 4)), rng.normal(size=(20, 4))
    found = contributions(Formula(lambda X: X @ weights), X, background, "abcd", ["it"])
    assert found.by_column == pytest.approx(weights * (X - background.mean(axis=0)))
    # A column that is not used gets exactly nothing.
    assert not found.by_column[:, 2].any()


def test_the_standard_error_is_about_the_distance_to_the_truth():
    def tangled(X):
        return X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3]

    rng = np.random.default_rng(1)
    x, background = np.ones(4), rng.normal(size=(32, 4))
    truth = exact(tangled, x, background)
    off = []
    for seed in range(30):
        found = contributions(
            Formula(tangled), x[None], background, "abcd", [""], seed=seed
        )
        assert found.by_column.sum() + found.base == pytest.approx(found.vote[0])
        off.append((found.by_column[0] - truth) / np.maximum(found.error[0], 1e-12))
    assert np.abs(np.array(off)[:, :3]).mean() < 1.2


@pytest.mark.parametrize(
    "pool", [None, [("linear", LogisticRegression()), ("bayes", GaussianNB())]]
)
def test_parts_sum_to_the_vote(table, pool):
    X, y = table
    model = DAMVIClassifier(pool, n_estimators=10, random_state=0).fit(X, y)
    found = contributions(model, X[:4], X, "abcd", voter_names(model))
    assert found.by_column.sum(axis=1) + found.base == pytest.approx(found.vote)
    assert found.by_voter.sum(axis=1) == pytest.approx(found.vote)
    again = contributions(model, X[:4], X, "abcd", voter_names(model))
    assert np.array_equal(found.by_column, again.by_column)


def test_features_of_one_column_come_in_together():
    def both(X):
        return X[:, 0] * X[:, 1]

    rng = np.random.default_rng(0)
    X, background = rng.normal(size=(1, 2)), rng.normal(size=(5, 2))
    found = contributions(Formula(both), X, background, ["day", "day"], ["it"])
    assert found.columns == ("day",)
    assert found.by_column[0, 0] == pytest.approx(both(X)[0] - both(background).mean())


def test_a_single_background_row_has_no_error():
    found = contributions(
        Formula(lambda X: X[:, 0]), np.ones((1, 1)), np.zeros((1, 1)), "a", ["it"]
    )
    assert np.isnan(found.error).all()
    assert found.by_column[0, 0] == 1


def test_shuffling_finds_what_the_vote_uses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    found = importances(Formula(lambda X: X[:, 1] + 0.1 * X[:, 0]), X, "abc")
    assert found.names == ("b", "a", "c")
    assert found.values[2] == 0
    assert found.method == "shuffled"


def test_a_table_is_explained_in_its_own_columns():
    frame = make_table()
    model = make_model(frame)
    voters = voter_names(model.classifier)
    found = explain(model, make_table(80, seed=2), voters=voters)
    assert len(found.numbers) == 20
    assert (np.diff(found.parts.vote) <= 0).all()
    assert set(found.parts.columns) == {"amount", "noise", "kind", "day"}
    assert found.parts.by_column.sum(axis=1) + found.parts.base == pytest.approx(
        found.parts.vote
    )
    assert found.notes == []
    told = found.as_dict()["rows"][0]
    assert told["columns"][0]["name"] == "amount"
    known = explain(model, frame, [5], voters=voters)
    assert "were in the fit" in known.notes[0]
    with pytest.raises(ValueError, match="rows 1 to 600"):
        explain(model, frame, [601], voters=voters)


def test_gaps_and_categories_survive_the_mixing():
    frame = make_table()
    model = make_model(frame)
    rows = make_table(60, seed=3)
    rows.loc[::2, "amount"] = np.nan
    rows.loc[::3, "kind"] = "never seen"
    found = explain(model, rows, [1, 2], voters=voter_names(model.classifier))
    assert np.isfinite(found.parts.by_column).all()
    assert found.values[0][0] == ""


def test_values_as_text():
    told = [as_text(v) for v in (np.float32(0.1), pd.NA, None, True, 3.0, "x" * 200)]
    assert told[:5] == ["0.1", "", "", "True", "3"]
    assert len(told[5]) == 80
