"""Random CSV files, read by damvi and by others; the cases are in ``csv_cases``."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .runner import Finding


class Tables:
    """The kind ``csv``."""

    name = "csv"
    per_child = 100

    def __init__(self) -> None:
        self.cases: Any = import_module("tests.fuzz.csv_cases")

    def warm(self) -> None:
        """Import all that a case takes. Nothing is read here: that starts threads."""
        import pyarrow.csv
        import pyarrow.dataset  # noqa: F401

    def make(self, rng: np.random.Generator) -> bytes:
        return self.cases.cases(random.Random(int(rng.integers(2**63))))

    def check(self, case: bytes) -> str:
        try:
            said: Any = self.cases.check(case)
        except AssertionError as error:
            raise Finding("difference", str(error) or "read otherwise") from error
        return said or "read or refused, as it should be"

    def keep(self, case: bytes, folder: Path) -> None:
        (folder / "hostile.csv").write_bytes(case)

    def kept(self, folder: Path) -> bytes:
        return (folder / "hostile.csv").read_bytes()
