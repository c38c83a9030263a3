"""What the page says is true of the rows, and never in-sample."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from damvi.report import render, summarise

from .toy import make_model, make_table


def test_rows_of_the_fit_are_judged_by_their_stored_votes(model, fitted):
    said = summarise(model, fitted.sample(frac=1, random_state=0))
    stored = model.training.vote > model.classifier.threshold_
    truth = model.training.positive
    assert said["decision"]["found"] == (stored & truth).sum()
    assert said["decision"]["false_alarms"] == (stored & ~truth).sum()
    own = model.classifier.predict(model.schema.encode(fitted)).astype(bool)
    assert said["decision"]["found"] != (own & truth).sum()  # in sample it is better
    assert said["data"]["of_fit"] == len(fitted)
    assert "No promise" in said["certificate"]["why"]
    assert said["voters"]["of_fit"]
    page = render(said)
    assert "Judged on the rows of the fit, out of sample." in page


def test_new_rows_get_a_certificate_and_the_voters_votes(model, fresh_rows):
    said = summarise(model, fresh_rows)
    truth = (fresh_rows["fraud"] == "yes").to_numpy()
    vote = model.classifier.vote(model.schema.encode(fresh_rows))
    flagged = vote > model.classifier.threshold_
    assert said["decision"]["missed"] == (truth & ~flagged).sum()
    assert said["certificate"]["missed"]["errors"] == (truth & ~flagged).sum()
    assert not said["voters"]["of_fit"]
    assert said["voters"]["hard"]["total"] == (truth & ~flagged).sum()
    own = said["cuts"]["own"]
    assert said["cuts"]["found"][own] == said["decision"]["found"]
    assert said["cuts"]["alarms"][own] == said["decision"]["false_alarms"]
    missed = said["missed"]["rows"]
    numbers = [row["row"] for row in missed]
    assert sorted(numbers) == (np.flatnonzero(truth & ~flagged) + 1).tolist()
    scores = [row["score"] for row in missed]
    assert scores == sorted(scores)
    assert said["false_alarms"]["total"] == (~truth & flagged).sum()


def test_the_summary_is_plain_json(model, fresh_rows):
    said = summarise(model, fresh_rows, name="toy.csv", command="damvi report")
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_rows_keep_their_numbers_where_the_truth_has_gaps(model, fresh_rows):
    frame = fresh_rows.copy()
    frame.loc[::3, "fraud"] = None
    said = summarise(model, frame)
    assert said["data"]["without_truth"] == (len(frame) + 2) // 3
    for row in said["missed"]["rows"]:
        assert frame["fraud"].iloc[row["row"] - 1] == "yes"
    assert "without a truth" in render(said)
    with pytest.raises(ValueError, match="no value in any row"):
        summarise(model, frame.assign(fraud=None))


def test_without_the_target_the_flagged_rows_are_shown(model, fresh_rows):
    said = summarise(model, fresh_rows.drop(columns="fraud"))
    flagged = model.classifier.predict(model.schema.encode(fresh_rows)).astype(bool)
    assert said["flagged"]["part"] == flagged.sum()
    assert [r["row"] for r in said["flagged_rows"]["rows"]] != []
    page = render(said)
    assert "come without the truth" in page
    assert 'id="confusion"' not in page


@pytest.mark.parametrize("label", ["yes", "no"])
def test_rows_of_one_class_make_a_page(model, fresh_rows, label):
    some = fresh_rows[fresh_rows["fraud"] == label]
    said = summarise(model, some)
    assert said["curves"] is None
    assert said["scores"] == []
    assert "What you get" in render(said)


def test_a_single_row(model, fresh_rows):
    for label in ("yes", "no"):
        row = fresh_rows[fresh_rows["fraud"] == label].iloc[[0]]
        assert "What you get" in render(summarise(model, row))


def test_a_pool_of_models_with_names():
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    frame = make_table(300).drop(columns=["kind", "id"])
    model = make_model(frame.assign(id="x"), [("linear", linear), ("bayes", GaussianNB())])
    said = summarise(model, frame)
    assert {w["name"] for w in said["voters"]["weights"]} == {"linear", "bayes"}
    assert said["importances"]["method"] == "shuffled"
    assert said["importances"]["names"][0] == "amount"
    assert "day" in said["importances"]["names"]  # its parts count together
    assert "calibration that was learned on other rows" in said["calibration"]["words"]


def test_another_target_column_and_a_wrong_one(model, fresh_rows):
    frame = fresh_rows.rename(columns={"fraud": "checked"})
    said = summarise(model, frame, "checked")
    assert said["decision"] == summarise(model, fresh_rows)["decision"]
    assert said["target"]["name"] == "checked"
    with pytest.raises(ValueError, match="no target column 'chekced'"):
        summarise(model, frame, "chekced")


def test_rows_without_an_honest_vote_are_left_out(fitted):
    model = make_model(fitted)
    model.training.vote[:40] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = summarise(model, fitted)
    assert said["data"]["judged"] == len(fitted) - 40
    assert sum(
        said["decision"][k] for k in ("found", "missed", "false_alarms", "passed")
    ) == (len(fitted) - 40)
    model.training.vote[:] = np.nan
    with pytest.raises(ValueError, match="no row has an honest vote"):
        summarise(model, fitted)


def test_a_model_that_kept_no_voters_says_why(fitted):
    model = make_model(fitted, with_voters=False)
    said = summarise(model, fitted)
    assert not said["voters"]["known"]
    assert "no measure" in render(said)


def test_all_columns_are_counted_and_some_are_listed():
    table = make_table()
    wide = {f"n{k}": np.random.default_rng(k).normal(size=len(table)) for k in range(210)}
    frame = pd.concat([table, pd.DataFrame(wide)], axis="columns")
    page = render(summarise(make_model(frame), frame))
    assert "214 columns are used and 1 are not" in page
    assert "15 more" in page
    assert "n194" in page
