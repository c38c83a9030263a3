"""Folders of data files: where they are, and which file in them has a dataset."""

from __future__ import annotations

import os
from pathlib import Path

from ..tables import SUFFIXES

SUBFOLDERS = (".", "paper", "extra")


def folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the data folders to search, in order: the argument, then ``DAMVI_DATA``."""
    found = []
    if data_dir is not None:
        folder = Path(data_dir).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} (data_dir)")
        found.append(folder)
    if variable := os.environ.get("DAMVI_DATA"):
        folder = Path(variable).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} (variable DAMVI_DATA)")
        found.append(folder)
    return found


def find(name: str, folder: Path) -> Path | None:
    """Return the file of a dataset in a folder or its ``paper`` and ``extra``."""
    for sub in SUBFOLDERS:
        for suffix in SUFFIXES:
            path = folder / sub / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


def listed(folder: Path) -> dict[str, Path]:
    """Return the datasets of a folder by name: every parquet file that holds one."""
    found: dict[str, Path] = {}
    for sub in SUBFOLDERS:
        for path in sorted((folder / sub).glob("*.parquet")):
            # Blocks of another file's rows, not a dataset.
            if not path.stem.endswith("_block_id"):
                found.setdefault(path.stem, path)
    return found


def is_path(name: str | os.PathLike[str]) -> bool:
    """Whether the user names a file rather than a dataset."""
    text = os.fspath(name)
    separators = [os.sep] + ([os.altsep] if os.altsep else [])
    return (
        not isinstance(name, str)
        or text.lower().endswith(SUFFIXES)
        or any(separator in text for separator in separators)
    )
