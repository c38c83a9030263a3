"""Read the first table of an Excel workbook."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .textfiles import DAMAGE, limit_of, refuse_bomb

if TYPE_CHECKING:
    import pandas as pd

HEAD_ROWS = 50
"""Rows searched for the header."""
FULL = 0.8
"""Minimum fraction of the widest row that a header fills."""
MOST_CELLS = 50_000_000
FORMULA_ROWS = 200
ERROR = re.compile(
    r"#(N/A|DIV/0!|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!|FIELD!|BLOCKED!)"
)


def read_excel(path: Path) -> pd.DataFrame:
    """Read the first non-empty sheet, without empty rows and titles above the header.

    Formulas are read as their stored results. Repeated column names are prefixed with the
    name in the merged header above them.
    """
    import pandas as pd

    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(
            "Excel files need openpyxl: pip install 'damvi[excel]', or save them as CSV"
        ) from error

    _check_size(path)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        sheet, rows = _first_sheet(path, book)
    finally:
        book.close()
    width = max(len(row) for row in rows)
    rows = [[*row, *[None] * (width - len(row))] for row in rows]
    start = _header(rows)
    names = _names(rows, start)
    body = [row for row in rows[start + 1 :] if any(cell is not None for cell in row)]
    kept = [
        place
        for place, name in enumerate(names)
        if name or any(row[place] is not None for row in body)
    ]
    _warn_about_title(path, rows[:start], names)
    _warn_about_formulas(path, sheet, names, start, body)
    columns = {place: _typed([row[place] for row in body]) for place in kept}
    frame = pd.DataFrame(columns, columns=kept)
    frame.columns = pd.Index([names[place] for place in kept], dtype=object)
    return frame


def _check_size(path: Path) -> None:
    """Reject a workbook that expands to far more than its size."""
    try:
        with zipfile.ZipFile(path) as archive:
            total, limit = 0, limit_of(path)
            for info in archive.infolist():
                # The sizes declared in the archive may be false.
                with archive.open(info) as file:
                    while part := file.read(1 << 20):
                        total += len(part)
                        if total > limit:
                            raise refuse_bomb(path)
    except DAMAGE as error:
        hint = "is it an old .xls file, or password-protected?"
        raise ValueError(f"{path} is not an Excel workbook ({error}); {hint}") from error


def _first_sheet(path: Path, book: Any) -> tuple[str, list[list[Any]]]:
    found, others = None, []
    for sheet in book.worksheets:
        if found is not None:
            others.append(sheet.title)
            continue
        # The declared dimensions are often wrong.
        sheet.reset_dimensions()
        rows = list(_cells(path, sheet))
        while rows and not rows[-1]:
            rows.pop()
        if rows:
            found = sheet.title, rows
    if found is None:
        raise ValueError(f"{path} has no data in any sheet")
    if others:
        names = ", ".join(map(repr, others[:5]))
        warnings.warn(f"{path}: reading sheet {found[0]!r}, ignoring {names}", stacklevel=2)
    return found


def _cells(path: Path, sheet: Any) -> Iterator[list[Any]]:
    """Yield the rows of a sheet, without trailing empty cells."""
    n_rows = width = 0
    for row in sheet.iter_rows(values_only=True):
        cells = [_plain(cell) for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        n_rows, width = n_rows + 1, max(width, len(cells))
        if n_rows * width > MOST_CELLS:  # one stray cell makes a huge, empty table
            raise ValueError(
                f"{path} has more than {MOST_CELLS:,} cells in sheet {sheet.title!r}, "
                f"including empty ones; save the table as CSV or parquet"
            )
        yield cells


def _plain(cell: Any) -> Any:
    """Return a cell's value; None if it is empty or an error such as #N/A."""
    if isinstance(cell, str):
        return None if not cell.strip() or ERROR.fullmatch(cell.strip()) else cell
    if isinstance(cell, time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return datetime(cell.year, cell.month, cell.day)
    return cell


def _header(rows: list[list[Any]]) -> int:
    """Return the first row that is all text and nearly as full as the fullest row."""
    head = rows[:HEAD_ROWS]
    filled = [sum(cell is not None for cell in row) for row in head]
    for place, row in enumerate(head):
        texts = all(isinstance(cell, str) for cell in row if cell is not None)
        if filled[place] >= max(1.0, FULL * max(filled)) and texts:
            return place
    # Column names may be numbers, such as years.
    return next(place for place, n in enumerate(filled) if n >= FULL * max(filled))


def _names(rows: list[list[Any]], start: int) -> list[str]:
    """Return the column names from a header of one or two rows."""
    names = ["" if cell is None else str(cell).strip() for cell in rows[start]]
    if start == 0:
        return names
    above = ["" if cell is None else str(cell).strip() for cell in rows[start - 1]]
    if sum(map(bool, above)) < 2:  # a title
        return names
    names = [name or over for name, over in zip(names, above, strict=True)]
    if len(set(names)) == len(names):
        return names
    group, groups = "", []
    for over in above:  # a merged range has its text in the first cell
        group = over or group
        groups.append(group)
    return [
        name if name in ("", over) or names.count(name) == 1 else f"{over} {name}".strip()
        for name, over in zip(names, groups, strict=True)
    ]


def _typed(cells: list[Any]) -> Any:
    """Return numbers, booleans or dates if all cells are of that type, else text."""
    import pandas as pd

    kinds = {type(cell) for cell in cells if cell is not None}
    if not kinds:
        return pd.Series(cells, dtype=object)
    if kinds <= {bool}:
        return pd.Series(cells, dtype=bool if None not in cells else object)
    if kinds <= {int, float} and all(abs(c) < 2**63 for c in cells if isinstance(c, int)):
        whole = kinds == {int} and None not in cells
        return pd.Series(
            [np.nan if cell is None else cell for cell in cells],
            dtype=np.int64 if whole else np.float64,
        )
    if kinds <= {datetime}:
        return pd.to_datetime(pd.Series(cells), errors="coerce")
    return pd.Series(
        [None if cell is None else _text(cell) for cell in cells], dtype=object
    )


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _warn_about_title(path: Path, above: list[list[Any]], names: list[str]) -> None:
    texts = [str(cell) for row in above for cell in row if cell is not None]
    left = [text for text in texts if not any(text.strip() in name for name in names)]
    if left:
        shown = ", ".join(repr(text[:40]) for text in left[:3])
        warnings.warn(f"{path}: ignoring {shown} above the header", stacklevel=2)


def _warn_about_formulas(
    path: Path, sheet: str, names: list[str], start: int, body: list[list[Any]]
) -> None:
    """Warn about columns of formulas without stored results."""
    import openpyxl

    empty = [
        place
        for place, _ in enumerate(names)
        if all(row[place] is None for row in body[:FORMULA_ROWS])
    ]
    if not empty:
        return
    book = openpyxl.load_workbook(path, read_only=True, keep_links=False)
    try:
        of = book[sheet]
        of.reset_dimensions()
        rows = of.iter_rows(min_row=start + 2, max_row=start + 1 + FORMULA_ROWS)
        found = {
            cell.column - 1
            for row in rows
            for cell in row
            if getattr(cell, "data_type", "n") == "f"
        }
    finally:
        book.close()
    lost = [repr(names[place]) for place in empty if place in found]
    if lost:
        warnings.warn(
            f"{path}: the formulas in {', '.join(lost)} have no stored results; open the "
            f"file in a spreadsheet program and save it",
            stacklevel=2,
        )
