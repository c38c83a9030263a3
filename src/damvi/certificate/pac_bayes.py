"""PAC-Bayes bounds of a vote on rows, all at once and by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bounds import c_bound, kl_divergence, tandem, twice_gibbs
from .statement import Bound, PacBayes

N_BOUNDS = 3
ROUNDING = 1e-9
"""How far a sum of weights may be from 1."""


def pac_bayes(
    vote: ArrayLike,
    signs: ArrayLike,
    weights: ArrayLike,
    *,
    threshold: float = 0.0,
    delta: float = 0.05,
) -> PacBayes:
    """Bounds on the risk of deciding by ``vote > threshold``.

    Parameters
    ----------
    vote : array of shape (n,)
        The voters' votes in [-1, 1], hard or soft, summed with their weights.
    signs : array of shape (n,)
        The truth, +1 and -1.
    weights : array of shape (K,)
        The voters' weights Q, a distribution. They and the threshold may have been
        learned on these rows; the voters may not.
    threshold : float, default=0
        Where the vote is cut: other than 0, one more voter that always says the same.
    delta : float, default=0.05
        The three bounds on all rows hold together with confidence 1 - delta (delta/3
        each), and so do the six on the classes (delta/6 each).
    """
    v, y = np.asarray(vote, dtype=np.float64), np.asarray(signs, dtype=np.float64)
    if v.shape != y.shape or not (np.abs(v) <= 1 + ROUNDING).all():
        raise ValueError("PAC-Bayes bounds need one vote in [-1, 1] for each row")
    v = np.clip(v, -1.0, 1.0)
    Q = np.asarray(weights, dtype=np.float64)
    P, prior = np.full(len(Q), 1 / len(Q)), f"uniform, 1/{len(Q)} each"
    if threshold:
        prior = f"uniform with the threshold as one more voter, 1/{len(Q) + 1} each"
        v, Q, P = with_threshold(v, Q, threshold)
    kl = kl_divergence(Q, P)
    shares = {"missed": delta / 2, "false_alarms": delta / 2, "overall": delta}
    groups = {"missed": y > 0, "false_alarms": y < 0, "overall": np.full(y.shape, True)}
    found = {
        name: bounds_of_vote(v[rows], y[rows], kl, shares[name] / N_BOUNDS)
        for name, rows in groups.items()
    }
    smaller = float(min((y > 0).mean(), (y < 0).mean())) if len(y) else 0.0
    return PacBayes(
        n_voters=len(np.asarray(weights)),
        threshold=float(threshold),
        prior=prior,
        kl=kl,
        **{
            bound: _judged({name: found[name][bound] for name in groups}, smaller)
            for bound in ("twice_gibbs", "tandem", "c_bound")
        },
    )


def with_threshold(vote: Any, Q: NDArray[Any], t: float) -> tuple[Any, Any, Any]:
    """Vote, weights and prior with a threshold t as one more, constant voter.

    ``vote > t`` is a majority of K + 1 voters: the last always says -sign(t), at weight
    abs(t) / (1 + abs(t)). The sign may have been chosen on the rows, so its share of the
    prior, 1/(K + 1), is halved between "always yes" and "always no"; the half that is
    not in use has weight 0 and is the last entry. Whether there is a threshold at all
    must have been settled before the rows were seen.
    """
    scale, K = 1 + abs(t), len(Q)
    P = np.full(K + 2, 1 / (K + 1))
    P[K:] /= 2
    return (vote - t) / scale, np.concatenate([Q / scale, [abs(t) / scale, 0.0]]), P


def by_class_is_vacuous(missed: float, false_alarms: float) -> bool:
    """Whether flagging at random, at some rate, keeps both bounds."""
    return missed + false_alarms >= 1


def bounds_of_vote(v: Any, y: Any, kl: float, delta: float) -> dict[str, float]:
    """The three bounds, delta each, on how often y * v is not above 0."""
    n = len(v)
    error = (1 - y * v) / 2
    r, d, e = (
        np.clip(values.mean(), 0, 1) if n else 0.0
        for values in (error, (1 - v**2) / 2, error**2)
    )
    return {
        "twice_gibbs": float(twice_gibbs(r, n, kl, delta)),
        "tandem": float(tandem(e, n, kl, delta)),
        "c_bound": float(c_bound(r, d, n, kl, delta)),
    }


def _judged(values: dict[str, float], smaller: float) -> Bound:
    return Bound(
        **values,
        vacuous_by_class=by_class_is_vacuous(values["missed"], values["false_alarms"]),
        vacuous_overall=values["overall"] >= smaller,
    )
