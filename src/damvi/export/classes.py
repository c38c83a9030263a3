"""What is exported: decisions between two classes."""

from __future__ import annotations

from typing import Any


def refuse_many_classes(model: Any) -> None:
    """Say so, where there are three or more."""
    if len(model.classes_) > 2:
        raise ValueError(
            f"models of two classes can be exported so far, and this one has "
            f"{len(model.classes_)}; to_skops keeps it"
        )
