"""What reports share: paired differences, tables in Markdown, and pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from damvi._files import write_whole


def paired(differences: np.ndarray) -> tuple[float, float]:
    """Mean and standard error, which is NaN for a single pair."""
    n = len(differences)
    error = differences.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return float(differences.mean()), float(error)


def plus_minus(mean: float, error: float) -> str:
    return f"{mean:+.4f}" + ("" if np.isnan(error) else f" ± {error:.4f}")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [*(f"| {' | '.join(row)} |" for row in lines), ""]


def beside(
    cells: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]],
    base_of: Callable[[str], str],
) -> list[str]:
    """A table of what was tried on some datasets: means, and differences from a base.

    ``cells`` has the scores by what was tried and dataset, one for each split. Differences
    are paired, with their standard errors over datasets.
    """

    def means(tried: str, name: str) -> np.ndarray:
        own = cells[tried]
        return np.array([np.mean([c[name] for c in own[dataset]]) for dataset in own])

    rows = []
    for tried in cells:
        row, base = [tried], base_of(tried)
        for name in ("ap", "f1", "log_loss"):
            found = means(tried, name)
            row.append(f"{found.mean():.4f}")
            if tried != base:
                row[-1] += f" ({plus_minus(*paired(found - means(base, name)))})"
        rows.append([*row, f"{means(tried, 'seconds').mean():.1f}"])
    return markdown(["", "AP", "F1", "log loss", "CPU s"], rows)


def draw(folder: Path, name: str, make: Callable[[], Any], words: str) -> list[str]:
    """A picture for the report, or why there is none."""
    try:
        figure = make()
    except ImportError as error:
        return [f"{name}.png was not drawn: {error.name} is not installed.", ""]
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=160)
    write_whole(folder / f"{name}.png", out.getvalue())
    return [f"![{words}]({name}.png)", "", words, ""]
