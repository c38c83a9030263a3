"""Who should vote: candidates for the strong pool, trained once and tried on stored votes.

    python benchmarks/portfolio.py train --votes FOLDER [--data FOLDER] [--splits 2]
        [--datasets ...] [--only CANDIDATE ...]
    python benchmarks/portfolio.py search --votes FOLDER [--out results/portfolio]
        [--splits 2] [--only CANDIDATE ...] [--budgets 12 50]
    python benchmarks/portfolio.py pool --votes FOLDER [--out results/portfolio]
        [--splits 5] [--only CANDIDATE ...]

``train`` adds to the folder of votes of benchmarks/pools.py, whose splits and names it
shares, and goes on where it stopped. ``search`` chooses voters for their gain in average
precision (on rows that neither voters nor weights have seen) per CPU second, from all
datasets but one at a time, and judges what it chose on the test rows of the one left out.
``pool`` judges the strong pool as it is, with and without each of its voters, and with
each voter of the pool before and each candidate that is named.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

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
from sklearn.metrics import f1_score

from damvi.decision import tune_threshold
from damvi.moments import ClassMoments
from damvi.solvers import solve
from damvi.weighting import crossfit_weights

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
        # Parameters that forests got later, at what they did before.
        if (name, value) not in (("splitter", "best"), ("bootstrap", True))
        and (value is None or isinstance(value, (bool, int, float, str)))
    ]
    return f"{type(model).__name__}({', '.join(plain)})"


def of_pool(name: str) -> Any:
    """A voter of the strong pool as it is, as a function of a seed and labels.

    One that is no longer in it is as it was before.
    """
    from damvi.voters import strong_pool

    def make(seed: int | None, y: Any) -> Any:
        pool = dict(strong_pool(seed, y, extended=True))
        return pool[name] if name in pool else BEFORE[name](seed, y)

    return make


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
        told, voter = words(make(0, self.y[self.rows[0]])), voter.rstrip("*")
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


class Figures(NamedTuple):
    """Average precision on unseen training rows; AP and F1 on test rows; CPU seconds."""

    unseen: float
    ap: float
    f1: float
    seconds: float


@dataclass(eq=False)
class Cell:
    """The calibrated votes of all voters on a split, to be tried in any combination."""

    dataset: str
    split: int
    pool: Pool
    truth: Any
    seconds: dict[str, float]
    known: dict[Any, Figures] = field(default_factory=dict)

    @cached_property
    def others(self) -> list[ClassMoments]:
        usual = default_setting()
        by_fold = usual.of_weights.moments_by_fold(votes_of(self.pool, usual.balance))
        total = sum(by_fold[1:], start=by_fold[0])
        return [total - fold for fold in by_fold]

    @cached_property
    def fold_rows(self) -> list[Any]:
        return [np.flatnonzero(self.pool.folds == f) for f in range(FOLDS)]

    def figures(self, names: Sequence[str], shrinkage: float | None = None) -> Figures:
        """What the C-bound's vote of some voters is worth, the plain vote left aside."""
        key = frozenset(names), shrinkage
        if key not in self.known:
            usual = default_setting().of_weights
            if shrinkage is not None:
                usual = usual._replace(shrinkage=shrinkage)
            some = np.array([k for k, n in enumerate(self.pool.names) if n in names])
            others = [
                ClassMoments(one.negatives.restricted(some), one.positives.restricted(some))
                for one in self.others
            ]
            learned = [usual.moments(one) for one in others]
            vote = np.empty(len(self.pool.targets))
            for rows, found in zip(
                self.fold_rows, crossfit_weights(learned, "exact"), strict=True
            ):
                weights = found.weights / found.weights.sum()
                vote[rows] = self.pool.unseen[np.ix_(rows, some)] @ weights
            # The sum of what is learned without each fold is a multiple of the whole.
            whole = usual.moments(sum(others[1:], start=others[0]))
            test = self.pool.test[:, some] @ solve(whole).weights
            flagged = test > tune_threshold(vote, self.pool.targets, "f1", smooth=True)
            self.known[key] = Figures(
                average_precision(vote, self.pool.targets == 1),
                average_precision(test, self.truth == 1),
                float(f1_score(self.truth, flagged, zero_division=0)),
                sum(self.seconds[name] for name in names),
            )
        return self.known[key]

    def whole_figures(self, names: Sequence[str]) -> Figures:
        """The same by all that DAMVIVotingClassifier does with these votes."""
        setting = default_setting()
        some = self.pool.take(lambda name: name in names)
        votes = votes_of(some, setting.balance)
        vote = weigh_by_c_bound(votes, some.test, setting.of_weights)
        found = score(vote, self.pool.targets, self.truth)
        seconds = sum(self.seconds[name] for name in names)
        return Figures(found["out_of_fold_ap"], found["ap"], found["f1"], seconds)


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
    return mean_of(by_dataset(cells, lambda cell: cell.figures(names).unseen))


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


def left_out(cells: Sequence[Cell], choose: Any) -> list[tuple[Cell, list[str]]]:
    """Each cell, with the voters that are chosen without its dataset."""
    found = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        chosen = choose([cell for cell in cells if cell.dataset != dataset])
        found += [(cell, chosen) for cell in cells if cell.dataset == dataset]
    return found


Judged = dict[str, list[Figures]]


def judged(pairs: Iterable[tuple[Cell, Sequence[str]]], *, whole: bool = False) -> Judged:
    """The figures of the vote, by dataset."""
    found: Judged = {}
    for cell, names in pairs:
        own = cell.whole_figures(names) if whole else cell.figures(names)
        found.setdefault(cell.dataset, []).append(own)
    return found


def means(found: Judged) -> np.ndarray:
    """(datasets, figures)"""
    return np.array([np.mean(own, axis=0) for own in found.values()])


def row(label: str, found: Judged, base: Judged) -> list[str]:
    """A row of a table: the means, and their differences to those of ``base``."""
    from pool_report import paired, plus_minus

    own, others = means(found), means(base)
    cells = [label]
    for figure in (1, 2):
        apart = plus_minus(*paired(own[:, figure] - others[:, figure]))
        cells += [f"{own[:, figure].mean():.4f}", "" if found is base else apart]
    return [*cells, f"{own[:, 0].mean():.4f}", f"{own[:, 3].mean():.1f}"]


HEAD = ("", "AP", "difference", "F1", "difference", "AP, unseen rows", "CPU s")


def search_page(cells: Sequence[Cell], budgets: Sequence[float]) -> list[str]:
    """Candidates alone; voters chosen without each dataset, for each budget."""
    from pool_report import markdown

    names, cost = cells[0].pool.names, costs(cells)
    base = judged([(cell, list(BEFORE)) for cell in cells])
    alone = {name: judged([(cell, [name]) for cell in cells]) for name in names}
    ordered = sorted(names, key=lambda name: -means(alone[name])[:, 1].mean())
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


def dataset_table(before: Judged, default: Judged, extended: Judged) -> list[str]:
    """What each dataset gains, and on how many splits."""
    from pool_report import markdown

    head = ("", "splits", "the pool before", "`strong_pool()`", "`extended=True`")
    aps = [means(found)[:, 1] for found in (before, default, extended)]
    rows = [
        [
            name,
            str(len(own)),
            f"{first:.4f}",
            f"{some - first:+.4f}",
            f"{most - first:+.4f}",
        ]
        for (name, own), first, some, most in zip(before.items(), *aps, strict=True)
    ]
    return markdown(head, rows)


BOOSTED_NAMES = ("lgb", "lightgbm", "xgb", "cat")


def pool_page(cells: Sequence[Cell], default: Sequence[str], names: Sequence[str]) -> Any:
    """The pool as it is: with and without each voter, by budget, without boosters."""
    from pool_report import markdown

    def of(chosen: Sequence[str], *, whole: bool = False) -> Judged:
        return judged(((cell, chosen) for cell in cells), whole=whole)

    without = [name for name in default if not name.startswith(BOOSTED_NAMES)]
    pools = {
        "the pool before": list(BEFORE),
        "`strong_pool()`": default,
        "`strong_pool(extended=True)`": names,
        "`strong_pool()` without boosters": [*without, "hist_boosting"],
        "before, without boosters": [n for n in BEFORE if n not in THEIRS],
        "LightGBM alone": ["lightgbm"],
    }
    base = of(list(BEFORE), whole=True)
    rows = [
        row(label, base if label == "the pool before" else of(own, whole=True), base)
        for label, own in pools.items()
    ]
    lines = ["## The pool", "", *markdown(HEAD, rows), ""]
    by_dataset = [base, of(default, whole=True), of(names, whole=True)]
    lines += ["## AP by dataset", "", *dataset_table(*by_dataset), ""]
    base = of(list(BEFORE))
    rows = [row(f"+ {names[k]}", of(names[: k + 1]), base) for k in range(len(names))]
    lines += ["## In order, against the pool before", "", *markdown(HEAD, rows), ""]
    for label, pool in (("default", default), ("extended", names)):
        own = of(pool)
        rows = [row(f"the {label} pool", own, own)]
        for name in pool:
            rows.append(row(f"without {name}", of([n for n in pool if n != name]), own))
        if label == "default":  # what else would do with it
            others = [n for n in cells[0].pool.names if n not in pool]
            rows += [row(f"with {name}", of([*pool, name]), own) for name in others]
        lines += [f"## With and without one, {label} pool", "", *markdown(HEAD, rows), ""]
    return [*lines, *shrinkage_lines(cells, {"default": default, "extended": names})]


SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
THEIRS = ("lightgbm", "xgboost", "catboost")


def shrinkage_lines(cells: Sequence[Cell], pools: dict[str, Sequence[str]]) -> list[str]:
    """Shrinkage by pool, and what a choice without each dataset is worth on it."""
    from pool_report import markdown, paired, plus_minus

    rows = []
    for label, pool in pools.items():
        by = np.stack([means(_by(cells, pool, one)) for one in SHRINKAGES])
        usual = SHRINKAGES.index(default_setting().shrinkage)
        for one, own in zip(SHRINKAGES, by, strict=True):
            apart = own - by[usual]
            rows.append(
                [
                    f"{label} pool, {one:g}",
                    f"{own[:, 1].mean():.4f}",
                    plus_minus(*paired(apart[:, 1])),
                    f"{own[:, 2].mean():.4f}",
                    plus_minus(*paired(apart[:, 2])),
                ]
            )
        best = [np.delete(by[:, :, 1], k, 1).mean(1).argmax() for k in range(by.shape[1])]
        honest = by[best, np.arange(by.shape[1])] - by[usual]
        chosen = sorted({SHRINKAGES[k] for k in best})
        rows.append(
            [
                f"{label} pool, chosen by AP without each dataset: {chosen}",
                "",
                plus_minus(*paired(honest[:, 1])),
                "",
                plus_minus(*paired(honest[:, 2])),
            ]
        )
    return ["## Shrinkage", "", *markdown(HEAD[:5], rows), ""]


def _by(cells: Sequence[Cell], pool: Sequence[str], shrinkage: float) -> Judged:
    found: Judged = {}
    for cell in cells:
        found.setdefault(cell.dataset, []).append(cell.figures(pool, shrinkage))
    return found


def search(args: argparse.Namespace) -> None:
    """Write search.md, by candidates, and pool.md, by the voters of the pool as it is."""
    from pools import versions

    from damvi.voters import strong_pool

    head = [f"{name} {number}" for name, number in sorted(versions().items())]
    args.out.mkdir(parents=True, exist_ok=True)
    if args.what == "search":
        makers = {**BEFORE, **{name: CANDIDATES[name] for name in args.only or CANDIDATES}}
        cells = cells_of(args, makers)
        lines = search_page(cells, args.budgets)
    else:
        names = [name for name, _ in strong_pool(extended=True)]
        default = [name for name, _ in strong_pool()]
        own = {name: of_pool(name) for name in names}
        also = {name: CANDIDATES[name] for name in args.only or ()}
        cells = cells_of(args, {**BEFORE, **own, **also})
        lines = pool_page(cells, default, names)
    intro = (
        f"{len(cells)} splits of {len({cell.dataset for cell in cells})} datasets, of "
        f"those of results/pools (70/30, at most {ROWS:,} rows with all positives). Means "
        f"over datasets; differences ± one standard error over them. CPU seconds on one "
        f"core, the folds included, as measured beside other work. {', '.join(head)}."
    )
    page = [f"# The strong pool: {args.what}", "", intro, "", *lines]
    (args.out / f"{args.what}.md").write_text("\n".join(page).rstrip() + "\n")


def main() -> int:
    from setting import add_data_option

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train", "search", "pool"))
    add_data_option(parser)
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/portfolio"))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--datasets", nargs="*", default=CHEAPEST_FIRST)
    parser.add_argument("--only", nargs="*", metavar="CANDIDATE")
    parser.add_argument("--budgets", nargs="*", type=float, default=[12.0, 50.0])
    args = parser.parse_args()
    train(args) if args.what == "train" else search(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
