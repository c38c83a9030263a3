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


def how_made(data: Path, frame: Any, arguments: list[str]) -> dict[str, Any]:
    """The command, the data's fingerprint, versions and date."""
    return {
        "command": shlex.join(["damvi", *arguments[1:]]),
        "data": print_of(data, frame),
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
