"""Rows of the fit are known again, and never judged by the model that saw them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from damvi.evaluation import honest_rows
from damvi.evaluation.honesty import truth_of
from damvi.modelling import fit_table, parse_metric, prepare


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
    np.testing.assert_array_equal(judged.positive, frame["y"] == "bad")
    assert "All 400 rows are rows of the fit" in judged.words


def test_in_another_order_and_with_other_columns(fitted):
    frame, model = fitted
    order = np.random.default_rng(1).permutation(400)
    shuffled = frame.iloc[order][["y", "kind", "c", "b", "a"]].reset_index(drop=True)
    judged = honest_rows(model, shuffled.assign(extra=1))
    assert judged.of_fit.all()
    # Rows with the same values and label may trade their votes.
    assert sorted(judged.vote) == sorted(model.training.vote)
    without = honest_rows(model, shuffled.drop(columns="y"))
    assert without.positive is None
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
    np.testing.assert_array_equal(judged.flagged, model.classifier.predict(encoded))
    chance = model.classifier.predict_proba(encoded)[:, 1]
    np.testing.assert_array_equal(judged.probability, chance)


def test_strange_or_missing_labels_are_refused(fitted):
    frame, model = fitted
    with pytest.raises(ValueError, match=r"1 rows of 'odd'.*'bad' .positive. and 'ok'"):
        honest_rows(model, frame.head(3).assign(y=["bad", "odd", "ok"]))
    with pytest.raises(ValueError, match="missing in 1 rows"):
        honest_rows(model, frame.head(3).assign(y=["bad", None, "ok"]))
    with pytest.raises(ValueError, match="no target column 'z'"):
        honest_rows(model, frame, "z")


def test_labels_that_the_model_does_not_know_are_all_named():
    model = SimpleNamespace(target=SimpleNamespace(positive="yes", negative="no"))
    frame = pd.DataFrame({"y": ["no", "a", "b", "a", "yes", "x" * 200]})
    with pytest.raises(ValueError, match=r"4 rows of 'a', 'b' and 'x{56}\.\.\., but"):
        truth_of(model, frame, "y")
