"""Validation of X, sample_weight, X_unlabeled and voters; dataframes read as numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import (
    Tags,
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    column_or_1d,
    get_tags,
)
from sklearn.utils.validation import validate_data

from ._compat import take_rows
from .hashing import find_hashes, label_text, text_hashes
from .labels import Labels
from .unlabeled import Unlabeled

LEAST_WEIGHT = 2.0**-31
"""Weights up to this fraction of the largest count as 0."""
UNKNOWN = -1.0
MOST_NAMED = 255
"""With more categories, they are known by their hashes instead of their names."""
SOME_LABELS = 1000
FEW_BUCKETS = 32
"""Number of buckets for more categories than SOME_LABELS: buckets of very many categories
are alike, and the more buckets there are, the more trees overfit to them."""


def require_number_of_rows(value: Any, name: str) -> None:
    """Raise an error if ``value`` is not a number of rows; ``name`` is the parameter.

    Examples
    --------
    >>> require_number_of_rows(0.02, "top")
    Traceback (most recent call last):
    ValueError: top=0.02 must be a whole number of rows, at least 1; for a share of the \
rows, use round(0.02 * len(table))
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return
    is_share = isinstance(value, Real) and 0 < float(value) < 1
    hint = (
        f"; for a share of the rows, use round({value:g} * len(table))" if is_share else ""
    )
    raise ValueError(f"{name}={value!r} must be a whole number of rows, at least 1{hint}")


def check_table(
    model: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    keep_frame: bool,
    allow_nan: bool = False,
) -> Any:
    """Validate ``X`` (and ``y`` in fit), and return an array or CSR matrix.

    With ``keep_frame``, a dataframe is returned as it is, for voters that select columns by
    name. With ``allow_nan``, voters must reject missing values themselves, since some,
    such as pipelines, do not declare whether they support them.
    """
    at_fit = not (isinstance(y, str) and y == "no_validation")
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is the path {str(X)!r}, but must be a table; read it first, as in "
            f"pandas.read_parquet(path), in parts if it is large"
        )
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"Multilabel and multioutput targets are not supported. y has {shape[1]} "
            f"columns; give a single one"
        )
    keep_frame = keep_frame and hasattr(X, "columns")
    if keep_frame:
        X = one_missing_value(X)
    if not (keep_frame and _holds_pipeline(model)):
        refuse_dates(X)
        X = text_as_categories(X) if keep_frame else X
    if keep_frame:
        validate_data(model, X, y, skip_check_array=True, reset=at_fit)
        if not at_fit:
            return X
        check_consistent_length(X, y)
        if len(X) == 0:
            raise ValueError("X has 0 rows; at least one row of each class is needed")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        return X, y
    tags = get_tags(model).input_tags
    read = validate_data(
        model,
        X,
        y,
        reset=at_fit,
        accept_sparse="csr" if tags.sparse else False,
        ensure_all_finite="allow-nan" if tags.allow_nan or allow_nan else True,
    )
    refuse_dates(read[0] if at_fit else read)  # a list of dates, for example
    return read


def refuse_dates(X: Any) -> None:
    """Raise an error for dates and durations, which numpy would convert to integers.

    A missing date, NaT, would become -9e18.
    """
    if hasattr(X, "columns"):
        dtypes = zip(X.columns, getattr(X, "dtypes", ()), strict=False)
        names = [name for name, dtype in dtypes if _is_date(dtype)]
        where = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names[:10]))} of X"
    else:
        names = ["X"] if _is_date(getattr(X, "dtype", None)) else []
        where = "X"
    if names:
        raise ValueError(
            f"{where} {'contain' if len(names) > 1 else 'contains'} dates or durations; "
            f"convert them to numbers, such as days since a date: (column - date) / "
            f"numpy.timedelta64(1, 'D'), or use a pipeline that does so as the voter"
        )


def has_categories(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype."""
    return str(column.dtype).split("(")[0].lower() in {"category", "categorical", "enum"}


def is_text(column: Any) -> bool:
    """Whether a pandas or polars column contains text only."""
    dtype = column.dtype
    if not hasattr(dtype, "kind"):
        return str(dtype) in {"String", "Utf8"}
    if dtype.kind != "O" or has_categories(column):
        return False
    from pandas.api import types

    if isinstance(dtype, np.dtype):
        return types.infer_dtype(column, skipna=True) == "string"
    return bool(types.is_string_dtype(dtype))


def one_missing_value(X: Any) -> Any:
    """Replace all missing text and categories in a pandas dataframe by NaN.

    None and NA occur as well, and encoders would treat them as separate categories.
    """
    if not hasattr(X, "iloc") or not X.columns.is_unique:
        return X
    mended = {}
    for name, dtype in X.dtypes.items():
        column = X[name]
        if dtype.kind != "O" or not column.isna().any():
            continue
        if has_categories(column):
            labels = column.cat.categories
            if not isinstance(labels.dtype, np.dtype):
                mended[name] = column.cat.rename_categories(labels.astype(object))
        elif is_text(column):
            mended[name] = column.astype(object).where(column.notna(), np.nan)
    if mended:
        X = X.copy(deep=False)
        for name, column in mended.items():
            X[name] = column
    return X


def text_as_categories(X: Any) -> Any:
    """Convert text columns of a dataframe to categories, in alphabetical order."""
    if hasattr(X, "column_names"):  # an Arrow table, whose columns have no names
        return X
    names = [name for name in X.columns if is_text(X[name])]
    if not names:
        return X
    if hasattr(X, "with_columns"):
        import polars as pl

        return X.with_columns(pl.col(names).cast(pl.Categorical))
    return X.astype(dict.fromkeys(names, "category"))


def _is_date(dtype: Any) -> bool:
    """Whether this is a date, time or duration dtype of numpy, pandas or polars."""
    if hasattr(dtype, "kind"):
        return dtype.kind in "mM"
    return str(dtype).startswith(("Date", "Duration", "Time"))


def _holds_pipeline(model: Any) -> bool:
    """Whether a voter may be a pipeline, which encodes columns of a dataframe itself."""
    return any(hasattr(value, "steps") for value in model.get_params().values())


def read_weights(
    sample_weight: Any, targets: NDArray[Any], classes: NDArray[Any] | None = None
) -> NDArray[np.float64] | None:
    """Validate sample weights and scale them to a maximum of 1; None if not given.

    At least two classes must have a row of positive weight; all of them, if ``classes`` is
    given: the labels of the targets 0, 1, ...
    """
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, len(targets))
    if not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero in every row; give some rows a positive weight"
        )
    weights = weights / weights.max()
    counted = np.unique(targets[weights > LEAST_WEIGHT])
    if len(counted) < 2:
        raise ValueError(
            "sample_weight leaves only one class: in every row of the other class, it is "
            "0 or at most 2**-31 of the largest; give rows of both classes more weight"
        )
    if classes is not None and len(counted) < len(classes):
        lost = np.delete(classes, counted).tolist()[0]
        raise ValueError(
            f"sample_weight leaves no row of class {lost!r}: in all of its rows, it is 0 "
            f"or at most 2**-31 of the largest; give some of them more weight, or remove "
            f"these rows"
        )
    return weights


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """Validate that there is one finite, non-negative weight per row, without scaling."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n} rows; give one weight "
            f"per row"
        )
    if not np.isfinite(weights).all():
        row = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(
            f"sample_weight is {weights[row]} at row {row}; weights must be finite"
        )
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(
            f"sample_weight is negative in row {row} ({weights[row]:g}); weights must not "
            f"be negative"
        )
    return weights


def read_unlabeled(
    model: Any,
    given: Any,
    X: Any,
    weight: float,
    labels: Labels,
    *,
    keep_frame: bool,
    allow_nan: bool = False,
    stacklevel: int = 4,
) -> Unlabeled | None:
    """Validate the unlabelled rows against the labelled ones that ``model`` has seen.

    Return None if there are none, or if they are ignored because ``weight`` is 0.
    ``stacklevel`` makes the warning point at the call of ``fit``.
    """
    if given is None:
        return None
    wrapped = given if isinstance(given, Unlabeled) else Unlabeled(given)
    table = wrapped.X
    if not hasattr(table, "shape"):
        table = np.asarray(table)
    if not table.shape:
        raise ValueError(
            f"X_unlabeled is a {type(wrapped.X).__name__}, but must be a table; if it is "
            f"in a file, read it first"
        )
    n = table.shape[0]
    if n == 0:
        raise ValueError("X_unlabeled has 0 rows; omit it if there are no unlabelled rows")
    if wrapped is not given and n == X.shape[0]:
        raise ValueError(
            f"X_unlabeled has {n} rows, as many as X, so a grid search or cross-validation "
            f"may have split it along with X by mistake; wrap it to pass it as a whole: "
            f"X_unlabeled=damvi.Unlabeled(table)"
        )
    if keep_frame and hasattr(X, "columns") != hasattr(table, "columns"):
        raise ValueError(
            f"X is a {type(X).__name__}, but X_unlabeled is a {type(table).__name__}; both "
            f"must be of the same type"
        )
    try:
        rows = check_table(model, table, keep_frame=keep_frame, allow_nan=allow_nan)
    except ValueError as error:
        raise ValueError(f"X_unlabeled does not match X: {error}") from error
    if weight == 0:
        warnings.warn(
            "X_unlabeled is ignored, since unlabeled_weight is 0: no use of unlabelled "
            "rows has helped reliably. Compare with unlabeled_weight=0.5, for example, or "
            "omit X_unlabeled",
            UserWarning,
            stacklevel=stacklevel,
        )
        return None
    labels.require_two("X_unlabeled")
    return Unlabeled(rows, wrapped.positive_rate)


def new_seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _take_many_classes(of_voters: Iterable[Tags]) -> bool:
    """Whether all voters support three or more classes, according to their tags."""
    kinds = [tags.classifier_tags for tags in of_voters]
    return all(kind is None or kind.multi_class for kind in kinds)


def check_many_classes(labels: Labels, voters: Iterable[Any]) -> None:
    if len(labels.classes) > 2 and not _take_many_classes(map(get_tags, voters)):
        raise ValueError(
            f"Only binary classification is supported by the voters given, but y has "
            f"{labels.n_classes} classes; use voters that support more, such as the "
            f"default, or fit one class against the rest: "
            f"y == {labels.classes.tolist()[0]!r}"
        )


def set_tags(tags: Tags, of_voters: Sequence[Tags]) -> None:
    """Set the tags of a model to what all of its voters support."""
    tags.input_tags.sparse = all(one.input_tags.sparse for one in of_voters)
    tags.input_tags.allow_nan = all(one.input_tags.allow_nan for one in of_voters)
    tags.classifier_tags.multi_class = _take_many_classes(of_voters)


# Dataframes as tables of numbers.


def is_categorical(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype, or holds text."""
    return has_categories(column) or is_text(column)


def needs_reading(X: Any) -> bool:
    """Whether X is a dataframe with a column that is not numeric.

    Categories and text are supported; dates raise an error that names the column.
    """
    if not hasattr(X, "columns"):
        return False
    twice = [name for name, n in Counter(X.columns).items() if n > 1]
    if twice:
        raise ValueError(f"X has more than one column named {twice}; rename them")
    return any(_is_no_number(X[name].dtype) for name in X.columns)


def _is_no_number(dtype: Any) -> bool:
    if hasattr(dtype, "kind"):  # numpy's, or pandas'
        return dtype.kind in "OSUTMm"
    return str(dtype).startswith(("Cat", "Date", "Dur", "Enum", "Obj", "Str", "Time"))


@dataclass(frozen=True)
class HashedCategories:
    """Very many categories, which are encoded as hash buckets.

    Categories are not stored. Separate codes for those that are frequent in the training
    rows would bias the score, since they are more frequent there than in new rows.
    """

    n_buckets: int

    def numbers(self, labels: list[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        """The bucket of each label that occurs in the rows."""
        asked = used_labels(labels, codes)
        hashes = text_hashes([labels[place] for place in asked.tolist()])
        numbers = np.zeros(len(labels))
        numbers[asked] = hashes % np.uint64(self.n_buckets)
        return numbers


def used_labels(labels: list[Any], codes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels that occur in the rows.

    Only these are hashed, since a single row may have a dtype of thousands of categories.
    """
    used = np.zeros(len(labels) + 1, dtype=bool)
    used[codes] = True
    return np.flatnonzero(used[:-1])


def places_of(
    known: NDArray[np.uint64], labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.intp]:
    """Position of each label in the rows among the known hashes; -1 if unknown."""
    asked = used_labels(labels, codes)
    places = np.full(len(labels), -1)
    hashes = text_hashes([labels[place] for place in asked.tolist()])
    places[asked] = find_hashes(known, hashes)
    return places


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each column seen in fit; None for numeric columns."""

    by_column: tuple[dict[Any, int] | HashedCategories | None, ...]

    @classmethod
    def learn(cls, X: Any) -> Categories:
        return cls(
            tuple(
                _learn(labels_and_places(X[name])[0]) if is_categorical(X[name]) else None
                for name in X.columns
            )
        )

    def hashed(self, n_buckets: int) -> Categories:
        """The same columns, with all categories known by hashes below a number."""
        one = HashedCategories(n_buckets)
        return Categories(tuple(None if own is None else one for own in self.by_column))

    @property
    def mask(self) -> NDArray[np.bool_]:
        return np.array([known is not None for known in self.by_column])


def _learn(labels: list[Any]) -> dict[Any, int] | HashedCategories:
    if len(labels) > MOST_NAMED:
        return HashedCategories(
            MOST_NAMED - 1 if len(labels) <= SOME_LABELS else FEW_BUCKETS
        )
    return {label: i for i, label in enumerate(labels)}


class FrameTable:
    """A dataframe that is read like an array of doubles, in blocks of rows.

    Categories become their numbers in fit, unknown ones ``UNKNOWN``, and missing values
    NaN.
    """

    def __init__(self, X: Any, categories: Categories) -> None:
        refuse_dates(X)
        self.frame = X
        self.categories = categories
        self.shape: tuple[int, int] = (len(X), len(X.columns))

    def __getitem__(self, rows: Any) -> NDArray[np.float64]:
        if not isinstance(rows, slice):
            part = take_rows(self.frame, rows)
        else:
            part = (
                self.frame.iloc[rows] if hasattr(self.frame, "iloc") else self.frame[rows]
            )
        values = np.empty((len(part), self.shape[1]))
        for f, name in enumerate(part.columns):
            known = self.categories.by_column[f]
            if known is None:
                values[:, f] = _numbers(part[name], name)
            else:
                labels, codes = labels_and_places(part[name], name)
                values[:, f] = numbers_of(known, labels, codes)
        return values


def _numbers(column: Any, name: Any) -> NDArray[np.float64]:
    if has_categories(column):
        raise ValueError(f"column {name!r} has categories or text, but was numeric in fit")
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} is not numeric ({error}); convert it to a category, as in "
            f"X[{name!r}].astype('category'), or drop it"
        ) from error
    if np.isinf(values).any():
        raise ValueError(
            f"column {name!r} contains infinity; replace it by a number or NaN"
        )
    return values


def numbers_of(
    known: dict[Any, int] | HashedCategories, labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.float64]:
    """The number of each row's label in fit; code -1 is missing, and becomes NaN."""
    if isinstance(known, HashedCategories):
        numbers: Any = known.numbers(labels, codes)
    else:
        # Labels may be text now that were numbers in fit.
        texts = {label_text(label): number for label, number in known.items()}
        numbers = [known.get(one, texts.get(label_text(one), UNKNOWN)) for one in labels]
    return np.append(numbers, np.nan)[codes]


def labels_and_places(column: Any, name: Any = None) -> tuple[list[Any], NDArray[Any]]:
    """The categories of a column, and the position of each row's (-1 if missing)."""
    if not has_categories(column) and not _is_text_or_missing(column):
        raise ValueError(
            f"column {name!r} had categories in fit, but now has dtype {column.dtype}; "
            f"convert it, as in X[{name!r}].astype('category')"
        )
    if hasattr(column, "iloc"):  # pandas
        if not hasattr(column, "cat"):
            column = column.astype("category")
        return column.cat.categories.tolist(), column.cat.codes.to_numpy()
    import polars as pl

    texts = column.cast(pl.String)
    labels = texts.unique().drop_nulls().sort().to_list()
    numbers = list(range(len(labels)))
    places = texts.replace_strict(labels, numbers, default=-1, return_dtype=pl.Int64)
    return labels, places.to_numpy()


def _is_text_or_missing(column: Any) -> bool:
    """Whether a column is text; an empty column may have any dtype."""
    if is_text(column):
        return True
    return bool(column.isna().all() if hasattr(column, "isna") else column.is_null().all())
