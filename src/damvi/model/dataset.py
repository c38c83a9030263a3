"""Prepare a parquet dataset on disk, and read its rows.

Column types are inferred from a sample. All labels are read. Features are encoded batch by
batch, by the inferred schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import in_threads
from ..hashing import Hashes, kept, row_bits, row_hashes
from ..messages import progress_bar
from ..outofcore import ParquetTable
from ..outofcore.parquet import RowGroup, is_number, is_text
from ..tables import (
    Schema,
    label_texts,
    listed,
    notes_on,
    read_classes,
    suspicions,
    time_order,
    with_kind,
)
from ..tables.profile import Profile
from ..validation import Categories, FrameTable
from .table import (
    Prepared,
    check_columns,
    dropped_like,
    judge_columns,
)

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ROWS = 100_000
"""Size of the sample, balanced over the classes as far as possible."""
MOST_GROUPS = 64
"""Row groups to sample from; more are read if a class is rare in these."""
SAMPLE_SEED = 2**31 * 301
ENOUGH_OF_A_CLASS = 1000
MOST_LABELS = 2**16 - 1
MISSING = MOST_LABELS
NO_LABEL = -1


def prepare_dataset(
    path: Any,
    target: str,
    positive: Any = None,
    *,
    shuffle: bool = False,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    like: Schema | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[Prepared, int]:
    """Prepare a dataset that stays on disk.

    Parameters
    ----------
    path : path
        A file, a folder or a pattern; see :class:`~damvi.ParquetTable`.
    target, positive, shuffle, keep, drop, like
        See :func:`~damvi.model.prepare`. Rows sorted by time are refused: out-of-bag
        scores ignore their order and would be too optimistic for later rows.
    seed : int, default=0
        Seed of the sample.
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    table : Prepared
        ``X`` is an ``EncodedTable``, which reads from disk. Unlabelled rows are dropped.
    n_judged : int
        The size of the sample.
    """
    import pandas as pd

    table = ParquetTable(path)
    names = _columns(table)
    empty = pd.DataFrame({name: [] for name in names})
    if like is not None:
        drop = dropped_like(empty, like, drop)
    check_columns(empty, target, keep, drop)
    _check_type(table, target)
    each_group = partial(_each_group, table, n_jobs, verbose)
    texts, codes = _read_labels(target, each_group)
    known = codes != MISSING
    labels = pd.Series(
        pd.Categorical.from_codes(codes[known].astype(np.int32), texts), name=target
    )
    y, classes = read_classes(labels, positive)
    kind = table.schema.field(target).type
    dtype = np.dtype(getattr(kind, "value_type", kind).to_pandas_dtype())
    classes = with_kind(classes, dtype)
    by_row = np.full(len(codes), NO_LABEL, np.int16)
    by_row[known] = y
    first = np.unique(codes[known], return_index=True)
    numbers = {texts[code]: int(y[row]) for code, row in zip(*first, strict=True)}
    frame, found = _sample(table, names, by_row, seed, each_group)
    seldom = _seldom_vary(table, frame, keep, drop)
    if like is not None:
        used = {column.name for column in like.used}
        seldom = [name for name in seldom if name in used]
    keep = [*keep, *seldom]
    schema, warnings = judge_columns(
        frame, target, found, classes, keep=keep, drop=drop, like=like
    )
    counts_by_class = np.bincount(y.astype(np.intp)).tolist()
    sample = schema.encode(frame)
    warnings = [*warnings, *suspicions(sample, found, schema, keep, counts_by_class)]
    if table.told_by_folders:
        warnings = [*warnings, table.told_by_folders]
    ends = np.cumsum([0, *(group.n_rows for group in table.groups)])
    counts = [int(known[a:b].sum()) for a, b in pairwise(ends)]
    encoder = Encoder(schema, target, numbers, y.dtype)
    encoded = EncodedTable(path, encoder, counts)
    notes = notes_on(frame, schema, sample, found)
    if not shuffle:
        notes += _note_on_time(frame, schema)
    # Rare classes are over-represented in the sample.
    of_sample = np.bincount(found, minlength=len(counts_by_class))
    per_row = np.array(counts_by_class) / np.maximum(of_sample, 1)
    profile = Profile.learn(schema, sample, frame, per_row[found])
    prepared = Prepared(
        encoded,
        y,
        None,
        schema,
        classes,
        counts_by_class,
        warnings,
        notes=notes,
        profile=profile,
    )
    # One byte per row, since there may be very many.
    return replace(prepared, y=prepared.labels), len(frame)


def _note_on_time(frame: pd.DataFrame, schema: Schema) -> list[str]:
    """A note on date columns, since validation in blocks ignores time."""
    name = time_order(frame, schema)
    cure = "fit on a sample that fits in memory"
    if name is not None:
        raise ValueError(
            f"the rows are sorted by {name!r}, but validation in blocks ignores time, so "
            f"scores would be too optimistic for later rows; {cure}, or use --shuffle "
            f"(shuffle=True) to accept that"
        )
    dates = [column.name for column in schema.used if column.kind == "date"]
    if not dates:
        return []
    return [
        f"Validation in blocks ignores time. If {dates[0]!r} is the time of each row, "
        f"scores may be too optimistic for later rows: {cure}, with --time."
    ]


def _columns(table: ParquetTable) -> list[str]:
    """The columns of the dataset, without a pandas index."""
    schema = table.schema
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    for name in names:
        if not name or schema.names.count(name) > 1:
            wrong = f"more than one column named {name!r}" if name else "a nameless column"
            raise ValueError(
                f"{table.path} has {wrong}; column names must be unique and not empty"
            )
    return names


def _seldom_vary(
    table: ParquetTable, frame: pd.DataFrame, keep: Collection[str], drop: Collection[str]
) -> list[str]:
    """Columns that are constant in the sample but vary elsewhere."""
    one = [name for name in frame.columns if name not in (*keep, *drop)]
    one = [name for name in one if _is_constant(frame[name])]
    return [name for name in one if varies(table, name)]


def _is_constant(column: pd.Series) -> bool:
    try:
        return bool(column.notna().all() and column.nunique() == 1)
    except TypeError:  # lists and records, which cannot be features
        return False


def _check_type(table: ParquetTable, target: str) -> None:
    kind = table.schema.field(target).type
    if not (is_text(kind) or is_number(getattr(kind, "value_type", kind))):
        raise ValueError(
            f"the target {target!r} has type {kind}; it must be text or numbers"
        )


def _each_group(
    table: ParquetTable,
    n_jobs: int | None,
    verbose: bool,
    what: str,
    work: Callable[[int, RowGroup], Any],
) -> Iterator[Any]:
    """Apply a function to each row group; results are in order."""
    groups = table.groups
    calls = (partial(work, number, group) for number, group in enumerate(groups))
    results = in_threads(calls, n_jobs)
    return progress_bar(what)(results, len(groups)) if verbose else results


def _read_labels(target: str, each_group: Any) -> tuple[list[str], NDArray[np.uint16]]:
    """All distinct labels, and the code of each row's; ``MISSING`` if it has none."""
    places: dict[str, int] = {}
    parts = [np.zeros(0, np.uint16)]
    for batches in each_group("Reading the target", partial(_labels_of, target)):
        for texts, codes in batches:
            for text in texts:
                places.setdefault(text, len(places))
            if len(places) > MOST_LABELS:
                raise ValueError(
                    f"the target {target!r} has more than {MOST_LABELS:,} different "
                    f"values, like an amount or an id; choose a column of classes"
                )
            numbers = [*(places[text] for text in texts), MISSING]
            parts.append(np.array(numbers, np.uint16)[codes])
    return list(places), np.concatenate(parts)


def _labels_of(target: str, _: int, group: RowGroup) -> list[tuple[list[str], Any]]:
    found = []
    for batch in group.batches([target]):
        texts, codes = coded_labels(batch.column(0))
        # Small codes, since many batches may be pending.
        found.append((texts, codes.astype(np.int32)))
    return found


def _sample(
    table: ParquetTable,
    names: list[str],
    by_row: NDArray[np.int16],
    seed: int,
    each_group: Any,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """A sample of labelled rows, in order, and their classes."""
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

    batches = [batch for some in each_group("Reading a sample", read) for batch in some]
    starts = np.cumsum([0, *(group.n_rows for group in table.groups)])
    rows = np.concatenate([start + own for start, own in zip(starts, chosen, strict=False)])
    frame = pa.Table.from_batches(batches).to_pandas().reset_index(drop=True)
    return frame, by_row[rows]


def _choose_rows(
    table: ParquetTable, by_row: NDArray[np.int16], seed: int
) -> list[NDArray[np.intp]]:
    """Row indices to read in each row group, balanced over groups and classes."""
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
    """Evenly spaced row groups, plus those with the most rows of rare classes."""
    read = np.zeros(len(counts), bool)
    read[np.linspace(0, len(counts) - 1, MOST_GROUPS).round().astype(np.intp)] = True
    for c in range(counts.shape[1]):
        enough = min(int(counts[:, c].sum()), ENOUGH_OF_A_CLASS)
        for number in np.argsort(-counts[:, c], kind="stable"):
            if counts[read, c].sum() >= enough:
                break
            read[number] = True
    return read


def varies(table: ParquetTable, name: str) -> bool:
    """Whether a column certainly has more than one value; missing counts as one."""
    seen: set[object] = set()
    for footer in table.footers:
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for place in range(group.num_columns):
                column = group.column(place)
                known = column.statistics if column.path_in_schema == name else None
                if known is None:
                    continue
                if known.has_null_count and known.null_count:
                    seen.add(None)
                if known.has_min_max:
                    seen |= {known.min, known.max}
                if len(seen) > 1:
                    return True
    return False


@dataclass(frozen=True, eq=False)
class Encoder:
    """Encodes rows as features and classes.

    Attributes
    ----------
    schema : Schema
    target : str
    numbers : mapping of str to int
        The class number of each label; of two, 1 is positive.
    dtype : numpy dtype
        The dtype of the classes; bool if there are two.
    """

    schema: Schema
    target: str
    numbers: Mapping[str, int]
    dtype: np.dtype[Any]

    @cached_property
    def sources(self) -> list[str]:
        """The columns to read for the features."""
        return [column.name for column in self.schema.used]

    @cached_property
    def label(self) -> str:
        """The name of the class column, distinct from the features."""
        name = self.target
        while name in self.schema.features:
            name += "'"
        return name

    @cached_property
    def example(self) -> pd.DataFrame:
        """An empty encoded table."""
        import pandas as pd

        return self.schema.encode(pd.DataFrame({name: [] for name in self.sources}))

    @property
    def no_labels(self) -> NDArray[Any]:
        """An empty array of classes."""
        return np.empty(0, self.dtype)

    def labels(self, column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The class of each labelled row, and which rows are labelled."""
        texts, codes = coded_labels(column)
        known = [self.numbers.get(text, NO_LABEL) for text in texts]
        numbers = np.array([*known, NO_LABEL])[codes]
        has_label = numbers != NO_LABEL
        return numbers[has_label].astype(self.dtype), has_label


def coded_labels(column: Any) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct labels of an Arrow column, and the code of each row's; -1 for none."""
    import pyarrow.types as t

    if not t.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = label_texts(column.dictionary.to_pandas())
    texts = sorted(set(labels.dropna()))
    place = {text: number for number, text in enumerate(texts)}
    places = labels.map(place).fillna(-1).to_numpy(np.intp)
    codes = column.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    return texts, np.append(places, -1)[codes.astype(np.intp)]


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded rows, with as much of the Arrow batch interface as a fit needs."""

    frame: pd.DataFrame

    @property
    def num_rows(self) -> int:
        return len(self.frame)


@dataclass(frozen=True)
class EncodedGroup(RowGroup):
    """The labelled rows of a row group.

    ``n_rows`` counts these, ``n_all`` all rows.
    """

    encoder: Encoder
    n_all: int

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Batches of classes, if only these are requested, or of features."""
        if names == [self.encoder.label]:
            return self._labels()
        return (EncodedBatch(frame) for frame, _ in self.frames())

    def _labels(self) -> Iterator[Any]:
        import pyarrow as pa

        for batch in super().batches([self.encoder.target]):
            labels, _ = self.encoder.labels(batch.column(0))
            yield pa.record_batch([pa.array(labels)], [self.encoder.label])

    def frames(self, labels: bool = False) -> Iterator[tuple[pd.DataFrame, Any]]:
        """Encoded rows, with labels if requested."""
        encoder, gaps = self.encoder, self.n_rows < self.n_all
        names = list(encoder.sources)
        if labels or gaps:
            names.append(encoder.target)
        for batch in super().batches(names):
            classes = None
            if labels or gaps:
                classes, has_label = encoder.labels(batch.column(len(names) - 1))
                batch = batch.filter(has_label) if gaps else batch
            yield encoder.schema.encode(batch.select(encoder.sources).to_pandas()), classes

    def read(self, columns: list[str] | None = None) -> pd.DataFrame:
        """The requested columns of features and labels: a partition for a cluster."""
        import pandas as pd

        if not os.path.exists(self.file):
            raise FileNotFoundError(
                f"a worker of the cluster cannot find {self.file}; put the dataset where "
                f"all workers can read it under the same path"
            )
        encoder = self.encoder
        wanted = [*encoder.schema.features, encoder.label] if columns is None else columns
        if list(wanted) == [encoder.label]:
            parts = [batch.column(0).to_numpy(False) for batch in self._labels()]
            return pd.DataFrame(
                {encoder.label: np.concatenate([encoder.no_labels, *parts])}
            )
        parts = list(self.frames(labels=encoder.label in wanted))
        frames = [frame for frame, _ in parts] or [encoder.example]
        whole = pd.concat(frames, ignore_index=True)
        if encoder.label in wanted:
            labels = [encoder.no_labels, *(labels for _, labels in parts)]
            whole[encoder.label] = np.concatenate(labels)
        return whole[list(wanted)]

    def kept_rows(self, step: int) -> tuple[NDArray[np.intp], Hashes]:
        """The indices of the rows to remember, and their hashes."""
        parts = [row_hashes(frame, labels) for frame, labels in self.frames(labels=True)]
        hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
        rows = kept(hashes, step)
        return rows, hashes[rows]


class EncodedTable(ParquetTable):
    """A dataset whose rows are encoded on reading.

    Parameters
    ----------
    path : str or path
    encoder : Encoder
    counts : list of int
        The number of labelled rows in each row group.
    """

    def __init__(self, path: Any, encoder: Encoder, counts: list[int]) -> None:
        super().__init__(path)
        self.encoder, self._counts = encoder, counts

    @cached_property
    def groups(self) -> list[RowGroup]:
        pairs = zip(super().groups, self._counts, strict=True)
        return [
            EncodedGroup(group.file, group.number, n, self.encoder, group.n_rows)
            for group, n in pairs
        ]

    def features(self, target: str, weight: str | None) -> list[str]:
        return self.encoder.schema.features

    def example(self, names: list[str], through: Any) -> pd.DataFrame:
        return self.encoder.example

    def doubles(
        self, batch: Any, categories: Categories | None, where: str
    ) -> NDArray[np.float64]:
        if categories is not None:
            return FrameTable(batch.frame, categories)[:]
        doubles: NDArray[np.float64] = batch.frame.to_numpy(np.float64)
        return doubles

    def hashes(
        self, batch: Any, block: NDArray[np.float64], targets: NDArray[np.uint8]
    ) -> Hashes:
        return row_hashes(batch.frame, targets)

    def digest(self, n_jobs: int | None = None) -> str:
        encoder = self.encoder
        said = (super().digest(n_jobs), encoder.schema, dict(encoder.numbers))
        return sha256(repr(said).encode()).hexdigest()


# The rows as they are, for a model.


class DatasetRows:
    """The rows of a parquet dataset as frames, a few at a time.

    Parameters
    ----------
    path : path
        A file, a folder or a pattern.
    schema : Schema
        The schema of the model.
    more : sequence of str
        Further columns, such as the target.
    also : sequence of str
        Optional ones, used if present.
    """

    def __init__(
        self,
        path: Any,
        schema: Schema,
        more: Collection[str] = (),
        also: Collection[str] = (),
    ) -> None:
        self.table: ParquetTable = ParquetTable(path)
        self.names: list[str] = [str(name) for name in self.table.schema.names]
        for name in more:
            if name not in self.names:
                raise ValueError(
                    f"no column {name!r} in {path}; it has {listed(self.names)}"
                )
        try:
            schema.check(self.names)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        used = [column.name for column in schema.used]
        there = [name for name in also if name in self.names]
        self.columns: list[str] = list(dict.fromkeys([*used, *more, *there]))
        if not self.table.n_rows:
            raise ValueError(f"{path} has no rows")

    def parts(self, target: str) -> list[Callable[[], Iterator[pd.DataFrame]]]:
        """The labelled rows of each row group."""
        return [partial(self._answered, group, target) for group in self.table.groups]

    def _answered(self, group: RowGroup, target: str) -> Iterator[pd.DataFrame]:
        for batch in group.batches(self.columns):
            frame = batch.to_pandas().reset_index(drop=True)
            known = label_texts(frame[target]).notna()
            yield frame if known.all() else frame.loc[known].reset_index(drop=True)

    def frame(self) -> pd.DataFrame:
        """All rows, with the requested columns."""
        import pyarrow as pa

        found = [b for group in self.table.groups for b in group.batches(self.columns)]
        frame: pd.DataFrame = pa.Table.from_batches(found).to_pandas()
        return frame.reset_index(drop=True)

    def sample(self, most: int) -> pd.DataFrame:
        """A sample of about ``most`` rows, in order, with all columns.

        It is taken from evenly spaced row groups.
        """
        import pyarrow as pa

        groups = self.table.groups
        places = np.unique(np.linspace(0, len(groups) - 1, MOST_GROUPS).round())
        chosen = [int(place) for place in places]
        rate = most / sum(groups[place].n_rows for place in chosen)
        starts = np.cumsum([0, *(group.n_rows for group in groups)])
        found = []
        for place in chosen:
            start = int(starts[place])
            for batch in groups[place].batches(self.names):
                rows = np.arange(start, start + batch.num_rows, dtype=np.int64)
                drawn = np.ldexp(row_bits(rows, SAMPLE_SEED).astype(np.float64), -64) < rate
                found.append(batch.take(pa.array(np.flatnonzero(drawn))))
                start += batch.num_rows
        frame: pd.DataFrame = pa.Table.from_batches(found).to_pandas()
        return frame.reset_index(drop=True)


def dataset_fingerprint(path: Any, table: ParquetTable) -> dict[str, Any]:
    """A fingerprint of a parquet dataset, without reading all of it.

    It uses the footers, which have the counts, offsets and ranges of all columns.
    """
    digest = sha256()
    for file, footer in zip(table.files, table.footers, strict=True):
        with open(file, "rb") as opened:
            opened.seek(-(footer.serialized_size + 8), 2)
            digest.update(opened.read())
    return {
        "name": Path(path).name,
        "files": len(table.files),
        "sha256_of_footers": digest.hexdigest(),
        "rows": sum(footer.num_rows for footer in table.footers),
        "columns": len(table.schema.names),
    }
