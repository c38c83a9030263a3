"""A tuned threshold with what it is worth, honestly, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Interval, bootstrap
from .counts import counts_of
from .objectives import Objective, parse_objective
from .rows import Rows, deal_folds, need_both_classes, read_folds, read_rows
from .threshold import search, warn_if_out_of_reach

N_FOLDS = 5


@dataclass(frozen=True)
class Tuning:
    """What :func:`tune` found. ``print`` it to read it.

    Attributes
    ----------
    objective : str
        What ``value`` and ``honest_value`` measure.
    threshold : float
        Tuned on all rows. Votes above it are flagged.
    value : float
        The objective on the rows that the threshold was tuned on: too good.
    honest_value : float
        The objective where every row is decided by a threshold tuned on other folds.
    honest_recall, honest_precision : float
        The two rates of these decisions, which say whether a floor holds.
    threshold_interval, value_interval : (float, float)
        Where 90 % of bootstrap draws put the threshold and the honest value.
    """

    objective: str
    threshold: float
    value: float
    honest_value: float
    honest_recall: float
    honest_precision: float
    threshold_interval: Interval
    value_interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.threshold_interval
        worst, best = self.value_interval
        return (
            f"threshold  {self.threshold:.3g}  (90 %: {low:.3g} to {high:.3g})\n"
            f"{self.objective}  {self.honest_value:.3g}  (90 %: {worst:.3g} to {best:.3g}) "
            f"on rows not tuned on, {self.value:.3g} on those that were\n"
            f"recall  {self.honest_recall:.3g}, precision  {self.honest_precision:.3g} "
            f"on rows not tuned on"
        )


def tune(
    vote: ArrayLike,
    signs: ArrayLike,
    objective: Any,
    *,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    seed: int = 0,
) -> Tuning:
    """Tune a threshold and say what it is worth on rows it was not tuned on.

    Parameters
    ----------
    vote, signs, objective, sample_weight
        As for :func:`tune_threshold`.
    folds : array of int of shape (n,), optional
        The fold of each row. By default rows are dealt over 5 folds, class by class.
    seed : int, default=0
        Of the folds, if they are dealt, and of the bootstrap.

    Returns
    -------
    tuning : Tuning

    Notes
    -----
    Decisions of all folds are pooled before they are judged: a mean of F scores over
    folds depends on how the positives fall. Where the other folds hold no positive,
    nothing is flagged.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import tune
    >>> rng = np.random.default_rng(0)
    >>> signs = np.where(rng.random(5000) < 0.05, 1, -1)
    >>> vote = np.tanh(0.5 * signs - 0.5 + 0.4 * rng.standard_normal(5000))
    >>> tuning = tune(vote, signs, "f1")
    >>> tuning.honest_value <= tuning.value
    True
    >>> low, high = tuning.threshold_interval
    >>> low <= tuning.threshold <= high
    True
    """
    aim = parse_objective(objective)
    rows = read_rows(vote, signs, sample_weight)
    need_both_classes(rows)
    numbers = deal_folds(rows, N_FOLDS, seed) if folds is None else read_folds(folds, rows)
    threshold = search(rows, aim)
    warn_if_out_of_reach(rows, aim, threshold)
    mass, total = aim.mass(rows), float(rows.weight.sum())
    seen = counts_of(rows.vote > threshold, rows.positive, mass, total)
    unseen = _crossfit_decisions(rows, aim, numbers)
    rates = counts_of(unseen, rows.positive, rows.weight, total)
    threshold_interval, value_interval = bootstrap(rows, aim, numbers, seed)
    return Tuning(
        objective=aim.name,
        threshold=threshold,
        value=float(aim.value(seen)),
        honest_value=float(aim.value(counts_of(unseen, rows.positive, mass, total))),
        honest_recall=float(rates.recall),
        honest_precision=float(rates.precision),
        threshold_interval=threshold_interval,
        value_interval=value_interval,
    )


def crossfit_decisions(
    vote: ArrayLike,
    signs: ArrayLike,
    objective: Any,
    folds: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Each row, flagged or not by the threshold that is best for the other folds.

    What :func:`tune` judges for its honest figures. Rows without a vote or a weight are
    not flagged; the parameters are those of :func:`tune`.

    Examples
    --------
    >>> from damvi.decision import crossfit_decisions
    >>> vote, signs = [-0.9, 0.8, -0.5, 0.3], [-1, 1, -1, 1]
    >>> crossfit_decisions(vote, signs, "f1", [0, 0, 1, 1])
    array([False,  True, False,  True])
    """
    rows = read_rows(vote, signs, sample_weight)
    flagged = np.zeros(rows.n_given, dtype=np.bool_)
    flagged[rows.index] = _crossfit_decisions(
        rows, parse_objective(objective), read_folds(folds, rows)
    )
    return flagged


def _crossfit_decisions(
    rows: Rows, aim: Objective, folds: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Each row, flagged or not by the threshold that is best for the other folds."""
    flagged = np.empty(len(rows), dtype=np.bool_)
    for fold in range(int(folds.max()) + 1):
        here = folds == fold
        flagged[here] = rows.vote[here] > search(rows.take(~here), aim)
    return flagged
