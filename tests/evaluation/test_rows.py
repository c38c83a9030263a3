"""Training rows are known again, and never judged by the model that saw them."""

import numpy as np
import pandas as pd
import pytest

from damvi.evaluation import honest_rows, measure
from damvi.evaluation.rows import true_labels
from damvi.model import fit_table, parse_metric, prepare
from damvi.tables import Target
from tests.report.toy import CLASSES, make_class_model, make_class_table


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)).round(1), columns=list("abc"))
    frame["kind"] = rng.choice(["u", "v"], 400)
    # Coin flips: whoever does better than chance here has peeked.
    frame["y"] = np.where(rng.random(400) < 0.3, "bad", "ok")
    model, _ = fit_table(prepare(frame, "y"), parse_metric("f1"), pool="trees")
    return frame, model


def test_all_rows_get_their_stored_votes(fitted):
    frame, model = fitted
    judged = honest_rows(model, frame)
    assert judged.of_fit.all()
    np.testing.assert_array_equal(judged.vote, model.training.vote)
    np.testing.assert_array_equal(judged.labels, frame["y"] == "bad")
    assert "All 400 rows are training rows" in judged.words


def test_in_another_order_and_with_other_columns(fitted):
    frame, model = fitted
    order = np.random.default_rng(1).permutation(400)
    shuffled = frame.iloc[order][["y", "kind", "c", "b", "a"]].reset_index(drop=True)
    judged = honest_rows(model, shuffled.assign(extra=1))
    assert judged.of_fit.all()
    # Rows with the same values and label may trade their votes.
    assert sorted(judged.vote) == sorted(model.training.vote)
    without = honest_rows(model, shuffled.drop(columns="y"))
    assert without.labels is None
    assert without.of_fit.all()


def test_new_rows_get_the_vote_of_the_model(fitted):
    frame, model = fitted
    new = frame.head(50).assign(a=lambda t: t["a"] + 100)
    judged = honest_rows(model, pd.concat([frame.tail(30), new], ignore_index=True))
    assert judged.of_fit.tolist() == [True] * 30 + [False] * 50
    expected = model.classifier.vote(model.schema.encode(new))
    np.testing.assert_array_equal(judged.vote[30:], expected)
    assert "30 of 80 rows" in judged.words


def test_a_row_with_a_changed_label_or_once_more_is_still_known(fitted):
    frame, model = fitted
    row = frame.head(1)
    other = row.assign(y="ok" if row["y"].iloc[0] == "bad" else "bad")
    judged = honest_rows(model, pd.concat([row, row, other], ignore_index=True))
    assert judged.of_fit.all()


def test_decisions_and_chances_are_the_classifiers_own(fitted):
    frame, model = fitted
    new = frame.assign(a=lambda t: t["a"] + 0.05)
    judged = honest_rows(model, new)
    encoded = model.schema.encode(new)
    fresh = ~judged.of_fit
    assert fresh.all()
    np.testing.assert_array_equal(judged.decided, model.classifier.predict(encoded))
    chance = model.classifier.predict_proba(encoded)[:, 1]
    np.testing.assert_array_equal(judged.probability, chance)


def test_strange_or_missing_labels_are_refused(fitted):
    frame, model = fitted
    with pytest.raises(ValueError, match=r"1 row with 'odd'.* knows 'ok' and 'bad'"):
        honest_rows(model, frame.head(3).assign(y=["bad", "odd", "ok"]))
    with pytest.raises(ValueError, match="missing in 1 row"):
        honest_rows(model, frame.head(3).assign(y=["bad", None, "ok"]))
    with pytest.raises(ValueError, match="no target column 'z'"):
        honest_rows(model, frame, "z")


def test_labels_that_the_model_does_not_know_are_all_named():
    target = Target("y", negative="no", positive="yes")
    frame = pd.DataFrame({"y": ["no", "a", "b", "a", "yes", "x" * 200]})
    with pytest.raises(ValueError, match=r"4 rows with 'a', 'b' and 'x{56}\.\.\., but"):
        true_labels(target, frame, "y")


@pytest.fixture(scope="module")
def coins():
    """Coin flips with repeated rows: whoever does better than chance has peeked."""
    rng = np.random.default_rng(5)
    frame = make_class_table(400).round(1)
    frame["fault"] = rng.choice(CLASSES, p=[0.1, 0.2, 0.5, 0.2], size=400)
    frame = pd.concat([frame, frame.head(15).assign(fault=CLASSES[1])], ignore_index=True)
    return frame, make_class_model(frame, threshold="vote")


def test_training_rows_get_their_stored_votes(coins):
    frame, model = coins
    judged = honest_rows(model, frame)
    assert judged.of_fit.all()
    np.testing.assert_array_equal(judged.vote, model.training.vote)
    np.testing.assert_array_equal(judged.labels, model.training.labels)
    found = measure(judged.labels, judged.vote, judged.decided)
    assert found.overall["balanced_accuracy"].value < 0.4
    inside = model.classifier.predict(model.schema.encode(frame))
    assert np.mean(inside == judged.labels) > np.mean(judged.decided == judged.labels) + 0.2
    assert "All 415 rows are training rows" in judged.words


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
    assert "10 rows are left out: no out-of-sample vote" in judged.words


def test_strange_or_missing_labels_of_many_are_refused(coins):
    frame, model = coins
    with pytest.raises(ValueError, match=r"1 row with 'odd'.*'dent'"):
        honest_rows(model, frame.head(3).assign(fault=["dent", "odd", "fine"]))
    with pytest.raises(ValueError, match="missing in 1 row"):
        honest_rows(model, frame.head(3).assign(fault=["dent", None, "fine"]))
    with pytest.raises(ValueError, match="no target column 'z'"):
        honest_rows(model, frame, "z")
