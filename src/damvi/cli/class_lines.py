"""The classes of a model file, a line each."""

from __future__ import annotations

from typing import Any

MOST_CLASSES = 20
"""Classes shown; all are in the JSON."""


def class_lines(said: dict[str, Any]) -> list[str]:
    """Each class with its rows, the factor of its votes and its honest F1."""
    threshold = said["threshold"]
    tuning, factors = threshold["tuning"], threshold["value"]
    counts = said.get("target", {}).get("classes")
    labels = [str(label) for label in said["classes"]]
    if counts:
        labels = [one["label"] for one in counts]
    cells = []
    for place, label in enumerate(labels):
        row = [label, f"{counts[place]['rows']:,} rows"] if counts else [label]
        row.append(f"factor {factors[place]:.3g}")
        if tuning:
            row.append(f"F1 {tuning['honest_f1'][place]:.3g}")
        cells.append(row)
    shown = cells[:MOST_CLASSES]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    if len(cells) > len(shown):
        lines.append(f"and {len(cells) - len(shown)} more")
    lines.append("the largest vote times factor decides")
    if tuning:
        lines.append(
            f"tuned for {threshold['tuned_for']}: {tuning['honest_value']:.3g} on rows not "
            f"tuned on"
        )
    else:
        lines.append("the factors are not tuned")
    return lines
