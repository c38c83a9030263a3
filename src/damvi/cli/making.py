"""How a model was made, so that it can be made again."""

from __future__ import annotations

import hashlib
import platform
import shlex
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__

PACKAGES = ("numpy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")


def how_made(data: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """The command, the data's fingerprint, versions and date."""
    return {
        "command": shlex.join(["damvi", *arguments[1:]]),
        "data": data,
        "versions": _versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def print_of(path: Path, frame: Any) -> dict[str, Any]:
    """By what a table is known again."""
    return {
        "name": path.name,
        "sha256": _sha256(path),
        "rows": len(frame),
        "columns": len(frame.columns),
    }


def print_of_files(path: Path, table: Any) -> dict[str, Any]:
    """By what a parquet dataset is known again, without a reading of all its bytes.

    A footer has the counts, places and extremes of all that is in its file.
    """
    digest = hashlib.sha256()
    for file, footer in zip(table.files, table.footers, strict=True):
        with open(file, "rb") as opened:
            opened.seek(-(footer.serialized_size + 8), 2)
            digest.update(opened.read())
    return {
        "name": path.name,
        "files": len(table.files),
        "sha256_of_footers": digest.hexdigest(),
        "rows": sum(footer.num_rows for footer in table.footers),
        "columns": len(table.schema.names),
    }


def _versions() -> dict[str, str]:
    found = {"damvi": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
