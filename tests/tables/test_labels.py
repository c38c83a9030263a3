"""Targets of three or more classes: which are read, which refused, what gives them away."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi.evaluation.rows import true_labels
from damvi.model import prepare
from damvi.tables import Schema, label_texts, many


def labels(values):
    return pd.Series(values, name="kind", dtype="string")


def test_numbers_by_size_and_texts_in_order():
    classes, places = many(labels(["b", "10", "2", "a"] * 3))
    assert classes == ("2", "10", "a", "b")
    assert places.tolist() == [3, 1, 0, 2] * 3


def test_the_same_label_however_it_is_written():
    written = label_texts(pd.Series(["1", "1.0", " 1", "2", "2 ", "NA", "NA"], name="kind"))
    assert many(written)[0] == ("1", "2", "NA")


rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (rng.normal(size=500).round(2), "look like amounts or ids"),
        (np.arange(500), "500 different numbers, such as 0, 250 and 499"),
        (np.arange(500) // 5, "100 different numbers"),
        (np.repeat(np.arange(300), 12), "300 different numbers"),
        ([f"user {i}" for i in range(500)], "like an id or free text"),
        ([f"c{i % 257}" for i in range(1000)], "257 classes, but at most 256"),
        (["a", "b", "b", "c", "c"], "a class with one row: 'a'"),
        (["a", "b", "d", "d", "c", "c"], "classes with one row each: 'a' and 'b'"),
    ],
)
def test_what_is_no_class(values, words):
    with pytest.raises(ValueError, match=words) as caught:
        many(labels([str(value) for value in values]))
    assert "'kind'" in str(caught.value)
    assert "--positive" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(60) % 20 / 2,  # grades: few, if not whole
        np.repeat(np.arange(62), 12),
        np.arange(256 * 10) % 256,
        [f"c{i % 256}" for i in range(600)],
    ],
)
def test_what_is(values):
    texts = labels([str(value) for value in values])
    classes, places = many(texts)
    assert [classes[place] for place in places] == texts.tolist()


def judged(values, places):
    frame = pd.DataFrame({"x": values, "y": places})
    return Schema.infer(frame, "y", np.asarray(places)).columns[0]


def test_the_target_in_disguise():
    y = np.arange(300) % 3
    for copy in (y * 7, np.array(["u", "v", "w"])[y], np.array([1.5, np.nan, 2])[y]):
        column = judged(copy, y)
        assert column.kind == "dropped", column
        assert "EQUALS THE TARGET" in column.reason
    other = y * 7
    other[0] = 14
    assert judged(other, y).reason == ""
    assert judged(np.where(y == 2, 1, y), y).reason == ""  # two classes share a value


def test_a_number_that_parts_all_classes_and_one_that_parts_some():
    y = np.arange(300) % 3
    noise = rng.random(300)
    assert "SEPARATES THE CLASSES ALONE" in judged(y * 10 + noise, y).reason
    assert judged((y == 0) * 10 + noise, y).reason == ""


def test_gaps_of_one_class():
    y = np.arange(300) % 3
    closed = np.where(y == 1, np.nan, rng.normal(size=300))
    column = judged(closed, y)
    assert column.kind == "dropped"
    assert "MISSING VALUES REVEAL A CLASS" in column.reason
    days = pd.Series(pd.date_range("2024-01-01", periods=300)).mask(y != 2)
    assert "MISSING VALUES REVEAL" in judged(days, y).reason
    closed[:30] = 0.0
    closed[60:90] = np.nan
    assert judged(closed, y).reason == ""


# Labels that are one


def payments(labels):
    rng = np.random.default_rng(6)
    x = rng.normal(size=len(labels)) + 2 * np.array(["raud" in label for label in labels])
    return pd.DataFrame({"x": x, "y": labels})


POOL = [("tree", DecisionTreeClassifier(max_depth=2)), ("bayes", GaussianNB())]
LABELS = ["fraud", "ok", "ok", "Fraud", "ok", " fraud ", "ok", "FRAUD", "ok", "ok"] * 20


def test_labels_that_differ_in_case_are_named_and_merged_on_request():
    """Of Fraud and fraud the former counted as negative, or was a class of its own."""
    found = prepare(payments(LABELS), "y", "fraud")
    assert found.y.sum() == 40
    [warning] = [text for text in found.warnings if text.startswith("LABELS")]
    assert "'fraud' (40 rows)" in warning
    assert "'Fraud' (20 rows)" in warning
    assert "--merge-labels" in warning
    for positive in (None, "Fraud", "fraud"):
        merged = prepare(payments(LABELS), "y", positive, merged=True)
        assert merged.warnings == []
        assert merged.y.sum() == 80
        assert (merged.target.negative, merged.target.positive) == ("ok", "fraud")
    assert merged.target.merged
    truth = true_labels(merged.target, payments(["FrAUD", "OK", "ok"]), "y")
    assert truth.tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="'FrAUD'"):
        true_labels(replace(merged.target, merged=False), payments(["FrAUD", "ok"]), "y")


def test_merged_labels_from_the_command_to_the_evaluation(tmp_path):
    payments(LABELS).to_csv(tmp_path / "t.csv", index=False)
    model = damvi.fit(tmp_path / "t.csv", "y", merge_labels=True, pool=POOL)
    model.save(tmp_path / "m.damvi")
    again = damvi.load(tmp_path / "m.damvi")
    assert again.target.merged
    rows = again.predict(payments(LABELS))
    assert set(rows["decision"]) <= {"fraud", "ok"}
