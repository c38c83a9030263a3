"""The paper's own numbers, from its two tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from .names import in_the_paper
from .tables import Entry

# Attributes, examples and per cent of positives, from the paper's table of datasets.
PAPER_SIZES = {
    "webpage": (300, 34_780, 3.03),
    "mammography": (6, 11_183, 2.32),
    "scania": (170, 60_000, 1.67),
    "protein_homo": (74, 145_751, 0.9),
    "credit_fraud": (30, 284_807, 0.17),
    "pct": (17, 816_099, 0.02),
}


@dataclass(frozen=True)
class PaperEntry:
    """One entry of the paper's tables; ``worse`` is its mark ↓."""

    mean: float
    std: float
    worse: bool


@cache
def paper_entries() -> MappingProxyType[tuple[str, str, str], PaperEntry]:
    """Every entry, by metric, method and the paper's dataset.

    >>> paper_entries()["f1", "DAMVI", "webpage"]
    PaperEntry(mean=0.7996, std=0.011, worse=False)
    """
    text = files(__package__).joinpath("paper.csv").read_text(encoding="utf-8")
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


def agrees(ours: Entry, paper: PaperEntry) -> bool | None:
    """Whether within one standard deviation of the paper plus one of ours, if known."""
    if ours.mean is None or ours.std is None:
        return None
    return abs(ours.mean - paper.mean) <= paper.std + ours.std
