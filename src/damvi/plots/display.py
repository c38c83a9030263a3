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
            Passed to ``from_predictions``. With more than two classes, ``pos_label`` says
            which is shown against the rest.

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
        votes = model.cast_votes(X)
        if len(model.classes_) > 2:
            votes, y = against_the_rest(votes, y, model.classes_, options["pos_label"])
            options["pos_label"] = True
        display: Self = cls.from_predictions(votes, y, model.weights_, **options)
        return display


def against_the_rest(
    votes: NDArray[Any], y: Any, classes: NDArray[Any], label: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Votes on many classes as votes for one of them, and which rows are of it."""
    places = np.flatnonzero(classes == label)
    if not len(places):
        raise ValueError(
            f"of the {len(classes)} classes one is shown against the rest; say which, "
            f"as in pos_label={classes.tolist()[-1]!r}"
        )
    if votes.ndim == 3:
        return 2 * votes[:, :, places[0]] - 1, np.asarray(y) == label
    return np.where(votes == places[0], 1, -1).astype(np.int8), np.asarray(y) == label


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
