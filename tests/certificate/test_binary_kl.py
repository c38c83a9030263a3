"""The binary kl and its inverses, against 60-digit arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi.certificate import binary_kl, kl_lower, kl_upper

DIGITS = 60
shares = st.floats(0, 1)
costs = st.one_of(
    st.floats(0, 50), st.floats(1e-16, 1e-2), st.just(0.0), st.floats(50, 1e6)
)


def exact_kl(q, p):
    """kl(q || p) to 60 digits; q and p are Decimals in [0, 1]."""
    total = Decimal(0)
    for a, b in ((q, p), (1 - q, 1 - p)):
        if a > 0:
            if b <= 0:
                return Decimal("Infinity")
            total += a * (a / b).ln()
    return total


def brackets(q, p, c, step, side):
    """Whether the true inverse is within 1e-12 of p, on ``side`` of q."""
    q, p, c, step = Decimal(q), Decimal(p), Decimal(c), Decimal(step)
    nearer, farther = p - side * step, p + side * step
    inside = (nearer - q) * side <= 0 or exact_kl(q, nearer) <= c
    outside = not 0 <= farther <= 1 or exact_kl(q, farther) >= c
    return inside and outside


@given(shares, costs)
def test_the_upper_inverse_is_right_to_1e_12(q, c):
    with localcontext(prec=DIGITS):
        assert brackets(q, float(kl_upper(q, c)), c, "1e-12", 1)


@given(shares, costs)
def test_the_lower_inverse_is_right_to_1e_12(q, c):
    with localcontext(prec=DIGITS):
        assert brackets(q, float(kl_lower(q, c)), c, "1e-12", -1)


@given(shares, shares)
def test_kl_is_right_to_13_digits(q, p):
    with localcontext(prec=DIGITS):
        expected = float(exact_kl(Decimal(q), Decimal(p)))
    assert float(binary_kl(q, p)) == pytest.approx(expected, rel=1e-13, abs=1e-50)


@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-9, 1e-12])
def test_kl_of_close_shares_does_not_cancel(step):
    q, p = 0.3, 0.3 + step
    with localcontext(prec=DIGITS):
        expected = float(exact_kl(Decimal(q), Decimal(p)))
    assert float(binary_kl(q, p)) == pytest.approx(expected, rel=1e-13)


def test_closed_forms():
    c = np.array([1e-12, 1e-3, 0.1, 1.0, 5.0])
    # kl(0 || p) = -ln(1 - p), and kl(1/2 || p) = -ln(4 p (1 - p)) / 2.
    np.testing.assert_allclose(kl_upper(0.0, c), -np.expm1(-c), rtol=1e-12)
    np.testing.assert_allclose(kl_lower(1.0, c), np.exp(-c), rtol=1e-12)
    half = np.sqrt(-np.expm1(-2 * c)) / 2
    np.testing.assert_allclose(kl_upper(0.5, c), 0.5 + half, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kl_lower(0.5, c), 0.5 - half, rtol=0, atol=1e-12)


def test_the_edges():
    q = np.array([0.0, 0.2, 1.0])
    np.testing.assert_array_equal(kl_upper(q, 0), q)
    np.testing.assert_array_equal(kl_lower(q, 0), q)
    np.testing.assert_array_equal(kl_upper(q, np.inf), 1)
    np.testing.assert_array_equal(kl_lower(q, np.inf), 0)
    np.testing.assert_array_equal(kl_upper(q, 1e5), 1)
    np.testing.assert_allclose(kl_lower(q, 1e5), 0, atol=1e-300)
    assert kl_upper(1, 0.3) == 1
    assert kl_lower(0, 0.3) == 0
    assert binary_kl(0, 0) == binary_kl(1, 1) == 0
    assert binary_kl(0.5, 0) == binary_kl(0.5, 1) == np.inf


def test_inverses_take_arrays_and_broadcast():
    q, c = np.array([[0.1], [0.4]]), np.array([0.01, 0.1, 1.0])
    assert kl_upper(q, c).shape == kl_lower(q, c).shape == (2, 3)
    assert kl_upper(q, c)[1, 2] == kl_upper(0.4, 1.0)
    assert isinstance(float(kl_upper(0.1, 0.1)), float)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
def test_shares_must_be_in_the_unit_interval(q):
    with pytest.raises(ValueError, match=r"q must be in \[0, 1\]"):
        kl_upper(q, 0.1)


@pytest.mark.parametrize("c", [-0.1, np.nan])
def test_a_divergence_is_0_or_more(c):
    with pytest.raises(ValueError, match="c must be nonnegative"):
        kl_lower(0.5, c)
