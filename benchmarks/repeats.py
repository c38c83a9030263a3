"""What a longer fit could buy: the models of the folds kept, and more folds.

    python benchmarks/repeats.py train --votes FOLDER [--data FOLDER] [--splits 2]
        [--repeats 3] [--datasets ...] [--only VOTER ...]
    python benchmarks/repeats.py report --votes FOLDER [--out results/repeats]

A voter of the strong pool is trained on five folds and once on all rows, and the model of
all rows answers. Here the models of the folds answer too, or alone, and the five folds are
drawn again by other seeds: a training row's vote is then the mean over the repeats, each by
a model that was not trained on the row, and a test row's the mean of all models. Splits and
rows are those of benchmarks/portfolio.py; with ``--small 70`` at most 70 positives and
2,000 negatives of the training rows are used, and the test rows stay. ``train`` goes on
where it stopped.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
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
from pools import FOLDS, digest, keep_votes, kept_votes, load_kernels
from portfolio import CHEAPEST_FIRST, Place, of_pool, places, words
from report_parts import beside

FIVE = ("lightgbm", "extra_trees", "spline_linear", "lightgbm_pairs", "balanced_forest")
MOST_NEGATIVES = 2000
"""Of a small table."""
NINE = (*FIVE, "random_forest", "forest", "xgboost", "catboost")
"""Once the extended pool."""
TEN = (*FIVE, "lightgbm_pairs_slow", "catboost", "networks", "xgboost", "forest")
"""The extended pool."""


@dataclass(frozen=True)
class SmallPlace(Place):
    """A split of which few training rows are used."""

    positives: int = 70

    @property
    def most(self) -> tuple[int, int]:
        return MOST_NEGATIVES, self.positives

    @cached_property
    def rows(self) -> Any:
        train, test, seed = super().rows
        y, rng = self.y[train], np.random.default_rng([seed, 11])
        some = [
            rng.permutation(np.flatnonzero(y == label))[:most]
            for label, most in enumerate(self.most)
        ]
        return train[np.sort(np.concatenate(some))], test, seed

    @cached_property
    def ground(self) -> dict[str, Any]:
        return {**super().ground, "most": self.most}


def some_places(args: argparse.Namespace) -> Iterator[Place]:
    for place in places(args):
        yield SmallPlace(**vars(place), positives=args.small) if args.small else place


def path_of(place: Place, name: str, make: Any, repeat: int) -> Path:
    told = words(make(0, place.y[place.rows[0]]))
    key = {**place.ground, "voter": name, "words": told, "repeat": repeat}
    return place.folder / f"repeat_{digest(key)}.npz"


def train(args: argparse.Namespace) -> None:
    load_kernels()
    makers = {name: of_pool(name) for name in args.only or NINE}
    for place in some_places(args):
        for repeat in range(args.repeats):
            for name, make in makers.items():
                path = path_of(place, name, make, repeat)
                if not path.exists():
                    found = train_one(place, name, make, repeat)
                    keep_votes(path, found)
                    _, test, _ = place.rows
                    ap = average_precision(found["test"].mean(axis=0), place.y[test] == 1)
                    print(
                        f"{place.split} {place.dataset:16} {repeat} {name:16} "
                        f"{found['seconds'].sum():6.2f} s  AP {ap:.4f}",
                        flush=True,
                    )


def train_one(place: Place, name: str, make: Any, repeat: int) -> dict[str, Any]:
    """Votes of the five folds, on their rows and on the test rows, and of all rows."""
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    from damvi.folds import split_rows
    from damvi.voters import VoteReader
    from damvi.voters.pool import ALL_ROWS, train_voter

    rows, test, seed = place.rows
    X, y = place.X[rows], place.y[rows]
    drawn = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    read_vote = VoteReader(np.arange(2), "soft")
    model_seed = drawn + 7919 * repeat
    train_rows, folds, _ = split_rows(FOLDS, X, y, None, seed=model_seed)
    unseen = np.empty(len(y), np.float32)
    asked, seconds = [], []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold, some in enumerate((*train_rows, np.arange(len(y)))):
            start = time.process_time()
            place_of = fold if fold < FOLDS else ALL_ROWS
            model = train_voter(
                name, make(drawn, y), place_of, X, y, some, None, {}, model_seed
            )
            seconds.append(time.process_time() - start)
            if fold < FOLDS:
                unseen[folds == fold] = read_vote(model, X[folds == fold])
            asked.append(read_vote(model, place.X[test]))
            if fold == FOLDS - 1 and repeat:
                break
    return {
        "unseen": unseen,
        "test": np.stack(asked),
        "folds": folds.astype(np.int8),
        "seconds": np.array(seconds),
    }


class Variant(NamedTuple):
    """Who votes, how often the folds are drawn, and which models answer."""

    pool: str
    repeats: int
    answer: str

    def __str__(self) -> str:
        times = f", {self.repeats} repeats" if self.repeats > 1 else ""
        return f"{self.pool} voters, {self.answer}{times}"


ALL_ROWS_MODEL, FOLD_MODELS, BOTH = "all rows", "folds", "folds and all rows"
POOLS = {"five": FIVE, "nine": NINE}
VARIANTS = [
    Variant(pool, repeats, answer)
    for pool in POOLS
    for repeats, answer in (
        (1, ALL_ROWS_MODEL),
        (1, FOLD_MODELS),
        (1, BOTH),
        (2, ALL_ROWS_MODEL),
        (2, FOLD_MODELS),
        (3, ALL_ROWS_MODEL),
        (3, FOLD_MODELS),
        (3, BOTH),
    )
]


def judge(
    place: Place, kept: dict[tuple[str, int], Any], variant: Variant
) -> dict[str, Any]:
    """What DAMVI makes of these votes, on the test rows."""
    rows, test, _ = place.rows
    names, repeats = POOLS[variant.pool], range(variant.repeats)
    unseen, asked, seconds = [], [], 0.0
    for name in names:
        own = [kept[name, repeat] for repeat in repeats]
        unseen.append(np.mean([one["unseen"] for one in own], axis=0))
        folds = [one["test"][:FOLDS] for one in own]
        whole = [own[0]["test"][FOLDS:]]
        models = {ALL_ROWS_MODEL: whole, FOLD_MODELS: folds, BOTH: folds + whole}
        asked.append(np.concatenate(models[variant.answer]).mean(axis=0))
        seconds += sum(one["seconds"][:FOLDS].sum() for one in own)
        if variant.answer != FOLD_MODELS:
            seconds += own[0]["seconds"][FOLDS]
    setting = default_setting()
    pool = Pool(
        names,
        np.asfortranarray(np.stack(unseen, axis=1).astype(np.float32)),
        np.asfortranarray(np.stack(asked, axis=1).astype(np.float32)),
        place.y[rows],
        kept[names[0], 0]["folds"].astype(np.int32),
    ).calibrated("auto", setting.balance)
    vote = weigh_by_c_bound(votes_of(pool, setting.balance), pool.test, setting.of_weights)
    return {**score(vote, pool.targets, place.y[test]), "seconds": seconds}


def report(args: argparse.Namespace) -> None:
    """Each variant beside the first of its pool, by dataset."""
    load_kernels()
    makers = {name: of_pool(name) for name in NINE}
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    n_splits = 0
    for place in some_places(args):
        kept = {
            (name, repeat): kept_votes(path_of(place, name, make, repeat))
            for name, make in makers.items()
            for repeat in range(args.repeats)
        }
        if any(one is None for one in kept.values()):
            print(f"{place.dataset} {place.split} is not complete", flush=True)
            continue
        n_splits += 1
        for variant in VARIANTS:
            own = cells.setdefault(str(variant), {}).setdefault(place.dataset, [])
            own.append(judge(place, kept, variant))
    lines = [
        f"{len(cells[str(VARIANTS[0])])} datasets, {n_splits} splits; means over datasets, "
        f"and paired differences from five voters whose model of all rows answers (as by "
        f"default), with their standard errors over datasets",
        "",
        *beside(cells, lambda words: str(VARIANTS[0])),
    ]
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "repeats.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=["train", "report"])
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/repeats"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--small", type=int, metavar="POSITIVES")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    parser.add_argument("--only", nargs="+", choices=NINE)
    args = parser.parse_args()
    args.votes.mkdir(parents=True, exist_ok=True)
    {"train": train, "report": report}[args.do](args)


if __name__ == "__main__":
    main()
