"""A text file in blocks of whole lines, in memory that does not grow with it."""

from __future__ import annotations

import gzip
import io
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import reading
from .cells import LINE_FEED, PADDING, last_line_end
from .dialect import Dialect

Text = NDArray[np.uint8]

LONGEST_LINE = 1 << 26


def whole_lines(
    path: Path, dialect: Dialect, skip: int, free: deque[Text]
) -> Iterator[Text]:
    """Blocks of lines in UTF-8, after some that are skipped.

    Each ends in a line feed, and has ``PADDING`` more bytes in memory. The arrays that
    blocks are views of may come back in ``free``: new memory takes long to be cleared.
    """
    separator = np.uint8(ord(dialect.separator))
    left = np.empty(0, np.uint8)
    with _opened(path, dialect) as file:
        at_end = False
        while not at_end:
            size = len(left) + reading.BLOCK
            room = _room(free, size + 1 + PADDING)
            room[: len(left)] = left
            filled = len(left) + file.readinto(room[len(left) : size].data)
            at_end = filled == len(left)
            if at_end and filled and room[filled - 1] != LINE_FEED:
                room[filled] = LINE_FEED
                filled += 1
            end = filled if at_end else last_line_end(room, filled, separator)
            left = room[end:filled].copy()
            if len(left) > LONGEST_LINE:
                raise ValueError(
                    f"{path} has a line longer than {LONGEST_LINE >> 20} MB; is there a "
                    f"quote that is not closed?"
                )
            start = 0
            if skip and end:
                ends = np.flatnonzero(room[:end] == LINE_FEED)[:skip]
                skip -= len(ends)
                start = int(ends[-1]) + 1
            if start < end:
                yield room[start:end]


def _room(free: deque[Text], size: int) -> Text:
    while free:
        room = free.popleft()
        if len(room) >= size:
            return room
    return np.empty(size + size // 8, np.uint8)  # what is left of a block is seldom more


def _opened(path: Path, dialect: Dialect) -> Any:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    file = opened(path, "rb")
    return file if dialect.encoding == "utf-8" else _Recoded(file, dialect.encoding)


class _Recoded(io.RawIOBase):
    """A file in another encoding, read as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding, newline="")

    def readinto(self, room: Any) -> int:
        data = self._text.read(len(room) // 4).encode()  # 4 bytes a sign at most
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._text.close()
        super().close()
