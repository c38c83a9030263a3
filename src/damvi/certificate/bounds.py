"""Bounds on risks, as functions of numbers or arrays.

For a vote v = sum_k Q_k h_k(x) of voters in [-1, 1], interpret a voter as one that says +1
with probability (1 + h_k(x)) / 2, independently of the others. On a row of sign y, two
voters drawn from Q then

- err, one of them, with probability (1 - y v) / 2; its mean is the Gibbs risk r;
- disagree with probability (1 - v**2) / 2; its mean is the disagreement d;
- both err with probability ((1 - y v) / 2)**2; its mean is the joint error e.

For hard votes (-1, +1) these are the usual counts. For soft votes they are means, over
pairs of voters, of the losses (1 - h_k h_l) / 2 and (1 - y h_k)(1 - y h_l) / 4. They lie in
[0, 1], as the PAC-Bayes theorem requires (Maurer 2004). The vote errs only if y v <= 0, and
then one voter errs with probability 1/2 or more. So its risk is at most 2 r (Markov), 4 e
(Markov on the square), and 1 - (1 - 2r)**2 / (1 - 2d) if r < 1/2 (Cantelli). None of these
needs hard votes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlogy
from scipy.stats import beta

HALVINGS = 1100
"""Enough bisections for any double; the search stops long before."""


def clopper_pearson(errors: ArrayLike, n: ArrayLike, delta: float) -> tuple[Any, Any]:
    """Return a confidence interval of a rate at level 1 - delta, delta/2 on each side.

    Without rows, it is (0, 1).

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
    """Return an upper bound on a rate at confidence 1 - delta, from errors in n rows."""
    check_delta(delta)
    k, n = np.asarray(errors, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not ((k >= 0) & (k <= n)).all():
        raise ValueError(f"errors must be between 0 and n, got {k} of {n}")
    upper = beta.isf(delta, k + 1, np.maximum(n - k, 1))
    return np.where(k < n, upper, 1.0)[()]


def kl_divergence(Q: ArrayLike, P: ArrayLike) -> float:
    """KL(Q || P) of two distributions over voters; infinite if P is 0 where Q is not."""
    Q, P = np.asarray(Q, dtype=np.float64), np.asarray(P, dtype=np.float64)
    for name, weights in (("Q", Q), ("P", P)):
        if (weights < 0).any() or not np.isclose(weights.sum(), 1, rtol=0, atol=1e-9):
            raise ValueError(
                f"{name} must be a distribution (nonnegative, sum 1); its sum is "
                f"{weights.sum():g} and its minimum {weights.min():g}"
            )
    return max(float(rel_entr(Q, P).sum()), 0.0)


def twice_gibbs(r: ArrayLike, n: ArrayLike, kl: ArrayLike, delta: float) -> Any:
    """PB0: twice a bound on the Gibbs risk r.

    2 kl⁻¹(r, [KL + ln(2√n/δ)] / n)
    """
    r_high = kl_upper(r, _price(1, kl, n, delta))
    return np.minimum(2 * r_high, 1.0)


def c_bound(r: ArrayLike, d: ArrayLike, n: ArrayLike, kl: ArrayLike, delta: float) -> Any:
    """PB1: the C-bound, from bounds on the Gibbs risk and the disagreement, δ/2 each.

    1 - (1 - 2r̄)² / (1 - 2d̲), and 1 where r̄ >= 1/2, with
    r̄ = kl⁻¹(r, [KL + ln(4√n/δ)] / n) and
    d̲ = the lower kl⁻¹(d, [2 KL + ln(4√n/δ)] / n).
    """
    r_high = kl_upper(r, _price(1, kl, n, delta / 2))
    d_low = kl_lower(d, _price(2, kl, n, delta / 2))
    mu1, mu2 = np.maximum(1 - 2 * r_high, 0.0), 1 - 2 * d_low
    # mu2 >= mu1**2, so if it is 0, the numerator is 0 too.
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
        raise ValueError(f"delta={delta!r} must be strictly between 0 and 1")


def _price(voters: int, kl: ArrayLike, n: ArrayLike, delta: float) -> NDArray[Any]:
    """Return the maximum divergence of the true value from the one seen on n rows.

    2√n bounds Maurer's ξ(n) for every n; infinite without rows.
    """
    check_delta(delta)
    kl, n = np.asarray(kl, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rows = np.maximum(n, 1)
    price = (voters * kl + np.log(2 * np.sqrt(rows) / delta)) / rows
    return np.where(n > 0, price, np.inf)


def with_threshold(vote: Any, Q: NDArray[Any], t: float) -> tuple[Any, Any, Any]:
    """Return vote, weights and prior with the threshold t as an additional constant voter.

    ``vote > t`` is a majority of K + 1 voters: the last always says -sign(t), with weight
    abs(t) / (1 + abs(t)). The sign may have been chosen on the rows, so its share of the
    prior, 1/(K + 1), is split between "always yes" and "always no"; the unused half has
    weight 0 and is the last entry. Whether there is a threshold at all must have been
    decided before the rows were seen.
    """
    scale, K = 1 + abs(t), len(Q)
    P = np.full(K + 2, 1 / (K + 1))
    P[K:] /= 2
    return (vote - t) / scale, np.concatenate([Q / scale, [abs(t) / scale, 0.0]]), P


def by_class_is_vacuous(missed: float, false_alarms: float) -> bool:
    """Whether flagging at random, at some rate, satisfies both bounds."""
    return missed + false_alarms >= 1


def bounds_of_vote(v: Any, y: Any, kl: float, delta: float) -> dict[str, float]:
    """Return the three bounds, delta each, on the rate at which y * v is not above 0."""
    n = len(v)
    error = (1 - y * v) / 2
    r, d, e = (
        np.clip(values.mean(), 0, 1) if n else 0.0
        for values in (error, (1 - v**2) / 2, error**2)
    )
    return {
        "twice_gibbs": float(twice_gibbs(r, n, kl, delta)),
        "tandem": float(tandem(e, n, kl, delta)),
        "c_bound": float(c_bound(r, d, n, kl, delta)),
    }


def binary_kl(q: ArrayLike, p: ArrayLike) -> Any:
    """kl(q || p) = q ln(q/p) + (1-q) ln((1-q)/(1-p)), with 0 ln 0 = 0.

    Examples
    --------
    >>> from damvi.certificate import binary_kl
    >>> round(float(binary_kl(0.1, 0.2)), 6)
    0.03669
    """
    q, p = np.broadcast_arrays(_share(q, "q"), _share(p, "p"))
    return (_gap(q, p, p - q) + _gap(1 - q, 1 - p, q - p))[()]


def kl_upper(q: ArrayLike, c: ArrayLike) -> Any:
    """The largest p with kl(q || p) <= c.

    Examples
    --------
    >>> from damvi.certificate import kl_upper
    >>> round(float(kl_upper(0.1, 0.03669)), 4)
    0.2
    """
    q, c = np.broadcast_arrays(_share(q, "q"), _cost(c))
    return np.minimum(q + _reach(q, 1 - q, c), 1.0)[()]


def kl_lower(q: ArrayLike, c: ArrayLike) -> Any:
    """The smallest p with kl(q || p) <= c."""
    q, c = np.broadcast_arrays(_share(q, "q"), _cost(c))
    return np.maximum(q - _reach(1 - q, q, c), 0.0)[()]


def _reach(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.float64]:
    """Return how far a share ``a`` can grow, and ``b = 1 - a`` shrink, at divergence c."""
    # Pinsker's inequality: kl >= 2 * step**2.
    low, high = np.zeros(a.shape), np.minimum(b, np.sqrt(c / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not ((low < middle) & (middle < high)).any():
            break
        cost = _gap(a, a + middle, middle) + _gap(b, b - middle, -middle)
        within = cost <= c
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return high  # rounded to the safe side


def _gap(a: NDArray[Any], b: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float64]:
    """a ln(a/b) + b - a, which is never negative; ``step`` is b - a.

    kl is the sum of two such terms, without cancellation even if q and p are close.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = np.where(a > 0, step / a, np.inf)
        # ln(1+x) = 2 artanh(y) with y = x/(2+x), and 2y - x = -xy.
        y = x / (2 + x)
        series = np.zeros_like(x)
        for k in range(25, 1, -2):
            series = y * y * (1 / k + series)
        near = a * y * (x - 2 * series)
        far = xlogy(a, a) - xlogy(a, b) + step
        return np.where(np.abs(x) < 0.3, near, np.maximum(far, 0.0))


def _share(value: ArrayLike, name: str) -> NDArray[np.float64]:
    value = np.asarray(value, dtype=np.float64)
    if not ((value >= 0) & (value <= 1)).all():
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return value


def _cost(c: ArrayLike) -> NDArray[np.float64]:
    c = np.asarray(c, dtype=np.float64)
    if not (c >= 0).all():
        raise ValueError(f"c must be nonnegative, got {c}")
    return c
