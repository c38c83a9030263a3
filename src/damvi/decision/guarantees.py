"""Thresholds with a guarantee: a rate that holds on new rows, with stated confidence.

The guarantee needs rows that are new to the model, used neither for training nor for
weights or calibration. Then the votes on these rows and on future rows are exchangeable,
and the guarantee follows from counts alone, whatever the model is.

Recall and the false-alarm rate depend on the votes of one class, and are monotonic in the
threshold: the threshold is an order statistic of these votes, whose rank is known in
advance (where the Clopper-Pearson bound meets the required level). Precision need not be
monotonic in the threshold. There, thresholds are tested one after the other, the most
promising first, each by the Clopper-Pearson bound, until the first that fails (learn then
test); their order must come from other rows.

This needs independent rows. If rows come in groups, each group counts once, by one of its
rows, drawn at random.

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
"""What is guaranteed, and the rows that it is based on."""
N_CUTS = 25
"""Maximum number of thresholds that are tested for a precision."""
MOST_LOOKED_AT, HOPELESS = 1000, 2.0
"""Number of thresholds that these are chosen from, and the number of standard errors below
the level from which a threshold is not worth testing."""


@dataclass(frozen=True)
class Guarantee:
    """A guarantee for a threshold, or the reason why there is none.

    Attributes
    ----------
    rate : {"recall", "precision", "false_alarm_rate"}
    level : float
        Minimum of the recall or precision; maximum of the false-alarm rate.
    confidence : float
        Probability, over draws of such rows, that the guarantee holds.
    threshold : float or None
        Rows with a vote above it are flagged; None if the rows do not support a guarantee.
    positives, negatives : int
        Number of rows of each class that the guarantee is based on.
    found, alarms : int
        Number of flagged rows of each class.
    counted : int
        Number of rows that count: positives for recall, negatives for a false-alarm rate,
        flagged rows for precision; for rows in groups, the number of groups with such rows.
    needed : int
        Minimum number of such rows for any guarantee at this level.
    by_group : bool
        Whether groups are counted rather than rows.
    basis : str
        Description of the rows, for display.
    hashes : ndarray or None
        Hashes of the rows (see ``damvi.hashing.row_hashes``). The model recognises them,
        since they cannot certify it a second time.
    of : bytes or None
        Digest of the model that it belongs to, if known.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import guarantee
    >>> rng = np.random.default_rng(0)
    >>> targets = np.repeat([0, 1], [2000, 60])
    >>> vote = rng.normal(size=2060) + 3 * targets
    >>> promise = guarantee(vote, targets, "recall", 0.9)
    >>> print(promise)
    recall of at least 0.9 with 90% confidence (by 60 positives): flag votes above 1.32.
    Of these rows 58 of 60 positives and 181 of 2,000 others are flagged.
    >>> few = guarantee(vote[:2010], targets[:2010], "recall", 0.9)
    >>> few.threshold is None, few.words.partition(": ")[2]
    (True, 'there are 10 positives, but 22 are needed')
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
        """The guarantee in words, or why there is none."""
        claim, row = COUNTED[self.rate]
        rows = counted(self.counted, row)
        claim, sure = (
            f"{claim} {self.level:g}",
            f"with {100 * self.confidence:.4g}% confidence",
        )
        if self.by_group:
            rows = counted(self.counted, f"group with {row}s", f"groups with {row}s")
        if self.threshold is not None:
            return f"{claim} {sure} (by {rows})"
        claim = f"no {claim} can be guaranteed {sure}"
        if self.flags_all:
            return f"{claim}: by {rows}, only flagging every row would keep it"
        if self.rate == "precision":
            return (
                f"{claim}: no threshold is shown to be that precise by "
                f"{counted(self.positives, 'positive')} and "
                f"{counted(self.negatives, 'other')}; at least {self.needed:,} flagged "
                f"positives are needed, and more with each false alarm"
            )
        there = "there is" if self.counted == 1 else "there are"
        are = "is" if self.needed == 1 else "are"
        return f"{claim}: {there} {rows}, but {self.needed:,} {are} needed"

    @property
    def price(self) -> str:
        """What is flagged among the rows that the guarantee is based on."""
        return (
            f"Of these rows {self.found:,} of {self.positives:,} positives and "
            f"{self.alarms:,} of {self.negatives:,} others are flagged."
        )

    @property
    def flags_all(self) -> bool:
        """Whether every row is flagged, which needs no model."""
        return self.found + self.alarms == self.positives + self.negatives

    def __str__(self) -> str:
        if self.threshold is None:
            return f"{self.words}."
        cut = f"{self.words}: flag votes above {self.threshold:.3g}."
        return "\n".join(filter(None, (cut, self.price, self.basis)))

    def as_dict(self) -> dict[str, Any]:
        """All attributes as plain Python values, ready for JSON."""
        values = {
            name: value
            for name, value in vars(self).items()
            if name not in ("hashes", "of")
        }
        return values | {"words": self.words, "price": self.price}


def parse_guarantee(asked: Any) -> tuple[Rate, float]:
    """Parse the rate and level of a guarantee.

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
    if name in RATES and not 0 < level < 1:
        raise ValueError(
            f"the level of {name} is {level:g}; give a number between 0 and 1, as in "
            f"{name}=0.9"
        )
    if name not in RATES:
        raise ValueError(
            f"guarantee={asked!r} is unknown; give one of {', '.join(RATES)} and its level "
            f"between 0 and 1, as in recall=0.9 (in Python {{'recall': 0.9}})"
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
    """Find a threshold that guarantees a rate on new rows, if there is one.

    Parameters
    ----------
    vote : array of shape (n,)
        Votes on rows that the model has never seen, drawn like future rows. All rows count
        the same.
    targets : array of int, shape (n,)
        1 for the positive class, 0 for the other.
    rate : {"recall", "precision", "false_alarm_rate"}
        The false-alarm rate is the share of negatives that are flagged.
    level : float
        Minimum of the recall or precision, or maximum of the false-alarm rate; between 0
        and 1.
    confidence : float, default=0.9
    cuts : array, optional
        For precision only, and required there: thresholds to test, the most promising
        first, found on other rows, as by :func:`promising_cuts`.
    groups : array of shape (n,), optional
        Groups of dependent rows: each group counts once, by one of its rows. The rate is
        then that of rows of new groups, with equal weight for each group.

    Returns
    -------
    promise : Guarantee
        Of the thresholds that guarantee the rate, the one with the fewest flags for recall,
        and with the most for precision or a false-alarm rate. ``threshold`` is None if the
        rows do not support a guarantee.

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
            f"vote has shape {votes.shape}, but targets has shape {positive.shape}; both "
            f"must have one entry per row, for two classes"
        )
    if np.isnan(votes).any():
        raise ValueError("vote has NaN for some rows; remove these rows")
    if rate not in RATES:
        raise ValueError(f"rate={rate!r} is unknown; use one of {', '.join(RATES)}")
    for name, value in (("level", level), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name}={value!r} must be between 0 and 1")
    if rate == "precision" and cuts is None:
        raise ValueError(
            "a guaranteed precision needs cuts: thresholds to test that were found on "
            "other rows, as by promising_cuts on out-of-fold votes"
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
                break  # thresholds after the first failure must not be tested
            if threshold is None or cut < threshold:
                threshold, counted = float(cut), n
    else:
        wanted = rate == "recall"
        own = np.sort(votes[one_of_each(positive == wanted, codes)])
        counted = len(own)
        beyond = most_beyond(counted, 1 - level if wanted else level, risk)
        if beyond >= 0 and wanted:  # flag votes from this one on
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
    """Positions of these rows; with groups, of one random row of each group."""
    places = np.flatnonzero(some)
    if groups is None:
        return places
    places = np.random.RandomState(0).permutation(places)
    return np.asarray(places[np.unique(groups[places], return_index=True)[1]])


def most_beyond(n: int, share: float, risk: float) -> int:
    """Number of n rows that may be beyond a threshold that ``share`` of rows may exceed.

    The largest number e with P(Binomial(n, share) <= e) <= risk, or -1 if there is none.

    Examples
    --------
    >>> most_beyond(22, 0.1, 0.1), most_beyond(21, 0.1, 0.1)
    (0, -1)
    """
    if not n:
        return -1
    likely = int(binom.ppf(risk, n, share))  # the smallest with probability >= risk
    return likely if binom.cdf(likely, n, share) <= risk else likely - 1


def fewest(share: float, risk: float) -> int:
    """Number of rows needed if none of them is beyond the threshold."""
    n = max(int(np.log(risk) / np.log1p(-share)) - 1, 1)
    while most_beyond(n, share, risk) < 0:
        n += 1
    return n


def promising_cuts(
    vote: ArrayLike, targets: ArrayLike, level: float, n_rows: int
) -> Floats:
    """Thresholds in the order in which they are likely to pass a test of precision.

    Parameters
    ----------
    vote, targets : arrays of shape (m,)
        Rows other than those that will be tested, with out-of-fold votes, for example.
    level : float
        The precision to guarantee.
    n_rows : int
        Number of rows that will be tested.

    Returns
    -------
    cuts : ndarray
        First the threshold whose precision is the most standard errors above the level,
        then lower and lower ones.
    """
    votes, positive = np.asarray(vote, np.float64), np.asarray(targets) == 1
    there = ~np.isnan(votes)
    votes, positive = votes[there], positive[there]
    if len(votes) < 2:
        return np.empty(0)
    order = np.argsort(-votes, kind="stable")
    ranked, found = votes[order], np.cumsum(positive[order])
    counts = np.flatnonzero(ranked[:-1] > ranked[1:]) + 1  # equal votes stay together
    if not len(counts):
        return np.empty(0)
    evenly = np.geomspace(1, counts[-1], MOST_LOOKED_AT)
    counts = counts[np.unique(np.searchsorted(counts, evenly.astype(np.intp)))]
    # A prior of two rows at the level, since three positives of three prove little.
    precision = (found[counts - 1] + 2 * level) / (counts + 2)
    tested = counts * (n_rows / len(votes))
    sureness = (precision - level) * np.sqrt(tested / (level * (1 - level)))
    # Higher thresholds are of no use, since the lowest that passes is taken, and neither
    # are those far below the level.
    first, likely = int(np.argmax(sureness)), np.flatnonzero(sureness > -HOPELESS)
    lower = counts[first : max(first, *likely[-1:]) + 1]
    steps = np.unique(np.linspace(0, len(lower) - 1, N_CUTS).astype(np.intp))
    return np.asarray(ranked[lower[steps]])
