"""Cost against size: the fit of DAMVI on 10⁴ to 10⁷ generated rows of 30 features.

    python benchmarks/scaling.py [--largest 10000000]

Each size runs in a process of its own. The peak is resident memory above that of the
process with the table loaded; the votes (one byte a row and voter) are taken off, and the
rest is given in bytes a cell. Time is CPU, over n log n, relative to the best of the sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

FEATURES, VOTERS = 30, 100


def table(n: int):
    """A rare class (1 %) in 30 correlated features, some of them noise."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.01).astype(np.int8)
    X = np.empty((n, FEATURES))
    for start in range(0, n, 100_000):  # no temporary as large as the table
        rows = slice(start, min(start + 100_000, n))
        size = rows.stop - rows.start
        X[rows] = rng.normal(size=(size, FEATURES))
        X[rows, :10] += y[rows, np.newaxis] * rng.exponential(1.0, size=(size, 10))
        X[rows, 10:15] = X[rows, :5] + 0.5 * X[rows, 10:15]
    return X, y


def run_one(n: int) -> dict[str, float]:
    from damvi import DAMVIClassifier

    X, y = table(n)
    DAMVIClassifier(n_estimators=2, n_jobs=2, random_state=0).fit(X[:2000], y[:2000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    DAMVIClassifier(n_estimators=VOTERS, n_jobs=2, random_state=0).fit(X, y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"n": n, "cpu": cpu, "wall": wall, "peak": peak}


def main() -> int:
    from setting import print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one)))
        return 0
    print_setting("scikit-learn", "numba", "numpy")
    print(
        "      rows    CPU s   wall s  CPU/(n log n)   peak MB  bytes a cell, votes aside"
    )
    cells = []
    sizes = [n for n in (10**4, 10**5, 10**6, 10**7) if n <= args.largest]
    for n in sizes:
        command = [sys.executable, __file__, "--one", str(n)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cell = json.loads(output)
        cells.append(cell)
        best = min(c["cpu"] / (c["n"] * math.log(c["n"])) for c in cells)
        growth = cell["cpu"] / (n * math.log(n)) / best
        per_cell = (cell["peak"] - n * VOTERS) / (n * FEATURES)
        print(
            f"{n:10,d} {cell['cpu']:8.2f} {cell['wall']:8.2f} {growth:14.2f} "
            f"{cell['peak'] / 1e6:9.0f} {per_cell:8.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
