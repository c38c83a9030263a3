"""Rows without a label: taken apart, encoded alike, used as asked, and never judged."""

import numpy as np
import pandas as pd
import pytest

from damvi import enlisting
from damvi.classifier import DAMVIClassifier
from damvi.modelling import WAYS, fit_table, parse_metric, prepare, with_unlabelled
from damvi.modelling import worth as judging
from damvi.modelling.unlabelled import refuse_ways, say_uses, uses_of

F1 = parse_metric("f1")


@pytest.fixture(autouse=True)
def _without_lightgbm(monkeypatch):
    """Which takes most of the time, and is no part of this."""
    monkeypatch.setattr(judging, "find_spec", lambda name: None)


def table(n=300, seed=0, distance=2.0):
    rng = np.random.default_rng(seed)
    bad = np.arange(n) % 5 == 0
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["a"] += distance * bad
    frame["kind"] = rng.choice(["u", "v"], n)
    return frame.assign(y=np.where(bad, "bad", "ok"))


def partly(n=300, **options):
    """The last third has no label."""
    frame = table(n, **options)
    frame.loc[2 * n // 3 :, "y"] = ""
    return frame


def test_columns_are_judged_by_labelled_rows():
    frame = partly()
    frame["late"] = np.where(frame["y"] == "", frame["c"], 1.0)
    frame.loc[250, "kind"] = "new"
    found = prepare(frame, "y")
    assert (len(found.X), len(found.y), len(found.unlabelled)) == (200, 200, 100)
    assert [column.name for column in found.schema.used] == ["a", "b", "c", "kind"]
    np.testing.assert_array_equal(found.unlabelled["a"], frame["a"][200:])
    assert found.unlabelled["kind"].isna().sum() == 1  # not a category of labelled rows
    assert prepare(table(), "y").unlabelled is None


def test_nothing_labelled_or_one_class():
    with pytest.raises(ValueError, match="no value in any row, so there is nothing to"):
        prepare(table().assign(y=""), "y")
    with pytest.raises(ValueError, match="one class only: 'ok' in all 100 rows"):
        prepare(table().assign(y=["ok"] * 100 + [""] * 200), "y")


def test_rows_of_another_table():
    found = prepare(partly(), "y")
    more = table(50, seed=1).drop(columns="y")
    both = with_unlabelled(found, more[["kind", "c", "a", "b"]].assign(z=1), "more.csv")
    assert len(both.unlabelled) == 150
    assert both.unlabelled.columns.tolist() == found.X.columns.tolist()
    assert both.unlabelled["kind"].dtype == found.X["kind"].dtype
    np.testing.assert_array_equal(both.unlabelled["b"][100:], more["b"])
    assert both.warnings == found.warnings == []
    with pytest.raises(ValueError, match=r"^more.csv: .*lacks the columns 'a' and 'kind'"):
        with_unlabelled(found, more[["b", "c"]], "more.csv")
    labelled = with_unlabelled(found, table(50), "more.csv")
    assert "more.csv has a 'y' in 50 rows" in labelled.warnings[0]


def test_what_cannot_be_had_is_said_before_the_work():
    some = prepare(partly(), "y")
    with pytest.raises(ValueError, match=r"needs rows without a label.*--unlabeled"):
        refuse_ways(prepare(table(), "y"), "self", "trees")
    for way in ("kmeans", "self"):
        with pytest.raises(ValueError, match=r"give --pool trees as well, or .*disagreem"):
            fit_table(some, F1, unlabeled=way)
        refuse_ways(some, way, "trees")
    refuse_ways(some, "disagreement", "strong")
    with pytest.raises(ValueError, match=r"not known; give one of auto, disagreement"):
        refuse_ways(some, "magic", "trees")
    three = partly()
    three.loc[:50, "y"] = "new"
    with pytest.raises(ValueError, match="for two classes so far, and 'y' has 3"):
        refuse_ways(prepare(three, "y"), "kmeans", "trees")


def test_the_classifier_knows_what_auto_is(monkeypatch):
    some = prepare(partly(), "y")
    trees, pool = DAMVIClassifier(), DAMVIClassifier("strong")
    assert uses_of(some, "auto", trees) == trees._uses()
    for auto, by_pool in ((("disagreement", "kmeans"), ("disagreement",)), ((), ())):
        monkeypatch.setattr(enlisting, "AUTO", auto)
        assert uses_of(some, "auto", trees) == auto
        assert uses_of(some, "auto", pool) == by_pool
        assert uses_of(some, "none", trees) == ()
        assert uses_of(prepare(table(), "y"), "auto", trees) == ()
    assert uses_of(some, "self", DAMVIClassifier(unlabeled="self")) == ("self",)


def test_what_becomes_of_them_is_said():
    some = prepare(partly(), "y")
    assert say_uses(prepare(table(), "y"), "auto", (), False) is None
    assert (
        say_uses(some, "none", (), False) == "100 rows have no label: left out, as asked."
    )
    assert "seen to help" in say_uses(some, "auto", (), False)
    assert "with --pool trees kmeans" in say_uses(some, "auto", (), True)
    assert "guessed by K-means" in say_uses(some, "kmeans", ("kmeans",), False)
    one = table(100)
    one.loc[3, "y"] = None
    assert say_uses(prepare(one, "y"), "none", (), False).startswith("1 row has no label")


def test_left_out_is_the_same_as_not_there():
    said = []
    alone, _ = fit_table(prepare(partly().head(200), "y"), F1, pool="trees")
    beside, _ = fit_table(
        prepare(partly(), "y"), F1, pool="trees", unlabeled="none", say=said.append
    )
    np.testing.assert_array_equal(alone.training.vote, beside.training.vote)
    assert said == ["100 rows have no label: left out, as asked."]
    assert beside.scores["unlabelled"] == {"rows": 100, "used_for": []}
    assert "unlabelled" not in alone.scores


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("auto", "none")])
def test_each_way_makes_a_model_judged_on_labelled_rows(way):
    said = []
    # As many as there are labelled ones, which nobody takes for a cut table.
    prepared = with_unlabelled(
        prepare(partly(), "y"), table(100, seed=1).drop(columns="y"), "more.csv"
    )
    model, worth = fit_table(prepared, F1, pool="trees", unlabeled=way, say=said.append)
    assert len(prepared.unlabelled) == len(prepared.X) == model.scores["rows"] == 200
    assert worth.n_judged <= 200
    assert len(model.training.labels) == 200
    assert model.scores["unlabelled"]["used_for"] == [way]
    assert ("eta" in model.scores["unlabelled"]) == (way == "disagreement")
    assert said[0].startswith("200 rows have no label: ")
    assert worth.figures["DAMVI"]["ap"].value > 0.5


def test_coin_flips_stay_worth_nothing():
    prepared = prepare(partly(900, seed=2, distance=0), "y")
    _, worth = fit_table(prepared, F1, pool="trees", unlabeled="kmeans")
    assert 0.4 < worth.figures["DAMVI"]["roc_auc"].value < 0.6


def test_a_column_of_which_nothing_can_be_read_is_told_of():
    prepared, more = prepare(table(), "y"), table(100, seed=1).drop(columns="y")
    warned = with_unlabelled(prepared, more.assign(b="text"), "more.csv").warnings
    assert len(warned) == 1
    assert warned[0].startswith("more.csv: no value of 'b' could be read")
    empty = with_unlabelled(prepared, more.assign(b=np.nan), "more.csv")  # as it is given
    assert empty.warnings == []
