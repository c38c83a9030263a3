"""Numbers in text become the doubles nearest to them, as Python's own float does."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi.tables import Schema, read_blocks, read_table
from damvi.tables.values import WAYS, Writing, find_writing, numbers_in, plain_numbers


def assert_exact(cells):
    found = plain_numbers(pa.chunked_array([cells], pa.string()))
    expected = np.array([float(cell) for cell in cells])
    wrong = np.flatnonzero(found.view(np.uint64) != expected.view(np.uint64))
    assert len(wrong) == 0, [(cells[i], found[i]) for i in wrong[:5]]


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.integers(0, 25))
def test_doubles_in_full_and_rounded(values, digits):
    assert_exact([repr(value) for value in values])
    assert_exact([f"{value:.{digits}e}" for value in values])


@pytest.mark.slow
@given(
    st.from_regex(
        r"-?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][-+]?[0-9]{1,3})?", fullmatch=True
    )
)
def test_digits_however_they_are_written(cell):
    assert_exact([cell])


def test_half_way_between_two_doubles_goes_to_the_even_one():
    # Odd numbers of 54 bits lie exactly between two doubles; neighbours do not.
    odd = (np.random.default_rng(2).integers(2**53, 2**54, 5000) | 1).tolist()
    assert_exact([str(n) for n in odd] + [f"{n}0.0" for n in odd])
    assert_exact([f"{n // 8}.{(n % 8) * 125:03d}" for n in odd])


@pytest.mark.parametrize("cell", ["?", " NA ", "n/a", "", "None", "-", None])
def test_what_counts_as_missing(cell):
    cells = pa.chunked_array([["1", cell], [" 2.5"]], pa.string())
    np.testing.assert_array_equal(plain_numbers(cells), [1, np.nan, 2.5])
    values, odd = numbers_in(cells.to_pandas())
    np.testing.assert_array_equal(values, [1, np.nan, 2.5])
    assert not odd.any()


@pytest.mark.parametrize("cell", ["1,5", "12%", "$3", "true", "--1", "1.2.3", "0x10"])
def test_what_is_more_than_digits(cell):
    assert plain_numbers(pa.chunked_array([["1", cell]])) is None


# Amounts


def written(value, way, before="", after=""):
    """An amount as people write it."""
    text = f"{abs(value):,.2f}".replace(",", "#").replace(".", way.decimal)
    return f"{'-' if value < 0 else ''}{before}{text.replace('#', way.group)}{after}"


AROUND = [
    ("", ""),
    *[("$", ""), ("€ ", ""), ("Rs. ", ""), ("CHF ", ""), ("R$", ""), ("¥", "")],
    *[("", " €"), ("", "\xa0€"), ("", " USD"), ("", "kr"), ("", "円"), ("", " %")],
    *[("", " kg"), ("", " m²"), ("", "km/h"), ("", " °C")],
]
AMOUNTS = st.lists(st.floats(-1e9, 1e9).map(lambda value: round(value, 2)), max_size=20)


@given(AMOUNTS, st.sampled_from(WAYS), st.sampled_from(AROUND), st.booleans())
def test_an_amount_in_any_convention_is_the_number(amounts, way, around, accounts):
    numbers = np.array([*amounts, 1234567.89, -4.5, 0.25])
    texts = [written(value, way, *around) for value in numbers]
    if accounts:
        texts = [f"({t[1:]})" if t.startswith("-") else t for t in texts]
    found = find_writing(pd.Series(texts))
    assert found.writing is not None, texts
    values, odd = numbers_in(pd.Series(texts), found.writing)
    assert not odd.any()
    np.testing.assert_array_equal(values, numbers)
    if way.group:
        assert found.doubt == ""


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.234,56 €", "980,5 €"], [1234.56, 980.5]),
        (["1 234,56", "12,5"], [1234.56, 12.5]),
        (["1'234.56", "12’000"], [1234.56, 12000]),
        (["₹1,234", "₹12,34,567"], [1234, 1234567]),
        (["12.5 USD", "usd 3", "$4"], [12.5, 3, 4]),
        (["(1,234)", "5,678.5", "(2)"], [-1234, 5678.5, -2]),
        (["$(2)", "($3.5)"], [-2, -3.5]),
        (["3.2 kg", "10KG", "4 Kg"], [3.2, 10, 4]),
        (["￥１２，３４５", "¥9,876,543"], [12345, 9876543]),
        (["1,200円", "３０円", "9,999,999 円"], [1200, 30, 9999999]),
        (["1 month", "36 months"], [1, 36]),
        (["5-", "7", "−3", "+2"], [-5, 7, -3, 2]),
        (["1.234.567", "12"], [1234567, 12]),
        (["-$5", "$-6", "$ 7"], [-5, -6, 7]),
    ],
)
def test_amounts_that_people_write(texts, numbers):
    writing, doubt = find_writing(pd.Series(texts))
    np.testing.assert_array_equal(numbers_in(pd.Series(texts), writing)[0], numbers)
    assert doubt == ""


@pytest.mark.parametrize(
    ("texts", "writing", "doubt"),
    [
        (
            ["1,234", "980"],
            Writing(".", ","),
            "'1,234' is read as 1,234, but could be 1.234",
        ),
        (
            ["$5", "€7"],
            None,
            "numbers in several units ('$' 50%, '€' 50%), so none is read",
        ),
        (["3 kg", "200 g"], Writing(unit="kg"), "50%), all converted to 'kg'"),
        (["3 kg", "200 km"], None, "several units"),
        (["1.234,5", "1,234.5"], None, "have different formats, so no number is read"),
        (["12%", "0.12"], None, "50% of the numbers have no unit, the rest '%', so none"),
        (["$12", "3.5"], Writing(unit="$"), "all are read as the same unit"),
        (["1.234", "2.5"], Writing(), ""),
        (["A1", "B2"], None, ""),
        (["1A", "2B", "3C", "4D", "5E", "6F"], None, ""),
        (["room 5", "room 6"], None, ""),
        (["10.0.0.1", "10.0.0.2"], None, ""),
        (["5-7", "8-10"], None, ""),
        (["12:30", "1:15"], None, ""),
    ],
)
def test_what_is_doubtful_or_no_amount(texts, writing, doubt):
    found = find_writing(pd.Series(texts * 30))
    assert found.writing == writing
    assert doubt in found.doubt
    assert bool(doubt) == bool(found.doubt)


def test_points_that_part_thousands_are_no_decimals(tmp_path):
    """1.234 and 980, but never 1.25: in a CSV they were 1.234 and 980."""
    rng = np.random.default_rng(0)
    amounts = rng.integers(1, 99_999, 200)
    texts = [f"{value:,}".replace(",", ".") for value in amounts]
    rows = "".join(f"{text};{i % 2}\n" for i, text in enumerate(texts))
    (tmp_path / "t.csv").write_text("x;y\n" + rows)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    assert "could be" in schema.columns[0].doubt
    np.testing.assert_array_equal(schema.encode(frame)["x"], amounts)
    [block] = read_blocks(tmp_path / "t.csv", schema)
    np.testing.assert_array_equal(block().X["x"], amounts)


@given(
    st.lists(st.text("0123456789.,' -+()e€$%kg", max_size=8), min_size=1, max_size=8),
    st.sampled_from([*WAYS, Writing(",", ".", "€"), Writing(unit="kg")]),
)
def test_the_fast_way_gives_what_the_slow_one_does(texts, writing):
    cells = pa.chunked_array([texts])
    slow = numbers_in(pa.chunked_array([[*texts, "no number"]]), writing)[0][:-1]
    np.testing.assert_array_equal(numbers_in(cells, writing)[0], slow)
    fast = plain_numbers(cells, writing)
    if fast is not None:
        np.testing.assert_array_equal(fast, slow)


def test_another_unit_at_prediction_is_missing_and_the_same_is_read():
    frame = pd.DataFrame({"x": [f"{i},5 kg" for i in range(1, 60)], "y": 0})
    schema = Schema.infer(frame, "y")
    new = pd.DataFrame({"x": ["3,5", "3,5 KG", "3,5 lb", "3.5 kg", None, "500 g"]})
    encoded = schema.encode(new)["x"]
    np.testing.assert_array_equal(encoded, [3.5, 3.5, np.nan, np.nan, np.nan, 0.5])


@pytest.mark.parametrize(
    ("texts", "numbers", "unit"),
    [
        (["3,2 kg", "3 200 g", "1,5 kg"], [3.2, 3.2, 1.5], "kg"),
        (["850 KB", "1.2 MB", "3 KB"], [850, 1200, 3], "kb"),
        (["₹8,62,000", "₹12.5 lakh", "₹62,000"], [862_000, 1_250_000, 62_000], "₹"),
    ],
)
def test_units_of_one_kind_are_converted(texts, numbers, unit):
    writing, doubt = find_writing(pd.Series(texts))
    np.testing.assert_allclose(numbers_in(pd.Series(texts), writing)[0], numbers)
    assert doubt.endswith(f"all converted to {unit!r}")


def test_what_is_below_a_limit_is_the_limit():
    texts = [f"{x / 10}" if x > 45 else "<4.5" for x in range(30, 100)]
    [column] = Schema.infer(pd.DataFrame({"x": texts, "y": 0}), "y").columns
    assert (column.kind, column.reason) == ("number", "'<4.5' is read as the limit")
    [column] = Schema.infer(pd.DataFrame({"x": ["<1", "1", "2"] * 9, "y": 0}), "y").columns
    assert column.kind == "category"


def test_words_for_missing_are_no_reason_to_drop_amounts():
    rng = np.random.default_rng(0)
    amounts = [f"{x:.2f} €".replace(".", ",") for x in rng.exponential(100, 400)]
    for k, mark in enumerate(["k.A.", "unbekannt", "#DIV/0!", "$ -"] * 8):
        amounts[k * 11] = mark
    [column] = Schema.infer(pd.DataFrame({"x": amounts, "y": 0}), "y").columns
    assert column.kind == "number"
    assert "32 non-numbers such as 'k.A.' count as missing" in column.reason
    amounts[:200] = ["by arrangement"] * 200
    [column] = Schema.infer(pd.DataFrame({"x": amounts, "y": 0}), "y").columns
    assert column.kind != "number"


@given(st.lists(st.none() | st.text(max_size=12) | st.floats(), min_size=1, max_size=30))
def test_rows_in_are_rows_out(values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": 0})
    schema = Schema.infer(frame, "y", keep=["x"])
    assert len(schema.encode(frame)) == len(values)
