"""A table as the user gives it, and prepared for training: rows, columns and classes."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..folds import forward_splits
from ..messages import counted
from ..outofcore import ParquetTable
from ..tables import (
    Rows,
    Schema,
    Target,
    amount_warnings,
    is_number_column,
    label_texts,
    leak_warnings,
    listed,
    merge_labels,
    note_on_neighbours,
    notes_on,
    pick,
    read_blocks,
    read_classes,
    read_table,
    read_times,
    spelling_warnings,
    suspicions,
    time_order,
    time_values,
    too_good,
    typed_labels,
    with_kind,
)
from ..tables.profile import Profile
from ..tables.values import as_numbers

if TYPE_CHECKING:
    import pandas as pd

MEMORY_SHARE = 1 / 3
"""Share of memory that a table may take as floats; voters and votes need the rest."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container states its memory limit."""
PACKAGES = ("numpy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")
"""Packages whose versions are recorded in a model file."""
FEW_GROUPS = 6
"""With fewer groups, scores are based on models trained on very few."""


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


def labelled_frame(table: Any, target: str) -> pd.DataFrame:
    """A table to train on, in which the labels of a text file have types again."""
    frame = as_frame(table, as_text=[target])
    if target in frame.columns and _is_text_file(table):
        frame[target] = typed_labels(frame[target])
    return frame


def _is_text_file(table: Any) -> bool:
    """Whether a table comes from a text file, without types."""
    return is_path(table) and bool({".csv", ".tsv"} & set(Path(table).suffixes))


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


# Where a model comes from.


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


# Rows, columns and classes.


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training data, and what was decided in preparing it.

    Attributes
    ----------
    X : DataFrame
        The labelled rows, encoded.
    y : ndarray
        Whether each row is positive; with three or more classes, the index of its label
        in ``target.classes``.
    groups : ndarray or None
    schema : Schema
    target : Target
    class_counts : list of int
        Rows per class; of two, the positive one is second.
    warnings : list of str
        Warnings for the user.
    unlabeled : DataFrame or None
        The unlabelled rows, encoded.
    times : ndarray or None
        Times as float64 or int64 numbers.
    sample_weight : ndarray of float64 or None
    notes : list of str
        Advice for the user, a line each.
    profile : Profile or None
        The column profile of the labelled rows.
    alike : dict of str to str
        The columns that define dependent rows: "time", "group" or none.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    schema: Schema
    target: Target
    class_counts: list[int]
    warnings: list[str]
    unlabeled: pd.DataFrame | None = None
    times: NDArray[Any] | None = None
    sample_weight: NDArray[np.float64] | None = None
    notes: list[str] = field(default_factory=list)
    profile: Profile | None = None
    alike: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> NDArray[Any]:
        """``y`` in one byte per row, as stored in a model file."""
        return self.y.astype(self.target.label_type, copy=False)

    @property
    def sizes(self) -> dict[str, Any]:
        """Rows per class as stored with the scores, as plain values."""
        return self.target.sizes(self.class_counts)

    def profile_with(self, decided: NDArray[np.intp]) -> Profile | None:
        """The column profile, with the number of rows predicted as each class."""
        if self.profile is None:
            return None
        return self.profile.with_decisions(decided, self.target.n_classes)

    def doubts(self, figures: Mapping[str, Any]) -> list[str]:
        """A warning if the scores of a model are too good to be true."""
        names = {"f1": "F1", "ap": "AP", "macro_f1": "macro F1", "macro_ap": "macro AP"}
        found = {name: figures[key].value for key, name in names.items() if key in figures}
        warning = too_good(found, self.X, self.y, self.schema)
        return [f"LEAKAGE? {warning}"] if warning else []


def prepare(
    frame: pd.DataFrame,
    target: str,
    positive: Any = None,
    *,
    group: str | None = None,
    time: str | None = None,
    sample_weight: str | None = None,
    shuffle: bool = False,
    merged: bool = False,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    like: Schema | None = None,
) -> Prepared:
    """Infer the columns of a table and encode it.

    Column types are inferred from the labelled rows.

    Parameters
    ----------
    frame : DataFrame
        See :func:`~damvi.tables.read_table`.
    target : str
    positive : optional
        The positive class. Default: the rarer of two; with three or more, all are classes.
    group : str, optional
        The column of groups to keep together; not a feature.
    time : str, optional
        The column of times: dates, times or numbers. Numbers are then not a feature; dates
        give calendar features. Default: a date column that the rows are sorted by, if any.
    sample_weight : str, optional
        The column of sample weights; not a feature.
    merged : bool, default=False
        Treat labels that differ only in case or spaces as one.
    shuffle : bool, default=False
        Treat the rows as unordered, even if they look sorted by time.
    keep, drop : collections of str
        Columns to use or to drop, whatever they look like.
    like : Schema, optional
        The schema of an older table, whose column types to reuse; see
        :meth:`damvi.tables.Schema.infer`.
    """
    import pandas as pd

    if time is not None and shuffle:
        raise ValueError(
            f"time={time!r} and shuffle contradict each other; leave one of them out"
        )
    roles = {"group": group, "time": time, "sample_weight": sample_weight}
    if like is not None:
        drop = dropped_like(frame, like, drop)
    check_columns(frame, target, keep, drop, roles)
    labels = label_texts(frame[target])
    spelled = [] if merged else spelling_warnings(labels)
    if merged:
        labels = merge_labels(labels)
        if positive is not None:
            positive = merge_labels(pd.Series([str(positive)]), labels.dropna().unique())[0]
    known = labels.notna().to_numpy()
    y, classes = read_classes(labels[known].reset_index(drop=True), positive)
    classes = with_kind(classes, frame[target].dtype, frame[target])
    classes = replace(classes, merged=merged)
    groups = None if group is None else _filled(frame, group, "group").to_numpy()[known]
    times = None if time is None else read_times(_filled(frame, time, "time")[known])
    weights = None if sample_weight is None else _read_weights(frame[sample_weight], known)
    if time is not None and not is_number_column(frame[time]):
        del roles["time"]
    drop = [*drop, *(name for name in roles.values() if name is not None)]
    without = None
    if not known.all():
        without = frame.loc[~known].reset_index(drop=True)
        frame = frame.loc[known].reset_index(drop=True)
    schema, warnings = judge_columns(
        frame, target, y, classes, keep=keep, drop=drop, like=like
    )
    X = schema.encode(frame)
    notes = notes_on(frame, schema, X, y)
    if time is None and not shuffle:
        time, times, words = _find_times(frame, schema, y, groups)
        in_order = times is not None or time is None
        (notes if in_order else warnings).extend(words)
        if groups is None and time is None and not words:
            notes += note_on_neighbours(schema, X, y)
    if groups is not None:
        warnings += _few_groups(groups, str(group))
    if times is not None and weights is not None:
        _refuse_weightless(times, y, groups, weights)
    alike = {"time": time if times is not None else None, "group": group}
    return Prepared(
        X,
        y,
        groups,
        schema,
        classes,
        np.bincount(y.astype(np.intp)).tolist(),
        [*spelled, *warnings, *suspicions(X, y, schema, keep)],
        None if without is None else schema.encode(without),
        times,
        weights,
        notes,
        profile=Profile.learn(schema, X, frame),
        alike={role: name for role, name in alike.items() if name is not None},
    )


def _few_groups(groups: NDArray[Any], name: str) -> list[str]:
    n = len(np.unique(groups))
    if n >= FEW_GROUPS:
        return []
    return [
        f"{name!r} has only {counted(n, 'group')}, so the scores are rough and tend to be "
        f"too low: each group is scored by models trained on few others"
    ]


def _refuse_weightless(
    times: NDArray[Any], y: NDArray[Any], groups: Any, weights: NDArray[np.float64]
) -> None:
    """An error if a window has no training rows with positive weight."""
    for train, _ in forward_splits(times, y, groups):
        if len(np.unique(y[train][weights[train] > 0])) < 2:
            raise ValueError(
                "the earliest rows of one class all have weight 0, so the first window has "
                "nothing to train on; give weights above 0, drop these rows, or use random "
                "folds with --shuffle"
            )


def _find_times(
    frame: pd.DataFrame, schema: Schema, y: NDArray[Any], groups: Any
) -> tuple[str | None, NDArray[Any] | None, list[str]]:
    """The time column that rows are sorted by and its values, if any, and notes on it.

    The column comes without values if forward validation is not possible.
    """
    import pandas as pd

    name = time_order(frame, schema)
    used = [column.name for column in schema.used if column.kind == "date"]
    dates = [column for column in used if frame[column].notna().all()]
    if name is None and not dates:
        return None, None, []
    if name is None:
        told = (
            f"If {dates[0]!r} is the time of each row, give it as --time: rows are then "
            f"scored by models trained on earlier rows, as new rows will be."
        )
        return None, None, [told]
    # A row without a date gets the one before it.
    times = pd.Series(time_values(frame, name)).ffill().bfill().to_numpy()
    try:
        forward_splits(times, y, groups)
    except ValueError as error:
        told = (
            f"the rows are sorted by {name!r}, but {error}. They are scored with random "
            f"folds, so expect lower scores on future rows"
        )
        return name, None, [told]
    told = (
        f"The rows are sorted by {name!r}, so each is scored by models trained on earlier "
        f"rows only, as new rows will be. For random folds, use --shuffle."
    )
    return name, times, [told]


def _filled(frame: pd.DataFrame, name: str, role: str) -> pd.Series:
    """A column without missing values, or an error."""
    column = frame[name]
    if column.isna().any():
        raise ValueError(
            f"the {role} column {name!r} is missing in "
            f"{counted(column.isna().sum(), 'row')}; every row needs a {role}"
        )
    return column


def _read_weights(column: pd.Series, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The sample weights."""
    weights = as_numbers(column)[known]
    odd = ~(weights >= 0)
    if odd.any():
        raise ValueError(
            f"the weight column {column.name!r} has "
            f"{counted(odd.sum(), 'invalid value')}, such as "
            f"{str(column[known][odd].iloc[0])!r}; weights must be numbers of at least 0"
        )
    return weights


def check_columns(
    frame: pd.DataFrame,
    target: str,
    keep: Collection[str],
    drop: Collection[str],
    roles: Mapping[str, str | None] | None = None,
) -> None:
    """An error if a named column is missing or has two roles."""
    given = {role: name for role, name in (roles or {}).items() if name is not None}
    for name in (*keep, *drop):
        pick(frame, name, "such")
    if target in (*keep, *drop, *given.values()):
        raise ValueError(f"{target!r} is the target and cannot have another role")
    pick(frame, target, "target")
    for role, name in given.items():
        pick(frame, name, role)
        if name in keep:
            raise ValueError(f"{name!r} is the {role} column and cannot be a feature")


def dropped_like(
    frame: pd.DataFrame, like: Schema, drop: Collection[str]
) -> Collection[str]:
    """The columns to drop; an error if another column of the older table is missing."""
    gone = [column.name for column in like.used if column.name not in frame.columns]
    lacking = [name for name in gone if name not in drop]
    if lacking:
        noun = "columns" if len(lacking) > 1 else "column"
        raise ValueError(
            f"missing {noun} used by the older model: {listed(lacking)}; the table has "
            f"{listed(list(frame.columns))}. To fit without, use --drop"
        )
    return [name for name in drop if name not in gone]


def judge_columns(
    frame: pd.DataFrame,
    target: str,
    y: NDArray[Any],
    classes: Target,
    *,
    keep: Collection[str],
    drop: Collection[str],
    like: Schema | None = None,
) -> tuple[Schema, list[str]]:
    """The schema of a frame, and warnings for the user."""
    schema = Schema.infer(frame, target, y, keep=keep, drop=drop, like=like)
    if not schema.used:
        reasons = "; ".join(f"{c.name!r}: {c.reason}" for c in schema.columns[:20])
        raise ValueError(f"no columns are left to train on. {reasons}".rstrip())
    return schema, [*amount_warnings(classes), *leak_warnings(schema, target)]


def with_unlabeled(table: Prepared, frame: pd.DataFrame, name: str) -> Prepared:
    """The table with more unlabelled rows.

    Parameters
    ----------
    table : Prepared
    frame : DataFrame
        As from :func:`~damvi.tables.read_table` with ``schema=table.schema``. Columns may
        be in any order; extra ones are ignored.
    name : str
        The name of the file, for error messages.
    """
    import pandas as pd

    try:
        more = table.schema.encode(frame)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    target, warnings = table.target.name, list(table.warnings)
    if target in frame.columns:
        n = int(label_texts(frame[target]).notna().sum())
        if n:
            warnings.append(
                f"{name} has {counted(n, 'row')} with a {target!r}, which is ignored. Put "
                f"labelled rows in the training table"
            )
    for column in table.schema.used:
        read = more[list(column.features)].notna().to_numpy().any()
        if not read and frame[column.name].notna().any():
            warnings.append(
                f"{name}: no value in {column.name!r} could be read, so all are treated as "
                f"missing. Is the column written as in the training table?"
            )
    parts = [more] if table.unlabeled is None else [table.unlabeled, more]
    return replace(table, unlabeled=pd.concat(parts, ignore_index=True), warnings=warnings)


def describe_unlabeled(table: Prepared, weight: float | None) -> str | None:
    """How unlabelled rows are used, in words.

    Fails early if they cannot be used as requested.
    """
    if weight and table.unlabeled is None:
        raise ValueError(
            f"--unlabeled-weight {weight:g} needs unlabelled rows, but there are none; "
            f"give a file with --unlabeled, or leave it out"
        )
    if weight:
        table.target.require_two(
            f"--unlabeled-weight {weight:g} is, so far,",
            "leave it out, or name the positive class with --positive",
        )
    if table.unlabeled is None:
        return None
    rows = counted(len(table.unlabeled), "unlabelled row")
    if weight:
        return (
            f"Using {rows}: the voters' disagreement on them has a weight of at most "
            f"{weight:g}. All scores are on labelled rows."
        )
    if weight is not None:
        return f"Dropped {rows}, as requested."
    return (
        f"Dropped {rows}: using them does not reliably help. With two classes you can try "
        f"--unlabeled-weight 0.5."
    )
