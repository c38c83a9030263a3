"""The text that comes with a dataset: its size, beside what the paper prints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def describe(
    title: str,
    data: NDArray[np.float64],
    target: NDArray[np.int8],
    paper: dict[str, Any] | None,
    notes: list[str],
) -> str:
    """Return a description: rows, attributes, positives, imbalance ratio, notes."""
    rows, positives = len(target), int(target.sum())
    ours = {
        "rows": f"{rows:,}",
        "attributes": f"{data.shape[1]:,}",
        "positives": f"{positives:,} ({positives / rows:.2%})",
        "imbalance ratio": f"{(rows - positives) / positives:,.1f}",
    }
    theirs: dict[str, str] = {}
    if paper is not None:
        percent = float(paper["percent"])
        theirs = {
            "rows": f"{paper['rows']:,}",
            "attributes": f"{paper['attributes']:,}",
            "positives": f"about {paper['rows'] * percent / 100:,.0f} ({percent:.2f}%)",
            "imbalance ratio": f"{100 / percent - 1:,.1f}",
        }
    lines = [title, ""]
    if theirs:
        lines.append(f"{'':16}{'here':>18}{'in the paper':>20}")
    lines += [
        f"{what:16}{value:>18}{theirs.get(what, ''):>20}".rstrip()
        for what, value in ours.items()
    ]
    missing = int(np.isnan(data).sum())
    if missing:
        lines.append(f"{'missing values':16}{missing / data.size:>17.1%}")
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"
