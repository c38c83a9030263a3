"""Out-of-bag scores on labels that are coin flips: are they at chance?

    python benchmarks/honesty.py   # about a minute
    python benchmarks/honesty.py --pools [--seeds 30]

Mean AUC ± standard error over seeds, 100 voters. "shipped" is ``oob_decision_function_``;
"folds only" judges a row by weights of the other folds, but lets the voters that saw it
take part in their fit; "all rows" uses the weights learned on the rows they judge.

With ``--pools``, pools of useless voters on 1,000 rows with 50 positives, by the vote out
of sample. The voters are logistic regressions on a column each, or trees of depth 4; their
votes are calibrated (the default) or not.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product

import numpy as np
from setting import print_setting
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, votes
from damvi.voters import BootstrapSampling

CASES = [(1000, 0.5, 60), (1000, 0.05, 60), (20_000, 0.5, 6)]
POOLS = list(product(("logistic", "trees"), (12, 60), ("auto", None)))
POOL_ROWS, POOL_POSITIVES = 1000, 50


def auc(y, score) -> float:
    scored = ~np.isnan(score)
    return roc_auc_score(y[scored], score[scored])


def scores(n: int, share: float, seed: int) -> list[float]:
    rng = np.random.RandomState(10_000 + seed)
    y = np.zeros(n, dtype=int)
    y[rng.permutation(n)[: round(share * n)]] = 1
    X = rng.normal(size=(n, 5))
    found = []
    for sweeps in (votes.MAX_SWEEPS, 0):
        shipped, votes.MAX_SWEEPS = votes.MAX_SWEEPS, sweeps
        model = DAMVIClassifier(random_state=seed, n_jobs=2).fit(X, y)
        found.append(auc(y, model.oob_decision_function_))
        votes.MAX_SWEEPS = shipped
    sampling = BootstrapSampling.plan(y, max_samples=0.2, seed=model.seed_)
    total, weight = np.zeros(n), np.zeros(n)
    for k in np.flatnonzero(model.weights_):
        unseen = sampling.out_of_bag(int(k)) * model.weights_[k]
        total += unseen * (2 * model.estimators_[k].predict(X) - 1)
        weight += unseen
    with np.errstate(invalid="ignore"):
        found.append(auc(y, total / weight))
    return found


def useless(kind: str, n_voters: int):
    for k in range(n_voters):
        if kind == "trees":
            tree = DecisionTreeClassifier(max_depth=4, max_features=3, random_state=k)
            yield f"tree {k}", tree
        else:
            own = FunctionTransformer(np.take, kw_args={"indices": [k], "axis": 1})
            yield f"column {k}", make_pipeline(own, LogisticRegression())


def pool_score(kind: str, n_voters: int, calibration: str | None, seed: int) -> float:
    rng = np.random.default_rng([seed, n_voters])
    X, y = rng.normal(size=(POOL_ROWS, n_voters)), np.zeros(POOL_ROWS, int)
    y[rng.permutation(POOL_ROWS)[:POOL_POSITIVES]] = 1
    model = DAMVIVotingClassifier(
        [*useless(kind, n_voters)], calibration=calibration, random_state=seed, n_jobs=1
    )
    return auc(y, model.fit(X, y).decision_.out_of_sample_vote)


def score_pools(seeds: int) -> None:
    print(f"{'voters':>22} {'calibrated':>11} {'seeds':>6} {'AUC':>16}")
    for kind, n_voters, calibration in POOLS:
        found = [pool_score(kind, n_voters, calibration, seed) for seed in range(seeds)]
        error = np.std(found, ddof=1) / np.sqrt(seeds)
        print(
            f"{n_voters:>12d} {kind:>9} {'yes' if calibration else 'no':>11} {seeds:6d} "
            f"{np.mean(found):.4f} ± {error:.4f}",
            flush=True,
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pools", action="store_true")
    parser.add_argument("--seeds", type=int, default=30)
    args = parser.parse_args()
    print_setting("scikit-learn", "numpy", "numba")
    if args.pools:
        score_pools(args.seeds)
        return
    print("     n  positives  seeds         shipped      folds only        all rows")
    for n, share, seeds in CASES:
        table = np.array([scores(n, share, seed) for seed in range(seeds)])
        means, errors = table.mean(0), table.std(0, ddof=1) / np.sqrt(seeds)
        cells = (f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True))
        print(f"{n:6d} {share:10.0%} {seeds:6d} " + " ".join(cells), flush=True)


if __name__ == "__main__":
    main()
