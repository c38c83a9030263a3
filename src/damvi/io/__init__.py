"""Save and load fitted models, and export them to other formats.

A model file holds arrays and JSON under a SHA-256; loading it runs no code from the file.
The format is described in ``docs/model_files.md``, the exports (ONNX, skops, scikit-learn)
in ``docs/export.md``.
"""

from .checks import ModelFileError
from .container import ALLOWED
from .files import (
    ModelParts,
    TrainingRows,
    library_versions,
    load,
    save,
    summarize,
)
from .onnx_export import export_onnx, to_onnx
from .sklearn_export import to_sklearn, to_skops

__all__ = [
    "ALLOWED",
    "ModelFileError",
    "ModelParts",
    "TrainingRows",
    "export_onnx",
    "library_versions",
    "load",
    "save",
    "summarize",
    "to_onnx",
    "to_sklearn",
    "to_skops",
]
