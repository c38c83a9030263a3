"""A parquet dataset of any size: its files, row groups, and batches of rows."""

from __future__ import annotations

import glob
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._kernels import in_threads
from ..hashing import Hashes, row_hashes
from ..validation import Categories
from ..validation import numbers_of as numbers_of_labels

if TYPE_CHECKING:
    import pandas as pd

    from . import BlockFit, PoolFit, Trained, TrainedPool

BATCH_ROWS = 2**16
PIECE, READ = 2**26, 2**20
"""Bytes of a file that a thread reads at a time."""
SAMPLE_ROWS = 200_000
"""Default number of rows that the models of a pool are trained on."""
MOST_CATEGORIES = 2**16
"""Maximum number of distinct strings in a categorical column."""


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file."""

    file: str
    number: int
    n_rows: int

    def __str__(self) -> str:
        return f"{self.file}, row group {self.number}"

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Yield its rows in batches of some thousands, with these columns in this order."""
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.file) as file:
                for batch in file.iter_batches(
                    BATCH_ROWS, [self.number], columns=names, use_threads=False
                ):
                    yield batch.select(names)
        except (OSError, ValueError, IndexError, NotImplementedError) as error:
            raise ValueError(
                f"cannot read {self} ({error}); the file is damaged or has changed: write "
                f"it again"
            ) from error


class ParquetTable:
    """A parquet dataset to fit on without loading it into memory.

    Parameters
    ----------
    path : str or path
        A file, a folder with ``.parquet`` files, or a pattern such as
        ``"payments/2025-*.parquet"``. Files are sorted by name; those starting with a dot
        or an underscore are ignored.
    columns : list of str, optional
        The features. By default, all columns except the target, the weights, and an index
        written by pandas.
    cache : path, optional
        A folder for the one-byte bins: one byte per cell and 8 bytes per row. By default a
        temporary folder, which is removed with the model. An interrupted fit leaves it
        behind, and the next fit resumes from it.
    sample_rows : int, default=200_000
        Approximate number of rows that the models of a
        :class:`~damvi.DAMVIVotingClassifier` are trained on, the same number of each class,
        or all rows of a rare class. They are weighted to represent the table. All rows are
        voted on.

    Examples
    --------
    >>> from damvi import DAMVIClassifier, ParquetTable
    >>> table = ParquetTable("payments/*.parquet", columns=["amount", "shop"])
    >>> model = DAMVIClassifier().fit(table, "is_fraud")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: list[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        sample_rows: int = SAMPLE_ROWS,
    ) -> None:
        self.path: str = os.fspath(path)
        self.columns = columns
        self.sample_rows = sample_rows
        self.cache: Path | None = None if cache is None else Path(cache)

    @cached_property
    def files(self) -> list[str]:
        """The files, in row order."""
        return parquet_files(self.path)

    @cached_property
    def footers(self) -> list[Any]:
        """The footer of each file."""
        from pyarrow import parquet

        found = []
        for file in self.files:
            try:
                found.append(parquet.read_metadata(file))
            except (OSError, ValueError) as error:
                raise ValueError(f"{file} is not a parquet file ({error})") from error
        return found

    @cached_property
    def groups(self) -> list[RowGroup]:
        """All row groups, in order."""
        return [
            RowGroup(file, number, footer.row_group(number).num_rows)
            for file, footer in zip(self.files, self.footers, strict=True)
            for number in range(footer.num_row_groups)
        ]

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema, which is the same in all files."""
        schemas = [footer.schema.to_arrow_schema() for footer in self.footers]
        check_alike(self.files, schemas)
        return schemas[0]

    @property
    def n_rows(self) -> int:
        return sum(group.n_rows for group in self.groups)

    def features(self, target: str, weight: str | None) -> list[str]:
        """Return the feature columns; raise an error if any is missing or unsupported."""
        for name in (target, weight):
            if name is not None and name not in self.schema.names:
                raise ValueError(
                    f"{self.path} has no column {name!r}; its columns are "
                    f"{', '.join(self.schema.names)}"
                )
        self._check_truth(target, weight)
        wanted = self.columns
        if wanted is None:
            if self.told_by_folders:
                warnings.warn(self.told_by_folders, UserWarning, stacklevel=2)
            left_out = {target, weight, *index_columns(self.schema)}
            wanted = [name for name in self.schema.names if name not in left_out]
        elif isinstance(wanted, str) or len(set(wanted)) < len(wanted):
            raise ValueError(f"columns={wanted!r}; pass a list of unique names")
        for name in wanted:
            if name in (target, weight):
                raise ValueError(
                    f"columns contains {name!r}, which is the target or the weight"
                )
            if name not in self.schema.names:
                raise ValueError(f"{self.path} has no column {name!r}; see columns")
            kind = self.schema.field(name).type
            if not (is_number(kind) or is_text(kind)):
                raise ValueError(
                    f"column {name!r} of {self.path} holds {kind}, neither numbers nor "
                    f"categories; convert it, or choose the columns to use: "
                    f"ParquetTable(path, columns=[...])"
                )
        if not wanted:
            raise ValueError(f"{self.path} has no feature columns")
        return list(wanted)

    def _check_truth(self, target: str, weight: str | None) -> None:
        kind = self.schema.field(target).type
        if not is_label(kind):
            raise ValueError(
                f"column {target!r} of {self.path} holds {kind}, which cannot be labels; "
                f"convert it to integers or strings"
            )
        if weight is None:
            return
        kind = self.schema.field(weight).type
        if not is_number(kind):
            raise ValueError(
                f"column {weight!r} of {self.path} holds {kind}; weights must be numbers"
            )

    @property
    def told_by_folders(self) -> str | None:
        """Return a note on columns that are only in folder names, if there are any."""
        known = self.schema.names
        lost = [name for name in folder_columns(self.files) if name not in known]
        if not lost:
            return None
        return (
            f"{self.path}: columns that are only in folder names are not used "
            f"({', '.join(lost)}); to use them, write them to the files as columns"
        )

    def example(self, names: list[str], through: Any) -> pd.DataFrame:
        """Return a dataframe without rows, with these columns and their categories.

        Categories are sorted, as in ``astype("category")``.
        """
        import pandas as pd

        texts = [name for name in names if is_text(self.schema.field(name).type)]
        found: dict[str, set[str]] = {name: set() for name in texts}
        if texts:
            for part in through("Reading categories", partial(_texts, texts)):
                for name, more in part.items():
                    found[name] |= more
                    _refuse_many(self.path, name, found[name])
        frame = pd.DataFrame({name: np.empty(0) for name in names})
        for name in texts:
            frame[name] = pd.Categorical([], categories=sorted(found[name]))
        return frame

    def doubles(
        self, batch: Any, categories: Categories | None, where: str
    ) -> NDArray[np.float64]:
        """Return a batch as a numeric table."""
        return doubles_of(batch, categories, where)

    def hashes(
        self, batch: Any, block: NDArray[np.float64], targets: NDArray[np.uint8]
    ) -> Hashes:
        """Return the hash of each row, the same as for a table in memory."""
        texts = any(is_text(column.type) for column in batch.columns)
        return row_hashes(batch.to_pandas() if texts else block, targets)

    def train(self, fit: BlockFit, y: Any, sample_weight: Any) -> Trained:
        """Step 1 of DAMVI on this table; see :class:`~damvi.outofcore.BlockFit`."""
        from .training import train_on_parquet

        return train_on_parquet(self.afresh(), fit, y, sample_weight)

    def train_pool(self, fit: PoolFit, y: Any, sample_weight: Any) -> TrainedPool:
        """Step 1 for a pool of different models; see :class:`~damvi.outofcore.PoolFit`."""
        from .pool import train_pool_on_parquet

        return train_pool_on_parquet(self.afresh(), fit, y, sample_weight)

    def afresh(self) -> Self:
        """Return the same dataset, without cached metadata."""
        table = copy(self)
        for name in [*vars(table)]:
            if isinstance(getattr(type(table), name, None), cached_property):
                delattr(table, name)
        return table

    def status(self) -> list[tuple[Any, ...]]:
        """Return the state of the files, to detect changes while reading.

        Unlike the modification time, the time of the last status change cannot be set back.
        """
        about = [os.stat(file) for file in self.files]
        return [
            (file, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino)
            for file, s in zip(self.files, about, strict=True)
        ]

    def digest(self, n_jobs: int | None = None) -> str:
        """Return a digest of all bytes of the files, in order.

        Reading them is cheap compared to the passes of a fit, and only the content
        distinguishes files of equal size and date.
        """
        about = sha256()
        for file in self.files:
            size = os.path.getsize(file)
            pieces = (
                partial(_digest_of_piece, file, start) for start in range(0, size, PIECE)
            )
            about.update(f"{size}\n".encode())
            for digest in in_threads(pieces, n_jobs):
                about.update(digest)
        return about.hexdigest()


def _digest_of_piece(file: str, start: int) -> bytes:
    digest = sha256()
    with open(file, "rb") as opened:
        opened.seek(start)
        for _ in range(0, PIECE, READ):
            digest.update(opened.read(READ))
    return digest.digest()


def _texts(names: list[str], _: int, group: RowGroup) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in names}
    for batch in group.batches(names):
        for name, column in zip(names, batch.columns, strict=True):
            found[name] |= texts_of(column)
            _refuse_many(str(group), name, found[name])
    return found


def _refuse_many(where: str, name: str, texts: set[str]) -> None:
    if len(texts) > MOST_CATEGORIES:
        raise ValueError(
            f"{where}: column {name!r} has more than {MOST_CATEGORIES} distinct strings, "
            f"too many for a category; leave it out by choosing the columns to use: "
            f"ParquetTable(path, columns=[...])"
        )


def parquet_files(path: str) -> list[str]:
    """Return the files of a path or pattern, sorted by name."""
    if Path(path).is_dir():
        found = set(_inside(path))
    elif Path(path).exists():
        found = {path}
    else:
        found = _matches(path)
    if not found:
        raise FileNotFoundError(f"{path}: no parquet files found")
    return sorted(map(str, found))


def folder_columns(files: Iterable[str]) -> list[str]:
    """Return columns encoded in folder names, as in ``year=2025/a.parquet``.

    Constant ones carry no information and are left out.
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for part in Path(file).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals and name:
                values.setdefault(name, set()).add(value)
    return [name for name, some in values.items() if len(some) > 1]


def _matches(pattern: str) -> set[str]:
    """Return files that match a pattern, and those in matching folders."""
    parts = Path(pattern).parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    asked_for = any(map(_is_private, parts[first:]))
    found: set[str] = set()
    for match in glob.glob(pattern, recursive=True):
        if not asked_for and any(map(_is_private, Path(match).parts[first:])):
            continue
        found.update(_inside(match) if Path(match).is_dir() else [match])
    return found


def _inside(folder: str) -> list[str]:
    """List a folder, without metadata and unfinished files of writers."""
    return [
        os.fspath(file)
        for file in Path(folder).rglob("*.parquet")
        if file.is_file() and not any(map(_is_private, file.relative_to(folder).parts))
    ]


def _is_private(name: str) -> bool:
    # Spark, Hadoop and pyarrow ignore them too; a folder "_a=1" is a partition.
    return name.startswith((".", "_")) and "=" not in name


def check_alike(files: list[str], schemas: list[Any]) -> None:
    """Check that all files have the columns of the first, without duplicates."""
    twice = [name for name, n in Counter(schemas[0].names).items() if n > 1]
    if twice:
        raise ValueError(f"{files[0]} has more than one column named {twice}; rename them")
    for file, schema in zip(files, schemas, strict=True):
        difference = _difference(schema, schemas[0])
        if difference:
            raise ValueError(
                f"{file} has a different schema than {files[0]}: {difference}; write both "
                f"with the same schema"
            )


def index_columns(schema: Any) -> list[str]:
    """Return columns that pandas wrote as the index."""
    about = schema.pandas_metadata or {}
    return [name for name in about.get("index_columns", []) if isinstance(name, str)]


def _difference(one: Any, first: Any) -> str | None:
    for own, other in zip(one, first, strict=False):
        if own.name != other.name:
            return f"{own.name!r} instead of {other.name!r}"
        if own.type != other.type:
            return f"{own.name!r} is {own.type} instead of {other.type}"
    if len(one) != len(first):
        return f"{len(one)} columns instead of {len(first)}"
    return None


def is_text(kind: Any) -> bool:
    """Whether a column is read as categories."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def is_number(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(
        t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_boolean(kind)
        or t.is_decimal(kind)
        or t.is_null(kind)
    )


def is_label(kind: Any) -> bool:
    """Whether a column can be used as labels."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    known = is_text(kind) or t.is_temporal(kind)
    return bool(known or (is_number(kind) and not t.is_decimal(kind)))


def values_of(column: Any) -> NDArray[Any]:
    """Return a column of labels as a numpy array."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def texts_of(column: Any) -> set[str]:
    """Return the distinct strings of a column."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return {text for text in column.unique().to_pylist() if text is not None}


def doubles_of(
    batch: Any, categories: Categories | None, where: str
) -> NDArray[np.float64]:
    """Return the batch as doubles; ``where`` names the rows in errors."""
    table = np.empty((batch.num_rows, batch.num_columns))
    for f, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        known = None if categories is None else categories.by_column[f]
        values = numbers_of(column) if known is None else _places(column, known)
        if known is None and np.isinf(values).any():
            raise ValueError(
                f"{where}: column {name!r} contains infinity; use a number or NaN"
            )
        table[:, f] = values
    return table


def numbers_of(column: Any) -> NDArray[np.float64]:
    """Return a numeric column as doubles, NaN if missing."""
    import pyarrow as pa

    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _places(column: Any, known: Any) -> NDArray[np.float64]:
    import pyarrow.types as t

    if not t.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = column.dictionary.to_pylist()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return numbers_of_labels(known, labels, codes.astype(np.intp))
