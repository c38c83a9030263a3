"""Thresholds, weights, bins and bars: against plain counting, and none better left out."""

import numpy as np
import pytest
from scipy.stats import binomtest

from damvi.decision import tune_threshold
from damvi.evaluation import share
from damvi.report.charts import Drawing, ticks
from damvi.report.curves import calibration, distribution, offer_cuts
from damvi.report.words import basis, per_hundred

from .toy import best_with_recall, cheapest


def votes_of(n, rate, seed, digits=None):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    positive[:2] = True, False
    vote = np.tanh(positive - 0.5 + 0.7 * rng.normal(size=n))
    return vote if digits is None else vote.round(digits), positive


@pytest.mark.parametrize(
    ("n", "rate", "digits", "most"),
    [
        (300, 0.1, None, 2000),
        (300, 0.1, 1, 2000),
        (2000, 0.3, None, 20),
        (50, 0.0, None, 3),
    ],
)
def test_counts_are_those_of_the_rows_and_nothing_cheaper_is_left_out(
    n, rate, digits, most
):
    vote, positive = votes_of(n, rate, 0, digits)
    cuts = offer_cuts(vote, positive, own=0.05, most=most)
    assert (np.diff(cuts.threshold) < 0).all()
    assert cuts.threshold[cuts.own] == 0.05
    for threshold, found, alarms in zip(
        cuts.threshold, cuts.found, cuts.alarms, strict=True
    ):
        flagged = vote > threshold
        assert (flagged & positive).sum() == found
        assert (flagged & ~positive).sum() == alarms
    assert cuts.found[0] == cuts.alarms[0] == 0
    assert (cuts.found[-1], cuts.alarms[-1]) == (positive.sum(), (~positive).sum())

    for miss in (0.1, 1, 2.5, 7, 40, 300, 1e4):
        best = vote > tune_threshold(vote, positive, {"cost": (1, miss)})
        least = miss * (positive & ~best).sum() + (best & ~positive).sum()
        k = cheapest(cuts, miss)
        assert miss * (cuts.positives - cuts.found[k]) + cuts.alarms[k] == pytest.approx(
            least
        )


@pytest.mark.parametrize("floor", [0.01, 0.5, 0.8, 1.0])
def test_a_floor_of_recall_is_kept_at_the_highest_precision(floor):
    vote, positive = votes_of(400, 0.1, 3)
    cuts = offer_cuts(vote, positive, own=0.0)
    k = best_with_recall(cuts, floor)
    best = vote > tune_threshold(vote, positive, {"recall": floor})
    precision = (best & positive).sum() / best.sum()
    assert cuts.found[k] >= floor * positive.sum() - 1e-9
    assert cuts.found[k] / (cuts.found[k] + cuts.alarms[k]) == pytest.approx(precision)


def test_ties_and_one_value():
    positive = np.array([True, False, False])
    cuts = offer_cuts(np.zeros(3), positive, own=0.0)
    assert cuts.found.tolist() == [0, 1]
    assert cuts.alarms.tolist() == [0, 2]
    assert cheapest(cuts, 1.0) == 0
    assert cheapest(cuts, 2.0) == 0  # as dear as flagging all: the fewest are flagged
    assert cheapest(cuts, 2.1) == 1


def test_neighbouring_floats_are_told_apart():
    vote = np.array([0.1, np.nextafter(0.1, 1)])
    cuts = offer_cuts(vote, np.array([False, True]), own=-1.0)
    k = cheapest(cuts, 1.0)
    assert (vote > cuts.threshold[k]).tolist() == [False, True]


@pytest.mark.parametrize(("part", "whole"), [(0, 5), (3, 7), (50, 50), (1, 4000)])
def test_the_interval_is_wilsons(part, whole):
    found = share(part, whole)
    expected = binomtest(part, whole).proportion_ci(0.9, method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))


def test_bins_hold_every_row_once_and_ties_stay_together():
    rng = np.random.default_rng(0)
    chance = rng.beta(0.3, 5, size=5000).round(3)
    positive = rng.random(5000) < chance
    bins = calibration(chance, positive)
    assert sum(b["rows"] for b in bins) == 5000
    assert sum(b["positives"] for b in bins) == positive.sum()
    for b in bins:
        rows = (chance >= b["from"]) & (chance <= b["to"])
        assert rows.sum() == b["rows"]
        assert b["said"] == pytest.approx(chance[rows].mean())
        assert b["seen"] == pytest.approx(positive[rows].mean())
    assert len(bins) > 10  # the top tenth is looked at closely


def test_one_probability_for_all_is_one_bin():
    (only,) = calibration(np.full(7, 0.2), np.arange(7) == 0)
    assert (only["rows"], only["positives"]) == (7, 1)


def test_every_vote_is_in_a_bar():
    vote = np.array([-1.0, 1.0, 0.0, 0.999])
    found = distribution(vote, np.array([True, False, True, False]))
    assert sum(found["positive"]) == sum(found["negative"]) == 2
    assert sum(distribution(np.array([-3.0, 4.0]), None)["all"]) == 2


def test_numbers_out_of_a_hundred_hide_nothing():
    told = [per_hundred(s) for s in (0, 0.001, 0.5, 0.994, 0.9999, 1)]
    assert told == ["0", "<1", "50", ">99", ">99", "100"]


def test_drawings_escape_what_they_are_given():
    drawing = Drawing("chart", "<t>", '"&', x=(0, 0), y=(1, 1))
    svg = drawing.bar(0, 1, 0, 1, "bar", "<script>").words(0, 0, "<b>").svg()
    assert "<script>" not in svg
    assert "<b>" not in svg
    assert "&lt;script&gt;" in svg
    assert ticks(0, 0) == [0]


@pytest.mark.parametrize(
    ("of_fit", "new", "step", "words"),
    [
        (0, 1_000_000, 1, "new"),
        (1_000_000, 0, 1, "out of sample on 1,000,000 training rows."),
        (9, 999_991, 1, "rows, training rows out of sample"),
        (900_000, 0, 4, "training rows (one in 4)."),
        (9, 899_991, 4, "rows, training rows (one in 4) out of sample"),
    ],
)
def test_the_first_box_is_one_short_line(of_fit, new, step, words):
    judged = of_fit // step + new
    data = {"of_fit": of_fit, "new": new, "judged": judged, "step": step}
    line = basis({"labelled": True, "target": {"positive": "yes"}, "data": data})
    assert words in line
    assert len(line.replace(" (one in 4)", "")) < 60
