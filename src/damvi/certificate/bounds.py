"""Bounds on risks, as numbers from numbers. They all take arrays as well.

For a vote v = sum_k Q_k h_k(x) of voters in [-1, 1], read a voter as one that says +1 with
probability (1 + h_k(x)) / 2, by a coin of its own. On a row of sign y, two voters drawn
from Q then

- err, one of them, with probability (1 - y v) / 2: the Gibbs risk r is its mean;
- disagree with probability (1 - v**2) / 2: the disagreement d is its mean;
- both err with probability ((1 - y v) / 2)**2: the joint error e is its mean.

For hard votes (-1, +1) these are the usual counts; for soft ones they are means, over pairs
of voters, of the losses (1 - h_k h_l) / 2 and (1 - y h_k)(1 - y h_l) / 4. They lie in
[0, 1], which is all that the PAC-Bayes theorem asks (Maurer 2004). The vote errs only
where y v <= 0, and there one voter errs with probability 1/2 or more. So its risk is at
most 2 r (Markov), 4 e (Markov on the square), and 1 - (1 - 2r)**2 / (1 - 2d) where r < 1/2
(Cantelli): none of the three needs the votes to be hard.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr
from scipy.stats import beta

from .binary_kl import kl_lower, kl_upper


def clopper_pearson(errors: ArrayLike, n: ArrayLike, delta: float) -> tuple[Any, Any]:
    """An interval that holds the rate with confidence 1 - delta, delta/2 on each side.

    Of no rows nothing is known: (0, 1).

    Examples
    --------
    >>> from damvi.certificate import clopper_pearson
    >>> low, high = clopper_pearson(3, 100, delta=0.05)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0062, 0.0852)
    """
    low = 1 - clopper_pearson_upper(np.subtract(n, errors), n, delta / 2)
    return low, clopper_pearson_upper(errors, n, delta / 2)


def clopper_pearson_upper(errors: ArrayLike, n: ArrayLike, delta: float) -> Any:
    """What the rate stays below with confidence 1 - delta, after ``errors`` in n rows."""
    check_delta(delta)
    k, n = np.asarray(errors, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not ((k >= 0) & (k <= n)).all():
        raise ValueError(f"errors must be between 0 and n, found {k} of {n}")
    upper = beta.isf(delta, k + 1, np.maximum(n - k, 1))
    return np.where(k < n, upper, 1.0)[()]


def kl_divergence(Q: ArrayLike, P: ArrayLike) -> float:
    """KL(Q || P) of two distributions over the voters; infinite where P has a gap."""
    Q, P = np.asarray(Q, dtype=np.float64), np.asarray(P, dtype=np.float64)
    for name, weights in (("Q", Q), ("P", P)):
        if (weights < 0).any() or not np.isclose(weights.sum(), 1, rtol=0, atol=1e-9):
            raise ValueError(
                f"{name} must be a distribution: weights of 0 or more that sum to 1, "
                f"found a sum of {weights.sum():g} and a smallest of {weights.min():g}"
            )
    return max(float(rel_entr(Q, P).sum()), 0.0)


def twice_gibbs(r: ArrayLike, n: ArrayLike, kl: ArrayLike, delta: float) -> Any:
    """PB0: twice a bound on the Gibbs risk r.

    2 kl⁻¹(r, [KL + ln(2√n/δ)] / n)
    """
    r_high = kl_upper(r, _price(1, kl, n, delta))
    return np.minimum(2 * r_high, 1.0)


def c_bound(r: ArrayLike, d: ArrayLike, n: ArrayLike, kl: ArrayLike, delta: float) -> Any:
    """PB1: the C-bound, from bounds on the Gibbs risk and on the disagreement, δ/2 each.

    1 - (1 - 2r̄)² / (1 - 2d̲), and 1 where r̄ >= 1/2, with
    r̄ = kl⁻¹(r, [KL + ln(4√n/δ)] / n) and
    d̲ = the lower kl⁻¹(d, [2 KL + ln(4√n/δ)] / n).
    """
    r_high = kl_upper(r, _price(1, kl, n, delta / 2))
    d_low = kl_lower(d, _price(2, kl, n, delta / 2))
    mu1, mu2 = np.maximum(1 - 2 * r_high, 0.0), 1 - 2 * d_low
    # mu2 >= mu1**2, so that where it is 0 there is nothing to divide either.
    ratio = mu1**2 / np.where(mu1 > 0, mu2, 1.0)
    return np.clip(1 - ratio, 0.0, 1.0)


def tandem(e: ArrayLike, n: ArrayLike, kl: ArrayLike, delta: float) -> Any:
    """Four times a bound on the joint error e of two voters (Masegosa et al. 2020).

    4 kl⁻¹(e, [2 KL + ln(2√n/δ)] / n)
    """
    e_high = kl_upper(e, _price(2, kl, n, delta))
    return np.minimum(4 * e_high, 1.0)


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} must be between 0 and 1, both excluded")


def _price(voters: int, kl: ArrayLike, n: ArrayLike, delta: float) -> NDArray[Any]:
    """The divergence that the true value may have from the one seen on n rows.

    2√n bounds Maurer's ξ(n) for every n; of no rows nothing is known.
    """
    check_delta(delta)
    kl, n = np.asarray(kl, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rows = np.maximum(n, 1)
    price = (voters * kl + np.log(2 * np.sqrt(rows) / delta)) / rows
    return np.where(n > 0, price, np.inf)
