"""Who else could vote beside the strong pool, where positives are few.

    python benchmarks/candidates.py train --votes FOLDER [--data FOLDER] [--splits 3]
        [--base ten] [--datasets ...] [--only VOTER ...]
    python benchmarks/candidates.py report --votes FOLDER [--base ten]
        [--only CANDIDATE ...] [--out results/candidates]

Each candidate is trained on small tables (at most 70 positives and 2,000 negatives of the
development datasets, as ``repeats.py --small 70`` has them, and in the same folder), and
joins the five voters of the default pool and the ten of the extended one, or with
``--base nine`` the nine that it had before. ``train`` trains these too, and goes on where
it stopped. ``report`` shows the candidates that have all their votes. ``ebm`` needs
interpret-core, which damvi does without.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pool_contenders import average_precision
from pools import keep_votes, kept_votes, load_kernels
from portfolio import CHEAPEST_FIRST, of_pool
from repeats import (
    ALL_ROWS_MODEL,
    FIVE,
    NINE,
    POOLS,
    TEN,
    Variant,
    judge,
    path_of,
    some_places,
    train_one,
)
from report_parts import beside
from sklearn.ensemble import BaggingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from damvi.voters import NumberEncoder
from damvi.voters.columns import RankScaler, RankSplines, scaled_table

Make = Callable[[int, NDArray[Any]], Any]
POSITIVES = 70
BATCH = 200


def catboost(**options: Any) -> Make:
    def make(seed: int, y: NDArray[Any]) -> Any:
        from catboost import CatBoostClassifier

        quiet = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
        model = CatBoostClassifier(random_state=seed or 0, **quiet, **options)
        return make_pipeline(NumberEncoder(), model)

    return make


def networks(
    layers: tuple[int, ...] = (64,),
    n_networks: int = 10,
    amounts: Callable[[], Any] = RankScaler,
    *,
    alpha: float = 0.01,
    most_epochs: int = 60,
) -> Make:
    """The mean of some networks that differ by their seeds."""

    def make(seed: int, y: NDArray[Any]) -> Any:
        # About a thousand steps; a tolerance that nothing passes ends training after
        # these epochs, with no warning.
        epochs = int(np.clip(1000 * BATCH / len(y), 10, most_epochs))
        network = MLPClassifier(
            layers,
            alpha=alpha,
            learning_rate_init=0.005,
            n_iter_no_change=epochs,
            tol=1e6,
            random_state=seed,
        )
        mean = BaggingClassifier(network, n_networks, bootstrap=False, random_state=seed)
        return make_pipeline(scaled_table(amounts()), mean)

    return make


def neighbours(k: int) -> Make:
    def make(seed: int, y: NDArray[Any]) -> Any:
        model = KNeighborsClassifier(k, weights="distance")
        return make_pipeline(scaled_table(RankScaler()), model)

    return make


def fourier(n_components: int, C: float = 10.0) -> Make:
    """A linear model of random Fourier features, for a kernel as wide as all columns."""

    def make(seed: int, y: NDArray[Any]) -> Any:
        # One over the number of columns, times their variance.
        features = RBFSampler(gamma="scale", n_components=n_components, random_state=seed)
        model = LogisticRegression(C=C, max_iter=1000, random_state=seed)
        return make_pipeline(scaled_table(RankScaler()), features, model)

    return make


def explainable_boosting(seed: int, y: NDArray[Any]) -> Any:
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        raise SystemExit(
            "ebm needs interpret-core (python -m pip install interpret-core); "
            "without it, name the other candidates with --only"
        ) from None
    model = ExplainableBoostingClassifier(outer_bags=4, n_jobs=1, random_state=seed)
    return make_pipeline(NumberEncoder(), model)


BASES = {"nine": NINE, "ten": TEN}
CANDIDATES: dict[str, Make] = {
    "cat_default": catboost(),
    "cat_d4": catboost(iterations=500, learning_rate=0.05, depth=4),
    "netbag10": networks(),
    "nets_a1": networks(alpha=1.0),
    "nets_short": networks(most_epochs=25),
    "nets_2x": networks((64, 64)),
    "nets_sp": networks(amounts=RankSplines),
    "neighbours_15": neighbours(15),
    "neighbours_50": neighbours(50),
    "fourier_300": fourier(300),
    "fourier_1000": fourier(1000),
    "fourier_1000_c1": fourier(1000, C=1.0),
    "ebm": explainable_boosting,
}
DESCRIPTIONS = {
    "cat_default": "CatBoost at its defaults",
    "cat_d4": "CatBoost, 500 trees of depth 4",
    "netbag10": "10 networks of 64 units on ranks",
    "nets_a1": "the same, with alpha 1",
    "nets_short": "the same, for 25 epochs",
    "nets_2x": "the same, with two layers",
    "nets_sp": "the same, on splines",
    "neighbours_15": "15 nearest neighbours",
    "neighbours_50": "50 nearest neighbours",
    "fourier_300": "300 random Fourier features",
    "fourier_1000": "1,000 random Fourier features",
    "fourier_1000_c1": "the same, with a C of 1 in place of 10",
    "ebm": "explainable boosting",
}


def train(args: argparse.Namespace) -> None:
    load_kernels()
    args.votes.mkdir(parents=True, exist_ok=True)
    makers = {name: of_pool(name) for name in (*NINE, *TEN)} | CANDIDATES
    names = args.only or (*BASES[args.base], *CANDIDATES)
    for place in some_places(args):
        for name in names:
            path = path_of(place, name, makers[name], 0)
            if not path.exists():
                found = train_one(place, name, makers[name], 0)
                keep_votes(path, found)
                _, test, _ = place.rows
                ap = average_precision(found["test"][-1], place.y[test] == 1)
                took = found["seconds"].sum()
                print(
                    f"{place.split} {place.dataset:16} {name}: {took:.1f} s, AP {ap:.4f}",
                    flush=True,
                )


def report(args: argparse.Namespace) -> None:
    load_kernels()
    base = BASES[args.base]
    joining = {
        name: make
        for name, make in CANDIDATES.items()
        if not args.only or name in args.only
    }
    makers = {name: of_pool(name) for name in base} | joining
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    n_places = 0
    for place in some_places(args):
        votes = {
            (name, 0): kept_votes(path_of(place, name, make, 0))
            for name, make in makers.items()
        }
        kept = {key: one for key, one in votes.items() if one is not None}
        if any((name, 0) not in kept for name in base):
            lacks = f"lacks some of the {args.base}"
            print(f"{place.dataset} {place.split} {lacks}", flush=True)
            continue
        n_places += 1
        for pool, voters in (("five", FIVE), (args.base, base)):
            for name in (None, *joining):
                if name is None or (name, 0) in kept:
                    POOLS["joined"] = (*voters, *([name] if name else []))
                    found = judge(place, kept, Variant("joined", 1, ALL_ROWS_MODEL))
                    words = f"{pool} and {DESCRIPTIONS[name]}" if name else pool
                    own = cells.setdefault(words, {})
                    own.setdefault(place.dataset, []).append(found)
    n_splits = {words: sum(map(len, own.values())) for words, own in cells.items()}
    complete = {words: own for words, own in cells.items() if n_splits[words] == n_places}
    lines = [
        "# Who else could vote beside the strong pool",
        "",
        f"Small tables of the development datasets (at most {POSITIVES} positives to train "
        f"on), {n_places} splits; means over datasets, and paired differences with their "
        f"standard errors over datasets. Seconds are of training: those of neighbours come "
        f"later, with each row that is asked. By `benchmarks/candidates.py`.",
        "",
        *beside(complete, lambda words: words.split(" and ")[0]),
    ]
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    name = "candidates.md" if args.base == "nine" else f"candidates_{args.base}.md"
    (args.out / name).write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=["train", "report"])
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/candidates"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--small", type=int, default=POSITIVES, help=argparse.SUPPRESS)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    parser.add_argument("--base", choices=list(BASES), default="ten")
    parser.add_argument("--only", nargs="+", choices=[*NINE, *TEN, *CANDIDATES])
    args = parser.parse_args()
    {"train": train, "report": report}[args.do](args)


if __name__ == "__main__":
    main()
