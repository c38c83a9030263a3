"""Any table loads, says what was done to it, and is told what is wrong with it."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from damvi.datasets import load
from damvi.datasets.files import need
from damvi.tables import Schema


@pytest.fixture
def table(tmp_path):
    """A function that writes a CSV file and returns its path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def column(**columns):
    """A CSV text of ten rows: the target y, two of them positive, and more columns."""
    frame = pd.DataFrame({"y": [1, 1] + [0] * 8, "x": np.arange(10) / 4} | columns)
    return frame.to_csv(index=False)


ENDINGS = [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".CSV"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_file(tmp_path, ending):
    frame = pd.DataFrame(
        {"x": np.arange(10) / 4, "n": np.arange(10), "y": [1, 1] + [0] * 8}
    )
    path = tmp_path / f"my.table{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    else:
        text = frame.to_csv(index=False, sep="\t" if "tsv" in ending else ",").encode()
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    before = path.read_bytes()
    data = load(str(path), target="y")
    np.testing.assert_array_equal(data.data, frame[["x", "n"]])
    np.testing.assert_array_equal(data.target, frame.y)
    assert (data.name, data.notes) == (f"my.table{ending}", [])
    assert path.read_bytes() == before


def test_semicolons_and_decimal_commas(table):
    data = load(table("x;z;y\n1,5;2;a\n2,5;3;b\n3,5;5;b\n"), target="y")
    np.testing.assert_array_equal(data.data, [[1.5, 2], [2.5, 3], [3.5, 5]])


def test_without_a_target_the_column_of_that_name_is_it(table):
    assert load(table("a,target\n1,0\n2,0\n3,1\n")).target.tolist() == [0, 0, 1]
    with pytest.raises(
        ValueError, match=r"say which column .*target=\.\.\.; it has 'a', 'b'"
    ):
        load(table("a,b\n1,0\n"))


def test_a_target_that_is_not_there_lists_the_near_matches(table):
    path = table("amount,is_fraud,fraud_type\n1,0,a\n2,1,b\n")
    with pytest.raises(ValueError, match="no target column 'IsFraud'") as caught:
        load(path, target="IsFraud")
    assert "Did you mean 'is_fraud'" in str(caught.value)
    assert "The columns are 'amount', 'is_fraud' and 'fraud_type'" in str(caught.value)
    with pytest.raises(ValueError, match=r"'zzz'\. The columns are"):
        load(path, target="zzz")


def test_a_table_of_many_columns_lists_the_first(table):
    path = table(",".join(f"c{j}" for j in range(50)) + "\n" + ",".join("1" * 50) + "\n")
    with pytest.raises(ValueError, match=r"'c19' and 30 more$"):
        load(path, target="y")


def test_a_target_of_three_values_needs_to_know_which(table):
    path = table("x,y\n" + "".join(f"{j},{'aaabbc'[j % 6]}\n" for j in range(60)))
    with pytest.raises(
        ValueError, match="has 3 values, not two: 'a', 'b' and 'c'"
    ) as caught:
        load(path, target="y")
    assert "positive='c'" in str(caught.value)
    data = load(path, target="y", positive="b")
    assert data.target.sum() == 20
    assert data.notes == ["Target 'y': 'b' is positive (as asked), against 'a' and 'c'."]


def test_a_continuous_target_is_told_of_its_many_values(table):
    text = "x,y\n" + "".join(f"{j},{j / 7}\n" for j in range(60))
    with pytest.raises(ValueError, match=r"has 60 values, not two: .* and 40 more\. Name"):
        load(table(text), target="y")


@pytest.mark.parametrize("positive", [3, "3", 3.0, "3.0"])
def test_the_positive_value_may_come_as_text(table, positive):
    path = table("x,y\n1,3\n2,4\n3,5\n4,4\n")
    assert load(path, target="y", positive=positive).target.tolist() == [1, 0, 0, 0]
    with pytest.raises(
        ValueError, match="positive=9 is not a value of the target 'y', which"
    ):
        load(path, target="y", positive=9)


@pytest.mark.parametrize(
    ("labels", "found", "note"),
    [
        ("0011000", "0011000", None),
        ("1100111", "0011000", "0 is positive (the rarer), against 1"),
        ("nnyynnn", "0011000", "'y' is positive (the rarer), against 'n'"),
        ("5577555", "0011000", "7 is positive (the rarer), against 5"),
        ("ab", "01", "'b' is positive (both are equally frequent), against 'a'"),
        ("10", "10", None),
    ],
)
def test_the_minority_is_positive_and_a_note_says_which(table, labels, found, note):
    path = table("x,y\n" + "".join(f"{j},{label}\n" for j, label in enumerate(labels)))
    data = load(path, target="y")
    assert data.target.tolist() == [int(label) for label in found]
    assert data.notes == ([f"Target 'y': {note}."] if note else [])


@pytest.mark.parametrize("dtype", ["bool", "category", "float64", "Int8", "boolean"])
def test_targets_of_many_types(tmp_path, dtype):
    y = pd.Series([1, 1] + [0] * 8).astype(dtype)
    pd.DataFrame({"x": np.arange(10.0), "y": y}).to_parquet(tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet", target="y")
    assert data.target.tolist() == [1, 1] + [0] * 8


def test_rows_without_a_target_are_dropped_and_said_so(table):
    data = load(table("x,y,g\n1,a,p\n2,,q\n3,b,r\n4,b,s\n"), target="y", groups="g")
    np.testing.assert_array_equal(data.data.ravel(), [1, 3, 4])
    assert data.groups.tolist() == ["p", "r", "s"]
    assert data.notes[0] == "Dropped 1 rows whose 'y' is missing."


def test_text_of_few_values_becomes_columns_and_other_text_goes(table):
    text = column(
        colour=[*"rrggbbrgb", None],
        id=[f"row {j}" for j in range(10)],
        when=[f"2024-01-{j + 1:02}" for j in range(10)],
        time=[f"{j}:30" for j in range(10)],
        same=["k"] * 10,
        flat=7,
        empty=[None] * 10,
        flag=[True, False] * 5,
        holes=["1.5", "?", "2", "3", "4", "5", "6", "7", "8", "9"],
        some=["True", "False", None, "True", "False"] * 2,
        endless=[1.0, np.inf] * 5,
    )
    # Ten rows are too few for text of many values: twice more, with other ids.
    header, *rows = text.splitlines()
    rows += [r.replace("row", word) for word in ("line", "part") for r in rows]
    data = load(table("\n".join([header, *rows])), target="y")
    assert data.feature_names == [
        "x",
        "colour=b",
        "colour=g",
        "colour=r",
        "flag",
        "holes",
        "some",
        "endless",
    ]
    values = dict(zip(data.feature_names, data.data.T[:, :10], strict=True))
    assert values["colour=r"].tolist() == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
    assert values["flag"].tolist() == [1, 0] * 5
    np.testing.assert_array_equal(values["holes"][:3], [1.5, np.nan, 2])
    np.testing.assert_array_equal(values["some"][:4], [1, 0, np.nan, 1])
    np.testing.assert_array_equal(values["endless"][:2], [1, np.nan])
    assert data.notes == [
        "Text columns made one 0/1 column a value: 'colour' (3).",
        "Took marks such as '?' as missing in 'holes'.",
        "Took infinite values as missing in 'endless'.",
        "Dropped text columns of more than 20 values: 'id' (30).",
        "Dropped dates: 'when', 'time'.",
        "Dropped constant columns: 'same', 'flat', 'empty'.",
    ]
    assert all(f"- {note}" in data.DESCR for note in data.notes)
    assert "missing values" in data.DESCR


@pytest.mark.parametrize("values", [20, 21])
def test_twenty_values_are_encoded_and_more_are_not(table, values):
    text = "x,word,y\n" + "".join(f"{j},w{j % values},{int(j < 5)}\n" for j in range(90))
    data = load(table(text), target="y")
    assert len(data.feature_names) == (21 if values == 20 else 1)


def test_parquet_types(tmp_path):
    frame = pd.DataFrame(
        {
            "y": ["yes"] * 2 + ["no"] * 8,
            "big": pd.array([1, None] * 5, dtype="Int64"),
            "kind": pd.Categorical(["3", "4"] * 5),
            "when": pd.date_range("2024-01-01", periods=10),
            "day": pd.date_range("2024-01-01", periods=10).date,
            "small": np.arange(10, dtype="float16"),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet", target="y")
    assert data.feature_names == ["big", "kind=3", "kind=4", "small"]
    assert np.isnan(data.data[:, 0]).sum() == 5
    assert "Dropped dates: 'when', 'day'." in data.notes


def test_groups_leave_the_features(table):
    data = load(table(column(who=list("aabbccddee"))), target="y", groups="who")
    assert data.feature_names == ["x"]
    assert data.groups.tolist() == list("aabbccddee")
    with pytest.raises(ValueError, match=r"no group column 'whom'\. Did you mean 'who'"):
        load(table(column(who=1)), target="y", groups="whom")
    with pytest.raises(ValueError, match="the target 'y' cannot say"):
        load(table(column()), target="y", groups="y")
    with pytest.raises(ValueError, match="'who' is missing in 1 rows"):
        load(table(column(who=[None, *"abcdefghi"])), target="y", groups="who")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("x,y\n", "has a header but no rows"),
        ("x,y\n1,0\n2,0\n", "'y' has one class only: 0 in all 2 rows"),
        ("x,y\n1,\n2,\n", "'y' has no value in any row"),
        ("y\n0\n1\n", r"no feature is left\. The target is the only column"),
        ("x,y\n1,0\n1,1\n", r"no feature is left\. Dropped constant columns: 'x'"),
        ("x,y\n1,0\n1,2,3,4\n", "line 3 has 4 cells, but the header has 2"),
    ],
)
def test_files_that_hold_no_table_to_learn_from(table, text, message):
    with pytest.raises(ValueError, match=message):
        load(table(text), target="y")


def test_files_that_are_not_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.csv"):
        load(tmp_path / "gone.csv")
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        load(tmp_path)
    for name, message in {
        "x.xlsx": r"not of a kind that can be read; these are: \.parquet",
        "x.parquet": "cannot be read as a table",
        "x.csv.gz": "cannot be read as a table",
        "x.csv": "cannot be read as a table",
    }.items():
        (tmp_path / name).write_bytes(b"\xff\xfe\x00nonsense")
        with pytest.raises(ValueError, match=message):
            load(tmp_path / name, target="y")


def test_the_numbers_of_the_rows_are_no_feature(tmp_path):
    frame = pd.DataFrame({"x": np.arange(10) ** 2, "y": [1, 1] + [0] * 8})
    frame.to_csv(tmp_path / "t.csv")
    data = load(tmp_path / "t.csv", target="y")
    assert data.feature_names == ["x"]
    assert data.notes == ["Dropped the rows' numbers: 'Unnamed: 0'."]


def test_two_columns_of_one_name_in_text(table):
    with pytest.raises(ValueError, match="more than one column named 'y'"):
        load(table("x,y,y\n1,0,0\n2,1,1\n3,0,0\n"), target="y")


def test_two_columns_of_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    arrays = [pa.array([1, 2, 3]), pa.array([4, 5, 6]), pa.array([0, 0, 1])]
    parquet.write_table(pa.table(arrays, names=["x", "x", "y"]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"more than one column named 'x'|cannot be read"):
        load(tmp_path / "t.parquet", target="y")


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs pooch.*pip install 'damvi\[bench\]'"):
        need("pooch")


def test_numbers_as_people_write_them_are_the_numbers_of_damvi_fit(tmp_path):
    amounts = np.arange(40) * 411.5
    frame = pd.DataFrame(
        {
            "amount": [f"${amount:,.2f}" for amount in amounts],
            "rate": [f"{k % 7}.5 %" for k in range(40)],
            "when": [f"{k % 28 + 1:02d} Mar 2024" for k in range(40)],
            "target": [1, 0, 0, 0] * 10,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load(tmp_path / "t.csv")
    assert data.feature_names == ["amount", "rate"]
    np.testing.assert_array_equal(data.data[:, 0], amounts)
    assert "Dropped dates: 'when'." in data.notes
    schema = Schema.infer(frame, "target")
    np.testing.assert_array_equal(schema.encode(frame)[["amount", "rate"]], data.data)
