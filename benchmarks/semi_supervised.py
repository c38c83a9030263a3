"""Few labels and many unlabelled rows: does DAMVI make anything of the latter?

    python benchmarks/semi_supervised.py [--data FOLDER] [--out results/semi_supervised]
        [--splits 10] [--rows 20000] [--datasets ...] [--report]

Each cell is one split of one dataset with a fraction of its training rows labelled, by
all contenders. Cells are kept as they finish, and the same command goes on where it
stopped; after a change to the package, remove cells.jsonl. ``--rows`` caps the unlabelled
rows, at the natural rate. ``--report`` only writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student
from setting import add_data_option, print_setting

DATASETS = ("mammography", "webpage", "protein_homo", "credit_fraud")
FRACTIONS = (0.01, 0.05, 0.2)
WEIGHTS = (0.2, 0.5, 0.8)
"""Of the voters' disagreement on unlabelled rows."""
FOREST, SELF_TRAINING = "forest", "SelfTrainingClassifier"
ROUNDS = 5
REMOVED = ("K-means", "self", "disagreement + K-means", "disagreement + self")
"""Pseudo-labels, by K-means or by the vote, harmed more often than they helped. The stored
cells have them still, beside disagreement whose weight the data set."""
LEARNED = (
    "disagreement",
    "disagreement, eta .5",
    *(f"disagreement, weight {weight:g}" for weight in WEIGHTS),
    *REMOVED,
)
RIVALS = [
    *((name, "out of bag") for name in LEARNED),
    *((name, "paper's") for name in LEARNED),
    ("K-means, plain vote", "plain vote"),
    ("self, plain vote", "plain vote"),
    (SELF_TRAINING, FOREST),
]
"""Who is compared with whom: the same without unlabelled rows, or the default."""
METRICS = {
    "ap": "average precision",
    "f1": "F1, cut at the sign of the vote (probability 1/2)",
    "f1_rate": "F1, as many test rows flagged as the labelled rate of positives says",
}


def votes_of(
    seed: int, X: Any, y: Any, fresh: Any, test: Any
) -> Iterator[tuple[str, np.ndarray]]:
    """The contenders' votes on the test rows, with 0 the place to cut."""
    from sklearn.semi_supervised import SelfTrainingClassifier

    from damvi import DAMVIClassifier, Unlabeled
    from damvi.voters import FastForestClassifier

    model = DAMVIClassifier(random_state=seed, n_jobs=1).fit(X, y)
    votes = model.cast_votes(test)  # once: the same trees are only weighted differently
    yield "paper's", votes @ model.weights_
    yield "plain vote", votes @ model.reweigh(solver="uniform").weights_
    model = DAMVIClassifier(random_state=seed, n_jobs=1, unlabeled_weight=WEIGHTS[0])
    model.fit(X, y, X_unlabeled=Unlabeled(fresh))
    for weight in WEIGHTS:
        name = f"disagreement, weight {weight:g}"
        yield name, votes @ model.reweigh(unlabeled_weight=weight).weights_
    # The supervised model with votes="oob": unlabelled rows have no part in the weights.
    yield "out of bag", votes @ model.reweigh(unlabeled_weight=0.0).weights_
    forest = FastForestClassifier(100, n_jobs=1, random_state=seed)
    yield FOREST, 2 * forest.fit(X, y).predict_proba(test)[:, 1] - 1
    rows = np.concatenate([X, fresh])
    labels = np.concatenate([y, np.full(len(fresh), -1)])
    taught = SelfTrainingClassifier(forest, max_iter=ROUNDS).fit(rows, labels)
    yield SELF_TRAINING, 2 * taught.predict_proba(test)[:, 1] - 1


def run_cell(name: str, fraction: float, split: int, args: Any) -> dict[str, Any]:
    from sklearn.metrics import average_precision_score, f1_score
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits

    X, y = args.read(name)
    train, test = train_test_split(
        np.arange(len(y)), test_size=0.3, stratify=y, random_state=split
    )
    known, fresh = train_test_split(
        train, train_size=fraction, stratify=y[train], random_state=split
    )
    fresh = fresh[: args.rows]  # in random order
    cell: dict[str, Any] = {
        "dataset": name,
        "fraction": fraction,
        "split": split,
        "rows": args.rows,
        "labelled": len(known),
        "positives": int(y[known].sum()),
        "unlabelled": len(fresh),
        "test": len(test),
        "scores": {},
    }
    flagged = round(float(y[known].mean()) * len(test))
    rows = X[known], y[known], X[fresh], X[test]
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = list(votes_of(split, *rows))
    cell["cpu_seconds"] = round(time.process_time() - start, 2)
    for contender, vote in votes:
        # Ties are broken at random, and alike for all.
        order = np.random.default_rng(split).permutation(len(test))
        top = np.zeros(len(test), bool)
        top[order[np.argsort(-vote[order], kind="stable")[:flagged]]] = True
        cell["scores"][contender] = {
            "ap": float(average_precision_score(y[test], vote)),
            "f1": float(f1_score(y[test], vote > 0, zero_division=0)),
            "f1_rate": float(f1_score(y[test], top, zero_division=0)),
        }
    return cell


def read_cells(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    cells = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            cells.append(json.loads(line))
        except json.JSONDecodeError:  # cut off by the end of an earlier run
            continue
    return cells


def run_missing(args: argparse.Namespace) -> None:
    kept: dict[str, Any] = {}

    def read(name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in kept:
            from damvi.datasets import load

            data = load(name, data_dir=args.data)
            kept.clear()
            X = np.ascontiguousarray(data.data, dtype=np.float64)
            kept[name] = X, np.asarray(data.target, dtype=np.int8)
        return kept[name]

    args.read = read
    path = args.out / "cells.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = ("dataset", "fraction", "split", "rows")
    known = {tuple(cell[key] for key in keys) for cell in read_cells(path)}
    for split in range(args.splits):
        for name in args.datasets:
            for fraction in FRACTIONS:
                if (name, fraction, split, args.rows) in known:
                    continue
                cell = run_cell(name, fraction, split, args)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                spent = cell["cpu_seconds"]
                print(f"{name} {fraction} {split}: {spent} s of CPU", flush=True)


def paired(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float, int]:
    """The mean difference over the splits, its standard error, and its sign if sure.

    Sure is what Student's t, for so few splits, takes for no chance at 95 %.
    """
    gap = ours - theirs
    mean, error = float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))
    sure = abs(mean) > error * float(student.ppf(0.975, len(gap) - 1))
    return mean, error, int(np.sign(mean)) if sure else 0


def table_of(cells: list[dict[str, Any]], metric: str) -> list[str]:
    places = list(dict.fromkeys((c["dataset"], c["fraction"]) for c in cells))
    contenders = list(cells[0]["scores"])

    def column(place: Any, name: str) -> np.ndarray:
        mine = [c for c in cells if (c["dataset"], c["fraction"]) == place]
        mine.sort(key=lambda cell: cell["split"])
        return np.array([cell["scores"][name][metric] for cell in mine])

    lines = [f"## {METRICS[metric]}".replace("## a", "## A"), ""]
    head = [f"{name} {fraction:.0%}" for name, fraction in places]
    lines += [" | ".join(["| ", *head]) + " |", "|---" * (len(head) + 1) + "|"]
    for name in contenders:
        means = [f"{column(place, name).mean():.3f}" for place in places]
        lines.append(" | ".join([f"| {name}", *means]) + " |")
    lines += ["", "Gains over fits without unlabelled rows (paired standard errors):", ""]
    lines += [" | ".join(["| ", *head, "helps, harms"]) + " |"]
    lines += ["|---" * (len(head) + 2) + "|"]
    for name, rival in RIVALS:
        if not {name, rival} <= set(contenders):
            continue
        gaps = [paired(column(place, name), column(place, rival)) for place in places]
        shown = []
        for gap, error, sure in gaps:
            mark = "**" if sure else ""
            shown.append(f"{mark}{gap:+.3f}{mark} ({error:.3f})")
        helps, harms = (sum(gap[2] == sign for gap in gaps) for sign in (1, -1))
        words = f"{helps}, {harms} of {len(gaps)}"
        lines.append(" | ".join([f"| {name} − {rival}", *shown, words]) + " |")
    return [*lines, ""]


def write_report(out: Path) -> None:
    """The tables, after what they mean in words, if there is a findings.md."""
    cells = read_cells(out / "cells.jsonl")
    # A single split has no standard error.
    sizes: dict[Any, list[Any]] = {}
    for cell in cells:
        sizes.setdefault((cell["dataset"], cell["fraction"]), []).append(cell)
    cells = [
        cell
        for name in DATASETS
        for fraction in FRACTIONS
        for cell in sizes.get((name, fraction), [])
        if len(sizes[name, fraction]) > 1
    ]
    if not cells:
        return
    splits = sorted({len(some) for some in sizes.values()})
    lines = [
        "# Few labels, many unlabelled rows",
        "",
        "`python benchmarks/semi_supervised.py`",
        "",
        f"{' to '.join(map(str, sorted({splits[0], splits[-1]})))} random splits of 70 "
        f"to 30. The given percentage of "
        f"the training rows keeps its labels; of the rest, at most {cells[0]['rows']:,} "
        f"rows are `X_unlabeled`. All DAMVI models have 100 trees on 20 % bootstraps; the "
        f"forest has 100 trees of the same kind, with full bootstraps and random features, "
        f"and scikit-learn's self-training at most {ROUNDS} rounds of it. "
        f"Bold: more than chance by Student's t, at 95 % for each comparison alone.",
        "",
    ]
    findings = out / "findings.md"
    if findings.exists():
        lines += [findings.read_text(encoding="utf-8")]
    lines += ["| labelled rows | positives among them | unlabelled rows | splits |"]
    lines += ["|---|---|---|---|"]
    for (name, fraction), some in sizes.items():
        cell = some[0]
        lines.append(
            f"| {name} {fraction:.0%}: {cell['labelled']:,} | {cell['positives']} "
            f"| {cell['unlabelled']:,} | {len(some)} |"
        )
    lines.append("")
    for metric in METRICS:
        lines += table_of(cells, metric)
    minutes = sum(cell["cpu_seconds"] for cell in cells) / 60
    lines += [f"All in all {minutes:.0f} minutes of CPU.", ""]
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=Path("results/semi_supervised"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    if not args.report:
        print_setting("numpy", "scikit-learn", "numba")
        run_missing(args)
    write_report(args.out)


if __name__ == "__main__":
    main()
