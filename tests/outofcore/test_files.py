"""Which files and which columns a dataset has."""

import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from damvi import DAMVIClassifier, ParquetTable
from damvi.outofcore.parquet import folder_columns, parquet_files

from .test_on_disk import frame_of


def fit(path, y="label", weight=None):
    return DAMVIClassifier(n_estimators=3, random_state=0).fit(path, y, weight)


def put(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names_of(folder, files):
    return [Path(file).relative_to(folder).as_posix() for file in files]


def test_what_writers_leave_beside_their_files_is_passed_over(tmp_path):
    put(tmp_path, "b.parquet", "a=1/c.parquet", "_a=1/c.parquet", "_SUCCESS", "_metadata")
    put(tmp_path, ".b.parquet.crc", ".hidden.parquet", "_temporary/0/part.parquet", "x.csv")
    (tmp_path / "folder.parquet").mkdir()
    ours = ["_a=1/c.parquet", "a=1/c.parquet", "b.parquet"]
    assert names_of(tmp_path, parquet_files(str(tmp_path))) == ours
    for pattern in ("**", "**/*.parquet", "*"):
        found = parquet_files(str(tmp_path / pattern))
        assert set(ours) <= set(names_of(tmp_path, found)) <= {*ours, "x.csv"}
        assert len(set(found)) == len(found)
    assert len(parquet_files(str(tmp_path / "_temp*/*"))) == 1  # asked for by name
    assert parquet_files(str(tmp_path / "_metadata")) == [str(tmp_path / "_metadata")]


def test_folders_below_a_hidden_one_are_looked_at(tmp_path):
    put(tmp_path, ".cache/t.parquet")
    assert len(parquet_files(str(tmp_path / ".cache"))) == 1


def test_columns_that_only_folders_tell(tmp_path):
    files = ["x/year=2024/month=1/a.parquet", "x/year=2025/month=1/b.parquet"]
    assert folder_columns(files) == ["year"]
    assert folder_columns(["=1/a=b.parquet", "=2/a=c.parquet"]) == []
    frame = frame_of(400)
    for flag, part in frame.groupby("flag"):
        folder = tmp_path / f"flag={flag}"
        folder.mkdir()
        part.drop(columns="flag").to_parquet(folder / "part.parquet")
    with pytest.warns(UserWarning, match=r"only in folder names are not used \(flag\)"):
        model = fit(tmp_path)
    assert "flag" not in model.feature_names_in_
    assert fit(ParquetTable(tmp_path, columns=["a", "b"])).n_features_in_ == 2


@pytest.mark.parametrize("name", [None, "id"])
def test_an_index_of_pandas_is_no_feature(tmp_path, name):
    frame = frame_of(400)
    some = frame[frame["a"] > -2].rename_axis(name)
    some.to_parquet(tmp_path / "t.parquet")
    written = name or "__index_level_0__"
    assert written in pq.read_schema(tmp_path / "t.parquet").names
    model = fit(tmp_path / "t.parquet")
    assert list(model.feature_names_in_) == list(some.drop(columns="label"))
    table = ParquetTable(tmp_path / "t.parquet", columns=["a", written])
    assert list(fit(table).feature_names_in_) == ["a", written]


def test_other_types_in_another_file_are_named(tmp_path):
    frame = frame_of(400)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(few=frame["few"].where(frame["few"] > 0)).to_parquet(
        tmp_path / "b.parquet"
    )
    with pytest.raises(ValueError, match=r"b\.parquet .*'few' is double instead of int64"):
        fit(tmp_path)
    frame.assign(more=1).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="9 columns instead of 8"):
        fit(tmp_path)


def test_whether_values_may_be_missing_does_not_matter(tmp_path):
    table = pa.Table.from_pandas(frame_of(400))
    pq.write_table(table, tmp_path / "a.parquet")
    full = pa.schema([field.with_nullable(field.name == "b") for field in table.schema])
    pq.write_table(table.cast(full), tmp_path / "b.parquet")
    assert fit(tmp_path).n_features_in_ == 7


@pytest.mark.parametrize("columns", ["ab", ["a", "b", "a"]])
def test_columns_are_a_list_of_different_names(tmp_path, columns):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="pass a list of unique names"):
        fit(ParquetTable(tmp_path / "t.parquet", columns=columns))


def test_names_that_are_there_twice(tmp_path):
    columns = [pa.array([1.0, 2.0]), pa.array([1.0, 2.0]), pa.array([0, 1])]
    pq.write_table(
        pa.Table.from_arrays(columns, ["a", "a", "label"]), tmp_path / "t.parquet"
    )
    with pytest.raises(ValueError, match=r"more than one column named \['a'\]"):
        fit(tmp_path / "t.parquet")


def test_kinds_of_labels_and_weights(tmp_path):
    frame = frame_of(400)
    table = pa.Table.from_pandas(frame[["a", "b", "label", "weight"]])
    price = pa.array([decimal.Decimal(int(4 * w)) / 4 for w in frame["weight"]])
    table = table.append_column("price", price).append_column("raw", pa.array([b"x"] * 400))
    pq.write_table(table, tmp_path / "t.parquet")
    plain = ParquetTable(tmp_path / "t.parquet", columns=["a", "b"])
    same = [fit(plain, weight=name).weights_ for name in ("weight", "price")]
    assert np.array_equal(*same)
    for name, said in (
        ("price", "decimal.* cannot be labels"),
        ("raw", "binary.* cannot be labels"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(plain, y=name)
    with pytest.raises(ValueError, match=r"'raw' .* holds binary; weights must be numbers"):
        fit(plain, weight="raw")


def test_no_rows_at_all(tmp_path):
    frame_of(400)[:0].to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="the table has 0 rows"):
        fit(tmp_path / "t.parquet")
    pq.ParquetWriter(tmp_path / "t.parquet", pq.read_schema(tmp_path / "t.parquet")).close()
    assert pq.read_metadata(tmp_path / "t.parquet").num_row_groups == 0
    with pytest.raises(ValueError, match="the table has 0 rows"):
        fit(tmp_path / "t.parquet")


def test_groups_and_files_without_rows(tmp_path):
    frame = frame_of(400)
    table = pa.Table.from_pandas(frame)
    with pq.ParquetWriter(tmp_path / "b.parquet", table.schema) as file:
        for start, stop in ((0, 0), (0, 1), (1, 390), (390, 390), (390, 400)):
            file.write_table(table[start:stop])
    pq.write_table(table[:0], tmp_path / "a.parquet")
    whole = DAMVIClassifier(n_estimators=3, random_state=0, bootstrap="poisson")
    whole.fit(frame.drop(columns="label"), frame["label"])
    assert np.array_equal(fit(tmp_path).weights_, whole.weights_)
