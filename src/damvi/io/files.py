"""Save and load models: what is stored of them, and how it is checked.

All knowledge of the estimators' attributes in this package is in this file.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._files import write_whole
from ..classifier import DAMVIClassifier
from ..decision import Calibrator, Decision, Guarantee, Tuning
from ..decision.calibration import ClassCurves
from ..decision.guarantees import RATES
from ..labels import MAX_CLASSES, Labels, vote_shape
from ..tables import Schema, Target, TargetOfMany
from ..tables.profile import ColumnCounts, Profile, check_profile
from ..voters import BaggedVoters, PoolVoters
from ..voters.trees.estimators import TreeVoters
from ..voting import DAMVIVotingClassifier
from ..weighting import PlainVoteComparison
from .checks import ModelFileError, check_params, check_width, has_shape, is_vote_curve
from .container import FORMAT, MANIFEST, Json, Reader, Writer, pack, unpack

LONGEST_JSON = 2**26
"""Maximum size of the JSON in bytes; arrays are stored separately."""
MANY_VALUES = 2**20
"""Maximum number of JSON values for small files; larger files may have one per byte."""
ALWAYS = ("numpy", "scipy", "scikit-learn")
BOOSTERS = ("lightgbm", "xgboost", "catboost")
Estimator = DAMVIClassifier | DAMVIVotingClassifier
ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (DAMVIClassifier, DAMVIVotingClassifier)
}
ATTRIBUTES = (
    "n_features_in_",
    "feature_names_in_",
    "weights_",
    "threshold_",
    "c_bound_",
    "gibbs_risk_",
    "disagreement_",
    "voters_",
    "seed_",
    "sampling_digest_",
    "row_hashes_",
    "row_hash_step_",
)
"""All fitted attributes except the classes, the decision, and the votes on the training
rows, which are too large."""
SOMETIMES = {"feature_names_in_", "seed_", "sampling_digest_"}
CLASSES = ("classes", "pos_label", "order")
VOTE = "out_of_sample_vote"
DECIDED = ("threshold", "comparison", "tuning", VOTE, "calibrator")
"""Attributes of the decision learned from these votes."""
COUNTS = ("positives", "negatives", "found", "alarms", "counted", "needed")
TEXTS = {"words", "price"}
"""Texts of a guarantee, which follow from its numbers."""
TOLD = {one.name for one in fields(Guarantee)} - {"hashes", "of"} | TEXTS
"""Keys of a guarantee; figures at its threshold are optional."""


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
        stored |= write_model_parts(writer, model)
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
            model = read_model_parts(reader, stored, model)
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


# A classifier.


@dataclass(frozen=True, eq=False)
class Fitted:
    """The parts of a fitted estimator that exports and summaries use.

    Attributes
    ----------
    voters : TreeVoters, BaggedVoters or PoolVoters
    weights : ndarray of shape (K,)
    labels : Labels
    threshold : float, or ndarray of shape (C,) for C > 2
    calibrator : function or None
        Maps votes to probabilities of the positive class, or of all C > 2 classes.
    n_features : int
    feature_names : ndarray of str or None
    sampled_rows : bool
        Whether only a sample of the training rows is recorded, as for very large tables.
    """

    voters: Any
    weights: NDArray[np.float64]
    labels: Labels
    threshold: Any
    calibrator: Any
    n_features: int
    feature_names: Any
    sampled_rows: bool

    @property
    def n_classes(self) -> int:
        return self.labels.n_classes

    @property
    def positive(self) -> int:
        """The index of the positive class of two."""
        return int(self.labels.pos_label == self.labels.classes[1])


def read_fitted(model: Estimator) -> Fitted:
    """Return the parts of a fitted estimator."""
    check_is_fitted(model, "weights_")
    return Fitted(
        voters=model.voters_,
        weights=model.weights_,
        labels=model.labels_,
        threshold=model.threshold_,
        calibrator=model.decision_.calibrator,
        n_features=model.n_features_in_,
        feature_names=getattr(model, "feature_names_in_", None),
        sampled_rows=model.row_hash_step_ > 1,
    )


def write_estimator(writer: Writer, model: Any) -> dict[str, Json]:
    """Return parameters and fitted attributes."""
    name = type(model).__name__
    if type(model) is not ESTIMATORS.get(name):
        raise ModelFileError(f"only {' or '.join(ESTIMATORS)} can be saved, not {name}")
    if not hasattr(model, "weights_"):
        raise ModelFileError("the classifier is not fitted; call fit before saving")
    # Write the voters first, so that errors name a voter.
    known, decision = vars(model), model.decision_
    fitted = writer.state({name: known[name] for name in ATTRIBUTES if name in known})
    classes = writer.state({name: getattr(model.labels_, name) for name in CLASSES})
    learned = {name: getattr(decision, name) for name in DECIDED if name != VOTE}
    decided = writer.state(learned | {VOTE: decision.saved_vote})
    params = {}
    for param, value in model.get_params(deep=False).items():
        with writer.within(f"the classifier's parameter {param!r}"):
            params[param] = writer.write(value)
    return {
        "estimator": name,
        "fitted": fitted,
        "classes": classes,
        "decided": decided,
        "params": params,
    }


def read_estimator(reader: Reader, stored: dict[str, Json]) -> Estimator:
    """Restore a classifier."""
    name = stored["estimator"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError("unknown kind of classifier")
    model = ESTIMATORS[name]()
    fitted, params = reader.state(stored["fitted"]), reader.state(stored["params"])
    if params.keys() != model.get_params(deep=False).keys():
        odd = sorted(params.keys() ^ model.get_params(deep=False).keys())
        raise ModelFileError(f"its classifier has unexpected parameters ({', '.join(odd)})")
    for param, value in params.items():
        setattr(model, param, value)
    _check_params(model)
    if not set(ATTRIBUTES) - SOMETIMES <= fitted.keys() <= set(ATTRIBUTES):
        odd = sorted(set(ATTRIBUTES) ^ fitted.keys())
        raise ModelFileError(f"the classifier is incomplete ({', '.join(odd)})")
    classes, decided = reader.state(stored["classes"]), reader.state(stored["decided"])
    if decided.keys() != set(DECIDED) or classes.keys() != set(CLASSES):
        raise ModelFileError("the classifier's decision is incomplete")
    if decided[VOTE] is None:  # fitted out of core
        del decided[VOTE]
    _check_classes(**classes)
    vars(model).update(
        fitted,
        labels_=Labels.restored(**classes),
        classes_=classes["classes"],
        pos_label_=classes["pos_label"],
        decision_=Decision.restored(**decided),
    )
    _check_fitted(model)
    _check_voters(model, model.voters_)
    _check_decision(model)
    return model


def _check_params(model: Estimator) -> None:
    """Check the parameters that predictions use."""
    check_params(model)
    if isinstance(model, DAMVIVotingClassifier):
        named = model.estimators
        _require(isinstance(named, (str, list)), "estimators")
        for entry in named if isinstance(named, list) else ():
            pair = isinstance(entry, tuple) and len(entry) == 2
            _require(pair and isinstance(entry[0], str), "estimators")
    try:
        get_tags(model)
        model.get_params()
    except Exception as error:  # any class or parameter may raise its own error
        raise ModelFileError("the classifier has invalid parameters") from error


def _check_classes(classes: Any, pos_label: Any, order: Any) -> None:
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
    n = len(classes)
    _require(2 <= n <= MAX_CLASSES and len(np.unique(classes)) == n, "classes_")
    _require(_is_array(order, np.intp, (n,)), "class order")
    _require(np.array_equal(np.sort(order), np.arange(n)), "class order")
    if n == 2:
        _require((classes == pos_label).sum() == 1, "pos_label_")
    else:
        _require(pos_label is None, "pos_label_")


def _check_fitted(model: Estimator) -> None:
    voters, weights = model.voters_, model.weights_
    _require(isinstance(voters, (TreeVoters, BaggedVoters, PoolVoters)), "voters")
    is_pool = isinstance(voters, PoolVoters)
    _require(is_pool == isinstance(model, DAMVIVotingClassifier), "voters")
    _require(_is_array(weights, np.float64, (len(voters),)), "weights_")
    _require((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6, "weights_")
    _require(model.labels_.allows(model.threshold_), "threshold_")
    width = model.n_features_in_
    _require(type(width) is int and width > 0, "n_features_in_")
    for name in ("c_bound_", "gibbs_risk_", "disagreement_"):
        _require(_is_number(getattr(model, name)), name)
    hashes, step = model.row_hashes_, model.row_hash_step_
    _require(_is_array(hashes, np.uint64, (None,)), "row hashes")
    _require((hashes[1:] >= hashes[:-1]).all(), "row hashes")
    _require(type(step) is int and 1 <= step < 2**62, "row hashes")


def _check_voters(model: Estimator, voters: Any) -> None:
    n_classes = model.labels_.n_classes
    if isinstance(voters, TreeVoters):
        _require(model.n_features_in_ == len(voters.features), "n_features_in_")
        _require(voters.n_classes == n_classes, "voters' classes")
        return
    _require(isinstance(voters.estimators, list), "voters")
    _require(len(voters.estimators) == len(voters), "voters")
    for voter in voters.estimators:
        check_width(voter, model.n_features_in_)
    if isinstance(voters, BaggedVoters):
        _require(_is_array(voters.n_without_class, np.intp, (n_classes,)), "classes seen")
        _check_known(voters)
        return
    _require(isinstance(voters.names, tuple), "voters' names")
    _require(all(type(name) is str for name in voters.names), "voters' names")
    _require(voters.voting in ("hard", "soft"), "voting")
    curves, known = voters.calibrators, voters.classes
    _require(curves is None or len(curves) == len(voters), "calibrators")
    _require(curves is None or voters.voting == "soft", "calibrators")
    _require(
        isinstance(known, np.ndarray) and known.shape == (n_classes,), "voters' classes"
    )
    _require(len(np.unique(known)) == n_classes, "voters' classes")
    _check_known(voters)
    # Fitted ones know the targets, and others the labels, of two the positive one last.
    by_target = (np.arange(n_classes), model.labels_.by_target)
    _require(any(np.array_equal(known, own) for own in by_target), "voters' classes")
    for curve in curves or ():
        by_class = curve.curves if isinstance(curve, ClassCurves) else (curve,)
        _require(len(by_class) == len(model.labels_.reported), "calibrators")
        _require(all(map(is_vote_curve, by_class)), "calibrators")


def _check_known(voters: BaggedVoters | PoolVoters) -> None:
    """Check that no voter predicts an unknown class."""
    for voter in voters.estimators:
        own = np.asarray(getattr(voter, "classes_", voters.classes))
        _require(np.isin(own, voters.classes).all(), "voters' classes")


def _check_decision(model: Estimator) -> None:
    decision, labels = model.decision_, model.labels_
    tuning, vote = decision.tuning, decision.saved_vote
    calibrator: Any = decision.calibrator
    _require(np.array_equal(decision.threshold, model.threshold_), "threshold_")
    comparison: Any = decision.comparison
    _require(
        comparison is None or isinstance(comparison, PlainVoteComparison), "comparison_"
    )
    if comparison is not None:
        _require(_is_number(comparison.learned), "comparison_")
        _require(_is_number(comparison.plain), "comparison_")
        _require(comparison.error is None or _is_number(comparison.error), "comparison_")
        _require(type(comparison.plain_kept) is bool, "comparison_")
    if vote is not None:
        shape = vote_shape(None, labels.n_classes)
        _require(_is_array(vote, np.float64, shape), "out-of-sample vote")
        # Hashes also cover unlabelled rows.
        _require(len(vote) <= len(model.row_hashes_), "out-of-sample vote")
    if tuning is not None:
        _require(isinstance(tuning, Tuning), "tuning_")
        _require(np.array_equal(tuning.threshold, model.threshold_), "tuning_")
        f1: Any = tuning.honest_f1
        f1 = f1 if isinstance(f1, tuple) else (f1,)
        _require(len(f1) == len(labels.reported), "tuning_")
        _require(all(map(_is_number, f1)), "tuning_")
    if calibrator is not None:
        _require(isinstance(calibrator, Calibrator), "calibrator")
        _require(len(calibrator.curves) == len(labels.reported), "calibrator")


def _is_array(value: Any, dtype: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether it is an array of this dtype and shape; None matches any size."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        return False
    return has_shape(value, shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and not np.isnan(value)


def _require(condition: Any, name: str) -> None:
    """Reject the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"invalid {name} in the classifier")


# A model of a table, and its measured quality.


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The training rows, stored so that they can be recognized and scored out of sample.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
        ``damvi.hashing.row_hashes`` of the encoded table, with labels, in file order. For
        very large tables, a sample chosen by the values.
    vote : ndarray of float64, shape (n,), or (n, C) for C > 2 classes
        Out-of-sample vote on each row, by voters and weights that have not seen its label;
        NaN if there is none.
    labels : ndarray of bool, shape (n,), or of uint8 for C > 2 classes
        Whether the row is positive, or the index of its label in ``target.classes``.
    threshold : ndarray of the shape of ``vote``, or None
        Thresholds or factors learned on other rows. None: the model's.
    probability : ndarray of the shape of ``vote``, or None
        Calibrated on other rows.
    blocks : ndarray of int16, shape (n,), or None
        Block of similar rows that each row belongs to, see
        ``damvi.evaluation.alike_blocks``; -1 without a vote. None: no similar rows are
        known.
    """

    hashes: NDArray[np.uint64]
    vote: NDArray[np.float64]
    labels: NDArray[Any]
    threshold: NDArray[np.float64] | None = None
    probability: NDArray[np.float64] | None = None
    blocks: NDArray[np.int16] | None = None

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Whether each row is positive; two classes only."""
        if self.labels.dtype != bool:
            raise ValueError("there is no positive class among three or more; use labels")
        return self.labels


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The contents of a model file; see :class:`damvi.model.Model` for its methods.

    Attributes
    ----------
    classifier : DAMVIClassifier or DAMVIVotingClassifier
        Fitted on ``schema.encode(table)`` and a target of False and True (positive), or of
        the indices of the labels in ``target.classes``.
    schema : Schema
    target : Target
    training : TrainingRows
    scores : dict
        Out-of-sample scores from ``damvi fit``: plain values, ready for JSON.
    made : dict
        Provenance: command, seed, data fingerprint, versions, date.
    profile : Profile or None
        Summary of the columns in training, and of the out-of-sample decisions.
    """

    classifier: Estimator
    schema: Schema
    target: Target
    training: TrainingRows
    scores: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)
    profile: Profile | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return target, scores, columns and provenance as plain values."""
        return {
            "target": {"name": self.target.name, **self.target.told()},
            **_in_brief(self.scores),
            "columns": self.schema.as_dict()["columns"],
            "made": self.made,
        }


def _in_brief(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores without the voters' figures, which are for plots and long as text."""
    return {name: value for name, value in scores.items() if name != "voters"}


def write_model_parts(writer: Writer, model: ModelParts) -> dict[str, Json]:
    """Return everything except the classifier."""
    n_classes = len(model.classifier.classes_)
    if model.target.n_classes != n_classes:
        raise ModelFileError(
            f"the target has {model.target.n_classes} labels, but the classifier has "
            f"{n_classes} classes"
        )
    _check_training(model.training, model.target)
    return {
        "schema": writer.write(model.schema.as_dict()),
        "encoders": writer.write(model.schema.encoders),
        "target": writer.state(vars(model.target)),
        "training": writer.state(vars(model.training)),
        "scores": writer.write(model.scores),
        "made": writer.write(model.made),
        "profile": None if model.profile is None else _write_profile(writer, model.profile),
    }


def _write_profile(writer: Writer, profile: Profile) -> Json:
    kept = {"cuts": profile.cuts, "days": profile.days}
    return writer.state(kept | vars(profile.counts))


def read_model_parts(
    reader: Reader, stored: dict[str, Json], classifier: Any
) -> ModelParts:
    """Restore a model."""
    target = Target(**reader.state(stored["target"]))
    classes = target.classes
    distinct = isinstance(classes, tuple) and len(set(classes)) == len(classes)
    if not distinct or len(classes) in (1, 2):
        raise ModelFileError("its target has no name")
    target = TargetOfMany(**vars(target)) if classes else target
    texts = (target.name, target.negative, target.positive, *classes)
    named = all(type(text) is str for text in (*texts, target.kind))
    if not named or type(target.merged) is not bool:
        raise ModelFileError("its target has no name")
    try:
        target.as_given()
    except (KeyError, ValueError):
        raise ModelFileError("its target has labels of the wrong type") from None
    if len({*target.texts}) < target.n_classes:
        raise ModelFileError("both classes of its target have the same name")
    if len(classifier.classes_) != target.n_classes:
        raise ModelFileError("its target and classifier have different classes")
    training = TrainingRows(**reader.state(stored["training"]))
    _check_training(training, target)
    scores, made = reader.read(stored["scores"]), reader.read(stored["made"])
    if not isinstance(scores, dict) or not isinstance(made, dict):
        raise ModelFileError("its scores are missing")
    if not _is_plain(made.get("settings", {}), {dict}):
        raise ModelFileError("its fit settings are invalid")
    _check_guarantee(scores.get("guarantee"), classifier)
    encoders = reader.read(stored["encoders"])
    if not isinstance(encoders, dict):
        raise ModelFileError("its encoders are missing")
    schema = Schema.from_dict(reader.read(stored["schema"]), encoders)
    profile = None
    if stored["profile"] is not None:
        kept = reader.state(stored["profile"])
        profile = Profile(kept.pop("cuts"), kept.pop("days"), ColumnCounts(**kept))
        if not check_profile(profile, schema, target.n_classes):
            raise ModelFileError("its column profile is invalid")
    return ModelParts(classifier, schema, target, training, scores, made, profile)


def _is_plain(value: Any, kinds: set[type] | None = None) -> bool:
    """Whether a value is a plain value or a container of these."""
    if kinds is not None and type(value) not in kinds:
        return False
    match value:
        case dict():
            return all(type(k) is str and _is_plain(v) for k, v in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
    return type(value) in (type(None), bool, int, float, str)


def _check_guarantee(promise: Any, classifier: Any) -> None:
    """Check that a guarantee matches the threshold, and word it by its numbers."""
    if promise is None:
        return
    if not isinstance(promise, dict) or {*promise} - {"figures"} != TOLD:
        raise ModelFileError("its guarantee has no text")
    cut = promise["threshold"]
    if not (cut is None or np.array_equal(cut, classifier.threshold_)):
        raise ModelFileError("its guarantee is for another threshold")
    counts = [promise[name] for name in COUNTS]
    shares = promise["level"], promise["confidence"]
    known = (
        (cut is None or type(cut) is float)
        and type(promise["rate"]) is str
        and promise["rate"] in RATES
        and all(type(share) is float and 0 < share < 1 for share in shares)
        and all(type(count) is int and 0 <= count < 2**62 for count in counts)
        and promise["found"] <= promise["positives"]
        and promise["alarms"] <= promise["negatives"]
        and type(promise["by_group"]) is bool
        and type(promise["basis"]) is str
        and _are_figures(promise.get("figures", {}))
    )
    if not known:
        raise ModelFileError("its guarantee is invalid")
    promise |= Guarantee(**{name: promise[name] for name in TOLD - TEXTS}).as_dict()


def _are_figures(figures: Any) -> bool:
    """Whether they are named figures with intervals."""
    return isinstance(figures, dict) and all(
        type(name) is str
        and isinstance(one, dict)
        and {*one} == {"value", "low", "high", "spread"}
        and all(isinstance(number, float) for number in one.values())
        for name, one in figures.items()
    )


def _check_training(training: TrainingRows, target: Target) -> None:
    columns = (training.hashes, training.vote, training.labels)
    arrays = all(isinstance(column, np.ndarray) for column in columns)
    kinds = [np.uint64, np.float64, target.label_type]
    if not arrays or [column.dtype for column in columns] != kinds:
        raise ModelFileError("unknown kind of training rows")
    n = len(training.hashes)
    shapes = [(n,), vote_shape(n, target.n_classes), (n,)]
    if [column.shape for column in columns] != shapes:
        raise ModelFileError("its training rows are inconsistent")
    if not (training.labels < target.n_classes).all():
        raise ModelFileError("its training rows have labels out of range")
    for column in (training.threshold, training.probability):
        if column is None:
            continue
        if not isinstance(column, np.ndarray) or column.dtype != "float64":
            raise ModelFileError("unknown kind of training rows")
        if column.shape != training.vote.shape:
            raise ModelFileError("its training rows are inconsistent")
    blocks = training.blocks
    if blocks is None:
        return
    if not isinstance(blocks, np.ndarray) or blocks.dtype != "int16":
        raise ModelFileError("unknown kind of training rows")
    if blocks.shape != (n,):
        raise ModelFileError("its training rows are inconsistent")
    has_vote = ~np.isnan(training.vote.reshape(n, -1)).any(axis=1)
    numbers = np.unique(blocks[has_vote])
    if len(numbers) < 2 or numbers[0] < 0:
        raise ModelFileError("its training rows have invalid blocks")


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
            "scores": _in_brief(model.scores),
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
