"""Other people's estimators in a model file: by skops, from a list of types alone."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from .errors import ModelFileError
from .sklearn_trees import check_everywhere
from .values import Json, Reader, Writer

ALLOWED = frozenset(
    {
        "damvi.voters.asking.FoldModels",
        "damvi.voters.class_asking.ClassFoldModels",
        "damvi.voters.encoding.NumberEncoder",
        "damvi.voters.encoding.RankScaler",
        "damvi.voters.encoding.categorical_columns",
        "damvi.voters.encoding.numeric_columns",
        "damvi.voters.relabelling.Relabelled",
        "damvi.voters.trees.features.Categories",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)
"""Types that may be in a member, on top of those that skops itself knows to be harmless:
scikit-learn's estimators, numpy's and scipy's arrays and functions, plain values."""


def write_foreign(writer: Writer, value: Any, trusted: frozenset[str]) -> dict[str, Json]:
    """The object by skops, if all types in it are on the list or trusted."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    skops = _skops(f"{writer.where} ({kind}) is stored by skops")
    try:
        content = skops.dumps(value)
        unknown = set(skops.get_untrusted_types(data=content)) - ALLOWED - trusted
    except Exception as error:  # whatever the object's own state raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelFileError(
            f"{writer.where} cannot be saved: {kind} has no form without code ({reason})"
        ) from error
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ModelFileError(
            f"{writer.where} cannot be saved: it holds {names}, which a model file does "
            f"not take; use a classifier of scikit-learn, LightGBM, XGBoost or CatBoost, "
            f"or, if loading it is safe, save and load with trusted={sorted(unknown)}"
        )
    return {"at": writer.add_blob(content, "skops"), "type": kind}


def read_foreign(reader: Reader, said: dict[str, Json], trusted: frozenset[str]) -> Any:
    """The object, if all types in it are on the list or trusted."""
    skops = _skops("the model has a voter that is stored by skops")
    content = reader.take(said["at"])
    try:
        _refuse_bombs(content)
        unknown = set(skops.get_untrusted_types(data=content))
    except ModelFileError:
        raise
    except Exception as error:  # a hostile member can fail anywhere
        raise ModelFileError(f"skops cannot read {said['at']}") from error
    if unknown - ALLOWED - trusted:
        names = ", ".join(sorted(unknown - ALLOWED - trusted))
        raise ModelFileError(
            f"it holds {names}, and loading that could run code; if you trust where the "
            f"file comes from, load it in Python with trusted=[...]"
        )
    try:
        value = skops.loads(content, trusted=sorted(unknown))
    except Exception as error:
        raise ModelFileError(f"skops cannot read {said['at']}") from error
    check_everywhere(value)
    return value


def _skops(why: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{why}, which is not installed; install it with: pip install skops"
        ) from error
    return skops.io


def _refuse_bombs(content: bytes) -> None:
    """skops packs without shrinking, so nothing in a member is larger than the member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not is_plain or sum(info.file_size for info in infos) > len(content):
        raise ModelFileError("a member by skops would unpack to more than it holds")
