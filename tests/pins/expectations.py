"""What is kept of a walk: whole numbers exactly, of real ones some and two means.

A walk through models of other libraries is kept by its decisions alone.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from .walks import Walk

FILE = Path(__file__).with_name("expected.json")
TOLERANCE = 1e-9
SAMPLES = 8
"""Real numbers kept of an array; all the others are in the two means."""
MOST_CHANGED = 0.02
"""Share of the decisions of other libraries' models that may change."""

Kept = dict[str, Any]


def kept_of(walk: Walk) -> Kept:
    """What to keep of a walk, ready for JSON."""
    found = walk.run()
    if walk.kept == "decisions":
        return {
            name: "".join(map(str, np.asarray(values).tolist()))
            for name, values in found.items()
            if name.rpartition("/")[2] == "decisions"
        }
    return {name: _kept(np.asarray(values)) for name, values in found.items()}


def _kept(values: Any) -> Any:
    shape = "x".join(map(str, values.shape))
    if values.dtype.kind in "biu":
        whole = np.ascontiguousarray(values, dtype="<i8")
        return f"{shape} {hashlib.sha256(whole.tobytes()).hexdigest()[:16]}"
    if values.dtype.kind != "f":
        raise TypeError(f"nothing to keep of {values.dtype}")
    flat = values.astype(np.float64).ravel()
    places = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).round().astype(int)
    real = np.isfinite(flat)
    alternating = np.where(np.arange(flat.size) % 3 == 1, -1.0, 1.0)
    means = [flat[real].mean(), (alternating * flat)[real].mean()] if real.any() else []
    numbers = [float(f"{value:.12g}") for value in (*means, *flat[places])]
    return [shape, int(real.sum()), *numbers]


def differences(expected: Kept, walk: Walk) -> list[str]:
    """What has changed, in words."""
    found = kept_of(walk)
    told = [f"{name} is missing" for name in expected.keys() - found.keys()]
    told += [f"{name} is new" for name in found.keys() - expected.keys()]
    for name in sorted(expected.keys() & found.keys()):
        before, now = expected[name], found[name]
        if walk.kept == "decisions":
            changed = sum(a != b for a, b in zip(before, now, strict=True))
            if changed > MOST_CHANGED * len(before):
                told.append(f"{name}: {changed} of {len(before)} decisions differ")
        elif isinstance(before, str) or isinstance(now, str) or before[:2] != now[:2]:
            if before != now:
                told.append(f"{name}: {before} has become {now}")
        elif not np.allclose(before[2:], now[2:], TOLERANCE, TOLERANCE, equal_nan=True):
            gap = np.abs(np.subtract(before[2:], now[2:]))
            told.append(f"{name} differs by up to {np.nanmax(gap):.3g}")
    return told


def load() -> dict[str, Kept]:
    """The expectations of all walks."""
    kept: dict[str, Kept] = json.loads(FILE.read_text())
    return kept


def store(walks: dict[str, Walk]) -> None:
    """Write them, an array a line, so that a change shows what has changed."""
    lines = []
    for title, walk in walks.items():
        kept = kept_of(walk)
        inner = ",\n".join(f'"{name}": {json.dumps(kept[name])}' for name in kept)
        lines.append(f'"{title}": {{\n{inner}\n}}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
