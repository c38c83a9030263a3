"""The folder that keeps what was fetched, and how a file in it is trusted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from .digests import file_sha256
from .files import need


class ChecksumError(ValueError):
    """A file is not the one that was expected, and was not used."""


def cache_dir() -> Path:
    """Return the cache: ``DAMVI_CACHE``, or the platform's own place for caches."""
    if variable := os.environ.get("DAMVI_CACHE"):
        return Path(variable).expanduser()
    return Path(need("pooch").os_cache("damvi"))


def write(path: Path, fill: Callable[[Path], None]) -> None:
    """Write a file whole or not at all, and its checksum beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        fill(part)
        seal(path).write_text(file_sha256(part), encoding="ascii")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def seal(path: Path) -> Path:
    """Return where the checksum of a cached file is kept."""
    return path.with_name(f"{path.name}.sha256")


def intact(path: Path) -> bool:
    """Whether a cached file is there and still what was written."""
    if not path.is_file() or not seal(path).is_file():
        return False
    return seal(path).read_text(encoding="ascii").strip() == file_sha256(path)


def set_aside(path: Path) -> Path:
    """Rename a file that must not be used, and return its new name."""
    aside = path.with_name(f"{path.name}.bad")
    path.replace(aside)
    seal(path).unlink(missing_ok=True)
    return aside


def expect(path: Path, sha256: str, cure: str) -> None:
    """Set a cached file aside, with an error, unless it has the checksum."""
    found = file_sha256(path)
    if sha256 and found != sha256:
        aside = set_aside(path)
        raise ChecksumError(
            f"{path.name} has a wrong checksum and was not used; it is kept as {aside}. "
            f"Expected SHA-256 {sha256}, found {found}. {cure}"
        )
