"""File operations of a process, counted; at the n-th one something goes wrong."""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PATHS = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "symlink")
FILES = ("write", "fsync", "ftruncate", "fchmod", "fchown")
TAKES_ROOM = {"open", "write", "fsync", "ftruncate", "mkdir"}

HOWS = ("kill", "torn", "terminate", "full", "read-only")
"""What goes wrong: kill -9 before the operation, or half way through a write; SIGTERM; a
disk that is full, or read-only, from then on."""


class Operations:
    """The operations so far, by name, and what is done at one of them.

    Parameters
    ----------
    folder : str
        Operations on paths elsewhere are not counted.
    how : str, optional
        One of ``HOWS``; without it operations are only counted.
    at : int, default=0
        At which operation, from 1.
    """

    def __init__(self, folder: str, how: str | None = None, at: int = 0) -> None:
        self.folder, self.how, self.at = folder, how, at
        self.seen: list[str] = []

    def __call__(self, name: str, tear: Callable[[], object] = lambda: None) -> None:
        """One more; ``tear`` does half of it."""
        self.seen.append(name)
        now = len(self.seen)
        if self.how in ("kill", "torn", "terminate") and now == self.at:
            if self.how == "torn":
                tear()
            stopping = signal.SIGTERM if self.how == "terminate" else signal.SIGKILL
            os.kill(os.getpid(), stopping)
        if now < self.at:
            return
        if self.how == "full" and name in TAKES_ROOM:
            if now == self.at:
                tear()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.how == "read-only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def _counts(self, path: Any, options: dict[str, Any]) -> bool:
        if options.get("dir_fd") is not None or isinstance(path, int):
            return True
        return os.path.abspath(os.fsdecode(path)).startswith(self.folder)

    def watch(self) -> None:
        """From here on, in this process."""
        for name in PATHS:
            setattr(os, name, self._on_path(name, getattr(os, name)))
        for name in FILES:
            setattr(os, name, self._on_file(name, getattr(os, name)))
        opened, operations = os.open, self

        def counted_open(path: Any, flags: int, *given: Any, **options: Any) -> int:
            if flags & WRITES and operations._counts(path, options):
                operations("open")
            return opened(path, flags, *given, **options)

        os.open = counted_open

        class Raw(io.FileIO):
            def write(self, content: Any) -> Any:
                half = bytes(content)[: len(content) // 2]
                operations("write", lambda: io.FileIO.write(self, half))
                return super().write(content)

        usual = io.open

        def counted_io_open(
            file: Any, mode: str = "r", buffering: int = -1, *given: Any, **options: Any
        ) -> Any:
            if not set(mode) & set("wax+") or not operations._counts(file, {}):
                return usual(file, mode, buffering, *given, **options)
            if not isinstance(file, int):
                operations("open")
            raw = Raw(file, mode.replace("b", "").replace("t", ""))
            if buffering == 0:
                return raw
            buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
            if "b" in mode:
                return buffered
            return io.TextIOWrapper(buffered, *given, **options)

        io.open = builtins.open = counted_io_open

    def _on_path(self, name: str, usual: Any) -> Any:
        def counted(path: Any, *given: Any, **options: Any) -> Any:
            if self._counts(path, options):
                self(name)
            return usual(path, *given, **options)

        return counted

    def _on_file(self, name: str, usual: Any) -> Any:
        def counted(file: int, *given: Any) -> Any:
            def tear() -> None:
                if name == "write":
                    usual(file, bytes(given[0])[: len(given[0]) // 2])

            self(name, tear)
            return usual(file, *given)

        return counted
