"""Files of every kind give the same table; what cannot be read says why."""

import gzip

import numpy as np
import pandas as pd
import pytest

from damvi.tabular import Schema, read_blocks, read_table


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
    found = read_table(path, as_text=[*schema.text_columns, "y"])
    assert list(found.columns) == list(frame.columns)
    assert found["y"].isna().tolist() == frame["y"].isna().tolist()
    assert found["y"].dropna().tolist() == frame["y"].dropna().tolist()
    expected = schema.encode(frame)
    pd.testing.assert_frame_equal(schema.encode(found), expected)
    blocks = [block() for block in read_blocks(path, schema)]
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), expected)


def test_a_block_that_is_no_number_is_read_as_text_from_there_on(tmp_path, monkeypatch):
    from damvi.tabular import reading

    monkeypatch.setattr(reading, "BLOCK", 2000)
    n = 2000
    cells = [f"{i / 7:.3f}" for i in range(n)]
    cells[1500], cells[1501] = "?", " 1,234.5 "
    text = "x,y\n" + "".join(f'"{cell}",{i % 2}\n' for i, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(text)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    assert schema.columns[0].comma == "thousands"
    whole = schema.encode(frame)["x"]
    parts = [block()["x"] for block in read_blocks(tmp_path / "t.csv", schema)]
    assert len(parts) > 3
    joined = pd.concat(parts, ignore_index=True)
    np.testing.assert_array_equal(joined, whole)
    assert np.isnan(joined[1500])
    assert joined[1501] == 1234.5
    assert joined[10] == 10 / 7 // 0.001 / 1000 or joined[10] == 1.429


def test_decimal_commas_and_odd_cells_together(tmp_path):
    rows = "".join(f"{i},5;{i % 2}\n" for i in range(100)) + "?;1\n"
    (tmp_path / "t.csv").write_text("x;y\n" + rows)
    frame = read_table(tmp_path / "t.csv")
    schema = Schema.infer(frame, "y")
    found = pd.concat([b() for b in read_blocks(tmp_path / "t.csv", schema)])
    assert found["x"].tolist()[:3] == [0.5, 1.5, 2.5]
    assert schema.encode(frame)["x"].tolist()[:3] == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [("é,y\nœuf,1\n", "cp1252"), ("é,y\nœuf,1\n", "utf-16"), ("é,y\nœuf,1\n", "utf-8-sig")],
)
def test_encodings(tmp_path, data, encoding):
    (tmp_path / "t.csv").write_bytes(data.encode(encoding))
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["é", "y"]
    assert frame["é"].tolist() == ["œuf"]


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
        ("t.csv", b"a,b\n1,2\n1,2,3\n", r"cannot be read.*Row #3"),
        ("t.csv", b"a,b\n", "a header but no rows"),
        ("t.xlsx", b"x", "not one of the kinds"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read as a table"),
        ("t.feather", b"nonsense", "cannot be read as a table"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', "is no JSON in line 2"),
        ("t.csv.gz", b"not gzip", "cannot be read|gzip"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, OSError), match=message):
        read_table(tmp_path / name)


def test_a_cut_gzip_is_refused(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises((ValueError, OSError, EOFError)):
        read_table(tmp_path / "t.csv.gz")


def test_missing_columns_are_all_named(tmp_path, frame):
    schema = Schema.infer(frame, "y")
    write(frame.drop(columns=["amount", "kind"]), tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"lacks the columns 'amount' and 'kind'"):
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
