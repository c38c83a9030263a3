"""What all Displays share: they ask a fitted model for its votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray


class VotesDisplay:
    """A picture of the votes of a fitted model."""

    ax_: Any
    figure_: Any
    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the votes of a fitted model on rows it was not trained on.

        Parameters
        ----------
        model : DAMVIClassifier, or a Pipeline or search around one
            Fitted.
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels, as the model knows them.
        ax : matplotlib Axes, optional
            Where to draw. None: a new figure.
        **options
            Passed to ``from_predictions``.

        Returns
        -------
        display
        """
        model, X = unwrap(model, X)
        strange = set(np.unique(y).tolist()) - set(model.classes_.tolist())
        if strange:
            raise ValueError(
                f"y holds labels that the model does not know: {sorted(strange)}; its "
                f"classes are {model.classes_.tolist()}"
            )
        options = {"pos_label": model.pos_label_, "ax": ax, **options}
        display: Self = cls.from_predictions(
            model.cast_votes(X), y, model.weights_, **options
        )
        return display


def unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """The voting model inside searches and pipelines, and ``X`` as it sees it."""
    while not hasattr(model, "votes"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model.steps[-1][1]
        else:
            raise TypeError(
                f"{type(model).__name__} has no votes to show; give a DAMVIClassifier, or "
                f"use from_predictions"
            )
    return model, X


def decide(votes: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.int8]:
    """The weighted vote's decision; a tie is -1."""
    return np.where(votes @ weights > 0, 1, -1).astype(np.int8)
