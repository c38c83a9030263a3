"""A file of any kind as features, target and groups, with notes on what was done."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tables import binary, pick
from ..tables import read_table as read_file
from .columns import as_numbers


class Contents(NamedTuple):
    """What a file holds, by the names that ``load`` gives it."""

    data: NDArray[Any]
    target: NDArray[np.int8]
    feature_names: list[str]
    groups: NDArray[Any] | None
    notes: list[str]


def read_table(
    path: Path,
    target: str | None = None,
    positive: Any = None,
    groups: str | None = None,
    keep_constant: bool = False,
) -> Contents:
    """Read a file; the parameters are those of ``load``."""
    frame = read_file(path)
    notes: list[str] = []
    if target is None:
        target = "target"
        if target not in frame:
            columns = ", ".join(map(repr, frame.columns[:20]))
            more = " and more" if frame.shape[1] > 20 else ""
            raise ValueError(
                f"say which column of {path} to predict, with target=...; it has "
                f"{columns}{more}"
            )
    if groups == target:
        raise ValueError(f"the target {target!r} cannot say which rows belong together")
    y, kept = binary(pick(frame, target, "target"), positive, notes)
    together = _groups(path, frame, groups)
    aside = [target, groups] if groups else [target]
    X, names = as_numbers(frame.loc[kept].drop(columns=aside), notes, keep_constant)
    return Contents(X, y, names, None if together is None else together[kept], notes)


def _groups(path: Path, frame: Any, column: str | None) -> NDArray[Any] | None:
    """Return a column of the table, or the blocks in a file beside it, if there is one."""
    if column is not None:
        values = pick(frame, column, "group")
        if values.isna().any():
            raise ValueError(
                f"the group column {column!r} is missing in {values.isna().sum():,} rows; "
                "give each row a group"
            )
        return values.to_numpy()
    beside = path.with_name(f"{path.stem}_block_id.parquet")
    if path.suffix != ".parquet" or not beside.is_file():
        return None
    blocks = read_file(beside)
    if len(blocks) != len(frame):
        raise ValueError(
            f"{beside} has {len(blocks):,} rows, but {path} has {len(frame):,}"
        )
    return blocks.iloc[:, 0].to_numpy()
