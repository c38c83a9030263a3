"""Fitted models for other programs: ONNX graphs, skops files, plain scikit-learn."""

from .to_onnx import to_onnx
from .to_sklearn import to_sklearn
from .to_skops import to_skops

__all__ = ["to_onnx", "to_sklearn", "to_skops"]
