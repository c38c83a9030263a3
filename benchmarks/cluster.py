"""What a cluster costs: CPU of a fit by Dask on this machine, beside the fit in memory.

    python benchmarks/cluster.py [--data FOLDER]   # some minutes

Credit Fraud repeated five times, 1.4 million rows, as a parquet file of 14 row groups. One
process reads it with pandas and fits with one thread; the other starts a Dask cluster of
two worker processes with a thread each, reads it into their memory, and fits there. CPU is
that of all processes (client and scheduler, workers), from their start to their end:
imports and the start of the cluster included, compilation not. Pairs are interleaved; the
median of the ratios counts, and the exit status tells whether it is at most 2. That both
have found the same weights is checked too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setting import add_data_option, print_setting

ALLOWED = 2.0
TIMES, GROUPS, PAIRS = 5, 14, 3
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--one", choices=["local", "dask"], help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps((fit_locally if args.one == "local" else fit_by_dask)(args.file)))
        return 0
    print_setting("dask", "distributed", "numpy", "pandas", "pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        return compare(write(args.data, Path(folder)))


def compare(file: Path) -> int:
    ratios = []
    for kind in ("local", "dask"):  # kernels are compiled before anything is measured
        run(kind, file)
    print(f"{'':6}{'CPU':>8}{'of it, fit':>12}{'wall':>8}{'ratio':>8}")
    for _ in range(PAIRS):
        seconds, weights = {}, {}
        for kind in ("local", "dask"):
            seconds[kind], said, wall = run(kind, file)
            weights[kind] = said["weights"]
            ratio = f"{seconds[kind] / seconds['local']:8.2f}" if kind == "dask" else ""
            line = (
                f"{kind:6}{seconds[kind]:6.1f} s{said['fit']:10.1f} s{wall:6.1f} s{ratio}"
            )
            print(line, flush=True)
        if weights["local"] != weights["dask"]:
            raise AssertionError("the cluster has found other weights")
        ratios.append(seconds["dask"] / seconds["local"])
    median = statistics.median(ratios)
    verdict = "at most" if median <= ALLOWED else "MORE THAN"
    print(f"\nThe weights are the same. Median ratio {median:.2f}, {verdict} {ALLOWED:g}.")
    return int(median > ALLOWED)


def run(kind: str, file: Path) -> tuple[float, dict[str, object], float]:
    """CPU of a process and all that it started, what it said, and wall time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, __file__, "--one", kind, "--file", str(file), "--data", "."]
    ran = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env=os.environ | ONE_THREAD
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, json.loads(ran.stdout), time.perf_counter() - start


def write(data: Path, folder: Path) -> Path:
    import pandas as pd

    frame = pd.read_parquet(data / "paper" / "credit_fraud.parquet")
    frame = pd.concat([frame] * TIMES, ignore_index=True)
    target = frame.columns[-1]
    print(f"{len(frame):,} rows, {len(frame.columns) - 1} columns, 100 voters\n")
    file = folder / "rows.parquet"
    frame = frame.rename(columns={target: "target"})
    frame.to_parquet(file, row_group_size=-(-len(frame) // GROUPS))
    return file


def fit_locally(file: str) -> dict[str, object]:
    import pandas as pd

    from damvi import DAMVIClassifier

    frame = pd.read_parquet(file)
    start = cpu_now()
    model = DAMVIClassifier(bootstrap="poisson", random_state=0, n_jobs=1)
    model.fit(frame.drop(columns="target"), frame["target"])
    return {"fit": cpu_now() - start, "weights": model.weights_.tolist()}


def fit_by_dask(file: str) -> dict[str, object]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from damvi import DAMVIClassifier
    from damvi.distributed import fit

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        start = cpu_now()
        frame = dd.read_parquet(file, split_row_groups=True).persist()
        model = DAMVIClassifier(bootstrap="poisson", random_state=0)
        fit(model, frame, "target", client=client)
        return {"fit": cpu_now() - start, "weights": model.weights_.tolist()}


def cpu_now() -> float:
    """Of this process and those that it has started, in seconds."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(t.user + t.system for t in times)


if __name__ == "__main__":
    sys.exit(main())
