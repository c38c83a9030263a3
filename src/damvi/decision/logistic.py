"""Logistic regression on one or two columns, by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .counts import Number

MAX_STEPS = 100


def fit_logistic(columns: Number, targets: Number, weight: Number) -> Number:
    """Coefficients, the intercept first, that minimise the weighted log loss.

    ``targets`` lie strictly between 0 and 1, so that the optimum is finite whatever
    the columns are. A constant column gets the coefficient 0.
    """
    weight = weight / weight.sum()
    size = np.abs(columns).max(axis=0)
    size[size == 0] = 1.0
    columns = columns / size
    centre = weight @ columns
    spread = np.sqrt(weight @ (columns - centre) ** 2)
    varies = spread > 1e-12
    scale = np.where(varies, spread, 1.0)
    design = np.ones((len(columns), 1 + columns.shape[1]))
    design[:, 1:] = np.where(varies, (columns - centre) / scale, 0.0)
    rate = float(weight @ targets)
    coef = np.zeros(design.shape[1])
    coef[0] = np.log(rate / (1 - rate))
    loss = _loss(coef, design, targets, weight)
    ridge = 1e-12 * np.eye(len(coef))
    for _ in range(MAX_STEPS):
        chance = expit(design @ coef)
        gradient = design.T @ (weight * (chance - targets))
        curvature = (design.T * (weight * chance * (1 - chance))) @ design + ridge * rate
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        part = 1.0
        while part > 1e-8:
            trial = coef - part * step
            found = _loss(trial, design, targets, weight)
            if found <= loss - 1e-4 * part * decrease:
                break
            part /= 2
        else:
            break
        coef, loss = trial, found
        if decrease < 1e-14:
            break
    slopes = coef[1:] / scale
    return np.append(coef[0] - slopes @ centre, slopes / size)


def log_loss(log_odds: Number, targets: Number, weight: Number) -> float:
    """The mean log loss of given log-odds."""
    losses = np.logaddexp(0.0, log_odds) - targets * log_odds
    return float(weight @ losses / weight.sum())


def _loss(
    coef: Number, design: Number, targets: Number, weight: NDArray[np.float64]
) -> float:
    return log_loss(design @ coef, targets, weight)
