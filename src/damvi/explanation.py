"""What drives a model's votes: contributions of columns and voters.

For voters this is exact: the vote is the sum of weight times vote. For columns it is a
sampled Shapley value [1]_ against background rows. Starting from a background row, the
columns of the row to explain are swapped in one by one, in random order, and each is
credited with how far the vote moves. The same is done in reverse order, which cancels much
of the sampling noise, and again from the next background row. For any kind of voter, the
credits add up exactly to the vote minus the mean vote on the background rows.

This explains the model, not the world: swapping columns can create combinations of values
that never occur.

References
----------
.. [1] E. Štrumbelj and I. Kononenko (2014), Explaining prediction models and individual
   predictions with feature contributions, Knowledge and Information Systems 41.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .evaluation import FittedVote, are_of_fit, class_names
from .labels import vote_columns

if TYPE_CHECKING:
    from .io import ModelParts

__all__ = [
    "Contributions",
    "Explained",
    "ExplainedRow",
    "Importances",
    "as_text",
    "contributions",
    "explain",
    "importances",
]

MOST_ROWS = 20
MOST_PARTS = 3
"""Contributions to a row that are printed."""
MAX_BACKGROUND = 32
FEWEST = 4
MAX_ASKED = 20_000
"""Limit on model evaluations per explained row."""
MAX_SHUFFLED = 1000
MAX_CELLS = 4_000_000
"""Limit on the cells of all shuffled tables together."""
MAX_CHARACTERS = 80

OWN = "The trees' impurity-based importances, averaged by weight. They add up to 1."
SHUFFLED = (
    "Permutation importance: how far the vote ({low:g} to {high:g}) moves on average when "
    "a column is shuffled, over {rows:,} rows (half of them with the highest votes for "
    "rare classes). It shows what the model relies on, not causes. Correlated columns "
    "share their importance."
)
OWN_VOTE = (
    "Some of these rows are training rows, and their scores are not out of sample. For "
    "honest scores, use damvi evaluate."
)
MAY_KNOW = OWN_VOTE.replace("are training rows", "may be training rows")

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of columns and voters to the votes on some rows.

    Attributes
    ----------
    vote : ndarray of shape (n,)
    base : float
        The mean vote on the background rows.
    columns : tuple of str
    by_column : ndarray of shape (n, n_columns)
        Each row adds up to its vote minus ``base``.
    error : ndarray of shape (n, n_columns)
        The standard error of ``by_column``; NaN for a single background row.
    voters : tuple of str
    by_voter : ndarray of shape (n, K)
        Weight times vote; each row adds up to its vote.
    background : int
        How many background rows were used.
    """

    vote: Floats
    base: float
    columns: tuple[str, ...]
    by_column: Floats
    error: Floats
    voters: tuple[str, ...]
    by_voter: Floats
    background: int

    def row(self, i: int) -> Contributions:
        """The contributions for one row."""
        arrays = ("vote", "by_column", "error", "by_voter")
        return replace(self, **{name: getattr(self, name)[i : i + 1] for name in arrays})


@dataclass(frozen=True)
class Importances:
    """Columns and their importances, largest first.

    Attributes
    ----------
    names : tuple of str
    values : tuple of float
    method : {"own", "shuffled"}
    words : str
        What was measured, in words.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    method: str
    words: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "names": list(self.names), "values": list(self.values)}


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """One row, and the contributions to its vote for a class.

    Attributes
    ----------
    number : int
        Counted from 1, below the header.
    values : list of str
        The values of the columns of ``parts``.
    label : str
        The class whose vote is explained; of two, the positive one.
    decided : str
        The predicted class.
    parts : Contributions
        The contributions for this row.
    """

    number: int
    values: list[str]
    label: str
    decided: str
    parts: Contributions

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; NaN is None."""
        parts = self.parts
        errors = [None if np.isnan(error) else float(error) for error in parts.error[0]]
        columns = zip(parts.columns, self.values, parts.by_column[0], errors, strict=True)
        voters = zip(parts.voters, parts.by_voter[0], strict=True)
        return {
            "row": self.number,
            "class": self.label,
            "decided": self.decided,
            "vote": float(parts.vote[0]),
            "base": parts.base,
            "columns": [
                {
                    "name": name,
                    "value": value,
                    "contribution": float(part),
                    "standard_error": error,
                }
                for name, value, part, error in columns
            ],
            "voters": [
                {"name": name, "contribution": float(part)} for name, part in voters if part
            ],
        }


@dataclass(frozen=True, eq=False)
class Explained:
    """An explanation of some rows of a table.

    Attributes
    ----------
    rows : list of ExplainedRow
    ranked : Importances
        The importances of all columns over the table.
    notes : list of str
        Caveats for the user.
    words : str
        The method, in words.
    """

    rows: list[ExplainedRow]
    ranked: Importances
    notes: list[str]
    words: str

    def __repr__(self) -> str:
        listed = zip(self.ranked.names, self.ranked.values, strict=True)
        lines = ["Importance of the columns:"]
        lines += [f"  {name} {value:.3f}" for name, value in listed]
        lines.append("Rows, counted from 1:")
        for row in self.rows:
            own = row.as_dict()
            parts = sorted(own["columns"], key=lambda part: -abs(part["contribution"]))
            told = ", ".join(
                f"{part['name']} = {part['value'] or 'missing'} {part['contribution']:+.3f}"
                for part in parts[:MOST_PARTS]
            )
            lines.append(
                f"  {row.number:,}: score {own['vote']:.3f} for {row.label}, predicted "
                f"{row.decided}; {told}"
            )
        return "\n".join([*lines, self.words, *self.notes])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "importances": self.ranked.as_dict(),
            "method": self.words,
            "notes": self.notes,
            "rows": [row.as_dict() for row in self.rows],
        }


def explain(
    model: ModelParts,
    frame: Any,
    rows: Sequence[int] | None = None,
    *,
    label: str | None = None,
    seed: int = 0,
) -> Explained:
    """Explain given rows of a table, or those with the highest scores.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        See :func:`damvi.tables.read_table`. Background rows are drawn from it, too.
    rows : sequence of int, optional
        Counted from 1. Default: the 20 rows with the highest votes for ``label`` or the
        positive class; without either, with the lowest votes for the majority class.
    label : str, optional
        With three or more classes, the class to explain. Default: each row's predicted
        class.
    seed : int, default=0
    """
    classifier, fitted = model.classifier, FittedVote(model.classifier)
    names, reported = class_names(model.target), fitted.labels.reported
    column = None if label is None else _column_of(label, [names[c] for c in reported])
    X = model.schema.encode(frame)
    features = [column.name for column in model.schema.used for _ in column.features]
    vote = classifier.vote(X)
    score = _score(fitted, vote) if column is None else vote_columns(vote)[0][:, column]
    chosen = _chosen_rows(rows, score)
    _, decided = fitted.decide(vote[chosen])
    told = decided if column is None else np.full(len(chosen), reported[column])
    # With two classes, only votes for the positive one exist.
    told = np.where(np.isin(told, reported), told, reported[0])
    parts: dict[int, Contributions] = {}
    for c in np.unique(told).tolist():
        here = np.flatnonzero(told == c)
        found = contributions(
            _OneClass(fitted, c), X.iloc[chosen[here]], X, features, fitted.names, seed=seed
        )
        parts |= {int(i): found.row(at) for at, i in enumerate(here)}
    known = are_of_fit(model, X.iloc[chosen]).any()
    notes = [OWN_VOTE] if known else [MAY_KNOW] if fitted.remembers > 1 else []
    columns = dict.fromkeys(features)
    return Explained(
        rows=[
            ExplainedRow(
                int(at) + 1,
                [as_text(frame[name].iloc[at]) for name in columns],
                names[told[i]],
                names[decided[i]],
                parts[i],
            )
            for i, at in enumerate(chosen)
        ],
        ranked=importances(classifier, X, features, seed=seed),
        notes=notes,
        words=_method(parts[0], fitted),
    )


def contributions(
    classifier: Any,
    X: Any,
    background: Any,
    names: Sequence[str],
    voters: Sequence[str],
    *,
    seed: int = 0,
) -> Contributions:
    """Contributions of columns and voters to the votes on the rows of ``X``.

    Parameters
    ----------
    classifier : DAMVIClassifier
        For two classes; its votes are for the positive one.
    X : array or dataframe of shape (n, n_features)
        The rows to explain.
    background : array or dataframe
        Up to 32 background rows are drawn from these, fewer for wide tables.
    names : sequence of str
        Feature names. Features of the same name are swapped in together, as one column.
    voters : sequence of K str
    seed : int, default=0

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.explanation import contributions
    >>> X, y = make_classification(500, 4, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> found = contributions(model, X[:2], X, "abcd", [f"tree {k}" for k in range(10)])
    >>> bool(abs(found.by_column.sum(axis=1) + found.base - found.vote).max() < 1e-12)
    True
    """
    columns = tuple(dict.fromkeys(names))
    member = np.array([[name == column for name in names] for column in columns])
    rng = np.random.default_rng(seed)
    asked = 2 * (len(columns) + 1)
    n_back = int(np.clip(MAX_ASKED // asked, FEWEST, MAX_BACKGROUND))
    n_back = min(n_back, background.shape[0])
    chosen = rng.choice(background.shape[0], n_back, replace=False)
    behind = _take_rows(background, np.sort(chosen))
    orders = np.stack([rng.permutation(len(columns)) for _ in range(n_back)])
    parts = [
        _one_row(classifier, _take_rows(X, np.array([i])), behind, orders, member)
        for i in range(X.shape[0])
    ]
    return Contributions(
        vote=classifier.vote(X),
        base=float(classifier.vote(behind).mean()),
        columns=columns,
        by_column=np.stack([mean for mean, _ in parts]),
        error=np.stack([error for _, error in parts]),
        voters=tuple(voters),
        by_voter=classifier.weights_ * classifier.cast_votes(X).astype(np.float64),
        background=n_back,
    )


def importances(
    classifier: Any, X: Any, names: Sequence[str], *, seed: int = 0
) -> Importances:
    """How important the columns are to a fitted model.

    Trees have importances of their own. In a pool of different models these are missing or
    on different scales, so permutation importance is used.

    Parameters
    ----------
    classifier : DAMVIClassifier
    X : array or dataframe of shape (n, n_features)
        Rows to shuffle; not used for trees.
    names : sequence of str
        Feature names. Features of the same name are shuffled together, or summed.
    seed : int, default=0

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.explanation import importances
    >>> X, y = make_classification(500, 3, n_informative=1, n_redundant=0,
    ...     n_clusters_per_class=1, weights=[0.9], shuffle=False, random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> importances(model, X, ["signal", "noise", "more noise"]).names[0]
    'signal'
    """
    fitted = FittedVote(classifier)
    own = None if fitted.is_pool else getattr(classifier, "feature_importances_", None)
    if own is not None:
        found = dict.fromkeys(names, 0.0)
        for name, value in zip(names, (own / (own.sum() or 1.0)).tolist(), strict=True):
            found[name] += value
        method, words = "own", OWN
    else:
        rows = _rows_to_shuffle(fitted, X, len(names), seed)
        found = _shuffled(fitted, _take_rows(X, rows), names, seed)
        low, high = fitted.labels.vote_limits
        words = SHUFFLED.format(low=low, high=high, rows=len(rows))
        method = "shuffled"
    order = sorted(found, key=lambda name: -found[name])
    return Importances(tuple(order), tuple(found[name] for name in order), method, words)


def as_text(value: Any) -> str:
    """A value of the user's table as text; missing values are empty.

    Examples
    --------
    >>> as_text(0.1 + 0.2), as_text(3), as_text(float("nan")), as_text("<b>")
    ('0.3', '3', '', '<b>')
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[: MAX_CHARACTERS - 1] + "…"
    if value is None or str(value) in {"<NA>", "NaT", "nan"}:
        return ""
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{value:.6g}"
    return as_text(str(value))


@dataclass(frozen=True, eq=False)
class _OneClass:
    """A classifier restricted to its votes for one class."""

    fitted: FittedVote
    target: int

    @property
    def weights_(self) -> Any:
        return self.fitted.weights

    def vote(self, X: Any) -> Any:
        vote = self.fitted.classifier.vote(X)
        column = np.flatnonzero(self.fitted.labels.reported == self.target)[0]
        return vote.reshape(len(vote), -1)[:, column]

    def cast_votes(self, X: Any) -> Any:
        votes = self.fitted.classifier.cast_votes(X)
        return self.fitted.labels.votes_for(votes, self.target)


def _score(fitted: FittedVote, vote: Floats) -> Floats:
    """High if a rare class is likely: the votes for all but the majority class."""
    looked_for = fitted.labels.reported != fitted.labels.usual
    score: Floats = vote.reshape(len(vote), -1)[:, looked_for].sum(axis=1)
    return score


def _column_of(label: str, names: list[str]) -> int:
    """The index of a class among those that get votes."""
    if label not in names:
        known = ", ".join(map(repr, names[:10]))
        raise ValueError(f"unknown class {label!r}; the model votes for {known}")
    return names.index(label)


def _chosen_rows(rows: Sequence[int] | None, score: Floats) -> Places:
    """Indices of the given rows (counted from 1), or of the highest scores."""
    if rows is None:
        return np.argsort(-score, kind="stable")[:MOST_ROWS]
    beyond = [number for number in rows if not 1 <= number <= len(score)]
    if beyond:
        raise ValueError(
            f"row {beyond[0]:,} does not exist: counted from 1, the table has rows 1 to "
            f"{len(score):,}"
        )
    return np.array(list(dict.fromkeys(rows)), dtype=np.intp) - 1


def _method(parts: Contributions, fitted: FittedVote) -> str:
    low, high = fitted.labels.vote_limits
    return (
        f"Scores are votes for the class, from {low:g} to {high:g}. Column contributions "
        f"are Shapley values, sampled with {parts.background} background rows "
        f"({2 * parts.background} column orders); they add up to the score minus the mean "
        f"score. Voter contributions are weight times vote; they add up to the score. Both "
        f"show what the model does, not causes."
    )


def _one_row(
    classifier: Any, row: Any, behind: Any, orders: Places, member: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Each column's mean contribution over the background rows, and its standard error."""
    n_back, n_columns = orders.shape
    walks = np.concatenate([orders, orders[:, ::-1]])
    # steps[w, s, c]: after s steps of walk w, column c is swapped in from the row.
    place = np.argsort(walks, axis=1)
    steps = place[:, None, :] < np.arange(n_columns + 1)[None, :, None]
    swapped = steps.reshape(-1, n_columns) @ member
    which = np.repeat(np.tile(np.arange(n_back), 2), n_columns + 1)
    repeated = _take_rows(row, np.zeros(len(which), np.intp))
    mixed = _replace_columns(_take_rows(behind, which), repeated, swapped)
    vote = classifier.vote(mixed).reshape(len(walks), n_columns + 1)
    moved = np.take_along_axis(np.diff(vote, axis=1), place, axis=1)
    credit = (moved[:n_back] + moved[n_back:]) / 2
    spread = np.full(n_columns, np.nan)
    if n_back > 1:
        spread = credit.std(axis=0, ddof=1) / np.sqrt(n_back)
    return credit.mean(axis=0), spread


def _rows_to_shuffle(fitted: FittedVote, X: Any, n_names: int, seed: int) -> Places:
    """Half at random, half with the highest scores, so that the rare class is there."""
    n = X.shape[0]
    most = int(np.clip(MAX_CELLS // max(1, n_names * X.shape[1]), 20, MAX_SHUFFLED))
    if n <= most:
        return np.arange(n)
    drawn = np.random.default_rng(seed).permutation(n)[: 20 * MAX_SHUFFLED]
    score = _score(fitted, fitted.classifier.vote(_take_rows(X, drawn)))
    highest = np.argsort(-score, kind="stable")
    top, others = drawn[highest[: most // 2]], drawn[np.sort(highest[most // 2 :])]
    return np.sort(np.concatenate([top, others[: most - len(top)]]))


def _shuffled(
    fitted: FittedVote, X: Any, names: Sequence[str], seed: int
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    n, vote = X.shape[0], fitted.classifier.vote
    before = vote(X)
    low, high = fitted.labels.vote_limits
    moved = {}
    for name in dict.fromkeys(names):
        columns = np.array([other == name for other in names])
        others = _take_rows(X, rng.permutation(n))
        swapped = np.broadcast_to(columns, (n, len(columns)))
        apart = np.abs(vote(_replace_columns(X, others, swapped)) - before)
        # What one class loses another gains, so take half of the sum. A vote from -1 to 1
        # has both in one number.
        moved[name] = float((apart.reshape(n, -1).sum(axis=1) * (high - low) / 2).mean())
    return moved


def _take_rows(X: Any, rows: Places) -> Any:
    """Rows of a table by index, possibly repeated."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def _replace_columns(X: Any, others: Any, swapped: NDArray[np.bool_]) -> Any:
    """``X`` with the values of ``others`` where ``swapped`` (n, n_features) is True.

    Both have the same columns and number of rows; dtypes are preserved.
    """
    if not hasattr(X, "iloc"):
        return np.where(swapped, others, X)
    import pandas as pd

    columns = [
        X.iloc[:, j].mask(swapped[:, j], others.iloc[:, j])
        if swapped[:, j].any()
        else X.iloc[:, j]
        for j in range(X.shape[1])
    ]
    return pd.concat(columns, axis=1)
