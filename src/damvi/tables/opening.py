"""The bytes of a file, unpacked if need be, and no more of them than a table has."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

DAMAGE = (
    *(EOFError, OSError, NotImplementedError, RuntimeError),
    *(zlib.error, zipfile.BadZipFile),
)
"""What readers raise where a packed file is not sound."""
PACKED = (".gz", ".bz2", ".zst", ".zip")
LEAST_LIMIT = 1 << 29
"""Bytes that any file may expand to."""
MOST_RATIO = 200
"""And so many times its own size, if that is more: text with few values packs well."""


def table_name(path: Path) -> str:
    """The name of the table in a file, in lower case: without what says how it is packed.

    A zip archive holds one file, and has its name.
    """
    name = path.name.lower()
    if name.endswith(".zip"):
        with _archive(path) as archive:
            return Path(_member(path, archive).filename).name.lower()
    for ending in PACKED:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def open_bytes(path: Path) -> Any:
    """A file to read from, as it was before it was packed.

    One that expands to far more than a table would is refused while it is read, before it
    fills the memory.
    """
    name = path.name.lower()
    if not name.endswith(PACKED):
        return path.open("rb")
    file: Any
    if name.endswith(".gz"):
        file = gzip.GzipFile(path)
    elif name.endswith(".bz2"):
        file = bz2.BZ2File(path)
    elif name.endswith(".zst"):
        import pyarrow as pa

        file = pa.input_stream(str(path), compression="zstd")
    else:
        archive = _archive(path)
        try:
            file = archive.open(_member(path, archive))
        except DAMAGE as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return io.BufferedReader(_Bounded(path, file), 1 << 17)


def limit_of(path: Path) -> int:
    """Bytes that a file may expand to."""
    return max(LEAST_LIMIT, MOST_RATIO * path.stat().st_size)


def refuse_bomb(path: Path) -> ValueError:
    """The error of a file that expands to more than its limit."""
    return ValueError(
        f"{path} expands to more than {limit_of(path) >> 20:,} MB, {MOST_RATIO} times its "
        f"size and more, which no table does; unpack it yourself if you trust it"
    )


class _Bounded(io.RawIOBase):
    """A file that ends in an error where there is more in it than there may be."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file, self._left = path, file, limit_of(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except DAMAGE as error:
            raise ValueError(f"{self._path} is damaged: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise refuse_bomb(self._path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (*DAMAGE, ValueError) as error:
        raise ValueError(f"{path} is no zip archive that can be read: {error}") from error


def _member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file of an archive, besides those that macOS adds."""
    files = [
        info
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and Path(info.filename).name not in (".DS_Store", "Thumbs.db")
    ]
    if len(files) != 1:
        names = ", ".join(repr(info.filename) for info in files[:5])
        what = f"{len(files):,} files: {names}" if files else "no file"
        raise ValueError(f"{path} holds {what}; pack one table in it, or unpack it")
    if files[0].flag_bits & 1:
        raise ValueError(f"{path} is encrypted; unpack it first")
    return files[0]
