"""Models to files and back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._files import write_whole
from ..classifier import DAMVIClassifier
from ..tabular import Schema
from .container import FORMAT, MANIFEST, TWO_CLASSES, pack, unpack
from .errors import ModelFileError
from .model import Model
from .objects import Objects
from .rows import read_target, read_training, write_target, write_training
from .state import read_classifier, write_classifier
from .values import Json, Reader, Writer
from .versions import library_versions, warn_of_other_versions

LONGEST_JSON = 2**26
"""Bytes of JSON: arrays are kept apart, so that the rest is small."""


def save(
    model: Model | DAMVIClassifier,
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] = (),
) -> None:
    """Save a model, or a fitted classifier alone, in a file that runs no code when loaded.

    Parameters
    ----------
    model : Model or DAMVIClassifier
    path : path
        The old file or the new one is there at any time, whole.
    trusted : iterable of str, optional
        Full names of further types that voters may hold; who loads the file must name
        them too. See :data:`damvi.modelfile.ALLOWED` for those that need no mention.

    Raises
    ------
    ModelFileError
        If a voter has no form without code.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier, load_model, save_model
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.damvi"
    ...     save_model(model, path)
    ...     loaded = load_model(path)
    >>> bool((loaded.vote(X) == model.vote(X)).all())
    True
    """
    writer = Writer(Objects(trusted).write)
    if isinstance(model, Model):
        said = _write_model(writer, model)
    else:
        said = {"classifier": write_classifier(writer, model)}
    said["versions"] = library_versions(_kinds(said))
    text = json.dumps(said, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST_JSON:
        raise ModelFileError(
            f"the model's categories and settings take {len(content):,} bytes, and more "
            f"than {LONGEST_JSON:,} are not read back; drop columns with that many names"
        )
    classifier = model.classifier if isinstance(model, Model) else model
    version = TWO_CLASSES if len(classifier.classes_) == 2 else FORMAT
    write_whole(Path(path), pack({MANIFEST: content, **writer.members}, version))


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Model:
    """The model in a file, ready to use on a table; no code in the file is run.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of further types that voters may hold, if you trust the file's source.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, of another format, or a classifier alone.
    """
    model, _ = load_any(path, trusted=trusted)
    if not isinstance(model, Model):
        raise ModelFileError(
            f"{os.fspath(path)} holds a classifier without a table's columns, which Python "
            f"can load with damvi.load_model; damvi fit makes whole models"
        )
    return model


def load_model(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> DAMVIClassifier:
    """The classifier in a file, whether or not it was saved with a table's columns.

    It predicts as it did before. The votes on the training rows are not in the file, so
    ``reweigh`` needs a new ``fit``. See :func:`load` for the parameters and :func:`save`
    for an example.
    """
    model, _ = load_any(path, trusted=trusted)
    return model.classifier if isinstance(model, Model) else model


def load_any(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> tuple[Model | DAMVIClassifier, dict[str, str]]:
    """What is in a file, and the versions of the libraries that it was made with."""
    model: Model | DAMVIClassifier
    with _blaming(path):
        reader, said = _open(path, trusted)
        if "schema" in said:
            model = _read_model(reader, said)
        else:
            model = read_classifier(reader, said["classifier"])
        reader.finish()
        versions = {str(name): str(value) for name, value in said["versions"].items()}
    return model, versions


save_model = save
"""The same, by the name that it has at the top of the package."""


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


def _open(
    path: str | os.PathLike[str], trusted: Iterable[str]
) -> tuple[Reader, dict[str, Json]]:
    members = unpack(Path(path))
    content = members.pop(MANIFEST, b"")
    if not 0 < len(content) <= LONGEST_JSON:
        raise ModelFileError(f"its {MANIFEST} has {len(content):,} bytes")
    said = json.loads(
        content.decode("utf-8", "surrogatepass"),
        object_pairs_hook=_distinct,
        parse_constant=_refuse_constant,
    )
    if not isinstance(said, dict):
        raise ModelFileError(f"its {MANIFEST} holds no model")
    warn_of_other_versions(said["versions"], _kinds(said))
    return Reader(members, Objects(trusted).read), said


def _write_model(writer: Writer, model: Model) -> dict[str, Json]:
    return {
        "schema": writer.write(model.schema.as_dict()),
        "target": write_target(writer, model),
        "training": write_training(writer, model),
        "scores": writer.write(model.scores),
        "made": writer.write(model.made),
        "classifier": write_classifier(writer, model.classifier),
    }


def _read_model(reader: Reader, said: dict[str, Json]) -> Model:
    target = read_target(reader, said["target"])
    training = read_training(reader, said["training"], len(target.classes))
    scores, made = reader.read(said["scores"]), reader.read(said["made"])
    if not isinstance(scores, dict) or not isinstance(made, dict):
        raise ModelFileError("its scores are missing")
    classifier = read_classifier(reader, said["classifier"])
    if len(classifier.classes_) != (len(target.classes) or 2):
        raise ModelFileError("its target has other classes than its classifier")
    return Model(
        classifier=classifier,
        schema=Schema.from_dict(reader.read(said["schema"])),
        target=target,
        training=training,
        scores=scores,
        made=made,
    )


def _kinds(said: Json) -> set[str]:
    """All kinds of objects in a manifest."""
    if isinstance(said, dict):
        inner: set[str] = set().union(*map(_kinds, said.values()))
        own = said.get("is")
        return inner | {own} if isinstance(own, str) else inner
    return set().union(*map(_kinds, said)) if isinstance(said, list) else set()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError(f"its {MANIFEST} says something twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ModelFileError(f"its {MANIFEST} holds {name}, which is no JSON")
