"""A table's worth of cells: what is to be run, and what tells one cell from another."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..baselines import make_method
from ..baselines.methods import Trees
from .protocol import Protocol
from .store import Cell

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "imbalanced-learn",
    "lightgbm",
    "xgboost",
)


@dataclass(frozen=True)
class Plan:
    """A table's worth of cells.

    Parameters
    ----------
    datasets : sequence of Bunch
        As :func:`damvi.datasets.load` returns them; an iterator is loaded one by one.
    methods : sequence of str
    n_splits : int
    ratios : sequence
        Shares of positives to thin the data to; None is the data as it is.
    """

    datasets: Iterable[Any]
    methods: Sequence[str]
    n_splits: int = 5
    ratios: Sequence[float | None] = (None,)
    trees: Trees = "fast"


@dataclass(frozen=True)
class Pending:
    """A cell that is to be run, by what estimator, and where its data lie."""

    cell: Cell
    estimator: Any
    data: Path
    cost: float
    megabytes: float


def cells_of(plan: Plan, protocol: Protocol, scratch: Path) -> Iterator[Pending]:
    """Every cell of a plan, with the folder of its data, and a guess at its weight."""
    versions, names = _versions(), set[str]()
    for number, dataset in enumerate(plan.datasets):
        if dataset.name in names:
            raise ValueError(f"two datasets have the name {dataset.name}; rename one")
        names.add(dataset.name)
        if protocol.splits == "groups" and dataset.get("groups") is None:
            raise ValueError(
                f"splits by groups need to know the groups, and {dataset.name} has none; "
                f"use random or stratified splits"
            )
        X = np.ascontiguousarray(dataset.data, dtype=np.float64)
        y = np.asarray(dataset.target, dtype=np.int8)
        data = scratch / str(number)
        data.mkdir()
        np.save(data / "X.npy", X)
        np.save(data / "y.npy", y)
        groups = dataset.get("groups")
        if groups is not None:
            groups = np.unique(np.asarray(groups), return_inverse=True)[1]
            np.save(data / "groups.npy", groups)
        digest = fingerprint(X, y, groups if protocol.splits == "groups" else None)
        megabytes = 150 + 8 * X.nbytes / 1e6
        for split, ratio, method in product(
            range(plan.n_splits), plan.ratios, plan.methods
        ):
            seed = protocol.seed + split
            model = make_method(method, trees=plan.trees, random_state=seed)
            place = {
                "dataset": dataset.name,
                "method": method,
                "split": split,
                "ratio": ratio,
            }
            settings = {
                **place,
                "data": digest,
                "estimator": in_words(model),
                "trees": plan.trees,
                **protocol.as_dict(),
            }
            cell = {
                "key": key_of(settings),
                **place,
                "settings": settings,
                "versions": versions,
            }
            yield Pending(cell, model, data, float(X.size), megabytes)


def key_of(settings: dict[str, Any]) -> str:
    """What tells a cell from all others."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()[:32]


def fingerprint(
    X: NDArray[np.float64], y: NDArray[np.int8], groups: NDArray[np.intp] | None = None
) -> str:
    """A digest of the data, so that cells of other data are told apart."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(X.data if X.size else b"")
    digest.update(np.ascontiguousarray(y).data)
    if groups is not None:
        digest.update(np.ascontiguousarray(groups, dtype=np.int64).data)
    return digest.hexdigest()[:16]


def in_words(model: Any) -> str:
    """An estimator with the settings that are not its defaults.

    A new parameter, whose default changes nothing, so leaves old cells as they are.
    """
    return " ".join(model.__repr__(N_CHAR_MAX=10**6).split())


def _versions() -> dict[str, str]:
    found = {"damvi": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
