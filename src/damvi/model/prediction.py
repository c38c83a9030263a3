"""Predictions for the rows of a table, in memory or block by block.

Blocks are read and scored in parallel, in constant memory. Column statistics are collected
on the way and compared with the training rows.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..drift import Drift, DriftError, DriftWarning, compare
from ..evaluation import (
    FittedVote,
    achieved_figures,
    are_of_fit,
    class_names,
    expected_of,
    fingerprint_of,
    true_labels,
    value_hashes,
    with_votes,
)
from ..history import add_batch
from ..io import ModelParts
from ..tables import Rows, check_carried, label_texts
from ..tables.profile import ColumnCounts, date_range
from ..validation import require_number_of_rows
from .guarantee import votes_of
from .table import as_frame, is_path, rows_in_blocks

if TYPE_CHECKING:
    import pandas as pd

MOST_NUMBERS = 1 << 20
"""Limit on output cells per piece, since hundreds of classes make long rows."""
ROWS_OF_FIRST, ROWS_OF_BLOCK = 1 << 16, 1 << 11
"""Rows sampled from the first block, and from each other one, for the drift check. What
they cannot show is too small for a warning."""
ROWS_TO_RECOGNISE = 1000
"""Rows to look for among the training rows; more would take time."""
FEW = 0.1
"""A smaller share of rows may equal training rows by chance."""
ROW = "row"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """Some rows as given, with votes, probabilities and decisions."""

    raw: Any
    vote: Floats
    chances: Floats
    decided: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.decided)


@dataclass(frozen=True, eq=False)
class Block:
    """The results for a block of rows.

    ``counts`` has the rows per decision; with two classes, the second is positive. ``made``
    has the output of each piece.
    """

    counts: NDArray[np.intp]
    column_counts: ColumnCounts | None
    made: list[Any]


class Judge:
    """Scores rows with a model and formats the predictions.

    Parameters
    ----------
    model : ModelParts
    carried : sequence of str
        Columns of the table to include with the predictions.
    n_jobs : int, optional
        Threads per vote.
    """

    def __init__(
        self,
        model: ModelParts,
        carried: Sequence[str] = (),
        n_jobs: int | None = None,
    ) -> None:
        self.model, self.carried = model, list(dict.fromkeys(carried))
        self._classifier: Any = copy(model.classifier)
        self._classifier.n_jobs = n_jobs
        self._fitted = FittedVote(self._classifier)
        self.labels: list[str] = list(class_names(model.target))
        self.own: dict[str, tuple[str, int]] = model.target.prediction_columns()
        """The contents and class of each output column."""
        for name in self.carried:
            if name in (*self.own, ROW):
                raise ValueError(
                    f"the predictions already have a column {name!r}; rename yours, or "
                    f"leave it out"
                )

    def __call__(
        self, rows: Rows, make: Callable[[Judged], Any], counted: int | None = None
    ) -> Block:
        """Score some rows, and apply ``make`` to each piece of them.

        At most ``counted`` rows are sampled for the drift check.
        """
        X, raw = rows
        # Fewer rows at a time if the output is wide.
        step = max(1, MOST_NUMBERS // len(self.own))
        counts, made = np.zeros(len(self.labels), np.intp), []
        for start in range(0, len(X), step):
            whole = len(X) <= step
            piece = X if whole else X.iloc[start : start + step]
            vote = self._classifier.vote(piece)
            chances, decided = self._fitted.decide(vote)
            counts += np.bincount(decided, minlength=len(counts))
            own = raw if whole else _sliced(raw, start, len(piece))
            made.append(make(Judged(own, vote, chances, decided)))
        return Block(counts, self._count(rows, counts, counted), made)

    def _count(
        self, rows: Rows, counts: NDArray[np.intp], most: int | None
    ) -> ColumnCounts | None:
        profile = self.model.profile
        if profile is None:
            return None
        found = profile.count(self.model.schema, rows.X, rows.raw, most=most)
        return replace(found, decided=counts.astype(np.float64))

    @property
    def names(self) -> list[str]:
        """The output columns: included ones first, then predictions."""
        return [*self.carried, *self.own]

    def _predictions(self, judged: Judged, decisions: Any) -> dict[str, Any]:
        numbers = {
            what: np.ascontiguousarray(values.reshape(len(values), -1).T)
            for what, values in (("score", judged.vote), ("probability", judged.chances))
        }
        return {
            name: decisions if what == "decision" else numbers[what][c]
            for name, (what, c) in self.own.items()
        }

    def frame(self, judged: Judged) -> pd.DataFrame:
        """Predictions for rows of a frame, with the included columns."""
        import pandas as pd

        decisions = pd.Series(self.model.target.as_given()).to_numpy()[judged.decided]
        columns = {name: judged.raw[name] for name in self.carried}
        return pd.DataFrame(
            columns | self._predictions(judged, decisions), judged.raw.index
        )

    def batch(
        self, judged: Judged, labels: Sequence[Any] | None = None, as_text: bool = False
    ) -> Any:
        """The same as an Arrow batch, for rows of a file.

        Parameters
        ----------
        judged : Judged
        labels : sequence, optional
            What to write for each decision. Default: the labels as in the target.
        as_text : bool, default=False
            Whether to convert included columns to text, as for CSV.
        """
        import pyarrow as pa

        cells = pa.array(self.model.target.as_given() if labels is None else labels)
        columns = self._predictions(judged, cells.take(pa.array(judged.decided)))
        arrays = [_carried(judged.raw, name, as_text) for name in self.carried]
        return pa.record_batch([*arrays, *map(pa.array, columns.values())], self.names)

    def blocks(
        self,
        blocks: Iterable[Callable[[], Rows]],
        make: Callable[[Judged], Any],
        jobs: int,
    ) -> Iterator[Block]:
        """Score blocks of rows in parallel; results are in order.

        Each block is read, scored and formatted by one thread. Only a few are in memory at
        a time, whatever the size of the file.
        """
        pool = ThreadPoolExecutor(jobs)
        pending: deque[Future[Block]] = deque()
        try:
            for number, rows in enumerate(blocks):
                counted = ROWS_OF_BLOCK if number else ROWS_OF_FIRST
                pending.append(pool.submit(self._read, rows, make, counted))
                if len(pending) > 2 * jobs:  # one in progress and one waiting per thread
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # after an error or Ctrl-C, cancel pending blocks
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(
        self, rows: Callable[[], Rows], make: Callable[[Judged], Any], counted: int
    ) -> Block:
        return self(rows(), make, counted)


def _sliced(raw: Any, start: int, n: int) -> Any:
    return raw.iloc[start : start + n] if hasattr(raw, "iloc") else raw.slice(start, n)


def _carried(raw: Any, name: str, as_text: bool) -> Any:
    """A column as given, as an Arrow array."""
    import pyarrow as pa

    cells = raw[name]
    if hasattr(raw, "iloc"):  # from JSON, where types may be mixed
        return pa.array(
            [None if cell is None or cell != cell else str(cell) for cell in cells]
        )
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if not as_text or pa.types.is_string(cells.type):
        return cells
    try:
        return cells.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()])


class Top:
    """Keeps the highest-scoring rows so far, highest first; ties in file order.

    Memory use depends on the number of rows kept, not on the file.

    Parameters
    ----------
    model : ModelParts
        For two classes.
    n : int
    by : str, optional
        A column of the batches: keep ``n`` rows for each of its values.
    numbered : bool, default=False
        Whether to prepend row numbers, from 1.
    """

    def __init__(
        self, model: ModelParts, n: int, by: str | None = None, numbered: bool = False
    ) -> None:
        model.target.require_two("the top rows of one class are", "leave top out")
        self.n, self.by, self._numbered = n, by, numbered
        self._found: list[Any] = []
        self._seen = self._kept = 0

    def add(self, batch: Any) -> None:
        """Add the next rows."""
        import pyarrow as pa

        table = pa.table(batch)
        if self._numbered:
            rows = pa.array(np.arange(self._seen, self._seen + len(table)) + 1)
            table = table.add_column(0, ROW, rows)
        self._seen += len(table)
        self._found.append(self._highest(table))
        if sum(map(len, self._found)) > 4 * self._kept + MOST_NUMBERS:
            self._found = [self.rows]
            self._kept = len(self._found[0])

    @property
    def rows(self) -> Any:
        """The rows kept, as an Arrow table."""
        import pyarrow as pa

        return self._highest(pa.concat_tables(self._found))

    def _highest(self, table: Any) -> Any:
        groups = None if self.by is None else table[self.by].to_pandas()
        return table.take(highest(table["score"].to_numpy(), self.n, groups))


def highest(scores: Floats, n: int, groups: Any = None) -> NDArray[np.intp]:
    """Indices of the highest scores, highest first; ties in order.

    With ``groups`` (a Series), ``n`` of each group, in order of appearance; missing values
    form one group.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from damvi.model.prediction import highest
    >>> highest(np.array([0.1, 0.5, 0.3, 0.2]), 1, pd.Series(["b", "a", "a", "b"]))
    array([3, 1])
    """
    order = np.argsort(-scores, kind="stable")
    if groups is None:
        return order[:n]
    codes = groups.factorize(use_na_sentinel=False)[0]
    order = order[np.argsort(codes[order], kind="stable")]
    sizes = np.bincount(codes)
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(order[place < n])


def predict(
    model: ModelParts,
    table: Any,
    *,
    id: str | None = None,
    columns: Sequence[str] = (),
    top: int | None = None,
    by: str | None = None,
    strict: bool = False,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """The predictions of :meth:`damvi.Model.predict`; a table is a frame or a file."""
    import pandas as pd
    import pyarrow as pa
    from joblib import effective_n_jobs

    columns = [columns] if isinstance(columns, str) else columns
    carried = columns if id is None else [id, *columns]
    if top is not None:
        require_number_of_rows(top, "top")
    if by is not None and isinstance(by, list | tuple | set | dict):
        raise TypeError(f"by={by!r} must be one column name, such as by='region'")
    if by is not None and top is None:
        raise ValueError(f"by={by!r} needs top, the number of rows for each value")
    if by is not None and by not in carried:
        carried = [*carried, by]
    best = None if top is None else Top(model, top, by)
    in_memory = not is_path(table)  # voted on by several threads
    jobs = 1 if in_memory else max(1, effective_n_jobs(n_jobs or -1))
    judge = Judge(model, carried, n_jobs if in_memory else 1)
    total: ColumnCounts | None = None
    made: list[Any] = []
    rows = _rows_of(model, table, judge.carried)
    for block in judge.blocks(rows, judge.frame if in_memory else judge.batch, jobs):
        total = block.column_counts if total is None else total.plus(block.column_counts)
        if best is None or in_memory:
            made += block.made
        else:
            for batch in block.made:
                best.add(batch)
    warn_of_drift(drift_of(model, total), strict, stacklevel=4)
    if not in_memory:
        whole = pa.Table.from_batches(made) if best is None else best.rows
        frame: pd.DataFrame = whole.to_pandas()
        return frame
    frame = pd.concat(made) if len(made) > 1 else made[0]
    if isinstance(table, pd.DataFrame):
        frame.index = table.index
    if top is None:
        return frame
    groups = None if by is None else frame[by]
    return frame.iloc[highest(frame["score"].to_numpy(), top, groups)]


def _rows_of(
    model: ModelParts,
    table: Any,
    carried: Sequence[str] = (),
    also: Sequence[str] = (),
) -> Iterable[Callable[[], Rows]]:
    """The rows of a frame as one block, or those of a file block by block."""
    if is_path(table):
        return rows_in_blocks(table, model.schema, carried, also)
    frame = as_frame(table, model.schema)
    check_carried(carried, list(frame.columns))
    return [lambda: Rows(model.schema.encode(frame), frame)]


def note_on_training_rows(model: ModelParts, X: pd.DataFrame) -> str:
    """A note if the first of some encoded rows are training rows; empty if they are new."""
    first = X.iloc[:ROWS_TO_RECOGNISE]
    known, step = (
        int(are_of_fit(model, first).sum()),
        FittedVote(model.classifier).remembers,
    )
    if known == 0 or known * step < FEW * len(first):
        return ""
    n = f"the first {len(first):,} rows"
    told = f"{n} are" if known == len(first) else f"{known:,} of {n} are"
    if step > 1:  # only a sample of the training rows is remembered
        told = f"{n} include"
    return (
        f"Note: {told} training rows, whose labels the model has seen. For honest scores, "
        f"use damvi evaluate."
    )


def drift_of(model: ModelParts, now: ColumnCounts | None) -> Drift | None:
    """The drift since training; None if the model has no profile."""
    if model.profile is None or now is None:
        return None
    return compare(model.schema, model.profile, now, model.target)


def warn_of_drift(drift: Drift | None, strict: bool, stacklevel: int = 2) -> None:
    """Warn of drift that matters, or raise an error if ``strict``."""
    if drift is None or not drift.warnings:
        return
    text = f"the data have drifted from the training rows:\n{drift.summary}"
    if strict:
        raise DriftError(text)
    warnings.warn(text, DriftWarning, stacklevel=stacklevel)


def find_drift(
    model: ModelParts,
    table: Any,
    *,
    target: str | None = None,
    label_shift: bool = False,
    history: str | os.PathLike[str] | None = None,
    name: str = "",
) -> Drift:
    """The drift of a table since training, from all of its rows, and the expected scores;
    see :meth:`damvi.Model.drift`."""
    if model.profile is None:
        raise ValueError("the model has no profile of its training rows; fit a new one")
    judge, answers = Judge(model), target or model.target.name
    dates = [column for column in model.schema.used if column.kind == "date"]

    def look(judged: Judged) -> tuple[list[tuple[float, float]], Floats]:
        cells = [_series(judged.raw[column.name]) for column in dates]
        days = [date_range(*pair) for pair in zip(dates, cells, strict=True)]
        return days, judged.vote

    days = np.tile([np.inf, -np.inf], (len(dates), 1))
    total: ColumnCounts | None = None
    votes, hashes, labels = [], [], []
    for rows in _rows_of(model, table, also=[answers]):
        found = rows()
        block = judge(found, look)
        total = block.column_counts if total is None else total.plus(block.column_counts)
        for own, vote in block.made:
            votes.append(vote)
            if own:
                days[:, 0] = np.fmin(days[:, 0], np.array(own)[:, 0])
                days[:, 1] = np.fmax(days[:, 1], np.array(own)[:, 1])
        hashes.append(value_hashes(found.X))
        labels.append(_answers(model, found.raw, answers, needed=target is not None))
    days[~np.isfinite(days)] = np.nan
    if total is None or not total.rows:
        raise ValueError("the table has no rows")
    values, truth = np.concatenate(hashes), np.concatenate(labels)
    judged = with_votes(model, values, np.concatenate(votes))
    # As in the profile: decisions on training rows are out of sample.
    decided = np.bincount(judged.decided[judged.has_vote], minlength=len(total.decided))
    total = replace(total, decided=decided.astype(np.float64))
    drift = compare(model.schema, model.profile, total, model.target, days)
    expected = expected_of(model, judged, label_shift=label_shift)
    answered = judged.has_vote & (truth >= 0)
    achieved: dict[str, float] = {}
    beside = None if expected is None else expected.overall
    if answered.any():
        seen = truth[answered], judged.vote[answered], judged.decided[answered]
        achieved = achieved_figures(*seen)
        if not answered[judged.has_vote].all():  # expected scores on the labelled rows
            some = judged.take(answered)
            of_some = expected_of(model, some, label_shift=label_shift)
            beside = None if of_some is None else of_some.overall
    drift = replace(
        drift,
        labels=class_names(model.target),
        expected=expected,
        achieved=achieved,
        answered=int(answered.sum()),
        beside=beside or {},
        origin=judged.words if judged.n_of_fit else "",
        fingerprint=fingerprint_of(values),
    )
    if history is not None:
        own = Path(table).name if is_path(table) else drift.fingerprint
        batch = drift.as_batch(name or own, _digest(model))
        batches = add_batch(history, batch, rename=bool(name))
        drift = replace(drift, batches=batches)
    return drift


def _digest(model: ModelParts) -> str:
    """A hash of a model's training votes and threshold, to tell models apart."""
    cut = np.asarray(FittedVote(model.classifier).threshold, np.float64)
    return sha256(votes_of(model) + cut.tobytes()).hexdigest()[:16]


def _answers(model: ModelParts, raw: Any, name: str, *, needed: bool) -> NDArray[np.intp]:
    """The class of each row; -1 if unlabelled."""
    names = [str(one) for one in getattr(raw, "column_names", getattr(raw, "columns", ()))]
    if not names:  # an Arrow batch
        names = raw.schema.names
    truth = np.full(len(raw), -1)
    if name not in names:
        if needed:
            raise ValueError(f"the table has no column {name!r} of labels")
        return truth
    cells = _series(raw[name]).reset_index(drop=True)
    known = label_texts(cells).notna().to_numpy()
    if known.any():
        frame = cells[known].to_frame(name).reset_index(drop=True)
        truth[known] = true_labels(model.target, frame, name)
    return truth


def _series(cells: Any) -> pd.Series:
    found: pd.Series = cells.to_pandas() if hasattr(cells, "null_count") else cells
    return found
