"""Out-of-bag scores on labels that are coin flips: are they at chance?

    python benchmarks/honesty.py   # about a minute

Mean AUC ± standard error over seeds, 100 voters. "shipped" is ``oob_decision_function_``;
"folds only" judges a row by weights of the other folds, but lets the voters that saw it
take part in their fit; "all rows" uses the weights learned on the rows they judge.
"""

from __future__ import annotations

import warnings

import numpy as np
from setting import print_setting
from sklearn.metrics import roc_auc_score

from damvi import DAMVIClassifier, crossfit
from damvi.voters import BootstrapSampling

CASES = [(1000, 0.5, 60), (1000, 0.05, 60), (20_000, 0.5, 6)]


def auc(y, score) -> float:
    scored = ~np.isnan(score)
    return roc_auc_score(y[scored], score[scored])


def scores(n: int, share: float, seed: int) -> list[float]:
    rng = np.random.RandomState(10_000 + seed)
    y = np.zeros(n, dtype=int)
    y[rng.permutation(n)[: round(share * n)]] = 1
    X = rng.normal(size=(n, 5))
    found = []
    for sweeps in (crossfit.MAX_SWEEPS, 0):
        shipped, crossfit.MAX_SWEEPS = crossfit.MAX_SWEEPS, sweeps
        model = DAMVIClassifier(random_state=seed, n_jobs=2).fit(X, y)
        found.append(auc(y, model.oob_decision_function_))
        crossfit.MAX_SWEEPS = shipped
    sampling = BootstrapSampling.plan(y, max_samples=0.2, seed=model.seed_)
    total, weight = np.zeros(n), np.zeros(n)
    for k in np.flatnonzero(model.weights_):
        unseen = sampling.out_of_bag(int(k)) * model.weights_[k]
        total += unseen * (2 * model.estimators_[k].predict(X) - 1)
        weight += unseen
    with np.errstate(invalid="ignore"):
        found.append(auc(y, total / weight))
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    print_setting("scikit-learn", "numpy", "numba")
    print("     n  positives  seeds         shipped      folds only        all rows")
    for n, share, seeds in CASES:
        table = np.array([scores(n, share, seed) for seed in range(seeds)])
        means, errors = table.mean(0), table.std(0, ddof=1) / np.sqrt(seeds)
        cells = (f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True))
        print(f"{n:6d} {share:10.0%} {seeds:6d} " + " ".join(cells), flush=True)


if __name__ == "__main__":
    main()
