"""Rows of many classes: parts that add up, for the class decided or asked for."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi.evaluation.voters import voter_names
from damvi.explanation import ClassExplained, explain, importances
from tests.report.class_toy import CLASSES, make_class_model, make_class_table
from tests.report.toy import make_model, make_table


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
    names = voter_names(model.classifier)
    return explain(model, frame, rows, label=label, voters=names)


def test_parts_add_up_to_the_votes_for_the_class_decided(model, new):
    found = explained_of(model, new, [3, 1, 20])
    assert isinstance(found, ClassExplained)
    assert [row.number for row in found.rows] == [3, 1, 20]
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
    assert "in the fit" in found.notes[0]
    with pytest.raises(ValueError, match="no class 'dint'"):
        explained_of(model, make_class_table(10), label="dint")
    frame = make_table(200)
    with pytest.raises(ValueError, match="two classes, and its scores are those of 'yes'"):
        explained_of(make_model(frame), frame, label="yes")


def test_importances_know_many_classes(model):
    frame = make_class_table(300, seed=2)
    X = model.schema.encode(frame)
    names = [column.name for column in model.schema.used for _ in column.features]
    found = importances(model.classifier, X, names)
    assert set(found.names[:2]) == {"width", "depth"}
    assert found.method == ("shuffled" if model.classifier._is_pool else "own")
    if found.method == "shuffled":
        assert all(0 <= value <= 1 for value in found.values)
        assert "other classes" in found.words
