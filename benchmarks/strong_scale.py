"""Strong models on a table beyond memory, beside trees and LightGBM on what fits.

    python benchmarks/strong_scale.py [--rows 10000000] [--folder /tmp/damvi-strong-scale]
        [--only NAME ...] [--same-bits 200000] [--report]

The table is that of ``scale.py`` (30 numbers, 1 % of positives by shifts of ten columns),
with as many positives again that a smooth sum of twenty columns and a product of two tell:
structure that a vote of trees misses. It is written once, as parquet files of 32-bit
floats. Average precision is on 500,000 fresh rows. Each contender runs alone, in a process
of its own, with two threads; seconds include reading the files, and the peak is resident
memory of the process, mapped files included. Cells that are there, in
results/scale_strong/cells, are not run again. ``--same-bits`` fits the same rows in one
process and on a cluster of two workers, and compares all votes. ``--report`` prints the
table of what is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from scale import FEATURES, GROUP_ROWS
from scale import rows_of as shifted_rows

FILE_ROWS, FRESH_ROWS = 2_000_000, 500_000
NAMES = [f"x{f:02d}" for f in range(FEATURES)]
CELLS = Path(__file__).resolve().parents[1] / "results" / "scale_strong" / "cells"
PACKAGES = ("numpy", "numba", "pyarrow", "pandas", "scikit-learn", "lightgbm", "dask")
FITTED_IN_MEMORY = 2_000_000
"""Rows that a user would take for LightGBM where memory is short (0.5 GB as doubles)."""


def rows_of(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, with both kinds of positives."""
    X, y = shifted_rows(number, n)
    rng = np.random.default_rng([8, number])
    slopes = np.random.default_rng(8).normal(size=20)
    slopes /= np.sqrt((slopes**2).sum())
    score = 2.2 * (X[:, 10:30] @ slopes) + 0.9 * X[:, 15] * X[:, 16]
    smooth = rng.random(n) < 1 / (1 + np.exp(7.3 - score))
    return X.astype(np.float32), y | smooth.astype(np.int8)


def generate(folder: Path, n_rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([*((name, pa.float32()) for name in NAMES), ("y", pa.int8())])
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        path = folder / f"part-{number:03d}.parquet"
        if path.exists():
            continue
        part, left = path.with_suffix(".part"), min(FILE_ROWS, n_rows - start)
        with parquet.ParquetWriter(part, schema, compression="none") as writer:
            for group in range(0, left, GROUP_ROWS):
                X, y = rows_of(number * 1000 + group, min(GROUP_ROWS, left - group))
                columns = [*np.ascontiguousarray(X.T), y]
                writer.write_table(pa.table(columns, schema=schema))
        part.rename(path)


def strong(folder: Path, sample_rows: int) -> Any:
    from damvi import DAMVIVotingClassifier, ParquetTable

    model = DAMVIVotingClassifier(n_jobs=2, random_state=0)
    return model.fit(ParquetTable(folder, sample_rows=sample_rows), "y")


def trees(folder: Path, **settings: Any) -> Any:
    from damvi import DAMVIClassifier

    model = DAMVIClassifier(bootstrap="poisson", n_jobs=2, random_state=0, **settings)
    return model.fit(folder, "y")


def lightgbm(folder: Path, n: int | None) -> Any:
    from lightgbm import LGBMClassifier

    files = sorted(folder.glob("*.parquet"))
    files = files if n is None else files[: -(-n // FILE_ROWS)]
    whole = pa.concat_tables(parquet.read_table(file) for file in files)
    whole = whole if n is None else whole.slice(0, n)
    X = np.empty((len(whole), FEATURES), np.float32)
    for f in range(FEATURES):
        X[:, f] = whole.column(f).to_numpy()
    y = whole.column("y").to_numpy()
    del whole
    model = LGBMClassifier(n_jobs=2, random_state=0, verbose=-1)
    return model.fit(pd.DataFrame(X, columns=NAMES, copy=False), y)


CONTENDERS: dict[str, Callable[[Path], Any]] = {
    "strong, sample of 200,000": lambda folder: strong(folder, 200_000),
    "strong, sample of 50,000": lambda folder: strong(folder, 50_000),
    "trees": trees,
    "trees, with a constant": lambda folder: trees(
        folder, fit_intercept=True, shrinkage=0.5, threshold="f1"
    ),
    "LightGBM, 200,000 rows": lambda folder: lightgbm(folder, 200_000),
    "LightGBM, 2,000,000 rows": lambda folder: lightgbm(folder, FITTED_IN_MEMORY),
    "LightGBM, all rows": lambda folder: lightgbm(folder, None),
}


def about() -> dict[str, Any]:
    return {
        "command": " ".join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("damvi", *PACKAGES)},
        },
    }


def run_one(name: str, folder: Path, n_rows: int) -> dict[str, Any]:
    from sklearn.metrics import average_precision_score, f1_score

    if "LightGBM" not in name:  # kernels are compiled before the clock starts
        from damvi import DAMVIClassifier

        X, y = rows_of(1, 5000)
        DAMVIClassifier(n_estimators=2, bootstrap="poisson").fit(X, y)
    cpu, wall = time.process_time(), time.perf_counter()
    model = CONTENDERS[name](folder)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    X, y = rows_of(999_999, FRESH_ROWS)
    fresh = pd.DataFrame(X, columns=NAMES, copy=False)
    start = time.perf_counter()
    if hasattr(model, "vote"):
        vote = model.vote(fresh)
        decided = model.labels_.predict(model.labels_.scores(vote, model.threshold_))
    else:
        vote = model.predict_proba(fresh)[:, 1]
        decided = vote > 0.5
    asked = time.perf_counter() - start
    found = {
        "model": name,
        "rows": n_rows,
        "positives": float(y.mean()),
        "ap": float(average_precision_score(y, vote)),
        "f1": float(f1_score(y, decided)),
        "cpu": cpu,
        "wall": wall,
        "peak_mb": peak,
        "predict_us_a_row": 1e6 * asked / len(y),
    }
    if hasattr(model, "named_estimators_"):
        found["weights"] = dict(
            zip(model.named_estimators_, model.weights_.tolist(), strict=True)
        )
        found["seconds"] = model.seconds_
        found["tuning"] = model.tuning_.as_dict()
    return found


def digest(model: Any) -> dict[str, Any]:
    return {
        "votes": sha256(np.ascontiguousarray(model.votes_.votes)).hexdigest(),
        "vote out of fold": sha256(model.oob_decision_function_).hexdigest(),
        "weights": [float(weight).hex() for weight in model.weights_],
        "threshold": float(model.threshold_).hex(),
    }


def same_bits(folder: Path, n_rows: int) -> dict[str, Any]:
    """One fit in this process, and two on a cluster of two workers, cut otherwise."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from damvi import DAMVIVotingClassifier
    from damvi.distributed import fit

    found, seconds = {}, {}
    start = time.perf_counter()
    found["one process"] = digest(strong(folder, 20_000))
    seconds["one process"] = time.perf_counter() - start
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        table = dd.read_parquet(folder, split_row_groups=True).persist()
        for n_parts in (2, 7):
            name, start = f"two workers, {n_parts} partitions", time.perf_counter()
            model = DAMVIVotingClassifier(n_jobs=2, random_state=0)
            parts = table.repartition(npartitions=n_parts)
            fit(model, parts, "y", client=client, sample_rows=20_000)
            found[name] = digest(model)
            seconds[name] = time.perf_counter() - start
    first = found["one process"]
    same = all(other == first for other in found.values())
    return {"rows": n_rows, "same": same, "digests": found, "seconds": seconds}


def cell_path(name: str, n_rows: int) -> Path:
    words = name.replace(",", "").replace(" ", "-").lower()
    return CELLS / f"{n_rows}-{words}.json"


def report() -> None:
    cells = [json.loads(path.read_text()) for path in sorted(CELLS.glob("*.json"))]
    for n_rows in sorted({cell["rows"] for cell in cells}):
        some = [cell for cell in cells if cell["rows"] == n_rows and "ap" in cell]
        if some:
            print(f"{n_rows:,} rows, {some[0]['positives']:.2%} positives")
            print(f"{'':28}     AP     F1    CPU s   wall s  peak MB  predict µs")
        order = [*CONTENDERS]
        for cell in sorted(some, key=lambda cell: order.index(cell["model"])):
            print(
                f"{cell['model']:28} {cell['ap']:6.4f} {cell['f1']:6.4f} "
                f"{cell['cpu']:8.1f} {cell['wall']:8.1f} {cell['peak_mb']:8.0f} "
                f"{cell['predict_us_a_row']:11.2f}"
            )
        for cell in cells:
            if cell["rows"] == n_rows and "same" in cell:
                words = "the same bits" if cell["same"] else "OTHER BITS"
                print(f"{n_rows:,} rows in {', '.join(cell['digests'])}: {words}")
        print()
    if cells:
        told = cells[0]["versions"]
        print(", ".join(f"{name} {number}" for name, number in told.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/damvi-strong-scale"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="*", choices=[*CONTENDERS], default=[*CONTENDERS])
    parser.add_argument("--same-bits", type=int, metavar="ROWS")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        report()
        return 0
    n_rows = args.same_bits or args.rows
    folder = args.folder / str(n_rows)
    if args.one:
        found = (
            same_bits(folder, n_rows)
            if args.same_bits
            else run_one(args.one, folder, n_rows)
        )
        print(json.dumps(found))
        return 0
    generate(folder, n_rows)
    CELLS.mkdir(parents=True, exist_ok=True)
    for name in ["same bits"] if args.same_bits else args.only:
        path = cell_path(name, n_rows)
        if path.exists():
            continue
        command = [sys.executable, *sys.argv, "--one", name]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        cell = {**json.loads(output.stdout.splitlines()[-1]), **about()}
        path.write_text(json.dumps(cell, indent=1) + "\n")
        print(f"{name}: {cell.get('ap', cell.get('same'))}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
