"""From a table of three or more classes to a model, judged honestly."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from damvi.model import comparison, fit_table, metric_for, parse_metric, prepare
from damvi.voters import FastForestClassifier

COUNTS = {"10": 260, "2": 100, "x": 40}


def table(seed=0, counts=COUNTS, distance=2.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list(counts), list(counts.values())))
    places = pd.factorize(y, sort=True)[0]
    frame = pd.DataFrame(rng.normal(size=(len(y), 3)), columns=list("abc"))
    frame["a"] += distance * (places == 1)
    frame["b"] += distance * (places == 2)
    return frame.assign(y=y)


def test_classes_in_order_and_their_places():
    frame = table()
    found = prepare(frame, "y")
    assert found.target.n_classes == 3
    assert found.target.pos_label is None
    assert found.target.classes == ("2", "10", "x")
    assert np.array(found.target.classes)[found.y].tolist() == frame["y"].tolist()
    assert found.class_counts == [100, 260, 40]
    one = prepare(frame, "y", "x")
    assert one.target.pos_label is True
    assert one.class_counts == [360, 40]


def test_numbers_with_rows_enough_are_classes_with_a_warning():
    counts = {str(i): 12 for i in range(30)}
    assert "each of the 30 numbers" in prepare(table(counts=counts), "y").warnings[0]
    assert prepare(table(), "y").warnings == []


def test_metrics_and_classes_must_go_together():
    many, two = prepare(table(), "y").target, prepare(table(), "y", "x").target
    assert metric_for(many).name == "macro_f1"
    assert metric_for(two).name == "f1"
    assert metric_for(many, parse_metric("macro_ap")).measure == "macro_ap"
    for wrong in (parse_metric("f1"), parse_metric("recall@0.9")):
        with pytest.raises(ValueError, match=r"'y' has 3; give macro_f1 or macro_ap, or"):
            metric_for(many, wrong)
    with pytest.raises(ValueError, match="costs of a miss and a false alarm are for two"):
        metric_for(many, parse_metric("cost", (1, 20)))
    with pytest.raises(ValueError, match=r"three or more classes, but .* has two"):
        metric_for(two, parse_metric("macro_f1"))
    with pytest.raises(ValueError, match="use one or the other"):
        parse_metric("macro_f1", (1, 20))
    with pytest.raises(ValueError, match="the metric f1 is for two classes, but 'y' has"):
        fit_table(prepare(table(), "y"), parse_metric("f1"), pool="trees")


@pytest.fixture(scope="module")
def fitted():
    prepared = prepare(table(), "y")
    return prepared, *fit_table(prepared, metric_for(prepared.target), pool="trees")


@pytest.mark.slow
def test_a_model_of_trees_and_its_scores(fitted):
    prepared, model, compared = fitted
    assert set(compared.figures) == {"DAMVI", "plain forest", "LightGBM"}
    ours = compared.figures["DAMVI"]
    # Decided by factors tuned on other folds, as the tuning is.
    assert ours["macro_f1"].value == pytest.approx(model.classifier.tuning_.honest_value)
    own = [figures["f1"].value for figures in compared.by_class["DAMVI"]]
    assert own == pytest.approx(model.classifier.tuning_.honest_f1)
    assert 0 < ours["macro_f1"].spread < 0.1
    assert ours["macro_ap"].value > 0.6
    assert sum("macro F1" in verdict for verdict in compared.verdicts) == 2
    assert model.scores["classes"] == {"2": 100, "10": 260, "x": 40}
    assert "positives" not in model.scores
    assert model.scores["metric"] == "macro_f1"
    assert len(model.scores["threshold"]) == 3
    assert set(model.scores["by_class"]) == set(compared.figures)
    np.testing.assert_array_equal(model.training.labels, prepared.y)
    assert model.training.vote.shape == (400, 3)
    chances = model.classifier.predict_proba(prepared.X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_in_sample_figures_are_better(fitted):
    prepared, model, compared = fitted
    decided = model.classifier.predict(prepared.X)
    in_sample = f1_score(prepared.y, decided, average="macro")
    assert in_sample > compared.figures["DAMVI"]["macro_f1"].value + 0.05


@pytest.mark.slow
def test_coin_flips_are_worth_nothing(monkeypatch):
    monkeypatch.setattr(comparison, "can_load", lambda name: False)  # LightGBM takes long
    prepared = prepare(table(3, {"a": 540, "b": 240, "c": 120}, distance=0), "y")
    _, compared = fit_table(prepared, parse_metric("macro_ap"), pool="trees")
    assert set(compared.figures) == {"DAMVI", "plain forest"}
    for figures in compared.figures.values():
        assert figures["macro_ap"].value < 0.38
        assert 0.27 < figures["balanced_accuracy"].value < 0.4
    assert "tie on macro AP" in compared.verdicts[0]
    assert compared.verdicts[1:] == [comparison.SINGLE_MODEL.format("as well")]


def test_classes_of_two_rows(monkeypatch):
    prepared = prepare(table(1, {"a": 80, "b": 30, "c": 2}), "y")
    monkeypatch.setattr(comparison, "can_load", lambda name: False)
    model, compared = fit_table(prepared, metric_for(prepared.target), pool="trees")
    assert model.scores["classes"]["c"] == 2
    assert 0 <= compared.by_class["DAMVI"][2]["recall"].value <= 1


@pytest.mark.slow
def test_a_pool_is_judged_by_the_votes_it_took(monkeypatch):
    pool = [
        ("forest", FastForestClassifier(20, n_jobs=1)),
        ("other", FastForestClassifier(20, n_jobs=1, balanced=True)),
    ]
    monkeypatch.setattr(comparison, "out_of_fold_votes", None)  # no second one
    prepared = prepare(table().assign(who=np.arange(400) // 4), "y", group="who")
    model, found = fit_table(
        prepared, metric_for(prepared.target), pool=pool, time_limit=300
    )
    assert set(found.figures) == {"DAMVI", "plain forest", "best single model"}
    assert found.figures["DAMVI"]["macro_f1"].value == pytest.approx(
        model.classifier.tuning_.honest_value
    )


def test_beside_trees_lightgbm_is_left_out_where_classes_are_many(monkeypatch):
    monkeypatch.setattr(comparison, "MOST_CLASSES", 2)
    found = prepare(table(), "y")
    _, compared = fit_table(found, metric_for(found.target), pool="trees")
    assert list(compared.figures) == ["DAMVI", "plain forest"]
    assert "Not compared with LightGBM: with 3 classes" in compared.verdicts[-1]
