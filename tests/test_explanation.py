"""Contributions add up, and are the Shapley values where these can be had exactly."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.evaluation import FittedVote
from damvi.explanation import as_text, contributions, explain, importances
from damvi.labels import Labels
from tests.report.toy import (
    CLASSES,
    make_class_model,
    make_class_table,
    make_model,
    make_table,
)


class Formula:
    """A model of one voter whose vote is any function of the row."""

    weights_ = np.ones(1)
    voters_ = None
    labels_ = Labels.restored(np.array([0, 1]), 1, np.array([0, 1]))

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
    model = DAMVIClassifier(n_estimators=10, random_state=0)
    if pool is not None:
        model = DAMVIVotingClassifier(pool, random_state=0)
    model.fit(X, y)
    names = FittedVote(model).names
    found = contributions(model, X[:4], X, "abcd", names)
    assert found.by_column.sum(axis=1) + found.base == pytest.approx(found.vote)
    assert found.by_voter.sum(axis=1) == pytest.approx(found.vote)
    again = contributions(model, X[:4], X, "abcd", names)
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
    found = explain(model, make_table(80, seed=2))
    assert len(found.rows) == 20
    votes = [row.parts.vote[0] for row in found.rows]
    assert votes == sorted(votes, reverse=True)
    for row in found.rows:
        parts = row.parts
        assert set(parts.columns) == {"amount", "noise", "kind", "day"}
        assert parts.by_column.sum() + parts.base == pytest.approx(parts.vote[0])
        assert row.label == "yes"
        flagged = parts.vote[0] > model.classifier.threshold_
        assert row.decided == ("yes" if flagged else "no")
    assert found.notes == []
    told = found.as_dict()["rows"][0]
    assert told["columns"][0]["name"] == "amount"
    known = explain(model, frame, [5])
    assert "are training rows" in known.notes[0]
    with pytest.raises(ValueError, match="rows 1 to 600"):
        explain(model, frame, [601])


def test_gaps_and_categories_survive_the_mixing():
    frame = make_table()
    model = make_model(frame)
    rows = make_table(60, seed=3)
    rows.loc[::2, "amount"] = np.nan
    rows.loc[::3, "kind"] = "never seen"
    found = explain(model, rows, [1, 2])
    assert all(np.isfinite(row.parts.by_column).all() for row in found.rows)
    assert found.rows[0].values[0] == ""


def test_values_as_text():
    told = [as_text(v) for v in (np.float32(0.1), pd.NA, None, True, 3.0, "x" * 200)]
    assert told[:5] == ["0.1", "", "", "True", "3"]
    assert len(told[5]) == 80


@pytest.fixture(scope="module", params=["trees", "pool"])
def model(request):
    pool = None
    frame = make_class_table(400)
    if request.param == "pool":
        pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
        frame = frame.drop(columns="line")
    return make_class_model(frame, pool)


@pytest.fixture(scope="module")
def new():
    return make_class_table(80, seed=1)


def explained_of(model, frame, rows=None, label=None):
    return explain(model, frame, rows, label=label)


def test_parts_add_up_to_the_votes_for_the_class_decided(model, new):
    found = explained_of(model, new, [3, 1, 20])
    assert [row.number for row in found.rows] == [3, 1, 20]
    shown = str(found).splitlines()
    assert shown[1].startswith(f"  {found.ranked.names[0]} ")
    assert [line.split(":")[0] for line in shown if "score" in line][:3] == [
        "  3",
        "  1",
        "  20",
    ]
    X = model.schema.encode(new)
    votes, decided = model.classifier.vote(X), model.classifier.predict(X)
    for row in found.rows:
        place = decided[row.number - 1]
        assert row.label == row.decided == CLASSES[place]
        vote = votes[row.number - 1, place]
        assert row.parts.vote[0] == vote
        assert row.parts.by_column.sum() + row.parts.base == pytest.approx(vote)
        assert row.parts.by_voter.sum() == pytest.approx(vote)
        assert row.values[0] == f"{new[row.parts.columns[0]].iloc[row.number - 1]:.6g}"


def test_a_class_asked_for_and_its_highest_rows(model, new):
    found = explained_of(model, new, label="dent")
    votes = model.classifier.vote(model.schema.encode(new))[:, CLASSES.index("dent")]
    expected = np.argsort(-votes, kind="stable")[:20] + 1
    assert [row.number for row in found.rows] == expected.tolist()
    assert {row.label for row in found.rows} == {"dent"}
    for row in found.rows:
        assert row.parts.vote[0] == votes[row.number - 1]
    assert found.as_dict()["rows"][0]["class"] == "dent"


def test_by_default_rows_that_are_least_of_the_largest_class(model, new):
    found = explained_of(model, new)
    votes = model.classifier.vote(model.schema.encode(new))[:, CLASSES.index("fine")]
    expected = np.argsort(-(1 - votes), kind="stable")[:20] + 1
    assert [row.number for row in found.rows] == expected.tolist()


def test_rows_of_the_fit_and_wrong_classes_are_told(model):
    found = explained_of(model, make_class_table(400), [1])
    assert "training rows" in found.notes[0]
    with pytest.raises(ValueError, match="unknown class 'dint'"):
        explained_of(model, make_class_table(10), label="dint")
    frame = make_table(200)
    two = make_model(frame)
    with pytest.raises(ValueError, match="unknown class 'no'; the model votes for 'yes'"):
        explained_of(two, frame, label="no")
    asked, plain = (explained_of(two, frame, label=label) for label in ("yes", None))
    assert asked.as_dict() == plain.as_dict()


def test_importances_know_many_classes(model):
    frame = make_class_table(300, seed=2)
    X = model.schema.encode(frame)
    names = [column.name for column in model.schema.used for _ in column.features]
    found = importances(model.classifier, X, names)
    assert set(found.names[:2]) == {"width", "depth"}
    is_pool = isinstance(model.classifier, DAMVIVotingClassifier)
    assert found.method == ("shuffled" if is_pool else "own")
    if found.method == "shuffled":
        assert all(0 <= value <= 1 for value in found.values)
        assert "the vote (0 to 1)" in found.words
