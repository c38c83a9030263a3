"""How to repeat what the page shows."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from ..fingerprint import row_prints
from ..io import library_versions
from .material import Gathered


def how_to_repeat(material: Gathered, command: str) -> dict[str, Any]:
    """Command, data fingerprint, versions, and how the model was made."""
    judged = material.judged
    signs = np.zeros(len(judged)) if judged.truth is None else judged.truth
    return {
        "command": command,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "fingerprint": table_print(row_prints(material.X, np.asarray(signs))),
        "versions": library_versions(set()),
        "model": material.model.made,
    }


def table_print(prints: Any) -> str:
    """One short text for all rows, whatever their order.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.repeat import table_print
    >>> table_print(np.array([2, 1], np.uint64)) == table_print(np.array([1, 2], np.uint64))
    True
    """
    return sha256(np.sort(prints).astype("<u8").tobytes()).hexdigest()[:16]
