"""What the paper calls its methods and datasets, and in which order it shows them."""

from __future__ import annotations

from collections.abc import Iterable

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
PAPER_DATASETS = ("webpage", "mammography", "scania", "protein_homo", "credit_fraud", "pct")


def in_order(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names found: the known ones in their order, then the others by alphabet."""
    names, order = set(found), list(known)
    return [n for n in order if n in names] + sorted(names.difference(order))


def order_methods(found: Iterable[str]) -> list[str]:
    """
    >>> order_methods({"RF", "DAMVI", "mine", "EE"})
    ['EE', 'DAMVI', 'RF', 'mine']
    """
    return in_order(found, (*PAPER_METHODS, *EXTRA_METHODS))


def order_datasets(found: Iterable[str]) -> list[str]:
    """
    >>> order_datasets({"abalone", "scania_partial", "webpage"})
    ['webpage', 'scania_partial', 'abalone']
    """
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
