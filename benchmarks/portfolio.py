"""Who should vote: candidates for the strong pool, trained once and tried on stored votes.

    python benchmarks/portfolio.py train --votes FOLDER [--data FOLDER] [--splits 2]
        [--datasets ...] [--only CANDIDATE ...]
    python benchmarks/portfolio.py search --votes FOLDER [--out results/portfolio]
        [--splits 2] [--budget 12]

``train`` adds to the folder of votes of benchmarks/pools.py, whose splits and names it
shares, and goes on where it stopped. ``search`` chooses voters for their gain in average
precision (on rows that neither voters nor weights have seen) per CPU second, from all
datasets but one at a time, and judges what it chose on the test rows of the one left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pool_contenders import (
    Pool,
    average_precision,
    default_setting,
    score,
    votes_of,
    weigh_by_c_bound,
)
from pools import FOLDS, digest, keep_votes, kept_votes, load_kernels, read, split_of
from portfolio_candidates import BEFORE, CANDIDATES

from damvi.crossfit import crossfit_weights
from damvi.moments import ClassMoments

CHEAPEST_FIRST = (
    "abalone_19",
    "ai4i2020",
    "mammography",
    "ozone_level",
    "satimage",
    "letter_img",
    "smtp_kdd99",
    "cover",
    "census_kdd_half",
    "credit_fraud",
    "scania_partial",
    "protein_homo",
    "webpage",
)
ROWS, CAP = 30_000, "negatives"
"""As in results/pools, whose votes are used again."""


def words(model: Any) -> str:
    """What a voter was told, in a form that is the same in every run (as in pools.py)."""
    told = sorted(model.get_params(deep=True).items())
    plain = [
        f"{name}={value!r}"
        for name, value in told
        if value is None or isinstance(value, (bool, int, float, str))
    ]
    return f"{type(model).__name__}({', '.join(plain)})"


def of_pool(name: str) -> Any:
    """A voter of the strong pool as it is, as a function of a seed and labels."""
    from damvi.voters import strong_pool

    return lambda seed, y: dict(strong_pool(seed, y, extended=True))[name]


@dataclass(frozen=True)
class Place:
    """A split of a dataset, and where the votes of a voter on it are."""

    dataset: str
    split: int
    X: Any
    y: Any
    folder: Path

    @cached_property
    def rows(self) -> Any:
        from paper.protocol import Protocol

        return split_of(self.y, Protocol("stratified"), ROWS, CAP, self.split)

    @cached_property
    def ground(self) -> dict[str, Any]:
        from paper.protocol import Protocol
        from paper.runner import fingerprint

        return {
            "dataset": self.dataset,
            "data": fingerprint(self.X, self.y),
            "split": self.split,
            "rows": ROWS,
            "cap": CAP,
            "folds": FOLDS,
            **Protocol("stratified").as_dict(),
        }

    def path(self, voter: str, make: Any) -> Path:
        told = words(make(0, self.y[self.rows[0]]))
        return self.folder / f"{digest({**self.ground, 'voter': voter, 'words': told})}.npz"


def places(args: argparse.Namespace) -> Iterator[Place]:
    for split in range(args.first_split, args.splits):
        for dataset in args.datasets:
            yield Place(dataset, split, *read(dataset, args.data), args.votes)


def train(args: argparse.Namespace) -> None:
    """Train what the folder of votes lacks: a dataset's candidates, then the next one's."""
    load_kernels()
    names = args.only or CANDIDATES
    some = {name: CANDIDATES.get(name) or of_pool(name) for name in names}
    for place in places(args):
        for name, make in some.items():
            path = place.path(name, make)
            if path.exists():
                continue
            try:
                found = train_one(place, name, make)
            except Exception as error:
                print(f"{place.split} {place.dataset} {name}: {error}", flush=True)
                continue
            keep_votes(path, found)
            _, test, _ = place.rows
            ap = average_precision(found["test"], place.y[test] == 1)
            took = found["train_seconds"]
            print(
                f"{place.split} {place.dataset:16} {name:14} {took:6.2f} s  AP {ap:.4f}",
                flush=True,
            )


def train_one(place: Place, name: str, make: Any) -> dict[str, Any]:
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    from damvi.voters import PoolVoters

    rows, test, seed = place.rows
    X, y = place.X[rows], place.y[rows]
    drawn = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        voter, votes, folds = PoolVoters.train(
            [(name, make(drawn, y))], X, y, seed=drawn, cv=FOLDS, n_jobs=1
        )
        trained = time.process_time()
        asked = voter.votes(place.X[test], 1)[:, 0]
    return {
        "unseen": votes[:, 0],
        "test": asked,
        "folds": folds.astype(np.int8),
        "train_seconds": np.array(trained - start),
        "ask_seconds": np.array(time.process_time() - trained),
    }


@dataclass(eq=False)
class Cell:
    """The calibrated votes of all voters on a split, to be tried in any combination."""

    dataset: str
    split: int
    pool: Pool
    truth: Any
    seconds: dict[str, float]
    known: dict[frozenset[str], float] = field(default_factory=dict)

    @cached_property
    def others(self) -> list[ClassMoments]:
        usual = default_setting()
        by_fold = usual.of_weights.moments_by_fold(votes_of(self.pool, usual.balance))
        total = sum(by_fold[1:], start=by_fold[0])
        return [total - fold for fold in by_fold]

    @cached_property
    def fold_rows(self) -> list[Any]:
        return [np.flatnonzero(self.pool.folds == f) for f in range(FOLDS)]

    def unseen_ap(self, names: frozenset[str]) -> float:
        """Average precision of the cross-fitted vote of some voters."""
        if names not in self.known:
            usual = default_setting().of_weights
            some = np.array([k for k, n in enumerate(self.pool.names) if n in names])
            learned = [
                usual.moments(
                    ClassMoments(
                        one.negatives.restricted(some), one.positives.restricted(some)
                    )
                )
                for one in self.others
            ]
            vote = np.empty(len(self.pool.targets))
            for rows, found in zip(
                self.fold_rows, crossfit_weights(learned, "exact"), strict=True
            ):
                weights = found.weights / found.weights.sum()
                vote[rows] = self.pool.unseen[np.ix_(rows, some)] @ weights
            self.known[names] = average_precision(vote, self.pool.targets == 1)
        return self.known[names]

    def judged(self, names: Sequence[str], **changes: Any) -> dict[str, float]:
        """What the vote of these voters is worth on the test rows, and its seconds."""
        setting = default_setting()._replace(**changes)
        some = self.pool.take(lambda name: name in names)
        vote = weigh_by_c_bound(
            votes_of(some, setting.balance), some.test, setting.of_weights
        )
        found = score(vote, self.pool.targets, self.truth)
        return {
            "ap": found["ap"],
            "f1": found["f1"],
            "log_loss": found["log_loss"],
            "seconds": sum(self.seconds[name] for name in names),
        }


def cells_of(args: argparse.Namespace, makers: dict[str, Any]) -> list[Cell]:
    """All splits whose votes are there for every voter; voters that lack any are named."""
    found, balance = [], default_setting().balance
    for place in places(args):
        known = {name: kept_votes(place.path(name, make)) for name, make in makers.items()}
        missing = [name for name, one in known.items() if one is None]
        if missing:
            print(f"{place.dataset} {place.split} lacks {', '.join(missing)}", flush=True)
            continue
        rows, test, _ = place.rows
        unseen, asked = (
            np.asfortranarray(np.stack([one[part] for one in known.values()], axis=1))
            for part in ("unseen", "test")
        )
        folds = next(iter(known.values()))["folds"].astype(np.int32)
        pool = Pool(tuple(known), unseen, asked, place.y[rows], folds)
        seconds = {name: float(one["train_seconds"]) for name, one in known.items()}
        found.append(
            Cell(
                place.dataset,
                place.split,
                pool.calibrated("auto", balance),
                place.y[test],
                seconds,
            )
        )
    return found


def mean_of(values: dict[str, list[float]]) -> float:
    """The mean over datasets of the means over their splits."""
    return float(np.mean([np.mean(own) for own in values.values()]))


def by_dataset(cells: Sequence[Cell], value: Any) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for cell in cells:
        found.setdefault(cell.dataset, []).append(value(cell))
    return found


def unseen_ap(cells: Sequence[Cell], names: Sequence[str]) -> float:
    return mean_of(by_dataset(cells, lambda cell: cell.unseen_ap(frozenset(names))))


def costs(cells: Sequence[Cell]) -> dict[str, float]:
    names = cells[0].pool.names
    return {
        name: mean_of(by_dataset(cells, lambda cell, name=name: cell.seconds[name]))
        for name in names
    }


def grow(
    cells: Sequence[Cell],
    among: Sequence[str],
    budget: float,
    *,
    start: Sequence[str] = (),
    least_gain: float = 1e-4,
) -> list[str]:
    """Voters in the order of what they add for their price, while the budget lasts.

    The first is the one that is best alone, at a price of .001 AP a second.
    """
    cost, chosen = costs(cells), list(start)
    while True:
        spent = sum(cost[name] for name in chosen)
        left = [n for n in among if n not in chosen and spent + cost[n] <= budget]
        if not left:
            return chosen
        worth = {name: unseen_ap(cells, [*chosen, name]) for name in left}
        if not chosen:
            chosen.append(max(left, key=lambda name: worth[name] - 0.001 * cost[name]))
            continue
        now = unseen_ap(cells, chosen)
        best = max(left, key=lambda name: (worth[name] - now) / (0.5 + cost[name]))
        if worth[best] - now < least_gain:
            return chosen
        chosen.append(best)


# What a choice of voters is worth on datasets that had no part in it.

FIGURES = ("ap", "f1", "log_loss", "seconds")


def left_out(cells: Sequence[Cell], choose: Any) -> list[tuple[Cell, list[str]]]:
    """Each cell, with the voters that are chosen without its dataset."""
    found = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        chosen = choose([cell for cell in cells if cell.dataset != dataset])
        found += [(cell, chosen) for cell in cells if cell.dataset == dataset]
    return found


def judged(
    pairs: Sequence[tuple[Cell, Sequence[str]]],
) -> dict[str, dict[str, list[float]]]:
    """Figures on the test rows, by figure and dataset."""
    found: dict[str, dict[str, list[float]]] = {figure: {} for figure in FIGURES}
    for cell, names in pairs:
        own = cell.judged(names)
        for figure in FIGURES:
            found[figure].setdefault(cell.dataset, []).append(own[figure])
    return found


def row(label: str, found: Any, base: Any) -> list[str]:
    """A row of a table: the means, and their differences to those of ``base``."""
    from pool_report import paired, plus_minus

    cells = [label]
    for figure in ("ap", "f1"):
        apart = [
            np.mean(found[figure][name]) - np.mean(base[figure][name])
            for name in found[figure]
        ]
        cells += [
            f"{mean_of(found[figure]):.4f}",
            "" if found is base else plus_minus(*paired(np.array(apart))),
        ]
    return [*cells, f"{mean_of(found['log_loss']):.5f}", f"{mean_of(found['seconds']):.1f}"]


HEAD = ("", "AP", "difference", "F1", "difference", "log loss", "CPU s")


def search_page(cells: Sequence[Cell], budgets: Sequence[float]) -> list[str]:
    """Candidates alone; voters chosen without each dataset, for each budget."""
    from pool_report import markdown

    names, cost = cells[0].pool.names, costs(cells)
    base = judged([(cell, list(BEFORE)) for cell in cells])
    alone = {name: judged([(cell, [name]) for cell in cells]) for name in names}
    ordered = sorted(names, key=lambda name: -mean_of(alone[name]["ap"]))
    lines = ["## Alone", "", *markdown(HEAD, [row(n, alone[n], base) for n in ordered]), ""]
    rows = [row("the pool before", base, base)]
    for budget in budgets:
        pairs = left_out(cells, lambda some, budget=budget: grow(some, names, budget))
        rows.append(row(f"chosen for {budget:g} s without it", judged(pairs), base))
        by_name = {cell.dataset: chosen for cell, chosen in pairs}
        lines += [f"## Chosen for {budget:g} s, leaving one dataset out", ""]
        lines += [f"- without {one}: {', '.join(own)}" for one, own in by_name.items()]
        whole = grow(cells, names, budget)
        lines += [f"- of all: {', '.join(whole)}", ""]
    few = [name for name in names if not name.startswith(BOOSTED_NAMES)]
    pairs = left_out(cells, lambda some: grow(some, few, budgets[0]))
    rows.append(row(f"without boosters, {budgets[0]:g} s", judged(pairs), base))
    order = grow(cells, names, budgets[-1])
    for k in range(1, len(order) + 1):
        label = f"{k}: + {order[k - 1]} ({cost[order[k - 1]]:.1f} s)"
        rows.append(row(label, judged([(cell, order[:k]) for cell in cells]), base))
    return [*lines, "## The vote, on test rows", "", *markdown(HEAD, rows), ""]


BOOSTED_NAMES = ("lgb", "lightgbm", "xgb", "cat")


def pool_page(cells: Sequence[Cell], default: Sequence[str], names: Sequence[str]) -> Any:
    """The pool as it is: with and without each voter, by budget, without boosters."""
    from pool_report import markdown

    base = judged([(cell, list(BEFORE)) for cell in cells])

    def line(label: str, chosen: Sequence[str], against: Any = base) -> list[str]:
        return row(label, judged([(cell, chosen) for cell in cells]), against)

    rows = [row("the pool before", base, base)]
    rows += [line("`strong_pool()`", default)]
    rows += [line("`strong_pool(extended=True)`", names)]
    few = [name for name in default if not name.startswith(BOOSTED_NAMES)]
    rows += [line("`strong_pool()` without boosters", few)]
    some = [name for name in BEFORE if name not in ("lightgbm", "xgboost", "catboost")]
    rows += [line("the pool before, without boosters", some)]
    lines = ["## The pool", "", *markdown(HEAD, rows), "", "## In order", ""]
    rows = [line(f"+ {names[k]}", names[: k + 1]) for k in range(len(names))]
    lines += [*markdown(HEAD, rows), ""]
    for label, pool in (("default", default), ("extended", names)):
        own = judged([(cell, pool) for cell in cells])
        rows = [row(f"the {label} pool", own, own)]
        rows += [
            line(f"without {name}", [one for one in pool if one != name], own)
            for name in pool
        ]
        lines += [f"## Without one, {label} pool", "", *markdown(HEAD, rows), ""]
    return lines


def main() -> int:
    from setting import add_data_option

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train",))
    add_data_option(parser)
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--datasets", nargs="*", default=CHEAPEST_FIRST)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    train(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
