"""Downloads into the cache: whole or not at all, and tried again when the line drops."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from .cache import cache_dir, expect, intact, seal, set_aside, write
from .downloads import Download
from .files import need

ATTEMPTS = 3
PAUSE = 2.0
TIMEOUT = 30


def obtain(download: Download) -> Path:
    """Return the file of a download from the cache, fetching it when it is not there."""
    path = cache_dir() / "downloads" / download.file
    cure = f"Run again to fetch it anew from {download.url}"
    if path.is_file() and (intact(path) or not seal(path).is_file()):
        # Without a seal it was placed by hand, which is welcome.
        expect(path, download.sha256, cure)
        return path
    if path.is_file():
        set_aside(path)
    failure: Exception | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * attempt)
        try:
            write(path, lambda part: _download(download.url, part))
        except ImportError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                # Of this machine: a full disk, a folder that may not be written.
                raise
            failure = error
            response = getattr(error, "response", None)
            if response is not None:
                # A refusal leaves the connection open, and nobody else to close it.
                response.close()
                if 400 <= response.status_code < 500:
                    break
        else:
            expect(path, download.sha256, cure)
            return path
    reason = " ".join(str(failure).split())
    raise ConnectionError(
        f"{download.url} could not be fetched: {reason}. Try again, or download it by hand "
        f"and put it there: {path}"
    ) from failure


def _download(url: str, part: Path) -> None:
    pooch = need("pooch")
    with _Bar(url) as bar:
        progress = bar if sys.stderr.isatty() else False
        get = pooch.HTTPDownloader(
            progressbar=progress, chunk_size=1 << 16, timeout=TIMEOUT
        )
        get(url, str(part), None)


class _Bar:
    """A progress bar of rich's, as pooch drives one."""

    def __init__(self, url: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TransferSpeedColumn as Speed

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            Speed(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(url.rsplit("/", 1)[-1], total=None)
        self.total = 0

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.stop()

    def update(self, size: int) -> None:
        self._bar.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        self._bar.reset(self._task)

    def close(self) -> None:
        self._bar.stop()
