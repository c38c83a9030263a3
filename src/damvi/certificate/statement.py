"""The certificate itself: plain numbers, and the page that shows them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Rate:
    """How often decisions are wrong on a group of rows, by Clopper and Pearson.

    Attributes
    ----------
    rows, errors : int
        Rows of the group, and how many of them were decided wrongly.
    upper : float
        What the rate of all such rows stays below, with the certificate's confidence.
    low, high : float
        An interval that holds it, with the same confidence.
    vacuous : bool
        Whether ``upper`` says nothing: see :class:`Certificate`.
    """

    rows: int
    errors: int
    upper: float
    low: float
    high: float
    vacuous: bool

    @property
    def seen(self) -> float | None:
        """The share of errors; None of no rows."""
        return self.errors / self.rows if self.rows else None


@dataclass(frozen=True)
class Bound:
    """A PAC-Bayes bound on the three risks, and whether it says nothing about them."""

    missed: float
    false_alarms: float
    overall: float
    vacuous_by_class: bool
    vacuous_overall: bool


@dataclass(frozen=True)
class PacBayes:
    """PAC-Bayes bounds, with what they were made of.

    Attributes
    ----------
    n_voters : int
        Voters of the model, K.
    threshold : float
        Where the vote is cut. Other than 0, it counts as one more voter.
    prior : str
        The weights that the voters had before any row was seen.
    kl : float
        KL(Q || P), how far the weights went from there.
    twice_gibbs, tandem, c_bound : Bound
    """

    n_voters: int
    threshold: float
    prior: str
    kl: float
    twice_gibbs: Bound
    tandem: Bound
    c_bound: Bound


@dataclass(frozen=True)
class Certificate:
    """What :func:`damvi.certificate.certify` can promise. ``print`` it to read it.

    A bound on all decisions is vacuous unless it is below the smaller class's share of
    the rows: never flagging anything (or always) does as well. Bounds on the two classes
    are vacuous unless their sum is below 1: flagging at random, at any rate, misses and
    flags wrongly with rates that sum to 1, and never flagging is one such way.

    Attributes
    ----------
    delta : float
        The chance to be wrong.
    pos_label, neg_label : label
    smaller_class : float
        The smaller class's share of the rows.
    missed, false_alarms : Rate
        Wrong decisions among the positives, and among the negatives; the two hold
        together with confidence 1 - delta.
    overall : Rate
        Wrong decisions among all rows.
    pac_bayes : PacBayes or None
        None where the decisions do not follow the vote and one threshold, which is all
        that PAC-Bayes bounds cover.
    """

    delta: float
    pos_label: Any
    neg_label: Any
    smaller_class: float
    missed: Rate
    false_alarms: Rate
    overall: Rate
    pac_bayes: PacBayes | None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        found = asdict(self)
        for name in ("missed", "false_alarms", "overall"):
            found[name]["seen"] = getattr(self, name).seen
        return found

    def __str__(self) -> str:
        sure = f"{100 * (1 - self.delta):g} %"
        lines = [
            f"What {self.overall.rows:,} rows kept apart promise, at {sure} confidence",
            "",
            columns("", "rows", "wrong", "seen", "at most", "interval"),
            rate_line(f"{self.pos_label!r} missed", self.missed),
            rate_line(f"{self.neg_label!r} flagged", self.false_alarms),
            rate_line("all decisions", self.overall),
            f"Never flagging any: {_percent(self.smaller_class)} of all decisions wrong."
            if self.missed.rows <= self.false_alarms.rows
            else f"Always flagging: {_percent(self.smaller_class)} of decisions wrong.",
            *_pac_bayes_lines(self),
            "",
            "Vacuous: no more than flagging nothing, everything, or at random promises.",
            "This bounds how often decisions are wrong, not F1 or average precision.",
            "It holds for rows drawn like these; the lines on all decisions also need",
            "the classes in the proportions to come.",
            "The first table needs rows used for nothing before: not to train, tune,",
            "calibrate or choose. PAC-Bayes needs rows that trained neither the voters",
            "nor their calibrators.",
        ]
        return "\n".join(lines)


def _pac_bayes_lines(certificate: Certificate) -> list[str]:
    made = certificate.pac_bayes
    if made is None:
        return [
            "",
            "No PAC-Bayes bounds: decisions do not follow one threshold of the vote.",
        ]
    named = {
        "2 x Gibbs risk": made.twice_gibbs,
        "tandem": made.tandem,
        "C-bound": made.c_bound,
    }
    cut = f", threshold {made.threshold:.3g}" if made.threshold else ""
    return [
        "",
        f"PAC-Bayes: {made.n_voters} voters{cut}; prior {made.prior}; KL {made.kl:.3g}",
        columns("at most", "missed", "flagged", "all decisions"),
        *(
            columns(
                name,
                bound_shown(bound.missed, bound.vacuous_by_class),
                bound_shown(bound.false_alarms, bound.vacuous_by_class),
                bound_shown(bound.overall, bound.vacuous_overall),
            )
            for name, bound in named.items()
        ),
    ]


def rate_line(name: str, rate: Rate) -> str:
    """A rate as a line of a table."""
    return columns(
        name,
        f"{rate.rows:,}",
        f"{rate.errors:,}",
        "-" if rate.seen is None else _percent(rate.seen),
        bound_shown(rate.upper, rate.vacuous),
        f"{_percent(rate.low)} to {_percent(rate.high)}",
    )


def columns(name: str, *cells: str) -> str:
    """A line of a table."""
    widths = [18, 18, 18] if len(cells) == 3 else [8, 7, 9, 18, 20]
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"{name:<16}{''.join(padded)}"


def bound_shown(value: float, vacuous: bool) -> str:
    """A bound in percent, and whether it says nothing."""
    return f"vacuous ({_percent(value)})" if vacuous else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.01 or value == 0 else f"{100 * value:.2g} %"
