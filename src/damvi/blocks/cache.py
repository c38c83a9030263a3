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
from ..fingerprint import Prints
from ..voters.trees.binning import Binning

ARRAYS = ("cuts", "starts", "category_codes", "categorical", "n_codes")


class BinCache:
    """Bins, codes and row prints of a table, in a folder.

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
        base = folder or Path(tempfile.gettempdir()) / f"damvi-bins-{key[:16]}"
        self.folder, self._lock = _locked(base)
        if not self._is_of(key):
            self._clear()
            self._need_room()
            for name, size in self._sizes(n_parts).items():
                with open(self.folder / name, "wb") as file:
                    file.truncate(size)
            write_whole(self.folder / "key", key)
        self._files = {
            name: os.open(self.folder / name, os.O_RDWR) for name in self._sizes(n_parts)
        }
        weakref.finalize(self, _close, [*self._files.values(), self._lock])
        self._done = np.memmap(self.folder / "done", np.uint8, "r", shape=(n_parts,))

    def _is_of(self, key: str) -> bool:
        with suppress(OSError):
            return (self.folder / "key").read_text() == key
        return False

    def _clear(self) -> None:
        for name in ("key", "bins.npz", "codes", "prints", "done"):
            (self.folder / name).unlink(missing_ok=True)

    def _sizes(self, n_parts: int) -> dict[str, int]:
        n, d = self.shape
        return {"codes": n * d, "prints": 8 * n, "done": n_parts}

    def _need_room(self) -> None:
        needed, free = sum(self._sizes(0).values()), shutil.disk_usage(self.folder).free
        if free < needed:
            raise OSError(
                errno.ENOSPC,
                f"the bins take {needed / 1e9:.1f} GB, and {self.folder} has room for "
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
        with whole_file(self.folder / "bins.npz") as part, open(part, "wb") as file:
            np.savez(file, **arrays)

    def is_done(self, part: int) -> bool:
        """Whether the rows of a part are all there."""
        return bool(self._done[part])

    def write(self, start: int, codes: NDArray[np.uint8], prints: Prints) -> None:
        """The codes of rows from ``start`` on."""
        self._put("codes", codes, start * self.shape[1])
        self._put("prints", prints, 8 * start)

    def finish(self, part: int) -> None:
        """All rows of a part are written."""
        for name in ("codes", "prints"):
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
    def prints(self) -> Prints:
        return np.memmap(self.folder / "prints", np.uint64, "r", shape=self.shape[:1])

    def removed_when_unused(self) -> None:
        """The fit is through: nothing is to be gone on with."""
        if self._is_temporary:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def _locked(base: Path) -> tuple[Path, int]:
    """A folder that no other process uses, and the file that says so."""
    for number in count():
        folder = base if number == 0 else base.with_name(f"{base.name}-{number}")
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody has it
            os.close(lock)
            continue
        except (ImportError, OSError):  # no such locks on this system, or on this disk
            pass
        return folder, lock
    raise AssertionError("there is always a next number")


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)
