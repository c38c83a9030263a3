"""Datasets by name: from folders, the package, the cache, or their checked public homes."""

import gzip
import hashlib
import io
import os
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from damvi.datasets import ATTEMPTS, DOWNLOADS, KNOWN, available, fetch, load, table_sha256

# Taken before the fixture below hides the variable from the tests.
REAL = Path(os.environ.get("DAMVI_DATA") or Path(__file__).parents[2] / "shared" / "data")

rng = np.random.RandomState(0)
X = rng.normal(size=(60, 4)).round(2)
y = (np.arange(60) < 5).astype(np.int8)
BLOCKS = np.repeat(np.arange(6), 10) + 100


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder from outside, and no waiting between attempts."""
    monkeypatch.setenv("DAMVI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DAMVI_DATA", raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    return tmp_path / "cache"


class Server(ThreadingHTTPServer):
    """Serves ``pages``, counts the requests, and drops the line where told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.requests, self.drops = {}, [], 0

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.lstrip("/")
        self.server.requests.append(name)
        body = self.server.pages.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def home(server, monkeypatch):
    """Let the downloads come from the local server, and the datasets be small."""

    def publish(source, content, sha256=None):
        name = DOWNLOADS[source].file
        server.pages[name] = content
        there = replace(DOWNLOADS[source], url=server.url(name), sha256=sha256)
        monkeypatch.setitem(DOWNLOADS, source, there)

    def small(name, **changes):
        sizes = {"rows": 60, "attributes": 4, "positives": 5, "digest": ""}
        monkeypatch.setitem(KNOWN, name, replace(KNOWN[name], **sizes | changes))

    for source, download in DOWNLOADS.items():
        gone = replace(download, url=server.url("nowhere"), sha256=None)
        monkeypatch.setitem(DOWNLOADS, source, gone)
    for name in ("webpage", "protein_homo", "scania", "credit_fraud", "oil"):
        small(name)
    publish.small = small
    return publish


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


def collection(number, data=X):
    return tar(readme=b"hello", **{f"x{number}data__npz": npz(data=data, label=2 * y - 1)})


def kdd():
    rows = np.column_stack([BLOCKS, np.arange(60), y, X])
    lines = "\n".join("\t".join(f"{v:g}" for v in row) for row in rows)
    return tar(bio_train__dat=lines.encode(), phy_train__dat=b"1 2 3")


def scania():
    header = "class," + ",".join(f"a{j}_000" for j in range(4))
    lines = [
        ",".join(["pos" if label else "neg", *("na" if v < -1.5 else f"{v}" for v in row)])
        for row, label in zip(X, y, strict=True)
    ]
    text = "\n".join(["This file is free.\nclass of licence: any\n" * 10, header, *lines])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("aps_failure_test_set.csv", "other")
        archive.writestr("aps_failure_training_set.csv", text)
    return buffer.getvalue()


def test_a_dataset_of_the_collection_is_fetched_once(home, server, cache):
    one, other = npz(data=X, label=2 * y - 1), npz(data=-X, label=2 * y - 1)
    home("collection", tar(x18data__npz=one, x23data__npz=other))
    data = load("oil")
    np.testing.assert_array_equal(data.data, X)
    np.testing.assert_array_equal(data.target, y)
    assert (data.data.dtype, data.target.dtype) == (np.float64, np.int8)
    assert data.feature_names == ["f0", "f1", "f2", "f3"]
    assert (data.name, data.groups) == ("oil", None)
    assert "60 rows, 4 features, 5 positives (8.33%)" in data.DESCR
    np.testing.assert_array_equal(load("webpage").data, -X)
    assert fetch("oil") == cache / "oil.parquet"
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
    assert np.isnan(data.data).any()


def test_the_proteins_come_with_their_blocks(home):
    digest = table_sha256(X[::-1], y[::-1], ordered=False)
    home.small("protein_homo", digest=digest)
    home("kdd_cup_2004", kdd())
    for _ in range(2):
        data = load("protein_homo")
        np.testing.assert_array_equal(data.data, X)
        np.testing.assert_array_equal(data.groups, BLOCKS)


@pytest.mark.parametrize("broken", [None, b"<html>moved</html>"])
def test_the_collection_stands_in_for_the_proteins(home, broken):
    if broken:
        home("kdd_cup_2004", broken)
    home("collection", collection(26))
    data = load("protein_homo")
    np.testing.assert_array_equal(data.data, X)
    assert data.groups is None


def test_a_wrong_checksum_is_not_used(home, cache):
    home("scania", scania(), sha256="0" * 64)
    with pytest.raises(ValueError, match=r"could not fetch .*hash.*download it by hand to"):
        load("scania")
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"digest": "f" * 64}, f"expected SHA-256 {'f' * 64}, got [0-9a-f]+"),
        ({"rows": 61}, "expected 61 rows and 4 features, got 60 rows and 4 features"),
        ({"positives": 6}, "expected 6 positives, got 5"),
        ({"positives": None, "ratio": 22}, "expected about 22:1, got 11.0:1"),
    ],
)
def test_other_content_is_not_used(home, cache, changes, message):
    home.small("oil", **changes)
    home("collection", collection(18))
    with pytest.raises(ValueError, match=message):
        load("oil")
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "content",
    [b"not an archive", gzip.compress(b"no tar"), tar(other=b"x"), b""],
    ids=["nonsense", "no tar", "no such member", "empty"],
)
def test_an_archive_that_cannot_be_read_is_fetched_anew_next_time(home, content):
    home("collection", content)
    with pytest.raises(ValueError, match="has unexpected content and was not used"):
        load("oil")
    home("collection", collection(18))
    assert load("oil").data.shape == (60, 4)


def test_a_dropped_line_is_tried_again(home, server, cache):
    home("collection", collection(18))
    server.drops = 2
    assert load("oil").data.shape == (60, 4)
    assert len(server.requests) == 3


def test_a_line_that_keeps_dropping_leaves_nothing_behind(home, server, cache):
    home("collection", collection(18))
    server.drops = 100
    with pytest.raises(ConnectionError, match=r"could not fetch.*by hand to ") as c:
        load("oil")
    assert str(cache / "downloads") in str(c.value)
    assert len(server.requests) == ATTEMPTS
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_no_network_at_all(monkeypatch):
    nowhere = replace(DOWNLOADS["collection"], url="http://127.0.0.1:9/x.tar.gz")
    monkeypatch.setitem(DOWNLOADS, "collection", nowhere)
    with pytest.raises(ConnectionError, match="could not fetch"):
        load("oil")


def test_an_archive_placed_by_hand_is_taken(home, server, cache):
    (cache / "downloads").mkdir(parents=True)
    placed = cache / "downloads" / "benchmark-imbalanced-learn.tar.gz"
    placed.write_bytes(collection(18))
    assert load("oil").data.shape == (60, 4)
    assert server.requests == []


def test_a_damaged_cache_is_made_anew(home, server, cache):
    home("collection", collection(18))
    path = fetch("oil")
    path.write_bytes(path.read_bytes()[:-100])
    np.testing.assert_array_equal(load("oil").data, X)
    assert len(server.requests) == 1


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
        "Kaggle requires an account",
        "creditcard.csv",
        "kaggle.com/datasets/mlg-ulb/creditcardfraud",
        "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
        str(cache / "downloads"),
        "DAMVI_DATA",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("where", ["cache", "folder", "variable"])
def test_credit_fraud_placed_by_hand_is_checked_read_and_cached(
    home, cache, tmp_path, monkeypatch, where
):
    content = credit_csv(monkeypatch)
    folder = cache / "downloads" if where == "cache" else tmp_path / "mine"
    folder.mkdir(parents=True)
    file = folder / "creditcard.csv"
    if where == "variable":
        monkeypatch.setenv("DAMVI_DATA", str(folder))
    data_dir = folder if where == "folder" else None
    file.write_bytes(content + b"\n")
    with pytest.raises(ValueError, match="wrong checksum and was not used"):
        load("credit_fraud", data_dir=data_dir)
    file.write_bytes(content)
    data = load("credit_fraud", data_dir=data_dir)
    np.testing.assert_array_equal(data.data, X)
    np.testing.assert_array_equal(data.target, y)
    file.unlink()
    np.testing.assert_array_equal(load("credit_fraud").data, X)


def test_not_everything_can_be_fetched():
    with pytest.raises(ValueError, match="'moons' is not a dataset that can be fetched"):
        fetch("moons")


def test_the_pins_are_digests_and_the_addresses_are_safe():
    for download in DOWNLOADS.values():
        assert download.url.startswith("https://")
        assert download.sha256 is None or len(bytes.fromhex(download.sha256)) == 32
    for known in KNOWN.values():
        assert known.digest == "" or len(bytes.fromhex(known.digest)) == 32


@pytest.fixture
def frame():
    frame = pd.DataFrame(X[:, :3].astype("float32"), columns=list("abc"))
    return frame.assign(target=y)


@pytest.fixture
def folder(tmp_path, frame):
    for sub in ("paper", "extra"):
        (tmp_path / "data" / sub).mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "top.parquet")
    frame.to_parquet(tmp_path / "data" / "paper" / "webpage.parquet")
    frame.to_csv(tmp_path / "data" / "extra" / "text.csv", index=False)
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["top", "webpage", "text"])
def test_a_folder_is_read_with_its_subfolders(folder, frame, name):
    data = load(name, data_dir=folder)
    np.testing.assert_allclose(data.data, frame[list("abc")], rtol=1e-6)
    np.testing.assert_array_equal(data.target, frame.target)
    assert data.feature_names == ["a", "b", "c"]
    assert (data.data.dtype, data.target.dtype) == (np.float64, np.int8)


def test_the_variable_names_a_folder_and_the_argument_goes_first(
    folder, frame, tmp_path, monkeypatch
):
    monkeypatch.setenv("DAMVI_DATA", str(folder))
    other = tmp_path / "other"
    other.mkdir()
    frame.drop(columns="a").to_parquet(other / "top.parquet")
    assert load("top").data.shape == (60, 3)
    assert load("top", data_dir=other).data.shape == (60, 2)
    assert load("webpage", data_dir=other).data.shape == (60, 3)


def test_a_folder_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*nope \(data_dir\)"):
        load("webpage", data_dir=tmp_path / "nope")
    monkeypatch.setenv("DAMVI_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"gone \(variable DAMVI_DATA\)"):
        load("webpage")


def test_an_unknown_name_is_told_the_near_ones_and_the_folders(folder):
    with pytest.raises(ValueError, match=r"did you mean 'webpage'\? available: .*top"):
        load("web_page", data_dir=folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": np.arange(60) % 3}, "has 3 values, not two"),
        ({"a": "text"}, "non-numeric columns; use damvi fit"),
    ],
)
def test_a_file_of_another_kind_is_refused(folder, frame, change, message):
    frame.assign(**change).to_parquet(folder / "odd.parquet")
    with pytest.raises(ValueError, match=message):
        load("odd", data_dir=folder)


def test_blocks_beside_a_file_are_its_groups(folder, frame):
    frame.loc[[0, 10], "target"] = None
    frame.to_parquet(folder / "paper" / "protein_homo.parquet")
    assert load("protein_homo", data_dir=folder).groups is None
    blocks = pd.DataFrame({"block_id": np.arange(60) // 8})
    blocks.to_parquet(folder / "paper" / "protein_homo_block_id.parquet")
    data = load("protein_homo", data_dir=folder)
    np.testing.assert_array_equal(data.groups, np.delete(np.arange(60) // 8, [0, 10]))
    blocks[:-1].to_parquet(folder / "paper" / "protein_homo_block_id.parquet")
    with pytest.raises(ValueError, match=r"has 59 rows, but .* has 60"):
        load("protein_homo", data_dir=folder)


def test_machine_failures_come_as_people_have_them():
    data = load("ai4i2020", as_frame=True)
    assert data.data.shape == (10_000, 6)
    assert data.target.sum() == (data.frame[data.target_name] == "yes").sum() == 339
    assert set(data.frame["product_type"]) == {"L", "M", "H"}
    codes = data.frame["product_type"].map({"L": 0, "M": 1, "H": 2})
    np.testing.assert_array_equal(codes, data.data[:, 0])
    assert "CC BY 4.0" in data.DESCR
    # Nothing that gives the target away: failure modes, ids.
    assert list(data.frame)[1:] == [
        "air_temperature_K",
        "process_temperature_K",
        "rotational_speed_rpm",
        "torque_Nm",
        "tool_wear_min",
        "machine_failure",
    ]
    old = load("mammography", as_frame=True)
    assert (old.frame[old.target_name] == "yes").sum() == 260


def test_mammography_stays_the_bundled_one(folder, frame, monkeypatch):
    frame.to_parquet(folder / "mammography.parquet")
    monkeypatch.setenv("DAMVI_DATA", str(folder / "gone"))
    data = load("mammography")
    assert table_sha256(data.data, data.target) == KNOWN["mammography"].digest
    assert "260 positives (2.32%)" in data.DESCR
    monkeypatch.setenv("DAMVI_DATA", str(folder))
    assert load("mammography", data_dir=folder).data.shape == (60, 3)


def test_what_is_available_and_where(folder, home, cache):
    home("collection", collection(18))
    fetch("oil")
    found = {record["name"]: record for record in available(folder)}
    assert found["mammography"]["where"] == "bundled"
    assert found["mammography"]["ratio"] == pytest.approx(42.01, abs=0.01)
    assert found["webpage"]["where"] == found["top"]["where"] == "folder"
    assert (
        found["oil"] | {"where": "cache", "place": str(cache / "oil.parquet")}
        == (found["oil"])
    )
    assert found["scania"]["where"] == "to fetch"
    assert found["credit_fraud"]["where"] == "to place by hand"
    assert found["top"]["rows"] is None


def test_the_collection_has_imbalanced_learns_names():
    members = {known.sources[-1][1]: name for name, known in KNOWN.items() if known.sources}
    imblearn = pytest.importorskip("imblearn.datasets._zenodo")
    for number, name in enumerate(imblearn.MAP_NAME_ID_KEYS, start=1):
        assert members[f"x{number}data.npz"] == name


@pytest.mark.skipif(not (REAL / "paper").is_dir(), reason="set DAMVI_DATA to real data")
@pytest.mark.parametrize(
    "name", [*(n for n, known in KNOWN.items() if known.digest), "webpage", "credit_fraud"]
)
def test_the_real_files_are_what_is_known_of_them(name):
    data, known = load(name, data_dir=REAL), KNOWN[name]
    assert data.data.shape == (known.rows, known.attributes)
    assert data.target.sum() == (981 if name == "webpage" else known.positives)
    if known.digest:
        digest = table_sha256(data.data, data.target, ordered=known.ordered)
        assert digest == known.digest
    if name == "protein_homo":
        assert len(np.unique(data.groups)) == 153
