"""What each column and each voter adds to the vote on a row.

For voters it is exact: the vote is the sum of weight times vote. For columns it is a
sampled Shapley value [1]_ against background rows. Starting from a background row, the
columns of the row to explain are put in one by one, in a random order, and each column is
credited with how far the vote moves. The same is done in the reverse order, which evens
out much of the chance, and again from the next background row. Whatever the voters are,
the credits sum to the vote less the mean vote on the background rows, exactly.

It explains the model and not the world: a column is credited with what the model makes of
it, next to values that it may never be seen with.

References
----------
.. [1] E. Štrumbelj and I. Kononenko (2014), Explaining prediction models and individual
   predictions with feature contributions, Knowledge and Information Systems 41.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import replace_columns, take_rows

MAX_BACKGROUND = 32
FEWEST = 4
MAX_ASKED = 20_000
"""Rows that the model is asked about for one row to explain."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the votes on some rows are made of.

    Attributes
    ----------
    vote : ndarray of shape (n,)
    base : float
        The mean vote on the background rows.
    columns : tuple of str
    by_column : ndarray of shape (n, n_columns)
        Each row sums to its vote less ``base``.
    error : ndarray of shape (n, n_columns)
        The standard error of ``by_column``, from the draws; NaN of a single draw.
    voters : tuple of str
    by_voter : ndarray of shape (n, K)
        Weight times vote; each row sums to its vote.
    background : int
        How many background rows were used.
    """

    vote: NDArray[np.float64]
    base: float
    columns: tuple[str, ...]
    by_column: Matrix
    error: Matrix
    voters: tuple[str, ...]
    by_voter: Matrix
    background: int

    def row(self, i: int) -> Contributions:
        """What is said of one of the rows alone."""
        kept = slice(i, i + 1)
        return replace(
            self,
            vote=self.vote[kept],
            by_column=self.by_column[kept],
            error=self.error[kept],
            by_voter=self.by_voter[kept],
        )

    @property
    def words(self) -> str:
        """The method, for the user to read."""
        return (
            f"Columns: Shapley values sampled against {self.background} rows of the data "
            f"({2 * self.background} orders of the columns); they sum to the vote less "
            f"{self.base:.3f}, the mean vote on these rows. Voters: weight times vote; "
            f"they sum to the vote. Both say what the model does, not what causes what."
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
    """What columns and voters add to the votes on the rows of ``X``.

    Parameters
    ----------
    classifier : DAMVIClassifier
    X : array or dataframe of shape (n, n_features)
        The rows to explain.
    background : array or dataframe
        Rows to compare with; up to 32 are drawn from them, fewer for wide tables.
    names : sequence of str
        Of the features. Features of the same name are one column, put in together.
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
    behind = take_rows(background, np.sort(chosen))
    orders = np.stack([rng.permutation(len(columns)) for _ in range(n_back)])
    base = float(classifier.vote(behind).mean())
    parts = [
        _one_row(classifier, take_rows(X, np.array([i])), behind, orders, member)
        for i in range(X.shape[0])
    ]
    by_voter = classifier.weights_ * classifier.cast_votes(X).astype(np.float64)
    return Contributions(
        vote=classifier.vote(X),
        base=base,
        columns=columns,
        by_column=np.stack([mean for mean, _ in parts]),
        error=np.stack([error for _, error in parts]),
        voters=tuple(voters),
        by_voter=by_voter,
        background=n_back,
    )


def _one_row(
    classifier: Any,
    row: Any,
    behind: Any,
    orders: NDArray[np.intp],
    member: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean credit of each column over the background rows, and its standard error."""
    n_back, n_columns = orders.shape
    walks = np.concatenate([orders, orders[:, ::-1]])
    # steps[w, s, c]: after s steps of walk w, column c has come in from the row.
    place = np.argsort(walks, axis=1)
    steps = place[:, None, :] < np.arange(n_columns + 1)[None, :, None]
    swapped = steps.reshape(-1, n_columns) @ member
    which = np.repeat(np.tile(np.arange(n_back), 2), n_columns + 1)
    mixed = replace_columns(
        take_rows(behind, which), take_rows(row, np.zeros(len(which), np.intp)), swapped
    )
    vote = classifier.vote(mixed).reshape(len(walks), n_columns + 1)
    moved = np.take_along_axis(np.diff(vote, axis=1), place, axis=1)
    credit = (moved[:n_back] + moved[n_back:]) / 2
    spread = np.full(n_columns, np.nan)
    if n_back > 1:
        spread = credit.std(axis=0, ddof=1) / np.sqrt(n_back)
    return credit.mean(axis=0), spread
