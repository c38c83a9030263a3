"""One-byte bins on disk, so that a table is read and binned once, even if interrupted.

Files found in a folder are not trusted: they must be our own and not links, and every part
has a digest, which is checked before its codes reach a kernel. A digest detects damage and
mixed-up files, but not forgery by someone who can write to the folder, so temporary folders
are private.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from .._files import (
    NO_LINKS,
    discarded,
    is_private,
    lock_file,
    remove_at_end,
    unlock,
    write_whole,
)
from ..hashing import Hashes
from ..voters.trees.binning import MAX_BINS, Binning

ARRAYS = {
    "cuts": np.float64,
    "starts": np.int64,
    "category_codes": np.uint8,
    "categorical": np.uint8,
    "n_codes": np.int64,
}
DIGEST = 32
"""Size of a SHA-256 digest in bytes."""
UNWANTED = "unwanted"
"""Marker file: no fit will resume from this temporary folder."""
MOST_SQUATTED = 100


class BinCache:
    """Bins, codes and row hashes of a table, in a folder.

    Parameters
    ----------
    folder : path or None
        The folder; None for a private temporary folder, which is removed when no longer
        used, unless the fit was interrupted.
    key : str
        What the bins depend on. Files with another key are deleted.
    starts : sequence of int
        First row of each part, and the number of rows.
    n_columns : int
    """

    shape: tuple[int, int]
    folder: Path

    def __init__(
        self, folder: Path | None, key: str, starts: Sequence[int], n_columns: int
    ) -> None:
        self.shape, self._starts = (starts[-1], n_columns), starts
        self._is_temporary, self._key = folder is None, key
        self._writing, self._checked = Lock(), set[int]()
        self._binning: Binning | None = None
        if folder is None:
            _remove_unwanted()
        self.folder, lock, self._files = self._claim(folder or _temporary(key))
        self._to_remove: list[Path] = []
        files = [*self._files.values(), lock]
        weakref.finalize(self, _leave, files, self._to_remove)
        self._find_bins()

    def _claim(self, base: Path) -> tuple[Path, int, dict[str, int]]:
        """Return a folder that nobody else writes to, its lock, and its files.

        Complete bins may have many readers, none of which deletes them.
        """
        for number in count():
            folder = base if number == 0 else base.with_name(f"{base.name}-{number}")
            if self._is_temporary and number == MOST_SQUATTED:
                folder = Path(tempfile.mkdtemp(prefix=f"{base.name}-"))
            if not self._make(folder):
                continue
            lock = _lock(folder / "lock")
            if lock is not None:
                files = self._open_files(folder) or self._prepare(folder)
            elif self._is_temporary:
                continue
            else:
                lock = _lock(folder / "readers", shared=True)
                files = None if lock is None else self._open_whole(folder)
            if lock is not None and files is not None:
                return folder, lock, files
            unlock(lock)
        raise AssertionError("unreachable: there is always a next number")

    def _make(self, folder: Path) -> bool:
        """Create the folder, or use an existing one; False if it must not be used."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            if not self._is_temporary:
                raise
        return not self._is_temporary or is_private(folder)

    def _open_files(self, folder: Path) -> dict[str, int] | None:
        """Open the files, if they belong to this table."""
        opened: dict[str, int] = {}
        try:
            if _read(folder / "key") == self._key.encode():
                for name, size in self._sizes.items():
                    opened[name] = _open_own(folder / name)
                    if os.fstat(opened[name]).st_size != size:
                        break
                else:
                    return opened
        except FileNotFoundError:
            pass
        for file in opened.values():
            os.close(file)
        return None

    def _open_whole(self, folder: Path) -> dict[str, int] | None:
        """Open the files, if all parts are complete and intact."""
        files = self._open_files(folder)
        if files is None:
            return None
        self.folder, self._files = folder, files
        self._find_bins()
        if all(self.is_done(part) for part in range(len(self._starts) - 1)):
            return files
        self._checked.clear()  # does not apply to the next folder
        for file in files.values():
            os.close(file)
        return None

    def _prepare(self, folder: Path) -> dict[str, int] | None:
        """Delete existing files, unless they are being read, and allocate space."""
        readers = _lock(folder / "readers")
        if readers is None:
            return None
        files: dict[str, int] = {}
        try:
            for name in ("key", "bins", UNWANTED, *self._sizes):
                (folder / name).unlink(missing_ok=True)
            self._need_room(folder)
            for name, size in self._sizes.items():
                files[name] = _open_own(folder / name, os.O_CREAT | os.O_EXCL)
                os.ftruncate(files[name], size)
            write_whole(folder / "key", self._key)
        except BaseException:
            for file in files.values():
                os.close(file)
            raise
        finally:
            os.close(readers)
        return files

    @property
    def _sizes(self) -> dict[str, int]:
        n, d = self.shape
        return {"codes": n * d, "hashes": 8 * n, "done": DIGEST * (len(self._starts) - 1)}

    def _need_room(self, folder: Path) -> None:
        needed, free = sum(self._sizes.values()), shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(
                errno.ENOSPC,
                f"the bins take {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB "
                f"are free in {folder}; use another folder: ParquetTable(path, cache=...)",
            )

    @property
    def binning(self) -> Binning | None:
        """Return the bins, if known."""
        return self._binning

    def keep_binning(self, binning: Binning) -> None:
        """Write the bins; this invalidates all parts."""
        out = io.BytesIO()
        np.savez(out, **{name: getattr(binning, name) for name in ARRAYS})
        content = out.getvalue()
        self._put("done", np.zeros(self._sizes["done"], np.uint8), 0)
        write_whole(self.folder / "bins", self._digest(content) + content)
        self._find_bins()

    def _find_bins(self) -> None:
        self._binning = None
        with suppress(OSError, ValueError, KeyError, BadZipFile):
            content = _read(self.folder / "bins")
            self._bins_digest, content = content[:DIGEST], content[DIGEST:]
            if self._digest(content) == self._bins_digest:
                with np.load(io.BytesIO(content)) as arrays:
                    binning = Binning(**{name: arrays[name] for name in ARRAYS})
                if is_sound(binning, self.shape[1]):
                    self._binning = binning

    def is_done(self, part: int) -> bool:
        """Whether a part is complete and intact."""
        if part in self._checked:
            return True
        if self._binning is None:
            return False
        done = self._map("done", np.uint8, (len(self._starts) - 1, DIGEST))[part].tobytes()
        if done == bytes(DIGEST) or done != self._digest_of(part):
            return False
        codes = self.codes[self._starts[part] : self._starts[part + 1]]
        if len(codes) and not (codes.max(axis=0) < self._binning.n_codes).all():
            return False
        self._checked.add(part)
        return True

    def write(self, start: int, codes: NDArray[np.uint8], hashes: Hashes) -> None:
        """Write the codes of the rows from ``start``."""
        self._put("codes", codes, start * self.shape[1])
        self._put("hashes", hashes, 8 * start)

    def finish(self, part: int) -> None:
        """Mark a part as complete."""
        for name in ("codes", "hashes"):
            os.fsync(self._files[name])
        digest = np.frombuffer(self._digest_of(part), np.uint8)
        self._put("done", digest, DIGEST * part)
        self._checked.add(part)

    def _digest_of(self, part: int) -> bytes:
        """Return the digest of a part, with its table and bins."""
        rows = slice(self._starts[part], self._starts[part + 1])
        about = f"{part} {rows.start} {rows.stop} ".encode() + self._bins_digest
        return self._digest(about, self.codes[rows], self.hashes[rows])

    def _digest(self, *contents: Any) -> bytes:
        found = sha256(self._key.encode())
        for content in contents:
            found.update(content)
        return found.digest()

    def _put(self, name: str, array: NDArray[Any], offset: int) -> None:
        """Write at an offset; one thread at a time, since not every system has pwrite."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        with self._writing:
            os.lseek(self._files[name], offset, os.SEEK_SET)
            while data:
                data = data[os.write(self._files[name], data) :]

    @property
    def codes(self) -> NDArray[np.uint8]:
        return self._map("codes", np.uint8, self.shape)

    @property
    def hashes(self) -> Hashes:
        return self._map("hashes", np.uint64, self.shape[:1])

    def _map(self, name: str, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Map the file that was checked, by its descriptor, not by its name.

        Do not seek to find its size: another thread may be writing at the file position.
        """
        if 0 in shape:  # nothing to map
            return np.empty(shape, kind)
        with self._writing, open(self._files[name], "rb", closefd=False) as file:
            return np.memmap(file, kind, "r", shape=shape)

    def removed_when_unused(self) -> None:
        """Mark the folder for removal, since the fit has succeeded."""
        if self._is_temporary:
            self._to_remove.append(self.folder)
            remove_at_end(self.folder)
            with suppress(OSError):  # for processes that find it after a kill
                os.close(_open_own(self.folder / UNWANTED, os.O_CREAT))


def is_sound(binning: Binning, n_columns: int) -> bool:
    """Whether the bins are consistent, and safe to pass to kernels."""
    arrays = [getattr(binning, name) for name in ARRAYS]
    if any(
        array.dtype != kind or array.ndim != 1
        for array, kind in zip(arrays, ARRAYS.values(), strict=True)
    ):
        return False
    cuts, starts, category_codes, categorical, n_codes = arrays
    if not (len(starts) == n_columns + 1 and len(n_codes) == len(categorical) == n_columns):
        return False
    sizes = np.diff(starts)
    if (sizes < 0).any() or starts[0] != 0 or starts[-1] != len(cuts):
        return False
    return bool(
        len(category_codes) == len(cuts)
        and ((n_codes >= 1) & (n_codes <= MAX_BINS + 1)).all()
        and (category_codes < np.repeat(n_codes, sizes)).all()
        and (n_codes[categorical == 0] == sizes[categorical == 0] + 2).all()
    )


def _temporary(key: str) -> Path:
    """Return a temporary folder per user, who could not resume from another's."""
    return Path(tempfile.gettempdir()) / f"{_prefix()}{key[:16]}"


def _prefix() -> str:
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    return f"damvi-bins-{user}-"


def _remove_unwanted() -> None:
    """Remove our abandoned temporary folders that no fit will resume from."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix()}*"):
        with suppress(OSError):
            if not (is_private(folder) and (folder / UNWANTED).exists()):
                continue
            lock = _open_own(folder / "lock")
            try:
                if lock_file(lock) is True:
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _open_own(path: Path, flags: int = 0) -> int:
    """Open our own file for reading and writing; reject links, also hard links."""
    try:
        opened = os.open(path, os.O_RDWR | NO_LINKS | flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_ours(path) from None
        raise
    status = os.fstat(opened)
    ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not (ours and stat.S_ISREG(status.st_mode) and status.st_nlink <= 1):
        os.close(opened)
        raise _not_ours(path)
    return opened


def _not_ours(path: Path) -> OSError:
    return PermissionError(
        errno.EACCES,
        "is a link, or owned by another user, in a cache folder; remove it, or use "
        "another folder: ParquetTable(path, cache=...)",
        str(path),
    )


def _read(path: Path) -> bytes:
    with open(_open_own(path), "rb") as file:
        return file.read()


def _lock(path: Path, shared: bool = False) -> int | None:
    """Lock a file while it is open; None if another process holds the lock."""
    try:
        lock = _open_own(path, os.O_CREAT)
    except FileNotFoundError:  # the folder has just been removed
        return None
    if lock_file(lock, shared) is not False:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
    os.close(lock)  # another process has it, or has just removed it
    return None


def _leave(files: list[int], to_remove: list[Path]) -> None:
    """Remove folders before unlocking, so that nobody else uses them."""
    for folder in to_remove:
        shutil.rmtree(folder, ignore_errors=True)
        discarded(folder)
    for file in files:
        os.close(file)
