"""The columns of a dataset's files, which must be alike."""

from __future__ import annotations

from collections import Counter
from typing import Any


def check_alike(files: list[str], schemas: list[Any]) -> None:
    """That all files have the columns of the first, and each of them once."""
    twice = [name for name, n in Counter(schemas[0].names).items() if n > 1]
    if twice:
        raise ValueError(f"{files[0]} has more than one column named {twice}; rename them")
    for file, schema in zip(files, schemas, strict=True):
        difference = _difference(schema, schemas[0])
        if difference:
            raise ValueError(
                f"{file} has other columns, or other types, than {files[0]}: {difference}; "
                f"write both alike"
            )


def index_columns(schema: Any) -> list[str]:
    """Columns that pandas wrote as the index, and reads as the index."""
    about = schema.pandas_metadata or {}
    return [name for name in about.get("index_columns", []) if isinstance(name, str)]


def _difference(one: Any, first: Any) -> str | None:
    for own, other in zip(one, first, strict=False):
        if own.name != other.name:
            return f"{own.name!r} is where {other.name!r} is there"
        if own.type != other.type:
            return f"{own.name!r} holds {own.type}, and {other.type} there"
    if len(one) != len(first):
        return f"{len(one)} columns, and {len(first)} there"
    return None
