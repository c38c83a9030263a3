"""Rows that arrive after the fit: what does a batch cost?

    python benchmarks/streaming.py [--rows 1000] [--batches 15]

The voters are trees of a fit on 20,000 rows. Their votes on a batch, the moments of these
votes and the new weights are timed apart; ``partial_fit`` is all of it.
"""

from __future__ import annotations

import argparse
import statistics
import time


def clocked(work):
    """The answer, and the milliseconds it took: CPU and wall."""
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    return answer, (
        1e3 * (time.process_time() - cpu),
        1e3 * (time.perf_counter() - wall),
    )


def measure(model, stream, X, y, rows, batches):
    """Median milliseconds of each step, CPU and wall."""
    from damvi.solvers import exact

    found = {"votes": [], "weights": [], "partial_fit": []}
    for start in range(0, rows * batches, rows):
        some = slice(start, start + rows)
        found["votes"].append(clocked(lambda some=some: model.cast_votes(X[some]))[1])
        fit = clocked(lambda some=some: stream.partial_fit(X[some], y[some]))
        found["partial_fit"].append(fit[1])
        moments = stream.moments_
        found["weights"].append(clocked(lambda moments=moments: exact(moments))[1])
    return {
        step: tuple(statistics.median(values) for values in zip(*clocks, strict=True))
        for step, clocks in found.items()
    }


def main() -> None:
    from setting import print_setting
    from sklearn.datasets import make_classification

    from damvi import DAMVIClassifier, VoteStream

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=15)
    args = parser.parse_args()
    print_setting("numpy", "scipy", "numba")
    fitted = 20_000
    X, y = make_classification(
        fitted + args.rows * args.batches,
        20,
        n_informative=8,
        weights=[0.95],
        flip_y=0.01,
        random_state=0,
    )
    new, labels = X[fitted:], y[fitted:]
    print(f"batches of {args.rows:,} rows; median milliseconds, CPU (wall)\n")
    steps = "votes", "weights", "partial_fit"
    print(f"{'voters':>6}  {'forgets':8}" + "".join(f"{step:>16}" for step in steps))
    for n_voters in (100, 1000):
        model = DAMVIClassifier(n_estimators=n_voters, random_state=0, n_jobs=1)
        model.fit(X[:fitted], y[:fitted])
        for half_life in (None, 50_000):
            stream = VoteStream(model, half_life=half_life)
            found = measure(model, stream, new, labels, args.rows, args.batches)
            told = "".join(
                f"{f'{cpu:.1f} ({wall:.1f})':>16}" for cpu, wall in map(found.get, steps)
            )
            forgets = "no" if half_life is None else "yes"
            print(f"{n_voters:6}  {forgets:8}{told}", flush=True)


if __name__ == "__main__":
    main()
