"""DAMVI: classification with a rare class, by a diversity-aware majority vote."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from .classifier import DAMVIClassifier
    from .folds import forward_splits
    from .io import save
    from .model import Model, fit, load
    from .moments import Moments
    from .outofcore import ParquetTable
    from .streaming import VoteStream
    from .unlabeled import Unlabeled
    from .voters.trees.estimators import FastTreeClassifier
    from .voting import DAMVIVotingClassifier

_HOMES = {
    "DAMVIClassifier": "classifier",
    "DAMVIVotingClassifier": "voting",
    "FastTreeClassifier": "voters.trees.estimators",
    "Model": "model",
    "Moments": "moments",
    "ParquetTable": "outofcore",
    "Unlabeled": "unlabeled",
    "VoteStream": "streaming",
    "forward_splits": "folds",
    "fit": "model",
    "load": "model",
    "save": "io",
}
_MODULES = {
    "benchmark",
    "certificate",
    "contenders",
    "datasets",
    "decision",
    "distributed",
    "diversity",
    "drift",
    "evaluation",
    "explanation",
    "io",
    "model",
    "labels",
    "moments",
    "outofcore",
    "plots",
    "report",
    "review",
    "risks",
    "solvers",
    "streaming",
    "tables",
    "unlabeled",
    "voters",
    "votes",
}

__all__ = [
    "DAMVIClassifier",
    "DAMVIVotingClassifier",
    "FastTreeClassifier",
    "Model",
    "Moments",
    "ParquetTable",
    "Unlabeled",
    "VoteStream",
    "__version__",
    "fit",
    "forward_splits",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `import damvi` and `damvi --help` stay instant.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
