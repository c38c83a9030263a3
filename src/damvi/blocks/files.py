"""The files of a parquet dataset, and what only the names of their folders say."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path


def parquet_files(path: str) -> list[str]:
    """The files of a path or a pattern, in the order of their names."""
    if Path(path).is_dir():
        found = set(_inside(path))
    elif Path(path).exists():
        found = {path}
    else:
        found = _matches(path)
    if not found:
        raise FileNotFoundError(
            f"{path}: there is no such file, and no parquet file in it or of that pattern"
        )
    return sorted(map(str, found))


def folder_columns(files: Iterable[str]) -> list[str]:
    """Columns that are written as names of folders, as in ``year=2025/a.parquet``.

    Those with one value throughout tell no rows apart, and are left out.
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for part in Path(file).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals and name:
                values.setdefault(name, set()).add(value)
    return [name for name, some in values.items() if len(some) > 1]


def _matches(pattern: str) -> set[str]:
    """Files of a pattern, and those in folders of that pattern."""
    parts = Path(pattern).parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    asked_for = any(map(_is_private, parts[first:]))
    found: set[str] = set()
    for match in glob.glob(pattern, recursive=True):
        if not asked_for and any(map(_is_private, Path(match).parts[first:])):
            continue
        found.update(_inside(match) if Path(match).is_dir() else [match])
    return found


def _inside(folder: str) -> list[str]:
    """Not what writers leave beside their files, or have not finished."""
    return [
        os.fspath(file)
        for file in Path(folder).rglob("*.parquet")
        if file.is_file() and not any(map(_is_private, file.relative_to(folder).parts))
    ]


def _is_private(name: str) -> bool:
    # Spark, Hadoop and pyarrow pass over them too; a folder "_a=1" is a partition.
    return name.startswith((".", "_")) and "=" not in name
