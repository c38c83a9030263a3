"""``load``: every dataset through one door, by name or by file."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from .bundled import MAMMOGRAPHY, mammography
from .catalogue import KNOWN, PAPER
from .describing import describe
from .fetching import fetch
from .folders import find, folders, is_path, listed
from .imitation import imitate_pct
from .tables import Contents, read_table


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
    comes with the package and ``"pct_imitation"`` is made on the spot; only a file in
    ``data_dir`` goes before these two.

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
    columns = {"target": target, "positive": positive, "groups": groups}
    if is_path(name_or_path):
        path = Path(name_or_path).expanduser()
        # With its suffix: webpage.csv is not the dataset of that name.
        return _bunch(path.name, f"{path.name}: {path}", read_table(path, **columns))

    name = os.fspath(name_or_path)
    own = name in ("mammography", "pct_imitation")
    if data_dir is not None or not own:
        for folder in folders(data_dir):
            if file := find(name, folder):
                return _named(name, file, columns)
    if own:
        given = [word for word, value in columns.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]}=... is for files; {name} has its own")
        return _mammography() if name == "mammography" else _imitation()
    if name not in KNOWN:
        raise ValueError(_unknown(name, data_dir))
    if not KNOWN[name].sources:
        raise FileNotFoundError(
            f"{name} is no public download: name a folder that has {name}.parquet, with "
            "data_dir or the variable DAMVI_DATA"
        )
    return _named(name, fetch(name, data_dir=data_dir), columns)


def _named(name: str, file: Path, columns: dict[str, Any]) -> Bunch:
    """A dataset that a folder or the cache has."""
    known = KNOWN.get(name)
    table = read_table(file, **columns, keep_constant=known is not None)
    if known is None:
        return _bunch(name, f"{name}: {file}", table)
    paper, notes = PAPER.get(name), list(known.notes)
    if paper and not notes and table.data.shape != (paper["rows"], paper["attributes"]):
        notes.append("Not of the size that the paper's table states.")
    if name == "protein_homo" and table.groups is None:
        notes.append("This copy lacks the query blocks, so there are no groups.")
    return _bunch(name, known.title, table._replace(notes=[*notes, *table.notes]), paper)


def _mammography() -> Bunch:
    X, y = mammography()
    table = Contents(X, y, [f"f{j}" for j in range(X.shape[1])], None, [])
    return _bunch("mammography", MAMMOGRAPHY, table, PAPER["mammography"])


def _imitation() -> Bunch:
    made = imitate_pct()
    notes = ["An imitation of PCT in size and rarity: no result on it is one on PCT."]
    table = Contents(made.data, made.target, made.feature_names, made.groups, notes)
    title = KNOWN["pct_imitation"].title
    return _bunch("pct_imitation", title, table, PAPER["pct_imitation"])


def _bunch(
    name: str, title: str, table: Contents, paper: dict[str, Any] | None = None
) -> Bunch:
    return Bunch(
        **table._asdict(),
        name=name,
        imitation=name == "pct_imitation",
        paper=dict(paper) if paper else None,
        DESCR=describe(title, table.data, table.target, paper, table.notes),
    )


def _unknown(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    there = {*KNOWN, *(other for folder in folders(data_dir) for other in listed(folder))}
    near = get_close_matches(name, sorted(there))
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"unknown dataset {name!r}; {hint}there is {', '.join(map(repr, sorted(there)))}"
