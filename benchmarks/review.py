"""Rows to review: labels that are worth having, and labels that are wrong.

    python benchmarks/review.py label [--data FOLDER] [--out results/review] [--seeds 3]
    python benchmarks/review.py flips [--seeds 5] [--cleanlab PYTHON]

``label``: 95 % of the labels of five datasets are hidden (a stratified 5 % is known), and
20 rounds of 25 rows are labelled by each rule. After each round the model is fitted anew on
the rows with a label, with the paper's trees (``pool="trees"`` of damvi fit), so that it
takes minutes; AP is of 30 % of the rows that have no part in it. "Margin" are the rows
closest to the threshold, "half and half" are as many of these as of the likeliest, and
"half, spread" are of five times as many close ones those on which the voters part in ways
as different as can be.

``flips``: 5 % of the positives are labelled negative. Out-of-sample probabilities of the
same trees rank the rows by how likely their label is wrong, as ``Model.review`` does and as
cleanlab does with the same probabilities, of all rows and of the negatives alone. Precision
at n: of the n first, how many were flipped, where n were. cleanlab may be in an environment
of its own, named by ``--cleanlab``.

What is done is kept in ``label.jsonl`` and ``flips.jsonl`` and not done again; the tables
are made from these.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setting import add_data_option, print_setting
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from damvi import DAMVIClassifier
from damvi.decision import crossfit_probability
from damvi.evaluation import FittedVote
from damvi.review import chance_wrong

DATASETS = {
    "mammography": "paper/mammography.parquet",
    "webpage": "paper/webpage.parquet",
    "scania": "paper/scania_partial.parquet",
    "ai4i": "extra/ai4i2020.parquet",
    "credit_fraud": "paper/credit_fraud.parquet",
}
ROUNDS, ROWS = 20, 25
WIDE = 5
"""Times as many rows near the threshold are looked at as are chosen of them."""
KNOWN, TEST, FLIPPED = 0.05, 0.3, 0.05
MOST_ROWS = 100_000
"""Of a larger table so many are drawn, of each class its share."""
OURS = "most likely"
RULES = ("random", "most likely", "margin", "half and half", "half, spread")

CLEANLAB = """
import sys, json
import numpy as np
import cleanlab
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
found = np.load(sys.argv[1])
labels, p = found["labels"], found["probability"]
ranks = {}
for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
    scores = get_label_quality_scores(labels, p, method=method)
    ranks[method] = np.argsort(scores, kind="stable")[:int(found["n"])].tolist()
    some = np.where(labels == 0, scores, 2)
    first = np.argsort(some, kind="stable")[:int(found["n"])]
    ranks[method + ", negatives"] = first.tolist()
issues = find_label_issues(labels, p, return_indices_ranked_by="self_confidence", n_jobs=1)
ranks["find_label_issues"] = issues[:int(found["n"])].tolist()
print(json.dumps({"version": cleanlab.__version__, "ranks": ranks}))
"""


def read(folder: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_parquet(folder / DATASETS[name])
    if len(table) > MOST_ROWS:
        y = table["target"]
        table, _ = train_test_split(table, train_size=MOST_ROWS, stratify=y, random_state=0)
    return table.drop(columns="target").astype(float), table["target"].to_numpy(int)


def fitted(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    return DAMVIClassifier(
        stratified=True, threshold="f1", random_state=seed, n_jobs=2
    ).fit(X, y)


def choose(rule: str, model: Any, pool: pd.DataFrame, rng: np.random.Generator) -> Any:
    if rule == "random":
        return rng.permutation(len(pool))[:ROWS]
    vote = model.vote(pool)
    margin = np.abs(vote - model.threshold_)
    if rule == "margin":
        return np.argsort(margin, kind="stable")[:ROWS]
    likely = np.argsort(-vote, kind="stable")
    if rule == "most likely":  # as Model.review does
        return likely[:ROWS]
    first = likely[: -(-ROWS // 2)]
    close = np.argsort(margin, kind="stable")
    close, n = close[~np.isin(close, first)], ROWS - len(first)
    if rule == "half, spread":
        close = close[: WIDE * n]
        votes = FittedVote(model).decided_by_each(model.cast_votes(pool.iloc[close]))
        close = close[spread_out(votes, model.weights_, n)]
    return np.concatenate([first, close[:n]])


def spread_out(decided: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """Rows on which the voters part in different ways, the first row first.

    Each next row is the one whose nearest among those before it is furthest: two rows are
    as far apart as the weight of the voters that decide otherwise on them.
    """
    chosen, far = np.zeros(n, np.intp), np.full(len(decided), np.inf)
    for k in range(1, n):
        far = np.minimum(far, (decided != decided[chosen[k - 1]]) @ weights)
        far[chosen[k - 1]] = -1.0
        chosen[k] = np.argmax(far)
    return chosen


def one_run(folder: Path, name: str, rule: str, seed: int) -> dict[str, Any]:
    X, y = read(folder, name)
    rest, test = train_test_split(
        np.arange(len(y)), test_size=TEST, stratify=y, random_state=seed
    )
    known, pool = train_test_split(
        rest, train_size=KNOWN, stratify=y[rest], random_state=seed
    )
    rng, start = np.random.default_rng([seed, 5]), time.perf_counter()
    found, precision, n_known = [0], [], int(y[known].sum())
    for _ in range(ROUNDS):
        model = fitted(X.iloc[known], y[known], seed)
        precision.append(average_precision_score(y[test], model.vote(X.iloc[test])))
        rows = pool[choose(rule, model, X.iloc[pool], rng)]
        found.append(found[-1] + int(y[rows].sum()))
        known, pool = np.concatenate([known, rows]), np.setdiff1d(pool, rows)
    model = fitted(X.iloc[known], y[known], seed)
    precision.append(average_precision_score(y[test], model.vote(X.iloc[test])))
    return {
        "rows": len(rest),
        "positives": int(y[rest].sum()),
        "known_positives": n_known,
        "found": found,
        "ap": precision,
        "seconds": time.perf_counter() - start,
    }


def one_flip(folder: Path, name: str, seed: int, cleanlab: str | None) -> dict[str, Any]:
    X, y = read(folder, name)
    rng, start = np.random.default_rng([seed, 7]), time.perf_counter()
    n = max(1, round(FLIPPED * y.sum()))
    wrong = rng.choice(np.flatnonzero(y), n, replace=False)
    labels = y.copy()
    labels[wrong] = 0
    model = fitted(X, labels, seed)
    vote, folds = model.decision_.out_of_sample_vote, model.decision_.weighting.folds
    some = np.flatnonzero(~np.isnan(vote))
    chance = crossfit_probability(vote[some], labels[some], folds[some])
    probability = np.column_stack([1 - chance, chance])
    doubt = chance_wrong(labels[some], probability, only=0)
    of_any = chance_wrong(labels[some], probability)
    ranks = {
        "review": np.argsort(-doubt, kind="stable")[:n].tolist(),
        "review, doubt any": np.argsort(-of_any, kind="stable")[:n].tolist(),
    }
    version = None
    if cleanlab:
        with tempfile.TemporaryDirectory() as where:
            file = Path(where) / "rows.npz"
            np.savez(file, labels=labels[some], probability=probability, n=n)
            done = subprocess.run(
                [cleanlab, "-c", CLEANLAB, str(file)],
                check=True,
                capture_output=True,
                text=True,
            )
        told = json.loads(done.stdout.splitlines()[-1])
        version = told["version"]
        ranks |= {f"cleanlab {rule}": rows for rule, rows in told["ranks"].items()}
    flipped = np.isin(some, wrong)
    return {
        "n": n,
        "rows": len(y),
        "precision": {rule: float(flipped[rows].sum() / n) for rule, rows in ranks.items()},
        "told": float(doubt[ranks["review"]].mean()),
        "cleanlab": version,
        "seconds": time.perf_counter() - start,
    }


def resume(path: Path, todo: list[tuple[Any, ...]], work: Any) -> dict[Any, Any]:
    done: dict[Any, Any] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            key, value = json.loads(line)
            done[tuple(key)] = value
    for key in todo:
        if key not in done:
            done[key] = work(*key)
            with path.open("a") as file:
                file.write(json.dumps([key, done[key]]) + "\n")
            print(key, f"{done[key]['seconds']:.0f} s", file=sys.stderr, flush=True)
    return {key: done[key] for key in todo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("label", "flips"))
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=Path("results/review"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cleanlab", metavar="PYTHON", help="that can import cleanlab")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(options.seeds)
    kept = options.out / f"{options.what}.jsonl"
    if options.what == "label":
        keys = [(n, r, s) for s in seeds for n in DATASETS for r in RULES]
        done = resume(kept, keys, lambda *key: one_run(options.data, *key))
        write_labels(options.out, done)
    else:
        keys = [(n, s) for s in seeds for n in DATASETS]
        done = resume(
            kept, keys, lambda *key: one_flip(options.data, *key, options.cleanlab)
        )
        write_flips(options.out, done)


def write_labels(out: Path, done: dict[Any, Any]) -> None:
    """A line for each dataset, rule, seed and round; and means over the seeds."""
    rows = [
        (name, rule, seed, k * ROWS, one["found"][k], round(one["ap"][k], 4))
        for (name, rule, seed), one in done.items()
        for k in range(ROUNDS + 1)
    ]
    names = ["dataset", "rule", "seed", "labels", "positives_found", "ap"]
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(out / "label.csv", index=False)
    with (out / "label.txt").open("w") as file, redirect_stdout(file):
        print_setting("numpy", "scikit-learn")
        print(
            "Means over seeds; positives found after 100, 250 and 500 labels, and AP then."
        )
        at = table[table["labels"].isin([100, 250, 500])]
        for what in ("positives_found", "ap"):
            mean = at.pivot_table(what, ["dataset", "rule"], "labels", sort=False)
            print(f"\n{what}\n{mean.round(3).to_string()}")
        mean = table.groupby(["dataset", "rule"], sort=False)["ap"].mean().unstack("rule")
        print(f"\nmean AP over all rounds\n{mean.round(3).to_string()}")
        print(f"mean over datasets\n{mean.mean().round(3).to_string()}")
        print("\npaired differences of the mean AP over rounds, and of positives found")
        print("(what review does less another rule; standard errors are over the datasets)")
        means = table.groupby(["dataset", "seed", "rule"])["ap"].mean().unstack("rule")
        last = table[table["labels"] == ROUNDS * ROWS]
        found = last.set_index(["dataset", "seed", "rule"])["positives_found"].unstack()
        for rule in RULES:
            for words, by in (("AP", means), ("found", found)):
                if rule == OURS:
                    continue
                gain = (by[OURS] - by[rule]).groupby("dataset").mean()
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                print(f"{OURS} less {rule}: {words} {gain.mean():+.3f} +- {error:.3f}")


def write_flips(out: Path, done: dict[Any, Any]) -> None:
    rows = [
        (name, seed, one["n"], rule, round(precision, 4))
        for (name, seed), one in done.items()
        for rule, precision in one["precision"].items()
    ]
    names = ["dataset", "seed", "flipped", "rule", "precision_at_n"]
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(out / "flips.csv", index=False)
    told: dict[str, list[float]] = defaultdict(list)
    for (name, _), one in done.items():
        told[name].append(one["told"])
    with (out / "flips.txt").open("w") as file, redirect_stdout(file):
        print_setting("numpy", "scikit-learn")
        print(f"cleanlab {next(iter(done.values()))['cleanlab']}, in its own environment\n")
        mean = table.pivot_table("precision_at_n", "rule", "dataset", sort=False)
        mean["mean"] = mean.mean(axis=1)
        print(f"precision at n, means over seeds\n{mean.round(3).to_string()}\n")
        print("mean chance that review tells for its first n")
        print(pd.Series({k: np.mean(v) for k, v in told.items()}).round(3).to_string())


if __name__ == "__main__":
    main()
