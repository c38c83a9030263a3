"""Names come from folders in order, and every dataset says what it is."""

import numpy as np
import pandas as pd
import pytest

from damvi.datasets import load
from damvi.datasets.catalogue import KNOWN, PAPER
from damvi.datasets.digests import table_sha256


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)).astype("float32"), columns=list("abc"))
    return frame.assign(target=(np.arange(40) < 4).astype("int8"))


@pytest.fixture
def folder(tmp_path, frame):
    for sub in ("paper", "extra"):
        (tmp_path / "data" / sub).mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "top.parquet")
    frame.to_parquet(tmp_path / "data" / "paper" / "webpage.parquet")
    frame.to_parquet(tmp_path / "data" / "extra" / "odd.parquet")
    frame.to_csv(tmp_path / "data" / "extra" / "text.csv", index=False)
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["top", "webpage", "odd", "text"])
def test_a_folder_is_read_with_its_subfolders(folder, frame, name):
    data = load(name, data_dir=folder)
    np.testing.assert_allclose(data.data, frame[list("abc")], rtol=1e-6)
    np.testing.assert_array_equal(data.target, frame.target)
    assert data.feature_names == ["a", "b", "c"]
    assert (data.data.dtype, data.target.dtype) == (np.float64, np.int8)
    assert (data.name, data.groups, data.imitation) == (name, None, False)


def test_the_variable_names_a_folder_and_the_argument_goes_first(
    folder, frame, tmp_path, monkeypatch
):
    monkeypatch.setenv("DAMVI_DATA", str(folder))
    assert load("odd").data.shape == (40, 3)
    other = tmp_path / "other"
    other.mkdir()
    frame.drop(columns="a").to_parquet(other / "odd.parquet")
    assert load("odd", data_dir=other).data.shape == (40, 2)
    assert load("top", data_dir=other).data.shape == (40, 3)


def test_a_folder_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nope \(data_dir\)"):
        load("webpage", data_dir=tmp_path / "nope")
    monkeypatch.setenv("DAMVI_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"gone \(variable DAMVI_DATA\)"):
        load("webpage")


def test_an_unknown_name_is_told_the_near_ones_and_the_folders(folder):
    with pytest.raises(ValueError, match=r"did you mean 'webpage'\? there is .*'odd'"):
        load("web_page", data_dir=folder)


def test_a_part_of_scania_comes_from_a_folder_only(folder, frame):
    with pytest.raises(FileNotFoundError, match=r"folder that has scania_partial\.parquet"):
        load("scania_partial", data_dir=folder)
    frame.to_parquet(folder / "paper" / "scania_partial.parquet")
    data = load("scania_partial", data_dir=folder)
    assert "13,274 of the 60,000 rows" in data.notes[0]
    assert data.notes[0] in data.DESCR


def test_the_description_sets_the_paper_beside_the_data(folder):
    text = load("webpage", data_dir=folder).DESCR
    for words in ("40", "34,780", "4 (10.00%)", "about 1,054 (3.03%)", "9.0", "32.0"):
        assert words in text
    assert "in the paper" not in load("odd", data_dir=folder).DESCR


def test_a_copy_of_another_size_is_noted(folder, frame):
    frame.to_parquet(folder / "scania.parquet")
    notes = load("scania", data_dir=folder).notes
    assert notes == ["Not of the size that the paper's table states."]


def test_blocks_beside_a_file_are_its_groups(folder, frame):
    frame.loc[[0, 10], "target"] = None
    frame.to_parquet(folder / "paper" / "protein_homo.parquet")
    assert "lacks the query blocks" in load("protein_homo", data_dir=folder).notes[1]
    blocks = pd.DataFrame({"block_id": np.arange(40) // 8})
    blocks.to_parquet(folder / "paper" / "protein_homo_block_id.parquet")
    data = load("protein_homo", data_dir=folder)
    np.testing.assert_array_equal(data.groups, np.delete(np.arange(40) // 8, [0, 10]))
    blocks[:-1].to_parquet(folder / "paper" / "protein_homo_block_id.parquet")
    with pytest.raises(ValueError, match=r"has 39 rows, but .* has 40"):
        load("protein_homo", data_dir=folder)


def test_mammography_stays_the_bundled_one(folder, frame, monkeypatch):
    frame.to_parquet(folder / "mammography.parquet")
    monkeypatch.setenv("DAMVI_DATA", str(folder))
    assert load("mammography").data.shape == (11183, 6)
    assert load("mammography", data_dir=folder).data.shape == (40, 3)
    monkeypatch.setenv("DAMVI_DATA", str(folder / "gone"))
    assert load("mammography").data.shape == (11183, 6)


def test_the_bundled_mammography_is_the_pinned_one():
    data = load("mammography")
    assert table_sha256(data.data, data.target) == KNOWN["mammography"].digest
    assert data.paper == {"attributes": 6, "rows": 11183, "percent": 2.32}
    assert data.notes == []


@pytest.mark.parametrize("option", ["target", "positive", "groups"])
def test_columns_cannot_be_chosen_where_there_is_no_file(option):
    with pytest.raises(ValueError, match=rf"{option}=\.\.\. is for files"):
        load("mammography", **{option: "f0"})


def test_a_file_of_your_own_is_not_taken_for_a_dataset_of_that_name(folder):
    data = load(folder / "paper" / "webpage.parquet")
    assert (data.name, data.paper, data.notes) == ("webpage.parquet", None, [])


def test_the_catalogue_has_the_papers_six_and_the_27_of_the_collection():
    assert {name for name in PAPER if name != "scania_partial"} == {
        "webpage",
        "mammography",
        "scania",
        "protein_homo",
        "credit_fraud",
        "pct_imitation",
    }
    collected = [
        k for k in KNOWN.values() if k.sources and k.sources[-1][0] == "collection"
    ]
    members = {known.sources[-1][1]: known.name for known in collected}
    assert set(members) == {f"x{number}data.npz" for number in range(1, 28)}
    imblearn = pytest.importorskip("imblearn.datasets._zenodo")
    for number, name in enumerate(imblearn.MAP_NAME_ID_KEYS, start=1):
        assert members[f"x{number}data.npz"] == name


REAL = ["webpage", "mammography", "scania_partial", "protein_homo", "credit_fraud"]
REAL += ["satimage", "letter_img", "ozone_level", "abalone_19"]


@pytest.mark.parametrize("name", REAL)
def test_the_real_files_are_what_the_catalogue_says(real, name):
    data, known = load(name, data_dir=real), KNOWN[name]
    assert data.data.shape == (known.rows, known.attributes)
    positives = 981 if name == "webpage" else known.positives
    assert data.target.sum() == positives
    if known.digest:
        digest = table_sha256(data.data, data.target, ordered=known.ordered)
        assert digest == known.digest


def test_the_real_proteins_have_their_blocks(real):
    data = load("protein_homo", data_dir=real)
    assert len(np.unique(data.groups)) == 153
    assert data.notes == []
