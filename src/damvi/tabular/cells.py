"""The cells of plain lines of text: numbers parsed, texts found, all else passed over.

What is plain is parsed here, at the speed of memory. Anything else, such as a number in
quotes or with 20 digits, is for a parser that knows every case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import inlined, kernel
from .decimals import DIGITS, digits_at, nearest_double

PADDING = 16
"""Bytes after a text that may be looked at, whatever they hold."""
SKIPPED = -1
NOT_PLAIN = -1

LINE_FEED, RETURN, QUOTE, MINUS, PLUS, ZERO, LOWER_E = (ord(sign) for sign in '\n\r"-+0e')


@inlined
def ends_cell(sign: Any, separator: Any) -> Any:
    """Whether a cell ends at this sign."""
    return (sign == separator) | (sign == LINE_FEED) | (sign == RETURN)


@inlined
def number_at(text: Any, base: Any, i: Any, separator: Any, point: Any) -> Any:
    """The number in the cell at a place, where it ends, and whether it is plain."""
    one = np.uint64(1)
    sign = text[i]
    if ends_cell(sign, separator):
        return np.nan, i, True
    i += np.uint64(sign == MINUS)  # no branch: half of them are guessed wrong
    first = i
    if text[i + one] == point and np.uint8(text[i] - ZERO) < 10:  # as most are
        digits = np.uint64(text[i] - ZERO)
        i += one
    else:
        digits, address = digits_at(base + i, np.uint64(0))
        i = address - base
    n_digits, q = i - first, np.int64(0)
    if text[i] == point:
        i += one
        whole = i
        digits, address = digits_at(base + i, digits)
        i = address - base
        n_digits += i - whole
        q = -np.int64(i - whole)
    if n_digits == 0:
        return np.nan, i, False
    if n_digits > DIGITS:
        while text[first] == ZERO or text[first] == point:
            n_digits -= np.uint64(text[first] == ZERO)
            first += one
        if n_digits > DIGITS:
            return np.nan, i, False
    if text[i] | 32 == LOWER_E:
        i += one
        below = text[i] == MINUS
        if below or text[i] == PLUS:
            i += one
        exponent, address = digits_at(base + i, np.uint64(0))
        n_digits = address - base - i
        i = address - base
        if n_digits == 0 or n_digits > 4:
            return np.nan, i, False
        q += -np.int64(exponent) if below else np.int64(exponent)
    value, certain = nearest_double(digits, q)
    return -value if sign == MINUS else value, i, certain


@inlined
def text_at(text: Any, end: Any, i: Any, separator: Any) -> Any:
    """Where the text of the cell at a place starts and ends, and where the cell does.

    The text of a cell with doubled quotes has no length.
    """
    one = np.uint64(1)
    if text[i] != QUOTE:
        start = i
        while not ends_cell(text[i], separator):
            i += one
        return start, i, i
    start, doubled = i + one, False
    while True:
        i += one
        while i < end and text[i] != QUOTE:
            i += one
        stop = i
        i += one
        if i >= end or text[i] != QUOTE:
            return start, start - one if doubled else stop, i
        doubled = True


@kernel
def parse_cells(
    text: Any,
    end: Any,
    separator: Any,
    point: Any,
    slots: Any,
    is_text: Any,
    table: Any,
    starts: Any,
    stops: Any,
) -> int:
    """Parse whole lines into a table of doubles (rows, numbers) and spans of text.

    ``slots`` says for each column of the file its place among the numbers or, if
    ``is_text``, among the texts; -1 for none. The last line ends in a line feed. Gives the
    number of rows, or -1 where something is not plain.
    """
    base, one = np.uint64(text.ctypes.data), np.uint64(1)
    end, i = np.uint64(end), np.uint64(0)
    last = len(slots) - 1
    row = 0
    while i < end:
        if text[i] == RETURN and text[i + one] == LINE_FEED:
            i += one
        if text[i] == LINE_FEED:  # an empty line
            i += one
            continue
        for c in range(len(slots)):
            slot = slots[c]
            if slot >= 0 and not is_text[c]:
                value, i, plain = number_at(text, base, i, separator, point)
                if not plain:
                    return NOT_PLAIN
                table[row, slot] = value
            else:
                start, stop, i = text_at(text, end, i, separator)
                if slot >= 0:
                    if stop < start:
                        return NOT_PLAIN
                    starts[slot, row] = start
                    stops[slot, row] = stop
            if c == last and text[i] == RETURN:
                i += one
            if text[i] != (LINE_FEED if c == last else separator):
                return NOT_PLAIN
            i += one
        row += 1
    return row


@kernel
def copy_spans(text: Any, starts: Any, stops: Any, offsets: Any, out: Any) -> None:
    """Put some spans of a text one after the other; ``offsets`` says where each goes."""
    for row in range(len(starts)):
        at = offsets[row]
        for i in range(starts[row], stops[row]):
            out[at] = text[i]
            at += 1


@kernel
def count_sign(text: Any, end: Any, sign: Any) -> int:
    """How often a sign occurs."""
    n = 0
    for i in range(end):
        n += text[i] == sign
    return n


@kernel
def last_line_end(text: Any, end: Any, separator: Any) -> int:
    """Where the last whole line ends, line feeds in quotes aside; 0 if none does."""
    if count_sign(text, end, QUOTE) == 0:
        i = end
        while i > 0 and text[i - 1] != LINE_FEED:
            i -= 1
        return i
    found, quoted, i = 0, False, 0
    before = np.uint8(LINE_FEED)
    while i < end:
        sign = text[i]
        if sign == QUOTE:
            if not quoted:
                # Elsewhere than at the start of a cell it is a sign like others.
                quoted = ends_cell(before, separator)
            elif i + 1 < end and text[i + 1] == QUOTE:
                i += 1
            else:
                quoted = False
        elif sign == LINE_FEED and not quoted:
            found = i + 1
        before = sign
        i += 1
    return found
