"""How well a time limit is kept: what was asked, what was taken, and what came of it.

    python benchmarks/time_limits.py [--rows 200000] [--limits 3 10 30 60] [--jobs 2]

A generated table of 30 columns, 3 % positive, and 50,000 fresh rows. Run it alone.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

from setting import print_setting
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score

from damvi import DAMVIVotingClassifier
from damvi.voters import FastForestClassifier

FRESH = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--limits", type=float, nargs="*", default=(3.0, 10.0, 30.0, 60.0))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    print_setting("numpy", "scikit-learn", "lightgbm")
    n = args.rows
    X, y = make_classification(
        n + FRESH, 30, n_informative=10, weights=[0.97], random_state=0
    )
    # Kernels are compiled once on a machine, and loaded here.
    FastForestClassifier(2, random_state=0).fit(X[:2000], y[:2000])
    print(f"\n{n:,} rows, {args.jobs} jobs, load {os.getloadavg()[0]:.1f} before")
    for limit in args.limits:
        model = DAMVIVotingClassifier(time_limit=limit, n_jobs=args.jobs, random_state=0)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows
            model.fit(X[:n], y[:n])
        took = time.perf_counter() - start
        positive = list(model.classes_).index(model.pos_label_)
        chance = model.predict_proba(X[n:])[:, positive]
        score = average_precision_score(y[n:] == model.pos_label_, chance)
        used = [name for name, _ in model.estimators_used_]
        print(
            f"asked {limit:3g} s, took {took:5.1f} ({took / limit - 1:+.0%}), "
            f"AP {score:.4f}: {', '.join(used)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
