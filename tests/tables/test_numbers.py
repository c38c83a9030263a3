"""Numbers in text become the doubles nearest to them, as Python's own float does."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi.tables.values import numbers_in, plain_numbers


def assert_exact(cells):
    found = plain_numbers(pa.chunked_array([cells], pa.string()))
    expected = np.array([float(cell) for cell in cells])
    wrong = np.flatnonzero(found.view(np.uint64) != expected.view(np.uint64))
    assert len(wrong) == 0, [(cells[i], found[i]) for i in wrong[:5]]


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.integers(0, 25))
def test_doubles_in_full_and_rounded(values, digits):
    assert_exact([repr(value) for value in values])
    assert_exact([f"{value:.{digits}e}" for value in values])


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
