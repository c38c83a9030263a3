"""Votes on rows that arrive one batch after another: the voters stay, the weights follow.

The moments of votes are sums over rows, so each batch is added to them and forgotten. What
the vote was like on the rows so far is kept as sums too, to tell whether new rows are like
them: a row's margin x is judged by weights that have not seen the row, and of each class
the sums of w, w**2, wx, wx**2 and wx**4 are kept. The vote's square is x**2, so they hold
the means and the variances of Gibbs risk and disagreement.
"""

from __future__ import annotations

import copy
import os
import warnings
import zipfile
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import exp, nan
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._files import whole_file
from ._threads import one_blas_thread
from .classifier import DAMVIClassifier
from .crossfit import crossfit_weights
from .moments import FRACTIONAL_BITS, ClassMoments, Moments, OutOfBagMoments
from .reweighting import emphasis, plain_margin
from .solvers import solve
from .validation import check_weights
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
"""Bytes of a file beside the moments: names, and sums of a few numbers."""
TESTED = ("positive_rate", "gibbs_risk", "disagreement", "gibbs_risk_positives")


class VoteStream:
    """Weight the voters of a fitted model again as labelled rows arrive.

    The voters stay as they are. The moments of their votes are sums over rows, so each
    batch is added to them and forgotten, and the weights are solved again in milliseconds.
    What is learned does not depend on how the rows are cut into batches.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        Fitted, of two classes. It is not changed.
    half_life : float, default=None
        After this many rows a row counts for half as much. None: nothing is forgotten.
    prior_rows : "auto" or float, default="auto"
        How many rows the votes of the fit count for, on rows that the voters were not
        trained on (out of bag or out of fold); 0 leaves them out. "auto": as many as the
        fit had, or 0 where the model no longer has its votes, as after loading it, or
        where the voters have seen all rows.
    min_rows : float, default=50
        The weights are kept while fewer rows than this of either class are remembered.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        The weights at present, on the simplex. The model's, until enough rows are known.
    threshold_ : float
        Where the vote is cut: the model's, and yours to set. With ``fit_intercept`` and
        ``threshold="vote"`` it follows the weights.
    moments_ : Moments
        Of the rows remembered, as the weights are learned from them.
    rows_ : ndarray of shape (2,)
        How many negatives and positives are remembered; each fades as others come.
    n_rows_seen_ : int
        The rows given so far.
    classes_, pos_label_
        Those of the model.

    Notes
    -----
    Emphasis, balance, shrinkage and solver are the model's; a pool that kept the plain vote
    keeps it. The calibration of a pool's
    voters stays as well, and so does the threshold; the votes that a
    :class:`~damvi.streaming.Drift` holds are what to learn others from.

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
    """

    def __init__(
        self,
        model: Model,
        *,
        half_life: float | None = None,
        prior_rows: float | str = "auto",
        min_rows: float = 50,
    ) -> None:
        if not isinstance(model, Model):
            raise TypeError(
                f"a VoteStream takes a fitted DAMVIClassifier or DAMVIVotingClassifier, "
                f"not a {type(model).__name__}; of a pipeline, give the last step"
            )
        check_is_fitted(model, "weights_")
        if len(model.classes_) > 2:
            raise ValueError(
                f"a VoteStream takes two classes so far, and the model has "
                f"{len(model.classes_)}; fit one class against the rest, as in "
                f"y == {model.classes_.tolist()[0]!r}"
            )
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
        threshold = model.threshold
        self._untuned = isinstance(threshold, str) and threshold == "vote"
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
        targets = self._model.labels_.targets_of(y)
        signs = np.where(targets == 1, np.int8(1), np.int8(-1))
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(signs))
        if weights is not None and weights.max(initial=0.0) > MOST_WEIGHT:
            raise ValueError(
                f"sample_weight is up to {weights.max():g}, and a row like any other "
                f"counts for 1; divide the weights by what such a row has"
            )
        if len(signs) == 0:
            nothing = self._memory.margins.compared(Margins.none())
            return Drift(0, **nothing, learned=False, vote=np.empty(0))
        votes = self._model.cast_votes(X)
        vote = np.empty(len(signs))
        kept, fade = self._fading(len(signs))
        memory = self._memory.faded(kept)
        step = max(BLOCK_BYTES // (8 * votes.shape[1]), 1)
        for start in range(0, len(signs), step):
            rows = slice(start, start + step)
            vote[rows] = votes[rows] @ self.weights_
            memory += Memory.of(
                votes[rows],
                signs[rows],
                vote[rows],
                weights=None if weights is None else weights[rows],
                fade=None if fade is None else fade[rows],
                strength=self._settings.reweight,
            )
        now = Margins.of(signs * vote, signs > 0, weights)
        changes = self._memory.margins.compared(now)
        learned = self._learn(memory)
        self._memory = memory
        self.n_rows_seen_ += len(signs)
        return Drift(len(signs), **changes, learned=learned, vote=vote)

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
                threshold=np.array(float(self.threshold_)),
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
        check_is_fitted(model, "weights_")
        n_voters = len(model.weights_)
        try:
            arrays = _read_arrays(path, n_voters)
            half_life, min_rows = arrays["half_life"].item(), arrays["min_rows"].item()
            forgets = not np.isnan(half_life)
            memory = Memory.from_arrays(arrays, n_voters)
            n_rows, threshold = int(arrays["n_rows_seen"]), float(arrays["threshold"])
            weights, made_from = arrays["weights"], arrays["made_from"].item()
            sound = weights.dtype == np.float64 and weights.shape == (n_voters,)
            sound = sound and bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-9
            if not sound or n_rows < 0 or not np.isfinite(threshold):
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
        stream.weights_, stream.threshold_ = weights, threshold
        stream.n_rows_seen_, stream._memory = n_rows, memory
        return stream

    @property
    def moments_(self) -> Moments:
        """Of the rows remembered, both classes, as the weights are learned from them."""
        return weighted(self._memory.moments, self._class_weight(self._memory)).moments()

    @property
    def rows_(self) -> Numbers:
        """How many negatives and positives are remembered."""
        return self._memory.rows.copy()

    def vote(self, X: Any) -> Numbers:
        """The weighted vote for ``pos_label_``, in [-1, 1]."""
        return self._present().vote(X)

    def decision_function(self, X: Any) -> Numbers:
        """The weighted vote less the threshold; above 0 means ``classes_[1]``."""
        return self._present().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that wins the vote."""
        return self._present().predict(X)

    def __repr__(self) -> str:
        down, up = self._memory.rows
        return (
            f"VoteStream({len(self.weights_)} voters, half_life={self.half_life}; "
            f"{self.n_rows_seen_:,} rows seen, {down:,.0f} negatives and {up:,.0f} "
            f"positives remembered)"
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
            return Memory.none(len(model.weights_))
        if votes is None:
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the votes on the training rows are "
                f"not saved with a model; make the stream where the model is fitted, and "
                f"keep it by its save, or start from nothing with prior_rows=0"
            )
        known = known_out_of_sample(votes, self._settings, rows)
        if known is None and self.prior_rows != "auto":
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the voters have seen all rows of a "
                f"class, so the fit has no votes to start from; lower max_samples, or "
                f"start from nothing with prior_rows=0"
            )
        return known or Memory.none(len(model.weights_))

    def _fading(self, n: int) -> tuple[float, Numbers | None]:
        """What is left of the rows before n new ones, and of each of these."""
        if self.half_life is None:
            return 1.0, None
        left = np.exp2(-np.arange(n, -1.0, -1.0) / self.half_life)
        return float(left[0]), left[1:]

    def _class_weight(self, memory: Memory) -> float:
        """How many negatives a positive counts for, at the class rate of now."""
        if not memory.mass.all():
            return 1.0
        balance = getattr(self._model, "balance", 0.0)
        return float(memory.mass[0] / memory.mass[1]) ** balance

    def _learn(self, memory: Memory) -> bool:
        """Solve for the weights, if enough is known."""
        if not (memory.rows >= self.min_rows).all() or not memory.mass.all():
            return False
        whole = weighted(memory.moments, self._class_weight(memory))
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
        if self._settings.fit_intercept and self._untuned:
            self.threshold_ = self._settings.threshold(whole, self.weights_)
        return True


def _read_arrays(path: str | os.PathLike[str], n_voters: int) -> dict[str, Any]:
    """The arrays of a file, if they are no larger than those of so many voters."""
    with zipfile.ZipFile(path) as members:
        size = sum(max(one.file_size, one.compress_size) for one in members.infolist())
    if size > 2 * 8 * n_voters * (n_voters + 2) + ROOM_IN_FILE:
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
    positive_rate : Change
    gibbs_risk : Change
        The mean error of a voter drawn by weight.
    disagreement : Change
        How often two such voters disagree.
    gibbs_risk_positives : Change
        The Gibbs risk on the positives alone, which are too few to show in that of all.
    learned : bool
        Whether the weights were solved again with the batch, or kept.
    vote : ndarray of shape (n_rows,)
        The vote on each row by weights that had not seen it: what a threshold or a
        calibration for the stream can be learned from.
    """

    n_rows: int
    positive_rate: Change
    gibbs_risk: Change
    disagreement: Change
    gibbs_risk_positives: Change
    learned: bool
    vote: NDArray[np.float64] = field(repr=False)

    @property
    def beyond_chance(self) -> bool:
        """Whether a figure changed by more than chance explains, once in 100 batches."""
        values = [getattr(self, name).p_value for name in TESTED]
        return any(value < LEVEL / len(TESTED) for value in values)

    def as_dict(self) -> dict[str, float]:
        """Flat, as a row of a table: ``pd.DataFrame(drift.as_dict() for drift in ...)``."""
        row: dict[str, float] = {"n_rows": self.n_rows}
        for name in TESTED:
            change = getattr(self, name)
            row |= {f"{name}_{part}": value for part, value in change._asdict().items()}
        return row | {"learned": self.learned, "beyond_chance": self.beyond_chance}

    def __str__(self) -> str:
        lines = [f"{f'{self.n_rows:,} rows':22}   before      now  p-value"]
        for name in TESTED:
            before, now, p_value = getattr(self, name)
            title = name.replace("_", " ")
            lines.append(f"{title:22}{before:9.4f}{now:9.4f}{p_value:9.2g}")
        verdict = "more than" if self.beyond_chance else "no more than"
        weights = "solved again" if self.learned else "kept"
        return "\n".join([*lines, f"{verdict} chance explains; weights {weights}"])


class _Sample(NamedTuple):
    """A mean, what it says of single rows, and how many rows it is worth."""

    mean: float
    variance: float
    rows: float


@dataclass(frozen=True, eq=False)
class Margins:
    """Sums over rows: a line for the negatives, one for the positives."""

    sums: NDArray[np.float64]

    @classmethod
    def none(cls) -> Margins:
        return cls(np.zeros((2, 5)))

    @classmethod
    def of(
        cls,
        margin: NDArray[np.float64],
        positive: NDArray[np.bool_],
        weights: NDArray[np.float64] | None = None,
    ) -> Margins:
        weights = np.ones(len(margin)) if weights is None else weights
        square = margin**2
        powers = np.stack([np.ones_like(margin), weights, margin, square, square**2])
        return cls(
            np.stack(
                [(powers * weights)[:, side].sum(axis=1) for side in (~positive, positive)]
            )
        )

    def __add__(self, other: Margins) -> Margins:
        return Margins(self.sums + other.sums)

    def faded(self, factor: float) -> Margins:
        """The same rows, each with ``factor`` times its weight."""
        return Margins(self.sums * np.array([1, factor, 1, 1, 1]) * factor)

    def compared(self, now: Margins) -> dict[str, Change]:
        """These rows before, those now."""
        mine, other = self._samples(), now._samples()
        spans = 1.0, 1.0, 0.5, 1.0
        return {
            name: Change(
                mine[name].mean, other[name].mean, _p_value(mine[name], other[name], span)
            )
            for name, span in zip(TESTED, spans, strict=True)
        }

    def _samples(self) -> dict[str, _Sample]:
        both, positives = self.sums.sum(axis=0), self.sums[1]
        rate = float(positives[0] / both[0]) if both[0] > 0 else nan
        rows = _rows(both)
        return {
            "positive_rate": _Sample(rate, rate * (1 - rate), rows),
            "gibbs_risk": _half_of(both[0], both[2], both[3], rows),
            "disagreement": _half_of(both[0], both[3], both[4], rows),
            "gibbs_risk_positives": _half_of(
                positives[0], positives[2], positives[3], _rows(positives)
            ),
        }


def _rows(sums: NDArray[np.float64]) -> float:
    """How many rows of equal weight tell as much (Kish)."""
    return float(sums[0] * (sums[0] / sums[1])) if sums[1] > 0 else 0.0


def _half_of(weight: float, first: float, second: float, rows: float) -> _Sample:
    """The mean of (1 - value) / 2, from the sums of a value and of its square."""
    if rows == 0:
        return _Sample(nan, nan, 0.0)
    mean = float(first / weight)
    return _Sample((1 - mean) / 2, max(float(second / weight) - mean**2, 0.0) / 4, rows)


def _p_value(before: _Sample, now: _Sample, span: float) -> float:
    """Bernstein's bound: how often means of like rows, within ``span``, differ so."""
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
    step = span / min(before.rows, now.rows)
    # Divided by the gap, whose square may be too small for a float.
    return min(2 * exp(-gap / (2 * (spread / gap + step / 3))), 1.0)


@dataclass(frozen=True, eq=False)
class Memory:
    """Sums over rows. Those of two blocks of rows add up to those of both.

    Attributes
    ----------
    moments : ClassMoments
        The moments of each class, with the emphasis of step 2.
    margins : Margins
        Of the votes by weights that had not seen the rows.
    rows : ndarray of shape (2,)
        Negatives and positives that count, faded.
    mass : ndarray of shape (2,)
        Their weight, without emphasis.
    """

    moments: ClassMoments
    margins: Margins
    rows: Numbers
    mass: Numbers

    @classmethod
    def none(cls, n_voters: int) -> Memory:
        zero = Moments(np.zeros(n_voters, np.int64), np.zeros((n_voters,) * 2, np.int64), 0)
        return cls(ClassMoments(zero, zero), Margins.none(), np.zeros(2), np.zeros(2))

    @classmethod
    def of(
        cls,
        votes: NDArray[Any],
        signs: NDArray[np.int8],
        vote: Numbers,
        *,
        weights: Numbers | None = None,
        fade: Numbers | None = None,
        strength: float = 1.0,
    ) -> Memory:
        """Of the rows of a batch, ``vote`` being that of weights that have not seen it."""
        sides = [np.flatnonzero(signs < 0), np.flatnonzero(signs > 0)]
        base = np.ones(len(signs)) if weights is None else weights
        counted = base > 0
        faded = np.ones(len(signs)) if fade is None else fade
        plain = weights is None and fade is None
        negatives, positives = [
            _moments(votes[some], sign, None if plain else (base * faded)[some], by)
            for some, sign, by in zip(sides, (-1, 1), (0.0, strength), strict=True)
        ]
        return cls(
            ClassMoments(negatives, positives),
            Margins.of(signs * vote, signs > 0, base * faded),
            np.array([(faded * counted)[some].sum() for some in sides]),
            np.array([(faded * base)[some].sum() for some in sides]),
        )

    def as_arrays(self) -> dict[str, Any]:
        """All of it by name."""
        found = {"margins": self.margins.sums, "rows": self.rows, "mass": self.mass}
        for name in ("negatives", "positives"):
            side: Any = getattr(self.moments, name)
            sums = {"m": side.m, "M": side.M, "total": np.array(side.total)}
            found |= {f"{name}_{key}": value for key, value in sums.items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], n_voters: int) -> Memory:
        """The same back, with the shapes that so many voters have; or a ValueError."""
        none = cls.none(n_voters).as_arrays()
        for name, expected in none.items():
            found = arrays[name]
            if found.shape != expected.shape or found.dtype not in (np.int64, np.float64):
                raise ValueError(f"{name} is of another kind or size")
            if not np.isfinite(found).all():
                raise ValueError(f"{name} is not finite")
        if min(arrays[name].min() for name in ("rows", "mass")) < 0:
            raise ValueError("it counts fewer than no rows")
        negatives, positives = [
            Moments(
                arrays[f"{name}_m"], arrays[f"{name}_M"], arrays[f"{name}_total"].item()
            )
            for name in ("negatives", "positives")
        ]
        margins = Margins(arrays["margins"])
        moments = ClassMoments(negatives, positives)
        return cls(moments, margins, arrays["rows"], arrays["mass"])

    def __add__(self, other: Memory) -> Memory:
        moments = self.moments + other.moments
        return Memory(
            ClassMoments(_roomy(moments.negatives), _roomy(moments.positives)),
            self.margins + other.margins,
            self.rows + other.rows,
            self.mass + other.mass,
        )

    def faded(self, factor: float) -> Memory:
        """The same rows, each counting for ``factor`` times as much."""
        if factor == 1:
            return self  # whole numbers stay whole
        return Memory(
            ClassMoments(self.moments.negatives * factor, self.moments.positives * factor),
            self.margins.faded(factor),
            self.rows * factor,
            self.mass * factor,
        )


def _moments(
    votes: NDArray[Any], sign: int, weights: Numbers | None, strength: float
) -> Moments:
    """Of rows of one class."""
    lean = None
    if strength:
        lean = emphasis(plain_margin(votes, np.ones(len(votes), np.intp), 2), strength)
    if weights is None:
        return Moments.of(votes, np.full(len(votes), sign), lean)
    # Not in the fixed point of other moments, whose rounding would tell small batches,
    # where each row starts at full weight, from large ones.
    D = np.ldexp(weights if lean is None else weights * lean, FRACTIONAL_BITS)
    H = votes.astype(np.float64)
    with one_blas_thread():
        m = H.T @ D * sign
        H *= np.sqrt(D)[:, np.newaxis]
        M = H.T @ H
    return Moments(m, M, float(D.sum()))


def _roomy(side: Side) -> Side:
    return side * 1.0 if side.total > ROOM else side


def known_out_of_sample(votes: Any, settings: Settings, n_rows: float) -> Memory | None:
    """The votes of the fit on out-of-sample rows, counting for ``n_rows`` rows in all.

    None where the voters were trained on all rows of a class, so that nothing is known.

    Votes on rows that the voters were trained on are left out, whatever the model's own
    weights were learned from: beside new rows they would be mere optimism.
    """
    honest = votes.out_of_sample()
    folds = honest.moments_by_fold(settings.reweight)
    whole = sum(folds[1:], start=folds[0])
    if not (_has_votes(whole.negatives) and _has_votes(whole.positives)):
        return None
    judged = votes.folds >= 0
    up = votes.targets[judged] == 1
    base = np.ones(len(up))
    if votes.sample_weight is not None:
        base = votes.sample_weight[judged]
    sides = [base[~up], base[up]]
    mass = np.array([side.sum() for side in sides])
    others = [
        weighted(one, float(votes.class_weight[1]))
        for one in moments_of_others(folds, votes.forward)
    ]
    found = crossfit_weights([settings.moments(one) for one in others], settings.solver)
    known = Memory(
        ClassMoments(_plain(whole.negatives), _plain(whole.positives)),
        _crossfitted_margins(honest.moments_by_fold(0.0), found, sides),
        np.array([float((side > 0).sum()) for side in sides]),
        mass,
    )
    scaled = known.faded(n_rows / float(mass.sum()))
    return replace(scaled, rows=known.rows * (n_rows / len(up)))


def _crossfitted_margins(
    folds: list[ClassMoments], found: list[Any], sides: list[Numbers]
) -> Margins:
    """The margins on each fold, by weights of the others."""
    sums = np.zeros((2, 5))
    for fold, weights in zip(folds, found, strict=True):
        Q = weights.weights / weights.weights.sum()
        for line, side in enumerate((fold.negatives, fold.positives)):
            m, M, total = _means(side)
            # x**4 is no more than x**2, so the spread of the disagreement is no less.
            square = float(np.clip(Q @ M @ Q, 0, 1))
            sums[line] += total * np.array([1, 0, m @ Q, square, square])
    sums[:, 1] = [(side**2).sum() for side in sides]
    return Margins(sums)


def weighted(moments: ClassMoments, class_weight: float) -> ClassMoments:
    """The same, with each positive counting for so many negatives."""
    if class_weight == 1:
        return moments
    return replace(moments, positives=moments.positives * class_weight)


def _has_votes(side: Side) -> bool:
    return isinstance(side, Moments) or bool(np.diag(side.rows.M).any())


def _plain(side: Side) -> Moments:
    """Means over the rows of each pair of voters as if over all: what new rows add to."""
    return side if isinstance(side, Moments) else side.at(2) * float(side.total)


def _means(side: Side) -> tuple[Any, Any, float]:
    """m and M of a row, where each is known, and the weight of the rows."""
    total = float(side.total)
    weight = total / 2.0**30
    if isinstance(side, Moments):
        return side.m / max(total, 1), side.M / max(total, 1), weight
    rows = np.maximum(np.asarray(side.rows.M, np.float64), 1.0)
    return side.sums.m / np.diag(rows), side.sums.M / rows, weight
