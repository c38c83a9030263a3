"""Blocks of lines parsed by kernels are what pyarrow and the schema make of them."""

import numpy as np
import pandas as pd
import pytest

from damvi.tabular import Schema, read_blocks, read_table, reading
from damvi.tabular.cells import last_line_end
from damvi.tabular.plain import LineParser


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 200
    shops = ["north", "sou,th", "é", 'the "old" one', "two\nlines", "", '5" pipe']
    return pd.DataFrame(
        {
            "note": rng.choice(['a "b" c', "x,y", "plain", "line\nfeed", ""], n),
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


def by_arrow_alone(path, schema, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(LineParser, "_by_kernels", lambda self, lines: None)
        return whole(path, schema)


def whole(path, schema):
    return pd.concat([block() for block in read_blocks(path, schema)], ignore_index=True)


@pytest.mark.parametrize("block", [600, 1 << 23])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [0, 1, 2])
def test_the_same_as_pyarrow(frame, tmp_path, monkeypatch, block, ends, quoting):
    path = tmp_path / "t.csv"
    text = frame.to_csv(index=False, quoting=quoting, lineterminator=ends)
    path.write_bytes(text.encode())
    schema = Schema.infer(read_table(path), "y", keep=["shop"])
    assert [column.kind for column in schema.used if column.name == "shop"] == ["category"]
    monkeypatch.setattr(reading, "BLOCK", block)
    found = whole(path, schema)
    pd.testing.assert_frame_equal(found, by_arrow_alone(path, schema, monkeypatch))
    monkeypatch.setattr(reading, "BLOCK", 1 << 23)
    expected = schema.encode(read_table(path, as_text=schema.text_columns))
    pd.testing.assert_frame_equal(found, expected)
    np.testing.assert_array_equal(found["amount"], frame["amount"])


def test_plain_lines_are_read_by_kernels(frame, tmp_path, monkeypatch):
    plain = frame[["amount", "count", "gaps", "when", "y"]].assign(shop="north")
    plain.loc[::3, "shop"] = "é"
    plain.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.infer(plain, "y")
    monkeypatch.setattr(LineParser, "_by_arrow", None)
    pd.testing.assert_frame_equal(whole(tmp_path / "t.csv", schema), schema.encode(plain))


@pytest.mark.parametrize("start", ["", "\n", "\n\r\n", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\n"])
def test_empty_lines_and_the_last_line(tmp_path, start, end):
    path = tmp_path / "t.csv"
    path.write_bytes(f'{start}"x","na\nme",y\n1,,0\n\n2.5,4,1{end}'.encode())
    schema = Schema.infer(pd.DataFrame({"x": [1.0, 2], "na\nme": [1.5, 3]}), "y")
    found = whole(path, schema)
    assert found["x"].tolist() == [1, 2.5]
    np.testing.assert_array_equal(found["na\nme"], [np.nan, 4])


def test_an_odd_byte_late_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 1 << 16)
    path = tmp_path / "t.csv"
    rows = ["caf,1"] * 200_000 + ["café,2"] * 10
    path.write_bytes(("k,x\n" + "\n".join(rows)).encode("latin-1"))
    frame = pd.DataFrame({"k": ["caf", "café"] * 20, "x": np.arange(40) % 7})
    found = whole(path, Schema.infer(frame, "y"))
    assert (found["k"] == "café").sum() == 10
    assert len(found) == 200_010


def test_errors_name_the_file_and_the_row(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    schema = Schema.infer(pd.DataFrame({"x": [1.0, 2], "z": [3.5, 4]}), "y")
    path.write_text("x,z\n" + "1,2\n" * 50 + "1,2,3\n")
    monkeypatch.setattr(reading, "BLOCK", 32)
    with pytest.raises(ValueError, match=r"t.csv cannot be read as a table:.*Row #52"):
        whole(path, schema)
    path.write_text("x,z\n1,2\n1\n")
    with pytest.raises(ValueError, match=r"t.csv cannot be read as a table:.*Row #3"):
        whole(path, schema)
    monkeypatch.setattr("damvi.tabular.lines.LONGEST_LINE", 1000)
    path.write_text('x,z\n1,2\n1,"' + "2\n" * 1000)
    with pytest.raises(ValueError, match="a quote that is not closed"):
        whole(path, schema)


def test_lines_end_where_no_quote_is_open():
    def end_of(text):
        return last_line_end(np.frombuffer(text, np.uint8), len(text), np.uint8(ord(",")))

    assert end_of(b"") == 0
    assert end_of(b"no end") == 0
    assert end_of(b"a\nb\nc") == 4
    assert end_of(b'a,"\n') == 0
    assert end_of(b'1\n"a\nb",2') == 2
    assert end_of(b'1\n"a\nb",2\n3') == 10
    assert end_of(b'5" pipe\n"x\n') == 8
    assert end_of(b'"a""\n""b"\n') == 10
    assert end_of(b'"a"\n"') == 4
    assert end_of(b'\r\n"a\n') == 2
