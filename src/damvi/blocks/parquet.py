"""A parquet dataset of any size: its files, their row groups, and their rows in batches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import Prints, row_prints
from ..voters.trees.features import Categories
from .arrow import MOST_CATEGORIES, doubles_of, is_label, is_number, is_text, texts_of
from .columns import check_alike, index_columns
from .files import folder_columns, parquet_files

BATCH_ROWS = 2**16


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
    ) -> None:
        self.path = os.fspath(path)
        self.columns = columns
        self.cache = None if cache is None else Path(cache)

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

    def categories(
        self, tree: Any, names: list[str], through: Any
    ) -> tuple[Categories | None, NDArray[np.bool_]]:
        """The categories of each column, and which columns have any.

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
        mask = tree.categorical_mask(frame)
        if not tree.wants_frame(frame):
            return None, mask
        categories = Categories.learn(frame)
        return categories, mask | categories.mask

    def doubles(
        self, batch: Any, categories: Categories | None, where: str
    ) -> NDArray[np.float64]:
        """A batch as a table of numbers."""
        return doubles_of(batch, categories, where)

    def prints(
        self, batch: Any, block: NDArray[np.float64], labels: NDArray[np.uint8]
    ) -> Prints:
        """A number for each row, as the table would have in memory."""
        texts = any(is_text(column.type) for column in batch.columns)
        return row_prints(batch.to_pandas() if texts else block, labels)

    def afresh(self) -> Self:
        """The same dataset, with nothing remembered of its files."""
        table = copy(self)
        for name in [*vars(table)]:
            if isinstance(getattr(type(table), name, None), cached_property):
                delattr(table, name)
        return table

    def digest(self) -> str:
        """What tells these files from others, or from what they were before."""
        about = sha256()
        for file in self.files:
            status = os.stat(file)
            about.update(f"{os.path.abspath(file)} {status.st_size} ".encode())
            about.update(f"{status.st_mtime_ns}\n".encode())
        return about.hexdigest()


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
