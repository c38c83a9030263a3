"""Margins by class: how sure the vote is of each class, and where it is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import diversity
from ..diversity.ballots import read_sample_weight, read_signs, read_votes
from .canvas import BLUE, GREY, ORANGE, headline, in_percent, open_axes, open_below, percent
from .display import VotesDisplay

KINDS = "cumulative", "histogram"
CLASSES = (1, ORANGE, "-"), (-1, BLUE, "--")


class MarginsDisplay(VotesDisplay):
    """The margins of the weighted vote, each class on its own scale.

    A margin above 0 is a right decision, and 1 a unanimous one [1]_. Each class counts
    for 1, so that a thousand negatives do not hide ten positives.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        See :func:`damvi.diversity.margins`.
    signs : ndarray of shape (n,)
        +1 for the rows of the positive class, -1 for the others.
    sample_weight : ndarray of shape (n,), optional
    kind : {"cumulative", "histogram"}, default="cumulative"
        The share of a class up to each margin (at 0 it is the share that is wrong), or
        the share in each of 40 bins.
    pos_label : label, optional
        What to call the positives.

    Attributes
    ----------
    missed, false_alarms : float
        Share of the positives and of the negatives that the vote gets wrong; a tie is
        settled for the negatives. NaN for a class without rows.
    ax_, figure_ : matplotlib Axes and Figure
        Of the last ``plot``.

    References
    ----------
    .. [1] R. E. Schapire, Y. Freund, P. Bartlett and W. S. Lee (1998), Boosting the
       Margin, Annals of Statistics 26.

    Examples
    --------
    >>> from damvi.plots import MarginsDisplay
    >>> votes = [[1, 1, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, 1]]
    >>> display = MarginsDisplay.from_predictions(votes, [1, 0, 0, 1])
    >>> display.missed, display.false_alarms
    (0.5, 0.0)
    """

    def __init__(
        self,
        margins: NDArray[np.float64],
        signs: NDArray[np.int8],
        sample_weight: NDArray[np.float64] | None = None,
        *,
        kind: str = "cumulative",
        pos_label: Any = None,
    ) -> None:
        self.margins = margins
        self.signs = signs
        self.sample_weight = sample_weight
        self.kind = kind
        self.pos_label = pos_label

    @classmethod
    def from_predictions(
        cls,
        votes: ArrayLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        kind: str = "cumulative",
        ax: Any = None,
    ) -> MarginsDisplay:
        """Draw the margins of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            Hard votes, +1 for the positive class and -1 for the other, or soft ones.
        y : array of shape (n,)
        weights : array of shape (K,), optional
            The voters' weights. None: the same for all.
        pos_label : label, optional
            The positive class. None: 1, in a y of 0 and 1 or of -1 and +1.
        sample_weight : array of shape (n,), optional
        kind : {"cumulative", "histogram"}, default="cumulative"
        ax : matplotlib Axes, optional
            Where to draw. None: a new figure.

        Returns
        -------
        display : MarginsDisplay
        """
        H = read_votes(votes)
        signs = read_signs(y, len(H), pos_label)
        return cls(
            diversity.margins(H, signs, weights),
            signs,
            read_sample_weight(sample_weight, len(H)),
            kind=kind,
            pos_label=pos_label,
        ).plot(ax)

    @property
    def missed(self) -> float:
        """Share of the positives that the vote gets wrong."""
        margins, shares = self._of_class(1)
        return float(shares[margins <= 0].sum()) if len(shares) else np.nan

    @property
    def false_alarms(self) -> float:
        """Share of the negatives that the vote gets wrong."""
        margins, shares = self._of_class(-1)
        return float(shares[margins < 0].sum()) if len(shares) else np.nan

    def plot(self, ax: Any = None, *, kind: str | None = None) -> MarginsDisplay:
        """Draw on ``ax``, or on a new figure.

        Returns
        -------
        self
        """
        kind = kind or self.kind
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is not one of {KINDS}")
        ax = open_axes(self, ax, (5.0, 3.8))
        if kind == "cumulative":
            self._draw_cumulative(ax)
        else:
            self._draw_histogram(ax)
        missed, false_alarms = percent(self.missed), percent(self.false_alarms)
        headline(ax, f"Missed: {missed}; false alarms: {false_alarms}")
        return self

    def _draw_cumulative(self, ax: Any) -> None:
        grid = np.linspace(-1, 1, 2001)
        for sign, colour, style in CLASSES:
            margins, shares = self._of_class(sign)
            order = np.argsort(margins)
            below = np.searchsorted(margins[order], grid, side="right")
            curve = np.concatenate([[0.0], np.cumsum(shares[order])])[below]
            if len(margins):
                label = self._name(sign)
                ax.plot(grid, curve, color=colour, ls=style, lw=2, label=label)
        ax.axvline(0, color=GREY, lw=0.8, zorder=0)
        ax.set(ylabel="share of the class up to this margin", ylim=(0, 1.02))
        in_percent(ax.yaxis)
        ax.legend(frameon=False, fontsize="small", loc="upper left")
        _mark_margins(ax)

    def _draw_histogram(self, ax: Any) -> None:
        # A panel for each class: on one scale the spike of the sure negatives hides all.
        panels = ax, open_below(ax, 0.5)
        for panel, (sign, colour, _) in zip(panels, CLASSES, strict=True):
            margins, shares = self._of_class(sign)
            panel.hist(margins, np.linspace(-1, 1, 41), weights=shares, color=colour)
            panel.axvline(0, color=GREY, lw=0.8)
            panel.set(ylabel="share")
            in_percent(panel.yaxis)
            place = {"transform": panel.transAxes, "ha": "center", "va": "top"}
            panel.text(0.26, 0.95, self._name(sign), color=colour, size="small", **place)
        _mark_margins(panels[-1])

    def _name(self, sign: int) -> str:
        """What to call a class, with its number of rows."""
        if isinstance(self.pos_label, str):
            name = self.pos_label if sign > 0 else f"not {self.pos_label}"
        else:
            name = "positives" if sign > 0 else "negatives"
        return f"{name} ({len(self._of_class(sign)[0]):,})"

    def _of_class(self, sign: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The margins of a class, and the share of it that each stands for."""
        rows = self.signs == sign
        if self.sample_weight is not None:
            rows &= self.sample_weight > 0
            D = self.sample_weight[rows]
        else:
            D = np.ones(int(rows.sum()))
        return self.margins[rows], D / D.sum() if len(D) else D


def _mark_margins(ax: Any) -> None:
    ax.set(xlim=(-1.02, 1.02), xticks=(-1, -0.5, 0, 0.5, 1))
    ax.set_xlabel("wrong  ←  margin of the vote  →  right")
