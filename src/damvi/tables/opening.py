"""Open files, decompressed if necessary, with a limit on their expanded size."""

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
"""Exceptions that readers raise for corrupt compressed files."""
PACKED = (".gz", ".bz2", ".zst", ".zip")
OTHERS = {
    b"PK\3\4": "an Excel workbook (or a zip archive): name it .xlsx (or .zip)",
    b"PAR1\x15": "a parquet file: name it .parquet",
    b"\x1f\x8b": "compressed with gzip: add .gz to its name",
}
"""Files that are no text, by their first bytes; those of parquet go on after its name."""
LEAST_LIMIT = 1 << 29
"""Expanded size that is always allowed, in bytes."""
MOST_RATIO = 200
"""Allowed ratio of expanded to compressed size; text with few values compresses well."""


def table_name(path: Path) -> str:
    """Return the name of the table in a file, in lower case, without compression suffix.

    A zip archive must hold one file, whose name is returned.
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
    """Open a file for reading, decompressed.

    Reading stops with an error if the file expands to far more than a table would.
    """
    name = path.name.lower()
    file: Any
    if not name.endswith(PACKED):
        file = path.open("rb")
        head = file.peek(8)
        for start, words in OTHERS.items():
            if head.startswith(start):
                file.close()
                raise ValueError(f"{path} is {words}")
        return file
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
    """Maximum expanded size of a file, in bytes."""
    return max(LEAST_LIMIT, MOST_RATIO * path.stat().st_size)


def refuse_bomb(path: Path) -> ValueError:
    """Return the error for a file that expands beyond its limit."""
    return ValueError(
        f"{path} expands to more than {limit_of(path) >> 20:,} MB, over {MOST_RATIO} times "
        f"its size, which is unusual for a table; if you trust it, decompress it first"
    )


class _Bounded(io.RawIOBase):
    """A stream that raises an error beyond a size limit."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file, self._left = path, file, limit_of(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except DAMAGE as error:
            raise ValueError(
                f"{self._path} is damaged: {str(error).rstrip('.')}; copy or download it "
                f"again"
            ) from error
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
        raise ValueError(f"cannot read {path} as a zip archive: {error}") from error


def _member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file of an archive, ignoring those that macOS and Windows add."""
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
        raise ValueError(f"{path} holds {what}; it must contain exactly one table")
    if files[0].flag_bits & 1:
        raise ValueError(f"{path} is encrypted; decrypt and extract it first")
    return files[0]
