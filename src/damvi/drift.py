"""Data drift since training, column by column, with an HTML report.

It also shows the expected scores of the model on the new rows
(``evaluation/expected.py``) and earlier batches (``history.py``).

Every check compares a share of the new rows with the same share of the training rows:
above or below a value, in a category, missing or unreadable. Its p-value accounts for the
chance in both samples, and all are corrected together: without drift, at most one table in
a hundred gives a warning, however many columns it has (``benchmarks/drift.py``).
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
from .messages import counted
from .report.words import percent
from .tables import Target, listed
from .tables.profile import ColumnCounts, Profile
from .tables.schema import Column, Schema

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.01
"""Significance level for a whole table: the false-alarm rate without drift."""
MATTERS = {"unread": 0.01, "missing": 0.05, "range": 0.01, "values": 0.25}
"""How much a share must have grown for a warning. With many rows, a change is significant
long before it matters."""
FACTOR = 2.0
"""How much the share of a decision must have changed for a warning, as a ratio."""
FEW_DECIDED = 20
"""With fewer training rows for a decision, their share is no reliable expectation."""
APART = ("levels", "text")
"""Kinds of columns with too many values for the profile to store."""
MOST_LISTED = 10
MOST_NAMED = 5

Floats = NDArray[np.float64]


class DriftWarning(UserWarning):
    """The data have drifted from the training rows, by enough to matter."""


class DriftError(ValueError):
    """The same as an error (``strict``)."""


def chance_of(now: Any, rows: Any, then: Any, of: Any) -> Any:
    """The one-sided p-value of ``now`` out of ``rows``, against ``then`` out of ``of``.

    A signed likelihood root, accurate far out in the tails. It applies to the number of
    new rows beyond a value that is itself a training row's, whatever the distribution (ties
    make it conservative), and accounts for the uncertainty of the training share.

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
    """The clearest sign of one kind of drift.

    Attributes
    ----------
    kind : {"unread", "missing", "filled", "range", "values", "decisions"}
        Unreadable cells; more, or fewer, missing ones; values outside the training range;
        a changed distribution within it; the model's decisions.
    now, then : float
        Shares of the new rows and of the training rows.
    p : float
        The p-value, corrected for all checks of all columns.
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
        """Whether it is significant and large enough for a warning."""
        if self.kind == "decisions":
            least, most = sorted((self.now, self.then))
            return self.is_certain and most >= FACTOR * least
        grown = self.now - self.then
        return self.is_certain and grown >= MATTERS.get(self.kind, np.inf)

    @property
    def remark(self) -> str:
        """Why a change of decisions is not warned of, after its words; empty if it is."""
        if self.matters:
            return ""
        if self.is_certain:
            return ", which is significant, but less than twofold"
        return ", no significant change"


@dataclass(frozen=True, eq=False)
class ColumnDrift:
    """How a column has drifted since training.

    Attributes
    ----------
    name : str
    kind : str
    missing, unread : (float, float)
        Shares of the cells, in training and now.
    distance : float
        For numbers, the largest difference between the shares below or above a stored
        value (a Kolmogorov-Smirnov distance); for categories, the total variation. From 0
        to 1; NaN for other kinds.
    p : float
        The p-value, corrected for all columns.
    findings : list of Finding
        The clearest of each kind; those that matter first.
    labels : list of str
        The values or categories counted.
    shares : ndarray of shape (2, labels)
        Shares of the rows, in training and now, up to each value or in each category.
    days : (float, float, float, float) or None
        The first and last day in training, and now.
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
        """What changed; empty if nothing did."""
        return "; ".join(one.words for one in self.findings if one.is_certain)

    @property
    def warning(self) -> str:
        """The changes that are large enough for a warning; empty if none is."""
        kinds = {one.kind for one in self.findings if one.matters}
        found = [one.words for one in self.findings if one.matters]
        if kinds >= {"range", "values"}:  # one of them is enough
            found.pop()
        return f"{self.name!r}: {'; '.join(found)}" if found else ""

    @property
    def figures(self) -> tuple[str, str]:
        """The distance and p, as text."""
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
    """How a table has drifted from the training rows.

    Attributes
    ----------
    rows, training_rows : float
        ``training_rows`` is smaller than in the fit if a sample represents it.
    columns : list of ColumnDrift
        Those that changed most first.
    decisions : list of Finding
        For the decision for each class; those that matter first.
    labels : tuple of str
        Class names; of two, the positive one is last.
    expected : Expected or None
        The expected scores on these rows. None if only columns are compared, or if the
        model has no out-of-sample votes to estimate them from.
    answered : int
        Labelled rows of the table.
    achieved : dict of str to float
        The scores on these.
    beside : dict of str to Figure
        The expected scores on these.
    origin : str
        Which rows are training rows, decided out of sample; empty if none is known to be.
    fingerprint : str
        Identifies the rows, whatever their order.
    batches : list of Batch
        All batches of the history that this one was added to, if any.
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
    origin: str = ""
    fingerprint: str = ""
    batches: list[Batch] = field(default_factory=list)

    def __repr__(self) -> str:
        import pandas as pd

        lines = [
            f"{counted(self.rows, 'row')}, compared with {self.training_rows:,.0f} "
            f"training rows.",
            self.lead,
            *([self.origin] if self.origin else []),
            *(f"{one.words}{one.remark}." for one in self.decisions),
            *(f"{one.name}: {one.words}" for one in self.columns if one.changed),
            *self.worth,
        ]
        if self.worth:
            table = pd.DataFrame(self.figures, columns=list(self.headings))
            lines.append(table.to_string(index=False))
        return "\n".join(lines)

    @cached_property
    def warnings(self) -> list[str]:
        """Changes that are significant and large enough to matter, one line each."""
        found = [one.words for one in self.decisions if one.matters]
        return found + [column.warning for column in self.columns if column.matters]

    @property
    def summary(self) -> str:
        """The warnings as one text; empty if there are none."""
        lines = self.warnings
        more = len(lines) - MOST_LISTED
        rest = [f"... and {more:,} more; see damvi drift"] if more > 0 else []
        return "\n".join(f"  {line}" for line in [*lines[:MOST_LISTED], *rest])

    @property
    def lead(self) -> str:
        """How much has changed, in a sentence or two."""
        apart = [one.name for one in self.columns if one.kind in APART and not one.changed]
        n = len(self.columns) - len(apart)
        if not n:
            n, apart = len(apart), []
        changed = sum(column.changed for column in self.columns)
        matter = sum(column.matters for column in self.columns)
        if not changed:
            text = f"No significant drift in any of the {n:,} columns."
        else:
            verb = "differs" if changed == 1 else "differ"
            much = f"{matter:,} of them enough to matter"
            if changed == 1:
                much = "and enough to matter" if matter else "but too little to matter"
            text = (
                f"{changed:,} of {n:,} columns {verb} significantly from training, {much}."
            )
        if apart:
            verb = "has" if len(apart) == 1 else "have"
            text += (
                f" {listed(apart)} {verb} too many values, so only missing cells were "
                f"checked."
            )
        return text

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
        """The expected scores in sentences; empty if they are not known."""
        found = self.expected
        return [] if found is None else _expected_words(found, self.labels, self._strange)

    @property
    def figures(self) -> list[list[str]]:
        """The same as rows of a table; see ``headings``."""
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
        """The headings of ``figures``."""
        names = ["", "expected", "90% interval"]
        return [*names, "achieved", "within"] if self.answered else names

    @property
    def _strange(self) -> list[str]:
        """Columns with values never seen in training, where P(y|x) is unknown."""
        kinds = ("range", "unread")
        return [
            column.name
            for column in self.columns
            if any(one.matters and one.kind in kinds for one in column.findings)
        ]

    def as_batch(self, name: str, model: str = "") -> Batch:
        """The entry for a history file; ``model`` identifies the model."""

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
        """A row for each column of the table; those that changed most first."""
        import pandas as pd

        return pd.DataFrame([column.as_dict() for column in self.columns])

    def page(self, name: str = "", command: str = "") -> str:
        """The report as a self-contained HTML page."""
        from .report.drift_page import drift_page

        return drift_page(self, name, command)

    def save(
        self, path: str | os.PathLike[str], *, name: str = "", command: str = ""
    ) -> None:
        """Write the HTML report."""
        write_whole(Path(path), self.page(name, command))


def compare(
    schema: Schema,
    profile: Profile,
    now: ColumnCounts,
    target: Target | None = None,
    days: Floats | None = None,
) -> Drift:
    """Compare rows counted by ``Profile.count`` with the training rows.

    Parameters
    ----------
    schema : Schema
    profile : Profile
        The profile of the training rows.
    now : ColumnCounts
        The counts of the new rows.
    target : Target, optional
        For the names of the decisions.
    days : ndarray of shape (dates, 2), optional
        The first and last day of each date column.
    """
    then, used = profile.counts, schema.used
    families = len(used) + 1  # one more for the decisions
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
    """The checks of a column: shares of cells that may have grown."""

    def __init__(
        self, column: Column, place: int, then: ColumnCounts, now: ColumnCounts
    ) -> None:
        self._column, self._then, self._now = column, then, now
        missing, unread = now.missing[place], now.unread[place]
        before, not_read = then.missing[place], then.unread[place]
        self._known = now.rows - missing - unread, then.rows - before - not_read
        rows, of = now.rows, then.rows

        def gone() -> str:
            share, was = percent(missing / max(rows, 1)), percent(before / of)
            return f"{share} missing ({was} in training)"

        def not_known() -> str:
            what = "new categories" if column.kind == "category" else "unreadable"
            was, share = percent(not_read / of), f"{unread:,.0f} of {rows:,.0f}"
            return f"{share} values are {what} ({was} in training)"

        self.checks = [
            _Check("unread", unread, rows, not_read, of, not_known),
            _Check("missing", missing, rows, before, of, gone),
            _Check("filled", rows - missing, rows, of - before, of, gone),
        ]

    def numbers(self, cuts: Floats, place: int) -> tuple[list[str], Floats, float]:
        """Add checks of values; return their names, cumulative shares and the distance."""
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
            1 - counts.above[place, ends] / max(n, 1)
            for counts, n in ((self._then, of), (self._now, known))
        ]
        return [_number(cut) for cut in cuts[ends].tolist()], np.array(upto), distance

    def categories(self, start: int) -> tuple[list[str], Floats, float]:
        """Add checks of categories; return their names, shares and the distance."""
        known, of = self._known
        names = self._column.categories
        counts = [
            counts.levels[start : start + len(names)] for counts in (self._then, self._now)
        ]
        # In training, no category was new. The expected share of new ones is that of
        # categories seen only once (Good-Turing).
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
        """The clearest of each kind; ``factor`` is the total number of checks."""
        numbers = np.array([check[1:5] for check in self.checks])
        chances = np.minimum(chance_of(*numbers.T) * factor, 1.0)
        grown = numbers[:, 0] / np.maximum(numbers[:, 1], 1)
        grown -= numbers[:, 2] / np.maximum(numbers[:, 3], 1)
        # Of several significant ones, take the largest.
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
    edge = "the minimum" if side == "below" else "the maximum"
    was = edge if outside else percent(then / max(of, 1))
    return f"{percent(now / max(rows, 1))} {side} {_number(cut)} ({was} in training)"


def _in_category(name: str, now: float, rows: float, then: float, of: float) -> str:
    share, was = percent(now / max(rows, 1)), percent(then / max(of, 1))
    return f"{share} are {name!r} ({was} in training)"


def _decisions(
    then: ColumnCounts, now: ColumnCounts, target: Target | None, families: int
) -> list[Finding]:
    """How the decisions differ; empty if they were not counted."""
    of, rows = float(then.decided.sum()), float(now.decided.sum())
    if not of or not rows:
        return []
    n_classes = len(then.decided)
    names = list(target.classes) if target else []
    places = range(n_classes) if names else [1]
    found = []
    for c in places:
        a, b = float(then.decided[c]), float(now.decided[c])
        # The threshold was tuned on these rows, so few flags become fewer on new rows.
        more = chance_of(b, rows, max(a, FEW_DECIDED), of)
        fewer = chance_of(rows - b, rows, of - a, of) if a >= FEW_DECIDED else 1.0
        p = min(1.0, float(min(more, fewer)) * 2 * len(places) * families)
        what = f"predicted as {names[c]!r}" if names else "flagged"
        words = f"{percent(b / rows)} of rows are {what} (expected {percent(a / of)})"
        found.append(Finding("decisions", b / rows, a / of, p, words))
    return sorted(found, key=lambda one: (not one.matters, one.p))


def _number(value: float) -> str:
    """A value with enough digits to recognise it."""
    return (
        f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:,.6g}"
    )


# Expected scores in words.


def _count(one: Figure) -> str:
    return f"{one.value:,.0f}"


def _range(one: Figure) -> str:
    return f"({one.low:,.0f} to {one.high:,.0f})"


def _achieved(expected: Figure, achieved: float | None) -> list[str]:
    if achieved is None:
        return ["–", "–"]
    inside = expected.low - 1e-9 <= achieved <= expected.high + 1e-9
    return [f"{achieved:.3f}", "yes" if inside else "no"]


def _expected_words(
    found: Expected, labels: tuple[str, ...], strange: list[str]
) -> list[str]:
    """The assumption, the expected counts, and reasons for doubt."""
    lead = f"{ASSUMPTIONS[found.assumption]}"
    lines = []
    if len(found.by_class) == 1:
        own, name = found.by_class[0], labels[-1]
        flagged = own["named"]
        them = (
            f"about {_count(own['right'])} of the {flagged:,} flagged rows are {name!r} "
            f"{_range(own['right'])}"
            if flagged
            else "no row is flagged"
        )
        of_all = f"about {_count(own['rows'])} of all {found.rows:,} rows"
        of_all = f"and {of_all}" if flagged else f"but {of_all} are {name!r}"
        lines.append(f"{lead}: {them}, {of_all} {_range(own['rows'])}.")
    else:
        right = sum(own["right"].value for own in found.by_class)
        lines.append(
            f"{lead}: about {right:,.0f} of {found.rows:,} rows are classified correctly."
        )
    if found.assumption == "P(x|y)":
        lines += _shifted(found, labels)
    if strange:
        names = ", ".join(map(repr, strange[:MOST_NAMED]))
        more = f" and {len(strange) - MOST_NAMED:,} more" * (len(strange) > MOST_NAMED)
        verb = "have" if len(strange) > 1 else "has"
        lines.append(
            f"Treat this with caution: {names}{more} {verb} values never seen in training, "
            f"so the model cannot know what they mean."
        )
    return lines


def _shifted(found: Expected, labels: tuple[str, ...]) -> list[str]:
    """The estimated class rates, and the best threshold for them."""
    lines = []
    if len(found.by_class) == 1:
        rate, before = found.by_class[0]["rate"], float(found.rates[-1])
        ends = f"{percent(rate.low)} to {percent(rate.high)}"
        lines.append(
            f"The votes suggest that {percent(rate.value)} of the rows are {labels[-1]!r} "
            f"({ends}); in training it was {percent(before)}."
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
        lines.append(f"The best choice at these rates is {what}: {figures}.")
    return lines
