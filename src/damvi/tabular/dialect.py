"""How a text file writes a table: its separator, decimal sign and encoding."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
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
    header = next((line for line in lines if line.strip()), "")
    if ".tsv" in path.name.lower():
        separator = "\t"
    else:
        separator = ","
        if len(next(csv.reader([header]), [])) == 1:
            separator = next((mark for mark in ";\t|" if mark in header), ",")
    decimal = "."
    if separator != ",":
        cells = [
            cell.strip()
            for row in csv.reader(lines[1:], delimiter=separator)
            for cell in row
        ]
        commas = sum(COMMA.fullmatch(cell) is not None for cell in cells)
        points = sum(POINT.fullmatch(cell) is not None for cell in cells)
        decimal = "," if commas > points else "."
    return Dialect(separator, decimal, encoding)


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
