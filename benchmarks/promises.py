"""What a fit promises of new rows, and what comes: in time, by group, and shuffled.

    python benchmarks/promises.py simulated            # 20 seeds, about half an hour
    python benchmarks/promises.py intervals            # which blocks hold what they say
    python benchmarks/promises.py real --data FOLDER   # three real tables, about an hour
    python benchmarks/promises.py summary              # what both found, in words

A model is fitted on the first part of a table. Its average precision, as the fit tells it,
is the promise; that on the part that comes after is what was achieved. The 90 % interval
of their difference is that of a normal with both standard errors, each by bootstrap: of
blocks of rows that are near in time, or of one group, where rows are judged so (those that
come are drawn in the same way), and otherwise of rows. A run that is interrupted goes on
where it was: results are added to the CSV one by one.

Simulated, "seasons": rows of four years, the first three to fit on. The positives' look
turns by 15 degrees a year, one feature tells something in summer alone, the share of
positives has a season, another feature grows with time, and some positives of the same
three weeks look alike, as those of a campaign do.
"campaigns" has nothing but these: half of the positives look alike all the time, and the
other half are of campaigns of six weeks, each with a look of its own, that are of unequal
size. (Written down before it was first run, and not changed since.)
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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setting import add_data_option, print_setting
from sklearn.metrics import average_precision_score

from damvi import DAMVIClassifier, DAMVIVotingClassifier, forward_splits
from damvi.decision import crossfit_decisions
from damvi.evaluation import alike_blocks, measure
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


def judge(
    table: Any, coming: Any, y: Any, pool: str, judged: str, seed: int, alike: Any = None
) -> dict:
    """``alike`` are the blocks of the rows that come, if rows are judged by such."""
    start = time.perf_counter()
    model = fitted(table, pool, judged, seed)
    weighting, vote = model.decision_.weighting, model.decision_.out_of_sample_vote
    known = ~np.isnan(vote)
    own, truth = vote[known], table.y[known]
    decided = crossfit_decisions(
        own,
        truth,
        "f1",
        weighting.folds[known],
        forward=weighting.forward,
        smooth=True,
    )
    times, groups = (
        None if given is None else given[known] for given in (table.times, table.groups)
    )
    promised = measure(truth, own, decided, blocks=alike_blocks(times, groups)).overall
    vote, flagged = model.vote(coming), np.asarray(model.predict(coming), bool)
    achieved = measure(y, vote, flagged, blocks=alike).overall
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


def campaigns(seed: int, n: int = 8000, years: float = 4.0) -> pd.DataFrame:
    rng = np.random.default_rng(5000 + seed)
    day = np.sort(rng.uniform(0, 365.25 * years, n))
    campaign = (day // 42).astype(int)
    n_campaigns = campaign.max() + 1
    X = rng.normal(size=(n, 6))
    # About 4 % in all: half of them by two features, the same all the time.
    y = rng.random(n) < 1 / (1 + np.exp(-(1.2 * X[:, 0] + 0.6 * X[:, 1] - 4.7)))
    looks = rng.normal(size=(n_campaigns, 4))
    looks *= 2.5 / np.linalg.norm(looks, axis=1, keepdims=True)
    size = rng.exponential(size=n_campaigns)
    added = ~y & (rng.random(n) < 0.02 * size[campaign])
    X[added, 2:] = looks[campaign[added]] + 0.5 * rng.normal(size=(added.sum(), 4))
    y |= added
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)]).round(4)
    frame["region"] = rng.choice(list("abcde"), n)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.floor(day), "D")
    frame.insert(0, "day", dates.strftime("%Y-%m-%d"))
    frame["bad"] = np.where(y, "yes", "no")
    return frame


DESIGNS = {"seasons": seasons, "campaigns": campaigns}
WAYS: dict[str, dict[str, Any]] = {
    "given": {"time": "day"},
    "found": {},
    "shuffled": {"shuffle": True},
    "old": {"shuffle": True, "keep": ["day"]},
}


def simulated(out: Path, seeds: int) -> None:
    tasks = list(product(("trees", "small"), WAYS, DESIGNS, range(seeds)))
    for pool, judged, name, seed in tasks:
        key = [name, pool, judged, seed]
        if done(out, key) or (pool, judged) == ("small", "old"):
            continue
        frame = DESIGNS[name](seed)
        is_past = frame["day"] < "2023-01-01"
        past, coming = frame[is_past], frame[~is_past]
        if judged == "given":
            past = past.sample(frac=1, random_state=seed)
        table = prepare(past.reset_index(drop=True), "bad", "yes", **WAYS[judged])
        assert (table.times is None) == (judged in ("shuffled", "old"))
        y = (coming["bad"] == "yes").to_numpy()
        alike = None
        if table.times is not None:
            alike = alike_blocks(pd.to_datetime(coming["day"]).to_numpy())
        new = table.schema.encode(coming)
        add(out, key, judge(table, new, y, pool, judged, seed, alike))


# How many blocks


def intervals(path: Path, n: int = 3600, repeats: int = 100) -> None:
    """How often the 90 % interval of AP holds its mean, by the blocks that are drawn.

    Votes without a model: those of the positives of one campaign move together.
    """

    def rows(rng: Any, length: float) -> tuple[Any, Any, Any]:
        times = np.sort(rng.random(n))
        campaign = (times / length + rng.random()).astype(int) if length else np.arange(n)
        size = rng.exponential(size=campaign.max() + 1) if length else np.ones(n)
        y = rng.random(n) < 0.04 * size[campaign]
        easy = 1.5 + (rng.normal(size=len(size)) if length else np.zeros(n))
        return times, y, rng.normal(size=n) + y * easy[campaign]

    lines = [
        "The 90 % interval of AP holds its mean (3,600 rows, 4 % positive), in percent"
    ]
    numbers = (None, 8, 10, 12, 15, 20)
    head = "".join(f"{number or 'rows':>8}" for number in numbers)
    lines.append(f"{'campaigns last':>24}{head}   blocks")
    for share in (0, 30, 15, 8):
        length = 1 / share if share else 0.0
        rng = np.random.default_rng(share)
        drawn = [rows(rng, length) for _ in range(repeats)]
        mean = np.mean([average_precision_score(y, vote) for _, y, vote in drawn])
        cells = ""
        for number in numbers:
            held = 0
            for times, y, vote in drawn:
                blocks = number and alike_blocks(times, n_blocks=number)
                found = measure(y, vote, vote > 1.5, blocks=blocks).overall["ap"]
                held += found.low <= mean <= found.high
            cells += f"{100 * held / repeats:8.0f}"
        told = f"1/{share} of the time" if share else "none"
        lines.append(f"{told:>24}{cells}")
        print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
                alike = alike_blocks(
                    coming[how["time"]] if "time" in how else None,
                    coming[how["group"]] if "group" in how else None,
                )
                y = coming["target"] == 1
                add(out, key, judge(table, new, y, pool, judged, 0, alike))


# Results


def done(out: Path, key: list[Any]) -> bool:
    if not out.exists():
        return False
    with out.open(encoding="utf-8", newline="") as file:
        known = {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}
    return tuple(map(str, key)) in known


def add(out: Path, key: list[Any], found: dict[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    is_new = not out.exists()
    row = dict(zip(KEY, key, strict=True)) | found
    rounded = {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
    with out.open("a", encoding="utf-8", newline="") as file:
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
    parser.add_argument("what", choices=["simulated", "real", "intervals", "summary"])
    parser.add_argument("--seeds", type=int, default=20)
    add_data_option(parser)
    given = parser.parse_args()
    if given.what == "simulated":
        simulated(OUT / "simulated.csv", given.seeds)
    elif given.what == "real":
        real(OUT / "real.csv", Path(given.data))
    elif given.what == "intervals":
        intervals(OUT / "intervals.txt")
    told = io.StringIO()
    with redirect_stdout(told):
        print_setting("scikit-learn", "numpy", "pandas", "lightgbm")
        summary()
    (OUT / "summary.txt").write_text(told.getvalue())
    print(told.getvalue())


if __name__ == "__main__":
    main()
