"""Plots of the voters and their vote, as matplotlib Displays.

As in scikit-learn, ``from_estimator(model, X, y)`` takes a fitted model, pipeline or
search, and ``from_predictions(votes, y, weights)`` takes votes. Both plot, and return an
object with the numbers, ``ax_`` and ``figure_``; its ``plot`` method plots again. Use
held-out rows: on its own training rows, any tree looks certain and right.

Requires matplotlib: ``pip install 'damvi[report]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .diversity import (
    kappa_error,
    pairwise_disagreement,
    read_sample_weight,
    read_signs,
    read_votes,
    read_weights,
    voter_errors,
)
from .diversity import margins as vote_margins

__all__ = [
    "DisagreementDisplay",
    "KappaErrorDisplay",
    "MarginsDisplay",
    "WeightsDisplay",
]

# Okabe and Ito's palette, safe for colour-blind readers; the colours also differ in grey.
BLUE, ORANGE = "#0072B2", "#D55E00"
PALE, GREY = "#BBBBBB", "#666666"
ORDERS = "weight", "clusters"
KINDS = "cumulative", "histogram"
CLASSES = (1, ORANGE, "-"), (-1, BLUE, "--")


class VotesDisplay:
    """A plot of the votes of a fitted model."""

    ax_: Any
    figure_: Any
    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Plot the votes of a fitted model on held-out rows.

        Parameters
        ----------
        model : DAMVIClassifier or DAMVIVotingClassifier
            Fitted; may be wrapped in a pipeline or search.
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of the model's classes.
        ax : matplotlib Axes, optional
            Axes to plot on. None: a new figure.
        **options
            Passed to ``from_predictions``. With more than two classes, ``pos_label``
            selects the one to show against the rest.

        Returns
        -------
        display
        """
        model, X = unwrap(model, X)
        strange = set(np.unique(y).tolist()) - set(model.classes_.tolist())
        if strange:
            raise ValueError(
                f"y contains labels unknown to the model: {sorted(strange)}; its classes "
                f"are {model.classes_.tolist()}"
            )
        options = {"pos_label": model.pos_label_, "ax": ax, **options}
        votes, y, options["pos_label"] = model.labels_.against_the_rest(
            model.cast_votes(X), y, options["pos_label"]
        )
        display: Self = cls.from_predictions(votes, y, model.weights_, **options)
        return display


def unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the voting model in a search or pipeline, and ``X`` transformed for it."""
    while not hasattr(model, "cast_votes"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model.steps[-1][1]
        else:
            raise TypeError(
                f"{type(model).__name__} has no votes; pass a DAMVIClassifier or "
                f"DAMVIVotingClassifier, or use from_predictions"
            )
    return model, X


def _decide(votes: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.int8]:
    """Return the decision of the weighted vote; a tie is -1."""
    return np.where(votes @ weights > 0, 1, -1).astype(np.int8)


class WeightsDisplay(VotesDisplay):
    """The weights in decreasing order and, below, the error of each voter.

    ``WeightsDisplay(model.weights_).plot()`` shows the weights without data.

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
        Number of voters, by decreasing weight, that together hold half of the vote.
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
        """Plot the weights, and the voters' errors on these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            +1 for the positive class, -1 for the other; soft votes count by their sign.
        y : array of shape (n,)
        weights : array of shape (K,), optional
            The voters' weights. None: equal.
        pos_label : label, optional
            The positive class. None: 1, for y of 0 and 1 or -1 and +1.
        sample_weight : array of shape (n,), optional
        ax : matplotlib Axes, optional
            Axes to plot on. None: a new figure.

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
        """Number of voters with a positive weight."""
        return int((self.weights > 0).sum())

    @property
    def n_half(self) -> int:
        """Number of voters, by decreasing weight, that together hold half of the vote."""
        total = np.cumsum(np.sort(self.weights)[::-1])
        return int(np.searchsorted(total, total[-1] / 2 * (1 - 1e-12))) + 1

    def plot(self, ax: Any = None) -> WeightsDisplay:
        """Plot on ``ax``, or on a new figure.

        Returns
        -------
        self
        """
        ax = open_axes(self, ax, (5.0, 3.2 if self.errors is None else 4.2))
        order = np.argsort(-self.weights, kind="stable")
        K, rank = len(order), np.arange(1, len(order) + 1)
        ax.bar(rank, self.weights[order], width=0.9 if K <= 50 else 1.0, color=BLUE)
        ax.axhline(1 / K, color=GREY, lw=1, ls="--", label="equal weights, 1/K")
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
        headline(
            ax,
            f"{self.n_weighted} of {K} voters have weight; {self.n_half} hold half of it",
        )
        return self


class DisagreementDisplay(VotesDisplay):
    """Pairwise disagreement of the voters as a heat map, with their weights above it.

    Parameters
    ----------
    disagreement : ndarray of shape (K, K)
        See :func:`damvi.diversity.pairwise_disagreement`.
    weights : ndarray of shape (K,)
        The voters' weights.
    order : {"weight", "clusters"}, default="weight"
        By decreasing weight, with those without weight behind a line; or clustered by
        agreement (average linkage).

    Attributes
    ----------
    order_ : ndarray of shape (K,)
        The voters in the order of the plot.
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
        """Plot the disagreement of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            Hard votes, +1 and -1, or soft votes.
        y, pos_label : ignored
            Disagreement does not depend on labels.
        weights : array of shape (K,), optional
            The voters' weights. None: equal.
        sample_weight : array of shape (n,), optional
            Of the rows. With a rare class, weights that balance the classes show where
            voters differ on the positives.
        order : {"weight", "clusters"}, default="weight"
        ax : matplotlib Axes, optional
            Axes to plot on. None: a new figure.

        Returns
        -------
        display : DisagreementDisplay
        """
        H = read_votes(votes)
        disagreement = pairwise_disagreement(H, sample_weight=sample_weight)
        return cls(disagreement, read_weights(weights, H.shape[1]), order=order).plot(ax)

    @property
    def order_(self) -> NDArray[np.intp]:
        """The voters in the order of the plot."""
        return self._ordered(self.order)

    def plot(self, ax: Any = None, *, order: str | None = None) -> DisagreementDisplay:
        """Plot on ``ax``, or on a new figure.

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
        # Inset in the axes, so that both stay aligned with the square.
        scale = ax.inset_axes((1.03, 0, 0.04, 1))
        ax.figure.colorbar(picture, cax=scale, label="rows on which two voters disagree")
        in_percent(scale.yaxis)
        n_weighted = int((self.weights > 0).sum())
        text = f"by weight ({n_weighted} nonzero)" if order == "weight" else "by similarity"
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
        """Return the mean over pairs of different voters, all and weighted."""
        apart = ~np.eye(len(self.weights), dtype=bool)
        weighted = apart & np.outer(self.weights > 0, self.weights > 0)
        if not apart.any():
            return "One voter: no pairs"
        mean = percent(self.disagreement[apart].mean())
        if weighted.any() and (self.weights == 0).any():
            among = percent(self.disagreement[weighted].mean())
            return f"Mean disagreement: all {mean}, weighted {among}"
        return f"Mean disagreement {mean}"


class KappaErrorDisplay(VotesDisplay):
    """Kappa and mean error of each pair of voters.

    Pairs on the left are more diverse, pairs at the bottom more accurate [1]_. Pairs of
    voters with weight are highlighted; the line is the error of the weighted vote.

    Parameters
    ----------
    kappa, error : ndarrays of shape (P,)
        For each pair of voters, see :func:`damvi.diversity.kappa_error`.
    weighted : ndarray of bool, shape (P,)
        Pairs in which both voters have a positive weight.
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
        """Plot the diagram of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            +1 for the positive class, -1 for the other; soft votes count by their sign,
            except in the weighted vote.
        y : array of shape (n,)
        weights : array of shape (K,), optional
            The voters' weights. None: equal.
        pos_label : label, optional
            The positive class. None: 1, for y of 0 and 1 or -1 and +1.
        sample_weight : array of shape (n,), optional
        ax : matplotlib Axes, optional
            Axes to plot on. None: a new figure.

        Returns
        -------
        display : KappaErrorDisplay
        """
        H = read_votes(votes)
        signs, Q = read_signs(y, len(H), pos_label), read_weights(weights, H.shape[1])
        kappa, error = kappa_error(H, signs, sample_weight=sample_weight)
        j, k = np.triu_indices(len(Q), 1)
        wrong = _decide(H, Q) != signs
        vote_error = np.average(wrong, weights=read_sample_weight(sample_weight, len(H)))
        weighted = (Q[j] > 0) & (Q[k] > 0)
        return cls(kappa, error, weighted, float(vote_error)).plot(ax)

    def plot(self, ax: Any = None) -> KappaErrorDisplay:
        """Plot on ``ax``, or on a new figure.

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
            # Rasterize, so that clouds of a million pairs stay small in a PDF.
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
            return f"Mean kappa: all {mean}, weighted {among}"
        return f"Mean kappa {mean}"


class MarginsDisplay(VotesDisplay):
    """Margins of the weighted vote, with a separate scale for each class.

    A margin above 0 is a correct decision, and 1 a unanimous one [1]_. Each class is
    normalized to 1, so that a thousand negatives do not hide ten positives.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        See :func:`damvi.diversity.margins`.
    signs : ndarray of shape (n,)
        +1 for the rows of the positive class, -1 for the others.
    sample_weight : ndarray of shape (n,), optional
    kind : {"cumulative", "histogram"}, default="cumulative"
        The fraction of a class up to each margin (at 0, the fraction that is wrong), or in
        each of 40 bins.
    pos_label : label, optional
        Name of the positives.

    Attributes
    ----------
    missed, false_alarms : float
        Fraction of the positives and of the negatives that the vote gets wrong; ties count
        as negative. NaN for a class without rows.
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
        """Plot the margins of these votes.

        Parameters
        ----------
        votes : array of shape (n, K)
            Hard votes, +1 for the positive class and -1 for the other, or soft votes.
        y : array of shape (n,)
        weights : array of shape (K,), optional
            The voters' weights. None: equal.
        pos_label : label, optional
            The positive class. None: 1, for y of 0 and 1 or -1 and +1.
        sample_weight : array of shape (n,), optional
        kind : {"cumulative", "histogram"}, default="cumulative"
        ax : matplotlib Axes, optional
            Axes to plot on. None: a new figure.

        Returns
        -------
        display : MarginsDisplay
        """
        H = read_votes(votes)
        signs = read_signs(y, len(H), pos_label)
        return cls(
            vote_margins(H, signs, weights),
            signs,
            read_sample_weight(sample_weight, len(H)),
            kind=kind,
            pos_label=pos_label,
        ).plot(ax)

    @property
    def missed(self) -> float:
        """Fraction of the positives that the vote gets wrong."""
        margins, shares = self._of_class(1)
        return float(shares[margins <= 0].sum()) if len(shares) else np.nan

    @property
    def false_alarms(self) -> float:
        """Fraction of the negatives that the vote gets wrong."""
        margins, shares = self._of_class(-1)
        return float(shares[margins < 0].sum()) if len(shares) else np.nan

    def plot(self, ax: Any = None, *, kind: str | None = None) -> MarginsDisplay:
        """Plot on ``ax``, or on a new figure.

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
        ax.set(ylabel="fraction of the class up to this margin", ylim=(0, 1.02))
        in_percent(ax.yaxis)
        ax.legend(frameon=False, fontsize="small", loc="upper left")
        _mark_margins(ax)

    def _draw_histogram(self, ax: Any) -> None:
        # A panel per class: on one scale, the spike of certain negatives hides the rest.
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
        """Return the name of a class, with its number of rows."""
        if isinstance(self.pos_label, str):
            name = self.pos_label if sign > 0 else f"not {self.pos_label}"
        else:
            name = "positives" if sign > 0 else "negatives"
        return f"{name} ({len(self._of_class(sign)[0]):,})"

    def _of_class(self, sign: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the margins of a class, and the weight of each, summing to 1."""
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


def open_axes(display: Any, ax: Any, size: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new figure, and store both in ``display``."""
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                f"{type(display).__name__} requires matplotlib: pip install 'damvi[report]'"
            ) from error
        _, ax = plt.subplots(figsize=size, layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return _plain(ax)


def open_below(ax: Any, share: float) -> Any:
    """Add a panel in the lower ``share`` of ``ax``, with the same x axis."""
    spec = ax.get_subplotspec()
    if spec is not None:
        rows = spec.subgridspec(2, 1, height_ratios=(1 - share, share), hspace=0.1)
        ax.set_subplotspec(rows[0])
        below = ax.figure.add_subplot(rows[1], sharex=ax)
    else:
        x, y, width, height = ax.get_position().bounds
        ax.set_position((x, y + share * height, width, (1 - share) * height))
        below = ax.figure.add_axes((x, y, width, 0.8 * share * height), sharex=ax)
    ax.tick_params(labelbottom=False)
    return _plain(below)


def in_percent(axis: Any) -> None:
    """Format an axis of fractions in percent."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")


def _plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=3)
    return ax


def headline(ax: Any, text: str, above: float | None = None) -> None:
    """Set the title, over the axes or ``above`` what is on them."""
    ax.set_title(text, loc="left", fontsize="medium", y=above)


def percent(share: float) -> str:
    """Format a fraction in percent, with two digits."""
    if share != share:
        return "no rows"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.2g}%"
