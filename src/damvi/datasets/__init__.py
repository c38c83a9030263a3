"""Datasets with a rare class."""

from .bundled import load

__all__ = ["load"]
