"""What a model file holds, as plain values for people and for machines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..classifier import DAMVIClassifier
from ..voters import PoolVoters
from ..voters.trees.voters import TreeVoters
from .container import version_of
from .files import load_any
from .model import Model


def summarize(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> dict[str, Any]:
    """All that ``damvi info`` shows: plain values, ready for JSON; NaN is None.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        See :func:`damvi.modelfile.load`.
    """
    model, versions = load_any(path, trusted=trusted)
    classifier = model.classifier if isinstance(model, Model) else model
    with open(path, "rb") as file:
        version = version_of(file)
    said: dict[str, Any] = {
        "file": os.fspath(path),
        "format": version,
        "bytes": Path(path).stat().st_size,
        "versions": versions,
        "classes": [_plain(label) for label in classifier.classes_.tolist()],
        "positive": _plain(classifier.pos_label_),
        "n_features": classifier.n_features_in_,
        "voters": _voters(classifier),
        "threshold": _threshold(classifier),
        "c_bound": classifier.c_bound_,
    }
    if isinstance(model, Model):
        columns = [vars(column) for column in model.schema.columns]
        said |= {
            "target": _target(model),
            "columns": columns,
            # Of the voters' figures the report makes pictures; as text they are long.
            "scores": {k: said for k, said in model.scores.items() if k != "voters"},
            "made": model.made,
        }
    return dict(_plain(said))


def _target(model: Model) -> dict[str, Any]:
    target, labels = model.target, model.training.labels
    # Of very many rows only a sample is kept.
    thinned = model.classifier._print_step > 1
    rows = model.scores["rows"] if thinned else len(labels)
    said: dict[str, Any] = {"name": target.name, "rows": rows}
    if target.classes:
        counts = np.bincount(labels, minlength=len(target.classes)).tolist()
        if thinned:
            counts = [model.scores["classes"][label] for label in target.classes]
        by_class = zip(target.classes, counts, strict=True)
        return said | {"classes": [{"label": one, "rows": n} for one, n in by_class]}
    positives = model.scores["positives"] if thinned else int(labels.sum())
    return said | {
        "positive": target.positive,
        "negative": target.negative,
        "positives": positives,
        "rate": positives / rows if rows else None,
    }


def _voters(classifier: DAMVIClassifier) -> dict[str, Any]:
    voters, weights = classifier._voters, classifier.weights_
    if isinstance(voters, PoolVoters):
        names = list(voters.names)
    else:  # counted from 1, as damvi explain does
        what = "tree" if isinstance(voters, TreeVoters) else "voter"
        names = [f"{what} {k + 1}" for k in range(len(voters))]
    kinds = sorted({_kind(one) for one in voters.estimators})
    order = np.argsort(-weights, kind="stable")
    return {
        "number": len(voters),
        "with_weight": int((weights > 0).sum()),
        "kinds": kinds,
        "weights": [{"name": names[k], "weight": float(weights[k])} for k in order],
    }


def _kind(estimator: Any) -> str:
    """The class that decides, of a pipeline the last step's."""
    if hasattr(estimator, "models"):
        return _kind(estimator.models[0])
    return (
        _kind(estimator.steps[-1][1])
        if hasattr(estimator, "steps")
        else type(estimator).__name__
    )


def _threshold(classifier: DAMVIClassifier) -> dict[str, Any]:
    tuning = classifier.tuning_
    return {
        "value": classifier.threshold_,
        "tuned_for": None if tuning is None else tuning.objective,
        "tuning": None if tuning is None else tuning.as_dict(),
    }


def _plain(value: Any) -> Any:
    """The value for JSON, which has no NaN and no numpy."""
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case np.generic() | np.ndarray():
            return _plain(value.tolist())
        case float():
            return value if np.isfinite(value) else None
        case None | bool() | int() | str():
            return value
    return str(value)
