"""Files of every kind give the same table; what cannot be read says why."""

import csv
import gzip
import io
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import damvi
from damvi.tables import Schema, read_blocks, read_table, reading, textfiles
from damvi.tables.schema import Column
from damvi.tables.textfiles import DelimitedFile
from damvi.tables.values import numbers_in


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "amount": rng.normal(size=n).round(4),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
            "kind": rng.choice(["red", "NA", "a,b", 'say "x"'], n),
            "when": pd.date_range("2024-01-01", periods=n, freq="7h").astype(str),
            "code": rng.choice(["01", "02", "10"], n),
            "y": rng.choice(["None", "NA", ""], n, p=[0.2, 0.7, 0.1]),
        }
    )
    table["y"] = table["y"].replace("", None)
    return table


def write(frame, path):
    name = path.name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".feather"):
        frame.to_feather(path)
    elif "json" in name:
        frame.to_json(path, orient="records", lines=True)
    elif "semi" in name:
        frame.to_csv(path, index=False, sep=";", decimal=",")
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return path


KINDS = ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "semi.csv", "t.parquet", "t.feather"]
KINDS += ["t.jsonl", "t.jsonl.gz", "t.ndjson"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_is_the_same_table(frame, tmp_path, name):
    path = write(frame, tmp_path / name)
    schema = Schema.infer(frame, "y")
    found = read_table(path, schema, as_text=["y"])
    assert list(found.columns) == list(frame.columns)
    assert found["y"].isna().tolist() == frame["y"].isna().tolist()
    assert found["y"].dropna().tolist() == frame["y"].dropna().tolist()
    expected = schema.encode(frame)
    pd.testing.assert_frame_equal(schema.encode(found), expected)
    pd.testing.assert_frame_equal(whole(path, schema), expected)


def whole(path, schema):
    return pd.concat([block().X for block in read_blocks(path, schema)], ignore_index=True)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(textfiles, "BLOCK", 600)
    monkeypatch.setattr(reading, "ROWS", 32)


def test_cells_of_one_block_that_are_no_plain_numbers(tmp_path, small_blocks):
    n = 2000
    cells = [f"{i / 7:.3f}" for i in range(n)]
    cells[1500], cells[1501] = "?", " 1,234.5 "
    text = "x,y\n" + "".join(f'"{cell}",{i % 2}\n' for i, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(text)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].group == ","
    found = whole(tmp_path / "t.csv", schema)["x"]
    np.testing.assert_array_equal(found, schema.encode(frame)["x"])
    np.testing.assert_array_equal(found, read_table(tmp_path / "t.csv", schema)["x"])
    assert np.isnan(found[1500])
    assert found[1501] == 1234.5
    assert found[10] == 1.429


def test_decimal_commas_and_odd_cells_together(tmp_path):
    rows = "".join(f"{i},5;{i % 2}\n" for i in range(100)) + "?;1\n"
    (tmp_path / "t.csv").write_text("x;y\n" + rows)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    assert whole(tmp_path / "t.csv", schema)["x"].tolist()[:3] == [0.5, 1.5, 2.5]
    assert schema.encode(frame)["x"].tolist()[:3] == [0.5, 1.5, 2.5]
    with_points = Schema.infer(pd.DataFrame({"x": [0.5, 1.5], "y": [0, 1]}), "y")
    assert whole(tmp_path / "t.csv", with_points)["x"].tolist()[:2] == [0.5, 1.5]
    assert read_table(tmp_path / "t.csv", with_points)["x"].tolist()[:2] == [0.5, 1.5]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [("é,y\nœuf,1\n", name) for name in ("cp1252", "utf-16", "utf-8-sig")],
)
def test_encodings(tmp_path, data, encoding):
    (tmp_path / "t.csv").write_bytes(data.encode(encoding))
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["é", "y"]
    assert frame["é"].tolist() == ["œuf"]


def test_records_in_records_are_columns(tmp_path):
    row = {"id": 1, "amount": {"value": "5.00", "in": {"code": "EUR"}}, "tags": [], "e": {}}
    (tmp_path / "t.json").write_text(json.dumps([row, row | {"amount": None}]))
    frame = read_table(tmp_path / "t.json")
    assert frame["amount.value"].tolist()[0] == "5.00"
    assert frame["amount.in.code"].tolist()[0] == "EUR"
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    assert "amount.in.code" in read_table(tmp_path / "t.jsonl")


def test_japanese_of_windows(tmp_path):
    text = "日時,状態,温度\n2023年4月5日,あり,８５．３\n2023年4月6日,なし,71\n" * 3
    (tmp_path / "t.csv").write_bytes(text.encode("cp932"))
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["日時", "状態", "温度"]
    assert frame["状態"].tolist()[:2] == ["あり", "なし"]


def test_what_stays_text_and_what_does_not(tmp_path):
    text = "i,f,b,t,z,none\n1, 2.5 ,True,x,007,\n2,3e2,false,NA,012,\n"
    (tmp_path / "t.csv").write_text(text)
    frame = read_table(tmp_path / "t.csv")
    assert frame["i"].tolist() == [1, 2]
    assert frame["f"].tolist() == [2.5, 300.0]
    assert frame["b"].tolist() == [True, False]
    assert frame["t"].tolist() == ["x", "NA"]
    assert frame["z"].tolist() == ["007", "012"]
    assert frame["none"].isna().all()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,a,b\n1,2,3\n", "more than one column named 'a'"),
        (
            "t.csv",
            b"a,b\n1,2\n1,2,3\n",
            "t.csv, line 3 has 3 cells.*has 2: '1,2,3'",
        ),
        ("t.csv", b"a,b\n", "a header but no rows"),
        ("t.xls", b"x", "unsupported file type: .*; save it as .xlsx"),
        ("t.xlsx", b"x", "is not an Excel workbook"),
        ("t.parquet", b"PAR1 nonsense", "as a table"),
        ("t.feather", b"nonsense", "as a table"),
        (
            "t.jsonl",
            b'{"a": 1}\n{"a": \n',
            r"line 2 is not JSON: .* \(column 6\)",
        ),
        ("t.csv.gz", b"not gzip", "cannot be read|gzip"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, OSError), match=message):
        read_table(tmp_path / name)


def test_a_feather_file_that_points_outside_itself_is_refused(tmp_path):
    places = pa.py_buffer(np.array([0, -5, 3], np.int32).tobytes())
    cells = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"abc")])
    path = tmp_path / "t.feather"
    with pa.ipc.new_file(str(path), pa.schema([("a", pa.string())])) as file:
        file.write_batch(pa.record_batch([cells], ["a"]))
    schema = Schema.infer(pd.DataFrame({"a": ["x", "y"] * 9}), "y", keep=["a"])
    for read in (read_table, partial(whole, schema=schema)):
        with pytest.raises(ValueError, match=r"t\.feather"):
            read(path)


def test_parquet_with_text_that_is_no_text_is_refused(tmp_path):
    cells = pa.array([b"\xff\xfe", b"b"]).cast(pa.string(), safe=False)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": cells}), path)
    schema = Schema.infer(pd.DataFrame({"a": ["x", "y"] * 9}), "y", keep=["a"])
    for read in (read_table, partial(whole, schema=schema)):
        with pytest.raises(ValueError, match=r"t\.parquet"):
            read(path)


def test_a_cut_gzip_is_refused(tmp_path):
    rows = np.random.default_rng(0).normal(size=100_000).astype(str)
    packed = gzip.compress("\n".join(["a", *rows]).encode(), 1)
    (tmp_path / "t.csv.gz").write_bytes(packed[: -len(packed) // 8])
    schema = Schema.infer(pd.DataFrame({"a": [1.5, 2]}), "y")
    for read in (read_table, partial(whole, schema=schema)):
        with pytest.raises((ValueError, OSError, EOFError)):
            read(tmp_path / "t.csv.gz")


def test_missing_columns_are_all_named(tmp_path, frame):
    schema = Schema.infer(frame, "y")
    write(frame.drop(columns=["amount", "kind"]), tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"columns are missing: 'amount' and 'kind'"):
        next(read_blocks(tmp_path / "t.csv", schema))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a;b, c;d\n1;2;3\n4;5;6\n", ["a", "b, c", "d"]),  # a name with a comma
        ("a;b;c,d\n1,2\n3,4\n", ["a;b;c", "d"]),  # a name with semicolons
        ('a\n"x, y"\n', ["a"]),
        ("a,b\r1,2\r", ["a", "b"]),  # lines as old Macs end them
        ("a;b\n1,5;x\n", ["a", "b"]),
        ("a|b\n" + "1|" + "x" * 200_000 + "\n", ["a", "b"]),  # more than csv reads
    ],
)
def test_the_separator_is_what_parts_header_and_rows_alike(tmp_path, text, names):
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert list(read_table(tmp_path / "t.csv").columns) == names


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]
)
def test_blocks_are_the_whole_table(tmp_path, small_blocks, ends, quoting):
    rng = np.random.default_rng(0)
    n = 200
    shops = ["north", "sou,th", "é", 'the "old" one', f"two{ends}lines", "", '5" pipe']
    frame = pd.DataFrame(
        {
            "note": rng.choice(['a "b" c', "x,y", "plain", f"line{ends}feed", ""], n),
            "amount": rng.normal(size=n),
            "shop": rng.choice(shops, n),
            "when": pd.Series(rng.integers(0, 10**9, n).astype("datetime64[s]")).astype(
                str
            ),
            "count": rng.integers(-5, 10**6, n),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n) * 1e-8),
            "y": rng.integers(0, 2, n),
        }
    )
    path = tmp_path / "t.csv"
    path.write_bytes(
        frame.to_csv(index=False, quoting=quoting, lineterminator=ends).encode()
    )
    table = read_table(path)
    schema = Schema.infer(table, "y", keep=["shop"])
    assert "shop" in [column.name for column in schema.used if column.kind == "category"]
    found = whole(path, schema)
    pd.testing.assert_frame_equal(found, schema.encode(read_table(path, schema)))
    np.testing.assert_array_equal(found["amount"], frame["amount"])
    np.testing.assert_array_equal(found["gaps"], frame["gaps"])
    assert table["shop"].fillna("").tolist() == frame["shop"].tolist()


@pytest.mark.parametrize("start", ["", "\n", "\n\r\n", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\n", "\r"])
@pytest.mark.parametrize("name", ["na\nme", "na\rme", "na\r\nme"])
def test_empty_lines_the_last_line_and_line_ends_in_names(tmp_path, start, end, name):
    path = tmp_path / "t.csv"
    path.write_bytes(f'{start}"x","{name}",y\n1,,0\n\n2.5,4,1{end}'.encode())
    frame = read_table(path)
    assert list(frame.columns) == ["x", name, "y"]
    assert len(frame) == 2
    schema = Schema.infer(pd.DataFrame({"x": [1.0, 2], name: [1.5, 3]}), "y")
    found = whole(path, schema)
    assert found["x"].tolist() == [1, 2.5]
    np.testing.assert_array_equal(found[name], [np.nan, 4])


BOTH = [read_table, partial(whole, schema=Schema.infer(pd.DataFrame({"x": [1.5, 2]}), "y"))]


@pytest.mark.parametrize("read", BOTH)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x,z\n1,2\n1,"2\n3,4\n', "t.csv, line 3: the quote opened here is never"),
        ('x,z\n1,2\n"', "t.csv, line 3: the quote opened"),
        ('x,z\r1,"2\r3"\r"4\r', "t.csv, line 4: the quote opened"),
        ('x,"z\n1,2\n', "t.csv, line 1: the quote opened"),
        ('x,z\n1,"2\n\n3"\n\n1,2,3\n', "t.csv, line 6 has 3 cells"),
        ("x,z\n" + "1,2\n" * 500 + "1\n", "t.csv, line 502 has 1 cell, .* has 2: '1'$"),
        (
            "x,z\n" + "1,2\n" * 500 + "1",
            "line 502 has 1 cell, .*: '1'; was the file cut off",
        ),
        ("x,z\n1,2\n1,2,3", "t.csv, line 3 has 3 cells, but the header has 2: '1,2,3'$"),
        ("x,z\n" + "\x03,\x03,\x03\n", "t.csv, line 2 has 3 cells"),
        ('x,z\n1,2\n1,"' + "2\n" * 9000, r"t.csv.*line 2; is a quote not closed"),
        ('x,z\n\x03,\x03,\x03\n1,"2', "t.csv, line 2 has 3 cells"),
        # A quote that the next one closes: rows would be joined without a word.
        ('x,z\n1,"2\n3,"4"\n5,6\n', "line 2: the quote opened here .* in line 3"),
        ('x,z\n1,"2"\n3,"4\n5,6\n"7",8\n', "line 3: the quote opened here .* line 5"),
        (
            'x,z\n1,"2\n' + "3,4\n" * 8 + '5,6"\n7,8\n',
            "line 2: the quote .* closed in line 11",
        ),
        ('x,"z\n1,"2"\n', "line 1: the quote opened here is only closed in line 2"),
        ("x,z\n1,2\n\n3,\0\n", "t.csv, line 4: contains a NUL"),
        ("x,z\n1,2\n" * 300 + "3,\0\n", "t.csv, line 601: contains a NUL"),
        ("x,\0\n1,2\n", "t.csv, line 1: contains a NUL"),
        ("x\n1\n\n3\n", "t.csv, line 3 is empty, which is ambiguous"),
        ("x\n\n1\n", "t.csv, line 2 is empty"),
        ("x,z\n1,2,\n", "t.csv, line 2 has 3 cells"),  # pandas makes an index of 1
        ("x,z\n  \n1,2\n", "t.csv, line 2 has 1 cell"),
        ("\n\r\n\n", "t.csv is empty"),
    ],
)
def test_rows_that_cannot_be_told_apart(
    tmp_path, small_blocks, monkeypatch, read, text, message
):
    monkeypatch.setattr(textfiles, "LONGEST_ROW", 4000)
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_cells_of_several_lines_are_read_where_nothing_speaks_against_it(tmp_path, end):
    """Any line break is legal in quotes; all of them come back, and no row is lost."""
    cells = [
        "a\nb",
        "Dear all,\n\nno, thanks\n",
        'so "it" is',
        "\r\n",
        "\r",
        "c",
        "\n" * 50,
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        [["x", "z"], *([str(i), cell] for i, cell in enumerate(cells * 9))]
    )
    (tmp_path / "t.csv").write_bytes(text.getvalue().encode())
    frame = read_table(tmp_path / "t.csv")
    assert frame["x"].tolist() == list(range(len(cells) * 9))
    assert frame["z"].tolist() == cells * 9


@pytest.mark.parametrize("block", range(100, 117))
def test_a_block_may_end_anywhere(tmp_path, monkeypatch, block):
    """Even between the CR and the LF of a quoted line break, where pyarrow drops the LF."""
    monkeypatch.setattr(textfiles, "BLOCK", block)
    rows = [[f"{i},{'é' * (i % 5)}", 'a "b"\r\nc\rd', "x" * (i % 7)] for i in range(200)]
    text = io.StringIO()
    csv.writer(text).writerows([["x", "y", "z"], *rows])
    (tmp_path / "t.csv").write_bytes(text.getvalue().encode())
    assert read_table(tmp_path / "t.csv").fillna("").to_numpy().tolist() == rows


def test_rows_that_end_in_several_ways(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'x,z\r\n1,a\n2,"b\rc"\r3,\r\n\r4,d')
    frame = read_table(tmp_path / "t.csv")
    assert frame["x"].tolist() == [1, 2, 3, 4]
    assert frame["z"].fillna("").tolist() == ["a", "b\rc", "", "d"]


def test_a_byte_order_mark_in_a_cell_stays(tmp_path):
    (tmp_path / "t.csv").write_text("\ufeffx,z\n\ufeff,\ufeff1\n", encoding="utf-8")
    assert read_table(tmp_path / "t.csv").to_numpy().tolist() == [["\ufeff", "\ufeff1"]]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_wide_characters_without_a_mark_are_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("x,z\n1,2\n".encode(encoding))
    with pytest.raises(
        ValueError, match="line 1: contains a NUL byte; is this a text file"
    ):
        read_table(tmp_path / "t.csv")


def test_an_odd_byte_leaves_the_other_letters_alone(tmp_path):
    """The same category is the same text in a file with an odd byte and in one without."""
    (tmp_path / "t.csv").write_bytes("k,x\né,1\nü,2\n".encode() + b"\xe9,3\n")
    assert read_table(tmp_path / "t.csv")["k"].tolist() == ["é", "ü", "é"]


def test_what_looks_like_a_number_is_the_same_at_fit_and_later(tmp_path):
    """0x1F was 31 at fit and missing at prediction."""
    rows = "".join(f"{'0x1F' if i % 2 else '12'},{i % 3 == 0},{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("x,b,y\n" + rows)
    frame = read_table(tmp_path / "t.csv")
    assert frame["x"].tolist() == ["12", "0x1F"] * 30
    schema = Schema.infer(frame, "y", keep=["x"])
    pd.testing.assert_frame_equal(whole(tmp_path / "t.csv", schema), schema.encode(frame))


@pytest.mark.parametrize("sign", [*"\x1c\x1d\x1e\x1f"])
def test_a_control_sign_is_no_blank_around_a_number(tmp_path, sign):
    """Python's float takes neither, though its strip takes it for a blank."""
    path = tmp_path / "table.csv"
    path.write_text(f"x,z\n{sign}7,1\n8,2\n")
    assert read_table(path)["x"].tolist() == [f"{sign}7", "8"]
    schema = Schema((Column("x", "number"),))
    [block] = read_blocks(path, schema)
    frame = pd.DataFrame({"x": [f"{sign}7", "8"]})
    for table in (block().X, schema.encode(read_table(path, schema)), schema.encode(frame)):
        np.testing.assert_array_equal(table["x"], [np.nan, 8])
    values, odd = numbers_in(
        pd.Series([f"7{sign}", f"${sign}7", f"{sign}?", "\xa07\u2003"])
    )
    np.testing.assert_array_equal(values, [np.nan, np.nan, np.nan, 7])
    assert odd.tolist() == [True, True, True, False]


def test_one_among_trues_is_no_boolean(tmp_path):
    (tmp_path / "t.csv").write_text("b,c\n" + "true,False\n" * 1500 + "1,\n")
    frame = read_table(tmp_path / "t.csv")
    assert frame["b"].tolist()[-2:] == ["true", "1"]
    assert frame["c"].tolist()[-2:] == [False, None]


def test_decimal_commas_that_come_late(tmp_path):
    """A model of numbers reads them as it would have, had they come first."""
    schema = Schema.infer(pd.DataFrame({"x": [0.5, 1.5], "y": [0, 1]}), "y")
    (tmp_path / "t.csv").write_text("x;y\n" + "1;0\n" * 1000 + "2,5;0\n")
    assert whole(tmp_path / "t.csv", schema)["x"].tolist()[-2:] == [1, 2.5]


def test_thousands_in_a_file_of_decimal_commas(tmp_path):
    rows = "".join(f"{i},5;1,{i % 10}00\n" for i in range(100)) + "1,5;1,234.5\n"
    (tmp_path / "t.csv").write_text("x;z\n" + rows)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    found = whole(tmp_path / "t.csv", schema)
    pd.testing.assert_frame_equal(found, schema.encode(frame))
    assert found["z"].tolist()[-1] == 1234.5


def test_members_of_a_gzip_file_are_one_table(tmp_path):
    parts = [b"x,z\n1,", b'"a\n', b'b"\n2,c\n']
    (tmp_path / "t.csv.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    frame = read_table(tmp_path / "t.csv.gz")
    assert frame.to_numpy().tolist() == [[1, "a\nb"], [2, "c"]]
    with (tmp_path / "t.csv.gz").open("ab") as file:
        file.write(b"more")
    with pytest.raises((ValueError, OSError), match=r"cannot be read|gzip"):
        read_table(tmp_path / "t.csv.gz")


def test_names_that_are_empty_and_cells_beyond_the_last_name(tmp_path):
    (tmp_path / "t.csv").write_text("x,,\n1,2,\n")
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["x", "Unnamed: 1", "Unnamed: 2"]
    assert frame["Unnamed: 2"].isna().all()


def test_a_row_longer_than_a_block(tmp_path, small_blocks):
    rows = [[i, "x" * (5000 if i == 777 else 5)] for i in range(1000)]
    text = io.StringIO()
    csv.writer(text).writerows([["x", "z"], *rows])
    (tmp_path / "t.csv").write_text(text.getvalue())
    for read in BOTH:
        assert read(tmp_path / "t.csv")["x"].tolist() == list(range(1000))


def test_an_odd_byte_late_in_the_file(tmp_path):
    path = tmp_path / "t.csv"
    rows = [b"caf,1"] * 200_000 + ["café,2".encode("cp1252")] * 10 + [b"\x81,3"]
    path.write_bytes(b"k,x\n" + b"\n".join([*rows, "naïve,4".encode()]))
    frame = read_table(path)
    assert frame["k"].tolist()[199_999:] == ["caf", *["café"] * 10, "\x81", "naïve"]
    assert frame["x"].tolist()[199_999:] == [1, *[2] * 10, 3, 4]


CELLS = st.text('a1,;"\r\n é\x03', max_size=4)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=20),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([128, 1 << 20]),
)
def test_every_cell_that_can_be_quoted_comes_back(tmp_path_factory, rows, ends, block):
    text = io.StringIO()
    csv.writer(text, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows(
        [["x", "y"], ["1", "2"], *rows]
    )
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(textfiles, "BLOCK", block)
        frame = read_table(path, as_text=["x", "y"]).fillna("")
    assert frame.to_numpy().tolist() == [["1", "2"], *rows]


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text("0123456789.,-+eE xXnaif$%_()\t", max_size=9),
)


@given(
    st.lists(NUMBERS, min_size=1, max_size=60),
    st.sampled_from(",;"),
    st.booleans(),
    st.sampled_from([64, 1 << 20]),
)
def test_numbers_parsed_with_the_file_are_those_of_its_text(
    tmp_path_factory, cells, separator, are_quoted, block
):
    """pyarrow parses plain numbers while it reads, which must change no bit."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if are_quoted else csv.QUOTE_MINIMAL
    rows = [[cell, cell] for cell in cells]
    csv.writer(text, delimiter=separator, quoting=quoting).writerows([["x", "id"], *rows])
    path = tmp_path_factory.mktemp("numbers") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    schema = Schema((Column("x", "number"),))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(textfiles, "BLOCK", block)
        blocks = [block() for block in read_blocks(path, schema, carried=["id"])]
        expected = schema.encode(read_table(path, schema))["x"]
    found = pd.concat([block.X["x"] for block in blocks])
    np.testing.assert_array_equal(found, expected)
    carried = [cell for block in blocks for cell in block.raw["id"].to_pylist()]
    assert [cell or "" for cell in carried] == cells


def test_a_cell_late_in_the_file_that_is_no_plain_number(tmp_path, small_blocks):
    """Rows before it are not repeated, none is lost, and its column is read as text."""
    cells = [str(i) for i in range(3000)]
    cells[2900] = "$7"
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{x},{x}\n" for x in cells))
    schema = Schema((Column("x", "number"), Column("y", "number")))
    expected = [*range(2900), 7, *range(2901, 3000)]
    assert whole(tmp_path / "t.csv", schema).to_numpy().T.tolist() == [expected] * 2


def test_tables_of_users_have_one_reader():
    """pandas reads what is not theirs: public datasets, and the scores of `damvi bench`."""
    source = Path(damvi.__file__).parent
    readers = [path.name for path in source.rglob("*.py") if "read_csv" in path.read_text()]
    assert sorted(readers) == ["bench.py", "datasets.py"]


@pytest.mark.parametrize("end", ["\n\n\n", "\r\n\r\n", "\r\r", "\n\r\n\r", ""])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_empty_lines_at_the_end_cost_no_second_reading(tmp_path, monkeypatch, end, block):
    monkeypatch.setattr(textfiles, "BLOCK", block)
    monkeypatch.setattr(DelimitedFile, "_count_rows", lambda self: 1 / 0)
    (tmp_path / "t.csv").write_bytes(("x,z\n" + "1,2\n" * 99 + "3,4" + end).encode())
    assert len(read_table(tmp_path / "t.csv")) == 100
