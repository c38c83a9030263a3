"""The list of datasets says where each would come from."""

import pandas as pd
import pytest

from damvi.datasets import names


def where(**options):
    return {record["name"]: record["where"] for record in names(**options)}


def test_with_nothing_at_hand():
    found = where()
    assert list(found)[:3] == ["webpage", "mammography", "scania"]
    assert found["mammography"] == "bundled"
    assert found["pct_imitation"] == "made here"
    assert found["credit_fraud"] == "to place by hand"
    assert found["scania_partial"] == "no public home"
    assert {found[name] for name in ("webpage", "scania", "oil")} == {"to fetch"}
    assert len(found) == 31


def test_folders_and_the_cache_are_looked_into(tmp_path, cache, monkeypatch):
    frame = pd.DataFrame({"a": [1, 2], "target": [0, 1]})
    cache.mkdir()
    frame.to_parquet(cache / "oil.parquet")
    (tmp_path / "data" / "extra").mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "extra" / "mine.parquet")
    (tmp_path / "data" / "broken.parquet").write_bytes(b"x")
    frame.to_parquet(tmp_path / "data" / "webpage_block_id.parquet")
    monkeypatch.setenv("DAMVI_DATA", str(tmp_path / "data"))
    found = where()
    assert found["oil"] == "cache"
    assert found["mine"] == "folder"
    assert "webpage_block_id" not in found
    records = {record["name"]: record for record in names()}
    assert (records["mine"]["rows"], records["mine"]["attributes"]) == (2, 1)
    assert records["broken"]["rows"] is None
    assert records["mine"]["place"].endswith("mine.parquet")


def test_the_papers_six_are_marked():
    assert sum(record["paper"] for record in names()) == 6
    ratios = {record["name"]: record["ratio"] for record in names()}
    assert ratios["mammography"] == pytest.approx(42.01, abs=0.01)
    assert ratios["oil"] == 22
