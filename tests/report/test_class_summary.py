"""What the page of many classes says, against plain counting."""

import json
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi.decision import decide
from damvi.evaluation import honest_rows
from damvi.report import render, summarise
from damvi.report.class_weights import OWN, STEPS, offer_weights

from .class_toy import CLASSES, make_class_model, make_class_table


@pytest.fixture(scope="module")
def fitted():
    return make_class_table()


@pytest.fixture(scope="module")
def model(fitted):
    return make_class_model(fitted)


@pytest.fixture(scope="module")
def fresh():
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
            decided = decide(vote, other, order)
            for true, taken in np.ndindex(4, 4):
                count = ((labels == true) & (decided == taken)).sum()
                assert table[true, taken] == count
        assert (tables[c][OWN] == tables[0][OWN]).all()
        named = [table[:, c].sum() for table in tables[c]]
        assert named == sorted(named)


@pytest.mark.parametrize("known", [True, False])
def test_counts_are_those_of_honest_decisions(model, fitted, fresh, known):
    frame = fitted if known else fresh
    said = summarise(model, frame)
    judged = honest_rows(model, frame)
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
    words = "learned on other rows" if known else "The model's probabilities"
    assert words in said["calibration_words"]
    json.dumps(said, allow_nan=False)


def test_missed_rows_of_rare_classes_come_first(model, fresh):
    said = summarise(model, fresh)
    judged = honest_rows(model, fresh)
    rows = said["mistakes"]["rows"]
    assert said["mistakes"]["total"] == (judged.decided != judged.labels).sum()
    rare = [row["truth"] != "fine" for row in rows]
    assert rare == sorted(rare, reverse=True)
    assert any(rare)
    for row in rows:
        i = row["row"] - 1
        assert row["truth"] == fresh["fault"].iloc[i] != row["decided"]
        assert row["score_of_truth"] == judged.vote[i, judged.labels[i]]
    sure = [
        r["score"] - r["score_of_truth"] for r, one in zip(rows, rare, strict=True) if one
    ]
    assert sure == sorted(sure, reverse=True)
    most = said["mixed_up"][0]
    pair = (fresh["fault"] == most["truth"]) & (
        np.array(CLASSES)[judged.decided] == most["decided"]
    )
    assert most["rows"] == pair.sum() == max(one["rows"] for one in said["mixed_up"])


def test_views_are_one_class_against_the_rest(model, fresh):
    said = summarise(model, fresh)
    judged = honest_rows(model, fresh)
    assert [view["name"] for view in said["views"]][-1] == "fine"
    for view in said["views"]:
        c = view["class"]
        own = judged.labels == c
        assert view["data"]["rate"] == own.mean()
        assert sum(view["distribution"]["positive"]) == own.sum()
        assert sum(b["positives"] for b in view["calibration"]["bins"]) == own.sum()
        at = np.searchsorted(view["curves"]["recall"], 0.5)
        recall, precision = (view["curves"][k][at] for k in ("recall", "precision"))
        cut = np.sort(judged.vote[own, c])[::-1][round(recall * own.sum()) - 1]
        flagged = judged.vote[:, c] >= cut
        assert precision == pytest.approx(own[flagged].mean(), abs=0.02)


def test_without_the_truth_it_shows_what_is_decided(model, fresh):
    said = summarise(model, fresh.drop(columns="fault"))
    decided = honest_rows(model, fresh).decided
    named = [one["named"]["part"] for one in said["classes"]]
    assert named == np.bincount(decided, minlength=4).tolist()
    assert "fine" not in {row["decided"] for row in said["named_rows"]["rows"]}
    assert "not how often it is right" in render(said)


def test_rows_without_a_class_or_a_vote_are_left_out(fitted):
    model = make_class_model(fitted, with_voters=False)
    model.training.vote[:40] = np.nan
    some = fitted[fitted["fault"] != "dent"].reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = summarise(model, some)
    left = len(some) - (fitted["fault"].head(40) != "dent").sum()
    assert sum(map(sum, said["decision"]["confusion"])) == left
    page = render(said)
    assert "1 more are known to the model" in page
    assert "no measure" in page  # of the voters, on rows that they know
    one = fitted[fitted["fault"] == "dent"].tail(10).assign(width=9.0)
    assert "so little can be said" in render(summarise(model, one.reset_index(drop=True)))


def test_a_pool_and_its_probabilities(fitted, fresh):
    pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    model = make_class_model(fitted.drop(columns="line"), pool)
    said = summarise(model, fresh)
    assert {w["name"] for w in said["voters"]["weights"]} == {"linear", "bayes"}
    assert "brier" in {score["key"] for score in said["scores"]}
    assert said["importances"]["method"] == "shuffled"
    render(said)


def test_factors_that_were_not_tuned_are_not_said_to_be(fitted):
    page = render(summarise(make_class_model(fitted, threshold="vote"), fitted))
    assert "Judged on the rows of the fit" in page
    assert "were tuned on rows of the fit" not in page


@pytest.mark.parametrize("column", ["fault", "nothing"])
def test_a_single_row(model, fresh, column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = summarise(model, fresh.head(1).rename(columns={"fault": column}))
        page = render(said)
    assert said["data"]["rows"] == 1
    assert said["labelled"] == (column == "fault")
    assert "Telling the classes of" in page
