"""A strong pool: single models, votes and weights on the same out-of-fold votes.

    python benchmarks/pools.py [--data FOLDER] [--out results/pools] [--splits 5]
        [--rows 30000] [--cap negatives] [--datasets ...] [--jobs 2]
        [--votes FOLDER] [--train VOTER ...] [--before FOLDER] [--report]

Each cell is one split of one dataset: the pool is trained once, out of fold and on all
training rows, and all contenders share its votes. Cells are kept as they finish, the
first split of every dataset first, and the same command goes on where it stopped. The
folder of votes has a file for each voter of a cell: whoever stays as it was is not
trained again for other contenders, or beside voters that changed. After a change to the
package, remove cells.jsonl (and the votes, if voters changed): settings tell cells apart,
code does not. ``--rows 0`` takes all rows (give it an --out of its own). ``--train`` only
trains these voters (all, if none is named) for the folder of votes. ``--report`` only
writes the report of finished cells, ``--before`` beside older ones of the same splits.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import multiprocessing
import os
import platform
import sys
import threading
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PAPER = ("webpage", "mammography", "scania_partial", "protein_homo", "credit_fraud")
EXTRA = (
    "ozone_level",
    "letter_img",
    "satimage",
    "abalone_19",
    "ai4i2020",
    "census_kdd_half",
    "cover",
    "smtp_kdd99",
)
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "xgboost", "catboost")
FOLDS = 5


@dataclass(frozen=True)
class Task:
    """What a process needs to run one cell."""

    cell: dict[str, Any]
    data: Path
    votes: Path
    runner: int
    only: list[str] | None


def versions() -> dict[str, str]:
    import damvi

    found = {"damvi": damvi.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def digest(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    from damvi.datasets import load

    data = load(name, data_dir=folder)
    X = np.ascontiguousarray(data.data, dtype=np.float64)
    return X, np.asarray(data.target, dtype=np.int8)


def capped(y: np.ndarray, rows: int, cap: str, seed: int) -> np.ndarray:
    """At most so many rows, at the natural rate, or with all positives."""
    if not 0 < rows < len(y):
        return np.arange(len(y))
    rng = np.random.default_rng([seed, 5])
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    kept = len(positives) if cap == "negatives" else round(rows * (y > 0).mean())
    some = rng.choice(positives, kept, replace=False)
    others = rng.choice(negatives, rows - kept, replace=False)
    return np.sort(np.concatenate([some, others]))


def split_of(y: np.ndarray, protocol: Any, rows: int, cap: str, split: int) -> Any:
    """The training and the test rows, and the seed of the split."""
    seed = protocol.seed + split
    some = capped(y, rows, cap, seed)
    train, test = (some[part] for part in protocol.split(y[some], None, split, None))
    return train, test, seed


def pool_in_words(y: np.ndarray | None = None) -> dict[str, str]:
    """The voters with what they were told, in a form that is the same in every run."""
    from damvi.voters import strong_pool

    def words(model: Any) -> str:
        told = sorted(model.get_params(deep=True).items())
        plain = [
            f"{name}={value!r}"
            for name, value in told
            if value is None or isinstance(value, (bool, int, float, str))
        ]
        return f"{type(model).__name__}({', '.join(plain)})"

    return {name: words(model) for name, model in strong_pool(0, y)}


def plan(args: argparse.Namespace, protocol: Any) -> list[dict[str, Any]]:
    """All cells that were asked for, with what tells them apart."""
    from paper.runner import fingerprint
    from pool_contenders import ROUNDS, contender_names, default_setting

    found, usual = versions(), pool_in_words()
    cells, data, labels = [], {}, {}
    for name in args.datasets:
        X, labels[name] = read(name, args.data)
        data[name] = fingerprint(X, labels[name])
    for split in range(args.splits):
        for name, y in labels.items():
            train, _, _ = split_of(y, protocol, args.rows, args.cap, split)
            pool = pool_in_words(y[train])
            ground = {
                "dataset": name,
                "data": data[name],
                "split": split,
                "rows": args.rows,
                "cap": args.cap,
                "folds": FOLDS,
                **protocol.as_dict(),
            }
            contenders = {
                "names": contender_names(list(usual)),
                "default": default_setting()._asdict(),
                "greedy_rounds": ROUNDS,
            }
            by_labels = {name: pool[name] for name in usual if pool[name] != usual[name]}
            settings = {
                **ground,
                "pool": usual,
                "pool_by_labels": by_labels,
                "contenders": contenders,
            }
            cells.append(
                {
                    "key": digest(settings),
                    "votes": {
                        voter: digest({**ground, "voter": voter, "words": words})
                        for voter, words in pool.items()
                    },
                    "dataset": name,
                    "split": split,
                    "settings": settings,
                    "versions": found,
                }
            )
    return cells


def load_kernels() -> None:
    """Load what is compiled, so that the seconds are the voters' own."""
    from damvi.voters import strong_pool

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.random(2000) < 0.3
    for name, model in strong_pool(0):
        if name.endswith("forest"):
            model.set_params(n_estimators=2).fit(X, y).predict_proba(X)


def votes_of_pool(
    task: Task, X: Any, y: np.ndarray, X_test: Any, seed: int
) -> dict[str, dict[str, Any]]:
    """The votes as DAMVIVotingClassifier(random_state=seed) takes them, by voter.

    Voters are trained one by one, for the seconds of each: a voter's seed comes from its
    name, and so it is the same in any pool.
    """
    from sklearn.utils import check_random_state

    from damvi.voters import PoolVoters, strong_pool

    drawn = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    found: dict[str, dict[str, Any]] = {}
    for name, model in strong_pool(drawn, y):
        if task.only and name not in task.only:
            continue
        path = task.votes / f"{task.cell['votes'][name]}.npz"
        if (known := kept_votes(path)) is not None:
            found[name] = known
            continue
        if name.endswith("forest"):
            load_kernels()
        start = time.process_time()
        voter, votes, folds = PoolVoters.train(
            [(name, model)], X, y, seed=drawn, cv=FOLDS, n_jobs=1
        )
        trained = time.process_time()
        found[name] = {
            "unseen": votes[:, 0],
            "test": voter.votes(X_test, 1)[:, 0],
            "folds": folds.astype(np.int8),
            "train_seconds": np.array(trained - start),
            "ask_seconds": np.array(time.process_time() - trained),
        }
        keep_votes(path, found[name])
    return found


def kept_votes(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def keep_votes(path: Path, votes: dict[str, Any]) -> None:
    from paper.store import write_whole

    out = io.BytesIO()
    np.savez_compressed(out, **votes)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, out.getvalue())


def end_with(runner: int) -> None:
    """End this process when the one that waits for it is gone."""
    while os.getppid() == runner:
        time.sleep(1)
    os._exit(1)


def run_cell(task: Task) -> dict[str, Any]:
    """One split of one dataset: train the pool, let all contenders vote."""
    from paper.protocol import Protocol
    from pool_contenders import Contest, Pool
    from threadpoolctl import threadpool_limits

    threading.Thread(target=end_with, args=[task.runner], daemon=True).start()
    settings, start = task.cell["settings"], time.perf_counter()
    X, y = read(settings["dataset"], task.data)
    protocol = Protocol(settings["splits"], settings["test_size"], settings["seed"])
    train, test, seed = split_of(
        y, protocol, settings["rows"], settings["cap"], settings["split"]
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = votes_of_pool(task, X[train], y[train], X[test], seed)
        if task.only is not None:
            return {"status": "trained"}
        unseen, asked = (
            np.asfortranarray(np.stack([one[part] for one in said.values()], axis=1))
            for part in ("unseen", "test")
        )
        folds = next(iter(said.values()))["folds"].astype(np.int32)
        pool = Pool(tuple(said), unseen, asked, y[train], folds)
        contest, begun = Contest(pool, y[test]), time.process_time()
        scores = contest.run()
        calibration = contest.calibration()
        combining = time.process_time() - begun

    def by_voter(part: str) -> dict[str, float]:
        return {name: round(float(one[part]), 3) for name, one in said.items()}

    return {
        **task.cell,
        "status": "done",
        "rows": len(train) + len(test),
        "features": X.shape[1],
        "train_positives": int(y[train].sum()),
        "test_positives": int(y[test].sum()),
        "test_rows": len(test),
        "train_seconds": by_voter("train_seconds"),
        "ask_seconds": by_voter("ask_seconds"),
        "combining_seconds": round(combining, 3),
        "wall_seconds": round(time.perf_counter() - start, 1),
        "scores": scores,
        "calibration": calibration,
    }


def run_missing(args: argparse.Namespace) -> list[str]:
    """Run the cells that the folder lacks; what went wrong, in words."""
    from paper.protocol import Protocol
    from paper.store import Store, read_cells

    protocol = Protocol("stratified")
    ground = {**protocol.as_dict(), "rows": args.rows, "cap": args.cap}
    wrong = []
    with Store(args.out, ground) as store:
        known = {cell["key"] for cell in read_cells(args.out)}
        pending = [cell for cell in plan(args, protocol) if cell["key"] not in known]
        print(f"{len(pending)} cells to run, {len(known)} kept", flush=True)
        # A new process for each cell: its memory and its CPU time are its own.
        context = multiprocessing.get_context("spawn")
        workers = ProcessPoolExecutor(args.jobs, mp_context=context, max_tasks_per_child=1)
        running: dict[Future[Any], dict[str, Any]] = {
            workers.submit(
                run_cell, Task(cell, args.data, args.votes, os.getpid(), args.train)
            ): cell
            for cell in pending
        }
        try:
            for done, future in enumerate(as_completed(running), 1):
                cell = running[future]
                words = f"[{done}/{len(pending)}] {cell['dataset']} {cell['split']}"
                try:
                    finished = future.result()
                except Exception as error:
                    wrong.append(f"{words}: {type(error).__name__}: {error}")
                    print(wrong[-1], flush=True)
                    continue
                if finished["status"] == "trained":
                    print(f"{words}: trained", flush=True)
                    continue
                store.add(finished)
                trained = sum(finished["train_seconds"].values())
                print(
                    f"{words}: AP {finished['scores']['DAMVI']['ap']:.3f}, "
                    f"CPU seconds {trained:.1f} training, "
                    f"{finished['combining_seconds']:.1f} combining",
                    flush=True,
                )
        finally:  # after a Ctrl-C, what has not begun never does
            workers.shutdown(cancel_futures=True)
    return wrong


def main() -> int:
    from pool_report import write_report
    from setting import add_data_option, print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=Path("results/pools"))
    parser.add_argument("--votes", type=Path, help="by default the folder votes in --out")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=30_000, help="at most; 0 is all")
    parser.add_argument(
        "--cap",
        choices=("rate", "negatives"),
        default="negatives",
        help="leave out rows of both classes, or negatives only",
    )
    parser.add_argument("--datasets", nargs="*", default=(*PAPER, *EXTRA))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--train", nargs="*", metavar="VOTER", help="train voters only, and keep votes"
    )
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="older cells, to report beside these"
    )
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    args.votes = args.votes or args.out / "votes"
    wrong = []
    if not args.report:
        print_setting(*(name for name in PACKAGES if name != "catboost"))
        wrong = run_missing(args)
    if args.train is None:
        write_report(args.out, args.before)
    for words in wrong:
        print(words, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
