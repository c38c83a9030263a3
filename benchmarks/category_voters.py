"""CatBoost with its own handling of categories, and networks, beside the strong pool.

    python benchmarks/category_voters.py train --packages FOLDER --votes FOLDER
        [--data FOLDER] [--splits 1]
    python benchmarks/category_voters.py report --votes FOLDER [--out results/categories]

The tables of ``categories.py``, at most 3,000 rows to train on and 10,000 others. The nine
voters of the extended pool see categories as numbers (or as class rates, where there are
more than 100); ``cat_native300`` is the pool's CatBoost on the categories themselves, and
``nets`` the mean of ten small networks. ``train`` goes on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pandas as pd
from candidates import networks
from categories import CENSUS, SOURCES, read
from pools import keep_votes, kept_votes, load_kernels
from repeats import ALL_ROWS_MODEL, FIVE, NINE, POOLS, Variant, judge, train_one
from report_parts import beside
from setting import add_data_option
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline

from damvi.voters import RateEncoder, strong_pool

MOST_TRAINED, MOST_SCORED, TRAIN_SHARE = 3_000, 10_000, 0.7
NEW = ("cat_native300", "nets")
JOINED = {
    "five": FIVE,
    "five and CatBoost on categories": (*FIVE, NEW[0]),
    "five and networks": (*FIVE, NEW[1]),
    "nine": NINE,
    "nine and CatBoost on categories": (*NINE, NEW[0]),
    "nine and networks": (*NINE, NEW[1]),
    "nine and both": (*NINE, *NEW),
}


class CategoryBoost(ClassifierMixin, BaseEstimator):
    """The pool's CatBoost, on categories as they are."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: Any) -> Self:
        from catboost import CatBoostClassifier

        self.names_ = [name for name in X if str(X[name].dtype) == "category"]
        self.model_ = CatBoostClassifier(
            iterations=300,
            learning_rate=0.05,
            thread_count=1,
            random_state=self.random_state,
            verbose=False,
            allow_writing_files=False,
        )
        self.model_.fit(self._texts(X), y, cat_features=self.names_)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model_.predict_proba(self._texts(X))

    def _texts(self, X: pd.DataFrame) -> pd.DataFrame:
        X = X.copy()
        for name in self.names_:
            known = X[name].notna()
            X[name] = X[name].astype(object).where(known, "missing").astype(str)
        return X


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


def train(args: argparse.Namespace) -> None:
    args.votes.mkdir(parents=True, exist_ok=True)
    for place in places(args):
        y = place.y[place.rows[0]]
        pool = dict(strong_pool(None, y, rates=True, extended=True))
        steps = [step for _, step in networks()(0, y).steps]
        pool |= {NEW[0]: CategoryBoost(), NEW[1]: make_pipeline(RateEncoder(), *steps)}
        for name, model in pool.items():
            path = path_of(args, place, name)
            if not path.exists():
                keep_votes(path, train_one(place, name, lambda *_, m=model: m, 0))
                print(place.name, place.split, name, flush=True)


def report(args: argparse.Namespace) -> None:
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for place in places(args):
        kept = {(k, 0): kept_votes(path_of(args, place, k)) for k in (*NINE, *NEW)}
        if any(one is None for one in kept.values()):
            raise SystemExit(f"{place.name} {place.split} is not complete")
        for words, voters in JOINED.items():
            POOLS["joined"] = voters
            found = judge(place, kept, Variant("joined", 1, ALL_ROWS_MODEL))
            cells.setdefault(words, {}).setdefault(place.name, []).append(found)
    lines = [
        "# CatBoost on categories, and networks, beside the strong pool",
        "",
        f"{len(cells['nine'])} tables with categories, {args.splits} split(s) of each; "
        f"means over tables, and paired differences with their standard errors over "
        f"tables. By `benchmarks/category_voters.py`. None of these voters is in the pool.",
        "",
        *beside(cells, lambda words: words.split(" and ")[0]),
    ]
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "voters.md").write_text("\n".join(lines), encoding="utf-8")


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
    args = parser.parse_args()
    load_kernels()
    {"train": train, "report": report}[args.do](args)


if __name__ == "__main__":
    main()
