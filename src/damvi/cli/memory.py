"""How much memory there is for a process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container says how much it may have."""


def memory() -> int | None:
    """Bytes of the machine, or of the container; None where that cannot be known."""
    found = []
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            found.append(int(Path(path).read_text()))
    return min(found, default=None)
