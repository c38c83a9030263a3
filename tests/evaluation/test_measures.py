"""Figures against scikit-learn's, intervals against a bootstrap row by row."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import average_precision_score, f1_score

from damvi.evaluation import MEASURES, alike_blocks, compare, confusion, measure, share
from damvi.evaluation import draws as module


def rows(n, seed, rate=0.1, digits=1):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    vote = np.tanh(positive + rng.normal(size=n)).round(digits)
    return positive, vote, vote > 0.6, (1 + vote) / 2


@pytest.mark.parametrize("digits", [1, 12])
def test_figures_are_those_of_scikit_learn(digits):
    positive, vote, flagged, chance = rows(3000, 0, digits=digits)
    found = {
        k: f.value for k, f in measure(positive, vote, flagged, chance).overall.items()
    }
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
    (_, alarms), (missed, _) = counts = confusion(positive, flagged, 2)
    assert counts.sum() == 500
    cost = measure(positive, vote, flagged, cost=(2, 30)).overall["cost"].value
    assert cost == pytest.approx((2 * alarms + 30 * missed) / 500)


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, 12_000])
def test_spreads_are_those_of_a_bootstrap_of_rows(n):
    positive, vote, flagged, chance = rows(n, 2, digits=12)
    found = measure(positive, vote, flagged, chance).overall
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
    figures = measure(positive, positive * 2.0 - 1, np.zeros(51, bool)).overall
    assert figures["precision"].value == figures["recall"].value == 0
    assert figures["mcc"].value == 0
    assert figures["ap"].value == figures["ap"].low == figures["ap"].high == 1


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="at least two classes, but the 2 rows"):
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
    found = measure(labels, vote, decided, chance)
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
    assert list(found.overall) == [name for name in MEASURES if name in expected]
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
    found = measure(labels[kept], vote[kept], decided[kept])
    assert found.by_class[0]["recall"] is None
    assert found.by_class[0]["ap"] is None
    assert found.by_class[0]["precision"].value == 0  # named, never rightly
    recalls = [own["recall"].value for own in found.by_class[1:]]
    assert found.overall["balanced_accuracy"].value == pytest.approx(np.mean(recalls))


def test_a_class_that_is_never_named_has_no_precision():
    labels, vote, _ = drawn(300)
    found = measure(labels, vote, np.full(len(labels), 2))
    assert found.by_class[0]["precision"] is None
    assert found.by_class[0]["recall"].value == 0
    assert found.by_class[0]["recall"].high > 0  # not sure from a few rows
    assert found.overall["mcc"].value == 0


@pytest.mark.slow
def test_the_intervals_hold_the_truth_about_as_often_as_they_say():
    big = drawn(60_000, seed=99)
    truth = {k: f.value for k, f in measure(*big).overall.items()}
    held = dict.fromkeys(truth, 0)
    for seed in range(20):
        found = measure(*drawn(400, seed=seed)).overall
        for name, figure in found.items():
            held[name] += figure.low <= truth[name] <= figure.high
    # With 20 rows of the rarest class, 82 % instead of 90 % for the average precision.
    assert min(held.values()) >= 12, held


def test_thinned_rows_give_about_the_same_interval(monkeypatch):
    data = drawn(6000)
    whole = measure(*data)
    monkeypatch.setattr(module, "MOST_WORK", 3000 * 3 * module.N_DRAWS)
    thin = measure(*data)
    for name in ("macro_ap", "macro_roc_auc"):
        one, other = whole.overall[name], thin.overall[name]
        assert one.value == other.value
        assert other.spread == pytest.approx(one.spread, rel=0.4)


@pytest.mark.parametrize(
    ("labels", "vote", "words"),
    [
        ([1, 1], np.ones((2, 3)), "at least two classes"),
        ([0, 1], np.full((2, 3), np.nan), "no vote"),
    ],
)
def test_what_cannot_be_measured_of_many_is_said(labels, vote, words):
    with pytest.raises(ValueError, match=words):
        measure(labels, vote, [0, 0])


def test_no_interval_reaches_beyond_what_a_figure_can_be():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [60, 30, 12])
    vote = np.eye(3)[labels] + 0.45 * rng.random((102, 3)).round(1)
    vote[0] = vote[-1]
    chance = 0.99 * np.eye(3)[labels] + 0.01 / 3
    found = measure(labels, vote, vote.argmax(axis=1), chance)
    shares = [*found.by_class, found.overall]
    for figures in shares:
        for name, figure in figures.items():
            if figure is not None and name != "mcc":
                assert 0 <= figure.low <= figure.value <= figure.high <= 1, name


rng = np.random.default_rng(0)
TRUTH = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=400)
OURS, OTHER = np.eye(4)[TRUTH] + rng.normal(size=(2, 400, 4)) * [[[0.8]], [[1.0]]]
OURS = OURS.round(1)  # ties
ROWS_OF = [np.flatnonzero(np.equal(TRUTH, c)) for c in range(4)]


def macro_f1(rows, vote):
    decided = vote[rows].argmax(axis=1)
    return f1_score(TRUTH[rows], decided, average="macro", zero_division=0)


def macro_ap(rows, vote):
    return np.mean(
        [average_precision_score(np.equal(TRUTH[rows], c), vote[rows, c]) for c in range(4)]
    )


@pytest.mark.parametrize(("name", "slow"), [("macro_f1", macro_f1), ("macro_ap", macro_ap)])
def test_value_and_spread_of_a_difference(name, slow):
    ours, other = ((vote, vote.argmax(axis=1)) for vote in (OURS, OTHER))
    found = compare(name, TRUTH, ours, other)
    every = np.arange(400)
    assert found.value == pytest.approx(slow(every, OURS) - slow(every, OTHER))
    draws = []
    for _ in range(100):
        rows = np.concatenate([rng.choice(rows, len(rows)) for rows in ROWS_OF])
        draws.append(slow(rows, OURS) - slow(rows, OTHER))
    assert found.spread == pytest.approx(np.std(draws), rel=0.3)
    assert found.low == pytest.approx(np.quantile(draws, 0.05), abs=0.03)
    assert found.high == pytest.approx(np.quantile(draws, 0.95), abs=0.03)
    same = compare(name, TRUTH, ours, ours)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def campaigns(n=2000, n_campaigns=20, seed=0):
    """Positives of one campaign are alike: all easy, or all hard."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.random(n))
    campaign = (times * n_campaigns).astype(int)
    positive = rng.random(n) < 0.1
    easy = 1.5 * rng.normal(size=n_campaigns)[campaign]
    vote = (rng.normal(size=n) + positive * (1.5 + easy)).round(2)
    return times, positive, vote


def test_blocks_are_drawn_as_a_whole():
    """Against scikit-learn, draw by draw."""
    times, positive, vote = campaigns(400)
    blocks = alike_blocks(times, n_blocks=7)
    drawn = np.random.default_rng(0).multinomial(7, np.full(7, 1 / 7), size=5)
    found = module._ranks_of_blocks(positive, vote, blocks, drawn.astype(float))
    for k, each in enumerate(drawn):
        weight = each[blocks]
        exact = [
            score(positive, vote, sample_weight=weight)
            for score in (metrics.average_precision_score, metrics.roc_auc_score)
        ]
        np.testing.assert_allclose(found[:, k], exact)


def test_rows_that_are_alike_make_wider_intervals():
    times, positive, vote = campaigns()
    plain = measure(positive, vote, vote > 1, cost=(1, 5))
    alike = measure(positive, vote, vote > 1, cost=(1, 5), blocks=alike_blocks(times))
    apart = measure(positive, vote, vote > 1, cost=(1, 5), blocks=np.arange(2000) % 1000)
    for name, figure in plain.overall.items():
        wide, narrow = alike.overall[name], apart.overall[name]
        assert wide.value == figure.value == narrow.value
        if name in ("recall", "f1", "ap"):
            assert wide.spread > 1.4 * figure.spread, name
            assert wide.high - wide.low > 1.4 * (figure.high - figure.low), name
            assert narrow.spread == pytest.approx(figure.spread, rel=0.35), name
    assert plain.effects["recall"] == (1.0, 1.0)
    assert alike.effects["recall"][1] > 2
    told = alike.as_dict()["shares"][1][1]
    assert told["low"] == pytest.approx(alike.overall["recall"].low)
    other = vote + np.random.default_rng(0).normal(size=2000)
    for name in ("ap", "f1"):
        pair = (vote, vote > 1), (other, other > 1)
        gains = [
            compare(name, positive, *pair, blocks=blocks)
            for blocks in (None, alike_blocks(times))
        ]
        assert gains[0].value == gains[1].value
        assert gains[1].low < gains[1].value < gains[1].high


def test_blocks_hold_the_truth_where_rows_do_not():
    made = [campaigns(n_campaigns=15, seed=seed) for seed in range(25)]
    mean = np.mean([average_precision_score(y, vote) for _, y, vote in made])
    held = np.zeros(2)
    for times, y, vote in made:
        for k, blocks in enumerate((None, alike_blocks(times))):
            found = measure(y, vote, vote > 1, blocks=blocks).overall["ap"]
            held[k] += found.low <= mean <= found.high
    assert held[0] < 17  # of 25
    assert held[1] > 19


def test_the_order_of_rows_does_not_matter_to_blocks():
    times, positive, vote = campaigns(500)
    order = np.random.default_rng(0).permutation(500)
    one, other = (
        measure(
            positive[rows], vote[rows], vote[rows] > 1, blocks=alike_blocks(times[rows])
        )
        for rows in (np.arange(500), order)
    )
    assert one.overall == other.overall
    assert one.effects == other.effects


def test_classes_that_are_in_few_blocks():
    """A draw may have no row of a class: it is drawn again, or does without."""
    labels = np.repeat([0, 1, 2], [90, 5, 5])
    vote = np.eye(3)[labels] + np.random.default_rng(0).normal(size=(100, 3))
    blocks = np.arange(100) // 5
    found = measure(labels, vote, vote.argmax(axis=1), blocks=blocks)
    for figure in found.overall.values():
        assert figure.low <= figure.value <= figure.high
    two = measure(labels > 0, vote[:, 1], vote[:, 1] > 1, blocks=blocks // 10)
    assert all(np.isfinite(one.low + one.high) for one in two.overall.values())


@pytest.mark.parametrize("n_blocks", [None, 60])
def test_two_votes_are_compared_at_the_same_number_of_flags(n_blocks):
    rng = np.random.default_rng(0)
    labels = rng.random(3000) < 0.05
    good, bad = labels + rng.normal(size=(2, 3000)) * [[0.5], [2.0]]
    blocks = None if n_blocks is None else np.arange(3000) % n_blocks
    many = np.ones(3000, bool)  # as a threshold from other rows may flag
    by_flags = compare("recall", labels, (good, good > 1), (bad, many), blocks=blocks)
    assert by_flags.high < 0
    gain = compare("recall", labels, (good, good > 1), (bad, many), top=0.05, blocks=blocks)
    first = [np.sort(labels[np.argsort(-vote)][:150]).mean() for vote in (good, bad)]
    hits = 150 * (first[0] - first[1]) / labels.sum()
    assert gain.low > 0
    assert gain.value == pytest.approx(hits)
    same = compare("recall", labels, (good, good > 1), (2 * good, many), top=0.05)
    for top in (0, -3, 1.5):
        with pytest.raises(ValueError, match="must be a share of the rows"):
            compare("recall", labels, (good, good > 1), (bad, many), top=top)
    assert (same.low, same.value, same.high) == (0, 0, 0)


def test_stretches_of_time_and_groups_are_blocks():
    times = np.repeat(np.arange(100), 3)
    blocks = alike_blocks(times)
    assert set(np.bincount(blocks)) == {24, 27}
    assert blocks.max() == 11
    assert (np.diff(blocks) >= 0).all()
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(alike_blocks(times[order]), blocks[order])
    # A group stays together, in the stretch of its first row.
    groups = np.arange(300) % 30
    both = alike_blocks(times, groups)
    assert all(len(np.unique(both[groups == group])) == 1 for group in range(30))
    assert len(np.unique(alike_blocks(groups=np.arange(5000)))) == 1000
    assert alike_blocks() is None
    assert alike_blocks(times=[1, 1, 1]) is None
