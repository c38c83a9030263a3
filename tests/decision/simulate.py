"""Votes with a known mechanism."""

import numpy as np


def rare_votes(n=2000, rate=0.05, seed=0, strength=0.5):
    """Votes in (-1, 1) that tell the classes apart by ``strength``; 0 is a coin."""
    rng = np.random.default_rng(seed)
    targets = np.zeros(n, dtype=int)
    targets[: max(1, round(rate * n))] = 1
    rng.shuffle(targets)
    vote = np.tanh(strength * (2 * targets - 1) - 0.5 + 0.4 * rng.standard_normal(n))
    return vote, targets
