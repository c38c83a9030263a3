"""Save, load and summarize model files."""

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
from .checks import ModelFileError
from .container import FORMAT, MANIFEST, Json, Reader, Writer, pack, unpack
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
"""Maximum size of the JSON in bytes; arrays are stored separately."""
MANY_VALUES = 2**20
"""Maximum number of JSON values for small files; larger files may have one per byte."""
ALWAYS = ("numpy", "scipy", "scikit-learn")
BOOSTERS = ("lightgbm", "xgboost", "catboost")


def save(
    model: ModelParts | Estimator,
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] = (),
) -> None:
    """Save a model or a fitted classifier to a file that runs no code when loaded.

    Parameters
    ----------
    model : Model, DAMVIClassifier or DAMVIVotingClassifier
    path : path
        Written atomically.
    trusted : iterable of str, optional
        Full names of additional types in voters; they must also be given to load the
        file. See :data:`damvi.io.ALLOWED` for the types allowed by default.

    Raises
    ------
    ModelFileError
        If a voter cannot be stored without code.

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
    writer = Writer(trusted)
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
            f"the model's categories and settings take {len(content):,} bytes, more than "
            f"the limit of {LONGEST_JSON:,}; drop columns with very many categories"
        )
    write_whole(Path(path), pack({MANIFEST: content, **writer.members}))


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> ModelParts | Estimator:
    """Load the contents of a file; no code from the file is run.

    :func:`damvi.model.load` turns the result into a :class:`~damvi.model.Model`.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of additional types in voters, if you trust the source of the file.

    Raises
    ------
    ModelFileError
        If the file is damaged, malicious, or of another format.
    """
    return _load(path, trusted)[0]


def _load(
    path: str | os.PathLike[str], trusted: Iterable[str]
) -> tuple[ModelParts | Estimator, dict[str, str]]:
    """Return the contents of a file, and the library versions that it was created with."""
    model: ModelParts | Estimator
    with _blaming(path):
        members = unpack(Path(path))
        stored = _read_manifest(members.pop(MANIFEST, b""), Path(path).stat().st_size)
        versions = {str(name): str(value) for name, value in stored["versions"].items()}
        _warn_of_other_versions(versions, _kinds(stored))
        reader = Reader(members, trusted)
        model = read_estimator(reader, stored["classifier"])
        if "schema" in stored:
            model = read_table(reader, stored, model)
        reader.finish()
    return model, versions


@contextmanager
def _blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert all errors caused by a file to ``ModelFileError``."""
    try:
        yield
    except (OSError, ImportError):
        raise
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {os.fspath(path)}: {error}") from error
    except Exception as error:  # a malicious file can fail anywhere
        raise ModelFileError(
            f"cannot load {os.fspath(path)}: its content is invalid "
            f"({type(error).__name__})"
        ) from error


def _read_manifest(content: bytes, held: int) -> dict[str, Json]:
    """Parse the manifest of a file with ``held`` bytes."""
    if not 0 < len(content) <= LONGEST_JSON:
        raise ModelFileError(f"its {MANIFEST} has {len(content):,} bytes")
    # Each value takes about 100 bytes of memory, however short it is.
    if sum(map(content.count, (b"[", b"{", b","))) > held + MANY_VALUES:
        raise ModelFileError(f"its {MANIFEST} has too many values")
    stored = json.loads(
        content.decode("utf-8", "surrogatepass"),
        object_pairs_hook=_distinct,
        parse_constant=_refuse_constant,
    )
    if not isinstance(stored, dict):
        raise ModelFileError(f"its {MANIFEST} has no model")
    return stored


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError(f"its {MANIFEST} has duplicate keys")
    return found


def _refuse_constant(name: str) -> Any:
    raise ModelFileError(f"its {MANIFEST} holds {name}, which is not JSON")


def _kinds(stored: Json) -> set[str]:
    """Return all kinds of objects in a manifest."""
    if isinstance(stored, dict):
        inner: set[str] = set().union(*map(_kinds, stored.values()))
        own = stored.get("is")
        return inner | {own} if isinstance(own, str) else inner
    return set().union(*map(_kinds, stored)) if isinstance(stored, list) else set()


# Library versions.


def library_versions(kinds: set[str]) -> dict[str, str]:
    """Return the installed versions of the libraries that these kinds of objects need."""
    used = [name for name in (*BOOSTERS, "skops") if any(k.startswith(name) for k in kinds)]
    found = {"damvi": __version__, "python": platform.python_version()}
    for name in (*ALWAYS, *used):
        if (there := _installed(name)) is not None:
            found[name] = there
    return found


def _warn_of_other_versions(made_with: dict[str, str], kinds: set[str]) -> None:
    """Warn once if a library version may change predictions.

    scikit-learn guarantees nothing across releases, so any difference is reported. Boosters
    read models of older releases. damvi's own trees are arrays, and version-independent.
    """
    doubts = []
    by_sklearn = any(kind.startswith(("sklearn.", "skops")) for kind in kinds)
    for name in ("scikit-learn", *BOOSTERS) if by_sklearn else BOOSTERS:
        there, here = made_with.get(name), _installed(name)
        if not there or not here or _release(there) == _release(here):
            continue
        if name == "scikit-learn" or _release(there) > _release(here):
            doubts.append(f"{name} {there} (installed: {here})")
    if doubts:
        warnings.warn(
            f"the model was created with {' and '.join(doubts)}; its predictions may "
            f"differ. Install the same version, or fit the model again",
            UserWarning,
            stacklevel=5,  # the caller of damvi.load
        )


def _release(text: str) -> tuple[int, ...]:
    """Return major and minor number; empty if it is not a version."""
    parts = text.split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdigit())


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# The summary for ``damvi info``.


def summarize(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> dict[str, Any]:
    """Summarize a model file as plain values, ready for JSON; NaN becomes None.

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
            # The report plots the voters' figures; as text they are too long.
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
    else:  # counted from 1, as in damvi explain
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
    """Return the class name, of a pipeline that of its last step."""
    if hasattr(estimator, "steps"):
        return _kind(estimator.steps[-1][1])
    return type(estimator).__name__


def _plain(value: Any) -> Any:
    """Convert a value for JSON, without NaN and numpy types."""
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
