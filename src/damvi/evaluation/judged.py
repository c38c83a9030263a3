"""Rows with what a model says of them, honestly: of one class, or of many."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """What is the same for both.

    Attributes
    ----------
    vote : ndarray of shape (n,) or (n, C)
        NaN for rows of the fit that every voter was trained on.
    of_fit : ndarray of bool, shape (n,)
        Rows that the model was fitted on, or that have the same values as one of them:
        their votes are the stored ones, out of sample. Rows that may be of the fit count
        as such too, without a vote.
    untold : int
        How many these are: none, unless the fit had so many rows that it remembers only
        some of them.
    step : int
        Of how many rows of the fit one is remembered.
    """

    vote: NDArray[np.float64]
    of_fit: NDArray[np.bool_]
    untold: int = field(default=0, kw_only=True)
    step: int = field(default=1, kw_only=True)

    def __len__(self) -> int:
        return len(self.vote)

    @property
    def has_vote(self) -> NDArray[np.bool_]:
        """Rows that can be judged."""
        missing = np.isnan(self.vote).reshape(len(self), -1)
        return np.asarray(~missing.any(axis=1))

    @property
    def n_of_fit(self) -> int:
        """Rows that are known to be of the fit."""
        return int(self.of_fit.sum()) - self.untold

    def _words_of_sample(self, known: int) -> str:
        told, judged = len(self) - self.untold, int(self.has_vote.sum())
        return (
            f"The rows of the fit are judged by a sample of one in {self.step} of them, "
            f"which the model remembers. Of the {len(self):,} rows here it can tell "
            f"{told:,}: {known:,} are rows of the fit, and have the stored out-of-sample "
            f"votes, never the model's own. {judged:,} rows are judged, and the others "
            f"left out."
        )

    @property
    def words(self) -> str:
        """Where the votes come from, for the user to read."""
        n, known = len(self), self.n_of_fit
        if self.untold:
            return self._words_of_sample(known)
        if known == 0:
            said = f"All {n:,} rows are new to the model."
            if self.step > 1:
                said += f" (It remembers one in {self.step} of its own, and met none here.)"
        else:
            which = f"All {n:,} rows" if known == n else f"{known:,} of {n:,} rows"
            said = (
                f"{which} are rows of the fit: for these the stored out-of-sample votes "
                f"are used, never the model's own."
            )
        unknown = int((~self.has_vote).sum())
        if unknown:
            said += f" {unknown:,} rows have none and are left out."
        return said


@dataclass(frozen=True, eq=False)
class Judged(JudgedRows):
    """Rows of the positive class and others.

    Attributes
    ----------
    vote : ndarray of shape (n,)
    of_fit : ndarray of bool, shape (n,)
    probability : ndarray of shape (n,)
    flagged : ndarray of bool, shape (n,)
    positive : ndarray of bool, shape (n,), or None
        The truth, if the table has the target.
    """

    probability: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    positive: NDArray[np.bool_] | None

    @property
    def truth(self) -> NDArray[np.bool_] | None:
        """The class of each row, as a label of the fit."""
        return self.positive


@dataclass(frozen=True, eq=False)
class ClassJudged(JudgedRows):
    """Rows of three or more classes.

    Attributes
    ----------
    vote : ndarray of shape (n, C)
        The share of the vote for each class, before the factors.
    of_fit : ndarray of bool, shape (n,)
    probability : ndarray of shape (n, C)
    decided : ndarray of int, shape (n,)
        The place of the class decided for; of no meaning without a vote.
    labels : ndarray of int, shape (n,), or None
        The place of the true class, if the table has the target.
    """

    probability: NDArray[np.float64]
    decided: NDArray[np.intp]
    labels: NDArray[np.intp] | None

    @property
    def truth(self) -> NDArray[np.intp] | None:
        """The class of each row, as a label of the fit."""
        return self.labels
