"""A stream: the voters of a model, reweighted as labelled rows arrive."""

from __future__ import annotations

import copy
import os
import warnings
import zipfile
from hashlib import sha256
from math import nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._files import whole_file
from ..moments import Moments
from ..solvers import solve
from ..validation import check_weights
from ..votes import signed_votes
from ..weighting import Settings
from .drift import Drift, Margins
from .memory import Layout, Memory, Model, known_out_of_sample

Numbers = NDArray[np.float64]

BLOCK_BYTES = 2**25
"""Maximum number of votes in doubles that are summed at a time."""
MOST_WEIGHT = 1e12
"""Upper limit on row counts; squares of much larger sums overflow."""
ROOM_IN_FILE = 2**16
"""Size of a file in addition to the moments: names, and a few sums ..."""
ROOM_OF_ARRAY = 2**9
"""... and the overhead per array."""


class VoteStream:
    """Reweight the voters of a fitted model as labelled rows arrive.

    The voters stay fixed. The moments of their votes are sums over rows, so each batch is
    added and then forgotten, and the weights are solved again in milliseconds. The result
    does not depend on how the rows are split into batches.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        Fitted or loaded, with any number of classes. It is not modified. For a
        :class:`damvi.model.Model`, pass its ``classifier``.
    half_life : float, default=None
        Number of rows after which a row's weight is halved. None: no decay.
    prior_rows : "auto" or float, default="auto"
        Weight, in rows, of the fit's votes on rows that the voters were not trained on (out
        of bag or out of fold); 0 leaves them out. "auto": the number of rows of the fit, or
        0 if the model no longer has these votes (after loading it) or the voters were
        trained on all rows.
    min_rows : float, default=50
        The weights are kept as long as any class has fewer remembered rows than this.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Current weights, on the simplex. Initially those of the model.
    threshold_ : float or ndarray of shape (C,)
        Threshold of the vote, or the factors of three or more classes: the model's, and
        yours to set. For two classes with ``fit_intercept`` and ``threshold="vote"``, it
        follows the weights.
    moments_ : Moments
        Moments of the remembered rows, from which the weights are learned.
    rows_ : ndarray of shape (C,)
        Number of remembered negatives and positives, or rows of each of three or more
        classes, with decay.
    n_rows_seen_ : int
        Number of rows given so far.
    classes_, pos_label_
        Those of the model.

    Notes
    -----
    Emphasis, class balance, shrinkage and solver are the model's; a pool that kept the
    plain vote keeps it. Which of three or more classes are rare, and so emphasized in step
    2, follows the current class rates. The calibration of a pool's voters and the threshold
    do not change; use the votes in :class:`~damvi.streaming.Drift` to learn new ones.

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

    With three or more classes, each has its own figures:

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
        _check(
            "min_rows", min_rows, "a number of rows of at least 1", above=1, included=True
        )
        self.half_life, self.min_rows = half_life, min_rows
        self.prior_rows = prior_rows
        self.classes_, self.pos_label_ = model.classes_, model.pos_label_
        self.weights_, self.threshold_ = model.weights_, model.threshold_
        self.n_rows_seen_ = 0
        self._made_from = sha256(model.weights_.tobytes()).hexdigest()
        # Copy the voters, without the votes of the fit, so that later changes to the model
        # do not affect the stream.
        self._model = copy.copy(model)
        del self._model.decision_
        self._settings = Settings.of(model)._replace(unlabeled_weight=0.0)
        comparison = getattr(model, "comparison_", None)
        if comparison is not None and comparison.plain_kept:
            self._settings = self._settings._replace(solver="uniform")
        self._layout = Layout.of(model)
        threshold = model.threshold
        untuned = isinstance(threshold, str) and threshold == "vote"
        # The intercepts of three or more classes only serve the weights.
        self._follows = untuned and self._layout.n_voted == 0
        self._memory = self._start(model)
        self._learn(self._memory)

    def partial_fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Drift:
        """Update the weights with labelled rows, in order of arrival.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of the model's classes; may have one class only, or no rows.
        sample_weight : array of shape (n,), optional
            1 is the weight of an ordinary row; weights are not rescaled. Rows of weight 0
            still make earlier rows decay.

        Returns
        -------
        drift : Drift
            Comparison with earlier rows, by weights that have not seen these.
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
                f"sample_weight has a maximum of {weights.max():g}, but an ordinary row "
                f"counts for 1; divide the weights by that of an ordinary row"
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
            signed, signs = signed_votes(votes[rows], targets[rows])
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
        """Save the state of the stream to a file, which holds numbers only.

        The voters are not included: save the model with ``damvi.save``.

        Parameters
        ----------
        path : path
            Written atomically.

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
        """Restore a stream saved with :meth:`save`, given its model.

        Parameters
        ----------
        path : path
        model : DAMVIClassifier or DAMVIVotingClassifier
            The model that the stream was created from, possibly loaded.
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
                raise ValueError("its numbers are inconsistent")
        except (
            *(KeyError, TypeError, ValueError, OverflowError, EOFError),
            zipfile.BadZipFile,
        ) as error:
            raise ValueError(
                f"{os.fspath(path)} is not a stream of this model, or is damaged: {error}"
            ) from error
        stream = cls(
            model,
            half_life=half_life if forgets else None,
            min_rows=min_rows,
            prior_rows=0,
        )
        if made_from != stream._made_from:
            raise ValueError(
                f"{os.fspath(path)} is a stream of another model; pass the model that it "
                f"was created from, with the weights that it had then"
            )
        stream.prior_rows = "auto"
        stream.weights_, stream.threshold_ = weights, threshold[()]
        stream.n_rows_seen_, stream._memory = n_rows, memory
        return stream

    @property
    def moments_(self) -> Moments:
        """Moments of the remembered rows of all classes, from which weights are learned."""
        return self._memory.class_moments(self._class_weight(self._memory)).moments()

    @property
    def rows_(self) -> Numbers:
        """Number of remembered rows per class; of two classes, the positives are last."""
        return self._memory.rows.copy()

    def vote(self, X: Any) -> Numbers:
        """Return the weighted vote for ``pos_label_``, in [-1, 1].

        With three or more classes, the share of the vote for each, (n, n_classes).
        """
        return self._present().vote(X)

    def decision_function(self, X: Any) -> Numbers:
        """Return the weighted vote minus the threshold; above 0 means ``classes_[1]``.

        With three or more classes, the vote for each times its factor, (n, n_classes).
        """
        return self._present().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row."""
        return self._present().predict(X)

    def __repr__(self) -> str:
        known = zip(self._memory.rows, self._layout.rows, strict=True)
        *first, last = [f"{rows:,.0f} {name}" for rows, name in known]
        return (
            f"VoteStream({len(self.weights_)} voters, half_life={self.half_life}; "
            f"{self.n_rows_seen_:,} rows seen, {', '.join(first)} and {last} remembered)"
        )

    def _present(self) -> Model:
        """The model with the current weights and threshold."""
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
                f"prior_rows={self.prior_rows!r}, but a saved model does not include the "
                f"votes on its training rows; create the stream right after fit and save "
                f"it, or start from zero with prior_rows=0"
            )
        known = known_out_of_sample(votes, self._layout, self._settings, rows)
        if known is None and self.prior_rows != "auto":
            raise ValueError(
                f"prior_rows={self.prior_rows!r}, but the voters were trained on all rows "
                f"of a class, so the fit has no out-of-sample votes; lower max_samples, or "
                f"start from zero with prior_rows=0"
            )
        return known or Memory.none(self._layout)

    def _fading(self, n: int) -> tuple[float, Numbers | None]:
        """Return the decay of earlier rows after n new ones, and of each new row."""
        if self.half_life is None:
            return 1.0, None
        left = np.exp2(-np.arange(n, -1.0, -1.0) / self.half_life)
        return float(left[0]), left[1:]

    def _class_weight(self, memory: Memory) -> Numbers:
        """Return the weight of a row of each class, at the current class rates."""
        if not memory.mass.all():
            return np.ones(len(memory.mass))
        balance = getattr(self._model, "balance", 0.0)
        return self._layout.labels.class_weight(memory.mass, balance)

    def _learn(self, memory: Memory) -> bool:
        """Solve for the weights, if there are enough rows."""
        if not (memory.rows >= self.min_rows).all() or not memory.mass.all():
            return False
        whole = memory.class_moments(self._class_weight(memory))
        moments = self._settings.moments(whole)
        if not (moments.m > 0).any():
            warnings.warn(
                "no voter beats a coin flip on the remembered rows, so the weights are "
                "kept; if this persists, fit a new model",
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
            "VoteStream needs the estimator of a damvi.Model, and encoded rows and labels: "
            "stream = VoteStream(model.classifier), then "
            "stream.partial_fit(model.schema.encode(table), y), where y is whether a row "
            "is positive, or the index of its label in model.target.classes"
        )
    if not isinstance(model, Model):
        raise TypeError(
            f"VoteStream needs a fitted DAMVIClassifier or DAMVIVotingClassifier, "
            f"not {type(model).__name__}; for a pipeline, pass the last step"
        )
    check_is_fitted(model, "weights_")


def _read_arrays(path: str | os.PathLike[str], layout: Layout) -> dict[str, Any]:
    """Read the arrays of a file, if they are not too large for the layout."""
    expected = Memory.none(layout).as_arrays().values()
    with zipfile.ZipFile(path) as members:
        size = sum(max(one.file_size, one.compress_size) for one in members.infolist())
    room = 8 * layout.n_voters + ROOM_IN_FILE
    if size > sum(one.nbytes + ROOM_OF_ARRAY for one in expected) + room:
        raise ValueError("the file is too large")
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
    raise ValueError(f"{name}={value!r}; expected {wanted}")
