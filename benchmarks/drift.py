"""Warnings of changed inputs: how often on unchanged rows, and how often of real shifts.

    python benchmarks/drift.py [--data FOLDER] [--fits 1.0] [--first-seed 1000]

Fits of 500, 5,000 and 50,000 rows (trees, so that the share of flagged rows counts too),
each with new batches of 200, 1,000 and 10,000 rows of the same distribution: the share of
batches in which anything at all is said. "Warned" is what ``damvi predict`` says (certain,
and large enough to matter), "shown" what ``damvi drift`` calls changed in any column.
Tables: "made" has skewed, tied, discrete, heavy-tailed and gappy numbers,
few and many categories; others are real ones from a folder, in random order, where batches
are other rows than the fit's. Then shifts of one column of "made".

What is done is kept in ``fits.jsonl`` and not done again; ``summary.txt`` is made from it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setting import print_setting

from damvi import DAMVIClassifier
from damvi.drift import compare
from damvi.evaluation import FittedVote
from damvi.io import ModelParts, TrainingRows
from damvi.model import prepare
from damvi.model.prediction import Judge, drift_of
from damvi.tables import Rows

BATCHES = (200, 1000, 10_000)
FITS = {500: (40, 10), 5000: (20, 12), 50_000: (6, 40)}
"""By the rows of a fit: how many fits, and batches of each size for each."""
REAL = {
    "credit_fraud": ("paper/credit_fraud.parquet", "target"),
    "census": ("extra/census_kdd_half.parquet", "target"),
    "cover": ("extra/cover.parquet", "target"),
}
SHIFTS: dict[str, Any] = {
    "amount x 1.1": lambda f: f.assign(skewed=f["skewed"] * 1.1),
    "amount x 1.5": lambda f: f.assign(skewed=f["skewed"] * 1.5),
    "amount x 3": lambda f: f.assign(skewed=f["skewed"] * 3),
    "amount x 100": lambda f: f.assign(skewed=f["skewed"] * 100),
    "mean + 0.2 sd": lambda f: f.assign(normal0=f["normal0"] + 0.2),
    "mean + 0.5 sd": lambda f: f.assign(normal0=f["normal0"] + 0.5),
    "mean + 1 sd": lambda f: f.assign(normal0=f["normal0"] + 1),
    "2 % beyond the range": lambda f: f.assign(normal0=_some(f["normal0"], 0.02, 50.0)),
    "10 % more missing": lambda f: f.assign(normal1=_some(f["normal1"], 0.1, np.nan)),
    "3 % unreadable": lambda f: f.assign(normal1=_some(f["normal1"], 0.03, "n.a.!")),
    "all unreadable": lambda f: f.assign(normal1="much"),
    "a category 33 % to 45 %": lambda f: f.assign(few=_some(f["few"], 0.18, "a")),
    "a category 33 % to 70 %": lambda f: f.assign(few=_some(f["few"], 0.55, "a")),
    "5 % new categories": lambda f: f.assign(few=_some(f["few"], 0.05, "new")),
    "counts + 1": lambda f: f.assign(counts=f["counts"] + 1),
}


def _some(column: pd.Series, share: float, value: Any) -> pd.Series:
    rows = np.random.default_rng(len(column)).random(len(column)) < share
    return column.astype(object).mask(rows, value) if share else column


def made(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Twenty columns, none of them alike; 5 % positives."""
    table: dict[str, Any] = {f"normal{k}": rng.normal(size=n) for k in range(6)}
    table["skewed"] = rng.lognormal(3, 1, n).round(2)
    table["very_skewed"] = rng.lognormal(0, 2.5, n)
    table["cauchy"] = rng.standard_cauchy(n)
    table["heavy"] = rng.standard_t(2, n)
    table["pareto"] = rng.pareto(1.1, n)
    table["rounded"] = rng.normal(size=n).round(1)
    table["counts"] = rng.poisson(1.2, n)
    table["zeros"] = np.where(rng.random(n) < 0.7, 0, rng.exponential(size=n))
    table["rare_flag"] = (rng.random(n) < 0.02).astype(int)
    table["gaps"] = np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n))
    table["marks"] = np.where(rng.random(n) < 0.1, "?", rng.integers(0, 90, n).astype(str))
    table["few"] = rng.choice(list("abc"), n)
    table["uneven"] = rng.choice(list("abcdef"), n, p=[0.9, 0.05, 0.02, 0.01, 0.01, 0.01])
    table["many"] = np.char.add("c", np.minimum(rng.zipf(1.6, n), 400).astype(str))
    frame = pd.DataFrame(table)
    risk = frame["normal0"] + 0.7 * np.log(frame["skewed"]) + rng.normal(size=n)
    frame["target"] = risk > 4.35
    return frame


class Source:
    """Rows of a table in random order, none of them twice within a fit."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self.name, self.target = name, "target"
        self._whole = None
        if name != "made":
            assert folder is not None
            path, self.target = REAL[name]
            self._whole = pd.read_parquet(folder / path)

    def draw(self, n: int, n_new: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of a fit, and all of those that batches are drawn from."""
        rng = np.random.default_rng([seed, n])
        if self._whole is None:
            return made(n, rng), made(n_new, rng)
        rows = rng.permutation(len(self._whole))
        parts = rows[:n], rows[n : n + n_new]
        fit, new = (self._whole.iloc[part].reset_index(drop=True) for part in parts)
        return fit, new


def fitted(frame: pd.DataFrame, target: str, seed: int) -> ModelParts:
    table = prepare(frame, target, shuffle=True)
    model = DAMVIClassifier(
        stratified=True, threshold="f1", pos_label=True, random_state=seed, n_jobs=1
    )
    model.fit(table.X, table.y)
    decided, judged = FittedVote(model).training_decisions()
    assert table.profile is not None
    profile = table.profile.with_decisions(decided[judged], 2)
    none = np.zeros(0)
    training = TrainingRows(np.zeros(0, np.uint64), none, none.astype(bool), none, none)
    return ModelParts(model, table.schema, table.target, training, {}, {}, profile)


def run(source: Source, n: int, seed: int, n_batches: int) -> dict[str, Any]:
    """One fit, and what was said of its batches."""
    # Rows of the large batches may come again in others; those of the fit never do.
    frame, new = source.draw(n, 40_000, seed)
    try:
        model = fitted(frame, source.target, seed)
    except ValueError as error:  # next to no positives in 500 rows
        return {"table": source.name, "fit": n, "seed": seed, "refused": str(error)[:80]}
    judge = Judge(model, n_jobs=1)
    rng = np.random.default_rng([seed, n, 1])
    found: dict[str, Any] = {"table": source.name, "fit": n, "seed": seed, "said": {}}
    for size in BATCHES:
        warned, shown, words = 0, 0, []
        for _ in range(n_batches):
            batch = new.iloc[rng.choice(len(new), size, replace=False)]
            batch = batch.reset_index(drop=True)
            rows = Rows(model.schema.encode(batch), batch)
            drift = drift_of(model, judge(rows, lambda judged: None).column_counts)
            assert drift is not None
            warned += bool(drift.warnings)
            shown += any(column.changed for column in drift.columns)
            words += drift.warnings[:1]
        found["said"][str(size)] = [n_batches, warned, shown, words[:3]]
    if source.name == "made" and n == 5000:
        found["shifts"] = shifts(model, seed)
    return found


def shifts(model: ModelParts, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    assert model.profile is not None
    for size in BATCHES:
        for name, change in SHIFTS.items():
            warned = shown = 0
            for k in range(2):
                new = change(made(size, np.random.default_rng([seed, size, k, 2])))
                counts = model.profile.count(model.schema, model.schema.encode(new), new)
                drift = compare(model.schema, model.profile, counts, model.target)
                warned += bool(drift.warnings)
                shown += any(column.changed for column in drift.columns)
            found[f"{name}|{size}"] = [2, warned, shown]
    return found


def summary(lines: list[dict[str, Any]]) -> str:
    total: dict[tuple[Any, ...], Any] = defaultdict(lambda: np.zeros(3, int))
    seen: dict[tuple[str, int], Any] = defaultdict(lambda: np.zeros(3, int))
    fits: dict[tuple[str, int], int] = defaultdict(int)
    refused = sum("refused" in line for line in lines)
    for line in lines:
        if "refused" in line:
            continue
        fits[line["table"], line["fit"]] += 1
        for size, (n, warned, shown, _) in line["said"].items():
            total[line["table"], line["fit"], int(size)] += [n, warned, shown]
        for key, counts in line.get("shifts", {}).items():
            name, size = key.split("|")
            seen[name, int(size)] += counts
    text = ["Unchanged batches in which anything is said, all columns together", ""]
    text.append(
        f"{'table':14}{'fit':>8}{'fits':>6}{'batch':>8}{'batches':>9}{'warned':>9}{'shown':>9}"
    )
    for (table, n, size), (batches, warned, shown) in sorted(total.items()):
        text.append(
            f"{table:14}{n:8,}{fits[table, n]:6}{size:8,}{batches:9,}"
            f"{warned / batches:9.2%}{shown / batches:9.2%}"
        )
    batches, warned, shown = sum(total.values(), np.zeros(3, int))
    text.append(
        f"{'all':36}{batches:9,}{warned / max(batches, 1):9.2%}"
        f"{shown / max(batches, 1):9.2%}"
    )
    if refused:
        text.append(f"{refused} fits of 500 rows were refused: next to no positives.")
    text += ["", "Shifts of one of 20 columns, fits of 5,000 rows: batches that are", ""]
    sizes = "".join(f"{size:>17,}" for size in BATCHES)
    text.append(f"{'':26}{sizes}")
    text.append(f"{'':26}" + f"{'warned':>9}{'shown':>8}" * 3)
    for name in SHIFTS:
        cells = [seen[name, size] for size in BATCHES]
        shares = (f"{w / max(n, 1):9.0%}{s / max(n, 1):8.0%}" for n, w, s in cells)
        text.append(f"{name:26}" + "".join(shares))
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="Folder of the real tables.")
    parser.add_argument("--fits", type=float, default=1.0, help="Share of the fits to do.")
    parser.add_argument("--first-seed", type=int, default=0, help="Of the fits.")
    parser.add_argument("-o", "--out", type=Path, default=Path("results/drift"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / "fits.jsonl"
    lines = (
        [json.loads(line) for line in kept.read_text().splitlines()]
        if kept.exists()
        else []
    )
    done = {(line["table"], line["fit"], line["seed"]) for line in lines}
    names = ["made", *(REAL if chosen.data else ())]
    sources = {name: Source(name, chosen.data) for name in names}
    for n, (n_fits, n_batches) in FITS.items():
        for name, source in sources.items():
            for number in range(max(1, round(n_fits * chosen.fits))):
                seed = chosen.first_seed + number
                if (name, n, seed) in done:
                    continue
                start = time.perf_counter()
                line = run(source, n, seed, n_batches)
                lines.append(line)
                with kept.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(name, n, seed, f"{time.perf_counter() - start:.1f} s", flush=True)
        text = summary(lines)
        (chosen.out / "summary.txt").write_text(text, encoding="utf-8")
    print_setting("scikit-learn", "numpy", "pandas", "scipy")
    print(text)


if __name__ == "__main__":
    main()
