"""Fitted models for other programs: ONNX graphs, skops files, plain scikit-learn."""

from .to_onnx import to_onnx

__all__ = ["to_onnx"]
