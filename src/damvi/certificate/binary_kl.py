"""The binary kl divergence and its two inverses, right to the last bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

HALVINGS = 1100
"""More than halve any double to 0; the search stops long before."""


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
    """How far a share ``a`` can grow, and ``b = 1 - a`` shrink, at a divergence of c."""
    # Pinsker's inequality: kl >= 2 * step**2.
    low, high = np.zeros(a.shape), np.minimum(b, np.sqrt(c / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not ((low < middle) & (middle < high)).any():
            break
        cost = _gap(a, a + middle, middle) + _gap(b, b - middle, -middle)
        within = cost <= c
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return high  # on the safe side, by the last bit


def _gap(a: NDArray[Any], b: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float64]:
    """a ln(a/b) + b - a, which is never negative; ``step`` is b - a.

    kl is the sum of two of these, so nothing cancels, not even where q and p are close.
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
        raise ValueError(f"{name} must be in [0, 1], found {value}")
    return value


def _cost(c: ArrayLike) -> NDArray[np.float64]:
    c = np.asarray(c, dtype=np.float64)
    if not (c >= 0).all():
        raise ValueError(f"c must be 0 or more, found {c}")
    return c
