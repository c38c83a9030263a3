"""The store: whole cells or none, one writer, one protocol."""

import errno
import json
import os

import pytest

from benchmarks.paper import store as module
from benchmarks.paper.store import CELLS, Store, read_cells

A, B = {"key": "a", "f1": 0.5, "note": "é\n"}, {"key": "b", "f1": None}
PROTOCOL = {"splits": "random"}


def test_cells_come_back_and_the_last_of_a_key_counts(tmp_path):
    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
        store.add(B)
        store.add({**A, "f1": 0.7})
    assert read_cells(tmp_path) == [{**A, "f1": 0.7}, B]
    assert read_cells(tmp_path / "nowhere") == []


def test_a_file_cut_anywhere_gives_whole_cells_and_can_be_written_on(tmp_path):
    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
        store.add(B)
    whole = (tmp_path / CELLS).read_bytes()
    ends = [whole.index(b"\n") + 1, len(whole)]
    for cut in range(len(whole) + 1):
        (tmp_path / CELLS).write_bytes(whole[:cut])
        expected = [A, B][: sum(cut >= end for end in ends)]
        assert read_cells(tmp_path) == expected
        with Store(tmp_path, PROTOCOL) as store:
            store.add({"key": "c"})
        assert read_cells(tmp_path) == [*expected, {"key": "c"}]


@pytest.mark.parametrize("junk", [b"\x00" * 50, b"{}\n", b'{"key": \n', b"\xff\xfe\n"])
def test_junk_at_the_end_is_no_cell(tmp_path, junk):
    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
    with open(tmp_path / CELLS, "ab") as file:
        file.write(junk)
    assert read_cells(tmp_path) == [A]
    with Store(tmp_path, PROTOCOL) as store:
        store.add(B)
    assert read_cells(tmp_path) == [A, B]


def test_a_full_disk_loses_nothing_and_says_what_to_do(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
        with monkeypatch.context() as patch:
            patch.setattr(module.os, "fsync", full)
            with pytest.raises(OSError, match=r"No space left.*run the same command again"):
                store.add(B)
        assert read_cells(tmp_path) == [A]
        store.add(B)
    assert read_cells(tmp_path) == [A, B]


def test_a_second_writer_is_refused(tmp_path):
    with (
        Store(tmp_path, PROTOCOL),
        pytest.raises(BlockingIOError, match="another benchmark is writing"),
        Store(tmp_path, PROTOCOL),
    ):
        pass
    with Store(tmp_path, PROTOCOL):
        pass


def test_a_folder_of_another_protocol_is_refused(tmp_path):
    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
    with (
        pytest.raises(ValueError, match=r"another protocol.*stratified"),
        Store(tmp_path, {"splits": "stratified"}),
    ):
        pass
    (tmp_path / "protocol.json").write_text("{half")
    with pytest.raises(ValueError, match="another protocol"), Store(tmp_path, PROTOCOL):
        pass
    os.remove(tmp_path / "protocol.json")
    with pytest.raises(ValueError, match=r"no protocol\.json"), Store(tmp_path, PROTOCOL):
        pass
    assert read_cells(tmp_path) == [A]


@pytest.mark.parametrize("junk", [b"<<<<<<< HEAD\n", b"\n", b"5\n", b'"key"\n'])
def test_junk_between_cells_costs_no_cell(tmp_path, junk):
    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
    with open(tmp_path / CELLS, "ab") as file:
        file.write(junk)
    with open(tmp_path / CELLS, "ab") as file:
        file.write(json.dumps(B).encode() + b"\n")
    assert read_cells(tmp_path) == [A, B]
    with Store(tmp_path, PROTOCOL) as store:
        store.add({"key": "c"})
    assert read_cells(tmp_path) == [A, B, {"key": "c"}]


@pytest.mark.skipif(os.name != "posix", reason="it has no limits of a process")
def test_a_disk_that_takes_part_of_a_line(tmp_path):
    import resource
    import signal

    with Store(tmp_path, PROTOCOL) as store:
        store.add(A)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, limits[1]))
        try:
            with pytest.raises(OSError, match="run the same command again"):
                store.add({**B, "note": "x" * 100})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert read_cells(tmp_path) == [A]
        store.add(B)
    assert read_cells(tmp_path) == [A, B]
