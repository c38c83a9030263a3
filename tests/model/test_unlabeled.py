"""Rows without a label: taken apart, encoded alike, used as asked, and never judged."""

import numpy as np
import pandas as pd
import pytest

from damvi.model import comparison, fit_table, parse_metric, prepare, with_unlabeled
from damvi.model.table import describe_unlabeled
from damvi.voters import FastForestClassifier

F1 = parse_metric("f1")
POOL = [("forest", None), ("shallow", 2)]


@pytest.fixture(autouse=True)
def _without_lightgbm(monkeypatch):
    """Which takes most of the time, and is no part of this."""
    monkeypatch.setattr(comparison, "can_load", lambda name: False)


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
    assert (len(found.X), len(found.y), len(found.unlabeled)) == (200, 200, 100)
    assert [column.name for column in found.schema.used] == ["a", "b", "c", "kind"]
    np.testing.assert_array_equal(found.unlabeled["a"], frame["a"][200:])
    assert found.unlabeled["kind"].isna().sum() == 1  # not a category of labelled rows
    assert prepare(table(), "y").unlabeled is None


def test_nothing_labelled_or_one_class():
    with pytest.raises(ValueError, match="is missing in every row"):
        prepare(table().assign(y=""), "y")
    with pytest.raises(ValueError, match="only one class: 'ok' in all 100 rows"):
        prepare(table().assign(y=["ok"] * 100 + [""] * 200), "y")


def test_rows_of_another_table():
    found = prepare(partly(), "y")
    more = table(50, seed=1).drop(columns="y")
    both = with_unlabeled(found, more[["kind", "c", "a", "b"]].assign(z=1), "more.csv")
    assert len(both.unlabeled) == 150
    assert both.unlabeled.columns.tolist() == found.X.columns.tolist()
    assert both.unlabeled["kind"].dtype == found.X["kind"].dtype
    np.testing.assert_array_equal(both.unlabeled["b"][100:], more["b"])
    assert both.warnings == found.warnings == []
    with pytest.raises(ValueError, match=r"^more.csv: columns are missing: 'a' and 'kind'"):
        with_unlabeled(found, more[["b", "c"]], "more.csv")
    labelled = with_unlabeled(found, table(50), "more.csv")
    assert "more.csv has 50 rows with a 'y'" in labelled.warnings[0]


def test_what_cannot_be_had_is_said_before_the_work():
    with pytest.raises(ValueError, match=r"needs unlabelled rows.*--unlabeled"):
        fit_table(prepare(table(), "y"), F1, unlabeled_weight=0.5)
    three = partly()
    three.loc[:50, "y"] = "new"
    with pytest.raises(ValueError, match="so far, for two classes, but 'y' has 3"):
        fit_table(prepare(three, "y"), parse_metric("macro_f1"), unlabeled_weight=0.5)


def test_what_becomes_of_them_is_said():
    some, all_labelled = prepare(partly(), "y"), prepare(table(), "y")
    assert describe_unlabeled(all_labelled, None) is None
    assert describe_unlabeled(some, 0.0) == "Dropped 100 unlabelled rows, as requested."
    assert "does not reliably help" in describe_unlabeled(some, None)
    assert "a weight of at most 0.25" in describe_unlabeled(some, 0.25)
    three = partly()
    three.loc[:50, "y"] = "new"
    assert "With two classes you can try" in describe_unlabeled(prepare(three, "y"), None)
    one = table(100)
    one.loc[3, "y"] = None
    assert describe_unlabeled(prepare(one, "y"), 0.0).startswith(
        "Dropped 1 unlabelled row,"
    )


def test_left_out_is_the_same_as_not_there():
    said = []
    alone, _ = fit_table(prepare(partly().head(200), "y"), F1, pool="trees")
    beside, _ = fit_table(prepare(partly(), "y"), F1, pool="trees", say=said.append)
    np.testing.assert_array_equal(alone.training.vote, beside.training.vote)
    assert said[0].startswith("Dropped 100 unlabelled rows: ")
    assert beside.scores["unlabeled"] == {"rows": 100, "weight": 0.0}
    assert "unlabeled" not in alone.scores


@pytest.mark.parametrize("pool", ["trees", "strong"])
def test_a_model_that_uses_them_is_judged_on_labelled_rows(pool, monkeypatch):
    small = [(name, FastForestClassifier(20, n_jobs=1, max_depth=d)) for name, d in POOL]
    monkeypatch.setattr("damvi.voting.strong_pool", lambda *given, **options: small)
    said = []
    # As many as there are labelled ones, which nobody takes for a cut table.
    prepared = with_unlabeled(
        prepare(partly(), "y"), table(100, seed=1).drop(columns="y"), "more.csv"
    )
    model, compared = fit_table(
        prepared, F1, pool=pool, unlabeled_weight=0.5, say=said.append
    )
    assert len(prepared.unlabeled) == len(prepared.X) == model.scores["rows"] == 200
    assert compared.n_judged <= 200
    assert len(model.training.labels) == 200
    assert model.scores["unlabeled"] == {"rows": 200, "weight": 0.5}
    assert said[0].startswith("Using 200 unlabelled rows: the voters' disagreement on them")
    assert compared.figures["DAMVI"]["ap"].value > 0.5


def test_coin_flips_stay_worth_nothing():
    prepared = prepare(partly(900, seed=2, distance=0), "y")
    _, compared = fit_table(prepared, F1, pool="trees", unlabeled_weight=0.5)
    assert 0.4 < compared.figures["DAMVI"]["roc_auc"].value < 0.6


def test_a_column_of_which_nothing_can_be_read_is_told_of():
    prepared, more = prepare(table(), "y"), table(100, seed=1).drop(columns="y")
    warned = with_unlabeled(prepared, more.assign(b="text"), "more.csv").warnings
    assert len(warned) == 1
    assert warned[0].startswith("more.csv: no value in 'b' could be read")
    empty = with_unlabeled(prepared, more.assign(b=np.nan), "more.csv")  # as it is given
    assert empty.warnings == []
