"""Whole files: the old one or the new one, never a half, whoever writes and whenever."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from damvi import _files as module
from damvi._files import check_writable, lock_file, remove_parts, whole_file, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def names(folder):
    return sorted(os.listdir(folder))


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_whole_files_replace_and_leave_no_parts(tmp_path, monkeypatch):
    write_whole(tmp_path / "x.json", json.dumps([1]))
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_whole(tmp_path / "x.json", "half")
    assert names(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "[1]"


@posix
def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual_ones(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "x")
        for mode in (0o600, 0o644, 0o664, 0o400):
            path = tmp_path / f"{mode:o}"
            path.write_text("old")
            path.chmod(mode)
            with whole_file(path) as file:
                file.write(b"new")
                file.flush()
                (part,) = tmp_path.glob(".*.part")
                assert mode_of(part) == 0o600  # nobody reads it meanwhile
            assert (path.read_text(), mode_of(path)) == ("new", mode)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new") == 0o640


@posix
def test_a_group_that_cannot_be_kept_gets_no_more_than_others(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o664)
    status = os.stat(path)

    def of_another_group(path):
        return os.stat_result([*status[:5], status.st_gid + 1, *status[6:]])

    def refused(*_):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(module, "_status", of_another_group)
        patch.setattr(module.os, "fchown", refused)
        write_whole(path, "new")
    assert mode_of(path) == 0o644


@posix
def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    (tmp_path / "more").symlink_to("link")
    for content in ("first", "second"):  # a link to nothing, and one to a file
        write_whole(tmp_path / "more", content)
        assert (tmp_path / "there" / "file").read_text() == content
    assert (tmp_path / "more").is_symlink()
    assert names(tmp_path / "there") == ["file"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(tmp_path / "loop", "x")


@posix
def test_links_of_other_users_are_not_followed(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("precious")
    me = os.geteuid()
    monkeypatch.setattr(module.os, "geteuid", lambda: me + 1)
    status = type(tmp_path).stat

    def of_a_third(path, **options):
        found = status(path, **options)
        return os.stat_result([*found[:4], me + 2, *found[5:]])

    monkeypatch.setattr(type(tmp_path), "stat", of_a_third)
    monkeypatch.setattr(type(tmp_path), "lstat", lambda path: os.lstat(path))
    with pytest.raises(PermissionError, match="a link of another user"):
        write_whole(tmp_path / "link", "x")
    assert names(tmp_path) == ["link"]


@posix
def test_devices_and_folders_are_not_replaced(tmp_path):
    for path in ("/dev/null", tmp_path):
        for write in (check_writable, lambda path: write_whole(path, "x")):
            with pytest.raises(OSError, match="pass a file"):
                write(path)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_names_of_any_length_that_a_disk_takes(tmp_path):
    name = "ü" * 127 + "x"
    write_whole(tmp_path / name, "x")
    check_writable(tmp_path / name)
    assert names(tmp_path) == [name]


@posix
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "model.damvi"
    assert ProcessOf(KILLED, path).wait() == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(".model.damvi.")
    assert left.endswith(".part")
    for other in ("other", "model"):  # whose parts these are not
        write_whole(tmp_path / other, "x")
    assert left in names(tmp_path)
    with whole_file(path) as slow:
        write_whole(path, "quick")  # does not take the slow one's part for abandoned
        slow.write(b"slow")
    assert path.read_text() == "slow"
    assert names(tmp_path) == ["model", "model.damvi", "other"]


def test_parts_can_be_removed_before_a_process_ends_by_force(tmp_path):
    def end():
        with whole_file(tmp_path / "x"):
            assert len(names(tmp_path)) == 1
            remove_parts()

    with pytest.raises(FileNotFoundError):
        end()
    assert names(tmp_path) == []


def test_systems_without_the_calls_of_posix(tmp_path, monkeypatch):
    """Windows, as far as it can be had here."""
    taken = ["fchmod", "fchown", "geteuid", "getuid", "pwrite", "fork", "O_NOFOLLOW"]
    for name in [*taken, "O_NONBLOCK"]:
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(module, "fcntl", None)
    monkeypatch.setattr(module, "NO_LINKS", 0)
    path = tmp_path / "x"
    for content in ("old", "new"):
        write_whole(path, content)
        assert path.read_text() == content
    check_writable(path)
    assert names(tmp_path) == ["x"]
    locked = []

    class Locks:
        LK_NBLCK = 2

        @staticmethod
        def locking(file, kind, size):
            if locked:
                raise PermissionError(13, "Permission denied")
            locked.append(file)

    with path.open("rb+") as file:
        assert lock_file(file.fileno()) is None
        monkeypatch.setattr(module, "msvcrt", Locks)
        assert lock_file(file.fileno()) is True
        assert lock_file(file.fileno()) is False


@pytest.mark.slow
def test_two_threads_that_save_to_one_path(tmp_path):
    def start(*given):
        thread = threading.Thread(target=write_for_a_second, args=given)
        thread.start()
        return thread

    check_writers(tmp_path, start)


def test_two_processes_of_one_number_that_save_to_one_path(tmp_path):
    check_writers(tmp_path, partial(ProcessOf, SAME_NUMBER))


def write_for_a_second(path, number):
    until = time.monotonic() + 1
    while time.monotonic() < until:
        write_whole(path, bytes([number]) * 300_000)


def check_writers(folder, start):
    """Every load sees a whole file, which is what one of the writers wrote."""
    path = folder / "x"
    contents = [bytes([number]) * 300_000 for number in (1, 2, 3)]
    path.write_bytes(contents[0])
    writers = [start(path, number) for number in (2, 3)]
    seen = set()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert content in contents
        seen.add(content)
    for writer in writers:
        writer.join()
    assert seen >= set(contents[1:])
    assert names(folder) == ["x"]


class ProcessOf(subprocess.Popen):
    """A process with the module and nothing else, and what a thread is asked."""

    def __init__(self, code, *given):
        words = [sys.executable, "-c", IMPORT + code, module.__file__, *map(str, given)]
        super().__init__(words)

    def is_alive(self):
        return self.poll() is None

    def join(self):
        assert self.wait() == 0


IMPORT = """
import os, runpy, sys, time
module = runpy.run_path(sys.argv[1])
path = sys.argv[2]
"""
KILLED = """
with module["whole_file"](path) as file:
    file.write(b"half")
    os.kill(os.getpid(), 9)
"""
SAME_NUMBER = """
os.getpid = lambda: 1  # as in containers
until = time.monotonic() + 1
while time.monotonic() < until:
    module["write_whole"](path, bytes([int(sys.argv[3])]) * 300_000)
"""


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    target = tmp_path / "missing" / "report.html"
    with (
        pytest.raises(OSError, match=r"report\.html") as raised,
        whole_file(target) as file,
    ):
        file.write(b"x")
    assert ".part" not in str(raised.value)
