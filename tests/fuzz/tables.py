"""Random CSV files, read by damvi and by others; the cases are in ``csv_cases``.

Files of other kinds are made of such cells, packed, and damaged: they are read whole and in
blocks alike, or refused with an error that names the file.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import tempfile
import warnings
import zipfile
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from damvi.tables import Schema, read_blocks, read_table

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


TEXTS = (".csv", ".tsv", ".json", ".jsonl")
WAYS = (".gz", ".bz2", ".zst", ".zip")
ENDINGS = (
    *(text + way for text in TEXTS for way in WAYS),
    ".tsv",
    *(".json", ".jsonl", ".xlsx", ".parquet", ".feather") * 2,
)


class Files:
    """The kind ``files``: text (packed or not), Excel and Arrow's, sound or damaged."""

    name = "files"
    per_child = 50

    def warm(self) -> None:
        import openpyxl
        import pyarrow.csv
        import pyarrow.dataset  # noqa: F401

        assert openpyxl

    def make(self, rng: np.random.Generator) -> tuple[str, bytes]:
        chance = random.Random(int(rng.integers(2**63)))
        ending = chance.choice(ENDINGS)
        data = _packed(chance, ending)
        for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
            data = _damaged(chance, data)
        return ending, data

    def check(self, case: tuple[str, bytes]) -> str:
        ending, data = case
        with tempfile.NamedTemporaryFile(suffix=ending) as file:
            file.write(data)
            file.flush()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of sheets and formulas
                    return _check_file(Path(file.name))
            except ValueError as error:
                if Path(file.name).name not in str(error):
                    raise Finding("unclear", str(error)) from error
                return f"{ending}: refused"

    def keep(self, case: tuple[str, bytes], folder: Path) -> None:
        (folder / f"hostile{case[0]}").write_bytes(case[1])

    def kept(self, folder: Path) -> tuple[str, bytes]:
        [path] = folder.glob("hostile*")
        return path.name.removeprefix("hostile"), path.read_bytes()


def _check_file(path: Path) -> str:
    frame = read_table(path)
    target = str(frame.columns[0])
    schema = Schema.infer(frame, target, keep=list(frame.columns)[1:])
    if schema.used:
        blocks = [block().X for block in read_blocks(path, schema)]
        if sum(map(len, blocks)) != len(frame):
            raise Finding("difference", "rows in are not rows out")
        if not _texts(pd.concat(blocks)).equals(_texts(schema.encode(frame))):
            raise Finding("difference", "blocks are read otherwise than the whole")
    return f"{path.name[path.name.index('.') :]}: read"


def _texts(X: pd.DataFrame) -> pd.DataFrame:
    """Cells to compare; -0.0 is 0.0, as a whole number that is read first has it."""
    numbers = X.select_dtypes("float")
    return (
        X.assign(**{name: numbers[name] + 0.0 for name in numbers})
        .astype(str)
        .reset_index(drop=True)
    )


def _rows(rng: random.Random) -> list[dict[str, object]]:
    cells = [*csv_cases.NUMBERS, *csv_cases.WORDS, *csv_cases.ODD, None, 1, 2.5, True, -999]
    names = [f"c{i}" for i in range(rng.choice([1, 2, 3, 6]))]
    some = {name: rng.sample(cells, rng.choice([1, 2, 5, 20])) for name in names}
    return [
        {name: rng.choice(some[name]) for name in names}
        for _ in range(rng.choice([1, 5, 60]))
    ]


def _packed(rng: random.Random, ending: str) -> bytes:
    kind, *way = ending.strip(".").split(".")
    if kind == "xlsx":
        return _workbook(rng, _rows(rng))
    if kind in ("parquet", "feather"):
        return _arrow(rng, kind)
    if kind == "json":
        text = json.dumps(_rows(rng), indent=rng.choice([None, 1])).encode()
    elif kind == "jsonl":
        text = b"\n".join(json.dumps(row).encode() for row in _rows(rng))
    else:
        text = csv_cases.cases(rng)
        text = text.replace(b",", b"\t") if kind == "tsv" else text
    if not way:
        return text
    if way == ["gz"]:
        return gzip.compress(text)
    if way == ["bz2"]:
        return bz2.compress(text)
    if way == ["zst"]:
        return bytes(pa.compress(text, codec="zstd", asbytes=True))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"table.{kind}", text)
    return made.getvalue()


def _arrow(rng: random.Random, kind: str) -> bytes:
    """Columns of one type each, as these formats have them."""
    types = {
        "number": lambda: rng.choice([None, 0.0, -1.5, float("nan"), 1e300]),
        "count": lambda: rng.choice([None, 0, 7, -999, 2**62]),
        "text": lambda: rng.choice([None, *csv_cases.WORDS, *csv_cases.ODD]),
        "flag": lambda: rng.choice([None, True, False]),
        "day": lambda: rng.choice([None, date(2024, 2, 29), date(1970, 1, 1)]),
    }
    n = rng.choice([1, 5, 60])
    names = rng.choices(list(types), k=rng.choice([1, 2, 6]))
    columns = [pa.array([types[name]() for _ in range(n)]) for name in names]
    table = pa.table(columns, [f"{name}{i}" for i, name in enumerate(names)])
    made = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, made, compression=rng.choice(["none", "snappy", "zstd"]))
    else:
        feather.write_feather(table, made, compression=rng.choice(["lz4", "uncompressed"]))
    return made.getvalue()


def _workbook(rng: random.Random, rows: list[dict[str, object]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    lines = [*[[]] * rng.choice([0, 0, 2]), *lines]
    for number, line in enumerate(lines, 1):
        for place, cell in enumerate(line, 1):
            if isinstance(cell, str):
                cell = "".join(sign for sign in cell if sign.isprintable())
            book.active.cell(number, place, cell)
    made = io.BytesIO()
    book.save(made)
    if rng.random() < 0.5:
        return made.getvalue()
    # Damage within, where the archive itself is sound.
    inner, again = zipfile.ZipFile(made), io.BytesIO()
    chosen = rng.choice(inner.namelist())
    with zipfile.ZipFile(again, "w") as archive:
        for name in inner.namelist():
            data = inner.read(name)
            archive.writestr(name, _damaged(rng, data) if name == chosen else data)
    return again.getvalue()


def _damaged(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data) + 1)
    return rng.choice(
        [
            data[:place],
            data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :],
            data[:place] + rng.randbytes(3) + data[place:],
            data[:place] + data[place + rng.choice([1, 9, 99]) :],
        ]
    )
