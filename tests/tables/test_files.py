"""Packed files, JSON and Excel: read as what they hold, and refused if they are bombs."""

import bz2
import datetime
import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from damvi.tables import Schema, read_blocks, read_table, reading, textfiles

openpyxl = pytest.importorskip("openpyxl")

TEXT = "x,kind,y\n" + "".join(f"{i / 4},{'ab'[i % 2]},{i % 3 == 0}\n" for i in range(50))


def zipped(name, data):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._x", b"")
        archive.writestr(name, data)
    return packed.getvalue()


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    ".zip": lambda data: zipped("folder/table.csv", data),
}


def whole(path, schema):
    blocks = [block().X for block in read_blocks(path, schema)]
    return pd.concat(blocks, ignore_index=True)


@pytest.mark.parametrize("packed", PACKERS)
def test_a_packed_file_is_the_file(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 16)
    plain, path = tmp_path / "t.csv", tmp_path / f"t.csv{packed}"
    plain.write_text(TEXT)
    path.write_bytes(PACKERS[packed](TEXT.encode()))
    frame = read_table(plain)
    pd.testing.assert_frame_equal(read_table(path), frame)
    schema = Schema.infer(frame, "y")
    pd.testing.assert_frame_equal(whole(path, schema), schema.encode(frame))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"t\.csv"):
        read_table(path)


@pytest.mark.parametrize("packed", PACKERS)
def test_a_bomb_is_refused(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(textfiles, "LEAST_LIMIT", 1 << 16)
    path = tmp_path / f"t.csv{packed}"
    path.write_bytes(PACKERS[packed](b"x,y\n" + b"0,0\n" * (1 << 19)))
    with pytest.raises(ValueError, match="expands to more than"):
        read_table(path)
    schema = Schema.infer(pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]}), "y")
    with pytest.raises(ValueError, match="expands to more than"):
        list(read_blocks(path, schema))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("t.zip", b"PK\3\4 and no more", "as a zip archive"),
        ("t.zip", zipped("a.parquet", b"x"), "only text files may be compressed"),
        ("t.zip", zipped("a.exe", b"x"), "only text files may be compressed"),
        (
            "t.csv.gz",
            gzip.compress(b"x\n1\n", mtime=0)[:15],
            "damaged: .*; copy or download it again",
        ),
        ("t.csv.bz2", b"BZh9 and no more", "damaged"),
        ("t.csv.zst", b"(\xb5/\xfd and no more", "damaged|cannot be read"),
        ("t.csv", zipped("a.xml", b"x"), r"t.csv is an Excel workbook .* name it .xlsx"),
        ("t.tsv", b"PAR1\x15\4\x15", "is a parquet file: name it .parquet"),
        (
            "t.json",
            gzip.compress(b"[]", mtime=0),
            "compressed with gzip: add .gz to its name",
        ),
        ("t.json", b"[1, 2]", "item 1 is not a JSON object"),
        ("t.json", b"[]", "empty list"),
        ("t.json", b'[{"x": 1}', "is not JSON"),
        ("t.json", b"[" * 100_000, "cannot read|is not JSON"),
        ("t.json", b"\n \n", "is empty"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / name)


def test_text_that_starts_like_a_parquet_file(tmp_path):
    (tmp_path / "t.csv").write_text("PAR1,PK\n1,2\n", encoding="utf-8")
    assert read_table(tmp_path / "t.csv").columns.tolist() == ["PAR1", "PK"]


def test_two_files_in_an_archive_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    with pytest.raises(ValueError, match=r"holds 2 files: .a\.csv., .b\.csv."):
        read_table(tmp_path / "t.zip")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_json_as_a_list_of_objects(tmp_path, indent, packed):
    rows = [{"x": i / 2, "kind": "ab"[i % 2], "y": i % 2} for i in range(30)]
    del rows[3]["x"]
    data = json.dumps(rows, indent=indent).encode()
    path = tmp_path / f"t.json{packed}"
    path.write_bytes(gzip.compress(data) if packed else data)
    frame = read_table(path)
    assert frame["kind"].tolist() == ["a", "b"] * 15
    assert frame["x"].isna().sum() == 1
    schema = Schema.infer(frame, "y")
    pd.testing.assert_frame_equal(whole(path, schema), schema.encode(frame))
    path.write_bytes(b"\n".join(json.dumps(row).encode() for row in rows))
    if not packed:
        pd.testing.assert_frame_equal(read_table(path), frame)


# Excel


def write(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


DAY = datetime.datetime(2024, 1, 31, 12, 30)
ROWS = [
    ["amount", "n", "when", "paid", "kind", "late", "cost"],
    *[[i / 4, i, DAY, i % 2 == 0, "ab"[i % 2], None, f"{i}.234,5 €"] for i in range(1, 31)],
]


def test_excel_keeps_types_and_text_is_as_in_a_csv(tmp_path):
    ROWS[5][0] = "#N/A"
    frame = read_table(write(tmp_path / "t.xlsx", ROWS))
    assert list(frame.columns) == ROWS[0]
    assert frame["amount"].isna().sum() == 1
    assert frame["n"].dtype == np.int64
    assert frame["when"].eq(pd.Timestamp(DAY)).all()
    assert frame["paid"].dtype == bool
    assert frame["late"].isna().all()
    schema = Schema.infer(frame, "kind")
    encoded = schema.encode(frame)
    np.testing.assert_array_equal(encoded["cost"], np.arange(1, 31) * 1000 + 234.5)
    pd.testing.assert_frame_equal(whole(tmp_path / "t.xlsx", schema), encoded)


def test_excel_with_a_title_blank_rows_and_other_sheets(tmp_path):
    rows = [[], ["Payments of 2024"], [], [None, *ROWS[0]], *([None, *r] for r in ROWS[1:])]
    rows += [[], [None, None]]
    path = write(tmp_path / "t.xlsx", [], rows, [["other", "sheet"]])
    with pytest.warns(UserWarning, match="ignoring") as said:
        frame = read_table(path)
    assert list(frame.columns) == ROWS[0]
    assert len(frame) == 30
    texts = " ".join(str(one.message) for one in said)
    assert "ignoring 'Payments of 2024' above the header" in texts
    assert "reading sheet 's1', ignoring 's2'" in texts


def test_excel_with_a_merged_header(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["id", "first", None, "second", None])
    sheet.append([None, "low", "high", "low", "high"])
    for i in range(30):
        sheet.append([i, 1, 2, 3, 4])
    for cells in ("A1:A2", "B1:C1", "D1:E1"):
        sheet.merge_cells(cells)
    book.save(tmp_path / "t.xlsx")
    frame = read_table(tmp_path / "t.xlsx")
    expected = ["id", "first low", "first high", "second low", "second high"]
    assert list(frame.columns) == expected
    assert frame.iloc[0].tolist() == [0, 1, 2, 3, 4]


def test_formulas_without_results_are_named(tmp_path):
    rows = [["x", "double"], *[[i, f"=A{i + 2}*2"] for i in range(30)]]
    with pytest.warns(UserWarning, match="formulas in 'double' have no stored results"):
        frame = read_table(write(tmp_path / "t.xlsx", rows))
    assert frame["double"].isna().all()


def test_bombs_and_far_cells_in_excel(tmp_path, monkeypatch):
    book = openpyxl.Workbook()
    for place, value in (("A1", "x"), ("A2", 1), ("XFD5000", 2)):
        book.active[place] = value
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(ValueError, match="more than 50,000,000 cells"):
        read_table(tmp_path / "far.xlsx")
    monkeypatch.setattr(textfiles, "LEAST_LIMIT", 1000)
    monkeypatch.setattr(textfiles, "MOST_RATIO", 1)
    with pytest.raises(ValueError, match="expands to more than"):
        read_table(write(tmp_path / "t.xlsx", ROWS))


def test_excel_without_openpyxl_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "t.xlsx", ROWS)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'damvi\[excel\]'"):
        read_table(tmp_path / "t.xlsx")
