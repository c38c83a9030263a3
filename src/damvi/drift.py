"""What has changed between the training rows and others: column by column, with a page.

Beside it stands what the model is worth there, by its own probabilities
(``evaluation/expected.py``), and how batches before it did (``history.py``).

Every check compares two shares: of the new rows and of the training rows, above or below a
value, in a category, missing, or not read. Its p-value counts the chance of both samples,
and all of them are corrected together, so that on unchanged rows one warning in a hundred
tables is the most there is, whatever the number of columns (``benchmarks/drift.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, xlogy

from ._files import write_whole
from .evaluation import MEASURES, Expected, Figure
from .evaluation.expected import ASSUMPTIONS
from .history import Batch
from .report.words import percent
from .tables import Target, listed
from .tables.profile import Profile, Tally
from .tables.schema import Column, Schema

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.01
"""Unchanged tables in which anything at all is said to have changed, at most."""
MATTERS = {"unread": 0.01, "missing": 0.05, "range": 0.01, "values": 0.25}
"""By how much a share must have grown to be warned of. In many rows a change is certain
long before it matters."""
FACTOR = 2.0
"""By how much the share of a decision must have changed to be warned of."""
FEW_DECIDED = 20
"""Training rows with a decision, below which their share is no expectation."""
APART = ("levels", "text")
"""Kinds of columns of which the profile holds no values, since they have too many."""
MOST_LISTED = 10
MOST_NAMED = 5

Floats = NDArray[np.float64]


class DriftWarning(UserWarning):
    """A table differs from the training rows by more than chance, and enough to matter."""


class DriftError(ValueError):
    """The same where it is not to be overlooked (``strict``)."""


def chance_of(now: Any, rows: Any, then: Any, of: Any) -> Any:
    """The chance of a share as high as ``now`` of ``rows``, had nothing changed.

    A signed likelihood root, which is true far out in the tails. It is that of the number
    of new rows beyond a value that ``then`` of the ``of`` training rows are beyond, where
    the value is itself a training row's: whatever their distribution, and with ties more
    is not likelier. Shares of the fit are no more certain than so many rows make them.

    Examples
    --------
    >>> print(f"{chance_of(10, 200, 0, 500):.2g}")  # exactly (200 / 700) ** 10, or 3.6e-06
    9.9e-06
    """
    now, rows, then, of = np.broadcast_arrays(*map(np.float64, (now, rows, then, of)))
    a, n = then + 1, of + 1
    j = np.maximum(now - 0.5, 0.0)  # for continuity
    m = np.maximum(rows, 1.0)
    share, before, both = j / m, a / n, (j + a) / (m + n)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = 2 * (
            xlogy(j, share / both)
            + xlogy(m - j, (1 - share) / (1 - both))
            + xlogy(a, before / both)
            + xlogy(n - a, (1 - before) / (1 - both))
        )
    likelier = (share > before) & (rows > 0) & (of > 0)
    return np.where(likelier, ndtr(-np.sqrt(np.maximum(root, 0.0))), 1.0)


@dataclass(frozen=True)
class Finding:
    """The clearest sign of one kind of change.

    Attributes
    ----------
    kind : {"unread", "missing", "filled", "range", "values", "decisions"}
        Cells that are not understood; that are missing, or no longer; values outside those
        of the fit; other values or categories within; decisions of the model.
    now, then : float
        Shares of the new rows and of the training rows.
    p : float
        Corrected for all checks of all columns.
    words : str
    """

    kind: str
    now: float
    then: float
    p: float
    words: str

    @property
    def is_certain(self) -> bool:
        return self.p <= ALPHA

    @property
    def matters(self) -> bool:
        """Whether it is certain, and large enough to be warned of."""
        if self.kind == "decisions":
            least, most = sorted((self.now, self.then))
            return self.is_certain and most >= FACTOR * least
        grown = self.now - self.then
        return self.is_certain and grown >= MATTERS.get(self.kind, np.inf)


@dataclass(frozen=True, eq=False)
class ColumnDrift:
    """How a column differs from what it was in training.

    Attributes
    ----------
    name : str
    kind : str
    missing, unread : (float, float)
        Shares of the cells, in training and now.
    distance : float
        Of numbers, the largest difference between the shares below, or above, any of the
        stored values (a Kolmogorov-Smirnov distance); of categories, the share of rows
        that would have to change theirs (total variation). From 0 to 1; NaN of others.
    p : float
        The chance of as clear a difference in any column, had nothing changed.
    findings : list of Finding
        The clearest of each kind, those that matter first.
    labels : list of str
        Values or categories that were counted.
    shares : ndarray of shape (2, labels)
        Of the rows in training and now: up to each value, or in each category.
    days : (float, float, float, float) or None
        The first and the last day in training, and now.
    """

    name: str
    kind: str
    missing: tuple[float, float]
    unread: tuple[float, float]
    distance: float
    p: float
    findings: list[Finding]
    labels: list[str]
    shares: Floats
    days: tuple[float, float, float, float] | None = None

    @property
    def changed(self) -> bool:
        return self.p <= ALPHA

    @property
    def matters(self) -> bool:
        return any(finding.matters for finding in self.findings)

    @property
    def words(self) -> str:
        """What changed, or nothing."""
        return "; ".join(one.words for one in self.findings if one.is_certain)

    @property
    def warning(self) -> str:
        """What of it is large enough to be warned of, or nothing."""
        kinds = {one.kind for one in self.findings if one.matters}
        found = [one.words for one in self.findings if one.matters]
        if kinds >= {"range", "values"}:  # one of them says it
            found.pop()
        return f"{self.name!r}: {'; '.join(found)}" if found else ""

    @property
    def figures(self) -> tuple[str, str]:
        """The distance and p, for people."""
        distance = "–" if np.isnan(self.distance) else f"{self.distance:.3f}"
        return distance, f"{self.p:.2g}" if self.p >= 1e-12 else "below 1e-12"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "column": self.name,
            "kind": self.kind,
            "changed": self.changed,
            "matters": self.matters,
            "distance": self.distance,
            "p": self.p,
            "missing": self.missing[1],
            "missing_in_training": self.missing[0],
            "unread": self.unread[1],
            "unread_in_training": self.unread[0],
            "words": self.words,
        }


@dataclass(frozen=True, eq=False)
class Drift:
    """What changed between the training rows and a table.

    Attributes
    ----------
    rows, training_rows : float
        The latter is smaller than it was where a sample stands for it.
    columns : list of ColumnDrift
        Those that changed most come first.
    decisions : list of Finding
        Of the decision for each class, those that matter first.
    labels : tuple of str
        What the classes are called, of two the positive one last.
    expected : Expected or None
        What the model is worth there, by its own probabilities. None where only the columns
        are compared, or where the model has no out-of-sample votes to tell by.
    answered : int
        Rows of the table with a true answer.
    achieved : dict of str to float
        The figures on these.
    beside : dict of str to Figure
        What is expected on these.
    fingerprint : str
        By which the rows are recognised, whatever their order.
    batches : list of Batch
        Those of the history that this one was added to, if any.
    """

    rows: float
    training_rows: float
    columns: list[ColumnDrift]
    decisions: list[Finding]
    labels: tuple[str, ...] = ()
    expected: Expected | None = None
    answered: int = 0
    achieved: dict[str, float] = field(default_factory=dict)
    beside: dict[str, Figure] = field(default_factory=dict)
    fingerprint: str = ""
    batches: list[Batch] = field(default_factory=list)

    @cached_property
    def warnings(self) -> list[str]:
        """What is certain and large enough to matter, a line each."""
        found = [one.words for one in self.decisions if one.matters]
        return found + [column.warning for column in self.columns if column.matters]

    @property
    def summary(self) -> str:
        """The warnings in one text, for people; empty if there are none."""
        lines = self.warnings
        more = len(lines) - MOST_LISTED
        rest = [f"and {more:,} more, which damvi drift shows"] if more > 0 else []
        return "\n".join(f"  {line}" for line in [*lines[:MOST_LISTED], *rest])

    @property
    def lead(self) -> str:
        """How much has changed, in a sentence."""
        apart = [one.name for one in self.columns if one.kind in APART and not one.changed]
        n = len(self.columns) - len(apart)
        if not n:
            n, apart = len(apart), []
        changed = sum(column.changed for column in self.columns)
        matter = sum(column.matters for column in self.columns)
        columns = "columns differs" if changed == 1 else "columns differ"
        if not changed:
            told = f"None of the {n:,} columns differs from training by more than chance."
        else:
            told = (
                f"{changed:,} of {n:,} {columns} from training by more than chance, "
                f"{matter:,} by enough to be warned of."
            )
        if apart:
            they = "it has" if len(apart) == 1 else "they have"
            told += (
                f" Of {listed(apart)} only missing cells are compared: {they} too many "
                f"values."
            )
        return told

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "rows": self.rows,
            "training_rows": self.training_rows,
            "alpha": ALPHA,
            "columns": [column.as_dict() for column in self.columns],
            "decisions": [vars(one) for one in self.decisions],
            "warnings": self.warnings,
            "fingerprint": self.fingerprint,
            "expected": None if self.expected is None else self.expected.as_dict(),
            "answered": self.answered,
            "achieved": self.achieved,
            "expected_of_answered": {k: one.as_dict() for k, one in self.beside.items()}
            if self.answered
            else {},
        }

    @property
    def worth(self) -> list[str]:
        """What the model is worth on these rows, in sentences; none if it is not known."""
        found = self.expected
        return [] if found is None else _worth(found, self.labels, self._strange)

    @property
    def figures(self) -> list[list[str]]:
        """The same as lines of a table: see ``headings``."""
        found = self.expected
        if found is None:
            return []
        lines = []
        for name, one in (self.beside or found.overall).items():
            line = [MEASURES[name], f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}"]
            if self.answered:
                line += _achieved(one, self.achieved.get(name))
            lines.append(line)
        return lines

    @property
    def headings(self) -> list[str]:
        """Of the columns of ``figures``."""
        told = ["", "expected", "90 % interval"]
        return [*told, "achieved", "within"] if self.answered else told

    @property
    def _strange(self) -> list[str]:
        """Columns with values that training had not, where nothing vouches for P(y|x)."""
        kinds = ("range", "unread")
        return [
            column.name
            for column in self.columns
            if any(one.matters and one.kind in kinds for one in column.findings)
        ]

    def as_batch(self, name: str, model: str = "") -> Batch:
        """What a history keeps of it, and by which model."""

        def plain(figures: dict[str, Figure]) -> dict[str, list[float]]:
            return {key: [one.value, one.low, one.high] for key, one in figures.items()}

        found = self.expected
        return Batch(
            name,
            self.fingerprint,
            int(self.rows),
            0 if found is None else found.flagged,
            "" if found is None else found.assumption,
            {} if found is None else plain(found.overall),
            self.warnings,
            self.answered,
            self.achieved,
            plain(self.beside) if self.answered else {},
            model=model,
        )

    def as_frame(self) -> pd.DataFrame:
        """A row for each column of the table, those that changed most first."""
        import pandas as pd

        return pd.DataFrame([column.as_dict() for column in self.columns])

    def page(self, name: str = "", command: str = "") -> str:
        """The same as one HTML page that loads nothing from anywhere."""
        from .report.drift_page import drift_page

        return drift_page(self, name, command)

    def save(
        self, path: str | os.PathLike[str], *, name: str = "", command: str = ""
    ) -> None:
        """Write the page, whole or not at all."""
        write_whole(Path(path), self.page(name, command))


def compare(
    schema: Schema,
    profile: Profile,
    now: Tally,
    target: Target | None = None,
    days: Floats | None = None,
) -> Drift:
    """Compare rows that were counted by ``Profile.count`` with the training rows.

    Parameters
    ----------
    schema : Schema
    profile : Profile
        Of the training rows.
    now : Tally
        Of the new ones.
    target : Target, optional
        What the decisions are called.
    days : ndarray of shape (dates, 2), optional
        The first and the last day of each column of dates.
    """
    then, used = profile.tally, schema.used
    families = len(used) + 1  # the decisions are one more
    columns = []
    number = level = date = 0
    for place, column in enumerate(used):
        cells = _Cells(column, place, then, now)
        labels: list[str] = []
        shares = np.zeros((2, 0))
        distance, dated = np.nan, None
        if column.kind == "number":
            labels, shares, distance = cells.numbers(profile.cuts[number], number)
            number += 1
        elif column.kind == "category":
            labels, shares, distance = cells.categories(level)
            level += len(column.categories)
        elif column.kind == "date":
            if days is not None:
                dated = (*profile.days[date].tolist(), *days[date].tolist())
            date += 1
        factor = len(cells.checks) * families
        findings = cells.findings(factor)
        p = min((finding.p for finding in findings), default=1.0)
        columns.append(
            ColumnDrift(
                column.name,
                column.kind,
                (then.missing[place] / then.rows, now.missing[place] / max(now.rows, 1)),
                (then.unread[place] / then.rows, now.unread[place] / max(now.rows, 1)),
                distance,
                p,
                findings,
                labels,
                shares,
                dated,
            )
        )
    order = sorted(columns, key=lambda one: (not one.matters, not one.changed, one.p))
    decisions = _decisions(then, now, target, families)
    return Drift(now.rows, then.rows, order, decisions)


class _Check(NamedTuple):
    kind: str
    now: float
    rows: float
    then: float
    of: float
    words: Callable[[], str]


class _Cells:
    """The checks of a column: shares that may have grown."""

    def __init__(self, column: Column, place: int, then: Tally, now: Tally) -> None:
        self._column, self._then, self._now = column, then, now
        missing, unread = now.missing[place], now.unread[place]
        before, not_read = then.missing[place], then.unread[place]
        self._known = now.rows - missing - unread, then.rows - before - not_read
        rows, of = now.rows, then.rows

        def gone() -> str:
            share, was = percent(missing / max(rows, 1)), percent(before / of)
            return f"{share} missing, {was} in training"

        def not_known() -> str:
            new = ("is unreadable", "are unreadable")
            if column.kind == "category":
                new = ("is a category that is new", "are categories that are new")
            was, told = percent(not_read / of), new[int(unread != 1)]
            return f"{unread:,.0f} of {rows:,.0f} values {told} ({was} in training)"

        self.checks = [
            _Check("unread", unread, rows, not_read, of, not_known),
            _Check("missing", missing, rows, before, of, gone),
            _Check("filled", rows - missing, rows, of - before, of, gone),
        ]

    def numbers(self, cuts: Floats, place: int) -> tuple[list[str], Floats, float]:
        """Check the values; their names, shares up to each, and the distance."""
        known, of = self._known
        last = len(cuts) - 1
        distance = 0.0
        places = np.flatnonzero(np.diff(cuts, prepend=-np.inf) > 0).tolist()
        for side, edge in (("below", 0), ("above", last)):
            counts = getattr(self._then, side)[place], getattr(self._now, side)[place]
            shares = counts[1] / max(known, 1) - counts[0] / max(of, 1)
            distance = max(distance, float(shares.max()))
            for k in places:
                then, now = float(counts[0][k]), float(counts[1][k])
                outside = cuts[k] == cuts[edge] and then == 0
                kind = "range" if outside else "values"
                words = partial(
                    _beyond, side, float(cuts[k]), now, known, then, of, outside
                )
                self.checks.append(_Check(kind, now, known, then, of, words))
        ends = [*np.flatnonzero(np.diff(cuts) > 0).tolist(), last]
        upto = [
            1 - tally.above[place, ends] / max(n, 1)
            for tally, n in ((self._then, of), (self._now, known))
        ]
        return [_number(cut) for cut in cuts[ends].tolist()], np.array(upto), distance

    def categories(self, start: int) -> tuple[list[str], Floats, float]:
        """Check the categories; their names, their shares, and the distance."""
        known, of = self._known
        names = self._column.categories
        counts = [
            tally.levels[start : start + len(names)] for tally in (self._then, self._now)
        ]
        # All categories of the fit were known in it. Of the rest as many are to come as
        # training rows are alone in theirs (Good and Turing).
        unread = self.checks[0]
        self.checks[0] = unread._replace(then=unread.then + int((counts[0] == 1).sum()))
        for name, then, now in zip(names, *map(np.ndarray.tolist, counts), strict=True):
            words = partial(_in_category, name, now, known, then, of)
            self.checks.append(_Check("values", now, known, then, of, words))
        shares = np.array([counts[0] / max(of, 1), counts[1] / max(known, 1)])
        if not known:
            return list(names), shares, np.nan
        return list(names), shares, float(np.abs(shares[1] - shares[0]).sum() / 2)

    def findings(self, factor: int) -> list[Finding]:
        """The clearest of each kind; ``factor`` is the number of all checks."""
        numbers = np.array([check[1:5] for check in self.checks])
        chances = np.minimum(chance_of(*numbers.T) * factor, 1.0)
        grown = numbers[:, 0] / np.maximum(numbers[:, 1], 1)
        grown -= numbers[:, 2] / np.maximum(numbers[:, 3], 1)
        # Of several that are certain, the largest says most.
        rank = np.where(chances <= ALPHA, -1 - grown, chances)
        best: dict[str, int] = {}
        for k, check in enumerate(self.checks):
            if check.kind not in best or rank[k] < rank[best[check.kind]]:
                best[check.kind] = k
        found = [self._finding(k, float(chances[k])) for k in best.values()]
        kinds = [*MATTERS, "filled"]
        return sorted(found, key=lambda one: (not one.matters, kinds.index(one.kind)))

    def _finding(self, place: int, p: float) -> Finding:
        kind, now, rows, then, of, words = self.checks[place]
        return Finding(kind, now / max(rows, 1), then / max(of, 1), p, words())


def _beyond(
    side: str, cut: float, now: float, rows: float, then: float, of: float, outside: bool
) -> str:
    least = "the least" if side == "below" else "the largest"
    was = least if outside else percent(then / max(of, 1))
    return f"{percent(now / max(rows, 1))} {side} {_number(cut)}, {was} in training"


def _in_category(name: str, now: float, rows: float, then: float, of: float) -> str:
    share, was = percent(now / max(rows, 1)), percent(then / max(of, 1))
    return f"{share} are {name!r}, {was} in training"


def _decisions(
    then: Tally, now: Tally, target: Target | None, families: int
) -> list[Finding]:
    """How the decisions differ; none where they were not counted."""
    of, rows = float(then.decided.sum()), float(now.decided.sum())
    if not of or not rows:
        return []
    n_classes = len(then.decided)
    names = list(target.classes) if target else []
    places = range(n_classes) if names else [1]
    found = []
    for c in places:
        a, b = float(then.decided[c]), float(now.decided[c])
        # The threshold was tuned on these rows: of a few, fewer come later.
        more = chance_of(b, rows, max(a, FEW_DECIDED), of)
        fewer = chance_of(rows - b, rows, of - a, of) if a >= FEW_DECIDED else 1.0
        p = min(1.0, float(min(more, fewer)) * 2 * len(places) * families)
        what = f"decided as {names[c]!r}" if names else "flagged"
        words = (
            f"{percent(b / rows)} of the rows are {what}, {percent(a / of)} were expected"
        )
        found.append(Finding("decisions", b / rows, a / of, p, words))
    return sorted(found, key=lambda one: (not one.matters, one.p))


def _number(value: float) -> str:
    """A value of a column, with digits enough to recognise it."""
    return (
        f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:,.6g}"
    )


# What the model is worth, in words.


def _count(one: Figure) -> str:
    return f"{one.value:,.0f}"


def _range(one: Figure) -> str:
    return f"({one.low:,.0f} to {one.high:,.0f})"


def _achieved(expected: Figure, achieved: float | None) -> list[str]:
    if achieved is None:
        return ["–", "–"]
    inside = expected.low - 1e-9 <= achieved <= expected.high + 1e-9
    return [f"{achieved:.3f}", "yes" if inside else "no"]


def _worth(found: Expected, labels: tuple[str, ...], strange: list[str]) -> list[str]:
    """The assumption, what it leads to, and what speaks against it."""
    lead = f"{ASSUMPTIONS[found.assumption]}"
    told = []
    if len(found.by_class) == 1:
        own, name = found.by_class[0], labels[-1]
        flagged = own["named"]
        them = (
            f"{_count(own['right'])} of the {flagged:,} flagged rows are expected to be "
            f"{name!r} {_range(own['right'])}"
            if flagged
            else "no row is flagged"
        )
        told.append(
            f"{lead}: {them}, and {_count(own['rows'])} of all {found.rows:,} rows "
            f"{_range(own['rows'])}."
        )
    else:
        right = sum(own["right"].value for own in found.by_class)
        told.append(
            f"{lead}: {right:,.0f} of {found.rows:,} rows are expected to be given their "
            f"right class."
        )
    if found.assumption == "P(x|y)":
        told += _shifted(found, labels)
    if strange:
        names = ", ".join(map(repr, strange[:MOST_NAMED]))
        more = f" and {len(strange) - MOST_NAMED:,} more" * (len(strange) > MOST_NAMED)
        verb = "hold" if len(strange) > 1 else "holds"
        told.append(
            f"There is reason to doubt that: {names}{more} {verb} values that training had "
            f"not, and what these mean the model cannot know."
        )
    return told


def _shifted(found: Expected, labels: tuple[str, ...]) -> list[str]:
    """The class rates, and the threshold that goes with them."""
    told = []
    if len(found.by_class) == 1:
        rate, before = found.by_class[0]["rate"], float(found.rates[-1])
        ends = f"{percent(rate.low)} to {percent(rate.high)}"
        told.append(
            f"By the votes {percent(rate.value)} of the rows are {labels[-1]!r} ({ends}), "
            f"{percent(before)} were in training."
        )
    if found.threshold is not None:
        cut = np.atleast_1d(found.threshold)
        what = f"a threshold of {cut[0]:.3f} on the score"
        if len(cut) > 1:
            factors = [f"{one:.3f} for {labels[c]!r}" for c, one in enumerate(cut)]
            more = len(factors) - MOST_NAMED
            factors[MOST_NAMED:] = [f"and so on for {more:,} more"] * (more > 0)
            what = f"factors of {', '.join(factors)}"
        figures = ", ".join(
            f"{MEASURES[name]} {one.value:.3f}" for name, one in found.corrected.items()
        )
        told.append(f"Best at these rates would be {what}: {figures}.")
    return told
