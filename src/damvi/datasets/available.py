"""``names``: which datasets there are, and where each would come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

from .cache import cache_dir
from .catalogue import KNOWN, PAPER
from .downloads import DOWNLOADS
from .folders import find, folders, listed


class Record(TypedDict):
    """One dataset; sizes are None where only the file knows them."""

    name: str
    where: str
    place: str
    rows: int | None
    attributes: int | None
    ratio: float | None
    paper: bool


def names(data_dir: str | os.PathLike[str] | None = None) -> list[Record]:
    """List the datasets that ``load`` knows: the paper's, the collection's, a folder's.

    Parameters
    ----------
    data_dir : path, optional
        A folder to look in first, as in ``load``.

    Returns
    -------
    records : list of dict
        ``name``, ``where`` ("bundled", "made here", "folder", "cache", "to fetch", "to
        place by hand" or "no public home"), ``place`` (the file or the address), ``rows``,
        ``attributes``, ``ratio`` (negatives to a positive) and ``paper`` (one of its six).

    Examples
    --------
    >>> from damvi.datasets import names
    >>> next(record["where"] for record in names() if record["name"] == "mammography")
    'bundled'
    """
    searched = folders(data_dir)
    # The paper's six come first, in its own order; then the rest by name.
    ours = [*PAPER, *sorted(set(KNOWN) - set(PAPER))]
    others = {name for folder in searched for name in listed(folder)} - set(ours)
    return [_record(name, searched) for name in [*ours, *sorted(others)]]


def _record(name: str, searched: list[Path]) -> Record:
    where, place = _where(name, searched)
    known = KNOWN.get(name)
    if known is None:
        rows, attributes = _size(Path(place))
        ratio = None
    else:
        rows, attributes, ratio = known.rows, known.attributes, known.ratio
        if known.positives:
            ratio = (known.rows - known.positives) / known.positives
    return Record(
        name=name,
        where=where,
        place=place,
        rows=rows,
        attributes=attributes,
        ratio=ratio,
        paper=name in PAPER and name != "scania_partial",
    )


def _size(path: Path) -> tuple[int | None, int | None]:
    """Return what a parquet file says of its size, without reading the rows."""
    try:
        from pyarrow import parquet

        metadata = parquet.read_metadata(path)
    except (ImportError, ValueError, OSError):
        return None, None
    return metadata.num_rows, metadata.num_columns - 1


def _where(name: str, searched: list[Path]) -> tuple[str, str]:
    if name == "mammography":
        return "bundled", ""
    if name == "pct_imitation":
        return "made here", ""
    for folder in searched:
        if path := find(name, folder):
            return "folder", str(path)
    if not KNOWN[name].sources:
        return "no public home", ""
    try:
        cached = cache_dir() / f"{name}.parquet"
        if cached.is_file():
            return "cache", str(cached)
    except ImportError:
        # Without pooch there is no cache to look in.
        pass
    download = DOWNLOADS[KNOWN[name].sources[0][0]]
    return ("to place by hand" if download.by_hand else "to fetch"), download.url
