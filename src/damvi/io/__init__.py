"""Fitted models in files, and for other programs.

A model file holds plain arrays and JSON under a SHA-256, and loading it runs no code that
it brings; ``docs/model_files.md`` describes the format. ``docs/export.md`` describes the
exports: ONNX graphs, skops files, plain scikit-learn.
"""

from .container import ModelFileError
from .files import (
    library_versions,
    load,
    save,
    summarize,
)
from .objects import ALLOWED
from .onnx_export import to_onnx
from .onnx_feeder import export_onnx
from .sklearn_export import to_sklearn, to_skops
from .state import ModelParts, Training

__all__ = [
    "ALLOWED",
    "ModelFileError",
    "ModelParts",
    "Training",
    "export_onnx",
    "library_versions",
    "load",
    "save",
    "summarize",
    "to_onnx",
    "to_sklearn",
    "to_skops",
]
