"""From a fitted model and rows kept apart to a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from ..hashing import row_hashes, thinned
from .bounds import check_delta, clopper_pearson, clopper_pearson_upper
from .by_class import ClassCertificate, certify_classes
from .pac_bayes import by_class_is_vacuous, pac_bayes
from .rows import refuse_training_rows
from .statement import Certificate, PacBayes, Rate

ROUNDING = 1e-12
"""A vote this near the threshold may fall on either side."""


def certify(
    model: Any, X: Any, y: ArrayLike, *, delta: float = 0.05
) -> Certificate | ClassCertificate:
    """What can be promised about the decisions of ``model``, from rows kept apart.

    The headline is exact (Clopper and Pearson): how many positives are missed and how
    many negatives flagged, at most. PAC-Bayes bounds [1]_ [2]_ [3]_ follow, which hold for
    every way to weight these voters at once.

    Parameters
    ----------
    model : DAMVIClassifier
        A fitted model. For one inside a pipeline, give the last step and the rows as the
        steps before pass them on.
    X : array, sparse matrix or dataframe of shape (n, n_features)
        Rows drawn like those to come, and used for nothing before: not to train, tune,
        calibrate, choose or stop. For the PAC-Bayes bounds alone it is enough that they
        trained neither the voters nor their calibrators. Rows of the fit are refused;
        rows that merely have the values of some are taken, with a warning.
    y : array of shape (n,)
        Their labels. There are no weights: the bounds are for rows that count alike.
    delta : float, default=0.05
        The chance to be wrong. Each of these holds with confidence 1 - delta: the two
        class rates together (delta/2 each), the overall rate, the three PAC-Bayes bounds
        on it together (delta/3 each, so that the smallest may be quoted), and the six per
        class together (delta/6 each). Intervals spend the same share on both their sides.

    Returns
    -------
    Certificate, or ClassCertificate of three or more classes
        Plain numbers; ``print`` shows them as a table, ``as_dict`` is for JSON. Of three
        or more classes each is taken against the rest, delta/2C a rate.

    Notes
    -----
    It is the risk of the decision that is bounded, not F1 or average precision.

    References
    ----------
    .. [1] A. Maurer (2004), A note on the PAC-Bayesian theorem.
    .. [2] P. Germain et al. (2015), Risk bounds for the majority vote: from a
       PAC-Bayesian analysis to a learning algorithm, JMLR 16.
    .. [3] A. Masegosa et al. (2020), Second order PAC-Bayesian bounds for the weighted
       majority vote, NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import train_test_split
    >>> from damvi import DAMVIClassifier
    >>> from damvi.certificate import certify
    >>> X, y = make_classification(4000, weights=[0.9], random_state=0)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0, stratify=y)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> certificate = certify(model, X_new, y_new)
    >>> certificate.missed.seen < certificate.missed.upper < 1
    True
    """
    check_delta(delta)
    check_is_fitted(model)
    if not hasattr(model, "row_hashes_"):
        raise TypeError(
            f"certify needs a fitted DAMVIClassifier, which knows the rows of its fit; "
            f"{type(model).__name__} does not. Inside a pipeline or a search, give the "
            f"DAMVIClassifier itself and the rows as it gets them"
        )
    y = _read_labels(model, X, y)
    if len(model.classes_) > 2:
        labels = np.searchsorted(model.classes_, y)
        _refuse_training_rows(model, X, labels)
        return certify_classes(model, X, labels, delta, _counted)
    signs = np.where(y == model.pos_label_, 1, -1).astype(np.int8)
    flagged = np.asarray(model.predict(X) == model.pos_label_)
    _refuse_training_rows(model, X, signs)

    wrong, positive = flagged != (signs > 0), signs > 0
    counts = {
        "missed": _counted(wrong[positive], delta / 2),
        "false_alarms": _counted(wrong[~positive], delta / 2),
        "overall": _counted(wrong, delta),
    }
    smaller = float(min(positive.mean(), 1 - positive.mean()))
    empty = by_class_is_vacuous(counts["missed"]["upper"], counts["false_alarms"]["upper"])
    first, last = model.classes_.tolist()
    positive_is_last = bool(model.pos_label_ == model.classes_[1])
    return Certificate(
        delta=float(delta),
        pos_label=last if positive_is_last else first,
        neg_label=first if positive_is_last else last,
        smaller_class=smaller,
        missed=Rate(**counts["missed"], vacuous=empty),
        false_alarms=Rate(**counts["false_alarms"], vacuous=empty),
        overall=Rate(**counts["overall"], vacuous=counts["overall"]["upper"] >= smaller),
        pac_bayes=_bounds_of_vote(model, X, signs, flagged, delta),
    )


def _refuse_training_rows(model: Any, X: Any, signs: NDArray[Any]) -> None:
    prints = thinned(row_hashes(X, signs), model.row_hash_step_)
    refuse_training_rows(prints, model.row_hashes_)


def _read_labels(model: Any, X: Any, y: Any) -> NDArray[Any]:
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if not len(y):
        raise ValueError("there are no rows; a certificate needs some")
    strange = [label for label in set(y.tolist()) if label not in model.classes_.tolist()]
    if strange:
        raise ValueError(
            f"y holds {strange[0]!r}, which is no label of the model; its labels are "
            f"{model.classes_.tolist()}"
        )
    return np.asarray(y)


def _counted(wrong: NDArray[np.bool_], delta: float) -> dict[str, Any]:
    rows, errors = len(wrong), int(wrong.sum())
    low, high = clopper_pearson(errors, rows, delta)
    return {
        "rows": rows,
        "errors": errors,
        "upper": float(clopper_pearson_upper(errors, rows, delta)),
        "low": float(low),
        "high": float(high),
    }


def _bounds_of_vote(
    model: Any, X: Any, signs: NDArray[Any], flagged: NDArray[np.bool_], delta: float
) -> PacBayes | None:
    threshold = getattr(model, "threshold_", 0.0)
    if np.ndim(threshold):
        return None
    vote = model.vote(X)
    above = vote - threshold
    clear = np.abs(above) > ROUNDING
    if not np.array_equal(flagged[clear], above[clear] > 0):
        return None
    return pac_bayes(vote, signs, model.weights_, threshold=threshold, delta=delta)
