"""How long a run will still take."""

from __future__ import annotations

from collections.abc import Sequence

from .plan import Pending
from .store import Cell


class Stopwatch:
    """How long the rest will take, from what its like has taken so far."""

    def __init__(self, pending: Sequence[Pending], n_jobs: int) -> None:
        self._left = {work.cell["key"]: work for work in pending}
        self._n_jobs = n_jobs
        self._seen: dict[tuple[str, ...], tuple[float, float]] = {}

    def note(self, work: Pending, outcome: Cell) -> None:
        del self._left[work.cell["key"]]
        seconds = sum(
            outcome.get(field, 0.0)
            for field in ("fit_seconds", "predict_seconds", "seconds_allowed")
        )
        for kind in _kinds(work):
            known_seconds, known_cost = self._seen.get(kind, (0.0, 0.0))
            self._seen[kind] = (known_seconds + seconds + 0.1, known_cost + work.cost)

    def seconds_left(self) -> float:
        total = 0.0
        for work in self._left.values():
            seconds, cost = next(
                self._seen[kind] for kind in _kinds(work) if kind in self._seen
            )
            total += work.cost * seconds / cost
        return total / self._n_jobs


def _kinds(work: Pending) -> list[tuple[str, ...]]:
    """The cells that one is like, the nearest first."""
    cell = work.cell
    name = (cell["dataset"], cell["method"])
    return [(*name, str(cell["ratio"])), name, (cell["method"],), ()]
