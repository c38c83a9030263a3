"""X, sample_weight, X_unlabeled and voters as the user gives them, checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
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

from .labels import Labels
from .unlabeled import Unlabeled

LEAST_WEIGHT = 2.0**-31
"""Weights this far below the largest count as 0."""


def require_number_of_rows(value: Any, name: str) -> None:
    """Refuse what is no number of rows, under the name that the user gave it by.

    Examples
    --------
    >>> require_number_of_rows(0.02, "top")
    Traceback (most recent call last):
    ValueError: top=0.02 must be a whole number of rows, from 1 on; for a share of them \
give round(0.02 * len(table))
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return
    is_share = isinstance(value, Real) and 0 < float(value) < 1
    how = f"; for a share of them give round({value:g} * len(table))" if is_share else ""
    raise ValueError(f"{name}={value!r} must be a whole number of rows, from 1 on{how}")


def read_table(
    model: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    keep_frame: bool,
    allow_nan: bool = False,
) -> Any:
    """``X`` (with ``y``, at fit) as a checked array or CSR matrix.

    ``keep_frame`` leaves a dataframe as it is, for voters that pick columns by name.
    ``allow_nan`` leaves it to the voters to refuse missing values, for those that do not
    tell whether they take them, such as pipelines.
    """
    at_fit = not (isinstance(y, str) and y == "no_validation")
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is the path {str(X)!r}, and must hold rows; read them, as in "
            f"pandas.read_parquet(path), a part at a time if there are many"
        )
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"Multilabel and multioutput targets are not supported. y has {shape[1]} "
            f"columns; give one"
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
            raise ValueError("X has 0 rows; at least one of each class is needed")
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
    refuse_dates(read[0] if at_fit else read)  # of a list of them, say
    return read


def refuse_dates(X: Any) -> None:
    """An error for dates and durations, which numpy would take for whole numbers.

    A missing one, NaT, would be -9e18.
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
            f"{where} {'hold' if len(names) > 1 else 'holds'} dates or durations; make "
            f"numbers of them, such as days since a date (column - date) / "
            f"numpy.timedelta64(1, 'D'), or let a voter that is a pipeline do so"
        )


def has_categories(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype."""
    return str(column.dtype).split("(")[0].lower() in {"category", "categorical", "enum"}


def is_text(column: Any) -> bool:
    """Whether a pandas or polars column holds text, and nothing else."""
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
    """A pandas frame with NaN wherever text or a category is missing.

    There may be None or NA as well, which encoders of categories take for other values.
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
    """A dataframe with its text as categories, in the order of the alphabet."""
    if hasattr(X, "column_names"):  # Arrow's, whose columns have no names
        return X
    names = [name for name in X.columns if is_text(X[name])]
    if not names:
        return X
    if hasattr(X, "with_columns"):
        import polars as pl

        return X.with_columns(pl.col(names).cast(pl.Categorical))
    return X.astype(dict.fromkeys(names, "category"))


def _is_date(dtype: Any) -> bool:
    """Whether this is numpy's, pandas' or polars' type of dates, times or durations."""
    if hasattr(dtype, "kind"):
        return dtype.kind in "mM"
    return str(dtype).startswith(("Date", "Duration", "Time"))


def _holds_pipeline(model: Any) -> bool:
    """Whether a voter may itself make numbers of the columns of a dataframe."""
    return any(hasattr(value, "steps") for value in model.get_params().values())


def read_weights(
    sample_weight: Any, targets: NDArray[Any], classes: NDArray[Any] | None = None
) -> NDArray[np.float64] | None:
    """The rows' weights scaled to a maximum of 1, or None when there are none.

    Two classes at least must have a row that counts; each of ``classes``, if they are
    given: the labels that the targets 0, 1, ... stand for.
    """
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, len(targets))
    if not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero on every row; give some rows a positive weight"
        )
    weights = weights / weights.max()
    counted = np.unique(targets[weights > LEAST_WEIGHT])
    if len(counted) < 2:
        raise ValueError(
            "sample_weight leaves one class only: on every row of the other it is 0, or "
            "2**-31 of the largest or less; give rows of both classes a weight that counts"
        )
    if classes is not None and len(counted) < len(classes):
        lost = np.delete(classes, counted).tolist()[0]
        raise ValueError(
            f"sample_weight leaves nothing of class {lost!r}: on every row of it, it is "
            f"0, or 2**-31 of the largest or less; give one a weight that counts, or leave "
            f"these rows out"
        )
    return weights


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """One weight for each of n rows, finite and not below 0, on the scale it comes in."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, X has {n} rows; give "
            f"one weight for each row"
        )
    if not np.isfinite(weights).all():
        row = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(
            f"sample_weight is {weights[row]} at row {row}; weights must be finite"
        )
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(
            f"sample_weight is negative at row {row} ({weights[row]:g}); weights must "
            f"be 0 or more"
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
    """The unlabelled table, checked against the labelled one that ``model`` has read.

    None where there is none, or where its ``weight`` is 0 and it is left alone. With
    ``stacklevel`` the warning points at the line that called ``fit``.
    """
    if given is None:
        return None
    wrapped = given if isinstance(given, Unlabeled) else Unlabeled(given)
    table = wrapped.X
    if not hasattr(table, "shape"):
        table = np.asarray(table)
    if not table.shape:
        raise ValueError(
            f"X_unlabeled is a {type(wrapped.X).__name__}, and not a table; read it first, "
            f"and give its rows"
        )
    n = table.shape[0]
    if n == 0:
        raise ValueError(
            "X_unlabeled has 0 rows; leave it out if there are no unlabelled rows"
        )
    if wrapped is not given and n == X.shape[0]:
        raise ValueError(
            f"X_unlabeled has {n} rows, as many as X, and so cannot be told from a table "
            f"that a grid search or a cross-validation has cut along with X; say that it "
            f"is whole: X_unlabeled=damvi.Unlabeled(table)"
        )
    if keep_frame and hasattr(X, "columns") != hasattr(table, "columns"):
        raise ValueError(
            f"X is a {type(X).__name__} and X_unlabeled a {type(table).__name__}; give "
            f"both in the same form"
        )
    try:
        rows = read_table(model, table, keep_frame=keep_frame, allow_nan=allow_nan)
    except ValueError as error:
        raise ValueError(f"X_unlabeled does not go with X: {error}") from error
    if weight == 0:
        warnings.warn(
            "X_unlabeled is left alone: no use of it has been seen to help reliably, so "
            "unlabeled_weight is 0. Set it to 0.5, say, and compare, or leave X_unlabeled "
            "out",
            UserWarning,
            stacklevel=stacklevel,
        )
        return None
    labels.require_two("X_unlabeled")
    return Unlabeled(rows, wrapped.positive_rate)


def new_seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _take_many_classes(of_voters: Iterable[Tags]) -> bool:
    """Whether all voters take three classes and more, as far as they say."""
    kinds = [tags.classifier_tags for tags in of_voters]
    return all(kind is None or kind.multi_class for kind in kinds)


def check_many_classes(labels: Labels, voters: Iterable[Any]) -> None:
    if len(labels.classes) > 2 and not _take_many_classes(map(get_tags, voters)):
        raise ValueError(
            f"Only binary classification is supported by the voters given, and y has "
            f"{labels.n_classes} classes; take voters that know more than two, such as the "
            f"default, or name one class against the rest, as in "
            f"y == {labels.classes.tolist()[0]!r}"
        )


def set_tags(tags: Tags, of_voters: Sequence[Tags]) -> None:
    """What all voters take, the model takes."""
    tags.input_tags.sparse = all(one.input_tags.sparse for one in of_voters)
    tags.input_tags.allow_nan = all(one.input_tags.allow_nan for one in of_voters)
    tags.classifier_tags.multi_class = _take_many_classes(of_voters)
