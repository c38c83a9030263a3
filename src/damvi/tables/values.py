"""Detect and parse numbers and dates in the formats that people write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("", "?", "-", "--", ".", "na", "n/a", "nan", "-nan", "none", "null", "unknown")
"""Texts that mark a missing number."""
WORDS = {"true": 1.0, "false": 0.0} | {
    sign + word: float(sign + word)
    for sign, word in product(("", "+", "-"), ("inf", "infinity"))
}
"""Numbers written without digits."""
BLANKS = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
BLANKS += "".join(map(chr, range(0x2000, 0x200B)))
"""Whitespace that ``float`` ignores around a number; ``strip`` also takes \x1c to \x1f."""
ENOUGH = 0.99
"""Minimum fraction of values that a format must parse; the rest count as missing."""
MARKED = 0.9
"""The same, if the rest are a few recurring words, such as "k.A." or "TBD"."""
MOST_MARKS = 50


# Numbers


@dataclass(frozen=True)
class Writing:
    """Format of the numbers in a column.

    Attributes
    ----------
    decimal : {".", ","}
    group : {"", ",", ".", " ", "'"}
        Separator of thousands, or of lakhs and crores.
    unit : str
        Unit or currency before or after the numbers.
    """

    decimal: str = "."
    group: str = ""
    unit: str = ""


PLAIN = Writing()
WAYS = (
    PLAIN,
    Writing(".", ","),
    Writing(",", "."),
    Writing(",", ""),
    Writing(",", " "),
    Writing(".", " "),
    Writing(".", "'"),
    Writing(",", "'"),
)
"""Formats to try; the first of those that parse most values is used."""
SURE = 30
"""Numbers with three digits after a point, from which on this is not by chance."""
FEW_UNITS = 5
MOST_READ = 50_000
"""Maximum number of texts from which the format is detected."""
SAME = {
    "eur": "€",
    "euro": "€",
    "usd": "$",
    "us$": "$",
    "dollar": "$",
    "gbp": "£",
    "inr": "₹",
    "rs": "₹",
    "rs.": "₹",
    "rupee": "₹",
    "jpy": "¥",
    "yen": "¥",
    "円": "¥",
    "rmb": "cny",
    "元": "cny",
    "fr": "chf",
    "fr.": "chf",
    "sfr": "chf",
    "kr.": "kr",
    "pln": "zł",
    "czk": "kč",
    "brl": "r$",
    "rub": "₽",
    "uah": "₴",
    "try": "₺",
    "tl": "₺",
    "krw": "₩",
    "ils": "₪",
    "thb": "฿",
    "vnd": "₫",
    "php": "₱",
    "ngn": "₦",
    "idr": "rp",
    "myr": "rm",
    "aud": "a$",
    "cad": "c$",
    "twd": "nt$",
    "hkd": "hk$",
    "sgd": "s$",
}
"""Synonyms of currencies."""
CODES = "chf cny sek nok dkk isk huf ron bgn nzd mxn ars clp cop zar aed sar egp kes pkr"
SHORT = "kr rm rp fr"
"""Currencies that need a space or point before the number."""
SPELLED = {
    **{unit: unit[0] + unit[1:].capitalize() for unit in ("hpa", "kpa", "khz", "kw", "db")},
    **{unit: unit.upper() for unit in ("kb", "mb", "gb", "tb")},
    "kwh": "kWh",
    "mwh": "MWh",
    "hz": "Hz",
    "mhz": "MHz",
    "ghz": "GHz",
}
"""Units as people write them; case is ignored in parsing."""
CURRENCIES = {*SAME.values(), *CODES.split(), *SHORT.split()}
BEFORE = [word for word in [*SAME, *CODES.split()] if len(word) == 3 or word == "rs"]
LIMIT = r"^[<>≤≥] ?([0-9.,])"
"""A value below or above a detection limit, such as <0.5; read as the limit."""
MULTIPLES = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "lakh": 1e5, "lac": 1e5, "mio": 1e6}
MULTIPLES |= {"million": 1e6, "mn": 1e6, "crore": 1e7, "cr": 1e7, "bn": 1e9, "billion": 1e9}
"""Multipliers after an amount of money."""
POWERS = {
    "mass": {"mg": -6, "g": -3, "kg": 0, "t": 3},
    "length": {"mm": -3, "cm": -2, "m": 0, "km": 3},
    "volume": {"ml": -3, "cl": -2, "l": 0, "hl": 2},
    "bytes": {"b": 0, "kb": 3, "mb": 6, "gb": 9, "tb": 12},
    "power": {"w": 0, "kw": 3},
}
SIZES = {unit: (what, 10.0**n) for what, own in POWERS.items() for unit, n in own.items()}
"""Units that a column may mix: their dimension, and their size."""
AMOUNT = (
    r"^(?P<sign>[-+]?) ?(?P<before>[A-Za-z]{0,3}\p{Sc}|(?i:"
    + "|".join([*map(re.escape, sorted(BEFORE, key=len, reverse=True))])
    + "|(?:"
    + "|".join(SHORT.split())
    + r")(?:\.| ))\.?)? ?(?P<inner>[-+]?) ?"
    r"(?P<body>[.,]?[0-9](?:[0-9.,' ]*[0-9.,])?(?:[eE][-+]?[0-9]+)?)"
    r" ?(?P<after>[\p{L}\p{Sc}%‰°/µ\"][^0-9()+,;:]{0,14}[23]?)?$"
)
"""A number and what may surround it, in RE2 syntax."""


def as_numbers(
    column: pd.Series | NDArray[np.float64], writing: Writing = PLAIN
) -> NDArray[np.float64]:
    """Convert a column of any dtype to floats; NaN if not a finite number."""
    from pandas.api import types

    if isinstance(column, np.ndarray):
        values = column
    elif types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif types.is_timedelta64_dtype(column.dtype):
        values = column.dt.total_seconds().to_numpy(np.float64)
    else:
        values, _ = numbers_in(column, writing)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def numbers_in(
    text: Any, writing: Writing = PLAIN
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Parse numbers in text; return them, and a mask of unreadable cells.

    Whitespace around a number and its unit is ignored. ``(5)`` and ``5-`` are negative, as
    in accounting. True is 1 and false is 0.

    Parameters
    ----------
    text : Series or Arrow array
    writing : Writing
        Other units are unreadable. Without a unit, currencies are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> values, odd = numbers_in(pd.Series([" 3.5", "$12", "?", "true", "high"]))
    >>> values, odd
    (array([ 3.5, 12. ,  nan,  1. ,  nan]), array([False, False, False, False,  True]))
    >>> numbers_in(pd.Series(["1.234,50 €", "(20)"]), Writing(",", ".", "€"))[0]
    array([1234.5,  -20. ])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = _as_arrow(text)
    values = plain_numbers(cells, writing)
    if values is not None:
        return values, np.zeros(len(values), bool)
    cells = _tidy(cells)
    lowered = pc.utf8_lower(cells)
    missing = pc.or_(pc.is_null(cells), pc.is_in(lowered, pa.array(MISSING)))
    gaps = np.asarray(missing.to_numpy(), bool)
    bare = _without_unit(cells, writing.unit)
    read = pc.match_substring_regex(bare, rf"^[-+]?{_body(writing)}$")
    values = _doubles(pc.if_else(read, bare, None), writing)
    rest = np.flatnonzero(np.isnan(values) & ~gaps)
    if len(rest):
        amounts = _split(cells.take(rest))
        what, size = _size(writing.unit)
        units = {
            unit: _size(unit) for unit in pc.unique(amounts.unit.drop_null()).to_pylist()
        }
        factors = {unit: own / size for unit, (kind, own) in units.items() if kind == what}
        factors |= dict.fromkeys(
            ["", writing.unit] if writing.unit else ["", *CURRENCIES], 1.0
        )
        place = pc.index_in(amounts.unit, pa.array(list(factors)))
        read = pc.and_(
            pc.match_substring_regex(amounts.body, f"^{_body(writing)}$"),
            pc.is_valid(place),
        )
        numbers = _doubles(pc.if_else(read, amounts.body, None), writing)
        numbers *= pc.take(pa.array(list(factors.values())), place).to_numpy()
        place = pc.index_in(lowered.take(rest), pa.array(list(WORDS)))
        words = pc.take(pa.array(list(WORDS.values())), place).to_numpy()
        values[rest] = np.where(np.isnan(words), numbers * amounts.sign.to_numpy(), words)
    values[gaps] = np.nan
    return values, ~gaps & np.isnan(values)


def are_marks(odd: pd.Series, n_known: int) -> bool:
    """Whether these cells among numbers mark missing values: few words without digits.

    Spreadsheet errors such as #DIV/0! count too.
    """
    words = odd.str.strip(BLANKS).str.lower().drop_duplicates()
    return (
        n_known >= MARKED * (n_known + len(odd))
        and len(words) <= MOST_MARKS
        and bool(words.str.fullmatch(r"#.*|\D*").all())
    )


def _size(unit: str) -> tuple[str, float]:
    """Return the dimension of a unit, and its size."""
    money, _, word = unit.rpartition(" ")
    if money in CURRENCIES and word in MULTIPLES:
        return money, MULTIPLES[word]
    return SIZES.get(unit if len(unit) > 1 else unit.lower(), (unit, 1.0))


def _doubles(digits: Any, writing: Writing) -> NDArray[np.float64]:
    """Parse texts in a given format as floats."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if writing.group:
        digits = pc.replace_substring(digits, writing.group, "")
    if writing.decimal == ",":
        digits = pc.replace_substring(digits, ",", ".")
    return np.array(digits.cast(pa.float64()).to_numpy())


def _without_unit(cells: Any, unit: str) -> Any:
    """Strip the unit where it has its most common form; a shortcut."""
    import pyarrow.compute as pc

    if not unit:
        return cells
    names = [re.escape(name) for name in (unit, *SAME) if SAME.get(name, unit) == unit]
    some = "|".join(sorted(names, key=len, reverse=True))
    before = rf"^(?i:{some})\.? ?|" if unit in CURRENCIES else ""
    return pc.replace_substring_regex(cells, rf"{before} ?(?i:{some})$", "")


def plain_numbers(cells: Any, writing: Writing = PLAIN) -> NDArray[np.float64] | None:
    """Parse an Arrow column quickly; None if cells have more than digits.

    Numbers are rounded to the nearest double, as by ``float``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if writing.decimal == ",":
        if writing.group == "." and pc.any(pc.match_substring(cells, ".")).as_py():
            return None
        cells = pc.replace_substring(cells, ",", ".")
    try:
        numbers = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        cells = pc.utf8_trim(cells, BLANKS)
        missing = pc.is_in(pc.utf8_lower(cells), pa.array(MISSING))
        try:
            numbers = pc.if_else(missing, None, cells).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    values: NDArray[np.float64] = numbers.to_numpy()
    return values


class Found(NamedTuple):
    """The format of numbers, or None; ``doubt`` is shown to the user."""

    writing: Writing | None = None
    doubt: str = ""


def find_writing(text: pd.Series) -> Found:
    """Return the format that parses most texts, all in one unit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = _tidy(_as_arrow(text.dropna()))
    words = pa.array([*MISSING, *WORDS])
    cells = cells.filter(pc.invert(pc.is_in(pc.utf8_lower(cells), words)))
    if not len(cells):
        return Found(PLAIN)
    cells = _spread(cells, MOST_READ)
    first = _split(_spread(cells, 1000)).body
    if first.null_count > 0.5 * len(first):
        return Found()
    amounts = _split(cells)
    bodies = amounts.body.drop_null()
    looks = len(bodies) >= ENOUGH * len(cells)
    unit, doubt = _one_unit(amounts.unit.drop_null())
    if unit is None:
        return Found(None, doubt if looks else "")
    reads = [pc.match_substring_regex(bodies, f"^{_body(way)}$") for way in WAYS]
    counts = [pc.sum(read).as_py() for read in reads]
    best = counts.index(max(counts))
    if 0 < counts[best] < ENOUGH * len(bodies) and looks:
        read, odd = (
            bodies.filter(some)[0].as_py() for some in (reads[best], pc.invert(reads[best]))
        )
        return Found(
            None, f"{read!r} and {odd!r} have different formats, so no number is read"
        )
    if counts[best] < ENOUGH * len(bodies):
        return Found()
    ways = [way for way, n in zip(WAYS, counts, strict=True) if n == counts[best]]
    way, unsure = _one_way(bodies.filter(reads[best]), ways)
    return Found(replace(way, unit=unit), "; ".join(filter(None, [unsure, doubt])))


def _spread(cells: Any, n: int) -> Any:
    """Take ``n`` evenly spaced cells."""
    places = np.linspace(0, len(cells) - 1, min(n, len(cells))).astype(np.intp)
    return cells.take(places)


def _one_unit(units: Any) -> tuple[str | None, str]:
    """Return the unit that nearly all cells have; None if there are several."""
    counts = {pair["values"]: pair["counts"] for pair in units.value_counts().to_pylist()}
    bare = counts.pop("", 0)
    if not counts:
        return "", ""
    unit = max(counts, key=lambda unit: counts[unit])
    n = sum(counts.values())
    if counts[unit] < ENOUGH * n:
        some = sorted(counts, key=lambda unit: -counts[unit])[:3]
        shares = ", ".join(f"{unit!r} {counts[unit] / n:.0%}" for unit in some)
        alike = sum(counts[other] for other in counts if _size(other)[0] == _size(unit)[0])
        if alike >= ENOUGH * n and bare < (1 - ENOUGH) * n:
            return unit, f"numbers in several units ({shares}), all converted to {unit!r}"
        are_units = len(counts) <= FEW_UNITS or not CURRENCIES.isdisjoint(some)
        mixed = f"numbers in several units ({shares}), so none is read"
        return None, mixed if are_units else ""  # 1A to 30F are seats, not units
    if bare >= (1 - ENOUGH) * (bare + n):
        share = f"{bare / (bare + n):.0%} of the numbers have no unit, the rest {unit!r}"
        if unit == "%":
            return None, f"{share}, so none is read"
        return unit, f"{share}; all are read as the same unit"
    return unit, ""


def _one_way(bodies: Any, ways: list[Writing]) -> tuple[Writing, str]:
    """Choose the likeliest of the formats that parse all cells; note the other one."""
    import pyarrow.compute as pc

    one = ways[0]
    others = [way for way in ways if _differ(bodies, one, way)]
    if not others:
        return one, ""
    if one == PLAIN:
        dotted = pc.match_substring(bodies, ".")
        n_dotted = pc.sum(dotted).as_py()
        # 1.234 and 980, but never 1.25: rounded numbers would have other digits too.
        if n_dotted >= SURE and n_dotted < len(bodies):
            one, others = others[0], [one]
        else:
            return one, ""
    example = _example(bodies, one, others[0])
    first, second = (numbers_in([example], way)[0][0] for way in (one, others[0]))
    return one, f"{example!r} is read as {first:,g}, but could be {second:,g}"


def _differ(bodies: Any, one: Writing, other: Writing) -> bool:
    return one != other and _example(bodies, one, other) is not None


def _example(bodies: Any, one: Writing, other: Writing) -> str | None:
    """Return a cell that the two formats parse differently."""
    differ = np.flatnonzero(numbers_in(bodies, one)[0] != numbers_in(bodies, other)[0])
    return bodies[int(differ[0])].as_py() if len(differ) else None


def format_notes(writing: Writing) -> Iterator[str]:
    """Yield notes on an unusual format."""
    words = {",": "commas", ".": "points", " ": "spaces", "'": "quotes"}
    if writing.decimal == ",":
        yield "decimal comma"
    if writing.group:
        yield f"{words[writing.group]} separate thousands"
    if writing.unit:
        unit = writing.unit
        if unit in CURRENCIES and len(unit) == 3:
            unit = unit.upper()
        yield "percent" if unit == "%" else f"in {SPELLED.get(unit, unit)}"


class _Amounts(NamedTuple):
    """Arrow arrays; null if a cell is not a number with an optional unit."""

    sign: Any
    body: Any
    unit: Any


def _split(cells: Any) -> _Amounts:
    """Split normalized cells into sign, digits and unit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # (5), 5- and $(5) are -5, -5 and -$5.
    cells = pc.replace_substring_regex(
        cells, r"^([^0-9()]*)\(([^()]*)\)([^0-9()]*)$", r"-\1\2\3"
    )
    cells = pc.replace_substring_regex(cells, r"^([^-+]*[0-9])-( ?[^-+0-9]*)$", r"-\1\2")
    found = pc.extract_regex(cells, AMOUNT)
    part = {name: pc.struct_field(found, name) for name in ("sign", "inner", "body")}
    signs = pc.binary_join_element_wise(part["sign"], part["inner"], "")
    around = pc.binary_join_element_wise(
        pc.struct_field(found, "before"), pc.struct_field(found, "after"), "\n"
    )
    distinct = pc.unique(around)
    names = pa.array([_unit(text) for text in distinct.to_pylist()], pa.string())
    unit = pc.take(names, pc.index_in(around, distinct))
    known = pc.and_(pc.is_valid(found), pc.less_equal(pc.utf8_length(signs), 1))
    body = pc.if_else(pc.fill_null(known, False), part["body"], None)
    sign = pc.if_else(pc.equal(signs, "-"), -1.0, 1.0)
    return _Amounts(sign, body, pc.if_else(pc.is_valid(body), unit, None))


def _unit(around: str | None) -> str | None:
    """Return one name for the text before and after a number."""
    if around is None:
        return None
    names = []
    for text in around.split("\n"):
        word = text.strip()
        word = word if len(word) == 1 else word.lower()
        if len(word) > 3:
            word = word.removesuffix("s")  # 1 month, 2 months
        names.append(SAME.get(word.lower(), word))
    before, after = names
    return after if before in ("", after) else " ".join(filter(None, names))


def _body(writing: Writing) -> str:
    """Return an RE2 pattern for the digits of a number."""
    group = re.escape(writing.group)
    whole = "[0-9]+"
    if group:
        whole += f"|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+"
    if group == ",":
        whole += f"|[1-9][0-9]?(?:{group}[0-9]{{2}})+{group}[0-9]{{3}}"
    # A point is a decimal point if it has no other meaning.
    points = "[.,]" if writing.decimal == "," and group != re.escape(".") else "[.]"
    points = "," if writing.decimal == "," and writing.group == "." else points
    return f"(?:(?:{whole})(?:{points}[0-9]*)?|{points}[0-9]+)(?:[eE][-+]?[0-9]+)?"


def _tidy(cells: Any) -> Any:
    """Normalize digits, spaces, quotes and minus signs."""
    import pyarrow.compute as pc

    cells = pc.utf8_trim(cells, BLANKS)
    cells = pc.replace_substring_regex(cells, LIMIT, r"\1")
    if pc.all(pc.string_is_ascii(cells)).as_py() in (True, None):
        return cells
    cells = pc.replace_substring_regex(cells, "[‘’ʼ′´`＇]", "'")
    cells = pc.replace_substring_regex(cells, "[−–]", "-")
    cells = pc.replace_substring_regex(cells, f"[{BLANKS}]", " ")
    return pc.utf8_normalize(cells, "NFKC")


def _as_arrow(text: Any) -> Any:
    """Convert a column of text to a chunked Arrow array."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(text, pa.ChunkedArray):
        return text
    if isinstance(text, pd.Series):
        text = pa.array(text.astype("string"), pa.string(), from_pandas=True)
    array = text if isinstance(text, pa.Array | pa.ChunkedArray) else pa.array(text)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


# Dates


CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M:%S %p", "%Hh%M", "%H時%M分")
_APART = (" %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
TIMES = ("", *_APART, *("," + time for time in _APART), " %Hh%M")
DATES = (
    "ISO8601",
    *(day + time for time in TIMES for day in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y")),
    *(day + time for time in TIMES for day in ("%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y")),
    *(day + time for time in TIMES for day in ("%d/%m/%y", "%m/%d/%y", "%d.%m.%y")),
    *(day + time for time in TIMES for day in ("%m-%d-%Y", "%d-%m-%y", "%m-%d-%y")),
    *(
        day.replace("%b", month) + time
        for time in TIMES
        for month in ("%b", "%B")
        for day in ("%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y", "%d-%b-%y")
    ),
    *("%d. %B %Y", "%d. %b %Y", "%a, %d %b %Y %H:%M:%S %z", "%A, %B %d, %Y"),
    *(
        "%Y年%m月%d日" + time
        for time in (*TIMES[:3], "%H時%M分", " %H時%M分", "%H時%M分%S秒")
    ),
    *("%Y년 %m월 %d일", "%y/%m/%d", "%y.%m.%d", "%y-%m-%d"),
    *CLOCKS,
)
"""Date formats to try; the first that parses the texts is used."""
NUMBERS = {"%Y%m%d": 0.0, "seconds": 1.0, "milliseconds": 1e3}
"""Dates as integers: YYYYMMDD, or a scale for the time since 1970."""
FIRST, LAST = 1104537600, 2051222400
"""Seconds from 1970 to 2005 and 2035, the plausible range of timestamps."""
DATE_PARTS = {"month": 350, "day of month": 60, "weekday": 14, "hour": 2}
"""Parts of a date that recur, and the number of days after which they have done so.

Over a shorter period, a part only encodes the day itself, and what a model learns from it
says nothing about later days.
"""
SINCE = "days since "
"""Prefix of a feature that counts days from another date column."""


def find_date_format(text: pd.Series) -> str:
    """Return the format of dates or times in text; "" if there are none."""
    distinct = text.dropna().drop_duplicates()
    form = next(_date_formats(distinct), "")
    if not form and any(map(_shape("ISO8601").match, distinct.head(20))):
        # Spreadsheets store dates as ISO here, but typed text in another format.
        distinct = distinct[dates_in(distinct, "ISO8601").isna()]
        form = next(_date_formats(distinct), "")
    other = _exchanged(form)
    if other == form:
        return form
    return max(form, other, key=lambda way: dates_in(distinct, way).notna().sum())


def doubtful_date(text: pd.Series, form: str) -> str:
    """Return a note if day and month may be swapped."""
    distinct = text.dropna().drop_duplicates()
    other = _exchanged(form)
    dates, others = dates_in(distinct, form), dates_in(distinct, other)
    differ = distinct[(dates != others) & dates.notna()]
    if not len(differ) or others.notna().sum() < dates.notna().sum():
        return ""
    example = str(differ.iloc[0])
    return f"{example!r} is read as {in_words(form)}, but could be {in_words(other)}"


def _exchanged(form: str) -> str:
    if "%b" in form or "%B" in form or form.lower().startswith("%y"):
        return form
    names = {"%d": "%m", "%m": "%d"}
    return re.sub("%[dm]", lambda found: names[found[0]], form)


def _date_formats(distinct: pd.Series) -> Iterator[str]:
    first = distinct.head(1000)
    some = first.head(20).str.normalize("NFKC").str.strip().tolist()
    for form in DATES:
        if (
            not some
            or sum(_shape(form).match(text) is not None for text in some) < len(some) / 2
        ):
            continue
        # A quick test on the first rows.
        if all(dates_in(part, form).notna().mean() >= ENOUGH for part in (first, distinct)):
            yield form


@cache
def _shape(form: str) -> re.Pattern[str]:
    """Return a rough pattern for texts of a date format."""
    if form == "ISO8601":
        return re.compile(r"\d{4}-\d\d?(-\d\d?.*)?$")
    digits = {"%Y": r"\d{4}", "%z": ".*"} | dict.fromkeys(
        ["%b", "%B", "%a", "%A", "%p"], r"\w+\.?"
    )
    pattern = re.escape(form)
    return re.compile(
        re.sub("%.", lambda found: digits.get(found[0], r"\d\d?"), pattern) + "$"
    )


def date_in_numbers(values: NDArray[np.float64]) -> str:
    """Return the format of dates stored as integers; "" if there are none."""
    known = values[np.isfinite(values)]
    if not len(known) or (known != np.floor(known)).mean() > 0 or np.ptp(known) == 0:
        return ""
    for form, scale in NUMBERS.items():
        low, high = (FIRST * scale, LAST * scale) if scale else (19000101, 21001231)
        within = (known >= low) & (known <= high)
        if within.mean() < ENOUGH:
            continue
        if scale or _from_digits(known).notna().mean() >= ENOUGH:
            return form
    return ""


def dates_in(column: pd.Series, form: str) -> pd.Series:
    """Parse the dates in a column; NaT if there is none."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return pd.to_datetime(column, utc=True)
    if form in NUMBERS:
        values = as_numbers(column)
        dates = _from_digits(values) if form == "%Y%m%d" else _from_1970(values, form)
        return dates.set_axis(column.index)
    text = column.astype("string").str.strip()
    if not form.isascii() or (form.startswith("%") and not text.str.isascii().all()):
        text = text.str.normalize("NFKC")
    return pd.to_datetime(text, format=form or "ISO8601", errors="coerce", utc=True)


def _from_1970(values: NDArray[np.float64], form: str) -> pd.Series:
    import pandas as pd

    seconds = values / NUMBERS[form]
    with np.errstate(invalid="ignore"):
        seconds = np.where(np.abs(seconds) < 1e11, seconds, np.nan)
    return pd.Series(pd.to_datetime(seconds, unit="s", utc=True, errors="coerce"))


def _from_digits(values: NDArray[np.float64]) -> pd.Series:
    """Parse numbers such as 20240105 as dates."""
    import pandas as pd

    whole = pd.Series(values).where(lambda value: value.between(1e7, 1e8))
    parts = {"year": whole // 10_000, "month": whole // 100 % 100, "day": whole % 100}
    return pd.to_datetime(pd.DataFrame(parts), errors="coerce", utc=True)


def is_time(form: str) -> bool:
    """Whether the format is a time of day without a date."""
    return form in CLOCKS


def date_parts(form: str, dates: pd.Series) -> tuple[str, ...]:
    """Return the calendar parts that recur in the period of these dates."""
    if is_time(form):
        return ("hour",)
    known = dates.dropna()
    low, high = known.quantile([0.01, 0.99])
    days = (high - low).days
    at_midnight = (known == known.dt.normalize()).all()
    parts = [part for part, least in DATE_PARTS.items() if days >= least]
    return tuple(part for part in parts if part != "hour" or not at_midnight)


def dates_of_fit(column: pd.Series, form: str) -> pd.Series:
    """Parse dates in the format seen at fit, or else as ISO."""
    import pandas as pd

    dates = dates_in(column, form)
    others = dates.isna() & column.notna()
    if form in ("", "ISO8601") or not others.any():
        return dates
    more = dates_in(column[others], "ISO8601")
    # The two have different time units; fillna would fail on the finer one.
    return pd.concat([dates[~others], more]).reindex(dates.index)


def date_part(dates: pd.Series, part: str) -> NDArray[np.float64]:
    """Return one number per date; NaN if missing."""
    import pandas as pd

    values: Any
    if part == "day":
        values = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(days=1)
    elif part == "hour":
        values = (dates - dates.dt.normalize()) / pd.Timedelta(hours=1)
    elif part == "day of month":
        values = dates.dt.day
    else:
        values = dates.dt.month if part == "month" else dates.dt.day_of_week
    return np.asarray(values.to_numpy(np.float64, na_value=np.nan))


def days_between(start: pd.Series, end: pd.Series) -> NDArray[np.float64]:
    """Return the days from start to end, with fractions; NaN if either is missing."""
    import pandas as pd

    days = (end - start) / pd.Timedelta(days=1)
    return np.asarray(days.to_numpy(np.float64, na_value=np.nan))


def in_words(form: str) -> str:
    """Describe a date format for the user."""
    words = {"%d": "day", "%m": "month", "%Y": "year", "%H": "hour", "%M": "minute"}
    words |= {"%S": "second", "%b": "month", "%B": "month", "%y": "year", "%I": "hour"}
    words |= {"%p": "AM/PM", "%a": "weekday", "%A": "weekday", "%z": "zone"}
    if form in NUMBERS:
        return f"{form} since 1970" if NUMBERS[form] else "digits of year, month and day"
    parts = [words.get(part, part) for part in re.split("(%[a-zA-Z])", form)]
    # Keep the separators, with spaces around letters, as in "hour h minute".
    told = "".join(
        f" {part} " if place % 2 == 0 and part.strip().isalpha() else part
        for place, part in enumerate(parts)
    )
    return " ".join(told.split())
