"""Tables with all that can be odd in a column, of two classes and of four."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

NAMES = np.array(["a", "b", "größer", "z"])

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


def class_frame(n, seed, surprises=False):
    """The same with four classes."""
    table, y = frame(n, seed, surprises)
    bad = y == "bad"
    worst = bad & (table["wide"].fillna(0).to_numpy() > 6e5)
    other = ~bad & (table["colour"] == "blue").to_numpy()
    return table, np.select([worst, bad, other], ["worst", "bad", "other"], "fine")


FRAMES = {2: frame, 4: class_frame}


def classes_of(n, seed):
    """An array with holes, and the numbers of four classes."""
    X, y = make_classification(
        n,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=4,
        weights=[0.55, 0.25, 0.15],
        random_state=seed,
    )
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X, y


X4, Y4 = classes_of(400, 0)
FRESH4 = np.concatenate([classes_of(300, 1)[0], np.full((1, 6), np.nan), 1e6 * X4[:50]])
FULL4 = np.nan_to_num(X4)
"""Without holes."""
