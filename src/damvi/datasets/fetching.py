"""``fetch``: a dataset from its public home into the cache, checked before it is used."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from .archives import READERS, Table
from .cache import ChecksumError, cache_dir, expect, intact, set_aside, write
from .catalogue import KNOWN, Known
from .digests import file_sha256, table_sha256
from .downloads import DOWNLOADS
from .files import need
from .folders import SUBFOLDERS, folders
from .transfer import obtain


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Fetch a dataset into the cache, unless it is there, and return its file.

    Parameters
    ----------
    name : str
        One of the public datasets, see ``names``.
    data_dir : path, optional
        Where a file that must be placed by hand may lie too.

    Examples
    --------
    >>> from damvi.datasets import fetch
    >>> fetch("webpage")  # doctest: +SKIP
    PosixPath('/home/me/.cache/damvi/webpage.parquet')
    """
    known = KNOWN.get(name)
    if known is None or not known.sources:
        raise ValueError(f"{name!r} is not a dataset that can be fetched")
    path = cache_dir() / f"{name}.parquet"
    if intact(path):
        return path
    if path.is_file():
        set_aside(path)
    failures: list[Exception] = []
    for source, member in known.sources:
        try:
            file = _by_hand(known, source, data_dir) or obtain(DOWNLOADS[source])
            table = _read(known, source, file, member)
        except (ConnectionError, ChecksumError) as error:
            failures.append(error)
        else:
            _store(path, table)
            return path
    raise failures[0]


def _read(known: Known, source: str, file: Path, member: str) -> Table:
    """Return the table of a download, which is set aside unless it holds what it should."""
    try:
        table = READERS[source](file, member)
        _check(known, table, first=source == known.sources[0][0])
    except ImportError:
        raise
    except Exception as error:
        raise ChecksumError(_refused(known, file, error)) from error
    return table


def _check(known: Known, table: Table, first: bool) -> None:
    """Compare a table with what is known of it: its size, and its digest where pinned."""
    X, y = table.data, table.target
    expected = f"{known.rows:,} rows of {known.attributes} features"
    found = f"{X.shape[0]:,} rows of {X.shape[1]} features"
    if X.shape != (known.rows, known.attributes) or len(y) != known.rows:
        raise ValueError(f"expected {expected}, found {found}")
    positives = int(y.sum())
    if known.positives is not None and positives != known.positives:
        raise ValueError(f"expected {known.positives:,} positives, found {positives:,}")
    if known.ratio is not None and known.positives is None:
        # Published ratios are rounded, and webpage's a little off.
        ratio = (len(y) - positives) / max(positives, 1)
        if not 0.9 < ratio / known.ratio < 1.1:
            raise ValueError(f"expected about {known.ratio:g}:1, found {ratio:.1f}:1")
    if known.digest and first:
        digest = table_sha256(X, y, ordered=known.ordered)
        if digest != known.digest:
            raise ValueError(f"expected content of SHA-256 {known.digest}, found {digest}")


def _refused(known: Known, file: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    inside = cache_dir() in file.parents
    kept = f"it is kept as {set_aside(file)}" if inside else "it was left as it is"
    return (
        f"{file.name} does not hold {known.name} as it should and was not used; {kept}. "
        f"{reason[0].upper()}{reason[1:]}. Run again to fetch it anew"
    )


def _by_hand(
    known: Known, source: str, data_dir: str | os.PathLike[str] | None
) -> Path | None:
    """Return a file that the user has placed, checked, or say where to put it."""
    download = DOWNLOADS[source]
    if not download.by_hand:
        return None
    home = cache_dir() / "downloads"
    again = f"Download {download.file} again from {download.url}"
    for folder in folders(data_dir):
        for sub in SUBFOLDERS:
            file = folder / sub / download.file
            if file.is_file():
                found = file_sha256(file)
                if found != download.sha256:
                    raise ChecksumError(
                        f"{file} has a wrong checksum and was not used. Expected SHA-256 "
                        f"{download.sha256}, found {found}. {again}"
                    )
                return file
    file = home / download.file
    if file.is_file():
        expect(file, download.sha256, again)
        return file
    raise FileNotFoundError(
        f"{known.name} must be downloaded by hand, since {download.by_hand}: get "
        f"{download.file} from {download.url} (SHA-256 {download.sha256}) and put it into "
        f"{home}, or into the folder that data_dir or DAMVI_DATA names"
    )


def _store(path: Path, table: Table) -> None:
    """Keep a table in the cache, as the files of a data folder are."""
    pandas = need("pandas")
    need("pyarrow")
    if table.groups is not None:
        blocks = pandas.DataFrame({"block_id": table.groups})
        write(path.with_name(f"{path.stem}_block_id.parquet"), blocks.to_parquet)
    frame = pandas.DataFrame(np.asarray(table.data), columns=table.feature_names)
    frame["target"] = table.target
    write(path, frame.to_parquet)
