"""Who disagrees with whom: a heat map of the voters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..diversity import pairwise_disagreement
from ..diversity.ballots import read_votes, read_weights
from .canvas import BLUE, headline, in_percent, open_axes, percent
from .display import VotesDisplay

ORDERS = "weight", "clusters"


class DisagreementDisplay(VotesDisplay):
    """Pairwise disagreement of the voters as a heat map, their weights above it.

    Parameters
    ----------
    disagreement : ndarray of shape (K, K)
        See :func:`damvi.diversity.pairwise_disagreement`.
    weights : ndarray of shape (K,)
        The voters' weights.
    order : {"weight", "clusters"}, default="weight"
        The heaviest voter first, those without weight behind a line; or voters that
        agree side by side (average linkage).

    Attributes
    ----------
    order_ : ndarray of shape (K,)
        The voters as they are drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last ``plot``.

    References
    ----------
    L. I. Kuncheva and C. J. Whitaker (2003), Measures of Diversity in Classifier
    Ensembles and Their Relationship with the Ensemble Accuracy, Machine Learning 51.

    Examples
    --------
    >>> from damvi.plots import DisagreementDisplay
    >>> votes = [[1, 1, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, 1]]
    >>> display = DisagreementDisplay.from_predictions(votes, weights=[0.3, 0.0, 0.7])
    >>> display.order_
    array([2, 0, 1])
    >>> display.disagreement[0]
    array([0.  , 0.25, 0.75])
    """

    def __init__(
        self,
        disagreement: NDArray[np.float64],
        weights: NDArray[np.float64],
        *,
        order: str = "weight",
    ) -> None:
        self.disagreement = disagreement
        self.weights = weights
        self.order = order

    @classmethod
    def from_predictions(
        cls,
        votes: ArrayLike,
        y: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        order: str = "weight",
        ax: Any = None,
    ) -> DisagreementDisplay:
        """Draw the disagreement of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            Hard votes, +1 and -1, or soft ones.
        y, pos_label : ignored
            Disagreement needs no labels.
        weights : array of shape (K,), optional
            The voters' weights. None: the same for all.
        sample_weight : array of shape (n,), optional
            Of the rows. With a rare class, weights that balance the classes show where
            voters differ on the positives.
        order : {"weight", "clusters"}, default="weight"
        ax : matplotlib Axes, optional
            Where to draw. None: a new figure.

        Returns
        -------
        display : DisagreementDisplay
        """
        H = read_votes(votes)
        disagreement = pairwise_disagreement(H, sample_weight=sample_weight)
        return cls(disagreement, read_weights(weights, H.shape[1]), order=order).plot(ax)

    @property
    def order_(self) -> NDArray[np.intp]:
        """The voters as they are drawn."""
        return self._ordered(self.order)

    def plot(self, ax: Any = None, *, order: str | None = None) -> DisagreementDisplay:
        """Draw on ``ax``, or on a new figure.

        Returns
        -------
        self
        """
        order = order or self.order
        voters = self._ordered(order)
        ax = open_axes(self, ax, (5.0, 4.8))
        K = len(voters)
        edges = (0.5, K + 0.5)
        picture = ax.imshow(
            self.disagreement[np.ix_(voters, voters)],
            cmap="cividis",
            vmin=0,
            interpolation="nearest",
            extent=(*edges, *edges[::-1]),
        )
        # Inside the axes' own frame both keep to the square, whatever the figure.
        scale = ax.inset_axes((1.03, 0, 0.04, 1))
        ax.figure.colorbar(picture, cax=scale, label="rows on which two voters differ")
        in_percent(scale.yaxis)
        n_weighted = int((self.weights > 0).sum())
        text = f"by weight ({n_weighted} have any)" if order == "weight" else "by likeness"
        ax.set(xlabel=f"voters, {text}", ylabel="voters, in the same order")
        bars = ax.inset_axes((0, 1.02, 1, 0.12), sharex=ax)
        bars.bar(np.arange(1, K + 1), self.weights[voters], width=1.0, color=BLUE)
        bars.axis("off")
        bars.set_xlim(edges)
        if order == "weight" and n_weighted < K:
            for line in (ax.axvline, ax.axhline):
                line(n_weighted + 0.5, color="white", lw=1.2)
        headline(ax, self._seen(), above=1.15)
        return self

    def _ordered(self, order: str) -> NDArray[np.intp]:
        if order not in ORDERS:
            raise ValueError(f"order={order!r} is not one of {ORDERS}")
        if order == "weight" or len(self.weights) < 3:
            return np.argsort(-self.weights, kind="stable")
        from scipy.cluster import hierarchy

        pairs = self.disagreement[np.triu_indices(len(self.weights), 1)]
        tree = hierarchy.linkage(pairs, "average", optimal_ordering=len(pairs) < 50_000)
        leaves: NDArray[np.intp] = hierarchy.leaves_list(tree).astype(np.intp)
        return leaves

    def _seen(self) -> str:
        """Mean over pairs of different voters, all and weighted."""
        apart = ~np.eye(len(self.weights), dtype=bool)
        weighted = apart & np.outer(self.weights > 0, self.weights > 0)
        if not apart.any():
            return "One voter: no pairs"
        mean = percent(self.disagreement[apart].mean())
        if weighted.any() and (self.weights == 0).any():
            among = percent(self.disagreement[weighted].mean())
            return f"Mean disagreement: all {mean}, with weight {among}"
        return f"Mean disagreement {mean}"
