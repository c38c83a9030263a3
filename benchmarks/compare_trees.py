"""Is one checkout slower than another? CPU seconds of both, side by side in one run.

    python benchmarks/compare_trees.py BEFORE [AFTER] [--data FOLDER] [--quick]
        [--parts NAME ...] [--rounds N]          # six to eight minutes

Each checkout has a process of its own, which imports its src and waits. They take turns, a
measurement each, in alternating order, so that both meet the same machine; the least of
several rounds counts. The parts are those of the scripts of the same name, with as many
threads as these take, and the fit of the strong pool on two datasets. Kernels are compiled
and loaded before anything is measured. The exit status tells whether all figures of AFTER,
this checkout by default, are at most a tenth above those of BEFORE. ``--quick`` takes toy
sizes, to see that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
ALLOWED = 1.1
POOL_ROWS = 5000
Figures = dict[str, Callable[[], float]]


def cpu(work: Callable[[], Any], times: int = 1) -> float:
    """CPU seconds of one call, all threads of this process."""
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


# How the parts of either checkout are called: before the pool became an estimator of its
# own, and after.


def pooled(estimators: Any, **settings: Any) -> Any:
    import damvi

    voting_classifier = getattr(damvi, "DAMVIVotingClassifier", None)
    if voting_classifier is not None:
        return voting_classifier(estimators, **settings)
    if settings.pop("cv", None) == "prefit":
        settings["votes"] = "prefit"
    return damvi.DAMVIClassifier(estimators, **settings)


def train_trees(X: Any, y: Any, n_classes: int) -> Any:
    """The voters alone: bins, samples, growth, and their votes on the training rows."""
    from damvi import voters

    has_name = find_spec("damvi.voters.trees.estimators") is not None
    trees = import_module(f"damvi.voters.trees.{'estimators' if has_name else 'voters'}")
    sampling_of = getattr(voters, "BootstrapSampling", None) or voters.Draws
    sampling = sampling_of.plan(y, max_samples=0.2, seed=0)
    trained, _ = trees.TreeVoters.train(
        voters.FastTreeClassifier(),
        X,
        y,
        sampling,
        100,
        n_classes=n_classes,
        n_jobs=2,
    )
    return trained


def voters_of(model: Any) -> Any:
    return model.voters_ if hasattr(model, "voters_") else model._voters


# The parts: each prepares its figures, and a figure is measured once a call.


def voters(data: Path, quick: bool, _: ExitStack) -> Figures:
    """100 trees, and the whole fit, as in voters.py."""
    from damvi import DAMVIClassifier
    from voters import DATASETS, load

    figures: Figures = {}
    for name in ["mammography"] if quick else DATASETS:
        X, _, y, _ = load(name, data)
        model = DAMVIClassifier(n_jobs=2, random_state=0)
        figures[f"{name}, trees"] = lambda X=X, y=y: cpu(lambda: train_trees(X, y, 2))
        figures[f"{name}, fit"] = lambda m=model, X=X, y=y: cpu(lambda: m.fit(X, y))
    return figures


def predict(data: Path, quick: bool, _: ExitStack) -> Figures:
    """All trees with a weight, those of the model, and a single row, as in predict.py."""
    from damvi import DAMVIClassifier
    from voters import load

    figures: Figures = {}
    every = np.full(100, 2.0**-10)
    for name in ["mammography"] if quick else ["credit_fraud", "protein_homo"]:
        X, X_test, y, _ = load(name, data)
        rows = np.ascontiguousarray(X_test, dtype=np.float64)
        model = DAMVIClassifier(n_jobs=2, random_state=0).fit(X, y)
        calls = {
            "all trees": (lambda m=model, X=rows: voters_of(m).weighted_vote(X, every, 2)),
            "predict_proba": lambda m=model, X=rows: m.predict_proba(X),
            "predict": lambda m=model, X=rows: m.predict(X),
            "one row": lambda m=model, X=rows[:1]: m.vote(X),
        }
        for what, call in calls.items():
            times = 200 if what == "one row" else 5
            figures[f"{name}, {what}"] = lambda c=call, n=times: cpu(c, n)
    return figures


def multiclass_voters(_: Path, quick: bool, __: ExitStack) -> Figures:
    """Ten classes, as in multiclass_voters.py."""
    import multiclass_voters as original

    from damvi.voters import FastForestClassifier

    if quick:
        original.ROWS, original.TEST_ROWS = 4000, 1000
    X, X_test, y, _ = original.generate()
    C, even = original.CLASSES, np.full(100, 1 / 100)
    forest = FastForestClassifier(
        max_features=None, max_samples=0.2, n_estimators=100, n_jobs=2, random_state=0
    )
    trees = train_trees(X, y, C)
    return {
        "trees": lambda: cpu(lambda: train_trees(X, y, C)),
        "forest": lambda: cpu(lambda: forest.fit(X, y)),
        "vote": lambda: cpu(lambda: trees.weighted_vote(X_test, even, 2), 3),
    }


def reweigh(_: Path, quick: bool, __: ExitStack) -> Figures:
    """Other settings after a fit, as in reweigh.py."""
    from reweigh import CHANGES, soft_voters
    from sklearn.datasets import make_classification

    from damvi import DAMVIClassifier

    rows, n_voters = (6000, 20) if quick else (200_000, 100)
    X, y = make_classification(
        rows, 20, n_informative=8, weights=[0.99], flip_y=0.005, random_state=0
    )
    pool = soft_voters(X, y, n_voters, np.random.default_rng(0))
    common: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
    models = {
        "hard": DAMVIClassifier(n_estimators=n_voters, **common),
        "hard, out of bag": DAMVIClassifier(n_estimators=n_voters, votes="oob", **common),
        "soft": pooled(pool, cv="prefit", **common),
    }
    repeat = count()

    def measure(model: Any, changes: list[dict[str, Any]]) -> float:
        seconds = []
        start: dict[str, Any] = {"reweight": 0.3, "threshold": "vote"}
        if has_intercept := hasattr(model, "fit_intercept"):
            start["fit_intercept"] = False
        for settings in changes:
            # Other weights each time, so that no vote is known from before.
            shrinkage = 0.2 + next(repeat) % 500 / 1000
            model.reweigh(**start, shrinkage=shrinkage)
            if "fit_intercept" in settings and not has_intercept:
                settings = {"threshold": "joint"}  # its name before
            seconds.append(cpu(lambda s=settings: model.reweigh(**s)))
        return statistics.mean(seconds)

    def not_compared(model: Any, changes: list[dict[str, Any]]) -> float:
        with comparison_left_out():
            return measure(model, changes)

    figures: Figures = {}
    for name, model in models.items():
        model.fit(X, y)
        for what, changes in CHANGES.items():
            figures[f"{name}: {what}"] = lambda m=model, c=changes: measure(m, c)
            if name == "soft":
                alike = f"{name}, not compared: {what}"
                figures[alike] = lambda m=model, c=changes: not_compared(m, c)
    return figures


def comparison_left_out() -> Any:
    """Learned weights are kept without a look at the plain vote, as before the move."""
    name = "damvi.selection"
    selection = import_module(name) if find_spec(name) else None
    if not hasattr(selection, "keep_better_vote"):
        return nullcontext()
    return patch.object(selection, "keep_better_vote", lambda weighting: weighting)


def cluster(data: Path, quick: bool, stack: ExitStack) -> Figures:
    """A fit by Dask beside one in memory, as in cluster.py, on Credit Fraud once."""
    import dask.dataframe as dd
    import pandas as pd
    from cluster import GROUPS, cpu_now
    from distributed import Client, LocalCluster

    from damvi import DAMVIClassifier
    from damvi.distributed import fit

    frame = pd.read_parquet(data / "paper" / "credit_fraud.parquet")
    frame = frame.rename(columns={frame.columns[-1]: "target"})
    frame = frame.iloc[:20_000] if quick else frame
    file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "rows.parquet")
    frame.to_parquet(file, row_group_size=-(-len(frame) // GROUPS))
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    workers = stack.enter_context(LocalCluster(**settings))
    client = stack.enter_context(Client(workers))

    def by_dask() -> float:
        start = cpu_now()
        table = dd.read_parquet(file, split_row_groups=True).persist()
        model = DAMVIClassifier(bootstrap="poisson", random_state=0)
        fit(model, table, "target", client=client)
        return cpu_now() - start

    def in_memory() -> float:
        model = DAMVIClassifier(bootstrap="poisson", random_state=0, n_jobs=1)
        return cpu(lambda: model.fit(frame.drop(columns="target"), frame["target"]))

    return {"in memory": in_memory, "Dask, two workers": by_dask}


def strong_pool(data: Path, quick: bool, _: ExitStack) -> Figures:
    """The fit of the strong pool; of Credit Fraud all positives and some negatives."""
    from pools import capped, load_kernels

    from voters import load

    load_kernels()
    figures: Figures = {}
    for name in ("mammography", "credit_fraud"):
        X, _, y, _ = load(name, data)
        rows = capped(y, 600 if quick else POOL_ROWS, "negatives", 0)
        some = np.ascontiguousarray(X[rows], dtype=np.float64), y[rows]
        model = pooled("strong", random_state=0, n_jobs=1)
        figures[f"{name}, {len(rows):,} rows"] = lambda m=model, s=some: cpu(
            lambda: m.fit(*s)
        )
    return figures


PARTS = {
    voters: 5,
    predict: 7,
    multiclass_voters: 3,
    reweigh: 7,
    cluster: 3,
    strong_pool: 2,
}
"""With how many rounds each has by default."""
BY_NAME = {part.__name__: part for part in PARTS}


class Checkout:
    """A process that measures with the damvi of one checkout."""

    def __init__(self, tree: Path, data: Path, quick: bool) -> None:
        command = [sys.executable, __file__, "--work", "--data", str(data), str(tree)]
        self.tree = tree
        self.process = subprocess.Popen(
            [*command, "--quick"] if quick else command,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(tree / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, **order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.tree} has ended")
        said = json.loads(line)
        if "error" in said:
            raise RuntimeError(f"{self.tree}: {said['error']}")
        return said["answer"]

    def ask(self, **order: str) -> Any:
        self.send(**order)
        return self.answer()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work(tree: Path, data: Path, quick: bool) -> None:
    """Prepare parts and measure figures, as the lines of the standard input say."""
    warnings.simplefilter("ignore")
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no reply
    figures: Figures = {}
    with ExitStack() as whole:
        stack = whole.enter_context(ExitStack())
        for line in sys.stdin:
            order, said = json.loads(line), {}
            try:
                if "part" in order:
                    stack.close()
                    part = BY_NAME[order["part"]]
                    figures = part(data, quick, stack)
                    for measure in figures.values() if part is not strong_pool else ():
                        measure()  # compiles and loads kernels, and fills the caches
                    said["answer"] = list(figures)
                elif "figure" in order:
                    said["answer"] = figures[order["figure"]]()
                else:
                    import damvi

                    said["answer"] = Path(damvi.__file__).is_relative_to(tree)
            except Exception:
                said["error"] = traceback.format_exc()
            print(json.dumps(said), file=replies, flush=True)


def compare(before: Checkout, after: Checkout, part: str, rounds: int) -> bool:
    """Print a line a figure; whether none is much slower."""
    pair = before, after
    for tree in pair:  # both at once: nothing is measured yet
        tree.send(part=part)
    names, others = [tree.answer() for tree in pair]
    assert names == others
    seconds: dict[tuple[str, Checkout], list[float]] = {}
    for number in range(rounds):
        for name in names:
            for tree in pair if number % 2 == 0 else pair[::-1]:
                seconds.setdefault((name, tree), []).append(tree.ask(figure=name))
    print(f"\n{part}, {rounds} rounds")
    fine = True
    for name in names:
        least = [min(seconds[name, tree]) for tree in pair]
        usual = [statistics.median(seconds[name, tree]) for tree in pair]
        ratio = least[1] / least[0]
        fine &= ratio <= ALLOWED
        print(
            f"  {name:36}{1e3 * least[0]:12,.2f}{1e3 * least[1]:12,.2f}{ratio:8.2f}"
            f"{usual[1] / usual[0]:12.2f}{'' if ratio <= ALLOWED else '  SLOWER'}",
            flush=True,
        )
    return fine


def main() -> int:
    from setting import add_data_option, print_setting

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_option(parser)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER", nargs="?", default=ROOT)
    parser.add_argument("--parts", nargs="+", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--rounds", type=int, help="instead of each part's own number")
    parser.add_argument("--quick", action="store_true", help="toy sizes, two rounds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.before, args.data, args.quick)
        return 0
    print_setting("numpy", "scipy", "scikit-learn", "numba", "dask", "lightgbm")
    trees = [args.before.resolve(), args.after.resolve()]
    pair = [Checkout(tree, args.data.resolve(), args.quick) for tree in trees]
    for tree in pair:
        if not tree.ask():
            raise SystemExit(f"{tree.tree} holds no src/damvi")
    head = f"{'milliseconds of CPU':38}{'before':>12}{'after':>12}{'ratio':>8}"
    print(f"before: {trees[0]}\nafter:  {trees[1]}\n\n{head}{'of medians':>12}")
    fine = True
    for name in args.parts:
        rounds = args.rounds or (2 if args.quick else PARTS[BY_NAME[name]])
        try:
            fine &= compare(*pair, name, rounds)
        except RuntimeError as error:
            print(f"\n{name} failed. {error}", flush=True)
            fine = False
            for tree in pair:  # the other's reply may be waiting still
                tree.end()
            pair = [Checkout(tree, args.data.resolve(), args.quick) for tree in trees]
    for tree in pair:
        tree.end()
    verdict = "No figure is" if fine else "Not all parts ran, or some figure is"
    print(f"\n{verdict} more than {ALLOWED - 1:.0%} above what it was.")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
