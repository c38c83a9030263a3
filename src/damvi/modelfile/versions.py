"""Which libraries a model was made with, and whether those here will do."""

from __future__ import annotations

import platform
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import __version__

ALWAYS = ("numpy", "scipy", "scikit-learn")
BOOSTERS = ("lightgbm", "xgboost", "catboost")


def library_versions(kinds: set[str]) -> dict[str, str]:
    """What is installed of the libraries that a model with objects of these kinds needs."""
    used = [name for name in (*BOOSTERS, "skops") if any(k.startswith(name) for k in kinds)]
    found = {"damvi": __version__, "python": platform.python_version()}
    for name in (*ALWAYS, *used):
        if (there := _installed(name)) is not None:
            found[name] = there
    return found


def warn_of_other_versions(made_with: dict[str, Any], kinds: set[str]) -> None:
    """Say so, once, where another release might read the members otherwise.

    scikit-learn promises nothing between releases, so any other will be named; boosters
    read what older ones wrote. damvi's own trees are arrays, and the same everywhere.
    """
    doubts = []
    if any(kind.startswith(("sklearn.", "skops")) for kind in kinds):
        there, here = made_with.get("scikit-learn"), _installed("scikit-learn")
        if there and here and _release(there) != _release(here):
            doubts.append(f"scikit-learn {there} (here {here})")
    for name in BOOSTERS:
        there, here = made_with.get(name), _installed(name)
        if there and here and _release(there) > _release(here):
            doubts.append(f"{name} {there} (here {here})")
    if doubts:
        warnings.warn(
            f"the model was made with {' and '.join(doubts)}; its predictions may differ. "
            f"Install the same version, or fit the model again",
            UserWarning,
            stacklevel=4,
        )


def _release(said: Any) -> tuple[int, ...]:
    """Major and minor number; of what is no version, none."""
    parts = str(said).split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdigit())


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
