"""Figures of many classes: against scikit-learn, and whether the intervals hold."""

import numpy as np
import pytest
from sklearn import metrics

from damvi.evaluation import CLASS_MEASURES, class_rankings, measure_classes
from damvi.evaluation.rates import share


def drawn(n=600, seed=0, rates=(0.05, 0.15, 0.8), noise=1.0):
    rng = np.random.default_rng(seed)
    # Classes of a fixed size, which the intervals take as given.
    labels = rng.permutation(
        np.repeat(range(len(rates)), np.multiply(rates, n).astype(int))
    )
    vote = np.eye(len(rates))[labels] + noise * rng.normal(size=(len(labels), len(rates)))
    vote = np.exp(vote).round(1)  # with ties
    return labels, vote, vote.argmax(axis=1)


def test_as_scikit_learn_has_them():
    labels, vote, decided = drawn()
    chance = vote / vote.sum(axis=1, keepdims=True)
    found = measure_classes(labels, vote, decided, chance)
    binary = [labels == c for c in range(3)]
    expected = {
        "macro_f1": metrics.f1_score(labels, decided, average="macro"),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, decided),
        "accuracy": metrics.accuracy_score(labels, decided),
        "mcc": metrics.matthews_corrcoef(labels, decided),
        "macro_ap": metrics.average_precision_score(np.eye(3)[labels], vote),
        "macro_roc_auc": np.mean(
            [metrics.roc_auc_score(binary[c], vote[:, c]) for c in range(3)]
        ),
        "brier": ((chance - np.eye(3)[labels]) ** 2).sum(axis=1).mean(),
    }
    assert {k: f.value for k, f in found.overall.items()} == pytest.approx(expected)
    assert list(found.overall) == list(CLASS_MEASURES)
    for c, own in enumerate(found.by_class):
        flagged = decided == c
        assert own["precision"].value == metrics.precision_score(binary[c], flagged)
        assert own["recall"].value == metrics.recall_score(binary[c], flagged)
        assert own["f1"].value == pytest.approx(metrics.f1_score(binary[c], flagged))
        ap = metrics.average_precision_score(binary[c], vote[:, c])
        assert own["ap"].value == pytest.approx(ap)
        for figure in own.values():
            assert figure.low <= figure.value <= figure.high
            assert figure.spread > 0
    table = metrics.confusion_matrix(labels, decided)
    np.testing.assert_array_equal(found.confusion, table)
    said = found.as_dict()
    assert said["shares"][0][2] == share(int(table[0, 2]), int(table[0].sum()))


def test_a_class_without_rows_has_no_figures_and_is_in_no_mean():
    labels, vote, decided = drawn(300)
    kept = labels != 0
    found = measure_classes(labels[kept], vote[kept], decided[kept])
    assert found.by_class[0]["recall"] is None
    assert found.by_class[0]["ap"] is None
    assert found.by_class[0]["precision"].value == 0  # named, never rightly
    recalls = [own["recall"].value for own in found.by_class[1:]]
    assert found.overall["balanced_accuracy"].value == pytest.approx(np.mean(recalls))


def test_a_class_that_is_never_named_has_no_precision():
    labels, vote, _ = drawn(300)
    found = measure_classes(labels, vote, np.full(len(labels), 2))
    assert found.by_class[0]["precision"] is None
    assert found.by_class[0]["recall"].value == 0
    assert found.by_class[0]["recall"].high > 0  # not sure from a few rows
    assert found.overall["mcc"].value == 0


def test_the_intervals_hold_the_truth_about_as_often_as_they_say():
    big = drawn(60_000, seed=99)
    truth = {k: f.value for k, f in measure_classes(*big).overall.items()}
    held = dict.fromkeys(truth, 0)
    for seed in range(20):
        found = measure_classes(*drawn(400, seed=seed)).overall
        for name, figure in found.items():
            held[name] += figure.low <= truth[name] <= figure.high
    # With 20 rows of the rarest class, 82 % instead of 90 % for the average precision.
    assert min(held.values()) >= 12, held


def test_thinned_rows_give_about_the_same_interval(monkeypatch):
    data = drawn(6000)
    whole = measure_classes(*data)
    monkeypatch.setattr(class_rankings, "MOST_WORK", 3000 * 3 * class_rankings.N_DRAWS)
    thin = measure_classes(*data)
    for name in ("macro_ap", "macro_roc_auc"):
        one, other = whole.overall[name], thin.overall[name]
        assert one.value == other.value
        assert other.spread == pytest.approx(one.spread, rel=0.4)


@pytest.mark.parametrize(
    ("labels", "vote", "words"),
    [
        ([1, 1], np.ones((2, 3)), "rows of two classes"),
        ([0, 1], np.full((2, 3), np.nan), "no vote"),
    ],
)
def test_what_cannot_be_measured_is_said(labels, vote, words):
    with pytest.raises(ValueError, match=words):
        measure_classes(labels, vote, [0, 0])


def test_no_interval_reaches_beyond_what_a_figure_can_be():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [60, 30, 12])
    vote = np.eye(3)[labels] + 0.45 * rng.random((102, 3)).round(1)
    vote[0] = vote[-1]
    chance = 0.99 * np.eye(3)[labels] + 0.01 / 3
    found = measure_classes(labels, vote, vote.argmax(axis=1), chance)
    shares = [*found.by_class, found.overall]
    for figures in shares:
        for name, figure in figures.items():
            if figure is not None and name != "mcc":
                assert 0 <= figure.low <= figure.value <= figure.high <= 1, name
