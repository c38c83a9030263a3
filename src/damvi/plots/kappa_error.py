"""The kappa-error diagram: which pairs of voters differ, and at what price."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..diversity import kappa_error
from ..diversity.ballots import read_sample_weight, read_signs, read_votes, read_weights
from .canvas import BLUE, GREY, ORANGE, PALE, headline, in_percent, open_axes
from .display import VotesDisplay, decide


class KappaErrorDisplay(VotesDisplay):
    """Each pair of voters by its agreement (kappa) and its mean error.

    Pairs to the left differ more, pairs at the bottom err less [1]_. The voters that
    carry the vote stand out among all; the line is the error of their vote.

    Parameters
    ----------
    kappa, error : ndarrays of shape (P,)
        For each pair of voters, see :func:`damvi.diversity.kappa_error`.
    weighted : ndarray of bool, shape (P,)
        Pairs of which both voters have a positive weight.
    vote_error : float, optional
        Error of the weighted vote.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last ``plot``.

    References
    ----------
    .. [1] D. Margineantu and T. G. Dietterich (1997), Pruning Adaptive Boosting, ICML.

    Examples
    --------
    >>> from damvi.plots import KappaErrorDisplay
    >>> votes = [[1, 1, -1], [1, -1, -1], [-1, -1, -1], [1, -1, 1]]
    >>> display = KappaErrorDisplay.from_predictions(votes, [1, 0, 0, 1], [0.5, 0, 0.5])
    >>> display.kappa.round(2), display.weighted
    (array([ 0.2 ,  0.2 , -0.33]), array([False,  True, False]))
    """

    def __init__(
        self,
        kappa: NDArray[np.float64],
        error: NDArray[np.float64],
        weighted: NDArray[np.bool_],
        vote_error: float | None = None,
    ) -> None:
        self.kappa = kappa
        self.error = error
        self.weighted = weighted
        self.vote_error = vote_error

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
    ) -> KappaErrorDisplay:
        """Draw the diagram of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            +1 for the positive class, -1 for the other; soft votes count by their sign,
            except in the weighted vote.
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
        display : KappaErrorDisplay
        """
        H = read_votes(votes)
        signs, Q = read_signs(y, len(H), pos_label), read_weights(weights, H.shape[1])
        kappa, error = kappa_error(H, signs, sample_weight=sample_weight)
        j, k = np.triu_indices(len(Q), 1)
        wrong = decide(H, Q) != signs
        vote_error = np.average(wrong, weights=read_sample_weight(sample_weight, len(H)))
        weighted = (Q[j] > 0) & (Q[k] > 0)
        return cls(kappa, error, weighted, float(vote_error)).plot(ax)

    def plot(self, ax: Any = None) -> KappaErrorDisplay:
        """Draw on ``ax``, or on a new figure.

        Returns
        -------
        self
        """
        ax = open_axes(self, ax, (5.0, 3.8))
        some = self.weighted.any() and not self.weighted.all()
        groups: list[tuple[Any, str, str]] = [(slice(None), BLUE, "pairs of voters")]
        if some:
            groups = [
                (~self.weighted, PALE, "other pairs"),
                (self.weighted, BLUE, "both voters have weight"),
            ]
        for chosen, colour, label in groups:
            # Clouds of a million pairs stay small in a PDF as an image.
            ax.scatter(
                self.kappa[chosen],
                self.error[chosen],
                s=float(np.clip(4e4 / max(len(self.kappa), 1), 2, 25)),
                color=colour,
                alpha=0.5 if colour == PALE else 0.8,
                linewidths=0,
                rasterized=True,
                label=f"{label} ({len(self.kappa[chosen]):,})",
            )
        if self.vote_error is not None:
            style = {"color": ORANGE, "lw": 1.5, "ls": "--"}
            ax.axhline(self.vote_error, label="weighted vote", **style)
        ax.set(xlabel="kappa: agreement beyond chance", ylabel="mean error of the pair")
        ax.set_ylim(bottom=0)
        in_percent(ax.yaxis)
        ax.legend(frameon=False, fontsize="small", labelcolor=GREY, markerscale=2.5)
        headline(ax, self._seen())
        return self

    def _seen(self) -> str:
        if not len(self.kappa):
            return "One voter: no pairs"
        mean = f"{self.kappa.mean():.2f}"
        if self.weighted.any() and not self.weighted.all():
            among = f"{self.kappa[self.weighted].mean():.2f}"
            return f"Mean kappa: all {mean}, with weight {among}"
        return f"Mean kappa {mean}"
