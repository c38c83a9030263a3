"""Tables as given by the user: frames and files, and their fingerprints."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..hashing import row_bits
from ..messages import counted
from ..outofcore import ParquetTable
from ..outofcore.parquet import RowGroup
from ..tables import Rows, Schema, label_texts, read_blocks, read_table
from ..tables.labels import listed

if TYPE_CHECKING:
    import pandas as pd

MEMORY_SHARE = 1 / 3
"""Share of memory that a table may take as floats; voters and votes need the rest."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container states its memory limit."""
MOST_GROUPS = 64
"""Limit on the row groups a sample is taken from."""
SAMPLE_SEED = 2**31 * 301
PACKAGES = ("numpy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")
"""Packages whose versions are recorded in a model file."""


def is_path(table: Any) -> bool:
    """Whether a table is a path: a file, a folder or a pattern."""
    return isinstance(table, (str, os.PathLike))


def as_frame(
    table: Any, schema: Schema | None = None, *, as_text: Collection[str] = ()
) -> pd.DataFrame:
    """A table as a data frame with unique column names (str).

    Parameters
    ----------
    table : DataFrame, Arrow table or path
        A pandas or polars frame, or anything with the Arrow stream interface; a path is
        read by :func:`~damvi.tables.read_table`.
    schema : Schema, optional
        The schema of a model, for reading files.
    as_text : collection of str
        Columns of text files to keep as text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_frame(pa.table({"size": [1.5, None], "colour": ["red", "blue"]}))
       size colour
    0   1.5    red
    1   NaN   blue
    """
    import pandas as pd

    if is_path(table):
        return read_table(table, schema, as_text=as_text)
    if not isinstance(table, pd.DataFrame):
        if type(table).__name__ == "LazyFrame":
            raise TypeError("a polars LazyFrame has no rows yet; pass table.collect()")
        if isinstance(table, pd.Series) or not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(
                f"table must be a pandas or polars DataFrame, an Arrow table or a path, "
                f"not {type(table).__name__}; for numpy arrays use damvi.DAMVIClassifier"
            )
        import pyarrow as pa

        table = pa.table(table).to_pandas()
    names = [str(name) for name in table.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"the table has more than one column named {twice[0]!r}; column names must be "
            f"unique"
        )
    if not len(table):
        raise ValueError("the table has no rows")
    return table.set_axis(names, axis="columns").reset_index(drop=True)


def why_in_blocks(data: Any, asked: bool = False) -> str | None:
    """Why a table is read in blocks; None if it fits in memory.

    Folders and patterns of parquet files are read in blocks, and so are single files that
    are too large for memory, or if ``asked`` for.
    """
    if not is_path(data):
        return None
    data = Path(data)
    is_file = data.exists() and not data.is_dir()
    is_pattern = not data.exists() and any(sign in str(data) for sign in "*?[")
    if is_file and data.suffix.lower() != ".parquet":
        return None
    if not is_file and not data.is_dir() and not is_pattern:
        return None  # the reader raises a proper error
    table = ParquetTable(data)
    size = table.n_rows * len(table.schema.names) * 8
    about = f"{table.n_rows:,} rows, {_bytes_in_words(size)} in memory"
    if not is_file:
        what = "a folder" if data.is_dir() else "a pattern"
        return f"{data} is {what} of {counted(len(table.files), 'parquet file')} ({about})"
    if asked:
        return f"as requested ({about})"
    there = memory()
    if there is None or size <= MEMORY_SHARE * there:
        return None
    return f"{about}; this machine has {_bytes_in_words(there)}"


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


def rows_in_blocks(
    path: Any, schema: Schema, carried: Collection[str] = (), also: Collection[str] = ()
) -> Iterator[Callable[[], Rows]]:
    """As :func:`~damvi.tables.read_blocks`, also for folders and patterns."""
    for file in files_of(path):
        yield from read_blocks(file, schema, carried, also)


def files_of(path: Any) -> list[Path]:
    """The file itself, or the parquet files of a folder or pattern."""
    path = Path(path)
    is_pattern = not path.exists() and any(sign in str(path) for sign in "*?[")
    if path.is_dir() or is_pattern:
        return [Path(file) for file in ParquetTable(path).files]
    return [path]


def _bytes_in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def memory() -> int | None:
    """Memory of the machine or container in bytes; None if unknown."""
    found = []
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            found.append(int(Path(path).read_text(encoding="utf-8")))
    return min(found, default=None)


def provenance(command: str, data: dict[str, Any]) -> dict[str, Any]:
    """How a model was made: command, data fingerprint, versions and date."""
    versions = {"damvi": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "command": command,
        "data": data,
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def fingerprint(table: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """A fingerprint of a table: of a file's bytes, or of a frame's values."""
    size = {"rows": len(frame), "columns": len(frame.columns)}
    if not is_path(table):
        return {"sha256_of_values": _digest_of_values(frame), **size}
    with open(table, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": Path(table).name, "sha256": digest, **size}


def _digest_of_values(frame: pd.DataFrame) -> str:
    from pandas.util import hash_pandas_object

    digest = hashlib.sha256()
    for name, column in frame.items():
        digest.update(str(name).encode("utf-8", "surrogatepass"))
        try:
            hashes = hash_pandas_object(column, index=False)
        except TypeError:  # lists and records
            hashes = hash_pandas_object(column.astype(str), index=False)
        digest.update(hashes.to_numpy().tobytes())
    return digest.hexdigest()


def dataset_fingerprint(path: Any, table: ParquetTable) -> dict[str, Any]:
    """A fingerprint of a parquet dataset, without reading all of it.

    It uses the footers, which have the counts, offsets and ranges of all columns.
    """
    digest = hashlib.sha256()
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
