"""What the paper calls its methods and datasets, their order, and its own numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

REFERENCE = "DAMVI"
BASELINES = ("S-DT", "R-DT", "A-DT", "R-BG", "S-BG", "A-BG", "BB", "BRF", "EE")
PAPER_METHODS = (*BASELINES, REFERENCE)
EXTRA_METHODS = ("uniform", "RF", "LightGBM", "XGBoost")
METRICS = {"f1": "F1", "ap": "Average precision"}
SHORT = {"f1": "F1", "ap": "AP"}

# Our name of a dataset: how it is shown, and what it stands for in the paper. An imitation
# stands for nothing, so that its numbers are never taken for a reproduction.
_DATASETS = {
    "webpage": ("Webpage", "webpage"),
    "mammography": ("Mammography", "mammography"),
    "scania": ("Scania", "scania"),
    "scania_partial": ("Scania (part)", "scania"),
    "protein_homo": ("Protein Homo", "protein_homo"),
    "credit_fraud": ("Credit Fraud", "credit_fraud"),
    "pct": ("PCT", "pct"),
    "pct_imitation": ("PCT (imitation)", None),
}
# Attributes, examples and per cent of positives, from the paper's table of datasets.
PAPER_SIZES = {
    "webpage": (300, 34_780, 3.03),
    "mammography": (6, 11_183, 2.32),
    "scania": (170, 60_000, 1.67),
    "protein_homo": (74, 145_751, 0.9),
    "credit_fraud": (30, 284_807, 0.17),
    "pct": (17, 816_099, 0.02),
}
PAPER_DATASETS = tuple(PAPER_SIZES)


def in_order(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names found: the known ones in their order, then the others by alphabet."""
    names, order = set(found), list(known)
    return [n for n in order if n in names] + sorted(names.difference(order))


def order_methods(found: Iterable[str]) -> list[str]:
    return in_order(found, (*PAPER_METHODS, *EXTRA_METHODS))


def order_datasets(found: Iterable[str]) -> list[str]:
    return in_order(found, _DATASETS)


def label(dataset: str) -> str:
    """How a dataset is shown; parts and imitations say what they are."""
    return _DATASETS.get(dataset, (dataset, None))[0]


def in_the_paper(dataset: str) -> str | None:
    """The paper's dataset that this one reproduces, in full or in part."""
    return _DATASETS.get(dataset, (dataset, None))[1]


def is_imitation(dataset: str) -> bool:
    return dataset.endswith("_imitation")


def is_part(dataset: str) -> bool:
    return dataset.endswith("_partial")


@dataclass(frozen=True)
class PaperEntry:
    """One entry of the paper's tables; ``worse`` is its mark ↓."""

    mean: float
    std: float
    worse: bool


@cache
def paper_entries() -> MappingProxyType[tuple[str, str, str], PaperEntry]:
    """Every entry, by metric, method and the paper's dataset."""
    text = Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            (row["metric"], row["method"], row["dataset"]): PaperEntry(
                float(row["mean"]), float(row["std"]), row["significantly_worse"] == "1"
            )
            for row in csv.DictReader(text.splitlines())
        }
    )


def paper_entry(metric: str, method: str, dataset: str) -> PaperEntry | None:
    """The paper's entry that ours reproduces, if it has one (an imitation has none)."""
    return paper_entries().get((metric, method, in_the_paper(dataset) or ""))


PAPER_SPLITS = 5
"""Over which the paper's means and deviations are taken."""


def allowed_gap(std: float, n_splits: int, paper: PaperEntry) -> float:
    """How far two means may be apart: two standard errors of their difference."""
    return 2 * math.sqrt(std**2 / n_splits + paper.std**2 / PAPER_SPLITS)


def agrees(
    mean: float | None, std: float | None, n_splits: int, paper: PaperEntry
) -> bool | None:
    """Whether within two standard errors of the paper's mean, if known.

    The deviations are over splits that overlap, so the errors are too small: a gap of a
    little more than two of them may still be chance.
    """
    if mean is None or std is None:
        return None
    return abs(mean - paper.mean) <= allowed_gap(std, n_splits, paper)
