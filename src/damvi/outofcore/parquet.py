"""A parquet dataset of any size: its files, their row groups, and their rows in batches."""

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
from ..voters.trees.features import Categories
from ..voters.trees.features import numbers_of as numbers_of_labels

if TYPE_CHECKING:
    import pandas as pd

    from . import BlockFit, PoolFit, Trained, TrainedPool

BATCH_ROWS = 2**16
PIECE, READ = 2**26, 2**20
"""Bytes of a file that a thread takes, and that are in memory at a time."""
SAMPLE_ROWS = 200_000
"""That models of a pool are trained on, if nothing else is said."""
MOST_CATEGORIES = 2**16
"""Distinct texts of a column; more are no categories."""


@dataclass(frozen=True)
class RowGroup:
    """Some rows of a file."""

    file: str
    number: int
    n_rows: int

    def __str__(self) -> str:
        return f"{self.file}, row group {self.number}"

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Its rows, some thousands at a time, with these columns in this order."""
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.file) as file:
                for batch in file.iter_batches(
                    BATCH_ROWS, [self.number], columns=names, use_threads=False
                ):
                    yield batch.select(names)
        except (OSError, ValueError, IndexError, NotImplementedError) as error:
            raise ValueError(
                f"{self} cannot be read ({error}); the file is damaged or was changed: "
                f"write it again"
            ) from error


class ParquetTable:
    """A parquet dataset to fit on without loading it.

    Parameters
    ----------
    path : str or path
        A file, a folder with ``.parquet`` files in it, or a pattern such as
        ``"payments/2025-*.parquet"``. Files are taken in the order of their names; those
        that begin with a dot or an underscore are passed over.
    columns : list of str, optional
        The features. All columns by default, but the target, the weights, and an index
        that pandas wrote.
    cache : path, optional
        A folder for the one-byte bins, as large as a byte for each cell and 8 for each
        row. By default one in the system's folder for temporary files, which is removed
        with the model; one that an interrupted fit leaves behind is gone on from.
    sample_rows : int, default=200_000
        Rows that the models of a :class:`~damvi.DAMVIVotingClassifier` are trained on:
        about so many, of each class the same number, or all that it has. They count for
        those that were not drawn. All rows are voted on.

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
        """The files, in the order of their rows."""
        return parquet_files(self.path)

    @cached_property
    def footers(self) -> list[Any]:
        """What each file says of its rows and columns."""
        from pyarrow import parquet

        found = []
        for file in self.files:
            try:
                found.append(parquet.read_metadata(file))
            except (OSError, ValueError) as error:
                raise ValueError(f"{file} is no parquet file ({error})") from error
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
        """Names and types of the columns, the same in all files."""
        schemas = [footer.schema.to_arrow_schema() for footer in self.footers]
        check_alike(self.files, schemas)
        return schemas[0]

    @property
    def n_rows(self) -> int:
        return sum(group.n_rows for group in self.groups)

    def features(self, target: str, weight: str | None) -> list[str]:
        """The columns to learn from, all there and of a kind that can be used."""
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
            raise ValueError(f"columns={wanted!r}; give a list of names, each of them once")
        for name in wanted:
            if name in (target, weight):
                raise ValueError(f"columns has {name!r}, which is the target or the weight")
            if name not in self.schema.names:
                raise ValueError(f"{self.path} has no column {name!r}; see columns")
            kind = self.schema.field(name).type
            if not (is_number(kind) or is_text(kind)):
                raise ValueError(
                    f"column {name!r} of {self.path} holds {kind}, neither numbers nor "
                    f"categories; make it one of them, or name those to use, as in "
                    f"ParquetTable(path, columns=[...])"
                )
        if not wanted:
            raise ValueError(f"{self.path} has no column to learn from")
        return list(wanted)

    def _check_truth(self, target: str, weight: str | None) -> None:
        kind = self.schema.field(target).type
        if not is_label(kind):
            raise ValueError(
                f"column {target!r} of {self.path} holds {kind}, which are no labels; make "
                f"them whole numbers or texts"
            )
        if weight is None:
            return
        kind = self.schema.field(weight).type
        if not is_number(kind):
            raise ValueError(
                f"column {weight!r} of {self.path} holds {kind}, and weights are numbers"
            )

    @property
    def told_by_folders(self) -> str | None:
        """What to say of columns that are not in the files, if there are such."""
        known = self.schema.names
        lost = [name for name in folder_columns(self.files) if name not in known]
        if not lost:
            return None
        return (
            f"{self.path}: what only the names of folders tell is no feature "
            f"({', '.join(lost)}); if it should be, write it into the files as a column"
        )

    def example(self, names: list[str], through: Any) -> pd.DataFrame:
        """No rows of these columns, with their categories.

        Texts are in order, as pandas has them in ``astype("category")``.
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
        """A batch as a table of numbers."""
        return doubles_of(batch, categories, where)

    def hashes(
        self, batch: Any, block: NDArray[np.float64], targets: NDArray[np.uint8]
    ) -> Hashes:
        """The hash of each row, as the table would have in memory."""
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
        """The same dataset, with nothing remembered of its files."""
        table = copy(self)
        for name in [*vars(table)]:
            if isinstance(getattr(type(table), name, None), cached_property):
                delattr(table, name)
        return table

    def status(self) -> list[tuple[Any, ...]]:
        """By which a change of the files is noticed while they are read.

        The time of the last change of any kind cannot be set back, unlike that of the
        contents.
        """
        about = [os.stat(file) for file in self.files]
        return [
            (file, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_dev, s.st_ino)
            for file, s in zip(self.files, about, strict=True)
        ]

    def digest(self, n_jobs: int | None = None) -> str:
        """What tells these rows from others: all bytes of the files, in their order.

        To read them is cheap beside the passes of a fit, and nothing less tells files of
        one size and time apart.
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
            f"{where}: column {name!r} has more than {MOST_CATEGORIES} different texts; "
            f"those are no categories: leave it out by naming the columns to use, as in "
            f"ParquetTable(path, columns=[...])"
        )


def parquet_files(path: str) -> list[str]:
    """The files of a path or a pattern, in the order of their names."""
    if Path(path).is_dir():
        found = set(_inside(path))
    elif Path(path).exists():
        found = {path}
    else:
        found = _matches(path)
    if not found:
        raise FileNotFoundError(
            f"{path}: there is no such file, and no parquet file in it or of that pattern"
        )
    return sorted(map(str, found))


def folder_columns(files: Iterable[str]) -> list[str]:
    """Columns that are written as names of folders, as in ``year=2025/a.parquet``.

    Those with one value throughout tell no rows apart, and are left out.
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for part in Path(file).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals and name:
                values.setdefault(name, set()).add(value)
    return [name for name, some in values.items() if len(some) > 1]


def _matches(pattern: str) -> set[str]:
    """Files of a pattern, and those in folders of that pattern."""
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
    """Not what writers leave beside their files, or have not finished."""
    return [
        os.fspath(file)
        for file in Path(folder).rglob("*.parquet")
        if file.is_file() and not any(map(_is_private, file.relative_to(folder).parts))
    ]


def _is_private(name: str) -> bool:
    # Spark, Hadoop and pyarrow pass over them too; a folder "_a=1" is a partition.
    return name.startswith((".", "_")) and "=" not in name


def check_alike(files: list[str], schemas: list[Any]) -> None:
    """That all files have the columns of the first, and each of them once."""
    twice = [name for name, n in Counter(schemas[0].names).items() if n > 1]
    if twice:
        raise ValueError(f"{files[0]} has more than one column named {twice}; rename them")
    for file, schema in zip(files, schemas, strict=True):
        difference = _difference(schema, schemas[0])
        if difference:
            raise ValueError(
                f"{file} has other columns, or other types, than {files[0]}: {difference}; "
                f"write both alike"
            )


def index_columns(schema: Any) -> list[str]:
    """Columns that pandas wrote as the index, and reads as the index."""
    about = schema.pandas_metadata or {}
    return [name for name in about.get("index_columns", []) if isinstance(name, str)]


def _difference(one: Any, first: Any) -> str | None:
    for own, other in zip(one, first, strict=False):
        if own.name != other.name:
            return f"{own.name!r} is where {other.name!r} is there"
        if own.type != other.type:
            return f"{own.name!r} holds {own.type}, and {other.type} there"
    if len(one) != len(first):
        return f"{len(one)} columns, and {len(first)} there"
    return None


def is_text(kind: Any) -> bool:
    """Whether a column's values are to be taken as categories."""
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
    """Whether a column's values can be names of classes."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    known = is_text(kind) or t.is_temporal(kind)
    return bool(known or (is_number(kind) and not t.is_decimal(kind)))


def values_of(column: Any) -> NDArray[Any]:
    """A column of labels as numpy holds it."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def texts_of(column: Any) -> set[str]:
    """The distinct texts of a column."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return {text for text in column.unique().to_pylist() if text is not None}


def doubles_of(
    batch: Any, categories: Categories | None, where: str
) -> NDArray[np.float64]:
    """The batch as a table of doubles; ``where`` says in an error which rows these are."""
    table = np.empty((batch.num_rows, batch.num_columns))
    for f, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        known = None if categories is None else categories.by_column[f]
        values = numbers_of(column) if known is None else _places(column, known)
        if known is None and np.isinf(values).any():
            raise ValueError(
                f"{where}: column {name!r} contains infinity; replace it by a number or NaN"
            )
        table[:, f] = values
    return table


def numbers_of(column: Any) -> NDArray[np.float64]:
    """A column of numbers as doubles, NaN where there is none."""
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
