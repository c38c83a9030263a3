"""VoteStream: the voters stay, and their weights follow the rows that arrive."""

from __future__ import annotations

import copy
import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..classifier import DAMVIClassifier
from ..moments import Moments
from ..reading import read_new_labels, read_new_weights
from ..solvers import solve
from .drift import Drift, Margins
from .memory import Memory
from .start import leaning, out_of_sample

Numbers = NDArray[np.float64]

BLOCK_BYTES = 2**25
"""Votes in doubles that are added up at a time."""
MOST_WEIGHT = 1e12
"""More rows than any stream has; the squares of much larger sums are no numbers."""


class VoteStream:
    """Weight the voters of a fitted model again as labelled rows arrive.

    The voters stay as they are. The moments of their votes are sums over rows, so each
    batch is added to them and forgotten, and the weights are solved again in milliseconds.
    What is learned does not depend on how the rows are cut into batches.

    Parameters
    ----------
    model : DAMVIClassifier
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
        Where the vote is cut: the model's, and yours to set. With ``threshold="joint"``
        it is fitted along with the weights.
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
    Emphasis, balance, shrinkage and solver are the model's. The calibration of a pool's
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
        model: DAMVIClassifier,
        *,
        half_life: float | None = None,
        prior_rows: float | str = "auto",
        min_rows: float = 50,
    ) -> None:
        if not isinstance(model, DAMVIClassifier):
            raise TypeError(
                f"a VoteStream takes a fitted DAMVIClassifier, not a "
                f"{type(model).__name__}; of a pipeline, give the last step"
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
        # The voters, without the votes of the fit: what the model is put through later
        # does not reach them.
        self._model = copy.copy(model)
        del self._model._decision
        self._rule = model._rule()._replace(eta=0.0)
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
        signs = read_new_labels(y, self.classes_, self.pos_label_)
        weights = read_new_weights(sample_weight, len(signs))
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
                strength=self._rule.emphasis,
            )
        now = Margins.of(signs * vote, signs > 0, weights)
        changes = self._memory.margins.compared(now)
        learned = self._learn(memory)
        self._memory = memory
        self.n_rows_seen_ += len(signs)
        return Drift(len(signs), **changes, learned=learned, vote=vote)

    @property
    def moments_(self) -> Moments:
        """Of the rows remembered, both classes, as the weights are learned from them."""
        return leaning(self._memory.tally, self._lean(self._memory)).moments()

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

    def _present(self) -> DAMVIClassifier:
        """The model with the weights and the threshold of now."""
        present = self._model
        present.weights_, present.threshold_ = self.weights_, self.threshold_
        return present

    def _start(self, model: DAMVIClassifier) -> Memory:
        ballots: Any = getattr(model, "_ballots", None)
        wanted = self.prior_rows
        if isinstance(wanted, str) and wanted == "auto":
            wanted = 0 if ballots is None else len(ballots.signs)
        rows = _check("prior_rows", wanted, "a number of rows, or 'auto'", included=True)
        if rows == 0:
            return Memory.none(len(model.weights_))
        if ballots is None:
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the votes of the fit are not saved "
                f"with a model; make the stream where the model is fitted, and pickle "
                f"the stream, or start from nothing with prior_rows=0"
            )
        known = out_of_sample(ballots, self._rule, rows)
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

    def _lean(self, memory: Memory) -> float:
        """How many negatives a positive counts for, at the class rate of now."""
        if not memory.mass.all():
            return 1.0
        return float(self._model._contest.lean(memory.mass, self._model._balance))

    def _learn(self, memory: Memory) -> bool:
        """Solve for the weights, if enough is known."""
        if not (memory.rows >= self.min_rows).all() or not memory.mass.all():
            return False
        tally = leaning(memory.tally, self._lean(memory))
        moments = self._rule.moments(tally)
        if not (moments.m > 0).any():
            warnings.warn(
                "no voter does better than a coin on the rows remembered, so there is "
                "nothing to weight and the weights are kept; if it lasts, fit a new model",
                UserWarning,
                stacklevel=3,
            )
            return False
        self.weights_ = solve(moments, self._rule.solver).weights
        if self._rule.jointly:
            self.threshold_ = self._rule.threshold(tally, self.weights_)
        return True


def _check(
    name: str, value: Any, wanted: str, *, above: float = 0.0, included: bool = False
) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and np.isfinite(value):
        number = float(value)
        if number > above or (included and number == above):
            return number
    raise ValueError(f"{name}={value!r}; give {wanted}")
