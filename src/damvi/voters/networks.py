"""Small neural networks of scikit-learn as one voter: the mean of several."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neural_network import MLPClassifier
from sklearn.utils import Tags, check_random_state, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]

N_UNITS = 64
"""Units of the one hidden layer."""
N_STEPS = 1000
"""Gradient steps of a network, about: on many rows the batches are larger instead."""
FEWEST_EPOCHS, MOST_EPOCHS = 10, 60
SMALLEST_BATCH = 200
NO_TOLERANCE = 1e6
"""More than any loss can fall in an epoch, so that training ends after a fixed number."""
LEAST_WEIGHT = 1e-9
"""Of a row, relative to the mean; a batch of rows without any weight would divide by 0."""

PREDICTED_AT_ONCE = 10_000
"""Rows whose hidden units are held in memory."""


class NetworksClassifier(ClassifierMixin, BaseEstimator):
    """The mean of small neural networks that differ by their seeds.

    A single network depends on its starting weights; the mean of several is steadier and
    ranks better. Each is trained as an :class:`~sklearn.neural_network.MLPClassifier` with
    one hidden layer, for a fixed number of epochs: early stopping would cost too many rows
    of a rare class. Scale the columns first, best to ranks.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of networks.
    random_state : int or RandomState, optional

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    hidden_ : tuple of ndarray
        Weights (K, d, units) and intercepts (K, units) of the hidden layers.
    output_ : tuple of ndarray
        Weights (K, units, C) and intercepts (K, C) of the outputs, whose softmax are the
        probabilities. Of two classes, the first has output 0.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = NetworksClassifier(n_estimators=2, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (500, 2)
    """

    def __init__(self, n_estimators: int = 5, random_state: Any = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the networks, one after the other."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_: NDArray[Any] = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError("y has one class only; networks need rows of two or more")
        n, n_classes = X.shape[0], len(self.classes_)
        epochs = int(np.clip(N_STEPS * SMALLEST_BATCH / n, FEWEST_EPOCHS, MOST_EPOCHS))
        batch = min(n, max(SMALLEST_BATCH, n * epochs // N_STEPS))
        weights = None if sample_weight is None else _relative(sample_weight)
        random = check_random_state(self.random_state)
        hidden, output = [], []
        for _ in range(self.n_estimators):
            network = MLPClassifier(
                (N_UNITS,),
                alpha=0.01,
                learning_rate_init=0.005,
                batch_size=batch,
                # From the second epoch on, the loss counts as not having fallen.
                n_iter_no_change=epochs - 2,
                tol=NO_TOLERANCE,
                random_state=random.randint(np.iinfo(np.int32).max),
            )
            network.fit(X, y, sample_weight=weights)
            if network.n_iter_ < epochs:  # scikit-learn turns Ctrl-C into a warning
                raise KeyboardInterrupt
            hidden.append((network.coefs_[0], network.intercepts_[0]))
            output.append(_each_class(network.coefs_[1], network.intercepts_[1], n_classes))
        self.hidden_: Layer = _stacked(hidden)
        self.output_: Layer = _stacked(output)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Mean probabilities of the classes, (n, C)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        shares = np.empty((X.shape[0], len(self.classes_)))
        for rows in gen_batches(X.shape[0], PREDICTED_AT_ONCE):
            shares[rows] = self._shares(X[rows])
        return shares

    def _shares(self, X: Any) -> NDArray[np.float64]:
        (into, start), (out, end) = self.hidden_, self.output_
        total: Any = 0.0
        for k in range(len(into)):
            hidden = np.maximum(X @ into[k] + start[k], 0.0)
            total = total + softmax(hidden @ out[k] + end[k], axis=1)
        mean: NDArray[np.float64] = total / len(into)
        return mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest mean probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]


def _stacked(layers: list[Layer]) -> Layer:
    weights, intercepts = zip(*layers, strict=True)
    return np.stack(weights), np.stack(intercepts)


def _each_class(weights: Any, intercepts: Any, n_classes: int) -> Layer:
    """Outputs for all classes: scikit-learn's networks have one for two classes."""
    left = n_classes - len(intercepts)
    return np.pad(weights, ((0, 0), (left, 0))), np.pad(intercepts, (left, 0))


def _relative(sample_weight: Any) -> NDArray[np.float64]:
    """Weights relative to their mean, none of them 0."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not weights.any():
        raise ValueError("all sample weights are zero")
    weights = weights / weights.max()
    return np.maximum(weights / weights.mean(), LEAST_WEIGHT)
