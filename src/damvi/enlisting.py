"""Step 1 of DAMVI with unlabelled rows: to know the voters by, or to train them on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compat import take_rows
from .ballots import Ballots
from .class_ballots import ClassBallots
from .fingerprint import row_prints
from .teaching import TEACHERS, TeachesVoters
from .unlabelled import Committees, Crowd, read_unlabelled

DISAGREEMENT = "disagreement"
AUTO: tuple[str, ...] = ()
"""What the experiment in results/semi_supervised speaks for: no use of them."""
BLOCK_ROWS = 1 << 16
"""Unlabelled rows that are voted on at a time; a multiple of 8."""


class EnlistsUnlabelled(TeachesVoters):
    """The part of :class:`~damvi.DAMVIClassifier` that learns from unlabelled rows."""

    unlabeled: Any
    eta: float | str
    positive_rate: float | None
    _row_prints: NDArray[np.uint64]
    _print_step: int

    def _uses(self) -> tuple[str, ...]:
        """What unlabelled rows are good for."""
        given = self.unlabeled
        if given is None:
            return ()
        if isinstance(given, str):
            given = AUTO if given == "auto" else (given,)
        known = (DISAGREEMENT, *TEACHERS)
        wrong = [one for one in given if one not in known]
        if wrong or sum(one in TEACHERS for one in given) > 1:
            raise ValueError(
                f"unlabeled={self.unlabeled!r}; give 'auto', None, 'disagreement', "
                f"'kmeans' or 'self', or 'disagreement' with one of the two"
            )
        return tuple(given)

    def _elect_with(
        self,
        X: Any,
        signs: NDArray[np.int8],
        base: NDArray[np.float64] | None,
        X_unlabeled: Any,
        fit_params: dict[str, Any],
    ) -> Ballots | ClassBallots:
        """Train the voters and take their votes, with the help of unlabelled rows."""
        uses = self._uses()
        self._row_prints, self._print_step = np.sort(row_prints(X, signs)), 1
        if X_unlabeled is None:
            return self._elect(X, signs, base, fit_params)
        keeps = self._keeps_frames and hasattr(X, "columns")
        fresh = read_unlabelled(self, X_unlabeled, X, keep_frame=keeps)
        if not uses:
            if isinstance(self.unlabeled, str):
                advice = "Choose 'kmeans', 'self' or 'disagreement' and compare, or"
                if len(self.classes_) > 2:
                    advice = "With three or more classes there is none so far; give"
                warnings.warn(
                    f"X_unlabeled is left alone: no use of it has been seen to help "
                    f"reliably, so unlabeled='auto' makes none. {advice} None to leave it "
                    f"out",
                    UserWarning,
                    stacklevel=4,
                )
            return self._elect(X, signs, base, fit_params)
        if len(self.classes_) > 2:
            raise ValueError(
                f"X_unlabeled is for two classes so far, and y has {len(self.classes_)}; "
                f"leave it out, or name one class against the rest, as in "
                f"y == {self.classes_.tolist()[0]!r}"
            )
        # No certificate can come from rows that helped to make the vote.
        more = row_prints(fresh, np.full(fresh.shape[0], -1))
        self._row_prints = np.sort(np.concatenate([self._row_prints, more]))
        teacher = next((one for one in uses if one in TEACHERS), None)
        draws = None
        if teacher is None:
            ballots = self._elect(X, signs, base, fit_params)
            # In-sample votes beside those on unseen rows would be pure optimism.
            ballots = replace(ballots, only_unseen=ballots.unseen is not None)
        else:
            ballots, draws = self._elect_taught(X, signs, base, fresh, fit_params, teacher)
        if DISAGREEMENT in uses and isinstance(ballots, Ballots):
            crowd = Crowd.count(self._votes_on(fresh, draws), self.positive_rate)
            ballots = replace(ballots, crowd=crowd)
        return ballots

    def _votes_on(
        self, fresh: Any, draws: Committees | None
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_] | None]]:
        """The votes on unlabelled rows, block by block, and which of them are unseen."""
        n, bits = fresh.shape[0], None
        if draws is not None:
            bits = np.stack(
                [
                    np.packbits(draws.out_of_bag(k)[draws.n_labelled :])
                    for k in range(len(self._voters))
                ]
            )
        for start in range(0, n, BLOCK_ROWS):
            rows = np.arange(start, min(start + BLOCK_ROWS, n))
            votes = self._voters.votes(take_rows(fresh, rows), self.n_jobs)
            mask = None
            if bits is not None:
                part = bits[:, start // 8 :]
                mask = np.unpackbits(part, axis=1, count=len(rows)).astype(bool).T
            yield votes, mask
