"""Models to files and back, and what a file says of itself."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._files import write_whole
from ..voters import PoolVoters
from ..voters.trees.voters import TreeVoters
from .container import FORMAT, MANIFEST, Json, ModelFileError, Reader, Writer, pack, unpack
from .objects import Objects
from .state import (
    Estimator,
    Fitted,
    ModelParts,
    read_estimator,
    read_fitted,
    read_table,
    write_estimator,
    write_table,
)

LONGEST_JSON = 2**26
"""Bytes of JSON: arrays are kept apart, so that the rest is small."""
MANY_VALUES = 2**20
"""In JSON, for a file of any size; larger ones may have one more a byte."""
ALWAYS = ("numpy", "scipy", "scikit-learn")
BOOSTERS = ("lightgbm", "xgboost", "catboost")


def save(
    model: ModelParts | Estimator,
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] = (),
) -> None:
    """Save a model, or a fitted classifier alone, in a file that runs no code when loaded.

    Parameters
    ----------
    model : Model, DAMVIClassifier or DAMVIVotingClassifier
    path : path
        The old file or the new one is there at any time, whole.
    trusted : iterable of str, optional
        Full names of further types that voters may hold; who loads the file must name
        them too. See :data:`damvi.io.ALLOWED` for those that need no mention.

    Raises
    ------
    ModelFileError
        If a voter has no form without code.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier, load, save
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.damvi"
    ...     save(model, path)
    ...     loaded = load(path)
    >>> bool((loaded.vote(X) == model.vote(X)).all())
    True
    """
    writer = Writer(Objects(trusted).write)
    stored: dict[str, Json] = {}
    if isinstance(model, ModelParts):
        stored |= write_table(writer, model)
        model = model.classifier
    stored["classifier"] = write_estimator(writer, model)
    stored["versions"] = library_versions(_kinds(stored))
    text = json.dumps(stored, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST_JSON:
        raise ModelFileError(
            f"the model's categories and settings take {len(content):,} bytes, and more "
            f"than {LONGEST_JSON:,} are not read back; drop columns with that many names"
        )
    write_whole(Path(path), pack({MANIFEST: content, **writer.members}))


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> ModelParts | Estimator:
    """What is in a file, as plain parts or an estimator; no code in the file is run.

    :func:`damvi.model.load` makes a :class:`~damvi.model.Model` of the parts.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of further types that voters may hold, if you trust the file's source.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, or of another format.
    """
    return _load(path, trusted)[0]


def _load(
    path: str | os.PathLike[str], trusted: Iterable[str]
) -> tuple[ModelParts | Estimator, dict[str, str]]:
    """What is in a file, and the versions of the libraries that it was made with."""
    model: ModelParts | Estimator
    with _blaming(path):
        members = unpack(Path(path))
        stored = _read_manifest(members.pop(MANIFEST, b""), Path(path).stat().st_size)
        versions = {str(name): str(value) for name, value in stored["versions"].items()}
        _warn_of_other_versions(versions, _kinds(stored))
        reader = Reader(members, Objects(trusted).read)
        model = read_estimator(reader, stored["classifier"])
        if "schema" in stored:
            model = read_table(reader, stored, model)
        reader.finish()
    return model, versions


@contextmanager
def _blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """One class of errors for all that can be wrong with a file."""
    try:
        yield
    except (OSError, ImportError):
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: {error}") from error
    except Exception as error:  # a hostile file can be wrong anywhere
        raise ModelFileError(
            f"{os.fspath(path)} cannot be loaded: its content makes no sense "
            f"({type(error).__name__})"
        ) from error


def _read_manifest(content: bytes, held: int) -> dict[str, Json]:
    """The manifest of a file of so many bytes."""
    if not 0 < len(content) <= LONGEST_JSON:
        raise ModelFileError(f"its {MANIFEST} has {len(content):,} bytes")
    # Each value takes some 100 bytes of memory, however short it is.
    if sum(map(content.count, (b"[", b"{", b","))) > held + MANY_VALUES:
        raise ModelFileError(f"its {MANIFEST} holds more values than its size allows")
    stored = json.loads(
        content.decode("utf-8", "surrogatepass"),
        object_pairs_hook=_distinct,
        parse_constant=_refuse_constant,
    )
    if not isinstance(stored, dict):
        raise ModelFileError(f"its {MANIFEST} holds no model")
    return stored


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError(f"its {MANIFEST} says something twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ModelFileError(f"its {MANIFEST} holds {name}, which is no JSON")


def _kinds(stored: Json) -> set[str]:
    """All kinds of objects in a manifest."""
    if isinstance(stored, dict):
        inner: set[str] = set().union(*map(_kinds, stored.values()))
        own = stored.get("is")
        return inner | {own} if isinstance(own, str) else inner
    return set().union(*map(_kinds, stored)) if isinstance(stored, list) else set()


# Versions of libraries.


def library_versions(kinds: set[str]) -> dict[str, str]:
    """What is installed of the libraries that a model with objects of these kinds needs."""
    used = [name for name in (*BOOSTERS, "skops") if any(k.startswith(name) for k in kinds)]
    found = {"damvi": __version__, "python": platform.python_version()}
    for name in (*ALWAYS, *used):
        if (there := _installed(name)) is not None:
            found[name] = there
    return found


def _warn_of_other_versions(made_with: dict[str, str], kinds: set[str]) -> None:
    """Warn, once, where another release might read the members otherwise.

    scikit-learn promises nothing between releases, so any other will be named; boosters
    read what older ones wrote. damvi's own trees are arrays, and the same everywhere.
    """
    doubts = []
    by_sklearn = any(kind.startswith(("sklearn.", "skops")) for kind in kinds)
    for name in ("scikit-learn", *BOOSTERS) if by_sklearn else BOOSTERS:
        there, here = made_with.get(name), _installed(name)
        if not there or not here or _release(there) == _release(here):
            continue
        if name == "scikit-learn" or _release(there) > _release(here):
            doubts.append(f"{name} {there} (here {here})")
    if doubts:
        warnings.warn(
            f"the model was made with {' and '.join(doubts)}; its predictions may differ. "
            f"Install the same version, or fit the model again",
            UserWarning,
            stacklevel=5,  # the caller of damvi.load
        )


def _release(text: str) -> tuple[int, ...]:
    """Major and minor number; of what is no version, none."""
    parts = text.split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdigit())


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# What ``damvi info`` shows.


def summarize(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> dict[str, Any]:
    """What a model file holds: plain values, ready for JSON; NaN is None.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        See :func:`load`.
    """
    model, versions = _load(path, trusted)
    classifier = model.classifier if isinstance(model, ModelParts) else model
    fitted, tuning = read_fitted(classifier), classifier.tuning_
    summary: dict[str, Any] = {
        "file": os.fspath(path),
        "format": FORMAT,
        "bytes": Path(path).stat().st_size,
        "versions": versions,
        "classes": classifier.classes_.tolist(),
        "positive": classifier.pos_label_,
        "n_features": classifier.n_features_in_,
        "voters": _summarize_voters(fitted),
        "threshold": {
            "value": classifier.threshold_,
            "tuned_for": None if tuning is None else tuning.objective,
            "tuning": None if tuning is None else tuning.as_dict(),
        },
        "c_bound": classifier.c_bound_,
    }
    if isinstance(model, ModelParts):
        summary |= {
            "target": _summarize_target(model, fitted.sampled_rows),
            "columns": model.schema.as_dict()["columns"],
            # Of the voters' figures the report makes pictures; as text they are long.
            "scores": {k: v for k, v in model.scores.items() if k != "voters"},
            "made": model.made,
        }
    return dict(_plain(summary))


def _summarize_target(model: ModelParts, sampled: bool) -> dict[str, Any]:
    target, labels, scores = model.target, model.training.labels, model.scores
    counts = np.bincount(labels, minlength=target.n_classes).tolist()
    if sampled:
        counts = target.counts(scores)
    return {"name": target.name, "rows": sum(counts), **target.summary(counts)}


def _summarize_voters(fitted: Fitted) -> dict[str, Any]:
    voters, weights = fitted.voters, fitted.weights
    if isinstance(voters, PoolVoters):
        names = list(voters.names)
    else:  # counted from 1, as damvi explain does
        what = "tree" if isinstance(voters, TreeVoters) else "voter"
        names = [f"{what} {k + 1}" for k in range(len(voters))]
    order = np.argsort(-weights, kind="stable")
    return {
        "number": len(voters),
        "with_weight": int((weights > 0).sum()),
        "kinds": sorted({_kind(one) for one in voters.estimators}),
        "weights": [{"name": names[k], "weight": float(weights[k])} for k in order],
    }


def _kind(estimator: Any) -> str:
    """The class that decides, of a pipeline the last step's."""
    if hasattr(estimator, "steps"):
        return _kind(estimator.steps[-1][1])
    return type(estimator).__name__


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
