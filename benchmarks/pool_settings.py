"""Which balance and shrinkage suit a pool by default, with and without a constant.

    python benchmarks/pool_settings.py [--data FOLDER] [--votes FOLDER] > RESULT

A small pool is trained once for each dataset and split, and its out-of-fold votes are
calibrated and weighted by each setting; what a setting is worth is its average precision
on the split's other rows, less that of the plain vote of the same balance 0. The last lines
choose by all datasets but one, and tell what the choice is worth on that one. Every second
split keeps 40 of its positives.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from pools import read
from setting import add_data_option, print_setting
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from damvi.decision import calibrate_votes
from damvi.labels import Labels
from damvi.voters import PoolVoters, strong_pool
from damvi.votes import Votes
from damvi.weighting import Settings, minimize_c_bound

DATASETS = (
    "mammography",
    "ozone_level",
    "letter_img",
    "satimage",
    "abalone_19",
    "ai4i2020",
    "census_kdd_half",
    "credit_fraud",
    "protein_homo",
    "scania_partial",
)
POOL = ("lightgbm", "xgboost", "forest", "balanced_forest", "linear", "balanced_linear")
ROWS, SPLITS, FEW = 8000, 2, 40
BALANCES = (0.0, 0.25, 0.5, 0.75)
SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
GRID = tuple(product((False, True), BALANCES, SHRINKAGES))


def rows_of(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows; every second split trains on few positives."""
    rng = np.random.default_rng([split, 3])
    kept = np.arange(len(y))
    if len(y) > ROWS:
        positives = rng.permutation(np.flatnonzero(y == 1))[: ROWS // 10]
        negatives = rng.permutation(np.flatnonzero(y == 0))[: ROWS - len(positives)]
        kept = np.sort(np.concatenate([positives, negatives]))
    train, test = train_test_split(
        kept, test_size=0.4, stratify=y[kept], random_state=split
    )
    if split % 2:
        positives = rng.permutation(train[y[train] == 1])[FEW:]
        train = np.setdiff1d(train, positives)
    return train, test


def votes_of(name: str, split: int, data: Path, folder: Path) -> dict[str, np.ndarray]:
    """The raw votes of the pool, out of fold and on the test rows."""
    path = folder / f"{name}-{split}.npz"
    if not path.exists():
        X, y = read(name, data)
        train, test = rows_of(y, split)
        pool = [(one, model) for one, model in strong_pool(split) if one in POOL]
        voters, unseen, folds = PoolVoters.train(
            pool,
            X[train],
            y[train],
            n_classes=2,
            seed=split,
            cv=5,
            groups=None,
            voting="soft",
            sample_weight=None,
            fit_params={},
            n_jobs=1,
            progress=None,
        )
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            path,
            unseen=unseen,
            folds=folds,
            targets=y[train],
            test=voters.votes(X[test], 1),
            truth=y[test],
        )
    return dict(np.load(path))


def score(known: dict[str, np.ndarray], how: tuple[bool, float, float] | None) -> float:
    """The average precision on the test rows; None is the plain vote."""
    targets, folds = known["targets"], known["folds"]
    labels, _ = Labels.read(targets)
    fit_intercept, balance, shrinkage = how or (False, 0.0, 0.0)
    class_weight = labels.class_weight(labels.totals(targets, None).weight, balance)
    votes, curves = calibrate_votes(
        known["unseen"],
        targets,
        folds,
        sample_weight=(class_weight / class_weight.max())[targets],
    )
    test = np.column_stack([f(v) for f, v in zip(curves, known["test"].T, strict=True)])
    settings = Settings(
        0.0, shrinkage, "exact" if how else "uniform", fit_intercept=fit_intercept
    )
    cast = Votes(np.asfortranarray(votes), targets, folds, class_weight=class_weight)
    found = minimize_c_bound(cast, settings.moments_by_fold(cast), settings, n_jobs=1)
    return float(average_precision_score(known["truth"], test @ found.weights))


def show(gains: np.ndarray) -> str:
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{gains.mean():+.4f} ± {error:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--votes", type=Path, default=Path("build/pool_settings"))
    args = parser.parse_args()
    print_setting("scikit-learn", "numpy", "lightgbm", "xgboost")
    gains = np.empty((len(DATASETS), SPLITS, len(GRID)))
    for place, name in enumerate(DATASETS):
        for split in range(SPLITS):
            known = votes_of(name, split, args.data, args.votes)
            plain = score(known, None)
            gains[place, split] = [score(known, how) - plain for how in GRID]
    few, mean = gains[:, 1::2].mean(axis=1), gains.mean(axis=1)
    print("AP over the plain vote, mean over datasets ± its error; of few positives")
    print("intercept  balance  shrinkage")
    for place, (constant, balance, share) in enumerate(GRID):
        line = f"{constant!s:9}  {balance:7g}  {share:9g}"
        print(f"{line}  {show(mean[:, place])}  {show(few[:, place])}")
    print("\nChosen without a dataset, and what that is worth on it:")
    honest = np.empty(len(DATASETS))
    for place, name in enumerate(DATASETS):
        best = int(np.delete(mean, place, axis=0).mean(axis=0).argmax())
        honest[place] = mean[place, best]
        print(f"{name:16}  {GRID[best]}  {honest[place]:+.4f}")
    print(f"mean  {show(honest)}")


if __name__ == "__main__":
    main()
