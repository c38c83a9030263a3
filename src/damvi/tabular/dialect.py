"""How a text file writes a table: its separator, decimal sign and encoding."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD = 1 << 20
"""Bytes that are looked at."""
LINES = 500
POINT = re.compile(r"[-+]?\d+\.\d+")
COMMA = re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True)
class Dialect:
    """What a CSV reader has to be told."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


def find_dialect(path: Path) -> Dialect:
    """Look at the start of a file.

    Where the comma is the decimal sign, "CSV" means semicolons.
    """
    head = head_of(path)
    encoding = _encoding(head)
    lines = head.decode(encoding, errors="replace").splitlines()[:LINES]
    separator = "\t" if ".tsv" in path.name.lower() else _separator(lines)
    decimal = "."
    if separator != ",":
        cells = [cell.strip() for row in _rows(lines[1:], separator) for cell in row]
        commas = sum(COMMA.fullmatch(cell) is not None for cell in cells)
        points = sum(POINT.fullmatch(cell) is not None for cell in cells)
        decimal = "," if commas > points else "."
    return Dialect(separator, decimal, encoding)


def _separator(lines: list[str]) -> str:
    """The mark that parts the header, and the rows after it into as many cells.

    A name may have a comma in it, "Amount, EUR", where semicolons are what separates.
    """
    best, most = ",", (0.0, 1)
    for mark in ",;\t|":
        widths = [len(row) for row in _rows(lines, mark)]
        # The last line may be cut in the middle.
        rows = widths[1:-1] or widths[1:]
        alike = sum(width == widths[0] for width in rows) / max(1, len(rows))
        if widths and widths[0] > 1 and (alike, widths[0]) > most:
            best, most = mark, (alike, widths[0])
    return best


def _rows(lines: list[str], mark: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell that is too long for this reader
        rows.extend(row for row in csv.reader(lines, delimiter=mark) if row)
    return rows


def head_of(path: Path) -> bytes:
    """The start of a file, unpacked."""
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        head: bytes = file.read(HEAD)
    return head


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:  # the last character may be cut in half
            codecs.getincrementaldecoder(encoding)().decode(head, final=False)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"
