"""From a table to a model: classes, columns, budgets, honesty."""

import numpy as np
import pandas as pd
import pytest

from damvi import DAMVIVotingClassifier, voting
from damvi.decision import Decision
from damvi.model import Model, as_metric, comparison, fit_table, parse_metric, prepare
from damvi.voters import FastForestClassifier
from damvi.weighting import PlainVoteComparison


def table(n=400, rate=0.15, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    score = frame["a"] + 0.5 * rng.normal(size=n)
    frame["y"] = np.where(score > score.quantile(1 - rate), "bad", "ok")
    return frame


def test_metrics():
    assert parse_metric("f1").threshold == "f1"
    assert parse_metric("ap").measure == "ap"
    assert parse_metric("recall@90%").threshold == {"recall": 0.9}
    assert parse_metric("precision@0.5").measure == "recall"
    assert parse_metric("cost", (1, 20)).threshold == {"cost": (1, 20)}
    for wrong in ("f2", "recall", "recall@", "recall@2", "recall@x", "accuracy@0.5"):
        with pytest.raises(ValueError, match=r"unknown metric .*; use f1, ap, recall@0.9"):
            parse_metric(wrong)
    with pytest.raises(ValueError, match="--cost-miss"):
        parse_metric("cost")


def test_the_rarer_class_is_positive_unless_told():
    found = prepare(table(), "y")
    assert (found.target.positive, found.target.negative) == ("bad", "ok")
    assert found.y.sum() == 60
    assert prepare(table(), "y", "ok").y.sum() == 340


def test_labels_of_any_type_and_missing_ones():
    frame = table()
    frame["y"] = np.where(frame["y"] == "bad", 1.0, 0.0)
    frame.loc[:4, "y"] = np.nan
    found = prepare(frame, "y")
    assert found.target.positive == "1"
    assert len(found.X) == 395
    assert len(found.unlabeled) == 5
    one = prepare(table().assign(y=list("abcc") * 100), "y", "a")
    assert (one.target.positive, one.target.negative) == ("a", "")


def test_too_few_rows_of_a_class():
    frame = table().assign(y=["bad"] + ["ok"] * 399)
    with pytest.raises(ValueError, match="only 1 row is positive"):
        prepare(frame, "y")


@pytest.mark.slow
@pytest.mark.parametrize("n_positive", [2, 6])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_few_positives_still_make_a_model(n_positive):
    frame = table(120).assign(y=["bad"] * n_positive + ["ok"] * (120 - n_positive))
    model, compared = fit_table(prepare(frame, "y"), parse_metric("f1"), pool="trees")
    assert model.scores["positives"] == n_positive
    assert 0 <= compared.figures["DAMVI"]["ap"].value <= 1


def test_no_column_left():
    frame = pd.DataFrame({"id": range(100), "one": 1, "y": [0, 1] * 50})
    with pytest.raises(ValueError, match=r"no columns are left to train on.*'id'.*'one'"):
        prepare(frame, "y")


def test_columns_named_and_leaks_are_said():
    frame = table()
    frame["copy"] = frame["y"] == "bad"
    found = prepare(frame, "y", drop=["c"])
    assert [column.name for column in found.schema.used] == ["a", "b"]
    assert "LEAKAGE: 'copy' equals the target" in found.warnings[0]
    kept = prepare(frame, "y", keep=["copy"])
    assert "copy" in [column.name for column in kept.schema.used]
    with pytest.raises(ValueError, match="no such column 'z'"):
        prepare(frame, "y", drop=["z"])
    with pytest.raises(ValueError, match="is the target"):
        prepare(frame, "y", keep=["y"])


@pytest.mark.slow
def test_coin_flips_are_worth_nothing_by_all_models():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(1500, 4)), columns=list("abcd"))
    frame["y"] = rng.random(1500) < 0.2
    _, compared = fit_table(prepare(frame, "y"), parse_metric("ap"), pool="trees")
    assert set(compared.figures) == {"DAMVI", "plain forest", "LightGBM"}
    for figures in compared.figures.values():
        assert figures["ap"].value < 0.27
        assert 0.43 < figures["roc_auc"].value < 0.57
    assert all("tie" in verdict for verdict in compared.verdicts[:-1])
    assert compared.verdicts[-1] == comparison.SINGLE_MODEL.format("as well")


def test_a_pool_is_judged_by_the_votes_it_took(monkeypatch):
    pool = [
        ("forest", FastForestClassifier(20, n_jobs=1)),
        ("other", FastForestClassifier(20, n_jobs=1, balanced=True)),
    ]
    # No second cross-validation.
    monkeypatch.setattr(comparison, "out_of_fold_votes", None)
    groups = table().assign(who=np.arange(400) // 4)
    prepared = prepare(groups, "y", group="who")
    model, found = fit_table(
        prepared, parse_metric("recall@0.8"), pool=pool, time_limit=300
    )
    assert set(found.figures) == {"DAMVI", "plain forest", "best single model"}
    assert model.classifier.time_limit == 300
    assert model.made["left_out"] == []
    assert "who" not in [column.name for column in model.schema.used]
    folds = model.classifier.votes_.folds.reshape(-1, 4)
    assert (folds == folds[:, :1]).all()


def test_who_is_left_out_is_told(monkeypatch):
    monkeypatch.setattr(
        DAMVIVotingClassifier, "_train", with_left_out(DAMVIVotingClassifier._train)
    )
    said = []
    pool = [("forest", FastForestClassifier(5, n_jobs=1))]
    model, _ = fit_table(
        prepare(table(), "y"),
        parse_metric("f1"),
        pool=pool,
        prefer="speed",
        say=said.append,
    )
    assert model.classifier.prefer == "speed"
    assert said == ["Dropped catboost: too slow."]
    assert model.made["left_out"] == ["catboost"]


@pytest.mark.parametrize("classes", [2, 3])
def test_who_is_too_slow_is_compared_all_the_same(monkeypatch, classes):
    pool = [(name, FastForestClassifier(5, n_jobs=1)) for name in ("other", "forest")]
    rows = table()
    if classes == 3:
        rows["y"] = np.where(rows["b"] > 0.5, "third", rows["y"])
    prepared = prepare(rows, "y")
    how = as_metric(None, prepared.target, len(rows))
    monkeypatch.setattr(voting, "without_slow_voters", lambda *given: np.array([0]))
    parts, compared = fit_table(prepared, how, pool=pool, prefer="speed")
    fast = Model(**vars(parts))
    assert fast.made["left_out"] == ["forest"]
    assert list(fast.classifier.voters_.names) == ["other"]
    assert "plain forest" in compared.figures
    whole, _ = fit_table(prepared, how, pool=pool)
    board, alone = fast.leaderboard(), Model(**vars(whole)).leaderboard()
    assert board.loc["forest", "weight"] == 0
    same = ["AP", "F1"]
    assert board.loc["forest", same].tolist() == alone.loc["forest", same].tolist()


def test_what_lightgbm_would_bring_is_told_where_it_is_missing(monkeypatch):
    def pool(*given, **options):
        return [(name, FastForestClassifier(5, n_jobs=1)) for name in ("forest", "other")]

    monkeypatch.setattr(voting, "strong_pool_for", pool)
    monkeypatch.setattr("damvi.model.training.can_load", lambda name: False)
    said = []
    fit_table(prepare(table(), "y"), parse_metric("f1"), say=said.append)
    assert said[0].startswith("LightGBM cannot be loaded. With it (pip install lightgbm")


def with_left_out(train):
    def trained(self, *arguments):
        found = train(self, *arguments)
        self.left_out_ = {"catboost": "too slow"}
        return found

    return trained


@pytest.mark.slow
def test_a_pool_that_kept_the_plain_vote_says_so(monkeypatch):
    def pool(*given, **options):
        return [(name, FastForestClassifier(5, n_jobs=1)) for name in ("forest", "other")]

    behind = PlainVoteComparison(0.31, 0.42, 0.02, plain_kept=True)
    monkeypatch.setattr(voting, "strong_pool_for", pool)
    monkeypatch.setattr(Decision, "comparison", behind)
    _, found = fit_table(prepare(table(), "y"), parse_metric("f1"))
    assert found.verdicts[-1] == (
        "All voters have equal weight: the out-of-fold average precision was 0.310 with "
        "learned weights and 0.420 with equal ones."
    )
