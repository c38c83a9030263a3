"""Peak memory of everything that fit does once the voters are trained.

    python benchmarks/memory.py   # about a minute

570,000 rows, 100 voters, sample weights: reweighting, moments by fold, weights,
cross-fitted weights and the out-of-bag vote, by the functions that
``DAMVIClassifier.fit`` calls, on made-up votes. The votes take a byte each; the rest may
take 100 MB above them and above the input. Each measurement has a process of its own.
"Process" is the highest resident memory the kernel saw, less what was resident before the
votes were made; "arrays" is the peak of the allocations that tracemalloc saw. The exit
status tells whether both stay below the limit, with rare positives and with half of the
rows positive.
"""

from __future__ import annotations

import resource
import sys
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from setting import print_setting

ROWS, VOTERS = 570_000, 100
MB = 1e6
ALLOWED = ROWS * VOTERS / MB + 100
RATES = [0.002, 0.5]


def peak_of_process(rate: float) -> float:
    import psutil

    fit_on_votes = prepare(rate)
    before = psutil.Process().memory_info().rss
    fit_on_votes()
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return (peak - before) / MB


def peak_of_arrays(rate: float) -> float:
    fit_on_votes = prepare(rate)
    tracemalloc.start()
    fit_on_votes()
    return tracemalloc.get_traced_memory()[1] / MB


def prepare(rate: float):
    """A function that makes the votes and fits on them; the input is there already."""
    import numpy as np

    from damvi import DAMVIClassifier
    from damvi.folds import deal_folds
    from damvi.voters import BootstrapSampling
    from damvi.votes import Votes
    from damvi.weighting import Settings, emphasize_missed_positives, minimize_c_bound

    rng = np.random.default_rng(0)
    y = (rng.random(ROWS, dtype=np.float32) < rate).astype(np.int8)
    sample_weight = rng.random(ROWS)
    # The kernels are code, not data: a small fit loads them before anything is measured.
    small = DAMVIClassifier(n_estimators=4).fit(rng.random((400, 3)), np.arange(400) % 2)
    assert len(small.oob_decision_function_) == 400

    def fit_on_votes() -> None:
        hard = np.empty((ROWS, VOTERS), dtype=np.int8, order="F")
        for k in range(VOTERS):
            wrong = rng.random(ROWS, dtype=np.float32) < 0.1 + 0.002 * k
            hard[:, k] = np.where(wrong, 1 - y, y) * 2 - 1
        sampling = BootstrapSampling.plan(
            y, max_samples=0.2, seed=0, sample_weight=sample_weight
        )
        votes = Votes(
            hard,
            y,
            deal_folds(y, sampling.seed),
            sample_weight=sample_weight,
            out_of_bag=sampling.out_of_bag_bits(VOTERS),
        )
        moments = emphasize_missed_positives(votes)
        weighting = minimize_c_bound(votes, moments, Settings())
        assert len(weighting.out_of_sample_vote) == ROWS

    return fit_on_votes


def in_own_process(measure, rate: float) -> float:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, rate).result()


def main() -> int:
    print_setting("numpy", "scipy", "scikit-learn", "psutil")
    print(f"{ROWS:,} rows, {VOTERS} voters: {ALLOWED:.0f} MB allowed, votes included")
    print(f"{'positives':>9} {'process':>8} {'arrays':>8}")
    worst = 0.0
    for rate in RATES:
        process, arrays = (
            in_own_process(measure, rate) for measure in (peak_of_process, peak_of_arrays)
        )
        worst = max(worst, process, arrays)
        print(f"{rate:9.1%} {process:5.0f} MB {arrays:5.0f} MB", flush=True)
    verdict = "below" if worst <= ALLOWED else "ABOVE"
    print(f"\nAt worst {worst:.0f} MB, {verdict} the limit of {ALLOWED:.0f} MB.")
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
