"""Files that are there whole or not at all, whoever else writes and whenever we are ended.

A file is written beside its target under a random name, ``.NAME.<16 hex digits>.part``,
brought to the disk, and then takes the target's place in one step. The part is locked while
it is written, so that one left by a process that was killed can be told from one in use: it
is removed by whoever writes the same target next.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

msvcrt: Any = None
fcntl: Any = None
with suppress(ImportError):
    if os.name == "nt":  # where what is open cannot be removed
        import msvcrt
    else:
        import fcntl  # not where Python runs in a browser

# Not every system has these. Windows would write other line ends without O_BINARY.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
MOST_LINKS = 40
LONGEST_NAME = 200
"""Bytes of a name that leave room for what is added to it; file systems take 255."""

_parts: set[Path] = set()
"""What this process is writing, and temporary folders of its own."""


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that it is never seen half written."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """An open file that takes its place under ``path`` once all is written.

    A link is followed, and what it points to is written anew. A file that was there keeps
    its permissions; a new one gets those that the process gives to new files.
    """
    target = _followed(Path(path))
    before = _status(target)
    _remove_abandoned(target)
    try:
        file, part, lock = _open_part(target, before)
    except OSError as error:
        error.filename = os.fspath(path)  # the name that the user knows
        raise
    try:
        with file:
            yield file
            file.flush()
            if before is not None:
                _keep_permissions(file.fileno(), before)
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)
        unlock(lock)
    _bring_to_disk(target.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """An OSError if no file can be written to this place."""
    target = _followed(Path(path))
    file, part, lock = _open_part(target, _status(target))
    file.close()
    part.unlink(missing_ok=True)
    _parts.discard(part)
    unlock(lock)


def remove_at_end(path: Path) -> None:
    """A file or folder that goes with this process, if it is not discarded before."""
    _parts.add(path)


def discarded(path: Path) -> None:
    """It is gone."""
    _parts.discard(path)


def remove_parts() -> None:
    """Remove what this process is writing; for the moment before it ends by force."""
    for part in list(_parts):
        with suppress(OSError):
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink()


def lock_file(file: int, shared: bool = False) -> bool | None:
    """Whether an open file is now ours alone; False if another has it.

    None where there are no such locks, on some systems and some disks. Windows has none
    that are shared: a second reader is refused there.
    """
    try:
        if fcntl is not None:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            return None
    except (BlockingIOError, PermissionError):  # the latter on Windows
        return False
    except OSError:
        return None
    return True


def unlock(lock: int | None) -> None:
    """Close what holds a lock, if there is one."""
    if lock is not None:
        os.close(lock)


def is_private(folder: Path) -> bool:
    """Whether it is a folder of ours, into which nobody else can put anything."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True  # a user's folder for temporary files is their own there
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0


def _followed(path: Path) -> Path:
    """What a path means: links are followed if we, or the folder's owner, made them.

    So does Linux in folders that all may write to; here links are read, not opened, so the
    system does not see to it.
    """
    path = path.absolute()
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            status = _status(path)
            if status is not None and not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
                raise OSError(errno.EINVAL, f"is {kind}; name a file", str(path))
            return path
        if hasattr(os, "geteuid"):
            made_by = path.lstat().st_uid
            if made_by not in (os.geteuid(), path.parent.stat().st_uid):
                raise PermissionError(errno.EACCES, "is another user's link", str(path))
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _open_part(
    target: Path, before: os.stat_result | None
) -> tuple[IO[bytes], Path, int | None]:
    """A new file beside the target, its path, and what locks it until it is closed."""
    mode = 0o666 if before is None else 0o600  # of no more people than the old one
    while True:
        part = target.with_name(f"{_stem(target)}{secrets.token_hex(8)}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS
        _parts.add(part)  # before it is there, lest a signal comes in between
        try:
            opened = os.open(part, flags, mode)
        except BaseException as error:
            _parts.discard(part)
            if isinstance(error, FileExistsError):
                continue
            raise
        if fcntl is None:
            return open(opened, "wb"), part, None
        # The copy holds the lock until the part has taken its place.
        if lock_file(opened) is not False and os.fstat(opened).st_nlink:
            return open(opened, "wb"), part, os.dup(opened)
        os.close(opened)  # somebody took it for abandoned, and removed it
        _parts.discard(part)


def _stem(target: Path) -> str:
    """What the names of a target's parts begin with."""
    name = target.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


def _remove_abandoned(target: Path) -> None:
    """Remove parts of this target that processes left when they were killed.

    Only our own, and only if nobody has them locked.
    """
    if fcntl is None:
        return
    ours = re.compile(re.escape(_stem(target)) + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # a folder that cannot be listed
        for name in [name for name in os.listdir(target.parent) if ours.fullmatch(name)]:
            with suppress(OSError):
                _remove_if_abandoned(target.with_name(name))


def _remove_if_abandoned(part: Path) -> None:
    opened = os.open(part, os.O_RDWR | os.O_NONBLOCK | NO_LINKS)
    try:
        status = os.fstat(opened)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
    finally:
        os.close(opened)


def _keep_permissions(file: int, before: os.stat_result) -> None:
    """Owner and permissions as they were; a group that cannot be kept gets no more."""
    if not hasattr(os, "fchown"):  # Windows has an fchmod of its own kind
        return
    mode, now = stat.S_IMODE(before.st_mode) & 0o777, os.fstat(file)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(file, before.st_uid, before.st_gid)
        except OSError:
            mode &= ~0o070 | (mode & 0o007) << 3
    os.fchmod(file, mode)


def _bring_to_disk(folder: Path) -> None:
    """The new name too, where folders can be opened."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
