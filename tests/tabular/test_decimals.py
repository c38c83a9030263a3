"""Numbers in text become the doubles nearest to them, as Python's own float does."""

import numpy as np
import pytest

from damvi.tabular.cells import NOT_PLAIN, PADDING, parse_cells


def parsed(cells, point="."):
    """One column of numbers; None where the kernel leaves it to others."""
    text = "".join(f"{cell}\n" for cell in cells).encode()
    room = np.frombuffer(text + b"7" * PADDING, np.uint8)
    table, nothing = np.full((len(cells), 1), -7.0), np.empty((0, len(cells)), np.int64)
    signs = np.uint8(ord(";")), np.uint8(ord(point))
    slots, is_text = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    n = parse_cells(room, len(text), *signs, slots, is_text, table, nothing, nothing)
    return None if n == NOT_PLAIN else table[:n, 0]


def assert_exact(cells):
    found = parsed(cells)
    expected = np.array([float(cell) for cell in cells])
    wrong = np.flatnonzero(found.view(np.uint64) != expected.view(np.uint64))
    assert len(wrong) == 0, [(cells[i], found[i]) for i in wrong[:5]]


def test_doubles_of_all_sizes_written_in_full():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**64, 50_000, dtype=np.uint64).view(np.float64)
    # The tiny and the huge are for a slower parser.
    values = values[np.isfinite(values) & (abs(values) > 1e-300) & (abs(values) < 1e300)]
    assert_exact([repr(value) for value in values.tolist()])
    assert_exact([repr(value) for value in rng.normal(size=50_000).tolist()])


def test_random_digits_with_and_without_a_point_and_an_exponent():
    rng = np.random.default_rng(1)
    cells = []
    for _ in range(30_000):
        digits = str(rng.integers(0, 10 ** rng.integers(1, 19)))
        place = rng.integers(0, len(digits) + 1)
        exponent = f"e{rng.integers(-250, 250):+d}" if rng.random() < 0.3 else ""
        sign = "-" if rng.random() < 0.5 else ""
        point = "." if rng.random() < 0.8 else ""
        cells.append(f"{sign}{digits[:place]}{point}{digits[place:]}{exponent}")
    assert_exact(cells)


def test_half_way_between_two_doubles_goes_to_the_even_one():
    # Odd numbers of 54 bits lie exactly between two doubles; neighbours do not.
    rng = np.random.default_rng(2)
    odd = (rng.integers(2**53, 2**54, 20_000) | 1).tolist()
    assert_exact([str(n) for n in odd] + [f"{n}0.0" for n in odd])
    assert_exact([f"{n / 2**10:.10f}"[:20].rstrip(".") for n in odd])
    assert_exact([f"{n // 8}.{(n % 8) * 125:03d}" for n in odd])


@pytest.mark.parametrize(
    "cells",
    [
        ["0", "-0", "0.0", "-0.0", "0e5", "-.0", "0.", "0000", "00.00e-0"],
        ["007", "1.", ".5", "-.5", "1e0", "1E5", "1e+05", "9" * 19, "0." + "0" * 30 + "1"],
        ["9007199254740993", "9007199254740992.5", "1e22", "1e23", "8.5e-301", "1.7e300"],
        ["123456789012345678", "1234567.8", "12345678.", "123456789.12345678"],
        ["2.2250738585072014e-305", "4503599627370497.5", "0.1", "0.30000000000000004"],
    ],
)
def test_odd_ways_to_write(cells):
    assert_exact(cells)


def test_a_missing_number_and_a_decimal_comma():
    np.testing.assert_array_equal(parsed(["1,5", "-2,25", "3"], ","), [1.5, -2.25, 3])
    room = np.frombuffer(b";1\n2;\n" + bytes(PADDING), np.uint8)
    table, nothing = np.empty((2, 2)), np.empty((0, 2), np.int64)
    signs = np.uint8(ord(";")), np.uint8(ord("."))
    slots, is_text = np.arange(2), np.zeros(2, np.bool_)
    assert parse_cells(room, 6, *signs, slots, is_text, table, nothing, nothing) == 2
    np.testing.assert_array_equal(table, [[np.nan, 1], [2, np.nan]])


@pytest.mark.parametrize(
    "cell",
    [
        *("-", ".", "-.", "e5", "1e", "1e+", "1e99999", "+1", " 1", "1 ", '"1"', "1,5"),
        *("nan", "inf", "--1", "1.2.3", "1e5.0", "0x10", "1_000", "12345678901234567890"),
        *("1\r1", "1e-320", "1e400", "5e-324", "1.8e308", "é", "1;2", "-e1", "1/2", "1:"),
    ],
)
def test_what_is_not_plain_is_left_alone(cell):
    assert parsed(["1", cell, "2"]) is None
