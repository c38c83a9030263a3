"""Finished cells on disk: one line each, never half of one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from damvi._files import write_whole

__all__ = ["Cell", "Store", "read_cells", "write_whole"]

Cell = dict[str, Any]

CELLS, PROTOCOL, LOCK = "cells.jsonl", "protocol.json", ".lock"


class Store:
    """The cells of a results folder; one process at a time may write to it.

    A cell is a line of ``cells.jsonl``, on the disk before it counts. What a killed process
    left of a line is cut off when the folder is next opened for writing, and passed over in
    reading. The folder belongs to one protocol, because scores of different splits must
    not meet in one table.

    Parameters
    ----------
    folder : Path
    protocol : dict
        What the splits were made by.
    """

    def __init__(self, folder: Path, protocol: dict[str, Any]) -> None:
        self.folder = folder
        self.protocol = protocol

    def __enter__(self) -> Store:
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / LOCK)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise BlockingIOError(
                f"another benchmark is writing to {self.folder}; wait for it, or choose "
                f"another folder"
            ) from None
        try:
            self._check_protocol()
            # Unbuffered: what a full disk refused must not be tried again at close.
            self._file = open(self.folder / CELLS, "ab", buffering=0)
            self._file.truncate(_length_of_whole_lines(self.folder / CELLS))
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        finally:
            self._lock.release()

    def add(self, cell: Cell) -> None:
        """Write a finished cell; it is on the disk when this returns."""
        end = self._file.seek(0, os.SEEK_END)
        line = json.dumps(cell, sort_keys=True, allow_nan=False) + "\n"
        left = memoryview(line.encode())
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            raise OSError(
                error.errno,
                f"could not write to {self.folder / CELLS} ({error.strerror}); what was "
                f"finished before is kept: mend the disk and run the same command again",
            ) from error

    def _check_protocol(self) -> None:
        path = self.folder / PROTOCOL
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                known = None
            if known != self.protocol:
                differ = ", ".join(
                    f"{name} {(known or {}).get(name)} there, {self.protocol[name]} here"
                    for name in self.protocol
                    if (known or {}).get(name) != self.protocol[name]
                )
                raise ValueError(
                    f"{self.folder} holds results of another protocol ({differ}); choose "
                    f"another folder (-o), or ask for the same splits"
                )
            return
        if (self.folder / CELLS).exists():
            raise ValueError(
                f"{self.folder} holds cells but no {PROTOCOL} that says how they were "
                f"made; choose another folder"
            )
        write_whole(path, json.dumps(self.protocol, indent=1) + "\n")


def read_cells(folder: Path) -> list[Cell]:
    """The finished cells of a folder, the last of each key; half a line is no cell."""
    return list({cell["key"]: cell for cell in all_cells(folder)}.values())


def all_cells(folder: Path) -> list[Cell]:
    """The same with those that were run again since, in the order of their runs."""
    path = folder / CELLS
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [cell for line in lines if (cell := _cell(line)) is not None]


def _cell(line: bytes) -> Cell | None:
    """The cell of a line, or None for one that was not written whole."""
    try:
        cell = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return cell if isinstance(cell, dict) and "key" in cell else None


def _length_of_whole_lines(path: Path) -> int:
    """Bytes up to the end of the last whole cell; only what comes after may be cut off."""
    length = whole = 0
    for line in path.read_bytes().splitlines(keepends=True):
        length += len(line)
        if _cell(line) is not None:
            whole = length
    return whole
