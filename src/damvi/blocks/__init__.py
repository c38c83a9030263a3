"""Tables that are read a block at a time: on disk here, or on the machines of a cluster."""

from __future__ import annotations

from .parquet import ParquetTable

__all__ = ["ParquetTable"]
