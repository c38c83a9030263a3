"""What the messy tables are made with: spellings, a draft that draws labels, and files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

Floats = NDArray[np.float64]
DAY = np.timedelta64(1, "D")


# How cells are spelled


def grouped(value: float, thousands: str, point: str, decimals: int = 2) -> str:
    """1234.5 with its thousands apart and its own decimal mark."""
    text = f"{value:,.{decimals}f}"
    return text.replace(",", "\0").replace(".", point).replace("\0", thousands)


def indian(value: float) -> str:
    """1234567 as 12,34,567."""
    digits = str(int(value))
    head, tail = digits[:-3], digits[-3:]
    pairs = []
    while head:
        pairs.insert(0, head[-2:])
        head = head[:-2]
    return ",".join([*pairs, tail])


def full_width(text: str) -> str:
    return text.translate({ord("0") + k: chr(0xFF10 + k) for k in range(10)} | {46: "．"})


def spelled(days: Any, form: str) -> list[str]:
    """Dates in a format; a ``-`` in a directive drops the leading zero (as on Linux)."""
    return [pd.Timestamp(day).strftime(form) for day in days]


def standard(values: Any) -> Floats:
    values = np.asarray(values, float)
    return np.asarray((values - values.mean()) / values.std())


def time_of_day(when: NDArray[np.datetime64]) -> Floats:
    return np.asarray((when - when.astype("datetime64[D]")) / np.timedelta64(1, "h"))


def hour_risk(hours: Floats) -> Floats:
    """Highest at three in the morning."""
    return np.cos((hours - 3) / 12 * np.pi)


# A table in the making


@dataclass
class Table:
    """A messy table: what is written, what it means, and what the label is made of."""

    target: str
    file: str
    n_fit: int
    raw: pd.DataFrame
    clean: pd.DataFrame
    terms: dict[str, Floats]
    positive: NDArray[np.bool_]
    traps: dict[str, str]
    writer: Callable[[pd.DataFrame, Path], None]
    name: str = ""
    about: str = ""

    def write(self, folder: Path) -> None:
        """The messy files and the oracle's, to fit and fresh.

        Names that repeat are numbered: such a table is refused, with this advice.
        """
        folder.mkdir(parents=True, exist_ok=True)
        parts = {"": slice(None, self.n_fit), "new_": slice(self.n_fit, None)}
        for prefix, rows in parts.items():
            raw = self.raw.iloc[rows]
            again = raw.columns.duplicated()
            raw.columns = raw.columns.where(~again, raw.columns + " 2")
            self.writer(raw, folder / (prefix + self.file))
            oracle = self.clean.iloc[rows].assign(label=self.positive[rows].astype(int))
            oracle.to_parquet(folder / f"{prefix}oracle.parquet", index=False)

    @property
    def spellings(self) -> set[str]:
        """Of the labels, blanks around them aside."""
        return {str(label).strip() for label in self.raw[self.target].unique()}

    def ceiling(self, without: str | None = None) -> float:
        """The fresh rows' average precision by the true log odds, a column's part aside."""
        # What no column tells (``hidden``, below) is no part of it.
        score = np.sum(
            [term for name, term in self.terms.items() if name != without], axis=0
        )
        fresh = slice(self.n_fit, None)
        return float(average_precision_score(self.positive[fresh], score[fresh]))


class Draft:
    """Collects a table's columns, then draws its labels."""

    def __init__(self, seed: int, n_fit: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_fit, self.n = n_fit, 2 * n_fit
        self.raw: list[tuple[str, list[Any]]] = []
        self.clean: dict[str, Any] = {}
        self.terms: dict[str, Floats] = {}
        self.traps: dict[str, str] = {}

    def days(self, first: str, months: int) -> NDArray[np.datetime64]:
        """When each row happened, to the second, in order."""
        seconds = np.sort(self.rng.integers(0, months * 30 * 86_400, self.n))
        return np.datetime64(first, "s") + seconds.astype("timedelta64[s]")

    def pick(self, levels: Sequence[Any], p: Sequence[float] | None = None) -> NDArray[Any]:
        return self.rng.choice(np.asarray(levels), self.n, p=p)

    def add(
        self,
        name: str,
        cells: Sequence[Any] | NDArray[Any],
        clean: Any = None,
        term: Any = None,
        missing: float = 0.0,
        blanks: str = "",
        trap: str | None = None,
    ) -> None:
        """A column: its cells as written, what they mean, what they add to the log odds."""
        cells = list(cells)
        spellings = [None if text == "None" else text for text in blanks.split("|")]
        lost = self.rng.random(self.n) < missing
        for row in np.flatnonzero(lost):
            cells[row] = spellings[self.rng.integers(len(spellings))]
        self.raw.append((name, cells))
        if clean is not None:
            values = pd.Series(np.asarray(clean))
            self.clean[name] = values.mask(lost) if missing else values
        if term is not None:
            self.terms[name] = np.asarray(term, float)
        if trap is not None:
            self.traps[name] = trap

    def number(
        self,
        name: str,
        values: NDArray[Any],
        form: Callable[[Any], Any],
        weight: float,
        log: bool = False,
        **others: Any,
    ) -> None:
        """A column of numbers in a form; the log odds go with them or their logarithm."""
        term = weight * standard(np.log(values) if log else values)
        self.add(name, [form(v) for v in values], values, term, **others)

    def date(
        self,
        name: str,
        when: NDArray[np.datetime64],
        days: NDArray[Any],
        form: str,
        weight: float,
        log: bool = False,
        **others: Any,
    ) -> None:
        """A date some days from another column's; the log odds go with how many."""
        gap = np.abs(days)
        term = weight * standard(np.log(gap) if log else gap)
        dates = spelled(when.astype("datetime64[D]") + days * DAY, form)
        self.add(name, dates, gap, term, **others)

    def draw(self, rate: float, hidden: Floats | float = 0.0) -> NDArray[np.bool_]:
        """Labels of a given rate among the rows to fit."""
        log_odds = np.sum(list(self.terms.values()), axis=0) + hidden
        low, high = -30.0, 30.0
        for _ in range(60):
            middle = (low + high) / 2
            mean = (1 / (1 + np.exp(-log_odds[: self.n_fit] - middle))).mean()
            low, high = (middle, high) if mean < rate else (low, middle)
        self.positive = self.rng.random(self.n) < 1 / (1 + np.exp(-log_odds - low))
        return self.positive

    def table(
        self,
        target: str,
        spellings: tuple[Sequence[Any], Sequence[Any]],
        file: str,
        writer: Callable[[pd.DataFrame, Path], None],
    ) -> Table:
        """The finished table; the label's spellings are of a negative and a positive."""
        labels = [
            (options := spellings[int(hit)])[self.rng.integers(len(options))]
            for hit in self.positive
        ]
        columns = [*self.raw, (target, labels)]
        # Names may repeat, so the frame is made of positions and named afterwards.
        raw = pd.DataFrame(
            {k: pd.Series(v, dtype=object) for k, (_, v) in enumerate(columns)}
        )
        raw.columns = pd.Index([title for title, _ in columns])
        return Table(
            target=target,
            file=file,
            n_fit=self.n_fit,
            raw=raw,
            clean=pd.DataFrame(self.clean),
            terms=self.terms,
            positive=self.positive,
            traps=self.traps,
            writer=writer,
        )


# Files


def delimited(
    sep: str = ",", encoding: str = "utf-8"
) -> Callable[[pd.DataFrame, Path], None]:
    def write(frame: pd.DataFrame, path: Path) -> None:
        frame.to_csv(path, sep=sep, encoding=encoding, index=False, lineterminator="\r\n")

    return write


def zipped(frame: pd.DataFrame, path: Path) -> None:
    """A CSV packed on a Mac, which adds a file of its own."""
    text = io.StringIO()
    frame.to_csv(text, index=False)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("events.csv", text.getvalue())
        archive.writestr(
            "__MACOSX/._events.csv", b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X"
        )


def nested_json(frame: pd.DataFrame, path: Path) -> None:
    """One array of records; a dot in a column's name is a level."""
    records = []
    for row in frame.to_dict("records"):
        record: dict[str, Any] = {}
        for name, value in row.items():
            *levels, leaf = str(name).split(".")
            place = record
            for level in levels:
                place = place.setdefault(level, {})
            if value is not None:
                place[leaf] = value
        records.append(record)
    path.write_text(json.dumps(records, indent=1, ensure_ascii=False), encoding="utf-8")


def workbook(frame: pd.DataFrame, path: Path) -> None:
    """A sheet with a title, a blank line and a total, and a second sheet of remarks."""
    import xlsxwriter

    book = xlsxwriter.Workbook(path, {"default_date_format": "dd/mm/yyyy"})
    sheet = book.add_worksheet("Readmissions")
    sheet.write(0, 0, "Readmissions within 30 days: St Elsewhere, all wards")
    sheet.write(1, 0, "Source: ward clerks. Do not edit column D!")
    sheet.write_row(3, 0, list(frame.columns))
    for k, row in enumerate(frame.itertuples(index=False)):
        for j, cell in enumerate(row):
            if cell is not None:
                sheet.write(4 + k, j, cell)
    sheet.write(5 + len(frame), 0, "Total")
    sheet.write(5 + len(frame), 1, len(frame))
    book.add_worksheet("Remarks").write(0, 0, "Ward 7 was closed in August.")
    book.close()
