"""Certificates: bounds on the risk of decisions from held-out rows, and their text."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from ..hashing import LABEL, Hashes, row_hashes, thinned, without_labels
from .bounds import (
    bounds_of_vote,
    by_class_is_vacuous,
    check_delta,
    clopper_pearson,
    clopper_pearson_upper,
    kl_divergence,
    with_threshold,
)

N_BOUNDS = 3
BOUNDS = {"twice_gibbs": "2 x Gibbs risk", "tandem": "tandem", "c_bound": "C-bound"}
NEAR_THRESHOLD = 1e-12
"""A vote this close to the threshold may fall on either side."""
ROUNDING = 1e-9
"""Tolerance for votes outside [-1, 1]."""


@dataclass(frozen=True)
class Rate:
    """Error rate on a group of rows, with Clopper-Pearson bounds.

    Attributes
    ----------
    rows, errors : int
        Rows of the group, and how many of them were decided wrongly.
    upper : float
        Upper bound on the true rate, at the certificate's confidence.
    low, high : float
        Confidence interval of the true rate, at the same confidence.
    vacuous : bool
        Whether ``upper`` is uninformative; see :class:`Certificate`.
    """

    rows: int
    errors: int
    upper: float
    low: float
    high: float
    vacuous: bool

    @property
    def seen(self) -> float | None:
        """The observed error rate; None without rows."""
        return self.errors / self.rows if self.rows else None


@dataclass(frozen=True)
class Bound:
    """A PAC-Bayes bound on the risks, and whether it is vacuous.

    The two class bounds are for two classes; None with three or more.
    """

    overall: float
    vacuous_overall: bool
    missed: float | None = None
    false_alarms: float | None = None
    vacuous_by_class: bool | None = None


@dataclass(frozen=True)
class PacBayes:
    """PAC-Bayes bounds and their ingredients.

    Attributes
    ----------
    n_voters : int
        Number of voters of the model, K.
    threshold : float
        Threshold of the vote. If nonzero, it counts as an additional voter.
    prior : str
        The weights of the voters before any row was seen.
    kl : float
        KL(Q || P), the divergence of the weights from the prior.
    twice_gibbs, tandem, c_bound : Bound
        With three or more classes, they use that a wrong decision leaves the true class at
        most half of the vote.
    """

    n_voters: int
    threshold: float
    prior: str
    kl: float
    twice_gibbs: Bound
    tandem: Bound
    c_bound: Bound


@dataclass(frozen=True)
class Certificate:
    """The result of :func:`damvi.certificate.certify`; ``print`` it to read it.

    A bound on all decisions is vacuous unless it is below the error of always predicting
    the largest class. The two bounds of a class are vacuous unless their sum is below 1:
    predicting a class at random, at any rate, gives rates of misses and false alarms that
    sum to 1.

    Attributes
    ----------
    delta : float
        Probability that the bounds fail.
    labels : tuple
        The classes; of two, the positive one is last.
    constant_error : float
        Error of always predicting the largest class.
    missed_by_class, flagged_by_class : tuple of Rate
        For each class, its rows that were missed, and other rows that were flagged as it.
        All of them hold together with confidence 1 - delta.
    overall : Rate
        Wrong decisions among all rows.
    pac_bayes : PacBayes or None
        None if the decisions do not follow the vote and one threshold (with three or more
        classes, the largest vote), as PAC-Bayes bounds require.
    """

    delta: float
    labels: tuple[Any, ...]
    constant_error: float
    missed_by_class: tuple[Rate, ...]
    flagged_by_class: tuple[Rate, ...]
    overall: Rate
    pac_bayes: PacBayes | None

    @property
    def pos_label(self) -> Any:
        """The positive one of two classes."""
        return self._kind.positive(self.labels, self.labels)

    @property
    def missed(self) -> Rate:
        """Wrong decisions among the positives of two classes."""
        rate: Rate = self._kind.positive(self.labels, self.missed_by_class)
        return rate

    @property
    def false_alarms(self) -> Rate:
        """Wrong decisions among the negatives of two classes."""
        rate: Rate = self._kind.positive(self.labels, self.flagged_by_class)
        return rate

    @property
    def _kind(self) -> _OneClass | _EachClass:
        return _kind_of(self.labels)

    def as_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON."""
        found: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        for name in ("missed_by_class", "flagged_by_class"):
            for rate, own in zip(found[name], getattr(self, name), strict=True):
                rate["seen"] = own.seen
        found["overall"]["seen"] = self.overall.seen
        return found

    def __str__(self) -> str:
        sure = f"{100 * (1 - self.delta):g}%"
        kind, rates = self._kind, self._kind.rates(self)
        share = _percent(self.constant_error)
        return "\n".join(
            [
                f"Bounds from {self.overall.rows:,} held-out rows, at {sure} confidence",
                "",
                _columns("", "rows", "wrong", "seen", "at most", "interval"),
                *(_rate_line(name, rate) for name, rate in rates.items()),
                _rate_line("all decisions", self.overall),
                f"{kind.constant(self)}: {share} of all decisions wrong.",
                "",
                *self._pac_bayes_lines(kind.unbounded),
                *_FINE_PRINT,
            ]
        )

    def _pac_bayes_lines(self, why_not: str) -> list[str]:
        made = self.pac_bayes
        if made is None:
            return [f"No PAC-Bayes bounds: {why_not}."]
        cut = f", threshold {made.threshold:.3g}" if made.threshold else ""
        lines = [
            f"PAC-Bayes: {made.n_voters} voters{cut}; prior {made.prior}; KL {made.kl:.3g}",
        ]
        if made.tandem.missed is not None:
            lines.append(_columns("at most", "missed", "flagged", "all decisions"))
        for key, name in BOUNDS.items():
            bound: Bound = getattr(made, key)
            overall = _bound_shown(bound.overall, bound.vacuous_overall)
            if bound.missed is None or bound.false_alarms is None:
                lines.append(f"{name:<16}at most {overall}")
                continue
            empty = bool(bound.vacuous_by_class)
            by_class = [
                _bound_shown(value, empty) for value in (bound.missed, bound.false_alarms)
            ]
            lines.append(_columns(name, *by_class, overall))
        return lines


class _OneClass:
    """What two classes have of their own: the one misses what the other flags."""

    unbounded = "decisions do not follow one threshold of the vote"
    """Why there may be no PAC-Bayes bounds."""

    def positive(self, labels: tuple[Any, ...], by_class: tuple[Any, ...]) -> Any:
        """Of what there is by class, that of the positive one."""
        return by_class[1]

    def rates(self, found: Certificate) -> dict[str, Rate]:
        """The rates by class that are shown, by name."""
        negative, positive = found.labels
        return {
            f"{positive!r} missed": found.missed,
            f"{negative!r} flagged": found.false_alarms,
        }

    def constant(self, found: Certificate) -> str:
        """What always deciding for the largest class comes to."""
        flags = found.missed.rows > found.false_alarms.rows
        return "Always flagging" if flags else "Never flagging"

    def bounds(
        self, model: Any, vote: Any, targets: Any, decided: Any, delta: float
    ) -> PacBayes | None:
        """PAC-Bayes bounds, where decisions follow the vote as these need it to."""
        threshold = model.threshold_
        if np.ndim(threshold):  # one for each row
            return None
        above = vote - threshold
        clear = np.abs(above) > NEAR_THRESHOLD
        if not np.array_equal(decided[clear] == 1, above[clear] > 0):
            return None
        signs = np.where(targets == 1, 1, -1)
        return pac_bayes(vote, signs, model.weights_, threshold=threshold, delta=delta)


class _EachClass:
    """The same of three or more classes, each against the rest."""

    unbounded = "votes count by factors other than 1"

    def positive(self, labels: tuple[Any, ...], by_class: tuple[Any, ...]) -> Any:
        raise AttributeError(
            f"there is no positive class among {len(labels)}; use missed_by_class and "
            f"flagged_by_class"
        )

    def rates(self, found: Certificate) -> dict[str, Rate]:
        rates = {}
        for c, label in enumerate(found.labels):
            rates[f"{label!r} missed"] = found.missed_by_class[c]
            rates[f"{label!r} flagged"] = found.flagged_by_class[c]
        return rates

    def constant(self, found: Certificate) -> str:
        return "Always the largest class"

    def bounds(
        self, model: Any, vote: Any, targets: Any, decided: Any, delta: float
    ) -> PacBayes | None:
        if (model.threshold_ != 1).any():
            return None
        share_of_truth = vote[np.arange(len(targets)), targets]
        rest = _constant_error(targets)
        margins = 2 * share_of_truth - 1
        return pac_bayes(margins, None, model.weights_, delta=delta, constant_error=rest)


def _kind_of(labels: Sequence[Any]) -> _OneClass | _EachClass:
    return _OneClass() if len(labels) == 2 else _EachClass()


_FINE_PRINT = (
    "",
    "Vacuous: no better than flagging nothing, everything, or at random.",
    "The bounds are on the rate of wrong decisions, not on F1 or average precision.",
    "They hold for rows drawn like these; those on all decisions also need future",
    "rows to have the same class proportions.",
    "The first table needs rows not used before to train, tune, calibrate or choose.",
    "PAC-Bayes needs rows not used to train the voters or their calibrators.",
)


def certify(model: Any, X: Any, y: ArrayLike, *, delta: float = 0.05) -> Certificate:
    """Bound the risk of a model's decisions, from held-out rows.

    The main result is exact (Clopper and Pearson): upper bounds on the rates of missed
    positives and flagged negatives. PAC-Bayes bounds [1]_ [2]_ [3]_ follow, which hold for
    all weights of these voters at once.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        A fitted model. For a pipeline, pass the last step, and the rows as transformed by
        the steps before it.
    X : array, sparse matrix or dataframe of shape (n, n_features)
        Rows drawn like future ones, and not used before to train, tune, calibrate, choose
        or stop. For the PAC-Bayes bounds, it is enough that they were not used to train the
        voters or their calibrators. Training rows raise an error; rows that merely have the
        same values as some raise a warning.
    y : array of shape (n,)
        Labels. There are no sample weights: the bounds need equally weighted rows.
    delta : float, default=0.05
        Probability of failure. Each of these holds with confidence 1 - delta: the two class
        rates together (delta/2 each), the overall rate, the three PAC-Bayes bounds on it
        together (delta/3 each, so that the smallest may be quoted), and the six per class
        together (delta/6 each). Intervals split their share evenly between both sides.

    Returns
    -------
    Certificate
        Plain numbers; ``print`` shows them as a table, ``as_dict`` is for JSON. With three
        or more classes, each is compared with the rest, at delta/2C per rate.

    Notes
    -----
    The bounds are on the rate of wrong decisions, not on F1 or average precision.

    References
    ----------
    .. [1] A. Maurer (2004), A note on the PAC-Bayesian theorem.
    .. [2] P. Germain et al. (2015), Risk bounds for the majority vote: from a
       PAC-Bayesian analysis to a learning algorithm, JMLR 16.
    .. [3] A. Masegosa et al. (2020), Second order PAC-Bayesian bounds for the weighted
       majority vote, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import train_test_split
    >>> from damvi import DAMVIClassifier
    >>> from damvi.certificate import certify
    >>> X, y = make_classification(4000, weights=[0.9], random_state=0)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0, stratify=y)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> certificate = certify(model, X_new, y_new)
    >>> certificate.missed.seen < certificate.missed.upper < 1
    True
    """
    check_delta(delta)
    check_is_fitted(model)
    if not hasattr(model, "row_hashes_"):
        raise TypeError(
            f"certify needs a fitted DAMVIClassifier or DAMVIVotingClassifier, which knows "
            f"its training rows, not {type(model).__name__}. For a pipeline or a search, "
            f"pass the classifier itself and the rows as it gets them"
        )
    labels, targets = model.labels_, _targets(model, X, y)
    decided = labels.targets_of(model.predict(X))
    hashes = thinned(row_hashes(X, targets), model.row_hash_step_)
    refuse_training_rows(hashes, model.row_hashes_)

    # Of two classes, a miss of one is a false alarm of the other: two rates, not four.
    n_rates = 2 * len(labels.reported)
    missed, flagged = [], []
    for c in range(labels.n_classes):
        own = targets == c
        pair = [
            _counted(decided[own] != c, delta / n_rates),
            _counted(decided[~own] == c, delta / n_rates),
        ]
        empty = by_class_is_vacuous(pair[0]["upper"], pair[1]["upper"])
        missed.append(Rate(**pair[0], vacuous=empty))
        flagged.append(Rate(**pair[1], vacuous=empty))
    constant_error, kind = _constant_error(targets), _kind_of(labels.classes)
    overall = _counted(decided != targets, delta)
    return Certificate(
        delta=float(delta),
        labels=tuple(labels.by_target.tolist()),
        constant_error=constant_error,
        missed_by_class=tuple(missed),
        flagged_by_class=tuple(flagged),
        overall=Rate(**overall, vacuous=overall["upper"] >= constant_error),
        pac_bayes=kind.bounds(model, model.vote(X), targets, decided, delta),
    )


def _targets(model: Any, X: Any, y: Any) -> NDArray[Any]:
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if not len(y):
        raise ValueError("X has 0 rows; a certificate needs some")
    strange = [label for label in set(y.tolist()) if label not in model.classes_.tolist()]
    if strange:
        raise ValueError(
            f"y contains {strange[0]!r}, which is not a label of the model; its labels are "
            f"{model.classes_.tolist()}"
        )
    targets: NDArray[Any] = model.labels_.targets_of(y)
    return targets


def _counted(wrong: NDArray[np.bool_], delta: float) -> dict[str, Any]:
    rows, errors = len(wrong), int(wrong.sum())
    low, high = clopper_pearson(errors, rows, delta)
    return {
        "rows": rows,
        "errors": errors,
        "upper": float(clopper_pearson_upper(errors, rows, delta)),
        "low": float(low),
        "high": float(high),
    }


def _constant_error(targets: NDArray[Any]) -> float:
    """The share of the rows that are not of the largest class."""
    return float((len(targets) - np.bincount(targets).max()) / len(targets))


def pac_bayes(
    vote: ArrayLike,
    signs: ArrayLike | None,
    weights: ArrayLike,
    *,
    threshold: float = 0.0,
    delta: float = 0.05,
    constant_error: float | None = None,
) -> PacBayes:
    """Bound the risk of deciding by ``vote > threshold``.

    Parameters
    ----------
    vote : array of shape (n,)
        Weighted sum of the voters' hard or soft votes, in [-1, 1].
    signs : array of shape (n,), or None
        The true signs, +1 and -1. None, with three or more classes: votes are already
        margins, 2p - 1 where p is the share of the vote for the true class. There are then
        no bounds by class.
    weights : array of shape (K,)
        The voters' weights Q, a distribution. Weights and threshold may have been learned
        on these rows; the voters may not.
    threshold : float, default=0
        Threshold of the vote; if nonzero, an additional constant voter.
    delta : float, default=0.05
        The three bounds on all rows hold together with confidence 1 - delta (delta/3 each),
        and so do the six by class (delta/6 each).
    constant_error : float, optional
        Error of always predicting the largest class; by default the share of the rarer
        sign.
    """
    v = np.asarray(vote, dtype=np.float64)
    y = np.ones(v.shape) if signs is None else np.asarray(signs, dtype=np.float64)
    if v.shape != y.shape or not (np.abs(v) <= 1 + ROUNDING).all():
        raise ValueError("PAC-Bayes bounds need one vote in [-1, 1] per row")
    v = np.clip(v, -1.0, 1.0)
    Q = np.asarray(weights, dtype=np.float64)
    n_voters, P = len(Q), np.full(len(Q), 1 / len(Q))
    prior = f"uniform, 1/{n_voters} each"
    if threshold:
        prior = f"uniform, with the threshold as a voter, 1/{n_voters + 1} each"
        v, Q, P = with_threshold(v, Q, threshold)
    kl = kl_divergence(Q, P)
    overall = bounds_of_vote(v, y, kl, delta / N_BOUNDS)
    if constant_error is None:
        constant_error = float(min((y > 0).mean(), (y < 0).mean())) if len(y) else 0.0
    bounds = {}
    if signs is None:
        for key in BOUNDS:
            bounds[key] = Bound(overall[key], overall[key] >= constant_error)
    else:
        missed, alarms = (
            bounds_of_vote(v[rows], y[rows], kl, delta / 2 / N_BOUNDS)
            for rows in (y > 0, y < 0)
        )
        for key in BOUNDS:
            bounds[key] = Bound(
                overall[key],
                overall[key] >= constant_error,
                missed[key],
                alarms[key],
                by_class_is_vacuous(missed[key], alarms[key]),
            )
    return PacBayes(n_voters, float(threshold), prior, kl, **bounds)


def _rate_line(name: str, rate: Rate) -> str:
    """Format a rate as a line of a table."""
    return _columns(
        name,
        f"{rate.rows:,}",
        f"{rate.errors:,}",
        "-" if rate.seen is None else _percent(rate.seen),
        _bound_shown(rate.upper, rate.vacuous),
        f"{_percent(rate.low)} to {_percent(rate.high)}",
    )


def _columns(name: str, *cells: str) -> str:
    """Format a line of a table."""
    widths = [18, 18, 18] if len(cells) == 3 else [8, 7, 9, 18, 20]
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"{name:<16}{''.join(padded)}"


def _bound_shown(value: float, vacuous: bool) -> str:
    """Format a bound in percent, marked if it is vacuous."""
    return f"vacuous ({_percent(value)})" if vacuous else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.01 or value == 0 else f"{100 * value:.2g}%"


# Training rows among the rows for a certificate, told from duplicates.
#
# A new row may have the values of a training row by chance: tables contain default rows,
# small integers, or the same customer twice. How often can be estimated from the training
# rows (Good and Turing): of N rows, let N_r be the number of values found r times. A new
# row then has a value found r times with probability about (r + 1) N_{r+1} / N, since a
# training row, taken out, has a value found r times among the others exactly if it is one
# of r + 1. A row that *is* a training row has such a value with probability r N_r / N,
# which for r = 1 is usually far more. So for each r, two numbers are compared: how many
# values found r times in training occur in the n new rows, and N_{r+1}. The first should be
# at most (r + 1) n / N times the second, up to chance. A value found thousands of times in
# training counts no more than any other.
#
# Not detected are rows whose values were changed (scaled, rounded, stored in single
# precision), part of the training rows in a table with so few distinct values that none is
# rare, and so few training rows that chance may explain them.

ALPHA = 1e-5
"""Significance level of each comparison."""


def refuse_training_rows(new: Hashes, trained: Hashes) -> None:
    """Raise an error if ``new`` contains training rows; warn if it has duplicates of them.

    All rows are compared by their values, then each class by values and label: a few
    copied positives are few among all rows, but many among the positives.
    """
    shared = shared_rows(without_labels(new), without_labels(trained))
    if not shared:
        return
    pairs = [
        (without_labels(new), without_labels(trained)),
        (new[new & LABEL == 1], trained[trained & LABEL == 1]),
        (new[new & LABEL == 0], trained[trained & LABEL == 0]),
    ]
    if np.array_equal(np.sort(new), trained) or any(is_leak(*pair) for pair in pairs):
        raise ValueError(
            f"{shared} of the {len(new)} rows have the same values as training rows, more "
            f"than chance explains: they include training rows, which the model has seen, "
            f"so they certify nothing; use held-out rows"
        )
    warnings.warn(
        f"{shared} of the {len(new)} rows have the same values as training rows. Chance "
        f"can explain that many, and duplicates of values do no harm; but if any are "
        f"training rows, the certificate is void",
        UserWarning,
        stacklevel=3,
    )


def shared_rows(new: Hashes, trained: Hashes) -> int:
    """Return the number of rows in common, as multisets."""
    values, counts = np.unique(new, return_counts=True)
    first = np.searchsorted(trained, values, side="left")
    times = np.searchsorted(trained, values, side="right") - first
    return int(np.minimum(counts, times).sum())


def is_leak(new: Hashes, trained: Hashes) -> bool:
    """Whether more values of ``trained`` occur in ``new`` than new rows explain."""
    values, times = np.unique(trained, return_counts=True)
    if not len(values) or not len(new):
        return False
    found = np.bincount(times[np.isin(values, new)], minlength=times.max() + 1)
    there = np.bincount(times, minlength=times.max() + 2)
    level = np.flatnonzero(found)
    # Two counts of rare events; given their sum, the first is binomial.
    ratio = (level + 1) * len(new) / len(trained)
    trials = found[level] + there[level + 1]
    chance = binom.sf(found[level] - 1, trials, ratio / (1 + ratio))
    return bool((chance < ALPHA).any())
