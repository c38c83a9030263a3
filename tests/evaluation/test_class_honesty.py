"""Rows of a fit of many classes are known again, and judged by their stored votes."""

import numpy as np
import pandas as pd
import pytest

from damvi.evaluation import ClassJudged, honest_rows, measure_classes
from tests.report.class_toy import CLASSES, make_class_model, make_class_table


@pytest.fixture(scope="module")
def coins():
    """Coin flips with repeated rows: whoever does better than chance has peeked."""
    rng = np.random.default_rng(5)
    frame = make_class_table(400).round(1)
    frame["fault"] = rng.choice(CLASSES, p=[0.1, 0.2, 0.5, 0.2], size=400)
    frame = pd.concat([frame, frame.head(15).assign(fault=CLASSES[1])], ignore_index=True)
    return frame, make_class_model(frame, threshold="vote")


def test_rows_of_the_fit_get_their_stored_votes(coins):
    frame, model = coins
    judged = honest_rows(model, frame)
    assert isinstance(judged, ClassJudged)
    assert judged.of_fit.all()
    np.testing.assert_array_equal(judged.vote, model.training.vote)
    np.testing.assert_array_equal(judged.labels, model.training.labels)
    found = measure_classes(judged.labels, judged.vote, judged.decided)
    assert found.overall["balanced_accuracy"].value < 0.4
    inside = model.classifier.predict(model.schema.encode(frame))
    assert np.mean(inside == judged.labels) > np.mean(judged.decided == judged.labels) + 0.2
    assert "All 415 rows are rows of the fit" in judged.words


def test_rows_of_the_same_values_keep_the_votes_of_their_own_labels(coins):
    frame, model = coins
    order = np.random.default_rng(1).permutation(len(frame))
    judged = honest_rows(model, frame.iloc[order].reset_index(drop=True))
    # Rows that are the same in all and twice there may trade their votes.
    same = frame.duplicated(["width", "depth", "line", "fault"], keep=False).to_numpy()[
        order
    ]
    assert same.mean() < 0.5
    expected = model.training.vote[order]
    np.testing.assert_array_equal(judged.vote[~same], expected[~same])


def test_new_rows_are_decided_as_the_classifier_does(coins):
    _, model = coins
    new = make_class_table(100, seed=3)
    judged = honest_rows(model, new)
    X = model.schema.encode(new)
    assert not judged.of_fit.any()
    np.testing.assert_array_equal(judged.decided, model.classifier.predict(X))
    np.testing.assert_array_equal(judged.probability, model.classifier.predict_proba(X))
    assert honest_rows(model, new.drop(columns="fault")).labels is None


def test_rows_without_a_vote_are_known_as_such(coins):
    frame, _ = coins
    model = make_class_model(frame)
    model.training.vote[:10] = np.nan
    judged = honest_rows(model, frame)
    assert (~judged.has_vote).sum() == 10
    assert "10 rows have none and are left out" in judged.words


def test_strange_or_missing_labels_are_refused(coins):
    frame, model = coins
    with pytest.raises(ValueError, match=r"1 rows of classes such as 'odd'.*'dent'"):
        honest_rows(model, frame.head(3).assign(fault=["dent", "odd", "fine"]))
    with pytest.raises(ValueError, match="missing in 1 rows"):
        honest_rows(model, frame.head(3).assign(fault=["dent", None, "fine"]))
    with pytest.raises(ValueError, match="no target column 'z'"):
        honest_rows(model, frame, "z")
