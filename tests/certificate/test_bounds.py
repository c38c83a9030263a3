"""Each bound against values worked out by hand, and the way it must move."""

from fractions import Fraction
from math import comb, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damvi.certificate import (
    c_bound,
    clopper_pearson,
    clopper_pearson_upper,
    kl_divergence,
    tandem,
    twice_gibbs,
)

risks = st.floats(0, 1)
small = st.floats(0, 0.5)
rows = st.integers(1, 10**7)
divergences = st.floats(0, 50)
deltas = st.floats(1e-9, 0.999)


def test_twice_gibbs_of_faultless_voters():
    # n = 400, KL = 3, δ = 0.05: c = (3 + ln(2·20/0.05)) / 400 = (3 + ln 800) / 400
    # = 9.684611727667927 / 400 = 0.0242115293; kl⁻¹(0, c) = 1 - e^-c = 0.0239207814533.
    found = twice_gibbs(0.0, 400, 3.0, 0.05)
    assert found == pytest.approx(2 * (1 - exp(-(3 + log(800)) / 400)), rel=1e-12)
    assert found == pytest.approx(0.0478415629066967715, abs=1e-14)


def test_twice_gibbs_of_voters_that_err():
    # kl(0.1 || 0.25) = 0.1 ln(0.1/0.25) + 0.9 ln(0.9/0.75) = 0.0724603279271.
    # At n = 400, δ = 0.05 the price is that when KL = 400·0.0724603 - ln 800 = 22.2995.
    kl = 400 * (0.1 * log(0.4) + 0.9 * log(1.2)) - log(800)
    assert kl == pytest.approx(22.2995194431895355, abs=1e-10)
    assert twice_gibbs(0.1, 400, kl, 0.05) == pytest.approx(0.5, abs=1e-12)


def test_tandem_of_voters_that_err():
    # kl(0.05 || 0.1) = 0.05 ln 0.5 + 0.95 ln(0.95/0.9) = 0.016706501; n = 2,500, δ = 0.1:
    # [2 KL + ln(2·50/0.1)] / 2500 is that when KL = (2500·0.016706501 - ln 1000) / 2.
    kl = (2500 * (0.05 * log(0.5) + 0.95 * log(0.95 / 0.9)) - log(1000)) / 2
    assert kl == pytest.approx(17.4292488339648239, abs=1e-10)
    assert tandem(0.05, 2500, kl, 0.1) == pytest.approx(0.4, abs=1e-12)


def test_tandem_of_faultless_voters():
    # c = (2·3 + ln 800) / 400 = 0.031711529319; 4 (1 - e^-c) = 0.1248559675.
    assert tandem(0.0, 400, 3.0, 0.05) == pytest.approx(0.1248559674660286638, abs=1e-14)


def test_the_c_bound():
    # n = 400, KL = 3, δ = 0.05, so ln(2·2·20/0.05) = ln 1600 = 7.377758908.
    # r = 0: r̄ = 1 - exp(-(3 + 7.377758908)/400) = 0.0256107332.
    # d = 1/2, as kl(1/2 || p) = -ln(4p(1-p))/2: c = (6 + 7.377758908)/400 = 0.033444397,
    # d̲ = (1 - sqrt(1 - e^-2c))/2 = 0.3728182.
    r_high = 1 - exp(-(3 + log(1600)) / 400)
    d_low = (1 - sqrt(1 - exp(-2 * (6 + log(1600)) / 400))) / 2
    assert (r_high, d_low) == pytest.approx((0.0256107332, 0.3728182461), abs=1e-9)
    assert 1 - 2 * d_low == pytest.approx(0.2543635, abs=1e-6)
    # (1 - 2r̄)² = 0.9001807 is above 1 - 2d̲, as no real votes have it: the bound is 0.
    assert c_bound(0.0, 0.5, 400, 3.0, 0.05) == 0
    # d = 0: d̲ = 0, and the bound is 1 - (1 - 2r̄)² = 0.0998192942.
    assert c_bound(0.0, 0.0, 400, 3.0, 0.05) == pytest.approx(0.0998192941597296, abs=1e-14)
    # r with r̄ = 0.4: kl(0.3 || 0.4) = 0.3 ln 0.75 + 0.7 ln(7/6) = 0.0216008541; then
    # KL = 400·0.0216008541 - ln 1600 = 1.26258275, and d = 1/2 has d̲ = 0.3901037334 from
    # c = (2 KL + ln 1600)/400 = 0.024757311: 1 - 0.2²/(1 - 2d̲) = 0.8180101961.
    kl = 400 * (0.3 * log(0.75) + 0.7 * log(7 / 6)) - log(1600)
    d_low = (1 - sqrt(1 - exp(-2 * (2 * kl + log(1600)) / 400))) / 2
    expected = 1 - 0.2**2 / (1 - 2 * d_low)
    assert expected == pytest.approx(0.8180101961257070, abs=1e-12)
    assert c_bound(0.3, 0.5, 400, kl, 0.05) == pytest.approx(expected, abs=1e-11)


def test_the_c_bound_promises_nothing_of_voters_no_better_than_a_coin():
    assert c_bound(0.49, 0.3, 100, 1.0, 0.05) == 1
    assert c_bound(0.5, 0.5, 10**9, 0.0, 0.05) == 1


def test_clopper_pearson_solves_its_equations():
    # After 3 errors in 20 rows the upper end p has P(Bin(20, p) <= 3) = δ/2, the lower
    # one P(Bin(20, p) >= 3) = δ/2; the textbook's 95 % interval is (0.0321, 0.3789).
    low, high = clopper_pearson(3, 20, 0.05)
    assert (low, high) == pytest.approx((0.0321, 0.3789), abs=1e-4)
    assert _binomial_tail(20, high, range(4)) == pytest.approx(0.025, abs=1e-12)
    assert _binomial_tail(20, low, range(3, 21)) == pytest.approx(0.025, abs=1e-12)
    assert clopper_pearson_upper(3, 20, 0.025) == high


def _binomial_tail(n, p, ks):
    p = Fraction(float(p))
    return float(sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in ks))


def test_clopper_pearson_at_its_ends():
    # No error in n rows: (1 - p)^n = δ. The rule of three: about 3/n at δ = 0.05.
    assert clopper_pearson_upper(0, 100, 0.05) == pytest.approx(1 - 0.05**0.01, rel=1e-12)
    assert clopper_pearson(0, 100, 0.05)[0] == 0
    assert clopper_pearson_upper(100, 100, 0.05) == 1
    assert clopper_pearson(100, 100, 0.05)[0] == pytest.approx(0.025**0.01, rel=1e-12)
    assert clopper_pearson(0, 0, 0.05) == (0, 1)


def test_kl_divergence_with_zeros():
    quarter = np.full(4, 0.25)
    assert kl_divergence(quarter, quarter) == 0
    assert kl_divergence([1, 0, 0, 0], quarter) == pytest.approx(log(4), rel=1e-15)
    # ½ ln(½/¼) + ½ ln(½/¼) = ln 2
    assert kl_divergence([0.5, 0.5, 0, 0], quarter) == pytest.approx(log(2), rel=1e-15)
    assert kl_divergence([0.5, 0.5], [1, 0]) == np.inf


@pytest.mark.parametrize("Q", [[0.5, 0.4], [1.5, -0.5], [np.nan, 1.0]])
def test_only_distributions_have_a_divergence(Q):
    with pytest.raises(ValueError, match="Q must be a distribution"):
        kl_divergence(Q, [0.5, 0.5])


@pytest.mark.parametrize("delta", [0.0, 1.0, -1, 2])
def test_delta_must_be_a_chance(delta):
    with pytest.raises(ValueError, match="must be strictly between 0 and 1"):
        twice_gibbs(0.1, 10, 0.0, delta)
    with pytest.raises(ValueError, match="must be strictly between 0 and 1"):
        clopper_pearson_upper(1, 10, delta)


def test_of_no_rows_nothing_is_known():
    assert twice_gibbs(0.0, 0, 0.0, 0.05) == 1
    assert tandem(0.0, 0, 0.0, 0.05) == 1
    assert c_bound(0.0, 0.0, 0, 0.0, 0.05) == 1


def test_errors_must_be_among_the_rows():
    with pytest.raises(ValueError, match="between 0 and n"):
        clopper_pearson_upper(5, 4, 0.05)


def all_bounds(r, d, n, kl, delta):
    # The joint error of votes with Gibbs risk r and disagreement d is r - d/2.
    e = max(r - d / 2, 0)
    return np.array(
        [twice_gibbs(r, n, kl, delta), tandem(e, n, kl, delta), c_bound(r, d, n, kl, delta)]
    )


@pytest.mark.slow
@given(small, small, rows, rows, divergences, deltas)
def test_more_rows_promise_more(r, d, n, m, kl, delta):
    few, many = sorted([n, m])
    bound, better = all_bounds(r, d, few, kl, delta), all_bounds(r, d, many, kl, delta)
    assert (better <= bound + 1e-12).all()


@pytest.mark.slow
@given(small, small, rows, divergences, deltas, deltas)
def test_more_confidence_promises_less(r, d, n, kl, delta, other):
    sure, bold = sorted([delta, other])
    bound, better = all_bounds(r, d, n, kl, sure), all_bounds(r, d, n, kl, bold)
    assert (better <= bound + 1e-12).all()


@pytest.mark.slow
@given(small, small, small, rows, divergences, deltas)
def test_worse_voters_promise_less(r, other, d, n, kl, delta):
    good, bad = sorted([r, other])
    bound, better = all_bounds(bad, d, n, kl, delta), all_bounds(good, d, n, kl, delta)
    assert (better <= bound + 1e-12).all()


@pytest.mark.slow
@given(small, small, rows, divergences, divergences, deltas)
def test_weights_far_from_the_prior_promise_less(r, d, n, kl, other, delta):
    near, far = sorted([kl, other])
    bound, better = all_bounds(r, d, n, far, delta), all_bounds(r, d, n, near, delta)
    assert (better <= bound + 1e-12).all()


@given(risks, rows, divergences, deltas)
def test_bounds_are_never_below_what_was_seen(r, n, kl, delta):
    assert 1 >= twice_gibbs(r, n, kl, delta) >= min(2 * r, 1) - 1e-12
    assert 1 >= tandem(r, n, kl, delta) >= min(4 * r, 1) - 1e-12


@given(st.integers(0, 10**6), st.integers(0, 10**6), deltas)
def test_the_interval_holds_what_was_seen(errors, others, delta):
    n = errors + others
    low, high = clopper_pearson(errors, n, delta)
    assert 0 <= low <= high <= 1
    if n:
        assert low - 1e-12 <= errors / n <= high + 1e-12
