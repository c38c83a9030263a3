"""What the user gives, checked and put in the terms of the paper."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    get_tags,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data


def read_table(model: Any, X: Any, y: Any = "no_validation", *, keep_frame: bool) -> Any:
    """``X`` (with ``y``, at fit) as a checked array or CSR matrix.

    ``keep_frame`` leaves a dataframe as it is, for voters that pick columns by name.
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
    if keep_frame and hasattr(X, "columns"):
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
    # Pipelines do not tell whether they take missing values; a voter of a pool that does
    # not says so itself, by name.
    takes_nan = tags.allow_nan or getattr(model, "_is_pool", False)
    return validate_data(
        model,
        X,
        y,
        reset=at_fit,
        accept_sparse="csr" if tags.sparse else False,
        ensure_all_finite="allow-nan" if takes_nan else True,
    )


def encode_labels(y: Any, pos_label: Any) -> tuple[NDArray[Any], Any, NDArray[np.int8]]:
    """The two classes, the positive one, and each row's sign (+1 for positive)."""
    check_classification_targets(y)
    classes, counts = np.unique(y, return_counts=True)
    positive = positive_of(classes, counts, pos_label)
    signs = np.where(y == classes[positive], np.int8(1), np.int8(-1))
    return classes, classes[positive], signs


def positive_of(classes: NDArray[Any], counts: NDArray[Any], pos_label: Any) -> int:
    """The place of the positive class: the one named, or the rarer of the two."""
    if len(classes) > 2:
        shown = ", ".join(repr(label) for label in classes[:5].tolist())
        raise ValueError(
            f"Only binary classification is supported. y has {len(classes)} classes "
            f"({shown}{', ...' if len(classes) > 5 else ''}); name one class against the "
            f"rest, as in y == {classes.tolist()[0]!r}"
        )
    _refuse_one_class(classes, counts)
    if pos_label is None:
        # Of two equal classes, the last in order, as in scikit-learn.
        return int(counts[1] <= counts[0])
    matches = np.flatnonzero(classes == pos_label)
    if len(matches) != 1:
        raise ValueError(
            f"pos_label={pos_label!r} is not a class of y; the classes are "
            f"{classes.tolist()}"
        )
    return int(matches[0])


def read_classes(y: Any, most: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes in order, two or more, and the number of each row's."""
    check_classification_targets(y)
    classes, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    check_classes(classes, counts, most)
    return classes, labels.astype(np.intp)


def check_classes(classes: NDArray[Any], counts: NDArray[Any], most: int) -> None:
    """Refuse one class, and too many."""
    _refuse_one_class(classes, counts)
    if len(classes) > most:
        raise ValueError(
            f"y has {len(classes)} classes, and at most {most} are supported; merge the "
            f"rarest, or, if y holds amounts, use a regressor"
        )


def _refuse_one_class(classes: NDArray[Any], counts: NDArray[np.intp]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes.tolist()[0]!r}, {counts[0]} rows), and "
            f"there is nothing to tell apart; if a split left the other class out, "
            f"stratify it: train_test_split(..., stratify=y)"
        )


def read_weights(
    sample_weight: Any,
    signs: NDArray[np.integer[Any]],
    classes: NDArray[Any] | None = None,
) -> NDArray[np.float64] | None:
    """The rows' weights scaled to a maximum of 1, or None when there are none.

    ``signs`` tell the classes of the rows apart: any numbers will do. With more than two
    ``classes``, whose numbers they are, each must have a row that counts.
    """
    if sample_weight is None:
        return None
    weights = _check_weights(sample_weight, len(signs))
    if not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero on every row; give some rows a positive weight"
        )
    weights = weights / weights.max()
    if len(set(signs[weights >= 2.0**-31].tolist())) < 2:
        raise ValueError(
            "sample_weight leaves one class only: on every row of the other it is 0, or "
            "below 2**-31 of the largest; give rows of both classes a weight that counts"
        )
    if classes is not None and len(classes) > 2:
        counted = np.isin(np.arange(len(classes)), signs[weights >= 2.0**-31])
        if not counted.all():
            raise ValueError(
                f"sample_weight leaves nothing of class {classes[~counted].tolist()[0]!r}: "
                f"on every row of it, it is 0, or below 2**-31 of the largest; give one a "
                f"weight that counts, or leave these rows out"
            )
    return weights


def _check_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """One weight for each of n rows, finite and not below 0."""
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


def read_new_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """The weights of rows that join others: checked, on the scale that they come in."""
    return None if sample_weight is None else _check_weights(sample_weight, n)


def read_new_labels(y: Any, classes: NDArray[Any], positive: Any) -> NDArray[np.int8]:
    """The signs of rows that come after the fit, whose labels must be known from it."""
    y = column_or_1d(y, warn=True)
    labels = classes.tolist()
    places = {label: place for place, label in enumerate(labels)}
    found = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.intp)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        raise ValueError(
            f"y is {y.tolist()[unknown[0]]!r} at row {unknown[0]}, and the classes of the "
            f"model are {labels}; give labels of these (unknown in {len(unknown)} of "
            f"{len(y)} rows), and leave out rows without one"
        )
    is_positive = np.array([label == positive for label in labels])
    return np.where(is_positive[found], np.int8(1), np.int8(-1))
