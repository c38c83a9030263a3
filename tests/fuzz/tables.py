"""Random CSV files, read by damvi and by others; the cases are in ``csv_cases``."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np

from damvi.tables import read_table

from . import csv_cases
from .runner import Finding


class Tables:
    """The kind ``csv``."""

    name = "csv"
    per_child = 100

    def warm(self) -> None:
        """Import all that a case takes. Nothing is read here: that starts threads."""
        import pyarrow.csv
        import pyarrow.dataset  # noqa: F401

    def make(self, rng: np.random.Generator) -> bytes:
        return csv_cases.cases(random.Random(int(rng.integers(2**63))))

    def check(self, case: bytes) -> str:
        try:
            csv_cases.check(case)
        except AssertionError as error:
            raise Finding("difference", str(error) or "read otherwise") from error
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            file.write(case)
            file.flush()
            try:
                read_table(file.name)
            except ValueError:
                return "refused, as it should be"
        return "read, as others read it"

    def keep(self, case: bytes, folder: Path) -> None:
        (folder / "hostile.csv").write_bytes(case)

    def kept(self, folder: Path) -> bytes:
        return (folder / "hostile.csv").read_bytes()
