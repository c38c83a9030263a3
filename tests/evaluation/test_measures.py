"""Figures against scikit-learn's, intervals against a bootstrap row by row."""

import numpy as np
import pytest
from sklearn import metrics

from damvi.evaluation import compare, confusion, measure


def rows(n, seed, rate=0.1, digits=1):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    vote = np.tanh(positive + rng.normal(size=n)).round(digits)
    return positive, vote, vote > 0.6, (1 + vote) / 2


@pytest.mark.parametrize("digits", [1, 12])
def test_figures_are_those_of_scikit_learn(digits):
    positive, vote, flagged, chance = rows(3000, 0, digits=digits)
    found = {k: f.value for k, f in measure(positive, vote, flagged, chance).items()}
    assert found == pytest.approx(
        {
            "precision": metrics.precision_score(positive, flagged),
            "recall": metrics.recall_score(positive, flagged),
            "f1": metrics.f1_score(positive, flagged),
            "ap": metrics.average_precision_score(positive, vote),
            "roc_auc": metrics.roc_auc_score(positive, vote),
            "balanced_accuracy": metrics.balanced_accuracy_score(positive, flagged),
            "mcc": metrics.matthews_corrcoef(positive, flagged),
            "brier": metrics.brier_score_loss(positive, chance),
        }
    )


def test_cost_and_confusion():
    positive, vote, flagged, _ = rows(500, 1)
    counts = confusion(positive, flagged)
    assert sum(counts.values()) == 500
    cost = measure(positive, vote, flagged, cost=(2, 30))["cost"].value
    assert cost == pytest.approx((2 * counts["false_alarms"] + 30 * counts["missed"]) / 500)


@pytest.mark.parametrize("n", [400, 12_000])
def test_spreads_are_those_of_a_bootstrap_of_rows(n):
    positive, vote, flagged, chance = rows(n, 2, digits=12)
    found = measure(positive, vote, flagged, chance)
    rng = np.random.default_rng(0)
    ups, downs = np.flatnonzero(positive), np.flatnonzero(~positive)
    draws = {name: [] for name in ("f1", "ap", "roc_auc", "brier")}
    for _ in range(100):
        drawn = np.concatenate([rng.choice(ups, len(ups)), rng.choice(downs, len(downs))])
        truth = positive[drawn]
        draws["f1"].append(metrics.f1_score(truth, flagged[drawn]))
        draws["ap"].append(metrics.average_precision_score(truth, vote[drawn]))
        draws["roc_auc"].append(metrics.roc_auc_score(truth, vote[drawn]))
        draws["brier"].append(metrics.brier_score_loss(truth, chance[drawn]))
    for name, values in draws.items():
        assert found[name].spread == pytest.approx(np.std(values), rel=0.3), name
        assert found[name].low <= found[name].value <= found[name].high


def test_one_positive_perfect_votes_and_no_flag():
    positive = np.array([True] + [False] * 50)
    figures = measure(positive, positive * 2.0 - 1, np.zeros(51, bool))
    assert figures["precision"].value == figures["recall"].value == 0
    assert figures["mcc"].value == 0
    assert figures["ap"].value == figures["ap"].low == figures["ap"].high == 1


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="both classes"):
        measure([True, True], [0.1, 0.2], [True, False])
    with pytest.raises(ValueError, match="no vote"):
        measure([True, False], [0.1, np.nan], [True, False])


@pytest.mark.parametrize("name", ["f1", "precision", "recall", "ap", "cost"])
def test_a_model_ties_with_itself_and_beats_noise(name):
    positive, vote, flagged, _ = rows(2000, 3, digits=12)
    same = compare(name, positive, (vote, flagged), (vote, flagged))
    assert same.value == same.low == same.high == 0
    noise = np.random.default_rng(0).permutation(vote)
    gain = compare(name, positive, (vote, flagged), (noise, noise > 0.6))
    assert gain.low > 0
    loss = compare(name, positive, (noise, noise > 0.6), (vote, flagged))
    assert loss.value == pytest.approx(-gain.value)


def test_differences_of_average_precision():
    positive, vote, flagged, _ = rows(800, 4)
    other = vote + np.random.default_rng(5).normal(size=800).round(1)
    ours = metrics.average_precision_score(positive, vote)
    theirs = metrics.average_precision_score(positive, other)
    gain = compare("ap", positive, (vote, flagged), (other, flagged))
    assert gain.value == pytest.approx(ours - theirs)
