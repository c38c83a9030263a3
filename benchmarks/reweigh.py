"""Other emphasis, regularisation or threshold after a fit: how long does it take?

    python benchmarks/reweigh.py [--rows 200000] [--voters 100] [--repeats 7]

Hard votes of the built-in trees (on the training rows, and out of bag), and soft votes of
linear models. Each change is made from the same fitted model; nothing is trained again.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np


def soft_voters(X, y, n_voters, rng):
    """Linear models, each on some rows and columns, fitted already."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    pool = []
    for k in range(n_voters):
        columns = np.sort(rng.choice(X.shape[1], 5, replace=False))
        rows = rng.choice(len(y), 4000, replace=False)
        pick = FunctionTransformer(np.take, kw_args={"indices": columns, "axis": 1})
        voter = make_pipeline(pick, LogisticRegression())
        pool.append((f"linear_{k}", voter.fit(X[rows], y[rows])))
    return pool


CHANGES = {
    "emphasis": [{"reweight": 0.5}, {"reweight": 1.0}],
    "shrinkage": [{"shrinkage": 0.1}, {"shrinkage": 0.0}],
    "threshold, F1": [{"threshold": "f1"}],
    "threshold, cost": [{"threshold": {"cost": (1, 50)}}],
    "with a constant": [{"fit_intercept": True}],
    "all three, F1": [
        {"reweight": 0.5, "shrinkage": 0.1, "threshold": "f1"},
        {"reweight": 1.0, "shrinkage": 0.01, "threshold": "f1"},
    ],
}


def measure(model, changes, repeats):
    """Median milliseconds, CPU and wall, of one change."""
    cpu, wall = [], []
    for repeat in range(repeats):
        for settings in changes:
            # Other weights each time, so that no vote is known from before.
            other = {"reweight": 0.3, "shrinkage": 0.2 + repeat / 100}
            model.reweigh(**other, threshold="vote", fit_intercept=False)
            start, begun = time.process_time(), time.perf_counter()
            model.reweigh(**settings)
            cpu.append(1e3 * (time.process_time() - start))
            wall.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(cpu), statistics.median(wall)


def main() -> None:
    from setting import print_setting
    from sklearn.datasets import make_classification

    from damvi import DAMVIClassifier, DAMVIVotingClassifier

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--voters", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    print_setting("numpy", "scipy", "numba")
    rng = np.random.default_rng(0)
    X, y = make_classification(
        args.rows, 20, n_informative=8, weights=[0.99], flip_y=0.005, random_state=0
    )
    pool = soft_voters(X, y, args.voters, rng)
    models = {
        "hard, on the training rows": DAMVIClassifier(n_estimators=args.voters),
        "hard, out of bag": DAMVIClassifier(n_estimators=args.voters, votes="oob"),
        "soft": DAMVIVotingClassifier(pool, cv="prefit"),
    }
    print(f"{args.rows:,} rows, {args.voters} voters; median milliseconds, CPU (wall)")
    print()
    print("votes                        " + "".join(f"{name:>18}" for name in CHANGES))
    for name, model in models.items():
        model.set_params(random_state=0, n_jobs=1).fit(X, y)
        found = [measure(model, changes, args.repeats) for changes in CHANGES.values()]
        figures = "".join(f"{f'{cpu:.0f} ({wall:.0f})':>18}" for cpu, wall in found)
        print(f"{name:29}{figures}", flush=True)


if __name__ == "__main__":
    main()
