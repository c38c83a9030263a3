"""Is everything said of the version that is about to be released?

    python benchmarks/release.py v0.1.0

The version stands in the sources, in CITATION.cff, in the conda recipe and in the
changelog, whose newest heading has the date. The exit status is 1 if one of them is behind.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "src/damvi/__init__.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "recipe/recipe.yaml": r"^  version: (.*)$",
    "CHANGELOG.md": r"^## (\S+)",
}
DATES = {"CITATION.cff": r"^date-released: (.*)$", "CHANGELOG.md": r"^## \S+ - (.*)$"}


def found(pattern: str, place: str) -> str:
    """The first that a pattern says in a file; nothing if it says nothing."""
    text = (ROOT / place).read_text(encoding="utf-8")
    match = re.search(pattern, text, flags=re.MULTILINE)
    return match[1].strip("\"'") if match else ""


def versions() -> dict[str, str]:
    """The version by the file that says it."""
    return {place: found(pattern, place) for place, pattern in PLACES.items()}


def problems(tag: str) -> list[str]:
    """What keeps a tag from being released."""
    wanted = tag.removeprefix("v")
    wrong = []
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        wrong.append(f"{tag!r} is no tag of a release; one is called v0.1.0, say")
    for place, version in versions().items():
        if version != wanted:
            wrong.append(f"{place} says {version or 'nothing'}, and not {wanted}")
    dates = {place: found(pattern, place) for place, pattern in DATES.items()}
    for place, date in dates.items():
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
            wrong.append(f"{place} has no date of the release, such as 2026-12-01")
    if not wrong and len(set(dates.values())) > 1:
        wrong.append(f"the dates differ: {dates}")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("name the tag, as in: make check-release TAG=v0.1.0")
    raise SystemExit("\n".join(problems(sys.argv[1])) or 0)
