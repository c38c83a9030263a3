"""Packages that only the benchmarks need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str) -> Any:
    """Import a package of the ``bench`` extra, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this needs {module}, which is not installed: pip install 'damvi[bench]'"
        ) from error
