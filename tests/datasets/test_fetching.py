"""Fetched data is checked, kept, and never used when it is not what was expected."""

import gzip
import hashlib
import io
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from damvi.datasets import ChecksumError, fetch, load, transfer
from damvi.datasets.catalogue import KNOWN
from damvi.datasets.digests import table_sha256
from damvi.datasets.downloads import DOWNLOADS

rng = np.random.RandomState(0)
X = rng.normal(size=(60, 4)).round(2)
y = (np.arange(60) < 5).astype(np.int8)
BLOCKS = np.repeat(np.arange(6), 10) + 100


def tar(**members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"./{name.replace('__', '.')}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def collection(number, data=None):
    content = npz(data=X if data is None else data, label=2 * y - 1)
    return tar(readme=b"hello", **{f"x{number}data__npz": content})


def kdd():
    rows = np.column_stack([BLOCKS, np.arange(60), y, X])
    lines = "\n".join("\t".join(f"{v:g}" for v in row) for row in rows)
    return tar(bio_train__dat=lines.encode(), phy_train__dat=b"1 2 3")


def scania(data=X):
    header = "class," + ",".join(f"a{j}_000" for j in range(4))
    lines = [
        ",".join(["pos" if label else "neg", *("na" if v < -1.5 else f"{v}" for v in row)])
        for row, label in zip(data, y, strict=True)
    ]
    text = "\n".join(["This file is free.\nclass of licence: any\n" * 10, header, *lines])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("aps_failure_test_set.csv", "other")
        archive.writestr("aps_failure_training_set.csv", text)
    return buffer.getvalue()


@pytest.fixture
def home(server, monkeypatch):
    """Let the downloads come from the local server, and the datasets be small."""

    def publish(source, content, sha256=""):
        name = DOWNLOADS[source].file
        server.pages[name] = content
        there = replace(DOWNLOADS[source], url=server.url(name), sha256=sha256)
        monkeypatch.setitem(DOWNLOADS, source, there)

    def small(name, **changes):
        sizes = {"rows": 60, "attributes": 4, "positives": 5, "digest": ""}
        monkeypatch.setitem(KNOWN, name, replace(KNOWN[name], **sizes | changes))

    for source, download in DOWNLOADS.items():
        monkeypatch.setitem(
            DOWNLOADS, source, replace(download, url=server.url("nowhere"), sha256="")
        )
    for name in ("webpage", "protein_homo", "scania", "credit_fraud", "oil"):
        small(name)
    publish.small = small
    return publish


def test_a_dataset_of_the_collection(home, server, cache):
    home("collection", collection(18))
    data = load("oil")
    np.testing.assert_array_equal(data.data, X)
    np.testing.assert_array_equal(data.target, y)
    assert (data.data.dtype, data.target.dtype) == (np.float64, np.int8)
    assert data.feature_names == ["f0", "f1", "f2", "f3"]
    assert data.name == "oil"
    assert data.paper is None
    assert fetch("oil") == cache / "oil.parquet"


def test_a_second_load_needs_no_network(home, server):
    home("collection", collection(18))
    first = load("oil")
    assert len(server.requests) == 1
    server.pages.clear()
    np.testing.assert_array_equal(load("oil").data, first.data)
    assert len(server.requests) == 1


def test_two_datasets_of_one_archive_are_one_download(home, server):
    one, other = npz(data=X, label=2 * y - 1), npz(data=-X, label=2 * y - 1)
    home("collection", tar(x18data__npz=one, x23data__npz=other))
    np.testing.assert_array_equal(load("oil").data, X)
    np.testing.assert_array_equal(load("webpage").data, -X)
    assert len(server.requests) == 1


def test_a_sparse_member_becomes_dense(home):
    thin = sparse.csr_matrix(np.where(X > 0, X, 0))
    parts = {name: getattr(thin, name) for name in ("data", "indices", "indptr", "shape")}
    home("collection", tar(x23data__npz=npz(label=2 * y - 1, **parts)))
    np.testing.assert_array_equal(load("webpage").data, thin.toarray())


def test_scania_skips_the_licence_and_knows_what_is_missing(home):
    content = scania()
    home("scania", content, sha256=hashlib.sha256(content).hexdigest())
    data = load("scania")
    np.testing.assert_array_equal(data.data, np.where(X < -1.5, np.nan, X))
    np.testing.assert_array_equal(data.target, y)
    assert data.feature_names[0] == "a0_000"
    assert np.isnan(data.data).any()


def test_constant_columns_of_the_papers_data_stay(home):
    flat = X.copy()
    flat[:, 2] = 0
    home("scania", scania(flat))
    assert load("scania").data.shape == (60, 4)


def test_the_proteins_come_with_their_blocks(home):
    digest = table_sha256(X[::-1], y[::-1], ordered=False)
    home.small("protein_homo", digest=digest)
    home("kdd_cup_2004", kdd())
    data = load("protein_homo")
    np.testing.assert_array_equal(data.data, X)
    np.testing.assert_array_equal(data.groups, BLOCKS)
    np.testing.assert_array_equal(load("protein_homo").groups, BLOCKS)


@pytest.mark.parametrize("broken", [None, b"<html>moved</html>"])
def test_the_collection_stands_in_for_the_proteins(home, broken):
    if broken:
        home("kdd_cup_2004", broken)
    home("collection", collection(26))
    data = load("protein_homo")
    np.testing.assert_array_equal(data.data, X)
    assert data.groups is None
    assert any("lacks the query blocks" in note for note in data.notes)


def test_a_wrong_checksum_is_kept_aside_and_not_used(home, cache):
    content = scania()
    home("scania", content, sha256="0" * 64)
    with pytest.raises(ChecksumError, match="wrong checksum and was not used") as caught:
        load("scania")
    kept = cache / "downloads" / "aps_failure_at_scania_trucks.zip.bad"
    assert kept.read_bytes() == content
    for part in (str(kept), "0" * 64, hashlib.sha256(content).hexdigest(), "Run again"):
        assert part in str(caught.value)
    assert not list(cache.rglob("*.parquet"))
    assert not list(cache.rglob("*.zip"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"digest": "f" * 64}, f"Expected content of SHA-256 {'f' * 64}, found [0-9a-f]+"),
        ({"rows": 61}, "Expected 61 rows of 4 features, found 60 rows of 4 features"),
        ({"attributes": 5}, "Expected 60 rows of 5 features"),
        ({"positives": 6}, "Expected 6 positives, found 5"),
        ({"positives": None, "ratio": 22}, "Expected about 22:1, found 11.0:1"),
    ],
)
def test_other_content_is_kept_aside_and_not_used(home, cache, changes, message):
    home.small("oil", **changes)
    home("collection", collection(18))
    with pytest.raises(ChecksumError, match=message):
        load("oil")
    assert [path.name for path in cache.rglob("*.bad")] == [
        "benchmark-imbalanced-learn.tar.gz.bad"
    ]
    assert not list(cache.rglob("*.parquet"))


@pytest.mark.parametrize(
    "content",
    [b"not an archive", gzip.compress(b"no tar"), tar(other=b"x"), b""],
    ids=["nonsense", "no tar", "no such member", "empty"],
)
def test_an_archive_that_cannot_be_read_is_kept_aside(home, cache, content):
    home("collection", content)
    with pytest.raises(ChecksumError, match="does not hold oil as it should"):
        load("oil")
    assert list(cache.rglob("*.bad"))


def test_after_a_bad_download_the_next_one_is_fetched_anew(home, server):
    home("collection", b"not an archive")
    with pytest.raises(ChecksumError):
        load("oil")
    home("collection", collection(18))
    assert load("oil").data.shape == (60, 4)


def test_a_dropped_line_is_tried_again(home, server):
    home("collection", collection(18))
    server.drops = 2
    assert load("oil").data.shape == (60, 4)
    assert len(server.requests) == 3


def test_a_line_that_keeps_dropping_leaves_nothing_behind(home, server, cache):
    home("collection", collection(18))
    server.drops = 100
    with pytest.raises(ConnectionError, match=r"could not be fetched.*put it there: ") as c:
        load("oil")
    assert str(cache / "downloads") in str(c.value)
    assert len(server.requests) == transfer.ATTEMPTS
    assert not [path for path in cache.rglob("*") if path.is_file()]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("screen", [Terminal, io.StringIO])
def test_progress_shows_on_a_terminal_only(home, monkeypatch, capsys, screen):
    home("collection", collection(18))
    monkeypatch.setattr("sys.stderr", screen())
    load("oil")
    shown = sys.stderr.getvalue()
    assert ("benchmark-imbalanced-learn.tar.gz" in shown) == (screen is Terminal)
    assert capsys.readouterr().out == ""


def test_a_page_that_is_gone_is_asked_for_once(home, server):
    with pytest.raises(ConnectionError, match="404"):
        load("oil")
    assert len(server.requests) == 1


def test_no_network_at_all(monkeypatch):
    nowhere = replace(DOWNLOADS["collection"], url="http://127.0.0.1:9/x.tar.gz")
    monkeypatch.setitem(DOWNLOADS, "collection", nowhere)
    with pytest.raises(ConnectionError, match="could not be fetched"):
        load("oil")


def test_an_archive_placed_by_hand_is_taken(home, server, cache):
    (cache / "downloads").mkdir(parents=True)
    placed = cache / "downloads" / "benchmark-imbalanced-learn.tar.gz"
    placed.write_bytes(collection(18))
    assert load("oil").data.shape == (60, 4)
    assert server.requests == []


def test_a_damaged_cache_is_set_aside_and_made_anew(home, server, cache):
    home("collection", collection(18))
    load("oil")
    path = cache / "oil.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    np.testing.assert_array_equal(load("oil").data, X)
    assert (cache / "oil.parquet.bad").is_file()
    assert len(server.requests) == 1


def test_a_damaged_archive_is_fetched_anew(home, server, cache):
    home("collection", collection(18))
    load("oil")
    (cache / "oil.parquet").unlink()
    (cache / "downloads" / "benchmark-imbalanced-learn.tar.gz").write_bytes(b"damaged")
    np.testing.assert_array_equal(load("oil").data, X)
    assert len(server.requests) == 2


def credit_csv(monkeypatch):
    lines = ["Time,V1,V2,Amount,Class"]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    content = "\n".join(lines).encode()
    there = replace(DOWNLOADS["credit_fraud"], sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(DOWNLOADS, "credit_fraud", there)
    return content


def test_credit_fraud_says_what_to_download_and_where_to_put_it(cache):
    with pytest.raises(FileNotFoundError) as caught:
        load("credit_fraud")
    for part in (
        "Kaggle needs an account",
        "creditcard.csv",
        "kaggle.com/datasets/mlg-ulb/creditcardfraud",
        "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
        str(cache / "downloads"),
        "DAMVI_DATA",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("where", ["cache", "folder", "variable"])
def test_credit_fraud_placed_by_hand_is_read_and_cached(
    home, cache, tmp_path, monkeypatch, where
):
    content = credit_csv(monkeypatch)
    folder = cache / "downloads" if where == "cache" else tmp_path / "mine"
    folder.mkdir(parents=True)
    (folder / "creditcard.csv").write_bytes(content)
    if where == "variable":
        monkeypatch.setenv("DAMVI_DATA", str(folder))
    data = load("credit_fraud", data_dir=folder if where == "folder" else None)
    np.testing.assert_array_equal(data.data, X)
    np.testing.assert_array_equal(data.target, y)
    assert data.paper == {"rows": 284807, "attributes": 30, "percent": 0.17}
    (folder / "creditcard.csv").unlink()
    np.testing.assert_array_equal(load("credit_fraud").data, X)


def test_another_credit_fraud_in_the_cache_is_kept_aside(home, cache, monkeypatch):
    content = credit_csv(monkeypatch)
    (cache / "downloads").mkdir(parents=True)
    (cache / "downloads" / "creditcard.csv").write_bytes(content + b"\n")
    with pytest.raises(ChecksumError, match=r"kept as .*creditcard\.csv\.bad"):
        load("credit_fraud")


def test_another_credit_fraud_in_the_users_folder_is_left_alone(
    home, tmp_path, monkeypatch
):
    content = credit_csv(monkeypatch) + b"\n"
    (tmp_path / "creditcard.csv").write_bytes(content)
    with pytest.raises(ChecksumError, match="wrong checksum and was not used"):
        load("credit_fraud", data_dir=tmp_path)
    assert (tmp_path / "creditcard.csv").read_bytes() == content


@pytest.mark.parametrize("name", ["pct_imitation", "scania_partial", "moons"])
def test_not_everything_can_be_fetched(name):
    with pytest.raises(ValueError, match=f"'{name}' is not a dataset that can be fetched"):
        fetch(name)


def test_the_pins_are_digests_and_the_addresses_are_safe():
    for download in DOWNLOADS.values():
        assert download.url.startswith("https://")
        assert download.sha256 == "" or len(bytes.fromhex(download.sha256)) == 32
    for known in KNOWN.values():
        assert known.digest == "" or len(bytes.fromhex(known.digest)) == 32
