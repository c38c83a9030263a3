"""The voters' weights: how many carry the vote, and how good they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..diversity import voter_errors
from ..diversity.ballots import read_signs, read_votes, read_weights
from .canvas import BLUE, GREY, PALE, headline, in_percent, open_axes, open_below
from .display import VotesDisplay


class WeightsDisplay(VotesDisplay):
    """The weights from large to small and, below, the error of each voter.

    ``WeightsDisplay(model.weights_).plot()`` shows the weights alone, without data.

    Parameters
    ----------
    weights : ndarray of shape (K,)
        On the simplex.
    errors : ndarray of shape (K,), optional
        The voters' errors, see :func:`damvi.diversity.voter_errors`.

    Attributes
    ----------
    n_weighted : int
        Voters with a positive weight.
    n_half : int
        The heaviest voters that together hold half of the vote.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last ``plot``.

    References
    ----------
    A. Goyal and J. Khiari (2020), Diversity-Aware Weighted Majority Vote Classifier for
    Imbalanced Data, IJCNN.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.plots import WeightsDisplay
    >>> display = WeightsDisplay(np.array([0.3, 0.0, 0.6, 0.1])).plot()
    >>> display.n_weighted, display.n_half
    (3, 1)
    """

    def __init__(
        self, weights: NDArray[np.float64], errors: NDArray[np.float64] | None = None
    ) -> None:
        self.weights = weights
        self.errors = errors

    @classmethod
    def from_predictions(
        cls,
        votes: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> WeightsDisplay:
        """Draw the weights, and the voters' errors on these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            +1 for the positive class, -1 for the other; soft votes count by their sign.
        y : array of shape (n,)
        weights : array of shape (K,), optional
            The voters' weights. None: the same for all.
        pos_label : label, optional
            The positive class. None: 1, in a y of 0 and 1 or of -1 and +1.
        sample_weight : array of shape (n,), optional
        ax : matplotlib Axes, optional
            Where to draw. None: a new figure.

        Returns
        -------
        display : WeightsDisplay
        """
        H = read_votes(votes)
        signs = read_signs(y, len(H), pos_label)
        errors = voter_errors(H, signs, sample_weight=sample_weight)
        return cls(read_weights(weights, H.shape[1]), errors).plot(ax)

    @property
    def n_weighted(self) -> int:
        """Voters with a positive weight."""
        return int((self.weights > 0).sum())

    @property
    def n_half(self) -> int:
        """The heaviest voters that together hold half of the vote."""
        total = np.cumsum(np.sort(self.weights)[::-1])
        return int(np.searchsorted(total, total[-1] / 2 * (1 - 1e-12))) + 1

    def plot(self, ax: Any = None) -> WeightsDisplay:
        """Draw on ``ax``, or on a new figure.

        Returns
        -------
        self
        """
        ax = open_axes(self, ax, (5.0, 3.2 if self.errors is None else 4.2))
        order = np.argsort(-self.weights, kind="stable")
        K, rank = len(order), np.arange(1, len(order) + 1)
        ax.bar(rank, self.weights[order], width=0.9 if K <= 50 else 1.0, color=BLUE)
        ax.axhline(1 / K, color=GREY, lw=1, ls="--", label="plain vote, 1/K each")
        ax.legend(frameon=False, fontsize="small", labelcolor=GREY)
        ax.set(ylabel="weight", xlim=(0.5, K + 0.5))
        bottom = ax
        if self.errors is not None:
            bottom = open_below(ax, 0.4)
            colours = np.where(self.weights[order] > 0, BLUE, PALE)
            bottom.scatter(rank, self.errors[order], s=12, c=colours, linewidths=0)
            bottom.set_ylabel("error")
            in_percent(bottom.yaxis)
        bottom.set_xlabel("voters, by weight")
        headline(ax, f"{self.n_weighted} of {K} carry the vote; {self.n_half}, half of it")
        return self
