"""One-byte bins on disk, so that a table is read and binned once, even if interrupted."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import whole_file, write_whole
from ..hashing import Hashes
from ..voters.trees.binning import Binning

ARRAYS = ("cuts", "starts", "category_codes", "categorical", "n_codes")


class BinCache:
    """Bins, codes and row hashes of a table, in a folder.

    Parameters
    ----------
    folder : path or None
        Where; None is a folder of the system's for temporary files, which is removed once
        nobody uses it, unless the fit was interrupted.
    key : str
        What the bins depend on. What is there under another key is thrown away.
    shape : (int, int)
        Rows and columns.
    n_parts : int
    """

    def __init__(
        self, folder: Path | None, key: str, shape: tuple[int, int], n_parts: int
    ) -> None:
        self.shape, self._is_temporary = shape, folder is None
        self._key, self._n_parts = key, n_parts
        self.folder, lock = self._claim(folder or _temporary(key))
        self._files = {
            name: os.open(self.folder / name, os.O_RDWR) for name in self._sizes(n_parts)
        }
        self._to_remove: list[Path] = []
        weakref.finalize(self, _leave, [*self._files.values(), lock], self._to_remove)
        self._done = np.memmap(self.folder / "done", np.uint8, "r", shape=(n_parts,))

    def _claim(self, base: Path) -> tuple[Path, int]:
        """A folder that nobody else writes to, and the lock that says so.

        Bins that are all there may have many readers, and are thrown away by none of them.
        """
        for number in count():
            folder = base if number == 0 else base.with_name(f"{base.name}-{number}")
            folder.mkdir(
                mode=0o700 if self._is_temporary else 0o777, parents=True, exist_ok=True
            )
            lock = _lock(folder / "lock")
            if lock is not None and _is_of(folder, self._key):
                return folder, lock
            if lock is not None and self._prepare(folder):
                return folder, lock
            if lock is not None:
                os.close(lock)
            elif not self._is_temporary and self._is_whole(folder):
                lock = _lock(folder / "readers", shared=True)
                if lock is not None and self._is_whole(folder):
                    return folder, lock
                if lock is not None:
                    os.close(lock)
        raise AssertionError("there is always a next number")

    def _prepare(self, folder: Path) -> bool:
        """Throw away what is there, unless somebody reads it, and make room."""
        readers = _lock(folder / "readers")
        if readers is None:
            return False
        try:
            for name in ("key", "bins.npz", "codes", "hashes", "done"):
                (folder / name).unlink(missing_ok=True)
            self._need_room(folder)
            for name, size in self._sizes(self._n_parts).items():
                with open(folder / name, "wb") as file:
                    file.truncate(size)
            write_whole(folder / "key", self._key)
        finally:
            os.close(readers)
        return True

    def _is_whole(self, folder: Path) -> bool:
        with suppress(OSError):
            done = (folder / "done").read_bytes()
            has_bins = (folder / "bins.npz").exists()
            return _is_of(folder, self._key) and has_bins and all(done)
        return False

    def _sizes(self, n_parts: int) -> dict[str, int]:
        n, d = self.shape
        return {"codes": n * d, "hashes": 8 * n, "done": n_parts}

    def _need_room(self, folder: Path) -> None:
        needed, free = sum(self._sizes(0).values()), shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(
                errno.ENOSPC,
                f"the bins take {needed / 1e9:.1f} GB, and {folder} has room for "
                f"{free / 1e9:.1f}; name another folder: ParquetTable(path, cache=...)",
            )

    @property
    def binning(self) -> Binning | None:
        """The bins, if they are known."""
        path = self.folder / "bins.npz"
        if not path.exists():
            return None
        with np.load(path) as arrays:
            return Binning(**{name: arrays[name] for name in ARRAYS})

    def keep_binning(self, binning: Binning) -> None:
        arrays = {name: getattr(binning, name) for name in ARRAYS}
        with whole_file(self.folder / "bins.npz") as file:
            np.savez(file, **arrays)

    def is_done(self, part: int) -> bool:
        """Whether the rows of a part are all there."""
        return bool(self._done[part])

    def write(self, start: int, codes: NDArray[np.uint8], hashes: Hashes) -> None:
        """The codes of rows from ``start`` on."""
        self._put("codes", codes, start * self.shape[1])
        self._put("hashes", hashes, 8 * start)

    def finish(self, part: int) -> None:
        """All rows of a part are written."""
        for name in ("codes", "hashes"):
            os.fsync(self._files[name])
        self._put("done", np.ones(1, np.uint8), part)

    def _put(self, name: str, array: NDArray[Any], offset: int) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while data:
            written = os.pwrite(self._files[name], data, offset)
            data, offset = data[written:], offset + written

    @property
    def codes(self) -> NDArray[np.uint8]:
        return np.memmap(self.folder / "codes", np.uint8, "r", shape=self.shape)

    @property
    def hashes(self) -> Hashes:
        return np.memmap(self.folder / "hashes", np.uint64, "r", shape=self.shape[:1])

    def removed_when_unused(self) -> None:
        """The fit is through: nothing is to be gone on with."""
        if self._is_temporary:
            self._to_remove.append(self.folder)


def _temporary(key: str) -> Path:
    """One for each user, who could not go on from another's."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"damvi-bins-{user}-{key[:16]}"


def _is_of(folder: Path, key: str) -> bool:
    with suppress(OSError):
        return (folder / "key").read_text() == key
    return False


def _lock(path: Path, shared: bool = False) -> int | None:
    """A file that others cannot lock while it is open; None if they have."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:  # the folder was just removed
        return None
    try:
        import fcntl

        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except (ImportError, OSError):  # no such locks on this system, or on this disk
        return lock
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), os.stat(path)):
            return lock
    os.close(lock)  # whoever had it has removed it
    return None


def _leave(files: list[int], to_remove: list[Path]) -> None:
    """Folders first: nobody else may use them while the lock is open."""
    for folder in to_remove:
        shutil.rmtree(folder, ignore_errors=True)
    for file in files:
        os.close(file)
