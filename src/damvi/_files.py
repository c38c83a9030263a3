"""Atomic file writes, safe against concurrent writers and killed processes.

A file is written next to its target under a random name, ``.NAME.<16 hex digits>.part``,
flushed to disk, and then renamed to the target. The part is locked while it is written, so
that one left by a killed process can be told from one in use; the next writer of the same
target removes it.
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
    if os.name == "nt":  # where open files cannot be removed
        import msvcrt
    else:
        import fcntl  # not available in the browser

# Not available everywhere. Without O_BINARY, Windows would translate line endings.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
MOST_LINKS = 40
LONGEST_NAME = 200
"""Maximum bytes of the name in a part's name; file systems allow 255 in all."""

_parts: set[Path] = set()
"""Parts being written by this process, and its temporary folders."""


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file atomically."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` once it is completely written.

    Links are followed, and their target is replaced. An existing file keeps its
    permissions; a new one gets the process's defaults.
    """
    target = _followed(Path(path))
    before = _status(target)
    _remove_abandoned(target)
    try:
        file, part, lock = _open_part(target, before)
    except OSError as error:
        error.filename = os.fspath(path)  # the name that the user passed
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
    """Raise an OSError if no file can be written to this path."""
    target = _followed(Path(path))
    file, part, lock = _open_part(target, _status(target))
    file.close()
    part.unlink(missing_ok=True)
    _parts.discard(part)
    unlock(lock)


def remove_at_end(path: Path) -> None:
    """Remove a file or folder when this process ends, unless it is discarded before."""
    _parts.add(path)


def discarded(path: Path) -> None:
    """Record that a file or folder is gone."""
    _parts.discard(path)


def remove_parts() -> None:
    """Remove unfinished files of this process, before it is forced to end."""
    for part in list(_parts):
        with suppress(OSError):
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink()


def lock_file(file: int, shared: bool = False) -> bool | None:
    """Lock an open file; True if locked, False if another process holds the lock.

    None if locks are not supported, as on some systems and disks. Windows has no shared
    locks: a second reader is refused there.
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
    """Close the file that holds a lock, if there is one."""
    if lock is not None:
        os.close(lock)


def is_private(folder: Path) -> bool:
    """Whether it is a folder of ours that nobody else can write to."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True  # Windows has a temporary folder per user
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0


def _followed(path: Path) -> Path:
    """Resolve links, if we or the folder's owner created them.

    Linux enforces the same in world-writable folders, but here links are read, not opened,
    so it must be checked.
    """
    path = path.absolute()
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            status = _status(path)
            if status is not None and not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise OSError(errno.EINVAL, f"is {kind}; pass a file", str(path))
            return path
        if hasattr(os, "geteuid"):
            made_by = path.lstat().st_uid
            if made_by not in (os.geteuid(), path.parent.stat().st_uid):
                raise PermissionError(errno.EACCES, "is a link of another user", str(path))
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
    """Create a file next to the target; return it, its path, and its lock."""
    mode = 0o666 if before is None else 0o600  # no wider permissions than the old file
    while True:
        part = target.with_name(f"{_stem(target)}{secrets.token_hex(8)}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS
        _parts.add(part)  # before it exists, in case of a signal in between
        try:
            opened = os.open(part, flags, mode)
        except BaseException as error:
            _parts.discard(part)
            if isinstance(error, FileExistsError):
                continue
            raise
        if fcntl is None:
            return open(opened, "wb"), part, None
        # The copy holds the lock until the part has replaced the target.
        if lock_file(opened) is not False and os.fstat(opened).st_nlink:
            return open(opened, "wb"), part, os.dup(opened)
        os.close(opened)  # another process removed it as abandoned
        _parts.discard(part)


def _stem(target: Path) -> str:
    """Return the prefix of the names of a target's parts."""
    name = target.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


def _remove_abandoned(target: Path) -> None:
    """Remove parts of this target left by killed processes.

    Only our own, and only if they are not locked.
    """
    if fcntl is None:
        return
    ours = re.compile(re.escape(_stem(target)) + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # the folder cannot be listed
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
    """Restore owner and permissions; if the group cannot be kept, it gets no access."""
    if not hasattr(os, "fchown"):  # Windows has a different fchmod
        return
    mode, now = stat.S_IMODE(before.st_mode) & 0o777, os.fstat(file)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(file, before.st_uid, before.st_gid)
        except OSError:
            mode &= ~0o070 | (mode & 0o007) << 3
    os.fchmod(file, mode)


def _bring_to_disk(folder: Path) -> None:
    """Flush the new name too, where folders can be opened."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
