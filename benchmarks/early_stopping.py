"""Cross-validation stopped early: what it saves, and what it costs, on stored votes.

    python benchmarks/early_stopping.py --votes FOLDER [--data FOLDER]
        [--out results/early_stopping] [--splits 5] [--datasets ...]

The votes are those of benchmarks/portfolio.py and benchmarks/pools.py; nobody is trained
here. A voter is left out if the vote on the first one or two folds, weighted by the
C-bound, moves by less than a share because of it (``damvi.voters.pool.Judge``). Rules are
compared on the default pool, on the extended one, and on the eleven voters that were the
pool before; the rule is chosen on all datasets but one, and judged on that one.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pool_contenders import Pool, default_setting
from pools import FOLDS, kept_votes, versions
from portfolio import BEFORE, CHEAPEST_FIRST, Cell, Place, of_pool, places
from setting import add_data_option

from damvi.voters import strong_pool
from damvi.voters.pool import ENOUGH, FIRST_FOLDS, HOPELESS, Judge
from damvi.votes import Votes

TRAININGS = FOLDS + 1
MOST_LOST = 0.001
"""Of average precision, by what is chosen."""


class Rule(NamedTuple):
    """How many folds decide, the shrinkage of their weights, and the least share."""

    folds: int
    shrinkage: float
    share: float

    def __str__(self) -> str:
        folds = "1 fold" if self.folds == 1 else f"{self.folds} folds"
        return f"{folds}, shrinkage {self.shrinkage:g}, share {self.share:g}"


USED = Rule(len(FIRST_FOLDS), default_setting().shrinkage, HOPELESS)
RULES = [
    Rule(folds, shrinkage, share)
    for folds, shrinkage, share in product(
        (1, 2), (0.0, default_setting().shrinkage), (0.001, 0.01, 0.02, 0.05)
    )
]


def raw_votes(place: Place, makers: dict[str, Any]) -> dict[str, Any]:
    """The voters whose votes are stored."""
    known = {name: kept_votes(place.path(name, make)) for name, make in makers.items()}
    return {name: one for name, one in known.items() if one is not None}


def judge_of(place: Place, folds: np.ndarray, rule: Rule) -> Judge:
    """As DAMVIVotingClassifier() makes it."""
    usual, targets = default_setting(), place.y[place.rows[0]]
    negatives, positives = np.bincount(targets, minlength=2)
    weight = np.array([1.0, float(negatives / positives) ** usual.balance])
    like = Votes(np.empty((len(targets), 0)), targets, folds, class_weight=weight)
    counts = (weight / weight.max())[targets]
    first = tuple(range(rule.folds))
    return Judge(like, usual.of_weights, "auto", counts, first, rule.shrinkage)


def kept_by(judge: Judge, votes: np.ndarray, voters: list[int], share: float) -> list[int]:
    if not judge.can_screen:
        return voters
    shares = judge.shares_so_far(votes, voters)
    return [k for k, moved in zip(voters, shares, strict=True) if moved >= share]


def run_place(place: Place, pools: dict[str, list[str]], makers: Any) -> list[Any]:
    """What each rule leaves of each pool, and what that is worth on the test rows."""
    said = raw_votes(place, makers)
    rows, test, _ = place.rows
    names = list(said)
    unseen, asked = (
        np.asfortranarray(np.stack([one[part] for one in said.values()], axis=1))
        for part in ("unseen", "test")
    )
    folds = next(iter(said.values()))["folds"].astype(np.int32)
    usual = default_setting()
    pool = Pool(tuple(names), unseen, asked, place.y[rows], folds)
    seconds = {name: float(one["train_seconds"]) for name, one in said.items()}
    calibrated = pool.calibrated(usual.calibration, usual.balance)
    cell = Cell(place.dataset, place.split, calibrated, place.y[test], seconds)
    found = []
    for label, wanted in pools.items():
        voters = [k for k, name in enumerate(names) if name in wanted]
        here = [names[k] for k in voters]
        whole = cell.whole_figures(here)
        for rule in RULES:
            judge = judge_of(place, folds, rule)
            kept = [names[k] for k in kept_by(judge, unseen, voters, rule.share)]
            left = [name for name in here if name not in kept]
            after = cell.whole_figures(kept) if left else whole
            spared = (TRAININGS - rule.folds) / TRAININGS
            found.append(
                {
                    "dataset": place.dataset,
                    "split": place.split,
                    "pool": label,
                    "rule": list(rule),
                    "voters": here,
                    "left_out": left,
                    "positives_judged": int(
                        place.y[rows][np.isin(folds, range(rule.folds))].sum()
                    ),
                    "ap": after.ap - whole.ap,
                    "f1": after.f1 - whole.f1,
                    "fits_saved": len(left) / len(here) * spared,
                    "seconds": sum(seconds[name] for name in here),
                    "seconds_saved": sum(seconds[name] for name in left) * spared,
                }
            )
    return found


def by_dataset(rows: list[Any], what: str) -> dict[str, float]:
    return {
        name: float(np.mean([row[what] for row in rows if row["dataset"] == name]))
        for name in sorted({row["dataset"] for row in rows})
    }


def summary(rows: list[Any]) -> dict[str, float]:
    ap, f1 = by_dataset(rows, "ap"), by_dataset(rows, "f1")
    n = max(len(ap), 2)
    saved = by_dataset(rows, "seconds_saved"), by_dataset(rows, "seconds")
    return {
        "ap": float(np.mean(list(ap.values()))),
        "ap_error": float(np.std(list(ap.values()), ddof=1) / n**0.5),
        "ap_worst": min(ap.values()),
        "f1": float(np.mean(list(f1.values()))),
        "f1_error": float(np.std(list(f1.values()), ddof=1) / n**0.5),
        "fits_saved": float(np.mean(list(by_dataset(rows, "fits_saved").values()))),
        "seconds_saved": sum(saved[0].values()) / sum(saved[1].values()),
    }


def line(label: str, found: dict[str, float]) -> str:
    return (
        f"| {label} | {found['fits_saved']:.1%} | {found['seconds_saved']:.1%} | "
        f"{found['ap']:+.4f} ± {found['ap_error']:.4f} | {found['ap_worst']:+.4f} | "
        f"{found['f1']:+.4f} ± {found['f1_error']:.4f} |"
    )


def chosen_without(rows: list[Any], dataset: str) -> Rule:
    """The rule that saves most seconds and costs little, on all datasets but one."""
    others = [row for row in rows if row["dataset"] != dataset]
    of_rule = {
        rule: summary([row for row in others if row["rule"] == list(rule)])
        for rule in RULES
    }
    fair = [rule for rule in RULES if of_rule[rule]["ap"] > -MOST_LOST]
    return max(fair or RULES, key=lambda rule: of_rule[rule]["seconds_saved"])


def page(found: list[Any], pools: dict[str, list[str]]) -> list[str]:
    lines = []
    for label in pools:
        rows = [row for row in found if row["pool"] == label]
        if not rows:
            continue
        some = {tuple(row["voters"]) for row in rows}
        lines += [f"## {label}", ""]
        lines += [f"Voters: {'; or '.join(', '.join(one) for one in sorted(some))}.", ""]
        head = "| rule | fits saved | CPU seconds saved | AP | worst dataset | F1 |"
        lines += [head, "|---|---|---|---|---|---|"]
        for rule in RULES:
            own = [row for row in rows if row["rule"] == list(rule)]
            lines.append(line(f"**{rule}**" if rule == USED else str(rule), summary(own)))
        picked: list[Any] = []
        choices: Counter[str] = Counter()
        for dataset in sorted({row["dataset"] for row in rows}):
            rule = chosen_without(rows, dataset)
            choices[str(rule)] += 1
            picked += [
                row
                for row in rows
                if row["dataset"] == dataset and row["rule"] == list(rule)
            ]
        lines.append(line("chosen without the dataset", summary(picked)))
        told = "; ".join(f"{name} ({n})" for name, n in choices.most_common())
        gone: Counter[str] = Counter()
        for row in rows:
            if row["rule"] == list(USED):
                gone.update(row["left_out"])
        n_cells = len({(row["dataset"], row["split"]) for row in rows})
        out = ", ".join(f"{name} {n}" for name, n in gone.most_common())
        lines += ["", f"Chosen: {told}.", ""]
        lines += [
            f"Left out by the rule in use, of {n_cells} splits: {out or 'nobody'}.",
            "",
        ]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/early_stopping"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--datasets", nargs="*", default=CHEAPEST_FIRST)
    args = parser.parse_args()
    extended = [name for name, _ in strong_pool(extended=True)]
    pools = {
        "The default pool": [name for name, _ in strong_pool()],
        "The extended pool": extended,
        "The eleven voters before": list(BEFORE),
    }
    makers = {**BEFORE, **{name: of_pool(name) for name in extended}}
    args.out.mkdir(parents=True, exist_ok=True)
    cells = args.out / "cells.jsonl"
    found = []
    if cells.exists():
        found = [json.loads(text) for text in cells.read_text().splitlines()]
    known = {(row["dataset"], row["split"]) for row in found}
    for place in places(args):
        if (place.dataset, place.split) in known:
            continue
        lacks = set(makers) - set(raw_votes(place, makers))
        print(place.dataset, place.split, f"lacks {sorted(lacks)}" if lacks else "")
        sys.stdout.flush()
        if lacks & set(pools["The default pool"]):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            new = run_place(place, pools, makers)
        found += new
        with cells.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
    head = ", ".join(f"{name} {number}" for name, number in sorted(versions().items()))
    n = len({(row["dataset"], row["split"]) for row in found})
    text = [
        "# Cross-validation stopped early",
        "",
        f"`python benchmarks/early_stopping.py`, {n} splits of "
        f"{len({row['dataset'] for row in found})} datasets as in results/pools, at least "
        f"{ENOUGH} rows of each class judged. Differences to the whole pool on test rows, "
        f"means over datasets ± one standard error; the rule in use in bold. {head}.",
        "",
        *page(found, pools),
    ]
    (args.out / "early_stopping.md").write_text("\n".join(text).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
