"""The data at a glance: what each column of the user's table holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from .material import Gathered


def describe_columns(material: Gathered) -> list[dict[str, Any]]:
    """For each column of the model's schema: kind, gaps, and its values in a few words."""
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "reason": column.reason,
            **_values(material.frame, column.name),
        }
        for column in material.model.schema.columns
    ]


def short(value: float) -> str:
    """A number as people write it, without false precision.

    Examples
    --------
    >>> short(0.330437), short(284806.0), short(2.5e17)
    ('0.3304', '284,806', '2.5e+17')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def _values(frame: Any, name: str) -> dict[str, Any]:
    if name not in frame.columns:
        return {"missing": None, "values": "not in this table"}
    column = frame[name]
    missing = float(column.isna().mean()) if len(column) else 0.0
    there = column.dropna()
    if not len(there):
        return {"missing": missing, "values": "none"}
    if there.dtype.kind in "iuf":
        low, middle, high = map(short, np.quantile(there.to_numpy(), [0, 0.5, 1]))
        return {"missing": missing, "values": f"{low} to {high}, half below {middle}"}
    if there.dtype.kind == "M":
        return {"missing": missing, "values": f"{there.min()} to {there.max()}"}
    counts = there.astype(str).value_counts()
    top = ", ".join(str(value)[:30] for value in counts.index[:3])
    more = f" and {len(counts) - 3:,} more" if len(counts) > 3 else ""
    return {"missing": missing, "values": f"{top}{more}"}
