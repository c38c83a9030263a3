"""Rates, calibration and distribution against plain counting."""

import numpy as np
import pytest
from scipy.stats import binomtest

from damvi.evaluation.rates import share
from damvi.report.curves import calibration, distribution
from damvi.report.drawing import Drawing, ticks
from damvi.report.words import basis, per_hundred


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


@pytest.mark.parametrize("rows", [100, 99])
def test_what_a_line_tuned_on_other_rows_leaves_is_said(rows):
    own = {"precision": 0.551, "recall": 0.529}
    said = {
        "labelled": True,
        "data": {"of_fit": 100, "new": 0, "judged": 100, "without_truth": 0, "words": "A."},
        "peers": {"rows": rows, "models": {"DAMVI": own, "plain forest": own}},
    }
    text = basis(said)["text"]
    assert "new rows may do a bit worse" in text
    told = "of 100 flagged rows about 55 are real, and of 100 real ones about 53 are found"
    assert (told in text) == (rows == 100)
    assert told not in basis(said | {"peers": None})["text"]
