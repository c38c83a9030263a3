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

from damvi.evaluation import honest_rows
from damvi.report import render, summarise
from damvi.report.curves import OWN, STEPS, offer_weights
from damvi.report.words import data_words

from .toy import CLASSES, make_class_model, make_class_table, make_model, make_table


def test_rows_of_the_fit_are_judged_by_their_stored_votes(model, fitted):
    said = summarise(model, fitted.sample(frac=1, random_state=0))
    stored = model.training.vote > model.training.threshold
    truth = model.training.positive
    assert said["decision"]["confusion"][1][1] == (stored & truth).sum()
    assert said["decision"]["confusion"][0][1] == (stored & ~truth).sum()
    own = model.classifier.predict(model.schema.encode(fitted)).astype(bool)
    assert (
        said["decision"]["confusion"][1][1] != (own & truth).sum()
    )  # in sample it is better
    assert said["data"]["of_fit"] == len(fitted)
    assert "cannot support a guarantee" in said["certificate"]["why"]
    assert said["voters"]["of_fit"]
    page = render(said)
    assert "Evaluated out of sample on 600 training rows." in page
    own = said["views"][0]["cuts"]["own"]  # where the slider starts
    assert said["views"][0]["cuts"]["found"][own] == (stored & truth).sum()
    assert said["views"][0]["cuts"]["alarms"][own] == (stored & ~truth).sum()


def test_new_rows_get_a_certificate_and_the_voters_votes(model, fresh_rows):
    said = summarise(model, fresh_rows)
    truth = (fresh_rows["fraud"] == "yes").to_numpy()
    vote = model.classifier.vote(model.schema.encode(fresh_rows))
    flagged = vote > model.classifier.threshold_
    assert said["decision"]["confusion"][1][0] == (truth & ~flagged).sum()
    assert said["certificate"]["missed_by_class"][1]["errors"] == (truth & ~flagged).sum()
    assert not said["voters"]["of_fit"]
    assert said["voters"]["hard"]["total"] == (truth & ~flagged).sum()
    own = said["views"][0]["cuts"]["own"]
    assert said["views"][0]["cuts"]["found"][own] == said["decision"]["confusion"][1][1]
    assert said["views"][0]["cuts"]["alarms"][own] == said["decision"]["confusion"][0][1]
    missed = said["rows"]["missed"]["rows"]
    numbers = [row["row"] for row in missed]
    assert sorted(numbers) == (np.flatnonzero(truth & ~flagged) + 1).tolist()
    scores = [row["score"] for row in missed]
    assert scores == sorted(scores)
    assert said["rows"]["false_alarms"]["total"] == (~truth & flagged).sum()


def test_the_summary_is_plain_json(model, fresh_rows):
    said = summarise(model, fresh_rows, name="toy.csv", command="damvi report")
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_rows_keep_their_numbers_where_the_truth_has_gaps(model, fresh_rows):
    frame = fresh_rows.copy()
    frame.loc[::3, "fraud"] = None
    said = summarise(model, frame)
    assert said["data"]["without_truth"] == (len(frame) + 2) // 3
    for row in said["rows"]["missed"]["rows"]:
        assert frame["fraud"].iloc[row["row"] - 1] == "yes"
    assert "unlabelled rows were left out" in render(said)
    with pytest.raises(ValueError, match="is missing in all rows"):
        summarise(model, frame.assign(fraud=None))


def test_without_the_target_the_flagged_rows_are_shown(model, fresh_rows):
    said = summarise(model, fresh_rows.drop(columns="fraud"))
    flagged = model.classifier.predict(model.schema.encode(fresh_rows)).astype(bool)
    assert said["classes"][1]["named"]["part"] == flagged.sum()
    assert [r["row"] for r in said["rows"]["flagged"]["rows"]] != []
    page = render(said)
    assert "No labels: this shows what the model flags, not how well." in page
    assert 'id="confusion"' not in page


@pytest.mark.parametrize("label", ["yes", "no"])
def test_rows_of_one_class_make_a_page(model, fresh_rows, label):
    some = fresh_rows[fresh_rows["fraud"] == label]
    said = summarise(model, some)
    assert said["views"][0]["curves"] is None
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
    assert "calibrated out of sample, on other rows" in said["calibration_words"]


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
    assert sum(map(sum, said["decision"]["confusion"])) == len(fitted) - 40
    assert f"{len(fitted) - 40} scored rows (of {len(fitted)}), " in data_words(said)
    model.training.vote[:] = np.nan
    with pytest.raises(ValueError, match="no row has an out-of-sample vote"):
        summarise(model, fitted)


def test_a_model_that_kept_no_voters_says_why(fitted):
    model = make_model(fitted, with_voters=False)
    said = summarise(model, fitted)
    assert not said["voters"]["known"]
    assert "cannot be evaluated here" in render(said)


@pytest.mark.slow
def test_all_columns_are_counted_and_some_are_listed():
    table = make_table()
    wide = {f"n{k}": np.random.default_rng(k).normal(size=len(table)) for k in range(210)}
    frame = pd.concat([table, pd.DataFrame(wide)], axis="columns")
    page = render(summarise(make_model(frame), frame))
    assert "214 columns used, 1 dropped" in page
    assert "15 more" in page
    assert "n194" in page


@pytest.fixture(scope="module")
def class_rows():
    return make_class_table()


@pytest.fixture(scope="module")
def class_model(class_rows):
    return make_class_model(class_rows)


@pytest.fixture(scope="module")
def new_rows():
    return make_class_table(500, seed=1)


@pytest.mark.parametrize("ties", [False, True])
def test_every_step_of_the_weights_is_what_would_be_decided(ties):
    rng = np.random.default_rng(0)
    vote = rng.dirichlet([1, 1, 2, 0.5], size=300)
    if ties:
        vote = vote.round(1)
    labels, order = rng.integers(0, 4, 300), np.array([2, 0, 3, 1])
    factors = np.array([1.5, 2.0, 1.0, 4.0])
    tables = offer_weights(vote, labels, factors, order)
    for c in range(4):
        for step, table in zip(STEPS, tables[c], strict=True):
            other = factors.copy()
            other[c] = factors[c] * step
            decided = order[(vote * other)[:, order].argmax(axis=1)]
            for true, taken in np.ndindex(4, 4):
                count = ((labels == true) & (decided == taken)).sum()
                assert table[true, taken] == count
        assert (tables[c][OWN] == tables[0][OWN]).all()
        named = [table[:, c].sum() for table in tables[c]]
        assert named == sorted(named)


@pytest.mark.parametrize("known", [True, False])
def test_counts_are_those_of_honest_decisions(class_model, class_rows, new_rows, known):
    frame = class_rows if known else new_rows
    said = summarise(class_model, frame)
    judged = honest_rows(class_model, frame)
    truth = frame["fault"].map({name: c for c, name in enumerate(CLASSES)}).to_numpy()
    for c, one in enumerate(said["classes"]):
        found = int(((truth == c) & (judged.decided == c)).sum())
        assert one["rows"] == (truth == c).sum()
        assert (one["recall"]["part"], one["recall"]["whole"]) == (found, one["rows"])
        assert one["precision"]["whole"] == (judged.decided == c).sum()
        assert one["rare"] == (CLASSES[c] != "fine")
    assert said["decision"]["right"]["part"] == (judged.decided == truth).sum()
    assert (
        said["weights"]["tables"][0][OWN]
        == np.ravel(said["decision"]["confusion"]).tolist()
    )
    assert said["data"]["of_fit"] == (len(frame) if known else 0)
    assert bool(said["certificate"]["why"]) == known
    assert said["voters"]["of_fit"] == known
    words = "calibrated out of sample" if known else "the model's probabilities"
    assert words in said["calibration_words"]
    json.dumps(said, allow_nan=False)


def test_missed_rows_of_rare_classes_come_first(class_model, new_rows):
    said = summarise(class_model, new_rows)
    judged = honest_rows(class_model, new_rows)
    rows = said["rows"]["mistakes"]["rows"]
    assert said["rows"]["mistakes"]["total"] == (judged.decided != judged.labels).sum()
    rare = [row["truth"] != "fine" for row in rows]
    assert rare == sorted(rare, reverse=True)
    assert any(rare)
    for row in rows:
        i = row["row"] - 1
        assert row["truth"] == new_rows["fault"].iloc[i] != row["decided"]
        assert row["score_of_truth"] == judged.vote[i, judged.labels[i]]
    sure = [
        r["score"] - r["score_of_truth"] for r, one in zip(rows, rare, strict=True) if one
    ]
    assert sure == sorted(sure, reverse=True)
    most = said["mixed_up"][0]
    pair = (new_rows["fault"] == most["truth"]) & (
        np.array(CLASSES)[judged.decided] == most["decided"]
    )
    assert most["rows"] == pair.sum() == max(one["rows"] for one in said["mixed_up"])


def test_views_are_one_class_against_the_rest(class_model, new_rows):
    said = summarise(class_model, new_rows)
    judged = honest_rows(class_model, new_rows)
    assert [view["name"] for view in said["views"]][-1] == "fine"
    for view in said["views"]:
        c = view["class"]
        own = judged.labels == c
        assert view["rate"] == own.mean()
        assert sum(view["distribution"]["positive"]) == own.sum()
        assert sum(b["positives"] for b in view["calibration"]) == own.sum()
        at = np.searchsorted(view["curves"]["recall"], 0.5)
        recall, precision = (view["curves"][k][at] for k in ("recall", "precision"))
        # By how far its votes times factor are from those of its strongest rival.
        scores = judged.vote * judged.threshold
        rival = np.delete(scores, c, axis=1).max(axis=1)
        ratio = scores[:, c] / (scores[:, c] + rival)
        cut = np.sort(ratio[own])[::-1][round(recall * own.sum()) - 1]
        assert precision == pytest.approx(own[ratio >= cut].mean(), abs=0.02)


def test_without_the_truth_it_shows_what_is_decided(class_model, new_rows):
    said = summarise(class_model, new_rows.drop(columns="fault"))
    decided = honest_rows(class_model, new_rows).decided
    named = [one["named"]["part"] for one in said["classes"]]
    assert named == np.bincount(decided, minlength=4).tolist()
    assert "fine" not in {row["decided"] for row in said["rows"]["named"]["rows"]}
    assert "No labels: this shows what the model predicts, not how well." in render(said)


def test_rows_without_a_class_or_a_vote_are_left_out(class_rows):
    model = make_class_model(class_rows, with_voters=False)
    model.training.vote[:40] = np.nan
    some = class_rows[class_rows["fault"] != "dent"].reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = summarise(model, some)
    left = len(some) - (class_rows["fault"].head(40) != "dent").sum()
    assert sum(map(sum, said["decision"]["confusion"])) == left
    page = render(said)
    assert "(the model knows 1 more)" in page
    assert "cannot be evaluated here" in page  # of the voters, on rows that they know
    one = class_rows[class_rows["fault"] == "dent"].tail(10).assign(width=9.0)
    assert "so this says little" in render(summarise(model, one.reset_index(drop=True)))


def test_a_pool_and_its_probabilities(class_rows, new_rows):
    pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    model = make_class_model(class_rows.drop(columns="line"), pool)
    said = summarise(model, new_rows)
    assert {w["name"] for w in said["voters"]["weights"]} == {"linear", "bayes"}
    assert "brier" in {score["key"] for score in said["scores"]}
    assert said["importances"]["method"] == "shuffled"
    render(said)


@pytest.mark.parametrize("column", ["fault", "nothing"])
def test_a_single_row_of_many_classes(class_model, new_rows, column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = summarise(class_model, new_rows.head(1).rename(columns={"fault": column}))
        page = render(said)
    assert said["data"]["rows"] == 1
    assert said["labelled"] == (column == "fault")
    assert "Classifying <em>" in page


def test_what_is_found_if_so_many_rows_are_checked(model, fresh_rows):
    summary = summarise(model, fresh_rows)
    budget, (real,) = summary["budget"], [one for one in summary["classes"] if one["rare"]]
    assert [budget[0]["rows"], budget[-1]["rows"]] == [1, len(fresh_rows)]
    assert budget[-1]["hits"][0] == pytest.approx(real["rows"])
    assert all(one["hits"][1] <= one["hits"][0] <= one["hits"][2] for one in budget)
    assert summary["guarantee"] == ""


def test_a_guarantee_is_told(model, fresh_rows):
    promise = model.guarantee(fresh_rows, recall=0.6)
    kept = model.with_guarantee(promise)
    assert promise.words in summarise(kept, fresh_rows)["guarantee"]
