"""Learned weights beside the plain vote where no weights can be better than equal ones.

    python benchmarks/independent_voters.py [--seeds 5]

Each voter is a logistic regression on a column of its own, all equally good and
independent, of a rare class: soft votes all near -1. Average precision on 20,000 fresh
rows, mean over seeds: the plain vote, the pool as it is by default, the same without the
comparison that keeps the plain vote, and without a constant, as it was.
"""

from __future__ import annotations

import argparse

import numpy as np
from setting import print_setting
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from damvi import DAMVIVotingClassifier
from damvi.weighting import Settings, minimize_c_bound

CASES = ((24, 1200, 0.05), (24, 6000, 0.01), (24, 1600, 0.05))
FRESH = 20_000


def rows(n: int, rate: float, columns: int, rng: np.random.Generator):
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, columns)) + y[:, np.newaxis], y


def pool(columns: int):
    for k in range(columns):
        own = FunctionTransformer(np.take, kw_args={"indices": [k], "axis": 1})
        yield f"column {k}", make_pipeline(own, LogisticRegression())


def measure(columns: int, n: int, rate: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    (X, y), (new, truth) = rows(n, rate, columns, rng), rows(FRESH, rate, columns, rng)
    model = DAMVIVotingClassifier([*pool(columns)], random_state=seed).fit(X, y)
    votes = model.cast_votes(new)

    def of(weights) -> float:
        return average_precision_score(truth, votes @ weights)

    def learned(settings: Settings) -> float:
        moments = settings.moments_by_fold(model.votes_)
        return of(minimize_c_bound(model.votes_, moments, settings).weights)

    usual = Settings.of(model)
    bare = usual._replace(fit_intercept=False)
    kept = float(model.comparison_.plain_kept)
    even = np.full(columns, 1 / columns)
    return [of(even), of(model.weights_), learned(usual), learned(bare), kept]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    print_setting("scikit-learn", "numpy")
    print("voters   rows   rate   plain  default  learned  no constant  plain kept")
    for columns, n, rate in CASES:
        found = np.mean([measure(columns, n, rate, s) for s in range(args.seeds)], axis=0)
        print(
            f"{columns:6} {n:6} {rate:6} {found[0]:7.4f} {found[1]:8.4f} {found[2]:8.4f} "
            f"{found[3]:12.4f} {found[4]:11.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
