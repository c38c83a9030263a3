"""Decimal numbers in text as the doubles nearest to them, exactly.

The method is Eisel and Lemire's: the digits as a whole number, times a power of ten known
to 128 bits, whose error is too small to matter in all but a few cases, which it detects.

D. Lemire (2021), Number Parsing at a Gigabyte per Second, Software: Practice and
Experience 51(8).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import inlined
from .._words import as_double, high_product, leading_zeros, load_word, trailing_zeros

LEAST, MOST = -342, 308
"""Powers of ten outside of which all is 0 or infinite."""
DIGITS = 19
"""Digits that a word holds, whatever they are."""
TENS = np.array([10**k for k in range(9)], dtype=np.uint64)


def _powers() -> Any:
    """The first 128 bits of each power of ten, rounded down; up below 1, as proven for."""
    halves = np.empty((MOST - LEAST + 1, 2), dtype=np.uint64)
    for q in range(LEAST, MOST + 1):
        five = 5 ** abs(q)
        if q >= 0:
            excess = five.bit_length() - 128
            bits = five >> excess if excess >= 0 else five << -excess
        else:
            bits = (1 << (five.bit_length() + 127)) // five + 1
        halves[q - LEAST] = bits >> 64, bits & (2**64 - 1)
    return halves


POWERS = _powers()


@inlined
def eight_digits(word: Any) -> Any:
    """The number that eight bytes from 0 to 9 are, the first digit lowest."""
    # Pairs of digits, then fours, then eight.
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0xFFFF0000FFFF)
    return (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)


@inlined
def digits_at(address: Any, number: Any) -> Any:
    """A whole number continued by the digits at an address, and where they end.

    Beyond 19 digits the number means nothing.
    """
    while True:
        word = load_word(address) ^ np.uint64(0x3030303030303030)
        # The first byte that is above 9 has its upper bit set here; later ones may not.
        others = (word + np.uint64(0x7676767676767676)) | word
        others &= np.uint64(0x8080808080808080)
        if others != 0:
            break
        number = number * np.uint64(10**8) + eight_digits(word)
        address += np.uint64(8)
    n = trailing_zeros(others) >> np.uint64(3)
    if n != 0:
        zeros_before = np.uint64(64) - (n << np.uint64(3))
        number = number * TENS[n] + eight_digits(word << zeros_before)
        address += n
    return number, address


@inlined
def nearest_double(digits: Any, q: Any) -> Any:
    """The double nearest to digits times 10 ** q, and whether it is certain."""
    if digits == 0:
        return 0.0, True
    if q < LEAST or q > MOST:
        return 0.0, False
    zeros = leading_zeros(digits)
    digits <<= zeros
    first = POWERS[q - LEAST, 0]
    high, low = high_product(digits, first), digits * first
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the other half may carry to here
        more = high_product(digits, POWERS[q - LEAST, 1])
        low += more
        high += np.uint64(low < more)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
        return 0.0, False
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    fraction = high >> shift  # 54 bits: one more than there is room for
    power = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(zeros)
    if power <= 0 or power >= 2046:  # tiny, huge, or close to it
        return 0.0, False
    half_way = low <= np.uint64(1) and fraction & np.uint64(3) == np.uint64(1)
    if half_way and -4 <= q <= 23 and fraction << shift == high:
        fraction &= ~np.uint64(1)  # to even
    fraction = (fraction + (fraction & np.uint64(1))) >> np.uint64(1)
    if fraction >= np.uint64(1 << 53):
        fraction = np.uint64(1 << 52)
        power += 1
    fraction &= ~np.uint64(1 << 52)
    return as_double(fraction | (np.uint64(power) << np.uint64(52))), True
