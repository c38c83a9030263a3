"""A share of counted rows, and how sure it is."""

from __future__ import annotations

from math import sqrt
from typing import Any

Z = 1.6448536269514722
"""Of a 90 % interval, as everywhere here."""


def share(part: int, whole: int) -> dict[str, Any]:
    """``part / whole`` with Wilson's 90 % interval; None of nothing.

    Examples
    --------
    >>> from damvi.evaluation.rates import share
    >>> {name: round(value, 3) for name, value in share(8, 10).items()}
    {'part': 8, 'whole': 10, 'value': 0.8, 'low': 0.541, 'high': 0.931}
    """
    if not whole:
        return {"part": 0, "whole": 0, "value": None, "low": None, "high": None}
    p, spread = part / whole, Z * Z / whole
    centre = (p + spread / 2) / (1 + spread)
    half = Z * sqrt(p * (1 - p) / whole + spread / (4 * whole)) / (1 + spread)
    return {
        "part": part,
        "whole": whole,
        "value": p,
        # At 0 and 1 it ends there, whatever the rounding.
        "low": min(max(0.0, centre - half), p),
        "high": max(min(1.0, centre + half), p),
    }
