"""How long does an answer take? 1, 100 and 10,000 rows: damvi, ONNX Runtime, LightGBM.

    python benchmarks/latency.py > results/latency/latency.txt

A table of 20,000 rows with 20 numbers, two categories and a date, 5 % positives; models of
the strong pool and of trees, fitted, saved and loaded. One row is a dictionary of raw
values. "encoded" is without the reading of raw values, "raw" with it; ONNX is given tensors
that are ready, and by the reader of examples/service raw rows. LightGBM alone gets an array
of numbers. One thread for everybody (OMP_NUM_THREADS is set to 1); p50 and p99 in
milliseconds, of the best of three rounds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
CALLS = {1: 1000, 100: 100, 10_000: 7}
ROUNDS = 3


def payments(n: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {f"x{k}": rng.normal(size=n).round(4) for k in range(20)}
    columns["x3"] = np.where(rng.random(n) < 0.1, np.nan, columns["x3"])
    table = pd.DataFrame(columns)
    table["shop"] = rng.choice(list("abcdefgh"), n)
    table["kind"] = rng.choice([f"k{k}" for k in range(40)], n)
    minutes = pd.to_timedelta(rng.integers(0, 900 * 24 * 60, n), unit="min")
    table["when"] = (pd.Timestamp("2022-01-01") + minutes).strftime("%Y-%m-%d %H:%M")
    score = table["x0"] * 1.2 + table["x1"] * table["x2"] + 1.5 * (table["shop"] == "a")
    score += table["kind"].isin(["k1", "k7"]) + rng.normal(size=n)
    table["fraud"] = np.where(score > np.quantile(score, 0.95), "yes", "no")
    return table


def timed(call, n: int) -> tuple[float, float]:
    """Milliseconds: median and 99th percentile, of the best of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        call()
        seconds = []
        for _ in range(n):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        rounds.append((np.median(seconds) * 1e3, np.quantile(seconds, 0.99) * 1e3))
    return min(rounds)


def show(what: str, n: int, call) -> None:
    p50, p99 = timed(call, CALLS[n])
    print(f"{what:<44}{n:>7,}{p50:>11.3f}{p99:>11.3f}", flush=True)


def measure(pool: str, table: pd.DataFrame, folder: Path) -> None:
    import onnxruntime
    from onnx_reader import Reader

    import damvi
    from damvi.io import export_onnx
    from damvi.model.row import RowPredictor

    path, graph = folder / f"{pool}.damvi", folder / f"{pool}.onnx"
    model = damvi.fit(table, "fraud", pool=pool, shuffle=True, n_jobs=2, random_state=0)
    model.save(path)
    export_onnx(model, graph)
    weights, voters = model.classifier.weights_, model.classifier.voters_
    names = getattr(voters, "names", ())
    told = ", ".join(f"{name} {w:.2f}" for name, w in zip(names, weights, strict=False))
    print(f"\n{pool}: {np.count_nonzero(weights)} voters with weight {told}")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        model = damvi.load(path)
        seconds.append(time.perf_counter() - start)
    raw = table.drop(columns="fraud")
    rows = json.loads(raw.iloc[:100].to_json(orient="records"))
    start = time.perf_counter()
    model.predict_row(rows[0])
    first = time.perf_counter() - start
    print(f"loading {min(seconds):.3f} s; the first row after it {first:.3f} s")
    print(f"{'ms':<44}{'rows':>7}{'p50':>11}{'p99':>11}")
    ask = RowPredictor(model)
    cells = ask.encode(rows[0])
    show("damvi, predict_row, raw", 1, lambda: model.predict_row(rows[0]))
    show("damvi, predict_row, encoded", 1, lambda: ask.of_cells(cells, rows[0]))
    show("damvi, predict of a table of one row", 1, lambda: model.predict(raw.iloc[:1]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options)
    read = Reader(str(graph))
    inputs = read.inputs(json.loads(raw.iloc[:10_000].to_json(orient="records")))
    show("ONNX, raw, by the reader", 1, lambda: read(rows[:1]))
    for n in CALLS:
        feed = {name: values[:n] for name, values in inputs.items()}
        if n == 100:
            show(
                "damvi, predict_row, one by one", n, lambda: [*map(model.predict_row, rows)]
            )
        if n > 1:
            show("damvi, predict, raw", n, partial(model.predict, raw.iloc[:n], n_jobs=1))
        show("ONNX, encoded", n, partial(session.run, ["label"], feed))


def measure_lightgbm(table: pd.DataFrame) -> None:
    from lightgbm import LGBMClassifier

    from damvi.tables import Schema
    from damvi.voters import NumberEncoder

    X = Schema.infer(table, "fraud").encode(table)
    numbers = NumberEncoder().fit_transform(X)
    alone = LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, random_state=0)
    alone.fit(numbers, table["fraud"] == "yes")
    print("\nLightGBM alone, 200 trees of 31 leaves, encoded")
    print(f"{'ms':<44}{'rows':>7}{'p50':>11}{'p99':>11}")
    for n in CALLS:
        show("LightGBM, predict_proba", n, partial(alone.predict_proba, numbers[:n]))


def main() -> int:
    from setting import print_setting

    if os.environ.get("OMP_NUM_THREADS") != "1":  # read when libraries are imported
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        os.execve(sys.executable, sys.orig_argv, os.environ | one)
    sys.path.insert(0, str(ROOT / "examples/service"))
    warnings.simplefilter("ignore")  # of drift
    print_setting("numpy", "pandas", "scikit-learn", "numba", "lightgbm", "onnxruntime")
    model = "an unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
    load = os.getloadavg()
    print(f"{model}, {os.cpu_count()} cores; load average before: {load[0]:.2f}")
    table = payments()
    with tempfile.TemporaryDirectory() as name:
        for pool in ("strong", "trees"):
            measure(pool, table, Path(name))
    measure_lightgbm(table)
    print(f"\nload average after: {os.getloadavg()[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
