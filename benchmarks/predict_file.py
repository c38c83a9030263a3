"""``damvi predict`` on a file of millions of rows, against pandas only reading it.

    python benchmarks/predict_file.py [--rows 5000000] [--table payments] [--pool trees]

A model is fitted on a small table of the same kind. Then the command judges the large
file, in a process of its own, and in another ``pandas.read_csv`` reads it by default. Wall
time, CPU time and peak memory of each; the ratio is damvi's to that of pandas.

``cards`` is thirty numbers in full precision, as in Credit Fraud.
``payments`` is what a database gives: an id, a time, two texts, a category, and ten amounts
in full precision. ``narrow`` is eight short numbers and a category, the easiest to read.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

import damvi

BLOCK = 250_000


def narrow(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Eight short numbers and a category; 5 % positives that they tell apart in part."""
    values = rng.normal(size=(n, 8)).round(6)
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(8)])
    frame.loc[rng.random(n) < 0.05, "x7"] = np.nan
    frame["shop"] = rng.choice(["north", "south", "east", "west"], n)
    score = values[:, 0] + 0.7 * values[:, 1] * values[:, 2] + 0.5 * rng.normal(size=n)
    frame["is_fraud"] = (score > 2.2).astype(int)
    return frame


def payments(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Payments as a database gives them, with the same 5 % of fraud."""
    values = rng.normal(size=(n, 10))
    seconds = rng.integers(1_600_000_000, 1_700_000_000, n)
    numbers = rng.integers(0, 2**63, n)
    frame = pd.DataFrame(
        {
            "payment_id": [f"{i:032x}" for i in numbers],
            "time": seconds.astype("datetime64[s]"),
            "customer": [f"customer.{number % 10**6}@example.org" for number in numbers],
            "purpose": [
                f"order {number % 10**9} of {number % 97} items" for number in numbers
            ],
            "shop": np.char.add("shop ", rng.integers(0, 40, n).astype(str)),
        }
    )
    for j in range(10):
        frame[f"amount_{j}"] = np.exp(values[:, j])
    score = values[:, 0] + 0.7 * values[:, 1] * values[:, 2] + 0.5 * rng.normal(size=n)
    frame["is_fraud"] = (score > 2.2).astype(int)
    return frame


def cards(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Thirty numbers in full precision, as in Credit Fraud."""
    values = rng.normal(size=(n, 30))
    frame = pd.DataFrame(values, columns=[f"v{j}" for j in range(30)])
    score = values[:, 0] + 0.7 * values[:, 1] * values[:, 2] + 0.5 * rng.normal(size=n)
    frame["is_fraud"] = (score > 2.2).astype(int)
    return frame


TABLES = {"cards": cards, "narrow": narrow, "payments": payments}


def generate(path: Path, table: str, n: int, seed: int) -> None:
    """Write the table block by block, so that this process stays small."""
    rng = np.random.default_rng(seed)
    writer = None
    for start in range(0, n, BLOCK):
        frame = TABLES[table](rng, min(BLOCK, n - start))
        rows = pa.Table.from_pandas(frame, preserve_index=False)
        writer = writer or csv.CSVWriter(path, rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()


def run(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak memory in MB of a command."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--table", default="payments", choices=list(TABLES))
    parser.add_argument("--pool", default="trees", choices=["trees", "strong"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    lines = [
        f"python benchmarks/predict_file.py --rows {chosen.rows} --table {chosen.table} "
        f"--pool {chosen.pool} --repeat {chosen.repeat}",
        f"damvi {damvi.__version__}, Python {platform.python_version()}, "
        f"pandas {pd.__version__}, pyarrow {pa.__version__}, {os.cpu_count()} cores",
    ]
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        model, out = Path(folder) / "model.damvi", Path(folder) / "out.csv"
        generate(small, chosen.table, 20_000, seed=0)
        generate(large, chosen.table, chosen.rows, seed=1)
        size = large.stat().st_size / 1e6
        lines.append(f"{chosen.rows:,} rows, {size:,.0f} MB of CSV\n")
        tool = [sys.executable, "-m", "damvi"]
        fit = [*tool, "fit", str(small), "--target", "is_fraud", "--pool", chosen.pool]
        run([*fit, "-o", str(model), "--quiet"])
        predict = [*tool, "predict", str(model), "-o", str(out)]
        run([*predict, str(small)])  # compiles the kernels, once on a machine
        read = [sys.executable, "-c", f"import pandas; pandas.read_csv({str(large)!r})"]
        lines.append(f"{'':24}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}")
        commands = {"pandas reads": read, "damvi predict": [*predict, str(large)]}
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for _ in range(chosen.repeat):  # in turn, so that both meet the same machine
            for name, command in commands.items():
                runs[name].append(run(command))
        best = {}
        for name in commands:
            figures = np.array(runs[name])
            # The machine is shared: the least of several is the command's own.
            best[name] = np.array([*figures[:, :2].min(axis=0), figures[:, 2].max()])
            lines.append(f"{name:24}" + "".join(f"{x:9.1f}" for x in best[name]))
        ratio = best["damvi predict"] / best["pandas reads"]
        lines.append(f"{'ratio':24}" + "".join(f"{x:9.2f}" for x in ratio))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
