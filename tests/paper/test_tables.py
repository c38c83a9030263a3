"""Means, deviations and marks, recomputed from the raw cells."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from benchmarks.paper.published import (
    agrees,
    label,
    order_methods,
    paper_entries,
    paper_entry,
)
from benchmarks.paper.tables import (
    Entry,
    rank_sum_p,
    score_table,
    significantly_lower,
    smallest_p,
)

from .simulate import cell, lost, random_cells


def recomputed(cells, metric):
    """(method, dataset) -> mean, std, best, second, worse, by loops of its own."""
    scores = {}
    for one in cells:
        of = scores.setdefault((one["method"], one["dataset"]), [])
        if one["status"] == "done":
            of.append(one[metric])
    table = {}
    for dataset in {one["dataset"] for one in cells}:
        here = {m: s for (m, d), s in scores.items() if d == dataset}
        most = max(map(len, here.values()))
        eligible = {m: np.mean(s) for m, s in here.items() if s and len(s) == most}
        for method, values in here.items():
            higher = {
                round(mean, 9)
                for mean in eligible.values()
                if method in eligible and mean > eligible[method] + 1e-9
            }
            ours = here.get("DAMVI", [])
            worse = False
            if values and ours and method != "DAMVI":
                p = mannwhitneyu(values, ours).pvalue
                worse = p < 0.05 and np.mean(values) < np.mean(ours)
            table[method, dataset] = {
                "mean": np.mean(values) if values else None,
                "std": np.std(values, ddof=1) if len(values) > 1 else None,
                "n_done": len(values),
                "best": method in eligible and not higher,
                "second": method in eligible and len(higher) == 1,
                "worse": worse,
            }
    return table


@pytest.mark.parametrize("metric", ["f1", "ap"])
@pytest.mark.parametrize("seed", range(25))
def test_the_marks_recomputed_from_the_raw_cells(seed, metric):
    cells = random_cells(seed)
    table = score_table(cells, metric)
    expected = recomputed(cells, metric)
    assert set(table.entries) == set(expected)
    for place, entry in table.entries.items():
        found = {name: getattr(entry, name) for name in expected[place]}
        assert found == pytest.approx(expected[place], abs=1e-12), place


def test_the_simulated_cells_show_every_mark():
    tables = [score_table(random_cells(seed), "f1") for seed in range(25)]
    entries = [entry for table in tables for entry in table.entries.values()]
    assert {entry.status for entry in entries} >= {"done", "partial"}
    assert any(entry.worse for entry in entries)
    columns = [[t[m, d].best for m in t.methods] for t in tables for d in t.datasets]
    assert any(sum(column) > 1 for column in columns), "no tie"


def test_methods_that_tie_share_the_mark_whatever_the_order_of_splits():
    scores = [0.1, 0.2, 0.3]
    cells = [cell("d", "EE", s, f) for s, f in enumerate(scores)]
    cells += [cell("d", "BB", s, f) for s, f in enumerate(reversed(scores))]
    cells += [cell("d", "RF", s, 0.15) for s in range(3)]
    cells += [cell("d", "uniform", s, 0.1) for s in range(3)]
    table = score_table(cells, "f1")
    assert [m for m in table.methods if table[m, "d"].best] == ["BB", "EE"]
    assert [m for m in table.methods if table[m, "d"].second] == ["RF"]


def test_fewer_splits_than_others_win_nothing():
    cells = [cell("d", "EE", s, 0.5) for s in range(3)] + [cell("d", "BB", 0, 0.9)]
    cells += [lost("d", "BB", 1), lost("d", "BB", 2, "timeout", "over 60 s")]
    table = score_table(cells, "f1")
    entry = table["BB", "d"]
    assert (entry.status, entry.n_done, entry.n_failed, entry.n_timeout) == (
        "partial",
        1,
        1,
        1,
    )
    assert entry.note == "no samples; over 60 s"
    assert not entry.best
    assert table["EE", "d"].best


def test_what_is_not_done_says_why():
    cells = [cell("d", "EE", s) for s in range(2)]
    cells += [lost("d", "BB", s) for s in range(2)]
    cells += [lost("d", "RF", s, "timeout", "slow") for s in range(2)]
    cells += [cell("e", "EE", 0)]
    table = score_table(cells, "ap")
    assert table["BB", "d"].status == "failed"
    assert table["RF", "d"].status == "timeout"
    assert table["RF", "e"].status == "missing"
    assert table["EE", "e"].std is None


def test_a_score_that_is_no_number_is_no_score():
    table = score_table(
        [cell("d", "EE", 0, f1=float("nan")), cell("d", "EE", 1, 0.5)], "f1"
    )
    assert (table["EE", "d"].n_done, table["EE", "d"].n_failed) == (1, 1)


def test_cells_of_the_ratio_experiment_stay_out():
    table = score_table(
        [cell("d", "EE", 0, 0.5), cell("d", "EE", 0, 0.9, ratio=0.01)], "f1"
    )
    assert table["EE", "d"].scores == (0.5,)


def test_two_cells_for_one_place_are_refused():
    with pytest.raises(
        ValueError, match=r"Two cells for dataset='d', method='EE', split=0"
    ):
        score_table([cell("d", "EE", 0), cell("d", "EE", 0)], "f1")


def test_best_among_some_methods_only():
    cells = [cell("d", m, 0, f) for m, f in [("DAMVI", 0.8), ("EE", 0.7), ("RF", 0.9)]]
    table = score_table(cells, "f1")
    assert table["RF", "d"].best
    assert table["DAMVI", "d"].second
    ours = table.only(["EE", "DAMVI"])
    assert ours["DAMVI", "d"].best
    assert ours["EE", "d"].second
    assert ours.methods == ("EE", "DAMVI")


def test_the_order_of_the_paper():
    shown = order_methods(["zz", "XGBoost", "uniform", "DAMVI", "EE", "S-DT", "R-DT", "aa"])
    assert shown == ["S-DT", "R-DT", "EE", "DAMVI", "uniform", "XGBoost", "aa", "zz"]
    assert label("scania_partial") == "Scania (part)"
    assert label("pct_imitation") == "PCT (imitation)"


def test_significance_needs_enough_splits():
    assert smallest_p(5, 5) == pytest.approx(2 / 252)
    assert smallest_p(3, 3) == pytest.approx(0.1)
    low, high = [0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.7, 0.8, 0.9, 1.0]
    assert significantly_lower(low, high)
    assert not significantly_lower(high, low)
    assert not significantly_lower(low, low)
    assert not significantly_lower(low[:2], high[:2])
    assert rank_sum_p([], high) == 1


def test_the_papers_numbers():
    entries = paper_entries()
    assert len(entries) == 2 * 10 * 6
    assert paper_entry("ap", "EE", "scania_partial").mean == 0.7558
    assert paper_entry("ap", "DAMVI", "pct").mean == 0.9976
    assert paper_entry("ap", "DAMVI", "pct_imitation") is None
    assert paper_entry("ap", "RF", "webpage") is None
    assert sum(entry.worse for entry in entries.values()) == 99


def test_agreement_is_two_standard_errors():
    paper = paper_entry("f1", "DAMVI", "webpage")  # .7996 ± .011
    near = Entry(scores=(0.77, 0.79, 0.81), n_splits=3)
    assert agrees(near.mean, near.std, near.n_done, paper)
    assert agrees(0.76, 0.02, 3, paper) is False
    assert agrees(0.79, 0.02, 5, paper)
    assert agrees(0.788, 0.0, 100, paper) is False  # .0098 is allowed
    assert agrees(0.8, None, 1, paper) is None
