"""Random CSV files, read by damvi, by Python's csv module and by pandas.

``cases(rng)`` makes a file; ``check(case)`` raises AssertionError where damvi reads
anything but what the csv module reads, unless it refuses the file and is right to.
"""

import codecs
import csv
import io
import math
import os
import re
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from damvi.tables import Column, Schema, read_blocks, read_table, reading, textfiles

ENDS = ["\n", "\n", "\r\n", "\r"]
NAMES = [
    "x",
    "y",
    "a b",
    "é",
    'say "x"',
    "p,q",
    "m;n",
    "two\nlines",
    "c\rd",
    " x ",
    "1",
    "",
]
ODD = [",", ";", "|", "\t", '"', '""', "\n", "\r", "\r\n", "\0", "\ufeff", "\x03", "\x1a"]
ODD += [" ", "é", "œ", "\u2028", "\x85", "\\", "'", "#", "=1+1", "\x0b", "\x1b[31m", "😀"]
WORDS = ["red", "blue", "NA", "None", "nan", "true", "False", "TRUE", "", " ", "n/a", "inf"]
NUMBERS = ["0", "1", "-1", "007", "1.5", "-0", "+2", "1e5", ".5", "5.", "0x1F", "1_000"]
NUMBERS += ["1,5", "1,234.5", "12%", "$3", "1e400", "4.9e-324", " 7 ", "9007199254740993"]
NUMBERS += [
    "1.234,56 €",
    "1 234,5",
    "1'234.5",
    "₹12,34,567",
    "12.5 USD",
    "(1,234)",
    "3.2 kg",
]
NUMBERS += [
    "1.234",
    "５円",
    "$-3",
    "7-",
    "20240105",
    "31/12/24",
    "2024年1月5日",
    "1704412800",
]
NUMBERS += ["123456789012345678901234567890", "0.1234567890123456789", "1d5", "nan(0)"]
MARKS = ",,,;\t|"


def cases(rng):
    """One random CSV file, well formed or not, as bytes; ``rng`` is a random.Random."""
    mark, end = rng.choice(MARKS), rng.choice(ENDS)
    width = rng.choice([1, 1, 2, 2, 3, 4, 7])
    n_rows = rng.choice([0, 1, 2, 3, 5, 9, 20, 60])
    names = [rng.choice(NAMES) if rng.random() < 0.3 else f"c{i}" for i in range(width)]
    makers = [rng.choice(MAKERS) for _ in range(width)]
    rows = [names] + [[make(rng) for make in makers] for _ in range(n_rows)]
    always = rng.random() < 0.2
    lines = []
    for row in rows:
        lines.append(mark.join(_written(rng, cell, mark, always) for cell in row))
        while rng.random() < 0.03:
            lines.append("")  # an empty line
    if rng.random() < 0.1:
        lines.insert(0, "")
    ends = [end] * len(lines)
    if rng.random() < 0.15:
        ends = [rng.choice(ENDS) for _ in lines]
    if rng.random() < 0.3:
        ends[-1] = ""
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    if rng.random() < 0.5:
        text = _mutated(rng, text)
    data = _encoded(rng, text)
    if rng.random() < 0.05 and data:
        place = rng.randrange(len(data))
        data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
    return data


def _written(rng, cell, mark, always):
    must = any(sign in cell for sign in (mark, '"', "\n", "\r"))
    if always or must or rng.random() < 0.05:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _number(rng):
    return rng.choice(
        [repr(rng.gauss(0, 1)), str(rng.randrange(-99, 99)), f"{rng.random():.3f}"]
    )


def _text(rng):
    return "".join(
        rng.choice(["a", "b", "1", *ODD[:9], *ODD[10:]]) for _ in range(rng.randrange(6))
    )


def _long(rng):
    return rng.choice(["x", "x\n", "1,2,3\n", '"']) * rng.choice([1, 30, 300])


def _mixed(rng):
    return rng.choice([_number, _odd_number, _word])(rng)


def _odd_number(rng):
    return rng.choice(NUMBERS)


def _word(rng):
    return rng.choice(WORDS)


def _lines(rng):
    return rng.choice(["ok", "two\nlines", "a\r\nb", "c\rd", "p,q", 'a "b" c', ""])


def _of(*cells):
    return lambda rng: rng.choice(cells)


MAKERS = [_of("0x1F", "12"), _of("true", "False", ""), _of("true", "1"), _of("1,5", "2")]
MAKERS += [_number, _number, _number, _word, _mixed, _odd_number, _text, _lines, _long]


def _mutated(rng, text):
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(text) + 1)
        other = rng.randrange(len(text) + 1)
        how = rng.randrange(6)
        if how == 0:
            text = text[:place] + rng.choice(ODD) + text[place:]
        elif how == 1:
            text = text[:place] + text[place + rng.choice([1, 1, 3, 20]) :]
        elif how == 2:  # a quote, where it hurts
            text = text[:place] + '"' + text[place:]
        elif how == 3:
            text = text[:place]
        elif how == 4:
            text = text[:place] + text[min(place, other) : max(place, other)] + text[place:]
        else:
            text = text.replace(rng.choice(ODD), rng.choice(ODD), 1)
    return text


def _encoded(rng, text):
    kind = rng.random()
    text = text.encode("utf-8", "replace").decode()
    if kind < 0.75:
        return text.encode()
    if kind < 0.85:
        return codecs.BOM_UTF8 + text.encode()
    if kind < 0.92:
        return text.encode(rng.choice(["utf-16", "utf-16-le"]))
    return text.encode("cp1252", "replace")


# What the file says, by the csv module


def decoded(data):
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        return None


def expected(text, mark):
    """The header and the rows, and why the file must be refused, if so."""
    rows, why = _parsed(text, mark, strict=False), ""
    if _parsed(text, mark, strict=True) is None:
        # An open quote at the end is the one thing that no row can be made of.
        closed = _parsed(text + '"', mark, strict=False)
        if closed is not None and _parsed(text + "\n", mark, strict=False) != rows:
            why = "open quote"
    if "\0" in text:
        why = "NUL"
    elif not rows:
        why = "empty"
    elif len(rows) == 1:
        why = why or "no rows"
    elif any(len(row) != len(rows[0]) for row in rows):
        why = why or "ragged"
    elif len(set(_names(rows[0]))) < len(rows[0]):
        why = why or "names"
    return rows, why


def _names(header):
    return [name or f"Unnamed: {place}" for place, name in enumerate(header)]


def _parsed(text, mark, strict):
    try:
        lines = io.StringIO(text, newline="")
        return [row for row in csv.reader(lines, delimiter=mark, strict=strict) if row]
    except csv.Error:
        return None


REFUSED = r"line [\d,]+|is empty|no rows|more than one column|quote|cannot read"
DOUBTFUL = r"looks like rows|in a table with one column"
"""Refusals of what the csv module would read."""


def check(case):
    """Raise AssertionError where the file is read otherwise than it should be."""
    csv.field_size_limit(1 << 17)
    handle, name = tempfile.mkstemp(".csv")
    path = Path(name)
    chance = zlib.crc32(case)
    small = 64 << (chance % 12)
    kept = textfiles.BLOCK, reading.ROWS
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(case)
        _check(case, path)
        textfiles.BLOCK, reading.ROWS = small, 4
        _check(case, path, with_blocks=chance // 12 % 4 == 0)
    finally:
        textfiles.BLOCK, reading.ROWS = kept
        path.unlink()


def _check(case, path, with_blocks=False):
    try:
        typed = read_table(path)
        error = None
    except ValueError as caught:
        error = str(caught)
        assert re.search(REFUSED, error), f"unclear: {error}"
    text = decoded(case)
    if text is None:
        return  # neither UTF-8 nor UTF-16: who knows what it says
    try:
        mark = textfiles.DelimitedFile(path).separator
    except ValueError:
        assert error
        return
    rows, why = expected(text, mark)
    if why:
        assert error, f"{why}, but read as {typed.to_dict('list')}"
        if why in ("ragged", "open quote") and "more than one column" not in error:
            assert re.search(r"line [\d,]+", error), error
        return
    if error:
        unclear = _parsed(text, mark, strict=True) is None
        assert unclear or re.search(DOUBTFUL, error), f"refused: {error}"
        return
    names = _names(rows[0])
    whole = read_table(path, as_text=names)
    assert list(whole.columns) == list(typed.columns) == names
    cells = whole.astype(object).where(whole.notna(), "").to_numpy().tolist()
    assert cells == rows[1:], f"{cells} for {rows[1:]}"
    comma = mark != "," and textfiles.DelimitedFile(path).decimal == ","
    for place, name in enumerate(names):
        _check_types(typed[name], [row[place] for row in rows[1:]], comma)
    if with_blocks:
        _check_blocks(path, typed)
        _check_carried(path, names, rows[1:])
    else:
        _check_pandas(text, mark, rows)


def _check_types(values, texts, comma):
    words = [text.strip().lower() for text in texts]
    if values.dtype == bool:
        assert values.tolist() == [word == "true" for word in words]
    elif any(isinstance(value, bool) for value in values):
        known = {"true": True, "false": False, "": None}
        assert values.tolist() == [known[word] for word in words]
    elif values.dtype.kind in "iuf":
        for value, text in zip(values, texts, strict=True):
            if text.strip() == "":
                assert math.isnan(value), (value, text)
                continue
            text = text.replace("nan(0)", "nan")
            number = float(text.replace(",", ".") if comma else text)
            same = float(value) == number or (math.isnan(value) and math.isnan(number))
            assert same, f"{value!r} for {text!r}"
    else:
        assert all(
            value == text or (text == "" and pd.isna(value))
            for value, text in zip(values, texts, strict=True)
        )


def _check_blocks(path, typed):
    """What `damvi predict` reads is what `damvi fit` was trained on."""
    if "y" in typed.columns:
        return
    schema = Schema.infer(typed, "y", keep=list(typed.columns))
    if not schema.used:
        return
    fitted = schema.encode(typed)
    again = schema.encode(read_table(path, schema))
    blocks = pd.concat(
        [block().X for block in read_blocks(path, schema)], ignore_index=True
    )
    for name in fitted.columns:
        for found in (again, blocks):
            one, other = fitted[name], found[name]
            if one.dtype == np.float64:
                np.testing.assert_array_equal(one, other)
            else:
                assert one.astype(str).tolist() == other.astype(str).tolist()


def _check_carried(path, names, rows):
    """The cells that are carried along are those of the row, as they are written."""
    schema = Schema((Column(names[0], "category", ("a",)),))
    found = []
    for block in read_blocks(path, schema, names):
        columns = block().raw.select(names).to_pydict().values()
        rows_of_block = zip(*columns, strict=True)
        found += [["" if cell is None else cell for cell in row] for row in rows_of_block]
    assert found == rows, f"{found} for {rows}"


def _check_pandas(text, mark, rows):
    """pandas agrees, where it can be trusted.

    It overlooks byte order marks and lines of spaces, and where lines end in CR alone it
    loses empty cells at their start.
    """
    spaces = any(not "".join(row).strip() for row in rows)
    if spaces or "\ufeff" in text or f"\r{mark}" in text:
        return
    try:
        frame = pd.read_csv(
            io.StringIO(text, newline=""),
            sep=mark,
            header=None,
            dtype=str,
            keep_default_na=False,
            names=range(len(rows[0])),
            index_col=False,
        )
    except (ValueError, pd.errors.ParserError):
        return
    found = frame.fillna("").to_numpy().tolist()
    assert found == rows, f"pandas: {found} for {rows}"
