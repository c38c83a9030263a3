"""What memory does ONNX Runtime take for many rows of a strong pool at once?

    python benchmarks/onnx_memory.py [--rows 1000 10000 100000]

The strong pool of ``latency.py`` (20 numbers, two categories, a date, 20,000 rows to train
on), exported. Each number of rows is decided in a process of its own, all three outputs, on
two threads; the peak is resident memory of the process, and the rest what it has before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from latency import payments
from setting import print_setting


def peak() -> float:
    """Peak of resident memory so far, in MB; not that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def decide(graph: Path, feed: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(graph, options)
    with np.load(feed, allow_pickle=True) as file:
        inputs = dict(file)
    before = peak()
    session.run(None, inputs)
    print(f"{before:10.0f}{peak():10.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--one", type=Path, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        decide(*args.one)
        return
    import damvi
    from damvi.io import export_onnx

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/service"))
    from onnx_reader import Reader

    print_setting("numpy", "scikit-learn", "lightgbm", "onnxruntime")
    table = payments()
    model = damvi.fit(table, "fraud", shuffle=True, n_jobs=2, random_state=0)
    with tempfile.TemporaryDirectory() as name:
        graph, feed = Path(name, "model.onnx"), Path(name, "feed.npz")
        export_onnx(model, graph)
        rows = table.drop(columns="fraud").to_dict(orient="records")
        inputs = Reader(str(graph)).inputs(rows)
        print(f"{'rows':>10}{'before MB':>10}{'peak MB':>10}")
        for n in args.rows:
            picked = np.resize(np.arange(len(rows)), n)
            np.savez(feed, **{name: values[picked] for name, values in inputs.items()})
            print(f"{n:>10,}", end="", flush=True)
            command = [sys.executable, __file__, "--one", str(graph), str(feed)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
