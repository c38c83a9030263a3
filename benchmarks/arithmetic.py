"""The arithmetic of docs/scale.md, checked: bytes moved and kept by a fit on a cluster.

    python benchmarks/arithmetic.py [--rows 1000000] [--voters 20] [--partitions 8]

A generated table of 30 numbers (1 % of positives) is fitted on a Dask cluster of two worker
processes on this machine. What workers received from each other and what the codes take is
measured, and put beside what the formulas of the page say. Then the CPU of a fit from disk
by one thread, on twice the rows, by what it is for: votes and moments are what ``reweigh``
does again, reading and coding what a fit of one voter takes beside them, growth the rest.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
from scale import FEATURES, generate, rows_of

SAMPLE_ROWS = 2**16
SHARE, RATE = 0.2, 0.01


def formulas(
    n: int, d: int, K: int, P: int, W: int, share: float = SHARE
) -> dict[str, float]:
    """What the page says, in bytes: what is moved between W workers, and what is kept."""
    drawn = n * (1 - math.exp(-share))  # different rows of a voter's sample
    elsewhere = (W - 1) / W
    # Of each class, in a partition, as many as there are.
    sampled = sum(min(SAMPLE_ROWS // 2, n / P * rate) for rate in (RATE, 1 - RATE))
    return {
        "codes, kept": n * d,
        "sketches, moved": (P - 1) * sampled * (8 * d + 8),
        "samples, moved": K * drawn * (d + 2) * elsewhere,
    }


def received(dask_worker: Any) -> dict[str, int]:
    """Bytes that came from other workers, by step."""
    steps: dict[str, int] = {}
    for entry in dask_worker.transfer_incoming_log:
        for key, size in entry["keys"].items():
            step = str(key).split("-")[1] if str(key).startswith("damvi-") else "other"
            steps[step] = steps.get(step, 0) + int(size)
    return steps


def codes_kept(dask_worker: Any) -> int:
    blocks = [block for key, block in dask_worker.data.items() if "codes" in str(key)]
    return sum(block.codes.nbytes for block in blocks)


def cpu_of(n: int, K: int) -> dict[str, float]:
    """Nanoseconds: a cell read, binned and coded; a row of a sample grown on; a vote."""
    from damvi import DAMVIClassifier

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as few:
        generate(Path(few), 2000)
        DAMVIClassifier(n_estimators=2, random_state=0).fit(few, "y")  # loads the kernels
        generate(Path(folder), n)
        seconds = {}
        for voters in (1, K):
            model = DAMVIClassifier(n_estimators=voters, random_state=0)
            start = time.process_time()
            model.fit(folder, "y")
            fitted = time.process_time()
            model.reweigh(reweight=0.5)
            seconds[voters] = fitted - start, time.process_time() - fitted
    (fit_one, vote_one), (fit_all, vote_all) = seconds[1], seconds[K]
    reading, drawn = fit_one - vote_one, n * (1 - math.exp(-SHARE))
    return {
        "a cell read twice, binned and coded": 1e9 * reading / (n * FEATURES),
        "a row of a sample grown on": 1e9 * (fit_all - vote_all - reading) / (K * drawn),
        "a vote and its part of the moments": 1e9 * vote_all / (n * K),
    }


def main() -> int:
    from distributed import Client
    from setting import print_setting

    from damvi import DAMVIClassifier
    from damvi.distributed import fit

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--voters", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=8)
    args = parser.parse_args()
    print_setting("dask", "distributed", "numpy")
    import dask.array as da

    size = args.rows // args.partitions
    parts = [dask.delayed(rows_of, nout=2)(k, size) for k in range(args.partitions)]
    X = da.concatenate([da.from_delayed(X, (size, FEATURES), float) for X, _ in parts])
    y = da.concatenate([da.from_delayed(y, (size,), np.int8) for _, y in parts])
    with Client(n_workers=2, threads_per_worker=1) as client:
        model = DAMVIClassifier(n_estimators=args.voters, random_state=0)
        start = time.perf_counter()
        fit(model, X, y, client=client)
        wall = time.perf_counter() - start
        moved = [*client.run(received).values()]
        kept = sum(client.run(codes_kept).values())
    measured = {
        "codes, kept": kept,
        "sketches, moved": sum(w.get("sketch", 0) + w.get("merge", 0) for w in moved),
        "samples, moved": sum(w.get("samples", 0) for w in moved),
    }
    said = formulas(args.rows, FEATURES, args.voters, args.partitions, 2)
    print(f"{args.rows:,} rows of {FEATURES}, {args.voters} voters, {wall:.0f} s of wall\n")
    print(f"{'':20} {'formula MB':>11} {'measured MB':>12} {'ratio':>6}")
    for name, bytes_said in said.items():
        ratio = measured[name] / bytes_said
        print(
            f"{name:20} {bytes_said / 1e6:11.1f} {measured[name] / 1e6:12.1f} {ratio:6.2f}"
        )
    nodes = len(model.voters_.forest.nodes) / args.voters
    size = sum(
        getattr(model.voters_.forest, name).nbytes for name in ("nodes", "weights", "rows")
    )
    print(f"\na tree: {nodes:,.0f} nodes, {size / args.voters / 1e6:.2f} MB")
    print()
    for what, cost in cpu_of(2 * args.rows, args.voters).items():
        print(f"{what:40} {cost:8.1f} ns of CPU")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
