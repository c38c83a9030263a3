"""What smoothing does for a threshold: expected counts instead of counted rows.

    python benchmarks/repeats.py train --small --votes FOLDER --splits 3
    python benchmarks/thresholds.py --votes FOLDER [--splits 3] [--out results/thresholds]

On the votes that benchmarks/repeats.py stored (at most 70 positives and 2,000 negatives to
train on, thousands of test rows), a threshold is tuned on the out-of-fold vote, once by
counting rows (``tune_threshold``) and once by calibrated probabilities (``smooth=True``),
and judged on the test rows, weighted to the class rate of the training rows. The paper's
trees are trained here, and tuned on their out-of-bag vote.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pool_contenders import Pool, default_setting, votes_of, weigh_by_c_bound
from pools import FOLDS, kept_votes, load_kernels
from portfolio import CHEAPEST_FIRST, of_pool
from repeats import FIVE, NINE, Place, path_of, some_places

from damvi import DAMVIClassifier
from damvi.decision import tune_threshold
from damvi.decision.objectives import Counts, parse_objective, read_rows

OBJECTIVES: dict[str, Any] = {
    "F1": "f1",
    "F2": ("fbeta", 2),
    "cost, a miss as 20 false alarms": {"cost": (1, 20)},
}
Votes = tuple[str, Any, Any, Any, Any]
"""Who votes; votes and classes of training rows, votes and classes of test rows."""


def votes(place: Place) -> Iterator[Votes]:
    rows, test, seed = place.rows
    y, truth = place.y[rows].astype(int), place.y[test].astype(int)
    trees = DAMVIClassifier(
        fit_intercept=True, shrinkage=0.5, threshold="f1", random_state=seed, n_jobs=1
    ).fit(place.X[rows], y)
    unseen = trees.decision_.out_of_sample_vote
    voted = trees.voters_.weighted_vote(place.X[test], trees.weights_)
    known = ~np.isnan(unseen)
    yield "trees", unseen[known], y[known], voted, truth
    for words, names in (("five voters", FIVE), ("nine voters", NINE)):
        kept = [kept_votes(path_of(place, name, of_pool(name), 0)) for name in names]
        if any(one is None for one in kept):
            continue
        setting = default_setting()
        pool = Pool(
            names,
            np.asfortranarray(np.stack([one["unseen"] for one in kept], axis=1)),
            np.asfortranarray(np.stack([one["test"][FOLDS] for one in kept], axis=1)),
            y,
            kept[0]["folds"].astype(np.int32),
        ).calibrated("auto", setting.balance)
        cast = votes_of(pool, setting.balance)
        vote = weigh_by_c_bound(cast, pool.test, setting.of_weights)
        yield words, vote.unseen, y, vote.test, truth


def value(objective: Any, vote: Any, truth: Any, threshold: float, rate: float) -> float:
    """On test rows with the class rate of the training rows."""
    aim, share = parse_objective(objective), truth.mean()
    weight = np.where(truth == 1, rate / share, (1 - rate) / (1 - share))
    rows = read_rows(vote, truth, weight)
    counts = Counts.of(rows, rows.vote > threshold, aim.mass(rows))
    return float(aim.value(counts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/thresholds"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    args = parser.parse_args()
    args.small = True
    load_kernels()
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for place in some_places(args):
        for who, unseen, y, voted, truth in votes(place):
            for words, objective in OBJECTIVES.items():
                both = [
                    value(
                        objective,
                        voted,
                        truth,
                        tune_threshold(unseen, y, objective, smooth=smooth),
                        y.mean(),
                    )
                    for smooth in (False, True)
                ]
                cells = found.setdefault((who, words), {})
                cells.setdefault(place.dataset, []).append((both[0], both[1]))
    lines = [
        "| votes of | objective | rows counted | expected counts | difference "
        "| better : worse |",
        "|---|---|---|---|---|---|",
    ]
    for (who, words), cells in found.items():
        means = np.array([np.mean(pairs, axis=0) for pairs in cells.values()])
        gain = (means[:, 1] - means[:, 0]) * (-1 if "cost" in words else 1)
        error = gain.std(ddof=1) / len(gain) ** 0.5
        counted, expected = means.mean(axis=0)
        sign = -1 if "cost" in words else 1
        lines.append(
            f"| {who} | {words} | {counted:.4f} | {expected:.4f} | "
            f"{sign * gain.mean():+.4f} ± {error:.4f} | "
            f"{(gain > 0).sum()} : {(gain < 0).sum()} |"
        )
    n_cells = max(sum(map(len, cells.values())) for cells in found.values())
    told = (
        f"`python benchmarks/thresholds.py --splits {args.splits}`: {len(means)} datasets, "
        f"{n_cells} splits, at most 70 positives and 2,000 negatives to train on; test "
        f"rows at the class rate of the training rows. Means over datasets, and "
        f"differences with their standard errors over datasets."
    )
    print("\n".join([told, "", *lines]))
    args.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["# Thresholds by expected counts", "", told, "", *lines]) + "\n"
    (args.out / "thresholds.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
