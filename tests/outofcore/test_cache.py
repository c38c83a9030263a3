"""Bins on disk are not taken on trust: owners, links, contents and the rows they are of."""

import io
import os
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from damvi import DAMVIClassifier, ParquetTable, _files
from damvi.outofcore import cache as caches
from damvi.outofcore.cache import BinCache, is_sound

from .test_on_disk import frame_of

posix = pytest.mark.skipif(os.name != "posix", reason="owners and links of POSIX")


def fit(path, **settings):
    return DAMVIClassifier(n_estimators=4, random_state=0, **settings).fit(path, "label")


@pytest.fixture
def table(tmp_path):
    frame_of(600).to_parquet(tmp_path / "t.parquet", row_group_size=200)
    return ParquetTable(tmp_path / "t.parquet", cache=tmp_path / "bins")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o777)
    monkeypatch.setattr(caches.tempfile, "tempdir", str(folder))
    return folder


def same(one, other):
    return np.array_equal(one.weights_, other.weights_) and np.array_equal(
        one.oob_decision_function_, other.oob_decision_function_, equal_nan=True
    )


def change(path, at, size=1):
    content = bytearray(path.read_bytes())
    content[at : at + size] = bytes(byte ^ 0xFF for byte in content[at : at + size])
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["codes", "hashes", "bins", "done", "key"])
@pytest.mark.parametrize("damage", ["bit", "cut", "longer", "empty", "gone"])
def test_what_was_tampered_with_is_made_anew(table, tmp_path, name, damage):
    fit(table)
    path = tmp_path / "bins" / name
    content = path.read_bytes()
    if damage == "bit":
        change(path, len(content) // 2)
    elif damage == "gone":
        path.unlink()
    else:
        size = {"cut": len(content) // 2, "longer": len(content) + 9, "empty": 0}[damage]
        with path.open("rb+") as file:
            file.truncate(size)
    again = fit(table)
    assert again.votes_.blocks.cache.folder == tmp_path / "bins"
    assert path.read_bytes() == content or name == "bins"
    expected = DAMVIClassifier(n_estimators=4, random_state=0, bootstrap="poisson")
    frame = frame_of(600)
    expected.fit(frame.drop(columns="label"), frame["label"])
    assert same(again, expected)


def forged(cache, **changed):
    """Bins with a right digest, by somebody who knows how they are made."""
    content = (cache.folder / "bins").read_bytes()[caches.DIGEST :]
    with np.load(io.BytesIO(content)) as arrays:
        kept = dict(arrays)
    out = io.BytesIO()
    np.savez(out, **{**kept, **{name: make(kept[name]) for name, make in changed.items()}})
    (cache.folder / "bins").write_bytes(cache._digest(out.getvalue()) + out.getvalue())


@pytest.mark.parametrize(
    "changed",
    [
        {"n_codes": lambda n: n * 0 + 10**9},
        {"n_codes": lambda n: n[:-1]},
        {"n_codes": lambda n: n.astype(np.float64)},
        {"starts": lambda n: n + 1},
        {"starts": lambda n: n[::-1].copy()},
        {"starts": lambda n: np.r_[n[:-1], 10**12]},
        {"category_codes": lambda n: n + 255},
        {"cuts": lambda n: n.reshape(1, -1)},
        {"cuts": lambda n: n[:-1]},
        {"categorical": lambda n: np.r_[n, n]},
    ],
)
def test_bins_that_kernels_must_not_see(table, changed):
    good = fit(table)
    cache = good.votes_.blocks.cache
    assert is_sound(cache.binning, 7)
    forged(cache, **changed)
    cache._find_bins()
    assert cache.binning is None


def test_codes_beyond_the_bins_are_refused_even_with_a_digest(table):
    cache = fit(table).votes_.blocks.cache
    cache.write(0, np.full((200, 7), 255, np.uint8), np.zeros(200, np.uint64))
    cache._put("done", np.frombuffer(cache._digest_of(0), np.uint8), 0)
    cache._checked.clear()
    assert [cache.is_done(part) for part in range(3)] == [False, True, True]


def test_parts_of_other_tables_and_places_are_refused(table):
    cache = fit(table).votes_.blocks.cache
    done = np.array(cache._map("done", np.uint8, (3, caches.DIGEST)))
    cache.write(0, cache.codes[200:400], cache.hashes[200:400])
    cache._put("done", done[[1, 1, 2]], 0)
    cache._checked.clear()
    assert [cache.is_done(part) for part in range(3)] == [False, True, True]


def test_a_second_reader_looks_at_what_it_reads(table, tmp_path):
    first = fit(table)
    assert fit(table).votes_.blocks.cache.folder == tmp_path / "bins"
    change(tmp_path / "bins" / "codes", 5)
    assert fit(table).votes_.blocks.cache.folder == tmp_path / "bins-1"
    assert first.votes_.blocks.cache.folder == tmp_path / "bins"


def test_what_another_has_done_so_far_is_not_taken_for_done(table, tmp_path):
    whole = fit(table).votes_.blocks.cache
    first = BinCache(tmp_path / "both", "a", (0, 200, 600), 7)
    first.keep_binning(whole.binning)
    first.write(0, whole.codes[:200], whole.hashes[:200])
    first.finish(0)
    second = BinCache(tmp_path / "both", "a", (0, 200, 600), 7)
    assert second.folder == tmp_path / "both-1"
    second.keep_binning(whole.binning)
    assert not second.is_done(0)


def test_rows_that_change_but_for_size_and_time_are_noticed(tmp_path):
    path = tmp_path / "t.parquet"
    frame = frame_of(600)
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    frame.to_parquet(path, **options)
    table, before = ParquetTable(path, cache=tmp_path / "bins"), os.stat(path)
    first = fit(table)
    del first
    frame["a"] = frame["a"].to_numpy()[::-1].copy()
    frame.to_parquet(path, **options)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    now = os.stat(path)
    assert (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    in_memory = DAMVIClassifier(n_estimators=4, random_state=0, bootstrap="poisson")
    in_memory.fit(frame.drop(columns="label"), frame["label"])
    assert same(fit(table), in_memory)


def test_a_change_while_it_is_read_is_noticed_though_the_time_is_set_back(
    tmp_path, monkeypatch
):
    from damvi.outofcore import training

    path = tmp_path / "t.parquet"
    frame_of(400).to_parquet(path, compression="none")
    work = training._find_bins

    def change_first(*given):
        before = os.stat(path)
        time.sleep(0.02)
        path.write_bytes(path.read_bytes())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return work(*given)

    monkeypatch.setattr(training, "_find_bins", change_first)
    with pytest.raises(ValueError, match="changed while it was read"):
        fit(path)


def test_a_thread_that_maps_does_not_move_where_another_writes(tmp_path, monkeypatch):
    """A part was written at the end of the file, where a look at its size had left off."""
    cache = BinCache(tmp_path / "bins", "key", [0, 8, 16], 3)
    write, looks = os.write, []

    def write_late(file, data):
        looks.append(threading.Thread(target=lambda: cache.codes.sum()))
        looks[-1].start()
        looks[-1].join(0.05)
        return write(file, data)

    monkeypatch.setattr(caches.os, "write", write_late)
    codes = np.arange(1, 25, dtype=np.uint8).reshape(8, 3)
    cache.write(0, codes, np.arange(8, dtype=np.uint64))
    for look in looks:
        look.join()
    assert np.array_equal(cache.codes[:8], codes)
    assert np.array_equal(cache.hashes[:8], np.arange(8))
    assert (tmp_path / "bins" / "codes").stat().st_size == 48


def test_files_that_moved_are_known_by_what_is_in_them(table, tmp_path):
    path = tmp_path / "t.parquet"
    digest = table.digest()
    other = path.rename(tmp_path / "other.parquet")
    assert ParquetTable(other).digest() == digest == ParquetTable(other).digest(n_jobs=2)
    change(other, 100)
    assert ParquetTable(other).digest() != digest


def test_large_files_are_read_piece_by_piece(table, monkeypatch):
    seen = set()
    for piece in (2**10, 2**12):
        monkeypatch.setattr("damvi.outofcore.parquet.PIECE", piece)
        monkeypatch.setattr("damvi.outofcore.parquet.READ", 100)
        seen.add(table.digest())
        change(Path(table.path), 3000)
        assert table.digest() not in seen
        change(Path(table.path), 3000)
    assert len(seen) == 2


@posix
def test_links_in_a_folder_for_bins_are_not_followed(table, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in ("codes", "lock", "key", "bins"):
        folder = tmp_path / f"bins of {name}"
        folder.mkdir()
        (folder / name).symlink_to(precious)
        trap = ParquetTable(table.path, cache=folder)
        if name in ("lock", "key"):
            with pytest.raises(PermissionError, match="is a link, or owned by another"):
                fit(trap)
        else:  # removed, and not written through
            fit(trap)
        assert precious.read_text() == "precious"


@posix
def test_files_of_another_user_are_not_used(table, tmp_path, monkeypatch):
    fit(table)
    os.link(tmp_path / "bins" / "codes", tmp_path / "another name")
    with pytest.raises(PermissionError, match="another user"):
        fit(table)


@posix
@pytest.mark.parametrize("trap", ["link", "open", "file"])
def test_a_folder_that_another_user_put_there_is_passed_over(temporary, tmp_path, trap):
    key = "a" * 64
    squatted = caches._temporary(key)
    assert squatted.parent == temporary
    if trap == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        squatted.symlink_to(tmp_path / "theirs")
    elif trap == "open":
        squatted.mkdir()
        squatted.chmod(0o770)
    else:
        squatted.write_text("theirs")
    cache = BinCache(None, key, (0, 10), 2)
    assert cache.folder == squatted.with_name(f"{squatted.name}-1")
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    if trap == "link":
        assert not any((tmp_path / "theirs").iterdir())


@posix
def test_where_all_names_are_taken_a_new_one_is_made(temporary, monkeypatch):
    monkeypatch.setattr(caches, "MOST_SQUATTED", 3)
    key = "a" * 64
    for number in ("", "-1", "-2"):
        (temporary / f"{caches._temporary(key).name}{number}").write_text("theirs")
    cache = BinCache(None, key, (0, 10), 2)
    assert cache.folder.name not in {f"{caches._temporary(key).name}-{n}" for n in range(9)}


def test_what_a_kill_left_and_nobody_will_look_for_is_removed(temporary):
    cache = BinCache(None, "a" * 64, (0, 10), 2)
    resumable = BinCache(None, "b" * 64, (0, 10), 2)
    cache.removed_when_unused()
    folder, cache._to_remove[:] = cache.folder, []  # as if killed before it could
    BinCache(None, "c" * 64, (0, 10), 2)
    assert folder.exists()  # it is in use
    del cache
    BinCache(None, "d" * 64, (0, 10), 2)
    assert not folder.exists()
    assert resumable.folder.exists()
    _files.discarded(folder)


def test_temporary_bins_go_when_a_command_is_ended_by_force(temporary):
    cache = BinCache(None, "a" * 64, (0, 10), 2)
    cache.removed_when_unused()
    _files.remove_parts()
    assert not any(temporary.iterdir())


def test_a_fit_without_the_calls_of_posix(table, temporary, monkeypatch):
    """Windows, as far as it can be had here."""
    usual = fit(table)
    for name in ("fchmod", "fchown", "geteuid", "getuid", "pwrite", "fork", "O_NOFOLLOW"):
        monkeypatch.delattr(os, name, raising=False)
    for module in (_files, caches):
        monkeypatch.setattr(module, "NO_LINKS", 0)
    monkeypatch.setattr(_files, "fcntl", None)
    assert same(fit(ParquetTable(table.path)), usual)
    assert not any(temporary.iterdir())
