"""Imbalanced tables of three or more classes: digits thinned out, and generated ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits, make_classification

Table = tuple[np.ndarray, np.ndarray]


def digits(kept: np.ndarray) -> Table:
    """scikit-learn's digits, of each class this share."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = [
        rng.choice(np.flatnonzero(y == c), round(share * (y == c).sum()), replace=False)
        for c, share in enumerate(kept)
    ]
    some = np.sort(np.concatenate(rows))
    return X[some], y[some]


def generated(shares: list[float], n: int = 4000, **options: float) -> Table:
    """Clusters in 20 dimensions, of which half say something."""
    settings = {"n_informative": 10, "n_redundant": 4, "flip_y": 0.01} | options
    return make_classification(
        n, 20, n_classes=len(shares), weights=shares, random_state=0, **settings
    )


def forest_cover(n: int = 4000) -> Table:
    """Seven kinds of forest by height, soil and shade, at about covertype's rates."""
    rng = np.random.default_rng(0)
    rates = np.array([0.365, 0.488, 0.062, 0.005, 0.016, 0.030, 0.034])
    y = rng.choice(7, n, p=rates / rates.sum())
    height = np.array([3130, 2920, 2390, 2220, 2790, 2420, 3360])[y]
    height = height + rng.normal(0, np.array([160, 190, 190, 100, 95, 180, 105])[y])
    slope = rng.gamma(4, 3.5, n) + np.array([0, 0, 6, 5, 4, 6, 0])[y]
    aspect = rng.uniform(0, 360, n)
    water = rng.gamma(1.6, 160, n) * np.array([1, 1.1, 0.8, 0.4, 0.8, 0.6, 1.2])[y]
    road = rng.gamma(1.8, 1300, n) * np.array([1.1, 1, 0.4, 0.4, 0.6, 0.45, 1.1])[y]
    shade = 220 - 1.2 * slope * np.cos(np.radians(aspect - 80)) + rng.normal(0, 12, n)
    kinds = rng.dirichlet(np.full(12, 0.4), size=7)
    soil = np.array([rng.choice(12, p=0.6 * kinds[c] + 0.4 / 12) for c in y])
    numbers = [height, slope, aspect, water, road, shade]
    return np.column_stack([*numbers, np.equal.outer(soil, np.arange(12))]), y


def rings(n: int = 4000) -> Table:
    """Five shells around a centre, the inner ones rare, in 8 dimensions with noise."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, n, p=[0.02, 0.05, 0.1, 0.23, 0.6])
    way = rng.normal(size=(n, 4))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    far = 0.6 + y + rng.normal(0, 0.45, n)
    return np.hstack([way * far[:, None], rng.normal(size=(n, 4))]), y


DATASETS: dict[str, Callable[[], Table]] = {
    "digits, geometric": lambda: digits(0.7 ** np.arange(10)),
    "digits, three rare": lambda: digits(np.where(np.arange(10) % 4 == 1, 0.1, 1.0)),
    "steps": lambda: generated([0.7, 0.2, 0.06, 0.03, 0.01]),
    "hard": lambda: generated([0.85, 0.1, 0.03, 0.02], class_sep=0.6, flip_y=0.05),
    "one large": lambda: generated([0.9] + [0.02] * 5, class_sep=1.5),
    "forest cover": forest_cover,
    "rings": rings,
}
