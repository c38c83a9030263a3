"""A fit out of core on 50 million rows, against a fit in memory on 5 million.

    python benchmarks/scale.py [--folder /tmp/damvi-scale] [--rows 50000000]
        [--in-memory 5000000] [--voters 100] [--keep]

The table (30 numbers, 1 % of positives) is generated once, as parquet files of 5 million
rows. Each fit runs in a process of its own, with two threads. The cost in memory is that of
the fit alone, on an array that is there already; out of core it includes reading the files.
The peak is resident memory of the whole process, mapped files included.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

FEATURES = 30
FILE_ROWS, GROUP_ROWS = 5_000_000, 250_000


def rows_of(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows: a rare class in 30 correlated features, some of them noise."""
    rng = np.random.default_rng([7, number])
    y = (rng.random(n) < 0.01).astype(np.int8)
    X = rng.normal(size=(n, FEATURES))
    X[:, :10] += y[:, np.newaxis] * rng.exponential(1.0, size=(n, 10))
    X[:, 10:15] = X[:, :5] + 0.5 * X[:, 10:15]
    return X, y


def generate(folder: Path, n_rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{f:02d}" for f in range(FEATURES)]
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        path = folder / f"part-{number:03d}.parquet"
        if path.exists():
            continue
        part, left = path.with_suffix(".part"), min(FILE_ROWS, n_rows - start)
        schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int8())])
        with parquet.ParquetWriter(part, schema, compression="none") as writer:
            for group in range(0, left, GROUP_ROWS):
                X, y = rows_of(number * 1000 + group, min(GROUP_ROWS, left - group))
                columns = [*np.ascontiguousarray(X.T), y]
                writer.write_table(pa.table(columns, schema=schema))
        part.rename(path)


def fit_one(kind: str, folder: Path, n: int, voters: int) -> dict[str, float]:
    from damvi import DAMVIClassifier

    settings = {"n_estimators": voters, "bootstrap": "poisson", "n_jobs": 2}
    model = DAMVIClassifier(**settings, random_state=0)
    files = sorted(folder.glob("*.parquet"))
    X, y = rows_of(1, 3000)
    DAMVIClassifier(n_estimators=2, bootstrap="poisson", random_state=0).fit(X, y)
    if kind == "memory":
        tables = [parquet.read_table(file) for file in files[: -(-n // FILE_ROWS)]]
        whole = pa.concat_tables(tables).slice(0, n)
        y = whole.column("y").to_numpy()
        X = np.empty((n, FEATURES))
        for f in range(FEATURES):
            X[:, f] = whole.column(f).to_numpy()
        del tables, whole
    cpu, wall = time.process_time(), time.perf_counter()
    if kind == "memory":
        model.fit(X, y)
    else:
        model.fit(folder, "y")
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    X, y = rows_of(999_999, 100_000)
    if kind == "disk":
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    recall = float((model.predict(X) == 1)[y == 1].mean())
    return {"cpu": cpu, "wall": wall, "peak": peak, "recall": recall}


def main() -> int:
    from setting import print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/damvi-scale"))
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--in-memory", type=int, default=5_000_000)
    parser.add_argument("--voters", type=int, default=100)
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = args.folder / str(args.rows)
    if args.one:
        n = args.in_memory if args.one == "memory" else args.rows
        print(json.dumps(fit_one(args.one, folder, n, args.voters)))
        return 0
    print_setting("numpy", "numba", "pyarrow")
    generate(folder, args.rows)
    print("                  rows    CPU s   wall s  CPU µs a row  peak MB  recall")
    cost = {}
    for kind, n in (("memory", args.in_memory), ("disk", args.rows)):
        command = [sys.executable, *sys.argv, "--one", kind]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        cell = json.loads(output.stdout)
        cost[kind] = cell["cpu"] / n
        print(
            f"{kind:<10} {n:>11,} {cell['cpu']:8.1f} {cell['wall']:8.1f} "
            f"{1e6 * cost[kind]:13.2f} {cell['peak']:8.0f} {cell['recall']:7.3f}",
            flush=True,
        )
    print(f"\ncost of a row on disk to one in memory: {cost['disk'] / cost['memory']:.2f}")
    if not args.keep:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
