"""Votes with a known mechanism."""

import numpy as np


def rare_votes(n=2000, rate=0.05, seed=0, strength=0.5):
    """Votes in (-1, 1) that tell the classes apart by ``strength``; 0 is a coin."""
    rng = np.random.default_rng(seed)
    signs = np.full(n, -1)
    signs[: max(1, round(rate * n))] = 1
    rng.shuffle(signs)
    vote = np.tanh(strength * signs - 0.5 + 0.4 * rng.standard_normal(n))
    return vote, signs
