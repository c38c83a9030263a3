"""What can be promised about decisions between three or more classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bounds import kl_divergence
from .pac_bayes import N_BOUNDS, bounds_of_vote, by_class_is_vacuous
from .statement import Rate, bound_shown, columns, rate_line


@dataclass(frozen=True)
class OverallBounds:
    """PAC-Bayes bounds on how often the largest vote is wrong.

    Attributes
    ----------
    n_voters : int
    kl : float
        KL(Q || P), how far the weights went from even ones.
    twice_gibbs, tandem, c_bound : float
        They hold together, with the certificate's confidence. A wrong decision leaves the
        true class at most half of the vote, which is all that they need.
    """

    n_voters: int
    kl: float
    twice_gibbs: float
    tandem: float
    c_bound: float


@dataclass(frozen=True)
class ClassCertificate:
    """What :func:`damvi.certificate.certify` can promise of many classes.

    A bound on all decisions is vacuous unless it is below the share of the rows that are
    not of the largest class: naming that one always does as well. The two bounds of a
    class are vacuous unless their sum is below 1, which naming it at random reaches.

    Attributes
    ----------
    delta : float
        The chance to be wrong.
    labels : tuple
        The classes.
    largest_class : float
        The largest class's share of the rows.
    missed, flagged : tuple of Rate
        For each class, its rows that were decided otherwise, and the rows of others that
        were decided for it. All of them hold together with confidence 1 - delta.
    overall : Rate
        Wrong decisions among all rows.
    pac_bayes : OverallBounds or None
        None where votes count by factors other than 1.
    """

    delta: float
    labels: tuple[Any, ...]
    largest_class: float
    missed: tuple[Rate, ...]
    flagged: tuple[Rate, ...]
    overall: Rate
    pac_bayes: OverallBounds | None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rest = 1 - self.largest_class
        lines = [
            f"What {self.overall.rows:,} rows kept apart promise, at "
            f"{100 * (1 - self.delta):g} % confidence",
            "",
            columns("", "rows", "wrong", "seen", "at most", "interval"),
        ]
        for label, missed, flagged in zip(
            self.labels, self.missed, self.flagged, strict=True
        ):
            lines.append(rate_line(f"{label!r} missed", missed))
            lines.append(rate_line(f"{label!r} flagged", flagged))
        lines.append(rate_line("all decisions", self.overall))
        lines.append(f"Always the largest class: {100 * rest:.1f} % of decisions wrong.")
        if self.pac_bayes is not None:
            made = self.pac_bayes
            lines += ["", f"PAC-Bayes: {made.n_voters} voters; KL {made.kl:.3g}"]
            for name, value in (
                ("2 x Gibbs risk", made.twice_gibbs),
                ("tandem", made.tandem),
                ("C-bound", made.c_bound),
            ):
                lines.append(f"{name:<16}at most {bound_shown(value, value >= rest)}")
        return "\n".join(lines)


def certify_classes(
    model: Any,
    X: Any,
    labels: NDArray[np.intp],
    delta: float,
    counted: Callable[[NDArray[np.bool_], float], dict[str, Any]],
) -> ClassCertificate:
    """The certificate of a model of three or more classes; ``labels`` are their places."""
    classes = model.classes_.tolist()
    decided = np.searchsorted(model.classes_, model.predict(X))
    share = delta / (2 * len(classes))
    rates = []
    for c in range(len(classes)):
        own = labels == c
        pair = [counted(decided[own] != c, share), counted(decided[~own] == c, share)]
        empty = by_class_is_vacuous(pair[0]["upper"], pair[1]["upper"])
        rates.append([Rate(**one, vacuous=empty) for one in pair])
    largest = float(np.bincount(labels).max() / len(labels))
    overall = counted(decided != labels, delta)
    return ClassCertificate(
        delta=float(delta),
        labels=tuple(classes),
        largest_class=largest,
        missed=tuple(missed for missed, _ in rates),
        flagged=tuple(flagged for _, flagged in rates),
        overall=Rate(**overall, vacuous=overall["upper"] >= 1 - largest),
        pac_bayes=_bounds(model, X, labels, delta),
    )


def _bounds(
    model: Any, X: Any, labels: NDArray[np.intp], delta: float
) -> OverallBounds | None:
    if (model.threshold_ != 1).any():
        return None
    Q = model.weights_
    kl = kl_divergence(Q, np.full(len(Q), 1 / len(Q)))
    share_of_truth = model.vote(X)[np.arange(len(labels)), labels]
    found = bounds_of_vote(
        2 * share_of_truth - 1, np.ones(len(labels)), kl, delta / N_BOUNDS
    )
    return OverallBounds(n_voters=len(Q), kl=kl, **found)
