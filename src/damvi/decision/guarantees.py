"""A threshold with a promise: a rate that it keeps on new rows, with stated confidence.

The rows that the promise is made from must be new to the model: they trained, weighed and
calibrated nothing. Then the votes of these rows and of rows to come are alike
(exchangeable), and what is promised follows from counts alone, whatever the model is.

Recall and the false-alarm rate concern the votes of one class, and grow or fall with the
threshold: the threshold is an order statistic of these votes, whose rank is known before
any vote is looked at (it is where Clopper and Pearson's bound meets what was asked for).
Precision may rise and fall with the threshold. There, thresholds are tested one after the
other, the most promising first, each by Clopper and Pearson's bound, until the first that
fails (learn then test); the order must come from other rows.

Counts say so much only of rows that are independent. Of rows that come in groups, each
group counts once, by one of its rows, drawn at random.

References
----------
.. [1] C. Clopper, E. Pearson, The use of confidence or fiducial limits illustrated in the
   case of the binomial, Biometrika, 1934.
.. [2] A. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, Learn then test: Calibrating
   predictive algorithms to achieve risk control, Annals of Applied Statistics, 2025.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from ..messages import counted

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rate = Literal["recall", "precision", "false_alarm_rate"]
RATES: tuple[Rate, ...] = get_args(Rate)
COUNTED: dict[Rate, tuple[str, str]] = {
    "recall": ("recall of at least", "positive"),
    "precision": ("precision of at least", "flagged row"),
    "false_alarm_rate": ("false-alarm rate of at most", "negative"),
}
"""What is promised, and the rows that carry it."""
N_CUTS = 25
"""Thresholds that are tested for a precision, at most."""
MOST_LOOKED_AT, HOPELESS = 1000, 2.0
"""Thresholds that these are chosen from, and how many standard errors below the level there
is no hope for one."""


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
    counted : int
        Rows that carry it: positives for a recall, negatives for a false-alarm rate,
        flagged rows for a precision; of rows in groups, groups that have such rows.
    needed : int
        How many of these it takes at least, even if all went well.
    by_group : bool
        Whether groups are counted, and not rows.
    basis : str
        What it rests on, for people to read.
    hashes : ndarray or None
        Of the rows, as ``damvi.hashing.row_hashes`` gives them, so that a model that
        decides by them knows them, and they certify nothing more of it.
    of : bytes or None
        Which model it is of, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import guarantee
    >>> rng = np.random.default_rng(0)
    >>> targets = np.repeat([0, 1], [2000, 60])
    >>> vote = rng.normal(size=2060) + 3 * targets
    >>> promise = guarantee(vote, targets, "recall", 0.9)
    >>> print(promise)
    recall of at least 0.9 with 90 % confidence (by 60 positives): flag votes above 1.32.
    Of these rows 58 of 60 positives and 181 of 2,000 others are flagged.
    >>> few = guarantee(vote[:2010], targets[:2010], "recall", 0.9)
    >>> few.threshold is None, few.words.partition(": ")[2]
    (True, 'there are 10 positives, and it takes 22')
    """

    rate: Rate
    level: float
    confidence: float
    threshold: float | None
    positives: int
    negatives: int
    found: int
    alarms: int
    counted: int
    needed: int
    by_group: bool = False
    basis: str = ""
    hashes: NDArray[np.uint64] | None = field(default=None, repr=False, compare=False)
    of: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def words(self) -> str:
        """The promise, or that there is none, and how many rows it would take."""
        told, row = COUNTED[self.rate]
        rows = counted(self.counted, row)
        told, sure = (
            f"{told} {self.level:g}",
            f"with {100 * self.confidence:.4g} % confidence",
        )
        if self.by_group:
            rows = counted(self.counted, f"group with {row}s", f"groups with {row}s")
        if self.threshold is not None:
            return f"{told} {sure} (by {rows})"
        told = f"no {told} can be promised {sure}"
        if self.flags_all:
            return f"{told}: by {rows} only flagging every row keeps it"
        if self.rate == "precision":
            return (
                f"{told}: no threshold is shown to be that precise by "
                f"{counted(self.positives, 'positive')} and "
                f"{counted(self.negatives, 'other')}; it takes {self.needed:,} flagged "
                f"positives at least, and more with each false alarm"
            )
        there = "there is" if self.counted == 1 else "there are"
        return f"{told}: {there} {rows}, and it takes {self.needed:,}"

    @property
    def price(self) -> str:
        """What is flagged for it, among the rows that it comes from."""
        return (
            f"Of these rows {self.found:,} of {self.positives:,} positives and "
            f"{self.alarms:,} of {self.negatives:,} others are flagged."
        )

    @property
    def flags_all(self) -> bool:
        """Whether it is kept by flagging every row, which needs no model."""
        return self.found + self.alarms == self.positives + self.negatives

    def __str__(self) -> str:
        if self.threshold is None:
            return f"{self.words}."
        cut = f"{self.words}: flag votes above {self.threshold:.3g}."
        return "\n".join(filter(None, (cut, self.price, self.basis)))

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        told = {
            name: value
            for name, value in vars(self).items()
            if name not in ("hashes", "of")
        }
        return told | {"words": self.words, "price": self.price}


def parse_guarantee(asked: Any) -> tuple[Rate, float]:
    """The rate and the level that a user asks to be promised.

    Examples
    --------
    >>> parse_guarantee({"recall": 0.9}), parse_guarantee("precision=80%")
    (('recall', 0.9), ('precision', 0.8))
    """
    pair: Any = asked
    if isinstance(asked, Mapping) and len(asked) == 1:
        pair = next(iter(asked.items()))
    elif isinstance(asked, str):
        pair = re.split("[=@]", asked)
    try:
        name, level = pair
        name = str(name).strip().replace("-", "_")
        percent = isinstance(level, str) and level.endswith("%")
        level = float(level.rstrip("%")) / 100 if percent else float(level)
    except (TypeError, ValueError):
        name, level = "", np.nan
    if name not in RATES or not 0 < level < 1:
        raise ValueError(
            f"guarantee={asked!r} is not known; name one of {', '.join(RATES)} and what it "
            f"is to be, between 0 and 1, as in recall=0.9 (in Python {{'recall': 0.9}})"
        )
    return name, level


def guarantee(
    vote: ArrayLike,
    targets: ArrayLike,
    rate: Rate,
    level: float,
    *,
    confidence: float = 0.9,
    cuts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Guarantee:
    """A threshold that keeps a rate on new rows, with this confidence; or none.

    Parameters
    ----------
    vote : array of shape (n,)
        Of rows that the model has never seen, like those to come. Each counts once.
    targets : array of int, shape (n,)
        1 for the positive class, 0 for the other.
    rate : {"recall", "precision", "false_alarm_rate"}
        The false-alarm rate is the share of the negatives that is flagged.
    level : float
        What a recall or a precision is to reach, or a false-alarm rate not to exceed;
        between 0 and 1.
    confidence : float, default=0.9
    cuts : array, optional
        For a precision, and needed there: thresholds to test, the most promising first,
        found without these rows, as by :func:`promising_cuts`.
    groups : array of shape (n,), optional
        Which rows belong together: each group counts once, by one of its rows. The rate is
        then the one of rows of new groups, each group counting alike.

    Returns
    -------
    promise : Guarantee
        Of the thresholds that keep the rate, the one that flags fewest rows for a recall,
        and most for a precision or a false-alarm rate. ``threshold`` is None where the
        rows cannot support a promise.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import guarantee, promising_cuts
    >>> rng = np.random.default_rng(0)
    >>> targets = np.tile(np.repeat([0, 1], [900, 100]), 2)
    >>> vote = rng.normal(size=2000) + 3 * targets
    >>> cuts = promising_cuts(vote[:1000], targets[:1000], 0.8, 1000)
    >>> promise = guarantee(vote[1000:], targets[1000:], "precision", 0.8, cuts=cuts)
    >>> promise.found, promise.alarms
    (70, 10)
    """
    votes, positive = np.asarray(vote, np.float64), np.asarray(targets) == 1
    if not (votes.shape == positive.shape == (votes.size,)):
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
    if rate == "precision" and cuts is None:
        raise ValueError(
            "a precision needs cuts, the thresholds to test, found on other rows, as by "
            "promising_cuts on out-of-fold votes"
        )
    codes = (
        None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    risk = 1 - confidence
    threshold, counted = None, 0
    if rate == "precision":
        for cut in np.asarray(cuts, np.float64):
            judged = one_of_each(votes > cut, codes)
            n, found = len(judged), int(positive[judged].sum())
            if not n or binom.sf(found - 1, n, level) > risk:
                counted = counted if threshold is not None else n
                break  # what comes after the first failure is not looked at
            if threshold is None or cut < threshold:
                threshold, counted = float(cut), n
    else:
        wanted = rate == "recall"
        own = np.sort(votes[one_of_each(positive == wanted, codes)])
        counted = len(own)
        beyond = most_beyond(counted, 1 - level if wanted else level, risk)
        if beyond >= 0 and wanted:  # from this vote on, all are flagged
            threshold = float(np.nextafter(own[beyond], -np.inf))
        elif beyond >= 0:
            threshold = float(own[counted - 1 - beyond])
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
        counted=counted,
        needed=fewest(level if rate == "false_alarm_rate" else 1 - level, risk),
        by_group=groups is not None,
    )


def one_of_each(some: Mask, groups: NDArray[Any] | None) -> NDArray[np.intp]:
    """The places of these rows; of rows in groups, of one of each, drawn at random."""
    places = np.flatnonzero(some)
    if groups is None:
        return places
    places = np.random.RandomState(0).permutation(places)
    return np.asarray(places[np.unique(groups[places], return_index=True)[1]])


def most_beyond(n: int, share: float, risk: float) -> int:
    """How many of n may lie beyond a cut where a share of at most ``share`` shall; or -1.

    The largest number e with P(Binomial(n, share) <= e) <= risk.

    Examples
    --------
    >>> most_beyond(22, 0.1, 0.1), most_beyond(21, 0.1, 0.1)
    (0, -1)
    """
    if not n:
        return -1
    likely = int(binom.ppf(risk, n, share))  # the smallest with at least the risk
    return likely if binom.cdf(likely, n, share) <= risk else likely - 1


def fewest(share: float, risk: float) -> int:
    """How many rows it takes if none of them lies beyond."""
    n = max(int(np.log(risk) / np.log1p(-share)) - 1, 1)
    while most_beyond(n, share, risk) < 0:
        n += 1
    return n


def promising_cuts(
    vote: ArrayLike, targets: ArrayLike, level: float, n_rows: int
) -> Floats:
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
    there = ~np.isnan(votes)
    votes, positive = votes[there], positive[there]
    if len(votes) < 2:
        return np.empty(0)
    order = np.argsort(-votes, kind="stable")
    ranked, found = votes[order], np.cumsum(positive[order])
    counts = np.flatnonzero(ranked[:-1] > ranked[1:]) + 1  # rows of equal vote go together
    if not len(counts):
        return np.empty(0)
    evenly = np.geomspace(1, counts[-1], MOST_LOOKED_AT)
    counts = counts[np.unique(np.searchsorted(counts, evenly.astype(np.intp)))]
    # A prior of two rows at the level: three positives of three are no certainty.
    precision = (found[counts - 1] + 2 * level) / (counts + 2)
    tested = counts * (n_rows / len(votes))
    sureness = (precision - level) * np.sqrt(tested / (level * (1 - level)))
    # Higher ones are of no use, as the lowest of those that keep the level is taken, and
    # neither are those far below it.
    first, likely = int(np.argmax(sureness)), np.flatnonzero(sureness > -HOPELESS)
    lower = counts[first : max(first, *likely[-1:]) + 1]
    steps = np.unique(np.linspace(0, len(lower) - 1, N_CUTS).astype(np.intp))
    return np.asarray(ranked[lower[steps]])
