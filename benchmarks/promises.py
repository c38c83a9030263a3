"""What a fit promises of new rows, and what comes: in time, by group, and shuffled.

    python benchmarks/promises.py simulated            # 20 seeds, about half an hour
    python benchmarks/promises.py real --data FOLDER   # three real tables, about an hour
    python benchmarks/promises.py summary              # what both found, in words

A model is fitted on the first part of a table. Its average precision, as the fit tells it,
is the promise; that on the part that comes after is what was achieved. The 90 % interval
of their difference is that of a normal with both standard errors, each by bootstrap. A run
that is interrupted goes on where it was: results are added to the CSV one by one.

Simulated: rows of four years, the first three to fit on. The positives' look turns by 15
degrees a year, one feature tells something in summer alone, the share of positives has a
season, another feature grows with time, and some positives of the same three weeks look
alike, as those of a campaign do.
"given" has the rows in any order and ``time``; "found" has them in order, and the order is
found; "shuffled" is ``shuffle=True``; "old" is that with the day itself as a feature, as
before there was ``time``.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setting import add_data_option, print_setting

from damvi import DAMVIClassifier, DAMVIVotingClassifier, forward_splits
from damvi.decision import crossfit_decisions
from damvi.evaluation import measure
from damvi.model import prepare
from damvi.voters import strong_pool

OUT = Path("results/promises")
FIELDS = [
    *("table", "pool", "judged", "seed", "rows", "judged_rows", "positives", "coming"),
    *("promised_ap", "promised_error", "achieved_ap", "achieved_error"),
    *("promised_f1", "achieved_f1", "flagged", "seconds"),
]
KEY = FIELDS[:4]
NORMAL_90 = 1.645
SMALL = ("lightgbm", "forest", "linear")
"""Voters of the strong pool that stand for it here."""


def fitted(table: Any, pool: str, judged: str, seed: int) -> Any:
    """The model of a prepared table, as ``damvi fit`` fits it, without its peers."""
    more = {} if table.groups is None else {"groups": table.groups}
    cv = None
    if table.times is not None:
        cv = forward_splits(table.times, table.y, table.groups)
    common = {"cv": cv, "threshold": "f1", "pos_label": True, "random_state": seed}
    if pool == "trees":
        model: Any = DAMVIClassifier(stratified=True, n_jobs=1, **common)
    else:
        voters = dict(strong_pool(seed, table.y))
        model = DAMVIVotingClassifier([(name, voters[name]) for name in SMALL], **common)
    return model.fit(table.X, table.y, **more)


def judge(table: Any, coming: Any, y: Any, pool: str, judged: str, seed: int) -> dict:
    start = time.perf_counter()
    model = fitted(table, pool, judged, seed)
    weighting, vote = model.decision_.weighting, model.decision_.out_of_sample_vote
    known = ~np.isnan(vote)
    own, truth = vote[known], table.y[known]
    decided = crossfit_decisions(
        own, truth, "f1", weighting.folds[known], forward=weighting.forward
    )
    promised = measure(truth, own, decided).overall
    vote, flagged = model.vote(coming), np.asarray(model.predict(coming), bool)
    achieved = measure(y, vote, flagged).overall
    return {
        "rows": len(table.y),
        "judged_rows": int(known.sum()),
        "positives": int(truth.sum()),
        "coming": int(y.sum()),
        "promised_ap": promised["ap"].value,
        "promised_error": promised["ap"].spread,
        "achieved_ap": achieved["ap"].value,
        "achieved_error": achieved["ap"].spread,
        "promised_f1": promised["f1"].value,
        "achieved_f1": achieved["f1"].value,
        "flagged": float(flagged.mean()),
        "seconds": time.perf_counter() - start,
    }


# Seasons and drift


def seasons(seed: int, n: int = 8000, years: float = 4.0) -> pd.DataFrame:
    rng = np.random.default_rng(1000 + seed)
    day = np.sort(rng.uniform(0, 365.25 * years, n))
    year, weeks = day / 365.25, (day // 7).astype(int)
    X = rng.normal(size=(n, 6))
    angle = np.deg2rad(15) * year
    look = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    summer = np.maximum(0, -np.cos(2 * np.pi * year))
    log_odds = 1.2 * look + 0.8 * summer * X[:, 2] + 0.5 * X[:, 3]
    log_odds += 0.3 * np.sin(2 * np.pi * year) - 4.2
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    # Some positives of the same three weeks look alike.
    looks = rng.normal(size=(weeks.max() // 3 + 1, 4))
    looks *= 2.5 / np.linalg.norm(looks, axis=1, keepdims=True)
    added = ~y & (rng.random(n) < 0.04)
    X[added, 2:] = looks[weeks[added] // 3] + 0.5 * rng.normal(size=(added.sum(), 4))
    y |= added
    X[:, 4] += year
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)]).round(4)
    frame["region"] = rng.choice(list("abcde"), n)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.floor(day), "D")
    frame.insert(0, "day", dates.strftime("%Y-%m-%d"))
    frame["bad"] = np.where(y, "yes", "no")
    return frame


WAYS: dict[str, dict[str, Any]] = {
    "given": {"time": "day"},
    "found": {},
    "shuffled": {"shuffle": True},
    "old": {"shuffle": True, "keep": ["day"]},
}


def simulated(out: Path, seeds: int) -> None:
    tasks = [("trees", judged, seed) for judged in WAYS for seed in range(seeds)]
    tasks += [("small", judged, seed) for judged in WAYS for seed in range(seeds)]
    for pool, judged, seed in tasks:
        key = ["seasons", pool, judged, seed]
        if done(out, key) or (pool, judged) == ("small", "old"):
            continue
        frame = seasons(seed)
        is_past = frame["day"] < "2023-01-01"
        past, coming = frame[is_past], frame[~is_past]
        if judged == "given":
            past = past.sample(frac=1, random_state=seed)
        table = prepare(past.reset_index(drop=True), "bad", "yes", **WAYS[judged])
        assert (table.times is None) == (judged in ("shuffled", "old"))
        y = (coming["bad"] == "yes").to_numpy()
        add(out, key, judge(table, table.schema.encode(coming), y, pool, judged, seed))


# Real tables, the last 30 % to come


def real(out: Path, data: Path) -> None:
    rng = np.random.default_rng(0)

    def some(frame: pd.DataFrame, one_in: int) -> pd.DataFrame:
        """All positives, and one in so many negatives, in their order."""
        drawn = (frame["target"] == 1) | (rng.integers(0, one_in, len(frame)) == 0)
        return frame[drawn].reset_index(drop=True)

    fraud = pd.read_parquet(data / "paper/credit_fraud.parquet")
    protein = pd.read_parquet(data / "paper/protein_homo.parquet")
    blocks = pd.read_parquet(data / "paper/protein_homo_block_id.parquet")["block_id"]
    census = pd.read_parquet(data / "extra/census_kdd_half.parquet")
    protein["block"] = blocks
    census["row"] = np.arange(len(census))
    fraud, protein = some(fraud, 5), some(protein, 5)
    census = census[rng.integers(0, 4, len(census)) == 0].reset_index(drop=True)
    ways: dict[str, tuple[pd.DataFrame, dict[str, dict[str, Any]]]] = {
        "Credit Fraud": (
            fraud,
            {"shuffled": {"drop": ["Time"]}, "forward": {"time": "Time"}},
        ),
        "Protein Homo": (
            protein,
            {
                "shuffled": {"drop": ["block"]},
                "by block": {"group": "block"},
                "forward": {"time": "block"},
            },
        ),
        "Census": (census, {"shuffled": {"drop": ["row"]}, "forward": {"time": "row"}}),
    }
    for pool in ("trees", "small"):
        for name, (frame, hows) in ways.items():
            cut = round(0.7 * len(frame))
            if name == "Protein Homo":  # whole blocks come
                cut = int((frame["block"] < frame["block"].iloc[cut]).sum())
            past, coming = frame.iloc[:cut], frame.iloc[cut:].reset_index(drop=True)
            for judged, how in hows.items():
                key = [name, pool, judged, 0]
                if done(out, key):
                    continue
                table = prepare(past, "target", "1", **how)
                new = table.schema.encode(coming)
                add(out, key, judge(table, new, coming["target"] == 1, pool, judged, 0))


# Results


def done(out: Path, key: list[Any]) -> bool:
    if not out.exists():
        return False
    with out.open(newline="") as file:
        known = {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}
    return tuple(map(str, key)) in known


def add(out: Path, key: list[Any], found: dict[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    is_new = not out.exists()
    row = dict(zip(KEY, key, strict=True)) | found
    rounded = {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerow(rounded)
    print(" ".join(map(str, rounded.values())), flush=True)


def summary() -> None:
    for name in ("simulated", "real"):
        path = OUT / f"{name}.csv"
        if not path.exists():
            continue
        found = pd.read_csv(path)
        found["excess"] = found["promised_ap"] - found["achieved_ap"]
        width = NORMAL_90 * np.hypot(found["promised_error"], found["achieved_error"])
        found["covers"] = found["excess"].abs() <= width
        found["width"] = width
        print(f"{name}: average precision")
        for key, some in found.groupby(["table", "pool", "judged"], sort=False):
            promised, achieved = some["promised_ap"].mean(), some["achieved_ap"].mean()
            line = f"{' '.join(key):34s} promised {promised:.3f}, achieved {achieved:.3f}"
            if len(some) > 1:
                error = some["excess"].std(ddof=1) / len(some) ** 0.5
                line += (
                    f", difference {some['excess'].mean():+.3f} ± {error:.3f}; the 90 % "
                    f"interval covers 0 in {some['covers'].sum()} of {len(some)}"
                )
            else:
                excess, width = some["excess"].iloc[0], some["width"].iloc[0]
                line += f", difference {excess:+.3f} (90 %: ± {width:.3f})"
            f1 = some["promised_f1"].mean(), some["achieved_f1"].mean()
            print(f"{line}; F1 {f1[0]:.3f} and {f1[1]:.3f}")
        print()


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["simulated", "real", "summary"])
    parser.add_argument("--seeds", type=int, default=20)
    add_data_option(parser)
    given = parser.parse_args()
    if given.what == "simulated":
        simulated(OUT / "simulated.csv", given.seeds)
    elif given.what == "real":
        real(OUT / "real.csv", Path(given.data))
    told = io.StringIO()
    with redirect_stdout(told):
        print_setting("scikit-learn", "numpy", "pandas", "lightgbm")
        summary()
    (OUT / "summary.txt").write_text(told.getvalue())
    print(told.getvalue())


if __name__ == "__main__":
    main()
