"""What else could learn from categories, beside the strong pool.

    python benchmarks/category_voters.py train --packages FOLDER --votes FOLDER
        [--data FOLDER] [--splits 1] [--base ten]
    python benchmarks/category_voters.py report --packages FOLDER --votes FOLDER
        [--data FOLDER] [--splits 1] [--base ten] [--out results/categories]

The tables of ``categories.py``, at most 3,000 rows to train on and 10,000 others. Nine
voters, which were once the extended pool, see categories as numbers (or as class rates,
where there are more than 100). ``cat_native300`` is the pool's CatBoost on the categories
themselves, ``ten_networks`` the mean of ten small networks, and ``lightgbm_pairs_pr`` sees
class rates of pairs of categories beside arithmetic of pairs. Ten voters are today's
extended pool, with CatBoost on numbers or, in its place, on categories. ``--base`` takes
one of the three pools alone. ``train`` goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pandas as pd
from categories import CENSUS, SOURCES, read
from pools import keep_votes, kept_votes, load_kernels
from repeats import ALL_ROWS_MODEL, FIVE, NINE, POOLS, TEN, Variant, judge, train_one
from report_parts import beside
from setting import add_data_option
from sklearn.pipeline import make_pipeline

from damvi.voters import (
    CategoryBoostingClassifier,
    FastForestClassifier,
    NetworksClassifier,
    NumberEncoder,
    RateEncoder,
    strong_pool,
)
from damvi.voters.columns import RankScaler, scaled_table
from damvi.voters.columns import _class_shares as class_shares
from damvi.voters.columns import _rates as class_rates
from damvi.voters.columns import _splits as folds_of

MOST_TRAINED, MOST_SCORED, TRAIN_SHARE = 3_000, 10_000, 0.7
NEW = ("cat_native300", "ten_networks", "lightgbm_pairs_pr")


def with_rates(pool: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(NEW[2] if name == "lightgbm_pairs" else name for name in pool)


JOINED = {
    "five": FIVE,
    "five and CatBoost on categories": (*FIVE, NEW[0]),
    "five and ten networks": (*FIVE, NEW[1]),
    "five and rates of pairs": with_rates(FIVE),
    "nine": NINE,
    "nine and CatBoost on categories": (*NINE, NEW[0]),
    "nine and ten networks": (*NINE, NEW[1]),
    "nine and rates of pairs": with_rates(NINE),
    "nine and CatBoost on categories, rates of pairs": (*with_rates(NINE), NEW[0]),
    "ten": TEN,
    "ten and CatBoost on categories, in place of numbers": tuple(
        NEW[0] if name == "catboost" else name for name in TEN
    ),
    "ten and CatBoost on categories": (*TEN, NEW[0]),
}


def catboost_on_numbers() -> Any:
    """The pool's CatBoost as it was, with categories as numbers and rates."""
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=300,
        learning_rate=0.05,
        thread_count=1,
        random_state=0,
        verbose=False,
        allow_writing_files=False,
    )
    return make_pipeline(RateEncoder(), NumberEncoder(), model)


class PairRates(NumberEncoder):
    """Columns as numbers, with class rates of categories and of pairs of categories.

    What two categories say together, trees only find by many splits. Paired are the
    categorical columns whose rates differ most beyond chance. Rates are shrunk and
    cross-fitted like those of :class:`RateEncoder`; pairs that were not seen in ``fit``
    have the overall rate. Tables without categories have no rates.
    """

    def __init__(self, n_columns: int = 6, random_state: int | None = None) -> None:
        self.n_columns = n_columns
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories, and their rates from all rows."""
        super().fit(X)
        sizes, spread = self.sizes, {}
        shares = class_shares(y)
        numbers = super().transform(X) if sizes else X
        for f in sizes:
            places = self._places(numbers, (f,))
            spread[f] = class_rates(places, sizes[f], shares)[places].var(axis=0).sum()
        chosen = sorted(sizes, key=lambda f: -spread[f])[: self.n_columns]
        self.columns_: Any = np.sort(np.array(chosen, dtype=np.int64))
        self.rates_: Any = []
        for group in self.groups:
            n = math.prod(sizes[f] for f in group)
            self.rates_.append(class_rates(self._places(numbers, group), n, shares)[:n])
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Learn the rates, and give each row those learned on the other folds."""
        numbers = super(PairRates, self.fit(X, y)).transform(X)
        if not self.rates_:
            return numbers
        shares, made = class_shares(y), []
        splits = folds_of(np.asarray(y), self.random_state)
        for group, known in zip(self.groups, self.rates_, strict=True):
            places = self._places(numbers, group)
            own = np.empty((len(places), shares.shape[1]))
            for train, test in splits:
                rates = class_rates(places[train], len(known), shares[train])
                own[test] = rates[places[test]]
            made.append(own)
        return np.hstack([numbers, *made])

    def transform(self, X: Any) -> Any:
        """Convert the columns to numbers, and append the rates."""
        numbers = super().transform(X)
        if not self.rates_:
            return numbers
        found = zip(self.groups, self.rates_, strict=True)
        made = [rates[self._places(numbers, group)] for group, rates in found]
        return np.hstack([numbers, *made])

    @property
    def sizes(self) -> dict[int, int]:
        """Places of each categorical column: its categories, missing, and unknown."""
        known = [] if self.categories_ is None else self.categories_.by_column
        return {f: len(own) + 2 for f, own in enumerate(known) if isinstance(own, dict)}

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The columns that have rates, one by one and in pairs."""
        return [(f,) for f in self.columns_.tolist()] + list(
            combinations(self.columns_.tolist(), 2)
        )

    def _places(self, numbers: Any, group: tuple[int, ...]) -> Any:
        """Of each row in the table of rates of a group."""
        place, sizes = np.zeros(len(numbers), np.intp), self.sizes
        for f in group:
            own, size = numbers[:, f], sizes[f]
            own = np.where(np.isnan(own), size - 2, np.where(own < 0, size - 1, own))
            place = place * size + own.astype(np.intp)
        return place


class Rows:
    """A dataframe that is indexed by rows, as arrays are."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __getitem__(self, rows: Any) -> pd.DataFrame:
        return self.frame.iloc[rows].reset_index(drop=True)


def places(args: argparse.Namespace) -> Iterator[Any]:
    for name in (*SOURCES, CENSUS):
        X, y = read(name, args.packages, args.data)
        n = min(MOST_TRAINED, int(TRAIN_SHARE * len(y)))
        for split in range(args.splits):
            order = np.random.RandomState(split).permutation(len(y))
            rows = order[:n], order[n : n + MOST_SCORED], split
            yield SimpleNamespace(name=name, split=split, X=Rows(X), y=y, rows=rows)


def path_of(args: argparse.Namespace, place: Any, voter: str) -> Path:
    return Path(args.votes) / f"{place.name}_{place.split}_{voter}.npz"


def joined(args: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """The pools that are asked for."""
    bases = (args.base,) if args.base else ("five", "nine", "ten")
    return {words: own for words, own in JOINED.items() if words.split(" ")[0] in bases}


def voters_of(pools: dict[str, tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(name for own in pools.values() for name in own))


def train(args: argparse.Namespace) -> None:
    args.votes.mkdir(parents=True, exist_ok=True)
    for place in places(args):
        y = place.y[place.rows[0]]
        pool = dict(strong_pool(None, y, rates=True, extended=True))
        pairs = [step for _, step in pool["lightgbm_pairs"].steps]
        forest = FastForestClassifier(200, max_features=1, n_jobs=1)
        ranks = scaled_table(RankScaler())
        pool |= {
            "random_forest": make_pipeline(RateEncoder(), forest),
            "catboost": catboost_on_numbers(),
            NEW[0]: CategoryBoostingClassifier(),
            NEW[1]: make_pipeline(RateEncoder(), ranks, NetworksClassifier(10)),
            NEW[2]: make_pipeline(pairs[0], PairRates(), *pairs[2:]),
        }
        for name in voters_of(joined(args)):
            path, model = path_of(args, place, name), pool[name]
            if not path.exists():
                keep_votes(path, train_one(place, name, lambda *_, m=model: m, 0))
                print(place.name, place.split, name, flush=True)


def report(args: argparse.Namespace) -> None:
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    pools = joined(args)
    for place in places(args):
        known = voters_of(pools)
        kept = {(k, 0): kept_votes(path_of(args, place, k)) for k in known}
        if any(one is None for one in kept.values()):
            raise SystemExit(f"{place.name} {place.split} is not complete")
        for words, voters in pools.items():
            POOLS["joined"] = voters
            found = judge(place, kept, Variant("joined", 1, ALL_ROWS_MODEL))
            cells.setdefault(words, {}).setdefault(place.name, []).append(found)
    lines = [
        "# What else could learn from categories, beside the strong pool",
        "",
        f"{len(cells[next(iter(pools))])} tables with categories, {args.splits} split(s) "
        f"of each; means over tables, and paired differences with their standard errors "
        f"over tables. By `benchmarks/category_voters.py`.",
        "",
        *beside(cells, lambda words: words.split(" and ")[0]),
    ]
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    name = f"voters_{args.base}.md" if args.base else "voters.md"
    (args.out / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_option(parser)
    parser.add_argument("do", choices=["train", "report"])
    parser.add_argument("--packages", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--votes", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("results/categories"))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--base", choices=["five", "nine", "ten"])
    args = parser.parse_args()
    load_kernels()
    {"train": train, "report": report}[args.do](args)


if __name__ == "__main__":
    main()
