"""Figures before the labels come: what brute force says, and what was simulated."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.decision import calibrate_vote, parse_objective
from damvi.evaluation import achieved_figures, expected_figures
from damvi.evaluation import expected as module
from damvi.evaluation.expected import Cells, class_rates


def itself(p):
    return p


def brute_force(chance, decided):
    """The mean of each figure over all labels that there may be, by their chance."""
    total = dict.fromkeys(("precision", "recall", "f1", "ap"), 0.0)
    mass = dict.fromkeys(total, 0.0)
    for labels in product((0, 1), repeat=len(chance)):
        truth = np.array(labels)
        weight = np.prod(np.where(truth, chance, 1 - chance))
        for name, value in achieved_figures(truth, chance, decided).items():
            total[name] += weight * value
            mass[name] += weight
    return {name: total[name] / mass[name] for name in total}


@pytest.mark.parametrize("seed", range(3))
def test_the_means_are_those_of_all_possible_labels(seed, monkeypatch):
    monkeypatch.setattr(module, "N_OWN", 20_000)
    chance = np.random.default_rng(seed).beta(0.7, 1, 8)
    decided = (chance > 0.5).astype(int)
    decided[:2] = 1
    found = expected_figures(chance, decided, itself)
    for name, value in brute_force(chance, decided).items():
        assert found.overall[name].value == pytest.approx(value, abs=0.015), name
    assert found.by_class[0]["rows"].value == pytest.approx(chance.sum())
    assert found.by_class[0]["right"].value == pytest.approx((chance * decided).sum())


def test_macro_figures_are_those_of_all_possible_labels(monkeypatch):
    monkeypatch.setattr(module, "N_OWN", 20_000)
    p = np.random.default_rng(0).dirichlet(np.ones(3) * 0.6, 5)
    decided = p.argmax(axis=1)
    total, mass = {}, {}
    for labels in product(range(3), repeat=5):
        truth = np.array(labels)
        weight = p[np.arange(5), truth].prod()
        for name, value in achieved_figures(truth, p, decided).items():
            total[name] = total.get(name, 0) + weight * value
            mass[name] = mass.get(name, 0) + weight
    found = expected_figures(p, decided, itself)
    for name in ("balanced_accuracy", "macro_ap"):
        expected = total[name] / mass[name]
        assert found.overall[name].value == pytest.approx(expected, abs=0.02), name
    sizes = [own["rows"].value for own in found.by_class]
    np.testing.assert_allclose(sizes, p.sum(axis=0))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_certain_labels_have_exact_figures_of_no_width(seed, n_classes):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=30)])
    decided = np.where(rng.random(len(truth)) < 0.7, truth, rng.permutation(truth))
    vote = truth.astype(float) if n_classes == 2 else np.eye(n_classes)[truth]
    found = expected_figures(vote, decided, itself)
    exact = achieved_figures(truth, vote, decided)
    for name, figure in found.overall.items():
        assert figure.value == pytest.approx(exact.get(name, 0.0)), name
        if name in exact:
            assert figure.low == pytest.approx(figure.high), name


@pytest.mark.slow
def test_intervals_shrink_with_the_rows_and_grow_with_what_is_not_known():
    rng = np.random.default_rng(0)
    chance = rng.beta(0.3, 3, 400)
    decided = (chance > 0.3).astype(int)
    once = expected_figures(chance, decided, itself)
    many = expected_figures(np.tile(chance, 16), np.tile(decided, 16), itself)
    wide, narrow = (one.overall["recall"] for one in (once, many))
    assert narrow.value == pytest.approx(wide.value, abs=0.02)
    assert narrow.high - narrow.low < 0.4 * (wide.high - wide.low)
    vote, truth = votes(2000, 0.02, rng)
    curve = calibrate_vote(vote, truth)
    new = votes(2000, 0.02, rng)[0]
    sure = expected_figures(new, new > 0, curve).by_class[0]["rows"]
    unsure = expected_figures(new, new > 0, curve, (vote, truth)).by_class[0]["rows"]
    assert unsure.high - unsure.low > 1.2 * (sure.high - sure.low)


def votes(n, rate, rng):
    truth = (rng.random(n) < rate).astype(int)
    truth[:2] = 0, 1
    return np.tanh(1.5 * truth - 1 + 0.4 * rng.standard_normal(n)), truth


def test_many_rows_in_few_cells_say_the_same():
    rng = np.random.default_rng(1)
    chance = rng.beta(0.2, 4, 30_000)
    decided = (chance > 0.4).astype(int)
    cells = Cells.of(chance[:, None], decided, 1 - chance, 500)
    assert len(cells.counts) <= 502
    assert cells.counts.sum() == 30_000
    assert cells.counts @ cells.vote[:, 0] == pytest.approx(chance.sum())
    assert cells.counts @ (cells.decided == 1) == decided.sum()
    found = expected_figures(chance, decided, itself)
    truth = (rng.random(30_000) < chance).astype(int)
    for name, value in achieved_figures(truth, chance, decided).items():
        assert found.overall[name].value == pytest.approx(value, abs=0.03)


def test_rates_are_recovered_from_votes_alone():
    rng = np.random.default_rng(2)
    vote, truth = votes(20_000, 0.02, rng)
    curve = calibrate_vote(vote, truth)
    for rate in (0.004, 0.02, 0.1):
        new, known = votes(20_000, rate, rng)
        p = np.column_stack([1 - curve(new), curve(new)])
        before = [1 - truth.mean(), truth.mean()]
        found = class_rates(p, np.ones(20_000), before)[1]
        assert found == pytest.approx(known.mean(), rel=0.15, abs=0.001)


@pytest.mark.slow
def test_label_shift_corrects_probabilities_figures_and_threshold():
    rng = np.random.default_rng(3)
    vote, truth = votes(8000, 0.03, rng)
    curve, threshold = calibrate_vote(vote, truth), 0.2
    new, known = votes(8000, 0.15, rng)
    decided = (new > threshold).astype(int)
    rows = new, decided, curve, (vote, truth)
    plain = expected_figures(*rows)
    found = expected_figures(*rows, label_shift=True, objective=parse_objective("f1", 2))
    real = achieved_figures(known, new, decided)
    for name, value in real.items():
        figure = found.overall[name]
        assert figure.low - 0.02 <= value <= figure.high + 0.02, name
    assert found.by_class[0]["rows"].value == pytest.approx(known.sum(), rel=0.1)
    assert plain.by_class[0]["rows"].value < 0.9 * known.sum()
    assert found.probability.mean() == pytest.approx(known.mean(), rel=0.1)
    assert (plain.assumption, found.assumption) == ("P(y|x)", "P(x|y)")
    # More positives: flag more of them.
    assert found.threshold < threshold
    better = achieved_figures(known, new, (new > found.threshold).astype(int))
    assert better["f1"] > real["f1"]
    assert found.corrected["f1"].value == pytest.approx(better["f1"], abs=0.05)
    assert plain.threshold is None
    assert plain.corrected == {}


def test_without_training_rows_no_rates_are_told():
    with pytest.raises(ValueError, match="needs the training votes"):
        expected_figures(np.array([0.1, 0.9]), np.array([0, 1]), itself, label_shift=True)


def test_nothing_flagged_and_a_class_of_one_row():
    chance = np.full(50, 0.01)
    found = expected_figures(chance, np.zeros(50, int), itself)
    assert found.overall["precision"].as_dict() == {
        "value": 0.0,
        "low": 0.0,
        "high": 1.0,
        "spread": 0.0,
    }
    vote, truth = np.linspace(-1, 1, 40), np.zeros(40, int)
    truth[-1] = 1
    found = expected_figures(vote, vote > 0.9, calibrate_vote(vote, truth), (vote, truth))
    assert 0 <= found.overall["recall"].low <= found.overall["recall"].high <= 1


def test_flagged_rows_are_the_positives_also_where_most_are():
    chance = np.array([0.9, 0.8, 0.7, 0.1])
    assert expected_figures(chance, chance > 0.5, lambda p: p).flagged == 3
