"""A parquet dataset made ready: all labels read, columns judged by a sample of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from ..outofcore import ParquetTable
from ..outofcore.parquet import RowGroup, is_number, is_text
from ..progress import progress_bar
from .encoded import EncodedTable, Encoder, coded_labels
from .footers import varies
from .preparing import Prepared, classes_of, judge_columns, refuse_names

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ROWS = 100_000
"""Rows that the columns are judged by; of each class the same number, if it has so many."""
MOST_GROUPS = 64
"""Row groups that they are taken from, and more where a class is rare in these."""
ENOUGH_OF_A_CLASS = 1000
MOST_LABELS = 2**16 - 1
NONE = MOST_LABELS


def prepare_dataset(
    path: Any,
    target: str,
    positive: Any = None,
    *,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[Prepared, int]:
    """Judge a dataset that stays on disk, and count the rows that the columns went by.

    Parameters
    ----------
    path : path
        A file, a folder or a pattern; see :class:`~damvi.ParquetTable`.
    target, positive, keep, drop
        See :func:`~damvi.modelling.prepare`.
    seed : int, default=0
        Of the sample.
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    table : Prepared
        ``X`` is an ``EncodedTable``, which reads from disk. Rows without a label are left
        out.
    n_judged : int
    """
    import pandas as pd

    table = ParquetTable(path)
    names = _columns(table)
    empty = pd.DataFrame({name: [] for name in names})
    refuse_names(empty, target, keep, drop)
    _refuse_kind(table, target)
    through = partial(_through, table, n_jobs, verbose)
    texts, codes = _read_labels(table, target, through)
    known = codes != NONE
    labels = pd.Series(
        pd.Categorical.from_codes(codes[known].astype(np.int32), texts), name=target
    )
    y, read = classes_of(labels, positive)
    y = y.astype(np.uint8) if read.classes else y
    by_row = np.full(len(codes), -1, np.int16)
    by_row[known] = y
    numbers = {
        text: read.classes.index(text) if read.classes else int(text == read.positive)
        for text in texts
    }
    frame, found = _sample(table, names, by_row, seed, through)
    judge = partial(judge_columns, frame, target, found, read, drop=drop)
    schema, warnings = judge(keep=[*keep, *_rarely_another(table, frame, keep, drop)])
    if table.told_by_folders:
        warnings = [*warnings, table.told_by_folders]
    sizes = [group.n_rows for group in table.groups]
    ends = np.cumsum([0, *sizes])
    counts = [int(known[a:b].sum()) for a, b in pairwise(ends)]
    encoder = Encoder(schema, target, numbers, bool(read.classes))
    encoded = EncodedTable(path, encoder, counts)
    return Prepared(encoded, y, None, schema, read, warnings), len(frame)


def _columns(table: ParquetTable) -> list[str]:
    """The columns of the dataset, without an index that pandas wrote along."""
    schema = table.schema
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    for name in names:
        if not name or schema.names.count(name) > 1:
            wrong = f"more than one column named {name!r}" if name else "a nameless column"
            raise ValueError(
                f"{table.path} has {wrong}; rename it, since a model knows columns by name"
            )
    return names


def _rarely_another(
    table: ParquetTable, frame: pd.DataFrame, keep: Collection[str], drop: Collection[str]
) -> list[str]:
    """Columns that have one value in the sample, and elsewhere others."""
    one = [name for name in frame.columns if name not in (*keep, *drop)]
    one = [name for name in one if _is_constant(frame[name])]
    return [name for name in one if varies(table, name)]


def _is_constant(column: pd.Series) -> bool:
    try:
        return bool(column.notna().all() and column.nunique() == 1)
    except TypeError:  # lists and records, which are no features
        return False


def _refuse_kind(table: ParquetTable, target: str) -> None:
    kind = table.schema.field(target).type
    if not (is_text(kind) or is_number(getattr(kind, "value_type", kind))):
        raise ValueError(
            f"the target {target!r} holds {kind}; make it a text or a number for each class"
        )


def _through(
    table: ParquetTable,
    n_jobs: int | None,
    verbose: bool,
    what: str,
    work: Callable[[int, RowGroup], Any],
) -> Iterator[Any]:
    """What the work makes of each row group, in order."""
    groups = table.groups
    calls = (partial(work, number, group) for number, group in enumerate(groups))
    results = in_threads(calls, n_jobs)
    return progress_bar(what)(results, len(groups)) if verbose else results


def _read_labels(
    table: ParquetTable, target: str, through: Any
) -> tuple[list[str], NDArray[np.uint16]]:
    """All distinct labels, and the place of each row's; ``NONE`` where it has none."""
    places: dict[str, int] = {}
    parts = [np.zeros(0, np.uint16)]
    for batches in through("Reading the target", partial(_labels_of, target)):
        for texts, codes in batches:
            for text in texts:
                places.setdefault(text, len(places))
            if len(places) > MOST_LABELS:
                raise ValueError(
                    f"the target {target!r} has more than {MOST_LABELS:,} different "
                    f"values, as an amount or an id has; name a column of classes"
                )
            numbers = [*(places[text] for text in texts), NONE]
            parts.append(np.array(numbers, np.uint16)[codes])
    return list(places), np.concatenate(parts)


def _labels_of(target: str, _: int, group: RowGroup) -> list[tuple[list[str], Any]]:
    found = []
    for batch in group.batches([target]):
        texts, codes = coded_labels(batch.column(0))
        # Places are few, and parts of many wait for the first.
        found.append((texts, codes.astype(np.int32)))
    return found


def _sample(
    table: ParquetTable,
    names: list[str],
    by_row: NDArray[np.int16],
    seed: int,
    through: Any,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Some labelled rows in the order of the table, and their classes."""
    import pyarrow as pa

    chosen = _choose_rows(table, by_row, seed)

    def read(number: int, group: RowGroup) -> list[Any]:
        rows, start, found = chosen[number], 0, []
        if not len(rows):
            return []
        for batch in group.batches(names):
            own = rows[(rows >= start) & (rows < start + batch.num_rows)] - start
            found.append(batch.take(pa.array(own)))
            start += batch.num_rows
        return found

    batches = [batch for some in through("Looking at a sample", read) for batch in some]
    starts = np.cumsum([0, *(group.n_rows for group in table.groups)])
    rows = np.concatenate([start + own for start, own in zip(starts, chosen, strict=False)])
    frame = pa.Table.from_batches(batches).to_pandas().reset_index(drop=True)
    return frame, by_row[rows]


def _choose_rows(
    table: ParquetTable, by_row: NDArray[np.int16], seed: int
) -> list[NDArray[np.intp]]:
    """Places of the rows in each row group, spread over these and over the classes."""
    ends = np.cumsum([0, *(group.n_rows for group in table.groups)])
    n_classes = int(by_row.max()) + 1
    parts = [by_row[a:b] for a, b in pairwise(ends)]
    counts = np.array([np.bincount(part[part >= 0], minlength=n_classes) for part in parts])
    counts[~_groups_to_read(counts)] = 0
    before = np.cumsum(np.vstack([np.zeros(n_classes, np.intp), counts]), axis=0)
    rng, room = np.random.default_rng([seed, 23]), SAMPLE_ROWS
    chosen: list[list[NDArray[np.intp]]] = [[] for _ in parts]
    for left, c in enumerate(np.argsort(before[-1], kind="stable").tolist()):
        n = min(int(before[-1, c]), room // (n_classes - left))
        ranks = np.sort(rng.choice(before[-1, c], n, replace=False, shuffle=False))
        room -= n
        for number, part in enumerate(parts):
            low, high = np.searchsorted(ranks, before[number : number + 2, c])
            if low < high:
                places = np.flatnonzero(part == c)
                chosen[number].append(places[ranks[low:high] - before[number, c]])
    return [np.sort(np.concatenate([np.zeros(0, np.intp), *some])) for some in chosen]


def _groups_to_read(counts: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Row groups spread evenly, and those that have most of a class that is rare there."""
    read = np.zeros(len(counts), bool)
    read[np.linspace(0, len(counts) - 1, MOST_GROUPS).round().astype(np.intp)] = True
    for c in range(counts.shape[1]):
        enough = min(int(counts[:, c].sum()), ENOUGH_OF_A_CLASS)
        for number in np.argsort(-counts[:, c], kind="stable"):
            if counts[read, c].sum() >= enough:
                break
            read[number] = True
    return read
