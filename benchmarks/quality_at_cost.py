"""What whole fits of the strong model cost, and what they give: earlier pool and today's.

    python benchmarks/quality_at_cost.py run [--data FOLDER] [--first-split 0] [--splits 1]
        [--datasets ...]
    python benchmarks/quality_at_cost.py report

Fits on one thread: the earlier pool of eleven voters, as a list; the strong pool without a
limit; and the extended one, which a limit that is never reached brings, with what early
stopping saves. The splits are those of results/pools (at most 30,000 rows, all positives
among them). A fit after the other in one process, so that whatever else runs on the machine
slows all three. ``run`` goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pools import load_kernels, read, split_of
from portfolio import CAP, CHEAPEST_FIRST, ROWS
from portfolio_candidates import BEFORE
from report_parts import beside
from setting import versions_of
from sklearn.metrics import average_precision_score, f1_score, log_loss

from damvi import DAMVIVotingClassifier
from damvi._files import write_whole

OUT = Path("results/quality_at_cost")
NEVER = 1e6
"""Seconds that no fit here takes."""
FITS: dict[str, Callable[[int, Any], DAMVIVotingClassifier]] = {
    "earlier pool of eleven": lambda seed, y: DAMVIVotingClassifier(
        [(name.rstrip("*"), make(seed, y)) for name, make in BEFORE.items()],
        n_jobs=1,
        random_state=seed,
    ),
    "strong pool": lambda seed, y: DAMVIVotingClassifier(n_jobs=1, random_state=seed),
    "extended pool": lambda seed, y: DAMVIVotingClassifier(
        time_limit=NEVER, n_jobs=1, random_state=seed
    ),
}
BASE = "earlier pool of eleven"


def run(args: argparse.Namespace) -> None:
    from paper.protocol import Protocol

    load_kernels()
    OUT.mkdir(parents=True, exist_ok=True)
    done = {(one["dataset"], one["split"], one["fit"]) for one in cells()}
    versions = versions_of("scikit-learn", "numpy", "lightgbm", "xgboost", "catboost")
    for split in range(args.first_split, args.first_split + args.splits):
        for dataset in args.datasets:
            X, y = read(dataset, args.data)
            train, test, seed = split_of(y, Protocol("stratified"), ROWS, CAP, split)
            for name, make in FITS.items():
                if (dataset, split, name) in done:
                    continue
                model = make(seed, y[train])
                start = time.process_time()
                model.fit(X[train], y[train])
                seconds = time.process_time() - start
                chance = model.predict_proba(X[test])
                cell = {
                    "dataset": dataset,
                    "split": split,
                    "fit": name,
                    "seconds": seconds,
                    "ap": average_precision_score(y[test], model.vote(X[test])),
                    "f1": f1_score(y[test], model.predict(X[test])),
                    "log_loss": log_loss(y[test], chance[:, 1]),
                    "left_out": sorted(model.left_out_),
                    "versions": versions,
                }
                with (OUT / "cells.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
                told = f"{seconds:.1f} s, AP {cell['ap']:.4f}, F1 {cell['f1']:.4f}"
                print(f"{split} {dataset:16} {name}: {told}", flush=True)


def cells() -> list[dict[str, Any]]:
    path = OUT / "cells.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def report(args: argparse.Namespace) -> None:
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for cell in cells():
        found.setdefault((cell["dataset"], cell["split"]), {})[cell["fit"]] = cell
    whole = {place: own for place, own in found.items() if set(own) == set(FITS)}
    table: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in FITS:
        for (dataset, _), own in whole.items():
            table.setdefault(name, {}).setdefault(dataset, []).append(own[name])
    base, most = table[BASE], {name: table[name] for name in FITS if name != BASE}
    share = {
        name: np.mean([np.mean([c["seconds"] for c in one]) for one in own.values()])
        / np.mean([np.mean([c["seconds"] for c in one]) for one in base.values()])
        for name, own in most.items()
    }
    n_left = np.mean([len(own["extended pool"]["left_out"]) for own in whole.values()])
    lines = [
        "# Whole fits: the earlier pool and today's",
        "",
        f"{len(whole)} splits of {len(base)} datasets, those of results/pools (70/30, at "
        f"most 30,000 rows with all positives). Means over datasets; differences from the "
        f"earlier pool ± one standard error over datasets. CPU seconds of `fit` on one "
        f"thread, one fit after the other, beside other work. By "
        f"`benchmarks/quality_at_cost.py`; {next(iter(whole.values()))[BASE]['versions']}.",
        "",
        *beside(table, lambda _: BASE),
        *(
            f"- CPU seconds of the {name}, divided by those of the earlier one: {one:.2f}."
            for name, one in share.items()
        ),
        f"- Early stopping left out {n_left:.1f} of the ten voters on average.",
        "",
        "These pools were chosen on these datasets.",
        "",
    ]
    print("\n".join(lines))
    write_whole(OUT / "quality_at_cost.md", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=["run", "report"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    args = parser.parse_args()
    {"run": run, "report": report}[args.do](args)


if __name__ == "__main__":
    main()
