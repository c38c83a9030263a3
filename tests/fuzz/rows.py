"""Random rows: quickly or as a table, they are encoded alike; read for ONNX, decided alike.

What the reader in ``examples`` cannot read for certain it must refuse.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..model.tables import as_json, mixed
from .runner import Finding

EXAMPLES = Path(__file__).parents[2] / "examples/service"
PIECES = [
    "-",
    "+",
    "1",
    "23",
    "0",
    ".",
    ",",
    "'",
    " ",
    "e",
    "E5",
    "€",
    "EUR",
    "$",
    "%",
    "(",
]
PIECES += [")", "/", ":", "T", "Z", "2023", "-05-06", "07:08", "31", "12", "nan", "None"]
PIECES += ["?", "c0001", "c02", "shop 3", "A", "pump", " leaks ", "\t", "\u00a0", "年", "٣"]
PIECES += ["é", "\x00", "𝔸", "1e999", "<0.5", "k", "true", "24:00", "00:00:60", "+02:00"]
NUMBERS = [0, 1, -1, 2, 3.5, -0.0, 1e-310, 1e308, 2**53 + 1, 2**63, 10**30, 20230506, 1.7e9]
NUMBERS += [1.7e12, math.inf, -math.inf, math.nan]


class Rows:
    """The kind ``rows``, of a model of trees with a column of every kind."""

    name = "rows"
    per_child = 200

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def warm(self) -> None:
        import damvi

        self.model = damvi.load(self.folder / "rows.damvi")
        self.rows = as_json(mixed(100, seed=1))
        self.model.predict_row(self.rows[0])  # compiles
        self._encode(self.rows[0])
        self.read: Any = None

    def make(self, rng: np.random.Generator) -> dict[str, Any]:
        row = dict(self.rows[int(rng.integers(len(self.rows)))])
        for name in rng.permutation(list(row))[: rng.integers(1, 4)].tolist():
            row[name] = self._value(rng, row[name])
        return row

    def _value(self, rng: np.random.Generator, value: Any) -> Any:
        kind = int(rng.integers(6))
        if kind == 0:
            return [None, True, False, "", 1, "x"][int(rng.integers(6))]
        if kind == 1:
            return NUMBERS[int(rng.integers(len(NUMBERS)))]
        if kind == 2:
            return float(rng.normal() * 10.0 ** rng.integers(-5, 12))
        if kind == 3:
            some = rng.integers(0, len(PIECES), rng.integers(1, 7)).tolist()
            return "".join(PIECES[k] for k in some)
        text = str(value)
        place = int(rng.integers(len(text) + 1))
        piece = PIECES[int(rng.integers(len(PIECES)))] if kind == 4 else ""
        return text[:place] + piece + text[place + int(rng.integers(3)) :]

    def _encode(self, row: dict[str, Any]) -> Any:
        """By the way that tables take, in codes."""
        import pandas as pd

        encoded = self.model.schema.encode(pd.DataFrame([row]))
        return [
            float((column.cat.codes if hasattr(column, "cat") else column).iat[0])
            for _, column in encoded.items()
        ]

    def check(self, case: dict[str, Any]) -> str:
        from damvi.tables.row import RowEncoder

        cells = RowEncoder(self.model.schema)(case)[0]
        expected = self._encode(case)
        if not np.array_equal(cells, expected, equal_nan=True):
            odd = [f for f, x in enumerate(expected) if x != cells[f] and x == x]
            raise Finding("difference", f"features {odd}: {cells[odd]} of {case}")
        told = self.model.predict_row(case)
        if self.read is None:
            sys.path.insert(0, str(EXAMPLES))
            from onnx_reader import Reader

            self.read = Reader(str(self.folder / "rows.onnx"))
        try:
            (read,) = self.read([case])
        except ValueError:
            return "the same; refused for ONNX"
        if (
            abs(read["score"] - told["score"]) > 1e-9
            or read["decision"] != told["decision"]
        ):
            raise Finding("difference", f"{read} for ONNX, {told} otherwise: {case}")
        return "the same, for ONNX too"

    def keep(self, case: dict[str, Any], folder: Path) -> None:
        (folder / "row.json").write_text(json.dumps(case))

    def kept(self, folder: Path) -> dict[str, Any]:
        row: dict[str, Any] = json.loads((folder / "row.json").read_text())
        return row


def main() -> None:
    """Make the model and its graph in a folder; that starts threads."""
    import damvi
    from damvi.io import export_onnx

    folder = Path(sys.argv[1])
    model = damvi.fit(mixed(), "late", pool="trees", shuffle=True, random_state=0)
    model.save(folder / "rows.damvi")
    export_onnx(model, folder / "rows.onnx")


if __name__ == "__main__":
    main()
