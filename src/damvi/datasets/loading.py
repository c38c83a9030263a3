"""``load``: every dataset through one door, by name or by file."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .bundled import MAMMOGRAPHY, mammography
from .catalogue import KNOWN, PAPER
from .columns import as_numbers
from .describing import describe
from .files import read_file
from .folders import find, folders, is_path, listed
from .imitation import imitate_pct
from .labels import binary, pick


def load(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    target: str | None = None,
    positive: Any = None,
    groups: str | None = None,
) -> Bunch:
    """Load a dataset by name, or any CSV, TSV or parquet file.

    A name is looked for in ``data_dir``, in the folder that the variable ``DAMVI_DATA``
    names, and in the cache, and is then fetched from its public home. ``"mammography"``
    comes with the package and ``"pct_imitation"`` is made on the spot.

    Parameters
    ----------
    name_or_path : str or path
        A dataset's name, see ``names``, or a file.
    data_dir : path, optional
        A folder to look in first.
    target : str, optional
        The column to predict, by default ``"target"``.
    positive : optional
        The value of the target to find; all others are negatives. By default the rarer
        of two.
    groups : str, optional
        A column that says which rows belong together. It is taken out of the features.

    Returns
    -------
    dataset : Bunch
        ``data`` (n, n_features), ``target`` (n,) with 1 for the positives,
        ``feature_names``, ``groups`` or None, ``name``, ``DESCR``, ``notes`` (what was
        encoded, dropped, or differs from the paper), ``imitation`` (True for made-up
        data) and ``paper`` (rows, attributes and percent in the paper's table, or None).

    Examples
    --------
    >>> from damvi.datasets import load
    >>> data = load("mammography")
    >>> data.data.shape, int(data.target.sum())
    ((11183, 6), 260)
    >>> data.paper["percent"]
    2.32
    """
    if is_path(name_or_path):
        path = Path(name_or_path).expanduser()
        return _from_file(path, path.name.split(".")[0], target, positive, groups)
    name = os.fspath(name_or_path)
    for folder in folders(data_dir):
        # The bundled file stands for the one that a variable happens to point at.
        if name == "mammography" and data_dir is None:
            break
        if path_found := find(name, folder):
            return _from_file(path_found, name, target, positive, groups)
    if name == "mammography":
        X, y = mammography()
        return _bunch(name, X, y, [f"f{j}" for j in range(X.shape[1])], [], MAMMOGRAPHY)
    if name == "pct_imitation":
        made = imitate_pct()
        notes = ["An imitation of PCT in size and rarity: no result on it is one on PCT."]
        return _bunch(
            name, made.data, made.target, made.feature_names, notes, groups=made.groups
        )
    raise ValueError(_unknown(name, data_dir))


def _from_file(
    path: Path, name: str, target: str | None, positive: Any, groups: str | None
) -> Bunch:
    frame, known = read_file(path), KNOWN.get(name)
    notes = list(known.notes) if known else []
    if target is None:
        target = "Class" if name == "credit_fraud" and "Class" in frame else "target"
        if target not in frame:
            columns = ", ".join(map(repr, frame.columns[:20]))
            raise ValueError(
                f"say which column of {path} to predict, with target=...; it has {columns}"
                + (" and more" if frame.shape[1] > 20 else "")
            )
    y, kept = binary(pick(frame, target, "target"), positive, notes)
    blocks = pick(frame, groups, "group").to_numpy()[kept] if groups else _blocks(path)
    features = frame.loc[kept].drop(columns=[target, *([groups] if groups else [])])
    X, columns_left = as_numbers(features, notes, keep_constant=known is not None)
    return _bunch(name, X, y, columns_left, notes, groups=blocks, origin=path)


def _blocks(path: Path) -> NDArray[Any] | None:
    """The blocks of a folder's ``protein_homo``, when they lie beside it."""
    beside = path.with_name(f"{path.stem}_block_id.parquet")
    if path.suffix == ".parquet" and beside.is_file():
        return read_file(beside).iloc[:, 0].to_numpy()
    return None


def _bunch(
    name: str,
    X: NDArray[Any],
    y: NDArray[np.int8],
    feature_names: list[str],
    notes: list[str],
    title: str = "",
    groups: NDArray[Any] | None = None,
    origin: Path | None = None,
) -> Bunch:
    known, paper = KNOWN.get(name), PAPER.get(name)
    title = title or (known.title if known else f"{name}: {origin}")
    return Bunch(
        data=X,
        target=y,
        feature_names=feature_names,
        groups=groups,
        name=name,
        notes=notes,
        imitation=name == "pct_imitation",
        paper=dict(paper) if paper else None,
        DESCR=describe(title, X, y, paper, notes),
    )


def _unknown(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    there = {*KNOWN, *(other for folder in folders(data_dir) for other in listed(folder))}
    near = get_close_matches(name, sorted(there))
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"unknown dataset {name!r}; {hint}there is {', '.join(map(repr, sorted(there)))}"
