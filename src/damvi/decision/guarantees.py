"""A threshold with a promise: a rate that it keeps on new rows, with stated confidence.

The rows that the promise is made from must be new to the model: they trained, weighed and
calibrated nothing. Then the votes of these rows and of rows to come are alike
(exchangeable), and what is promised follows from counts alone, whatever the model is.

Recall and the false-alarm rate concern the votes of one class, and grow or fall with the
threshold: the threshold is an order statistic of these votes, whose rank is known before
any vote is looked at (it is where Clopper and Pearson's bound meets what was asked for).
Precision may rise and fall with the threshold. There, thresholds are tested one after the
other, the most promising first, each by Clopper and Pearson's bound, until the first that
fails (learn then test); the order must not come from the same labels.

References
----------
.. [1] C. Clopper, E. Pearson, The use of confidence or fiducial limits illustrated in the
   case of the binomial, Biometrika, 1934.
.. [2] A. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, Learn then test: Calibrating
   predictive algorithms to achieve risk control, Annals of Applied Statistics, 2025.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

Rate = Literal["recall", "precision", "false_alarm_rate"]
RATES = ("recall", "precision", "false_alarm_rate")
WORDS = {
    "recall": "recall",
    "precision": "precision",
    "false_alarm_rate": "false-alarm rate",
}
N_CUTS = 25
"""Thresholds that are tested for a precision, at most."""


@dataclass(frozen=True)
class Guarantee:
    """What a threshold is promised to keep, or why nothing can be promised.

    Attributes
    ----------
    rate : {"recall", "precision", "false_alarm_rate"}
    level : float
        The rate is at least this; a false-alarm rate at most.
    confidence : float
        In at least this share of all draws of such rows the promise holds.
    threshold : float or None
        Votes above it are flagged; None if the rows cannot support the promise.
    positives, negatives : int
        Of the rows that the promise comes from.
    found, alarms : int
        Of these, the flagged ones.
    needed : int or None
        Without a threshold: how many rows it would take (positives for a recall, negatives
        for a false-alarm rate, flagged rows for a precision) even if all went well.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import guarantee
    >>> rng = np.random.default_rng(0)
    >>> targets = np.repeat([0, 1], [2000, 60])
    >>> vote = rng.normal(size=2060) + 3 * targets
    >>> promise = guarantee(vote, targets, "recall", 0.9)
    >>> print(promise)
    recall of at least 0.9 with 90 % confidence (60 positives): flag votes above 0.785
    >>> print(guarantee(vote[:2010], targets[:2010], "recall", 0.9))
    no recall of at least 0.9 can be promised with 90 % confidence from 10 positives; it takes 22 at least
    """

    rate: Rate
    level: float
    confidence: float
    threshold: float | None
    positives: int
    negatives: int
    found: int = 0
    alarms: int = 0
    needed: int | None = None

    @property
    def words(self) -> str:
        """The promise: rate, level and confidence."""
        side = "at most" if self.rate == "false_alarm_rate" else "at least"
        told = f"{WORDS[self.rate]} of {side} {self.level:g}"
        return f"{told} with {_percent(self.confidence)} confidence"

    @property
    def counted(self) -> str:
        """The rows that carry it."""
        if self.rate == "recall":
            return f"{self.positives:,} positives"
        if self.rate == "false_alarm_rate":
            return f"{self.negatives:,} negatives"
        return f"{self.positives + self.negatives:,} rows, {self.positives:,} positive"

    def __str__(self) -> str:
        if self.threshold is not None:
            return f"{self.words} ({self.counted}): flag votes above {self.threshold:.3g}"
        told = self.words.replace(" with ", " can be promised with ")
        if self.rate == "precision":
            why = (
                f"no threshold tried is sure to be that precise. Without any false alarm "
                f"it takes {self.needed:,} flagged rows"
            )
        else:
            why = f"it takes {self.needed:,} at least"
        return f"no {told} from {self.counted}; {why}"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return asdict(self)


def guarantee(
    vote: ArrayLike,
    targets: ArrayLike,
    rate: Rate,
    level: float,
    *,
    confidence: float = 0.9,
    cuts: ArrayLike | None = None,
) -> Guarantee:
    """A threshold that keeps a rate on new rows, with this confidence; or none.

    Parameters
    ----------
    vote : array of shape (n,)
        Of rows that the model has never seen, like those to come. Each counts once.
    targets : array of int, shape (n,)
        1 for the positive class, 0 for the other.
    rate : {"recall", "precision", "false_alarm_rate"}
    level : float
        What a recall or a precision is to reach, or a false-alarm rate not to exceed;
        between 0 and 1.
    confidence : float, default=0.9
    cuts : array, optional
        For a precision: thresholds to test, the most promising first, chosen without these
        targets. By default, votes of these rows that flag ever more of them.

    Returns
    -------
    promise : Guarantee
        Of the thresholds that keep the rate, the one that flags fewest rows for a recall,
        and most for a precision or a false-alarm rate. ``threshold`` is None where the
        rows cannot support a promise.
    """
    votes, positive = np.asarray(vote, np.float64), np.asarray(targets) == 1
    if votes.ndim != 1 or votes.shape != positive.shape:
        raise ValueError(
            f"vote has the shape {votes.shape} and targets {positive.shape}; give one of "
            f"each for each row, of two classes"
        )
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; leave them out")
    if rate not in RATES:
        raise ValueError(f"rate={rate!r} is not known; give {', '.join(RATES)}")
    for name, value in (("level", level), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name}={value!r}; give a number between 0 and 1")
    risk = 1 - confidence
    if rate == "recall":
        threshold, needed = _recall_cut(votes[positive], level, risk)
    elif rate == "false_alarm_rate":
        threshold, needed = _false_alarm_cut(votes[~positive], level, risk)
    else:
        threshold, needed = _precise_cut(votes, positive, level, risk, cuts)
    flagged = np.zeros(len(votes), np.bool_) if threshold is None else votes > threshold
    return Guarantee(
        rate=rate,
        level=float(level),
        confidence=float(confidence),
        threshold=threshold,
        positives=int(positive.sum()),
        negatives=int((~positive).sum()),
        found=int((flagged & positive).sum()),
        alarms=int((flagged & ~positive).sum()),
        needed=None if threshold is not None else needed,
    )


def lower_bound(part: int, whole: int, risk: float) -> float:
    """Clopper and Pearson's one-sided lower bound of a share; 0 of nothing.

    Examples
    --------
    >>> round(lower_bound(22, 22, 0.1), 3), lower_bound(0, 5, 0.1)
    (0.901, 0.0)
    """
    return float(beta.ppf(risk, part, whole - part + 1)) if part else 0.0


def _most_beyond(n: int, share: float, risk: float) -> int:
    """How many of n may lie beyond a cut where a share of at most ``share`` shall; or -1.

    The largest number e with P(Binomial(n, share) <= e) <= risk.
    """
    likely = int(binom.ppf(risk, n, share))  # the smallest with at least the risk
    return likely if binom.cdf(likely, n, share) <= risk else likely - 1


def _fewest(share: float, risk: float) -> int:
    """How many rows it takes if none of them lies beyond."""
    return int(np.ceil(np.log(risk) / np.log1p(-share) - 1e-9))


def _recall_cut(
    votes: NDArray[np.float64], level: float, risk: float
) -> tuple[float | None, int]:
    missed = _most_beyond(len(votes), 1 - level, risk) if len(votes) else -1
    needed = _fewest(1 - level, risk)
    if missed < 0:
        return None, needed
    # All votes from this one on are flagged, strictly above the next float below it.
    return float(np.nextafter(np.sort(votes)[missed], -np.inf)), needed


def _false_alarm_cut(
    votes: NDArray[np.float64], level: float, risk: float
) -> tuple[float | None, int]:
    alarms = _most_beyond(len(votes), level, risk) if len(votes) else -1
    needed = _fewest(level, risk)
    if alarms < 0:
        return None, needed
    return float(np.sort(votes)[len(votes) - 1 - alarms]), needed


def _precise_cut(
    votes: NDArray[np.float64],
    positive: NDArray[np.bool_],
    level: float,
    risk: float,
    cuts: ArrayLike | None,
) -> tuple[float | None, int]:
    needed = _fewest(1 - level, risk)
    tried = _cuts_by_count(votes, needed) if cuts is None else np.asarray(cuts, np.float64)
    kept = None
    for cut in tried:
        flagged = votes > cut
        n, found = int(flagged.sum()), int((flagged & positive).sum())
        if not n or binom.sf(found - 1, n, level) > risk:
            break  # what comes after the first failure is not looked at
        kept = float(cut) if kept is None else min(kept, float(cut))
    return kept, needed


def _cuts_by_count(votes: NDArray[np.float64], fewest: int) -> NDArray[np.float64]:
    """Thresholds that flag ever more rows, from three times the fewest that could do."""
    most = len(votes) - 1
    first = min(3 * fewest, most)
    if first < 1:
        return np.empty(0)
    counts = np.unique(np.geomspace(first, most, N_CUTS).astype(np.intp))
    return np.sort(votes)[::-1][counts]


def promising_cuts(
    vote: ArrayLike, targets: ArrayLike, level: float, n_rows: int
) -> NDArray[np.float64]:
    """Thresholds in the order in which a precision is likely to be shown for them.

    Parameters
    ----------
    vote, targets : arrays of shape (m,)
        Of other rows than those that will be tested: out-of-fold ones, say.
    level : float
        The precision to reach.
    n_rows : int
        How many rows will be tested.

    Returns
    -------
    cuts : ndarray
        The surest first, judged by how many standard errors the precision there lies above
        the level; then ever lower ones.
    """
    votes, positive = np.asarray(vote, np.float64), np.asarray(targets) == 1
    order = np.argsort(-votes, kind="stable")
    ranked, found = votes[order], np.cumsum(positive[order])
    most = max(len(votes) - 1, 1)
    counts = np.unique(np.geomspace(1, most, 4 * N_CUTS).astype(np.intp))
    counts = counts[ranked[counts - 1] > ranked[np.minimum(counts, most)]]
    # A prior of two rows at the level: three positives of three are no certainty.
    precision = (found[counts - 1] + 2 * level) / (counts + 2)
    tested = counts * (n_rows / len(votes))
    sureness = (precision - level) * np.sqrt(tested / (level * (1 - level)))
    # Higher ones are of no use: of all that keep the level, the lowest is taken.
    lower = counts[int(np.argmax(sureness)) :]
    steps = np.unique(np.linspace(0, len(lower) - 1, N_CUTS).astype(np.intp))
    return np.asarray(ranked[lower[steps]])


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
