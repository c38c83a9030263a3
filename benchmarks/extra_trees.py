"""Our extra-trees beside scikit-learn's: alone, and as a voter of the strong pool.

    python benchmarks/extra_trees.py [--data FOLDER] [--votes FOLDER] [--splits 3]
        [--datasets ...] [--report] > results/voters/extra_trees.txt

A cell is one split of one dataset, at most 30,000 rows, as in pools.py, and has a process
of its own, with one thread. Each contender is trained as a voter: out of fold by five
folds, and on all training rows. CPU is all of that; the peak is resident memory above what
the process had before. AP alone is that of the test rows by the whole fit; AP of the vote,
that of the other voters of the pool with this one, weighed as DAMVIVotingClassifier does by
default. The other voters' votes come from the folder of votes of pools.py, and are trained
if they are not there. Finished cells are kept; ``--report`` only prints their report.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from pools import FOLDS, Task, plan, read, split_of, votes_of_pool

DATASETS = (
    "mammography",
    "abalone_19",
    "ozone_level",
    "satimage",
    "ai4i2020",
    "letter_img",
    "scania_partial",
    "credit_fraud",
    "census_kdd_half",
    "webpage",
)
ROWS, CAP, NAME, PEER = 30_000, "negatives", "extra_trees", "scikit-learn, 100, leaf 2"
CELLS = Path("results/voters/extra_trees_cells.jsonl")


def contenders(seed: int) -> dict[str, Any]:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.pipeline import make_pipeline

    from damvi.voters import FastForestClassifier, NumberEncoder

    def ours(trees: int, leaf: int) -> Any:
        return FastForestClassifier(
            trees,
            bootstrap=False,
            splitter="random",
            min_samples_leaf=leaf,
            n_jobs=1,
            random_state=seed,
        )

    theirs = ExtraTreesClassifier(100, min_samples_leaf=2, n_jobs=1, random_state=seed)
    return {
        PEER: make_pipeline(NumberEncoder(), theirs),
        "ours, 100, leaf 2": ours(100, 2),
        "ours, 100, leaf 1": ours(100, 1),
        "ours, 50, leaf 2": ours(50, 2),
    }


def resident(line: str) -> float:
    """Megabytes: what this process holds (VmRSS), or has held at most (VmHWM)."""
    words = (
        Path("/proc/self/status").read_text(encoding="utf-8").split(f"{line}:")[1].split()
    )
    return int(words[0]) / 1024


def run_cell(cell: dict[str, Any], data: Path, votes: Path) -> dict[str, Any]:
    from paper.protocol import Protocol
    from pool_contenders import Pool, default_setting, votes_of, weigh_by_c_bound
    from sklearn.metrics import average_precision_score
    from sklearn.utils import check_random_state

    from damvi.voters import PoolVoters

    X, y = read(cell["dataset"], data)
    train, test, seed = split_of(y, Protocol("stratified"), ROWS, CAP, cell["split"])
    task = Task(cell, data, votes, 0, [name for name in cell["votes"] if name != NAME])
    said = votes_of_pool(task, X[train], y[train], X[test], seed)
    drawn = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    usual = default_setting()

    def of_vote(more: list[tuple[Any, Any]], folds: Any) -> float:
        own = [(one["unseen"], one["test"]) for one in said.values()]
        unseen, asked = (
            np.asfortranarray(np.stack(part, axis=1))
            for part in zip(*own, *more, strict=True)
        )
        pool = Pool((*said, NAME)[: unseen.shape[1]], unseen, asked, y[train], folds)
        pool = pool.calibrated(usual.calibration, usual.balance)
        ballots = votes_of(pool, usual.balance)
        vote = weigh_by_c_bound(ballots, pool.test, usual.of_weights)
        return float(average_precision_score(y[test], vote.test))

    known = next(iter(said.values()))["folds"].astype(np.int32)
    figures: dict[str, Any] = {"without": {"vote": of_vote([], known)}}
    few = np.random.default_rng(0).normal(size=(2, 300, 3))
    for name, model in contenders(drawn).items():
        model.fit(few[0], few[1, :, 0] > 1).predict_proba(few[0])  # loads the kernels
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # or it would find room that others have left
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text(
            "5", encoding="utf-8"
        )  # the peak starts anew
        start = time.process_time()
        voter, unseen, folds = PoolVoters.train(
            [(NAME, model)], X[train], y[train], seed=drawn, cv=FOLDS, n_jobs=1
        )
        trained, peak = time.process_time(), resident("VmHWM") - before
        asked = voter.votes(X[test], 1)[:, 0]
        answered = time.process_time() - trained
        assert np.array_equal(folds, known)
        figures[name] = {
            "alone": float(average_precision_score(y[test], asked)),
            "vote": of_vote([(unseen[:, 0], asked)], known),
            "cpu": trained - start,
            "ask": answered,
            "peak": peak,
        }
    return {
        "dataset": cell["dataset"],
        "split": cell["split"],
        "rows": len(train),
        "features": X.shape[1],
        "positives": int(y[train].sum()),
        "figures": figures,
    }


def by_dataset(cells: list[dict[str, Any]], name: str, key: str) -> list[np.ndarray]:
    """A figure of a contender, an array over splits for each dataset."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        value = cell["figures"][name].get(key, np.nan)
        found.setdefault(cell["dataset"], []).append(value)
    return [np.array(values) for values in found.values()]


def spread(values: np.ndarray, form: str = ".4f") -> str:
    if np.isnan(values).any():
        return ""
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{values.mean():{form}} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def print_table(cells: list[dict[str, Any]]) -> None:
    """The mean over datasets, ± standard errors over splits where there is one dataset."""
    print(f"  {'':26}{'AP alone':>16}{'AP of vote':>17}{'CPU s':>8}{'ask s':>7}{'MB':>5}")
    for name in cells[0]["figures"]:
        line = f"  {name:26}"
        for key, width in (("alone", 16), ("vote", 17)):
            values = by_dataset(cells, name, key)
            mean = f"{np.mean([one.mean() for one in values]):.4f}"
            words = spread(values[0]) if len(values) == 1 else mean
            line += f"{'' if words == 'nan' else words:>{width}}"
        if name != "without":
            cpu, ask, peak = (
                np.mean([one.mean() for one in by_dataset(cells, name, key)])
                for key in ("cpu", "ask", "peak")
            )
            line += f"{cpu:8.2f}{ask:7.3f}{peak:5.0f}"
        print(line)


def print_report(cells: list[dict[str, Any]]) -> None:
    print(
        "AP alone and in the vote of the pool, ± standard errors over splits; CPU seconds"
        "\nof six fits (five folds, and all training rows) and votes out of fold, and of"
        "\nthe votes on test rows; peak memory in megabytes."
    )
    datasets = list(dict.fromkeys(cell["dataset"] for cell in cells))
    for dataset in datasets:
        own = [cell for cell in cells if cell["dataset"] == dataset]
        print(
            f"\n{dataset}: {own[0]['rows']:,} rows, {own[0]['features']} columns, "
            f"{own[0]['positives']} positives, splits: {len(own)}"
        )
        print_table(own)
    print(f"\nMean over {len(datasets)} datasets")
    print_table(cells)
    print(f"\nAgainst {PEER}: differences ± standard errors over datasets")
    for name in cells[0]["figures"]:
        words = []
        for key in ("alone", "vote"):
            pairs = zip(
                by_dataset(cells, name, key), by_dataset(cells, PEER, key), strict=True
            )
            gaps = np.array([np.mean(one - other) for one, other in pairs])
            words.append(f"{spread(gaps, '+.4f'):>17}")
        line = f"  {name:26}alone{words[0]}  vote{words[1]}"
        if name not in ("without", PEER):
            costs = [
                np.mean([one.mean() for one in by_dataset(cells, who, "cpu")])
                for who in (PEER, name)
            ]
            line += f"  {costs[0] / costs[1]:4.1f} times cheaper"
        if name != PEER:
            print(line)


def main() -> int:
    from paper.protocol import Protocol
    from setting import add_data_option, print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--votes", type=Path, default=Path("results/pools/votes"))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--report", action="store_true", help="print the report only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(run_cell(json.loads(args.one), args.data, args.votes)))
        return 0
    done = []
    if args.cells.exists():
        done = [json.loads(line) for line in args.cells.read_text().splitlines()]
    known = {(cell["dataset"], cell["split"]) for cell in done}
    args.rows, args.cap = ROWS, CAP
    for cell in [] if args.report else plan(args, Protocol("stratified")):
        if (cell["dataset"], cell["split"]) in known:
            continue
        task = {key: cell[key] for key in ("dataset", "split", "votes")}
        command = [sys.executable, __file__, "--data", str(args.data)]
        command += ["--votes", str(args.votes), "--one", json.dumps(task)]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        with args.cells.open("a") as file:
            file.write(said.splitlines()[-1] + "\n")
        done.append(json.loads(said.splitlines()[-1]))
        print(cell["dataset"], cell["split"], file=sys.stderr, flush=True)
    print_setting("numpy", "scikit-learn", "numba")
    order = list(DATASETS)
    print_report(sorted(done, key=lambda c: (order.index(c["dataset"]), c["split"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
