"""The numbers that the Displays show are those of the measures."""

import numpy as np
import pytest

from damvi import diversity
from damvi.plots import (
    DisagreementDisplay,
    KappaErrorDisplay,
    MarginsDisplay,
    WeightsDisplay,
)


def test_the_kappa_error_diagram(model, judged):
    X, y, votes, weights = judged
    display = KappaErrorDisplay.from_estimator(model, X, y)
    kappa, error = diversity.kappa_error(votes, y == "fraud")
    np.testing.assert_array_equal(display.kappa, kappa)
    np.testing.assert_array_equal(display.error, error)
    n = (weights > 0).sum()
    assert display.weighted.sum() == n * (n - 1) / 2
    assert display.vote_error == pytest.approx(np.mean(model.predict(X) != y))
    shown = [len(points.get_offsets()) for points in display.ax_.collections]
    assert sum(shown) == len(kappa)


def test_margins_say_what_is_missed(model, judged):
    X, y, _, _ = judged
    display = MarginsDisplay.from_estimator(model, X, y)
    wrong = model.predict(X) != y
    assert display.missed == pytest.approx(wrong[y == "fraud"].mean())
    assert display.false_alarms == pytest.approx(wrong[y == "usual"].mean())
    positives, negatives = display.ax_.lines[:2]
    for line, sign in [(positives, "fraud"), (negatives, "usual")]:
        margins = display.margins[y == sign]
        x, share = line.get_data()
        assert share[-1] == pytest.approx(1)
        at = np.searchsorted(x, 0.5)
        assert share[at] == pytest.approx(np.mean(margins <= x[at]))
        assert f"{len(margins):,}" in line.get_label()
    assert positives.get_label().startswith("fraud")


def test_each_class_of_the_histogram_sums_to_one(judged):
    _, y, votes, weights = judged
    D = np.random.RandomState(0).rand(len(y))
    display = MarginsDisplay.from_predictions(
        votes, y == "fraud", weights, sample_weight=D, kind="histogram"
    )
    for panel in display.figure_.axes:
        heights = [bar.get_height() for bar in panel.patches]
        assert sum(heights) == pytest.approx(1)


def test_a_tie_is_the_negatives():
    display = MarginsDisplay.from_predictions([[1, -1], [1, -1]], [1, 0])
    assert (display.missed, display.false_alarms) == (1, 0)


def test_the_heat_map_is_in_order():
    y = np.tile([1, -1], 10)
    a, b = np.where(np.arange(20) < 3, -y, y), np.where(np.arange(20) > 14, -y, y)
    votes = np.column_stack([a, b, a, b, a])
    weights = [0.1, 0.4, 0.0, 0.2, 0.3]
    by_weight = DisagreementDisplay.from_predictions(votes, weights=weights)
    assert by_weight.order_.tolist() == [1, 4, 3, 0, 2]
    expected = diversity.pairwise_disagreement(votes)
    shown = np.asarray(by_weight.ax_.images[0].get_array())
    np.testing.assert_array_equal(
        shown, expected[np.ix_(by_weight.order_, by_weight.order_)]
    )
    # Voters that always agree stand side by side.
    likeness = DisagreementDisplay.from_predictions(votes, order="clusters").order_
    assert {*likeness[:2].tolist()} == {1, 3} or {*likeness[3:].tolist()} == {1, 3}


def test_weights_and_who_holds_half(model, judged):
    X, y, votes, weights = judged
    display = WeightsDisplay.from_estimator(model, X, y)
    assert display.n_weighted == (weights > 0).sum()
    heaviest = np.sort(weights)[::-1]
    assert heaviest[: display.n_half].sum() >= 0.5 - 1e-9
    assert heaviest[: display.n_half - 1].sum() < 0.5
    np.testing.assert_array_equal(
        display.errors, diversity.voter_errors(votes, y == "fraud")
    )
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_array_equal(heights, heaviest)
    assert WeightsDisplay(np.full(10, 0.1)).n_half == 5
