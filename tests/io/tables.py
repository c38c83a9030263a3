"""Dataframes with all that can be odd in a column."""

import numpy as np
import pandas as pd

SHOPS = [f"s{k}" for k in range(130)]
"""More than linear models tell apart."""


def frame(n, seed, surprises=False):
    """A table and labels; with surprises, categories and holes that fit has not seen."""
    rng = np.random.default_rng(seed)
    amount = rng.standard_normal(n)
    wide = rng.exponential(size=n) * 1e6
    wide[rng.random(n) < 0.1] = np.nan
    often = np.r_[np.full(10, 0.07), np.full(120, 0.3 / 120)]
    shop = rng.choice(SHOPS, p=often, size=n).astype(object)
    shop[rng.random(n) < 0.1] = None
    colour = rng.choice(["red", "blue", "größer <b>"], size=n).astype(object)
    y = amount + (colour == "red") + (shop == "s0") + rng.standard_normal(n) > 2.3
    if surprises:
        shop[: n // 10] = "never seen"
        colour[n // 20 : n // 7] = "other"
        colour[n // 7 : n // 5] = None
        amount[: n // 30] = np.nan
    X = pd.DataFrame(
        {
            "amount": amount,
            "wide": wide,
            "shop": pd.Categorical(shop),
            "colour": pd.Categorical(colour),
            "constant": np.ones(n),
            "empty": np.full(n, np.nan),
            "grade": pd.Categorical(rng.integers(0, 9, n)),
            "label": rng.integers(0, 4, n),
        }
    )
    return X, np.where(y, "bad", "fine")
