"""Kernels of the Poisson bootstrap: counts from random numbers by key and row.

They are separate from :mod:`.sampling` because they import numba, which is slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MOST_STEPS = 80
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


@inlined
def bits_of(key: Any, row: Any) -> Any:
    """53 random bits for a row, by splitmix64 with a counter as its state."""
    x = key + np.uint64(row) * GOLDEN
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return (x ^ (x >> S31)) >> S11


@kernel
def draw_by_class(key: Any, start: Any, targets: Any, below: Any, times: Any) -> None:
    """Draw the count of each row by the rate of its class (the only one if no targets)."""
    longest = below.shape[1]
    one_rate = len(targets) == 0
    for i in range(len(times)):
        bits = bits_of(key, start + i)
        c = 0 if one_rate else targets[i]
        n = 0
        while n < longest and bits >= below[c, n]:
            n += 1
        times[i] = n


@kernel
def draw_by_weight(key: Any, start: Any, rates: Any, several: Any, times: Any) -> None:
    """Draw the count of each row by its own rate."""
    unit = 2.0**-53
    for i in range(len(times)):
        left, n = rates[i], 0
        go = np.uint64(0)
        while left > 0:
            # Poisson numbers add up: large rates are drawn in parts, each with its stream.
            rate = min(left, several)
            left -= rate
            u = bits_of(key + go * FIRST, start + i) * unit
            go += np.uint64(1)
            chance = np.exp(-rate)
            below, k = chance, 0
            while u >= below and k < MOST_STEPS:
                k += 1
                chance *= rate / k
                below += chance
            n += k
        times[i] = n
