"""Votes on rows that arrive one batch after another: the voters stay, the weights follow.

The moments of votes are sums over rows, so each batch is added to them and forgotten. What
the vote was like on the rows so far is kept as sums too, to tell whether new rows are like
them: a row's margin x is judged by weights that have not seen the row, and of each class
the sums of w, w**2, wx, wx**2 and wx**4 are kept. The vote's square is x**2, so they hold
the means and the variances of Gibbs risk and disagreement. With three or more classes x is
2p - 1, with p the share of the vote for the row's class.
"""

from __future__ import annotations

import copy
import os
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import exp, nan
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._files import whole_file
from ._kernels import one_blas_thread
from .classifier import DAMVIClassifier
from .crossfit import crossfit_weights
from .labels import Labels
from .moments import FRACTIONAL_BITS, ClassMoments, ClassShares, Moments, OutOfBagMoments
from .reweighting import emphasis, plain_margin
from .solvers import solve
from .validation import check_weights
from .votes import signed_votes
from .voting import DAMVIVotingClassifier
from .weighting import Settings, moments_of_others

Numbers = NDArray[np.float64]
Side = Moments | OutOfBagMoments
Model = DAMVIClassifier | DAMVIVotingClassifier

BLOCK_BYTES = 2**25
"""Votes in doubles that are added up at a time."""
MOST_WEIGHT = 1e12
"""More rows than any stream has; the squares of much larger sums are no numbers."""
ROOM = 2**62
"""Sums of whole numbers up to here; beyond it they go on as floats."""
LEVEL = 0.01
"""How often chance alone may be called drift, at most, for all figures of a batch."""
ROOM_IN_FILE = 2**16
"""Bytes of a file beside the moments: names, and sums of a few numbers ..."""
ROOM_OF_ARRAY = 2**9
"""... and those beside each array."""
TITLE = 22
"""Letters of a figure's name, in print."""


class VoteStream:
    """Weight the voters of a fitted model again as labelled rows arrive.

    The voters stay as they are. The moments of their votes are sums over rows, so each
    batch is added to them and forgotten, and the weights are solved again in milliseconds.
    What is learned does not depend on how the rows are cut into batches.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        Fitted or loaded, of any number of classes. It is not changed. Of a
        :class:`damvi.model.Model`, give its ``classifier``.
    half_life : float, default=None
        After this many rows a row counts for half as much. None: nothing is forgotten.
    prior_rows : "auto" or float, default="auto"
        How many rows the votes of the fit count for, on rows that the voters were not
        trained on (out of bag or out of fold); 0 leaves them out. "auto": as many as the
        fit had, or 0 where the model no longer has its votes, as after loading it, or
        where the voters have seen all rows.
    min_rows : float, default=50
        The weights are kept while fewer rows than this of any class are remembered.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        The weights at present, on the simplex. The model's, until enough rows are known.
    threshold_ : float or ndarray of shape (C,)
        Where the vote is cut, or the factors of three or more classes: the model's, and
        yours to set. With ``fit_intercept`` and ``threshold="vote"`` the one of two classes
        follows the weights.
    moments_ : Moments
        Of the rows remembered, as the weights are learned from them.
    rows_ : ndarray of shape (C,)
        How many negatives and positives are remembered, or rows of each of three or more
        classes; each fades as others come.
    n_rows_seen_ : int
        The rows given so far.
    classes_, pos_label_
        Those of the model.

    Notes
    -----
    Emphasis, balance, shrinkage and solver are the model's; a pool that kept the plain vote
    keeps it. Which of three or more classes are rare, so that step 2 leans on their missed
    rows, goes by the rates of now. The calibration of a pool's voters stays, and so does
    the threshold; the votes that a :class:`~damvi.streaming.Drift` holds are what to learn
    others from.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier, VoteStream
    >>> X, y = make_classification(3000, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X[:2000], y[:2000])
    >>> stream = VoteStream(model, half_life=50_000)
    >>> drift = stream.partial_fit(X[2000:], y[2000:])
    >>> drift.n_rows, drift.learned, drift.beyond_chance
    (1000, True, False)
    >>> stream.predict(X[:3])
    array([0, 0, 0])

    Of three or more classes, each has its figures:

    >>> kind = (X[:, 5] > 0) + y
    >>> model = DAMVIClassifier(random_state=0).fit(X[:2000], kind[:2000])
    >>> drift = VoteStream(model).partial_fit(X[2000:], kind[2000:])
    >>> list(drift.changes)[:4]
    ['rate_0', 'rate_1', 'rate_2', 'gibbs_risk']
    """

    def __init__(
        self,
        model: Model,
        *,
        half_life: float | None = None,
        prior_rows: float | str = "auto",
        min_rows: float = 50,
    ) -> None:
        _check_model(model)
        if half_life is not None:
            _check("half_life", half_life, "a number of rows above 0, or None", above=0)
        _check("min_rows", min_rows, "a number of rows from 1 on", above=1, included=True)
        self.half_life, self.min_rows = half_life, min_rows
        self.prior_rows = prior_rows
        self.classes_, self.pos_label_ = model.classes_, model.pos_label_
        self.weights_, self.threshold_ = model.weights_, model.threshold_
        self.n_rows_seen_ = 0
        self._made_from = sha256(model.weights_.tobytes()).hexdigest()
        # The voters, without the votes of the fit: what the model is put through later
        # does not reach them.
        self._model = copy.copy(model)
        del self._model.decision_
        self._settings = Settings.of(model)._replace(unlabeled_weight=0.0)
        comparison = getattr(model, "comparison_", None)
        if comparison is not None and comparison.plain_kept:
            self._settings = self._settings._replace(solver="uniform")
        self._layout = Layout.of(model)
        threshold = model.threshold
        untuned = isinstance(threshold, str) and threshold == "vote"
        # The constants of three or more classes serve the weights alone.
        self._follows = untuned and self._layout.n_voted == 0
        self._memory = self._start(model)
        self._learn(self._memory)

    def partial_fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Drift:
        """Learn from labelled rows, in the order of their arrival.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of the model's classes; one class alone will do, and so will no rows.
        sample_weight : array of shape (n,), optional
            1 is a row like any other, and they are not scaled. Rows of weight 0 make
            others fade all the same.

        Returns
        -------
        drift : Drift
            How the rows compare with those before, by weights that had not seen them.
        """
        check_consistent_length(X, y)
        layout, labels = self._layout, self._layout.labels
        targets = labels.targets_of(y)
        n, n_classes = len(targets), labels.n_classes
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, n)
        if weights is not None and weights.max(initial=0.0) > MOST_WEIGHT:
            raise ValueError(
                f"sample_weight is up to {weights.max():g}, and a row like any other "
                f"counts for 1; divide the weights by what such a row has"
            )
        margin, vote = np.empty(n), np.empty((n, len(labels.reported)))
        if n == 0:
            now = Margins.none(n_classes)
            nothing = self._memory.margins.compared(now, layout.figures)
            return Drift(0, nothing, learned=False, vote=labels.as_vote(vote))
        votes = self._model.cast_votes(X)
        kept, fade = self._fading(n)
        memory = self._memory.faded(kept)
        step = max(BLOCK_BYTES // (8 * votes[0].size), 1)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            for column, target in enumerate(labels.reported.tolist()):
                vote[rows, column] = labels.votes_for(votes[rows], target) @ self.weights_
            signed, signs = signed_votes(votes[rows], targets[rows], n_classes)
            margin[rows] = signs * (signed @ self.weights_)
            memory += Memory.of(
                layout,
                votes[rows],
                targets[rows],
                margin[rows],
                weights=None if weights is None else weights[rows],
                fade=None if fade is None else fade[rows],
            )
        now = Margins.of(margin, targets, weights, n_classes)
        changes = self._memory.margins.compared(now, layout.figures)
        learned = self._learn(memory)
        self._memory = memory
        self.n_rows_seen_ += n
        return Drift(n, changes, learned=learned, vote=labels.as_vote(vote))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep what was learned from the rows in a file, which holds numbers alone.

        The voters are not in it: save the model too, by ``damvi.save``.

        Parameters
        ----------
        path : path
            The old file or the new one is there at any time, whole.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from sklearn.datasets import make_classification
        >>> from damvi import DAMVIClassifier, VoteStream, load, save
        >>> X, y = make_classification(500, weights=[0.9], random_state=0)
        >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> stream = VoteStream(model)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(model, pathlib.Path(folder, "model.damvi"))
        ...     stream.save(pathlib.Path(folder, "stream.npz"))
        ...     model = load(pathlib.Path(folder, "model.damvi"))
        ...     again = VoteStream.load(pathlib.Path(folder, "stream.npz"), model)
        >>> bool((again.weights_ == stream.weights_).all())
        True
        """
        with whole_file(path) as file:
            np.savez(
                file,
                made_from=np.array(self._made_from),
                half_life=np.array(nan if self.half_life is None else self.half_life),
                min_rows=np.array(self.min_rows),
                n_rows_seen=np.array(self.n_rows_seen_),
                threshold=np.array(self.threshold_, np.float64),
                weights=self.weights_,
                **self._memory.as_arrays(),
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model) -> VoteStream:
        """The stream of a file of :meth:`save`, on the model that it was made from.

        Parameters
        ----------
        path : path
        model : DAMVIClassifier or DAMVIVotingClassifier
            As it was when the stream was made; a loaded one will do.
        """
        _check_model(model)
        layout, n_voters = Layout.of(model), len(model.weights_)
        try:
            arrays = _read_arrays(path, layout)
            half_life, min_rows = arrays["half_life"].item(), arrays["min_rows"].item()
            forgets = not np.isnan(half_life)
            memory = Memory.from_arrays(arrays, layout)
            n_rows, threshold = int(arrays["n_rows_seen"]), arrays["threshold"]
            weights, made_from = arrays["weights"], arrays["made_from"].item()
            sound = weights.dtype == np.float64 and weights.shape == (n_voters,)
            sound = sound and bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-9
            sound = sound and threshold.shape == np.shape(model.threshold_)
            if not sound or n_rows < 0 or not np.isfinite(threshold).all():
                raise ValueError("its numbers do not go together")
        except (
            *(KeyError, TypeError, ValueError, OverflowError, EOFError),
            zipfile.BadZipFile,
        ) as error:
            raise ValueError(
                f"{os.fspath(path)} is no stream of this model, or it is damaged: {error}"
            ) from error
        stream = cls(
            model,
            half_life=half_life if forgets else None,
            min_rows=min_rows,
            prior_rows=0,
        )
        if made_from != stream._made_from:
            raise ValueError(
                f"{os.fspath(path)} is a stream of another model; give the one that it was "
                f"made from, with the weights that it had"
            )
        stream.prior_rows = "auto"
        stream.weights_, stream.threshold_ = weights, threshold[()]
        stream.n_rows_seen_, stream._memory = n_rows, memory
        return stream

    @property
    def moments_(self) -> Moments:
        """Of the rows remembered, all classes, as the weights are learned from them."""
        return self._memory.class_moments(self._class_weight(self._memory)).moments()

    @property
    def rows_(self) -> Numbers:
        """How many rows of each class are remembered: of two, the positives last."""
        return self._memory.rows.copy()

    def vote(self, X: Any) -> Numbers:
        """The weighted vote for ``pos_label_``, in [-1, 1].

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        return self._present().vote(X)

    def decision_function(self, X: Any) -> Numbers:
        """The weighted vote less the threshold; above 0 means ``classes_[1]``.

        With three or more classes, the vote for each times its factor, (n, n_classes).
        """
        return self._present().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that wins the vote."""
        return self._present().predict(X)

    def __repr__(self) -> str:
        known = zip(self._memory.rows, self._layout.rows, strict=True)
        *first, last = [f"{rows:,.0f} {name}" for rows, name in known]
        return (
            f"VoteStream({len(self.weights_)} voters, half_life={self.half_life}; "
            f"{self.n_rows_seen_:,} rows seen, {', '.join(first)} and {last} remembered)"
        )

    def _present(self) -> Model:
        """The model with the weights and the threshold of now."""
        present = self._model
        present.weights_, present.threshold_ = self.weights_, self.threshold_
        return present

    def _start(self, model: Model) -> Memory:
        votes: Any = getattr(model, "votes_", None)
        wanted = self.prior_rows
        if isinstance(wanted, str) and wanted == "auto":
            wanted = 0 if votes is None else int((votes.folds >= 0).sum())
        rows = _check("prior_rows", wanted, "a number of rows, or 'auto'", included=True)
        if rows == 0:
            return Memory.none(self._layout)
        if votes is None:
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the votes on the training rows are "
                f"not saved with a model; make the stream where the model is fitted, and "
                f"keep it by its save, or start from nothing with prior_rows=0"
            )
        known = known_out_of_sample(votes, self._layout, self._settings, rows)
        if known is None and self.prior_rows != "auto":
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the voters have seen all rows of a "
                f"class, so the fit has no votes to start from; lower max_samples, or "
                f"start from nothing with prior_rows=0"
            )
        return known or Memory.none(self._layout)

    def _fading(self, n: int) -> tuple[float, Numbers | None]:
        """What is left of the rows before n new ones, and of each of these."""
        if self.half_life is None:
            return 1.0, None
        left = np.exp2(-np.arange(n, -1.0, -1.0) / self.half_life)
        return float(left[0]), left[1:]

    def _class_weight(self, memory: Memory) -> Numbers:
        """What a row of each class counts for, at the class rates of now."""
        if not memory.mass.all():
            return np.ones(len(memory.mass))
        balance = getattr(self._model, "balance", 0.0)
        return self._layout.labels.class_weight(memory.mass, balance)

    def _learn(self, memory: Memory) -> bool:
        """Solve for the weights, if enough is known."""
        if not (memory.rows >= self.min_rows).all() or not memory.mass.all():
            return False
        whole = memory.class_moments(self._class_weight(memory))
        moments = self._settings.moments(whole)
        if not (moments.m > 0).any():
            warnings.warn(
                "no voter does better than a coin on the rows remembered, so there is "
                "nothing to weight and the weights are kept; if it lasts, fit a new model",
                UserWarning,
                stacklevel=3,
            )
            return False
        self.weights_ = solve(moments, self._settings.solver).weights
        if self._settings.fit_intercept and self._follows:
            self.threshold_ = self._settings.threshold(whole, self.weights_)
        return True


def _check_model(model: Any) -> None:
    if hasattr(model, "classifier") and hasattr(model, "schema"):
        raise TypeError(
            "a VoteStream takes the estimator of a damvi.Model, and rows and labels as it "
            "knows them: stream = VoteStream(model.classifier), then "
            "stream.partial_fit(model.schema.encode(table), y), where y is whether a row "
            "is positive, or the place of its label in model.target.classes"
        )
    if not isinstance(model, Model):
        raise TypeError(
            f"a VoteStream takes a fitted DAMVIClassifier or DAMVIVotingClassifier, "
            f"not a {type(model).__name__}; of a pipeline, give the last step"
        )
    check_is_fitted(model, "weights_")


def _read_arrays(path: str | os.PathLike[str], layout: Layout) -> dict[str, Any]:
    """The arrays of a file, if they are no larger than those of such a stream."""
    expected = Memory.none(layout).as_arrays().values()
    with zipfile.ZipFile(path) as members:
        size = sum(max(one.file_size, one.compress_size) for one in members.infolist())
    room = 8 * layout.n_voters + ROOM_IN_FILE
    if size > sum(one.nbytes + ROOM_OF_ARRAY for one in expected) + room:
        raise ValueError("it is too large")
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _check(
    name: str, value: Any, wanted: str, *, above: float = 0.0, included: bool = False
) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and np.isfinite(value):
        number = float(value)
        if number > above or (included and number == above):
            return number
    raise ValueError(f"{name}={value!r}; give {wanted}")


class Change(NamedTuple):
    """A figure on the rows remembered, on those of the batch, and whether they differ.

    Attributes
    ----------
    before, now : float
        NaN where there are no rows to tell.
    p_value : float
        Chance alone makes a difference this large with at most this probability. It is
        Bernstein's inequality, which holds for few rows too and errs on the quiet side.
    """

    before: float
    now: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Drift:
    """How a batch compares with the rows before it, by weights that had not seen it.

    Attributes
    ----------
    n_rows : int
    changes : dict of str to Change
        All figures by name: those below, and of three or more classes ``rate_`` and
        ``gibbs_risk_`` with the label of each class.
    gibbs_risk : Change
        The mean error of a voter drawn by weight.
    disagreement : Change
        How often two such voters disagree; of three or more classes, on whether the row
        is of its class.
    positive_rate, gibbs_risk_positives : Change
        Of two classes. The Gibbs risk on the positives alone, which are too few to show
        in that of all.
    learned : bool
        Whether the weights were solved again with the batch, or kept.
    vote : ndarray of shape (n_rows,) or (n_rows, C)
        The vote on each row by weights that had not seen it: what a threshold or a
        calibration for the stream can be learned from.
    """

    n_rows: int
    changes: dict[str, Change]
    learned: bool
    vote: NDArray[np.float64] = field(repr=False)

    @property
    def gibbs_risk(self) -> Change:
        return self.changes["gibbs_risk"]

    @property
    def disagreement(self) -> Change:
        return self.changes["disagreement"]

    @property
    def positive_rate(self) -> Change:
        return self._of_positives("positive_rate")

    @property
    def gibbs_risk_positives(self) -> Change:
        return self._of_positives("gibbs_risk_positives")

    def _of_positives(self, name: str) -> Change:
        if name in self.changes:
            return self.changes[name]
        raise AttributeError(
            f"three or more classes have no {name}; drift.changes has the figures of each: "
            f"{', '.join(self.changes)}"
        )

    @property
    def beyond_chance(self) -> bool:
        """Whether a figure changed by more than chance explains, once in 100 batches."""
        level = LEVEL / len(self.changes)
        return any(change.p_value < level for change in self.changes.values())

    def as_dict(self) -> dict[str, float]:
        """Flat, as a row of a table: ``pd.DataFrame(drift.as_dict() for drift in ...)``."""
        row: dict[str, float] = {"n_rows": self.n_rows}
        for name, change in self.changes.items():
            row |= {f"{name}_{part}": value for part, value in change._asdict().items()}
        return row | {"learned": self.learned, "beyond_chance": self.beyond_chance}

    def __str__(self) -> str:
        titles = [name.replace("_", " ") for name in self.changes]
        width = max(TITLE, *map(len, titles))
        lines = [f"{f'{self.n_rows:,} rows':{width}}   before      now  p-value"]
        for title, (before, now, p_value) in zip(
            titles, self.changes.values(), strict=True
        ):
            lines.append(f"{title:{width}}{before:9.4f}{now:9.4f}{p_value:9.2g}")
        verdict = "more than" if self.beyond_chance else "no more than"
        weights = "solved again" if self.learned else "kept"
        return "\n".join([*lines, f"{verdict} chance explains; weights {weights}"])


class Sample(NamedTuple):
    """A mean, what it says of single rows, how many rows it is worth, and their range."""

    mean: float
    variance: float
    rows: float
    span: float = 1.0


class DriftFigures(NamedTuple):
    """The classes whose rate and Gibbs risk are watched, and the names of these."""

    targets: Sequence[int]
    rates: Sequence[str]
    risks: Sequence[str]


POSITIVES = DriftFigures([1], ["positive_rate"], ["gibbs_risk_positives"])


@dataclass(frozen=True, eq=False)
class Margins:
    """Sums over rows: a line for each class."""

    sums: NDArray[np.float64]

    @classmethod
    def none(cls, n_classes: int = 2) -> Margins:
        return cls(np.zeros((n_classes, 5)))

    @classmethod
    def of(
        cls,
        margin: NDArray[np.float64],
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None = None,
        n_classes: int = 2,
    ) -> Margins:
        weights = np.ones(len(margin)) if weights is None else weights
        square = margin**2
        powers = np.stack([np.ones_like(margin), weights, margin, square, square**2])
        return cls(
            np.stack(
                [(powers * weights)[:, targets == c].sum(axis=1) for c in range(n_classes)]
            )
        )

    def __add__(self, other: Margins) -> Margins:
        return Margins(self.sums + other.sums)

    def faded(self, factor: float) -> Margins:
        """The same rows, each with ``factor`` times its weight."""
        return Margins(self.sums * np.array([1, factor, 1, 1, 1]) * factor)

    def compared(
        self, now: Margins, figures: DriftFigures = POSITIVES
    ) -> dict[str, Change]:
        """These rows before, those now."""
        mine, other = self.samples(figures), now.samples(figures)
        return {
            name: Change(before.mean, other[name].mean, _p_value(before, other[name]))
            for name, before in mine.items()
        }

    def samples(self, figures: DriftFigures = POSITIVES) -> dict[str, Sample]:
        """The figures, by name."""
        whole, lines = self.sums.sum(axis=0), self.sums[list(figures.targets)]
        rows = _rows(whole)
        rates = [float(line[0] / whole[0]) if whole[0] > 0 else nan for line in lines]
        found = [Sample(rate, rate * (1 - rate), rows) for rate in rates]
        risks = [_half_of(line[0], line[2], line[3], _rows(line)) for line in lines]
        return {
            **dict(zip(figures.rates, found, strict=True)),
            "gibbs_risk": _half_of(whole[0], whole[2], whole[3], rows),
            "disagreement": _half_of(whole[0], whole[3], whole[4], rows, span=0.5),
            **dict(zip(figures.risks, risks, strict=True)),
        }


def _rows(sums: NDArray[np.float64]) -> float:
    """How many rows of equal weight tell as much (Kish)."""
    return float(sums[0] * (sums[0] / sums[1])) if sums[1] > 0 else 0.0


def _half_of(
    weight: float, first: float, second: float, rows: float, span: float = 1.0
) -> Sample:
    """The mean of (1 - value) / 2, from the sums of a value and of its square."""
    if rows == 0:
        return Sample(nan, nan, 0.0)
    mean = float(first / weight)
    variance = max(float(second / weight) - mean**2, 0.0) / 4
    return Sample((1 - mean) / 2, variance, rows, span)


def _p_value(before: Sample, now: Sample) -> float:
    """Bernstein's bound: how often means of like rows, within their span, differ so."""
    if before.rows == 0 or now.rows == 0:
        return nan
    gap = abs(now.mean - before.mean)
    if gap == 0:
        return 1.0
    share = now.rows / (before.rows + now.rows)
    # If there is no drift, all rows are of one kind, and so is their variance.
    variance = (1 - share) * before.variance + share * now.variance
    variance += share * (1 - share) * gap**2
    spread = variance * (1 / before.rows + 1 / now.rows)
    step = before.span / min(before.rows, now.rows)
    # Divided by the gap, whose square may be too small for a float.
    return min(2 * exp(-gap / (2 * (spread / gap + step / 3))), 1.0)


class Kept(NamedTuple):
    """Rows of a class, with an emphasis of step 2 or without."""

    name: str
    target: int
    strength: float


@dataclass(frozen=True, eq=False)
class Layout:
    """What is kept of each class, and what it is called.

    Attributes
    ----------
    labels : Labels
    n_voters : int
    kept : list of Kept
        In the order of classes. Any of three or more may be rare one day and frequent
        another, so the rows of each are kept with emphasis and without.
    n_voted : int
        The classes for which votes are added up: all of three or more, where a constant
        is fitted for each, else 0.
    rows : list of str
        What the rows of each class are called.
    figures : DriftFigures
    """

    labels: Labels
    n_voters: int
    kept: list[Kept]
    n_voted: int
    rows: list[str]
    figures: DriftFigures

    @classmethod
    def of(cls, model: Model) -> Layout:
        labels, settings = model.labels_, Settings.of(model)
        strength, n_voters = settings.reweight, len(model.weights_)
        if labels.is_binary:
            sides = [Kept("negatives", 0, 0.0), Kept("positives", 1, strength)]
            return cls(labels, n_voters, sides, 0, [one.name for one in sides], POSITIVES)
        kept = []
        for target in range(labels.n_classes):
            kept.append(Kept(f"class_{target}", target, 0.0))
            if strength:
                kept.append(Kept(f"class_{target}_emphasized", target, strength))
        names = labels.by_target.tolist()
        figures = DriftFigures(
            labels.reported.tolist(),
            [f"rate_{name}" for name in names],
            [f"gibbs_risk_{name}" for name in names],
        )
        n_voted = labels.n_classes if settings.fit_intercept else 0
        called = [f"of {name!r}" for name in names]
        return cls(labels, n_voters, kept, n_voted, called, figures)

    def places(self, rare: NDArray[np.bool_]) -> list[int]:
        """Those of ``kept`` that count for each class, of which these are rare."""
        found = []
        for target, is_rare in enumerate(rare.tolist()):
            own = [place for place, one in enumerate(self.kept) if one.target == target]
            found.append(own[-1] if is_rare else own[0])
        return found


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over rows of one class.

    Attributes
    ----------
    moments : Moments
    voted : ndarray of shape (n_voted, K)
        How much each voter votes for each class.
    """

    moments: Moments
    voted: Numbers

    def __add__(self, other: ClassSums) -> ClassSums:
        both = self.moments + other.moments
        both = both * 1.0 if both.total > ROOM else both
        return ClassSums(both, self.voted + other.voted)

    def __mul__(self, factor: float) -> ClassSums:
        return ClassSums(self.moments * factor, self.voted * factor)

    def shares(self, target: int) -> ClassShares | None:
        """The votes as moments about their means take them."""
        if not len(self.voted):
            return None
        own, rows = np.zeros((2, *self.voted.shape))
        own[target], rows[target] = self.voted[target], self.moments.total
        return ClassShares(own, self.voted, rows)


@dataclass(frozen=True, eq=False)
class Memory:
    """Sums over rows. Those of two blocks of rows add up to those of both.

    Attributes
    ----------
    layout : Layout
    sides : list of ClassSums
        Of each that the layout keeps.
    margins : Margins
        Of the votes by weights that had not seen the rows.
    rows : ndarray of shape (C,)
        The rows of each class that count, faded.
    mass : ndarray of shape (C,)
        Their weight, without emphasis.
    """

    layout: Layout
    sides: list[ClassSums]
    margins: Margins
    rows: Numbers
    mass: Numbers

    @classmethod
    def none(cls, layout: Layout) -> Memory:
        K, n_classes = layout.n_voters, layout.labels.n_classes
        zero = Moments(np.zeros(K, np.int64), np.zeros((K, K), np.int64), 0)
        sides = [ClassSums(zero, np.zeros((layout.n_voted, K)))] * len(layout.kept)
        nothing = np.zeros(n_classes)
        return cls(layout, sides, Margins.none(n_classes), nothing, nothing)

    @classmethod
    def of(
        cls,
        layout: Layout,
        votes: NDArray[Any],
        targets: NDArray[Any],
        margin: Numbers,
        *,
        weights: Numbers | None = None,
        fade: Numbers | None = None,
    ) -> Memory:
        """Of the rows of a batch; ``margin`` is by weights that have not seen it."""
        n, n_classes = len(targets), layout.labels.n_classes
        base = np.ones(n) if weights is None else weights
        counted = base > 0
        faded = np.ones(n) if fade is None else fade
        D = None if weights is None and fade is None else base * faded
        rows_of = [np.flatnonzero(targets == target) for target in range(n_classes)]
        sides = []
        for one in layout.kept:
            rows = rows_of[one.target]
            own = None if D is None else D[rows]
            sides.append(_sums(layout, one.strength, votes[rows], targets[rows], own))
        return cls(
            layout,
            sides,
            Margins.of(margin, targets, base * faded, n_classes),
            np.array([(faded * counted)[some].sum() for some in rows_of]),
            np.array([(faded * base)[some].sum() for some in rows_of]),
        )

    def class_moments(self, class_weight: Numbers) -> ClassMoments:
        """As weights are learned from them, with the classes that are rare by now."""
        rare = self.layout.labels.rare(self.mass)
        sides = [self.sides[place] for place in self.layout.places(rare)]
        return joined(
            [one.moments for one in sides],
            [one.shares(target) for target, one in enumerate(sides)],
            class_weight,
            rare,
        )

    def as_arrays(self) -> dict[str, Any]:
        """All of it by name."""
        found = {"margins": self.margins.sums, "rows": self.rows, "mass": self.mass}
        for (name, _, _), side in zip(self.layout.kept, self.sides, strict=True):
            own = side.moments
            sums = {"m": own.m, "M": own.M, "total": np.array(own.total)}
            sums |= {"voted": side.voted} if len(side.voted) else {}
            found |= {f"{name}_{key}": value for key, value in sums.items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], layout: Layout) -> Memory:
        """The same back, with the shapes that such a stream has; or a ValueError."""
        none = cls.none(layout)
        for name, expected in none.as_arrays().items():
            found = arrays[name]
            if found.shape != expected.shape or found.dtype not in (np.int64, np.float64):
                raise ValueError(f"{name} is of another kind or size")
            if not np.isfinite(found).all():
                raise ValueError(f"{name} is not finite")
        if min(arrays[name].min() for name in ("rows", "mass")) < 0:
            raise ValueError("it counts fewer than no rows")
        sides = [
            ClassSums(
                Moments(
                    arrays[f"{name}_m"], arrays[f"{name}_M"], arrays[f"{name}_total"].item()
                ),
                arrays.get(f"{name}_voted", np.zeros((0, layout.n_voters))),
            )
            for name, _, _ in layout.kept
        ]
        margins = Margins(arrays["margins"])
        return cls(layout, sides, margins, arrays["rows"], arrays["mass"])

    def __add__(self, other: Memory) -> Memory:
        return Memory(
            self.layout,
            [a + b for a, b in zip(self.sides, other.sides, strict=True)],
            self.margins + other.margins,
            self.rows + other.rows,
            self.mass + other.mass,
        )

    def faded(self, factor: float) -> Memory:
        """The same rows, each counting for ``factor`` times as much."""
        if factor == 1:
            return self  # whole numbers stay whole
        return Memory(
            self.layout,
            [side * factor for side in self.sides],
            self.margins.faded(factor),
            self.rows * factor,
            self.mass * factor,
        )


def _sums(
    layout: Layout,
    strength: float,
    votes: NDArray[Any],
    targets: NDArray[Any],
    weights: Numbers | None,
) -> ClassSums:
    """Of rows of one class."""
    lean = None
    if strength:
        margin = plain_margin(votes, targets, layout.labels.n_classes)
        lean = emphasis(margin, strength)
    signed, signs = signed_votes(votes, targets, layout.labels.n_classes)
    base = np.ones(len(votes)) if weights is None else weights
    D = np.ldexp(base if lean is None else base * lean, FRACTIONAL_BITS)
    if weights is None:
        D = np.rint(D)
        moments = Moments.of(signed, signs, lean)
    else:
        # Not in the fixed point of other moments, whose rounding would tell small batches,
        # where each row starts at full weight, from large ones.
        H = signed.astype(np.float64)
        with one_blas_thread():
            m = H.T @ (D * signs)
            H *= np.sqrt(D)[:, np.newaxis]
            M = H.T @ H
        moments = Moments(m, M, float(D.sum()))
    voted = np.zeros((layout.n_voted, layout.n_voters))
    with one_blas_thread():
        for target in range(layout.n_voted):
            voted[target] = D @ layout.labels.votes_for(votes, target)
    return ClassSums(moments, voted)


def joined(
    sides: Sequence[Any],
    shares: Sequence[ClassShares | None],
    class_weight: Numbers,
    rare: NDArray[np.bool_],
) -> ClassMoments:
    """The moments of each class as one, a row of each counting for so much."""

    def total(some: list[Any], weights: list[float]) -> Any:
        parts = [
            one if weight == 1 else one * weight
            for one, weight in zip(some, weights, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def side(own: NDArray[np.bool_]) -> Any:
        some = [sides[place] for place in np.flatnonzero(own).tolist()]
        return total(some, class_weight[own].tolist()) if some else sides[0] - sides[0]

    voted = None if shares[0] is None else total([*shares], class_weight.tolist())
    return ClassMoments(side(~rare), side(rare), len(sides), voted)


def known_out_of_sample(
    votes: Any, layout: Layout, settings: Settings, n_rows: float
) -> Memory | None:
    """The votes of the fit on out-of-sample rows, counting for ``n_rows`` rows in all.

    None where the voters were trained on all rows of a class, so that nothing is known.

    Votes on rows that the voters were trained on are left out, whatever the model's own
    weights were learned from: beside new rows they would be mere optimism.
    """
    honest = votes.out_of_sample()
    of_class = [honest.of_class(one.target, one.strength > 0) for one in layout.kept]
    by_fold = [
        own.moments_by_fold(one.strength, fit_intercept=settings.fit_intercept)
        for one, own in zip(layout.kept, of_class, strict=True)
    ]
    if not all(by_fold):
        return None
    # The last folds may lack a class.
    by_fold = [
        folds + [folds[0] - folds[0]] * (votes.n_folds - len(folds)) for folds in by_fold
    ]
    wholes = [sum(folds[1:], start=folds[0]) for folds in by_fold]
    if not all(_has_votes(_side(whole)) for whole in wholes):
        return None
    judged = votes.folds >= 0
    targets, base = votes.targets[judged], np.ones(int(judged.sum()))
    if votes.sample_weight is not None:
        base = votes.sample_weight[judged]
    weights = [base[targets == target] for target in range(layout.labels.n_classes)]
    mass = np.array([some.sum() for some in weights])
    rare = layout.labels.rare(mass)
    others = [moments_of_others(folds, votes.forward) for folds in by_fold]
    taken = [others[place] for place in layout.places(rare)]
    learned = []
    for fold in zip(*taken, strict=True):
        sides, shares = [_side(one) for one in fold], [one.shares for one in fold]
        learned.append(joined(sides, shares, votes.class_weight, rare))
    found = crossfit_weights([settings.moments(one) for one in learned], settings.solver)
    plain = [of_class[place] for place in layout.places(np.zeros_like(rare))]
    known = Memory(
        layout,
        [_plain(whole, one.target) for one, whole in zip(layout.kept, wholes, strict=True)],
        _crossfitted_margins([own.moments_by_fold(0.0) for own in plain], found, weights),
        np.array([float((some > 0).sum()) for some in weights]),
        mass,
    )
    scaled = known.faded(n_rows / float(mass.sum()))
    return replace(scaled, rows=known.rows * (n_rows / len(targets)))


def _crossfitted_margins(
    classes: list[list[ClassMoments]], found: list[Any], weights: list[Numbers]
) -> Margins:
    """The margins on each fold, by weights of the others."""
    sums = np.zeros((len(classes), 5))
    for line, folds in enumerate(classes):
        for fold, solved in zip(folds, found, strict=False):  # the last may lack the class
            Q = solved.weights / solved.weights.sum()
            m, M, total = _means(_side(fold))
            # x**4 is no more than x**2, so the spread of the disagreement is no less.
            square = float(np.clip(Q @ M @ Q, 0, 1))
            sums[line] += total * np.array([1, 0, m @ Q, square, square])
    sums[:, 1] = [(some**2).sum() for some in weights]
    return Margins(sums)


def _side(one: ClassMoments) -> Any:
    """Of rows of one class, which are all on one side."""
    return one.negatives + one.positives


def _has_votes(side: Side) -> bool:
    return isinstance(side, Moments) or bool(np.diag(side.rows.M).any())


def _plain(whole: ClassMoments, target: int) -> ClassSums:
    """Means over the rows of each pair of voters as if over all: what new rows add to."""
    side, shares = _side(whole), whole.shares
    moments = side if isinstance(side, Moments) else side.at(2) * float(side.total)
    if shares is None:
        return ClassSums(moments, np.zeros((0, moments.n_voters)))
    scale = side.total / np.maximum(shares.rows[target], 1)
    return ClassSums(moments, shares.every * scale)


def _means(side: Side) -> tuple[Any, Any, float]:
    """m and M of a row, where each is known, and the weight of the rows."""
    total = float(side.total)
    weight = total / 2.0**30
    if isinstance(side, Moments):
        return side.m / max(total, 1), side.M / max(total, 1), weight
    rows = np.maximum(np.asarray(side.rows.M, np.float64), 1.0)
    return side.sums.m / np.diag(rows), side.sums.M / rows, weight
