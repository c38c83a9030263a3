"""The leaderboard's pure parts: tables and protocol, scores, and the report."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from benchmarks.leaderboard.contenders import AUTOGLUON, CONTENDERS, LIGHTGBM, OURS
from benchmarks.leaderboard.data import (
    ENOUGH_POSITIVES,
    FEWEST_POSITIVES,
    MOST_POSITIVE,
    MOST_ROWS,
    load,
    rows_of_test,
    some_rows,
)
from benchmarks.leaderboard.report import Board, Entry, front, write_report
from benchmarks.leaderboard.runner import (
    BOARDS,
    DEVELOPMENT,
    MAIN,
    Cache,
    Key,
    Plan,
    best_threshold,
    nothing_known,
    planned,
    score,
    tuned_f1,
)
from benchmarks.paper.store import read_cells

PROTOCOL = Path(__file__).resolve().parents[1] / "results" / "leaderboard" / "protocol.md"
SCORES = ("ap", "f1", "f1_tuned", "log_loss", "brier")


@pytest.mark.parametrize("board", list(BOARDS))
def test_sources_are_as_many_and_as_rare_as_asked(board: str) -> None:
    sources = BOARDS[board].sources
    assert len({source.collected_by for source in sources.values()}) == len(sources) >= 12
    for source in sources.values():
        assert source.positives >= FEWEST_POSITIVES
        assert source.rate <= MOST_POSITIVE
        assert source.licence
        assert len(source.sha256) == (64 if board == MAIN else 0)
    assert not BOARDS[MAIN].sources.keys() & BOARDS[DEVELOPMENT].sources.keys()


def test_protocol_names_every_source_and_contender() -> None:
    protocol = PROTOCOL.read_text(encoding="utf-8")
    for source in (one for plan in BOARDS.values() for one in plan.sources.values()):
        assert f"| {source.dataset} | {source.rows:,} | {source.features:,} |" in protocol
    for contender in CONTENDERS:
        assert f"**{contender}**" in protocol


def test_splits_are_stratified_and_frozen() -> None:
    y = np.repeat([0, 1], [90, 10])
    test = rows_of_test(y, 0)
    assert (test[y == 0].sum(), test[y == 1].sum()) == (27, 3)
    assert np.flatnonzero(test)[:5].tolist() == [3, 4, 6, 19, 22]
    assert (rows_of_test(y, 1) != test).any()


def test_of_large_development_datasets_some_rows_are_taken(tmp_path: Path) -> None:
    large, rare = np.arange(50_000) < 400, np.arange(300) < 9
    for y, n, positives in ((large, MOST_ROWS, 400), (rare, 300, 9)):
        rows = some_rows(y.astype(int))
        assert (len(rows), y[rows].sum()) == (n, positives)
        assert (np.diff(rows) > 0).all()
    assert (np.arange(50_000) < 20_000)[some_rows(large * 1)].sum() > ENOUGH_POSITIVES
    source = BOARDS[DEVELOPMENT].sources["mammography"]  # which comes with the package
    X, y = load(Cache(tmp_path, tmp_path).table(source))
    assert (*X.shape, y.sum()) == (source.rows, source.features, source.positives)


def test_plan_is_by_budget() -> None:
    plan = BOARDS[MAIN]
    keys = list(planned(plan, [None, *plan.budgets], list(CONTENDERS)))
    timed = sum(contender.has_budget for contender in CONTENDERS.values())
    n = len(plan.sources)
    assert len(keys) == len(set(keys))
    assert sum(key.budget == 10 for key in keys) == 3 * timed * n
    assert sum(key.budget == 300 for key in keys) == timed * n
    assert sum(key.budget is None for key in keys) == 3 * (len(CONTENDERS) - timed) * n


def test_best_threshold_is_the_best_there_is() -> None:
    random = np.random.RandomState(0)
    chance = random.randint(0, 20, 200) / 20
    truth = (random.rand(200) < chance / 2).astype(int)
    found = best_threshold(truth, chance)
    tried = [f1_score(truth, chance > t) for t in np.append(-1, np.unique(chance)[:-1])]
    assert f1_score(truth, chance > found) == max(tried)


def test_a_common_threshold_mends_a_bad_scale() -> None:
    random = np.random.RandomState(1)
    truth = (random.rand(2000) < 0.1).astype(int)
    chance = 0.01 * (truth + 0.2 * random.rand(2000))
    scores = score(truth, chance, chance > 0.5)
    assert scores["f1"] == 0
    assert scores["f1_tuned"] == 1
    assert tuned_f1(truth, chance) == tuned_f1(truth, 50 * chance)


def test_an_answer_must_be_a_number_for_each_row() -> None:
    with pytest.raises(ValueError, match="finite probability"):
        score(np.array([0, 1]), np.array([0.1, np.nan]), np.array([False, True]))


def test_nothing_known_is_the_class_rate() -> None:
    y = np.repeat([0, 1], [900, 100])
    scores = nothing_known(y, 0)
    assert scores["ap"] == pytest.approx(0.1)
    assert scores["f1"] == 0


def test_front_keeps_what_nothing_beats() -> None:
    entries = [Entry(name, None) for name in "abcd"]
    cost, quality = np.array([1.0, 2.0, 3.0, np.inf]), np.array([0.5, 0.4, 0.6, 0.9])
    assert {e.contender for e in front(entries, quality, cost)} == {"a", "c"}


def made_up(
    folder: Path,
    n_sources: int = 6,
    easy: str = "",
    plan: Plan = BOARDS[MAIN],
    budgets: Sequence[int] = (10, 60, 300),
    n_splits: int = 3,
) -> None:
    """Cells of four contenders; ours is best, and AutoGluon fails once."""
    skill = {OURS: 0.3, AUTOGLUON: 0.2, LIGHTGBM: 0.1, "RUSBoost": 0.0}
    random, lines = np.random.RandomState(0), []
    wanted = list(plan.sources)[:n_sources]
    for key in planned(plan, [None, *budgets], list(skill)):
        if key.dataset not in wanted or key.split >= n_splits:
            continue
        value = 0.5 + skill[key.contender] + 0.01 * random.rand()
        scores = dict.fromkeys(SCORES, value)
        if key.dataset == easy and key.contender == LIGHTGBM:
            scores["ap"] = 0.99
        cell = {
            "key": str(key),
            "dataset": key.dataset,
            "split": key.split,
            "contender": key.contender,
            "budget": key.budget,
            "scores": {**scores, "log_loss": 1 - value, "brier": 1 - value},
            "fit_seconds": key.budget or 1.0,
            "fit_cpu_seconds": key.budget or 1.0,
            "predict_seconds": 0.1,
            "peak_memory": 10**8,
            "others": 0.0,
        }
        if key == Key(wanted[0], 0, AUTOGLUON, 60):
            for name in ("fit_seconds", "fit_cpu_seconds", "predict_seconds"):
                del cell[name]
            cell["error"] = "not done after 240 s"
        lines.append(json.dumps(cell) + "\n")
    (folder / "cells.jsonl").write_text("".join(lines), encoding="utf-8")


@pytest.mark.slow
def test_report_ranks_and_shows_what_failed(tmp_path: Path) -> None:
    easy = list(BOARDS[MAIN].sources)[1]
    made_up(tmp_path, easy=easy)
    write_report(tmp_path, BOARDS[MAIN])
    page = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "Not met" not in page
    assert "ahead of AutoGluon in mean rank by log loss (1.00 against 2.00" in page
    assert f"{easy} (not ranked)" in page
    assert "split 0, AutoGluon, 60 s: not done after 240 s" in page
    assert "5 of 5 ranked sources, 3 splits of each: " in page
    assert (tmp_path / "front.png").exists()
    scores = (tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert len(list(csv.DictReader(scores))) == 6 * (2 * 6 + 2 * 3)


def test_report_of_few_cells_says_so(tmp_path: Path) -> None:
    made_up(tmp_path, n_sources=2)
    write_report(tmp_path, BOARDS[MAIN])
    page = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "Not run yet on enough sources (2 are complete; it takes 3)." in page


def test_report_of_some_budgets_and_splits(tmp_path: Path) -> None:
    made_up(tmp_path, budgets=(10,), n_splits=1)
    write_report(tmp_path, BOARDS[MAIN])
    page = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "6 of 6 ranked sources, 1 split of each (3 are planned): " in page
    assert page.count("\nNot run yet.\n") == 2
    assert "DAMVI strong at 10 s is on the front" in page
    assert "What quality costs" in page
    assert "AP, 60 s" not in page


def test_who_is_not_complete_is_left_out_and_named(tmp_path: Path) -> None:
    made_up(tmp_path, budgets=(10,), n_splits=1)
    cell = next(c for c in read_cells(tmp_path) if c["budget"] == 10)
    cell |= {"contender": "FLAML", "key": f"{cell['dataset']}, split 0, FLAML, 10 s"}
    with (tmp_path / "cells.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(cell) + "\n")
    write_report(tmp_path, BOARDS[MAIN])
    page = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "6 of 6 ranked sources" in page
    assert "left out: FLAML." in page


def test_report_says_what_later_code_of_ours_changed(tmp_path: Path) -> None:
    made_up(tmp_path, budgets=(10,), n_splits=1)
    write_report(tmp_path, BOARDS[MAIN])
    page = tmp_path / "leaderboard.md"
    assert "## Ours, run again with later code\n\nNone.\n" in page.read_text("utf-8")
    again = []
    for cell in read_cells(tmp_path):
        if cell["contender"] == "DAMVI strong":
            scores = cell["scores"] | {"f1": cell["scores"]["f1"] - 0.25}
            again.append(json.dumps(cell | {"code": "later", "scores": scores}) + "\n")
    with (tmp_path / "cells.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(again)
    write_report(tmp_path, BOARDS[MAIN])
    assert "| -0.2500 ± 0.0000 | 0 : 6 |" in page.read_text("utf-8")


def test_development_datasets_have_a_board_of_their_own(tmp_path: Path) -> None:
    plan = BOARDS[DEVELOPMENT]
    easy = next(iter(plan.sources))
    made_up(tmp_path, n_sources=2, easy=easy, plan=plan, budgets=(10, 60))
    assert Board(read_cells(tmp_path), plan).ranked[0] == easy
    write_report(tmp_path, plan)
    page = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert "Our settings were chosen on these datasets" in page
    assert "(2 are complete; it takes 3)" in page
    assert "## 300 seconds\n\nNot run yet" in page
