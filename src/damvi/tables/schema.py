"""Infer what the columns of a table hold, and encode them for a model.

The schema is inferred once, at fit. Columns are encoded the same way at fit and prediction,
regardless of the file type and its dtypes: as numbers, parts of dates, and category codes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ..messages import counted
from .encoding import FREQUENCY, Levels, Words, is_free_text
from .labels import listed
from .values import (
    BLANKS,
    DATE_PARTS,
    DATES,
    ENOUGH,
    LIMIT,
    MISSING,
    NUMBERS,
    PLAIN,
    SINCE,
    WAYS,
    Found,
    Writing,
    are_marks,
    as_numbers,
    date_in_numbers,
    date_part,
    date_parts,
    dates_of_fit,
    days_between,
    doubtful_date,
    find_date_format,
    find_writing,
    format_notes,
    in_words,
    is_time,
    numbers_in,
)

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "category", "levels", "text", "date", "dropped"]

ID_NAME = re.compile(
    r"unnamed: \d+|(.*[ _\-.])?(id|ids|uuid|guid|index|idx|key|number|no|nr|row)|row.*|#"
    r"|.*(Id|ID)",
)
OF_MANY_ROWS = re.compile(
    r"(.*[ _\-.])?(id|ids|uuid|guid|Id|ID|Uuid|UUID|Guid|GUID)|.*[^A-Za-z\d]ID|.*[a-z]I[dD]"
    r"|(.*[ _\-.])?(?i:customer|client|patient|user|subject|person|member|account|card"
    r"|device|machine|household|employee|student|merchant|kunden?|patienten|konto)"
    r"(?i:[ _\-.]*(id|nr|no|num|number|nummer|key|code|ref))",
)
"""Names of ids that several rows may share, such as a customer."""
OF_PEOPLE = re.compile(
    r"(?i:.*(customer|client|patient|user|subject|person|member|account|card|household"
    r"|employee|student|kunde|patient|konto).*)"
)
FEW_IDS = 20
REPEATS = "an id that repeats"
"""Start of the reason why such a column is dropped."""
FEW_ROWS = 10
"""With fewer rows, it means nothing that all values differ."""
SORTED_ROWS = 50
"""From this many rows on, sorted distinct integers are taken for ids."""
MOST_CATEGORIES = 100
"""Maximum number of categories; the rarest share one."""
LEAST_ROWS = 10
"""Minimum rows of a named category, if there are too many categories."""
LEAST_DIGITS = 5
"""Minimum length of numeric codes with many values, such as postal codes."""
FEW_CODES = 20
MOST_DATES = 6
"""Maximum number of date columns for which the days between each pair are counted."""
AS_BEFORE = "as before"
"""Start of the reason of a column that keeps its kind from an older table."""
IN_WORDS = {
    "number": "a number",
    "category": "a category",
    "levels": "a high-cardinality category",
    "text": "free text",
    "date": "a date",
    "dropped": "nothing to learn from",
}
"""The kinds of columns, for messages."""
OTHER = "(other)"
"""The category of all rare values, and of those not seen at fit."""


@dataclass(frozen=True)
class Column:
    """A column of the user's table.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "levels", "text", "date", "dropped"}
        Levels are high-cardinality categories. Dates, levels and text become several
        features; a dropped column becomes none.
    categories : tuple of str
        The known categories, in order. If the last one is ``OTHER``, it stands for all
        others; if not, other categories count as missing.
    reason : str
        Why a column is dropped, or a note on how it is used; shown to the user.
    decimal, group, unit : str
        Format of numbers stored as text; see ``damvi.tables.values.Writing``.
    form : str
        Format of a date: a ``strptime`` format or "ISO8601", or "seconds" or
        "milliseconds" since 1970.
    parts : tuple of str
        The features of a date: "month", "day of month", "weekday", "hour", "days since"
        another date column, and "day" (since 1970) if the column is in ``keep``. Of levels,
        "frequency"; of text, "text 1", "text 2", ...
    doubt : str
        What is ambiguous about the column; shown to the user.
    encoder : Levels, Words or None
        Encodes levels or text as numbers, without storing the text.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    reason: str = ""
    decimal: str = "."
    group: str = ""
    unit: str = ""
    form: str = ""
    parts: tuple[str, ...] = ()
    doubt: str = ""
    encoder: Levels | Words | None = None

    @property
    def writing(self) -> Writing:
        """Format of the numbers."""
        return Writing(self.decimal, self.group, self.unit)

    @property
    def features(self) -> list[str]:
        """Names of the encoded columns."""
        if self.kind == "dropped":
            return []
        parts = [f"{self.name} ({part})" for part in self.parts]
        return parts if self.kind in ("date", "text") else [self.name, *parts]


NEW = Column("", "dropped", reason="not in the older model's table")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of the training file.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {"amount": ["1,200", "15", "?"], "kind": ["a", "b", "a"], "fraud": [0, 1, 0]}
    ... )
    >>> schema = Schema.infer(frame, "fraud")
    >>> [(column.name, column.kind) for column in schema.columns]
    [('amount', 'number'), ('kind', 'category')]
    >>> schema.encode(pd.DataFrame({"kind": ["b", "new"], "amount": ["7", None]}))
       amount kind
    0     7.0    b
    1     NaN  NaN
    """

    columns: tuple[Column, ...]

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str,
        labels: NDArray[Any] | None = None,
        *,
        keep: Collection[str] = (),
        drop: Collection[str] = (),
        like: Schema | None = None,
    ) -> Schema:
        """Infer the schema of a table, without the target.

        Parameters
        ----------
        frame : DataFrame
            See :func:`~damvi.tables.read_table`.
        target : str
        labels : array, optional
            Class of each row; used to detect target leakage.
        keep, drop : collections of str
            Columns to use or to drop, regardless of their content. Of dates in ``keep``,
            the day itself is used too.
        like : Schema, optional
            Schema of an older table. Columns keep their kind where possible; columns that
            were dropped or missing there are dropped. What is learned from a column, such
            as its categories, is learned anew.
        """
        before = None if like is None else {one.name: one for one in like.columns}
        columns = [
            Column(name, "dropped", reason="as asked")
            if name in drop
            else _infer_column(name, frame[name], labels, name in keep)
            if before is None
            else _infer_again(
                name, frame[name], labels, name in keep, before.get(name, NEW)
            )
            for name in frame.columns
            if name != target
        ]
        return cls(tuple(_with_dates(columns, frame)))

    @cached_property
    def used(self) -> list[Column]:
        """The columns that the model uses."""
        return [column for column in self.columns if column.kind != "dropped"]

    @property
    def features(self) -> list[str]:
        """Names of the columns of the encoded table."""
        return [name for column in self.used for name in column.features]

    def check(self, names: Collection[str]) -> None:
        """Raise an error if columns are missing; extra columns and order do not matter."""
        lacking = [column.name for column in self.used if column.name not in names]
        if lacking:
            many = "columns are missing" if len(lacking) > 1 else "column is missing"
            raise ValueError(
                f"{many}: {listed(lacking)}, which the model uses; "
                f"the table has {listed(list(names)) if names else 'no columns'}"
            )

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Encode a table as floats and pandas categoricals.

        Columns may be in any order, and extra columns are ignored. Infinite values count as
        missing, and so does text in a numeric column.
        """
        self.check(list(frame.columns))
        return encode(self.used, frame, len(frame))

    def as_dict(self) -> dict[str, Any]:
        """Return everything except :attr:`encoders` as plain values, ready for JSON."""
        plain = [asdict(replace(column, encoder=None)) for column in self.columns]
        for column in plain:
            del column["encoder"]
        return {"columns": plain}

    @property
    def encoders(self) -> dict[str, Levels | Words]:
        """Encoders of levels and text, by column name."""
        return {c.name: c.encoder for c in self.columns if c.encoder is not None}

    @classmethod
    def from_dict(
        cls, state: dict[str, Any], encoders: Mapping[str, Any] | None = None
    ) -> Self:
        """Restore a schema from :meth:`as_dict` and its :attr:`encoders`."""
        columns = []
        for column in state["columns"]:
            lists = {name: tuple(column.get(name, ())) for name in ("categories", "parts")}
            own = {"encoder": (encoders or {}).get(column.get("name"))}
            columns.append(Column(**(column | lists | own)))
        dates = {SINCE + column.name for column in columns if column.kind == "date"}
        for column in columns:
            kind, encoder = type(column.encoder), column.encoder
            if kind is not {"levels": Levels, "text": Words}.get(column.kind, type(None)):
                raise ValueError(f"schema column {column.name!r} has no encoder")
            known = {"day", *DATE_PARTS} | dates
            if encoder is not None:
                known = {FREQUENCY} if isinstance(encoder, Levels) else {*encoder.parts}
            odd = set(column.parts) - known
            if column.form and column.form not in (*DATES, *NUMBERS):
                odd.add(column.form)
            if replace(column.writing, unit="") not in WAYS:
                odd.add(column.decimal + column.group)
            if column.kind not in get_args(Kind):
                odd.add(column.kind)
            if odd:
                raise ValueError(
                    f"schema column {column.name!r} has unknown {listed(sorted(odd))}"
                )
        return cls(tuple(columns))


# Infer what a column holds, from its values and, for ids, from its name.


def _infer_column(
    name: str,
    values: pd.Series,
    labels: NDArray[Any] | None,
    keep: bool,
    before: Column | None = None,
) -> Column:
    if values.isna().all():
        return Column(name, "dropped", reason="no values")
    column = judge(name, values, keep)
    if before is not None and column.kind != before.kind:
        found = _as_before(before, values)
        if found is not None:
            reason = f"{AS_BEFORE}, but looks like {IN_WORDS[column.kind]} here"
            column = replace(found, reason=reason)
    if keep or column.kind == "dropped" or labels is None:
        return column
    missing = values.isna().to_numpy()
    if column.kind == "number":
        numbers = as_numbers(values, column.writing)
    elif column.kind == "category":
        codes = as_categories(values, column.categories).codes
        numbers = np.where(codes < 0, np.nan, codes)
    else:
        numbers = np.where(missing, np.nan, 0.0)
    leak = find_leak(numbers, missing, labels, column.kind)
    if leak in SURE_LEAKS:
        return Column(name, "dropped", reason=leak)
    return replace(column, reason=leak) if leak else column


def _infer_again(
    name: str, values: pd.Series, labels: NDArray[Any] | None, keep: bool, before: Column
) -> Column:
    """Infer a column, keeping its kind from an older table."""
    if before.kind != "dropped":
        return _infer_column(name, values, labels, keep, before)
    if keep:
        return _infer_column(name, values, labels, keep)
    return Column(name, "dropped", reason=before.reason)


def _as_before(before: Column, values: pd.Series) -> Column | None:
    """Treat a column as the kind that it was; None if no value fits."""
    from pandas.api import types

    is_object = types.is_object_dtype(values.dtype)
    if (is_object and _holds_structures(values)) or values.nunique() < 2:
        return None
    name, text = before.name, values.astype("string")
    match before.kind:
        case "number":
            if types.is_datetime64_any_dtype(values.dtype):
                return None
            writing = find_writing(text).writing or before.writing
            found = _number(name, as_numbers(values, writing), True, writing=writing)
            return None if found.kind == "dropped" else found
        case "date":
            if dates_of_fit(values, before.form).nunique() < 2:
                return None
            return _date(name, values, before.form, keep="day" in before.parts)
        case "levels":
            return Column(name, "levels", parts=(FREQUENCY,), encoder=Levels.learn(values))
        case "text":
            return _text(name, text, int(text.nunique()))
        case _:
            counts = values.value_counts().drop("", errors="ignore")
            frequent = counts.head(MOST_CATEGORIES - 1)
            more = (OTHER,) if len(counts) > len(frequent) else ()
            named = sorted(set(category_texts(frequent.index)))
            return Column(name, "category", (*named, *more))


def _with_dates(columns: list[Column], frame: pd.DataFrame) -> list[Column]:
    """Add the days between dates, and drop dates that give no feature.

    A feature is left out if a column already has its name.
    """
    of_days = [c for c in columns if c.kind == "date" and not is_time(c.form)]
    some = of_days[:MOST_DATES] if len(of_days) > 1 else []
    dates = {c.name: dates_of_fit(frame[c.name], c.form) for c in some}
    names = {column.name for column in columns if column.kind != "dropped"}
    parts = {column.name: list(column.parts) for column in columns}
    for one, other in combinations(dates, 2):
        days = days_between(dates[one], dates[other])
        known = days[~np.isnan(days)]
        if len(known) and (len(known) < len(days) or np.ptp(known) > 0):
            parts[other].append(SINCE + one)
    counted_from = {part.removeprefix(SINCE) for own in parts.values() for part in own}
    found = []
    for column in columns:
        own = tuple(p for p in parts[column.name] if f"{column.name} ({p})" not in names)
        if column.kind == "date" and (own or column.name in counted_from):
            what = "a time" if is_time(column.form) else "a date"
            note = ": ".join(filter(None, [what, ", ".join(own)])) + _written(column)
            column = replace(column, parts=own, reason=column.reason or note)
        elif column.kind in ("levels", "text"):
            column = replace(column, parts=own)
        elif column.kind == "date":
            note = (
                "a date whose parts are already columns"
                if column.parts
                else "a date, and the period is too short for any part of it to recur"
            )
            column = Column(column.name, "dropped", reason=note)
        found.append(column)
    return found


def _written(column: Column) -> str:
    """Return a note on the format of a date column, unless it is the standard one."""
    plain = column.form in ("", "ISO8601")
    return "" if plain else f", read as {in_words(column.form)}"


def judge(name: str, column: pd.Series, keep: bool) -> Column:
    """Infer a column from its name and values, not all of which are missing."""
    from pandas.api import types

    kind = column.dtype
    if types.is_datetime64_any_dtype(kind):
        return _date(name, column, "", keep)
    if not keep and OF_MANY_ROWS.fullmatch(name):
        shared = _shared_id(name, column)
        if shared is not None:
            return shared
    if types.is_bool_dtype(kind) or types.is_timedelta64_dtype(kind):
        return _number(name, as_numbers(column), keep)
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):
        values = as_numbers(column)
        if form := _date_in_numbers(name, values):
            return _date(name, column, form, keep)
        raw = column.to_numpy(dtype=np.float64, na_value=np.nan)
        note = "infinite values count as missing" if np.isinf(raw).any() else ""
        return _number(name, values, keep, note)
    text = column.astype("string")
    if types.is_object_dtype(kind) and _holds_structures(column):
        return Column(name, "dropped", reason="lists or records, not single values")
    if hasattr(column, "cat"):
        return _category(name, column, text, keep)
    found = find_writing(text)
    number = _number_in_text(name, text, found, keep)
    if number is not None:
        return number
    if form := find_date_format(text):
        return _date(name, text, form, keep)
    return replace(_category(name, column, text, keep), doubt=found.doubt)


def _shared_id(name: str, column: pd.Series) -> Column | None:
    """Return an id shared by several rows, which is not a number even if it has digits."""
    from pandas.api import types

    known = column.dropna()
    is_number = types.is_numeric_dtype(known.dtype)
    if is_number and (types.is_bool_dtype(known.dtype) or (known % 1 != 0).any()):
        return None
    try:
        n_ids = known.nunique()
    except TypeError:  # lists and records
        return None
    if n_ids in (len(known), 1):
        return None
    few = n_ids < FEW_IDS or (n_ids <= MOST_CATEGORIES and not OF_PEOPLE.fullmatch(name))
    if few:  # few ids, of shops for example, are categories
        return _category(name, column, column.astype("string"), keep=False)
    note = f"{REPEATS}: {n_ids:,} values in {len(known):,} rows"
    return Column(name, "dropped", reason=note)


def _date_in_numbers(name: str, values: NDArray[np.float64]) -> str:
    form = date_in_numbers(values)
    known = values[~np.isnan(values)]
    counts = ID_NAME.fullmatch(name) or np.ptp(known) == len(known) - 1 if form else False
    return "" if counts and form != "%Y%m%d" else form


def _number(
    name: str,
    values: NDArray[np.float64],
    keep: bool,
    note: str = "",
    writing: Writing = PLAIN,
    doubt: str = "",
) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column(name, "dropped", reason="no finite number")
    if not keep:
        if len(known) == len(values) and (known == known[0]).all():
            return Column(name, "dropped", reason="constant")
        if _are_ids(name, known):
            return Column(name, "dropped", reason="looks like an id")
    return Column(name, "number", reason=note, doubt=doubt, **asdict(writing))


def _are_ids(name: str, known: NDArray[np.float64]) -> bool:
    """Whether numbers are distinct integers that are named like ids, or count the rows."""
    n = len(known)
    if n < FEW_ROWS or (known != np.floor(known)).any() or len(np.unique(known)) < n:
        return False
    if ID_NAME.fullmatch(name):
        return True
    steps = np.diff(known)
    is_sorted = (steps > 0).all() or (steps < 0).all()
    return n >= SORTED_ROWS and bool(is_sorted or np.ptp(known) == n - 1)


def _number_in_text(name: str, text: pd.Series, found: Found, keep: bool) -> Column | None:
    """Return a numeric or date column; None if the text is neither."""
    writing = found.writing
    if writing is None:
        return None
    some = text.dropna()
    values, odd = numbers_in(text, writing)
    known = int((~np.isnan(values)).sum())
    if not known:
        return None
    stripped = some.str.strip(BLANKS)
    padded = stripped.str.fullmatch(r"0\d+")
    if padded.any() and (stripped.nunique() <= FEW_CODES or _are_codes(stripped, padded)):
        return None  # codes such as 01 and 02, or postal codes
    limits = stripped[stripped.str.contains(LIMIT.replace("([", "(?:["))]
    if (odd.any() or len(limits)) and some.nunique() <= FEW_CODES:
        return None
    if known < ENOUGH * (known + odd.sum()) and not are_marks(text[odd], known):
        return None
    values = np.where(np.isfinite(values), values, np.nan)
    if writing == PLAIN and (form := _date_in_numbers(name, values)):
        return _date(name, text, form, keep)
    notes = list(format_notes(writing))
    if stripped.str.fullmatch(r"\(.*\)").any():
        notes.append("numbers in parentheses are negative")
    if len(limits):
        notes.append(f"{limits.iloc[0]!r} is read as the limit")
    if odd.any():
        what = str(text[odd].iloc[0])
        notes.append(f"{odd.sum():,} non-numbers such as {what!r} count as missing")
    elif np.isnan(values).sum() > text.isna().sum():
        mark = str(text[np.isnan(values) & text.notna().to_numpy()].iloc[0])
        notes.append(f"{mark!r} counts as missing")
    return _number(name, values, keep, "; ".join(notes), writing, found.doubt)


def _are_codes(texts: pd.Series, padded: pd.Series) -> bool:
    """Whether all texts have the same number of digits, at least five, some padded.

    If most start with 0, they may be amounts padded to a fixed width.
    """
    width = int(texts.str.len().max())
    same = texts.str.fullmatch(rf"\d{{{width}}}").all()
    return bool(width >= LEAST_DIGITS and same and padded.mean() < 0.5)


def _date(name: str, column: pd.Series, form: str, keep: bool) -> Column:
    dates = dates_of_fit(column, form)
    if dates.nunique() == 1 and dates.notna().all():
        return Column(name, "dropped", reason="constant")
    parts = date_parts(form, dates)
    if keep and not is_time(form):
        parts = ("day", *parts)
    doubt = doubtful_date(column, form) if form.startswith("%") else ""
    odd = column[dates.isna() & column.notna()].astype("string").str.strip()
    odd = odd[~odd.str.lower().isin(MISSING)]
    if len(odd):
        lost = f"{len(odd):,} non-dates such as {odd.iloc[0]!r} count as missing"
        doubt = "; ".join(filter(None, [doubt, lost]))
    return Column(name, "date", form=form, parts=parts, doubt=doubt)


def _category(name: str, column: pd.Series, text: pd.Series, keep: bool) -> Column:
    counts = column.value_counts()
    counts = counts[counts > 0].drop("", errors="ignore")  # an empty cell, as in a CSV
    n_known = int(counts.sum())
    if not n_known:
        return Column(name, "dropped", reason="no values")
    if len(counts) == 1 and n_known == len(column) and not keep:
        return Column(name, "dropped", reason="constant")
    if len(counts) == n_known and n_known >= FEW_ROWS:
        if keep or is_free_text(text):
            return _text(name, text, len(counts))
        return Column(name, "dropped", reason="unique in each row, like an id")
    if len(counts) <= MOST_CATEGORIES:
        categories = tuple(sorted(set(category_texts(counts.index))))
        return Column(
            name, "category", categories, counted(len(categories), "category", "categories")
        )
    frequent = counts[counts >= LEAST_ROWS].head(MOST_CATEGORIES - 1)
    if frequent.sum() < n_known / 2:
        if is_free_text(text):
            return _text(name, text, len(counts))
        levels = Levels.learn(column)
        if keep or counts[counts > 1].sum() >= n_known / 2:
            note = f"{len(counts):,} values, encoded by frequency and class rates"
            return Column(name, "levels", (), note, parts=(FREQUENCY,), encoder=levels)
        note = f"unique in nearly every row, like an id ({len(counts):,} values)"
        return Column(name, "dropped", reason=note)
    categories = (*sorted(set(category_texts(frequent.index))), OTHER)
    note = f"{len(frequent)} of {len(counts):,} categories, the rest merged"
    return Column(name, "category", categories, note)


def _text(name: str, text: pd.Series, n_values: int) -> Column:
    words = Words.learn(text)
    note = f"free text ({n_values:,} values), encoded as {words.n_numbers} numbers"
    return Column(name, "text", (), note, parts=words.parts, encoder=words)


def _holds_structures(column: pd.Series) -> bool:
    some = column.dropna().head(100)
    kinds = (list, dict, set, np.ndarray)
    return any(isinstance(value, kinds) for value in some)


# Whether a column gives the target away.

FEW_OF_CLASS = 10
"""With fewer rows of a class, a perfect separation may be chance."""
ENOUGH_OF_CLASS = 20
TOO_GOOD = 0.95
"""Minimum precision and recall at which a single column is suspicious."""
SURELY = 0.99
"""Minimum precision of missing values at lower recall; also the suspicious F1 or AP of a
model."""
EQUALS_TARGET = "EQUALS THE TARGET: it would give the answer away"
TELLS_BY_GAPS = "MISSING VALUES REVEAL A CLASS: is it known at prediction time?"
SEPARATES = "SEPARATES THE CLASSES ALONE: is it known at prediction time?"
SURE_LEAKS = (EQUALS_TARGET, TELLS_BY_GAPS)
"""Leaks for which a column is dropped, unless the user keeps it."""


def find_leak(
    numbers: NDArray[np.float64],
    missing: NDArray[np.bool_],
    labels: NDArray[Any],
    kind: str,
) -> str:
    """Return the leak of a column, given the class of each row; "" if there is none.

    Parameters
    ----------
    numbers : ndarray
        The column's values, categories as codes, NaN if there is none.
    missing : ndarray of bool
        Where the cell is missing.
    labels : ndarray
    kind : {"number", "category", "date"} or another
        Values are compared with the class only for numbers and categories.
    """
    classes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    n_classes = len(classes)
    if counts.max() == len(labels):
        return ""
    has_values = kind in ("number", "category")
    if has_values and _equals_target(numbers, places, n_classes):
        return EQUALS_TARGET
    if kind == "number" and counts.min() >= FEW_OF_CLASS and _separates(numbers, places):
        return SEPARATES
    for gaps in (missing, np.isnan(numbers)):
        if any(_gaps_identify(gaps, places == place) for place in range(n_classes)):
            return TELLS_BY_GAPS
    return ""


def _equals_target(
    numbers: NDArray[np.float64], places: NDArray[np.intp], n_classes: int
) -> bool:
    """Whether values and classes map one to one; missing counts as a value."""
    if len(np.unique(numbers[:1000])) > n_classes:  # a quick test on the first rows
        return False
    codes = np.unique(np.where(np.isnan(numbers), np.inf, numbers), return_inverse=True)[1]
    if codes.max() + 1 != n_classes:
        return False
    return len(np.unique(codes * n_classes + places)) == n_classes


def _separates(numbers: NDArray[np.float64], places: NDArray[np.intp]) -> bool:
    """Whether thresholds on a number separate the classes without error."""
    if np.isnan(numbers).any():
        return False
    of_class = [numbers[places == c] for c in range(places.max() + 1)]
    ranges = sorted((some.min(), some.max()) for some in of_class)
    return all(one[1] < next_one[0] for one, next_one in pairwise(ranges))


def _gaps_identify(gaps: NDArray[np.bool_], of_class: NDArray[np.bool_]) -> bool:
    """Whether missing (or present) values identify a class.

    For example, a chargeback date exists only where there was a chargeback. It is enough
    that nearly all rows with a value belong to the class and half of the class has one, but
    not for a class of the majority of rows.
    """
    n, n_class, n_gaps = len(gaps), int(of_class.sum()), int(gaps.sum())
    if n_gaps in (0, n):
        return False
    both = int((gaps & of_class).sum())
    for flagged, hits in ((n_gaps, both), (n - n_gaps, n_class - both)):
        precision, recall = hits / flagged, hits / n_class
        if precision == recall == 1:
            return True
        enough = hits >= ENOUGH_OF_CLASS and 2 * n_class <= n
        if enough and precision >= TOO_GOOD and recall >= TOO_GOOD:
            return True
        if enough and precision >= SURELY and recall >= 0.5:
            return True
    return False


# Encode columns for a model.


def encode(
    columns: Sequence[Column], table: Mapping[str, Any], n_rows: int
) -> pd.DataFrame:
    """Encode the columns, in order, as features.

    The numbers share one array, so that voters need not copy it.
    """
    import pandas as pd

    kinds = ("category", "levels")
    numbers = [
        name
        for column in columns
        for name in column.features
        if name != column.name or column.kind not in kinds
    ]
    place = {name: number for number, name in enumerate(numbers)}
    array = np.empty((n_rows, len(numbers)))
    categories: dict[str, pd.Categorical] = {}
    dates = {
        column.name: dates_of_fit(table[column.name], column.form)
        for column in columns
        if column.kind == "date"
    }
    for column in columns:
        values = table[column.name]
        if column.kind == "category":
            categories[column.name] = as_categories(values, column.categories)
        elif column.kind == "number":
            array[:, place[column.name]] = as_numbers(values, column.writing)
        elif isinstance(column.encoder, Levels):
            categories[column.name], frequency = column.encoder.encode(values)
            for name in column.features[1:]:
                array[:, place[name]] = frequency
        elif isinstance(column.encoder, Words):
            found = column.encoder.encode(values)
            for name, part in zip(column.features, column.parts, strict=True):
                array[:, place[name]] = found[:, column.encoder.parts.index(part)]
        else:
            own = dates[column.name]
            for name, part in zip(column.features, column.parts, strict=True):
                array[:, place[name]] = (
                    days_between(dates[part.removeprefix(SINCE)], own)
                    if part.startswith(SINCE)
                    else date_part(own, part)
                )
    encoded = pd.DataFrame(array, columns=numbers, copy=False)
    if not categories:
        return encoded
    features = {
        name: categories.get(name, encoded.get(name))
        for column in columns
        for name in column.features
    }
    return pd.DataFrame(features, copy=False)


def as_categories(column: pd.Series, categories: tuple[str, ...]) -> pd.Categorical:
    """Convert a column to a pandas categorical; other values are missing."""
    import pandas as pd

    # Convert each distinct value once, since values repeat.
    if hasattr(column, "cat"):
        codes, distinct = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, distinct = pd.factorize(column)
    code_of = {"": -1} | {label: code for code, label in enumerate(categories)}
    other = len(categories) - 1 if categories[-1:] == (OTHER,) else -1
    new_codes = [code_of.get(label, other) for label in category_texts(distinct)]
    numbers = np.array([*new_codes, -1], dtype=np.int32)[codes]
    return pd.Categorical.from_codes(numbers, categories=list(categories))


def category_texts(values: object) -> list[str]:
    """Return values as text, independent of the file type: 1.0 and 1 are "1"."""
    import pandas as pd

    return [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in pd.Index(values).tolist()
    ]
