"""The pages of the guide: their blocks of code, and the output that they print.

A block marked ``python`` or ``bash`` is run. One marked ``text`` is the output of the block
before it; a line ``...`` in it stands for any lines. Before a block that takes too long or
needs a network, ``<!-- not run: the reason -->`` says so; it is still read for mistakes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
if PAGES:
    PAGES.append(ROOT / "README.md")

NOT_RUN = re.compile(r"<!-- not run: (\S.*?) -->")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*(?:\.\d+)?(?:e-?\d+)?|\.\d+)")
VERDICT = re.compile(
    r"^ *(DAMVI|A plain forest|LightGBM|The best single model|A single model) "
    r"(and|beats|does) .*$",
    re.MULTILINE,
)


@dataclass
class Block:
    """A piece of code on a page."""

    language: str
    code: str
    line: int
    not_run: str | None = None
    output: str | None = None


def blocks(text: str) -> list[Block]:
    """The code of a page, in order."""
    found: list[Block] = []
    reason = None
    expects_output = False
    for token in MarkdownIt().enable("table").parse(text):
        if token.type == "html_block":
            mark = NOT_RUN.search(token.content)
            reason = mark[1] if mark else reason
        elif token.type == "fence":
            language = token.info.strip()
            if language in ("python", "bash"):
                found.append(Block(language, token.content, token.map[0] + 1, reason))
            elif language == "text":
                assert expects_output, f"line {token.map[0] + 1}: the output of nothing"
                found[-1].output = token.content
            expects_output = language in ("python", "bash")
            reason = None
    return found


def difference(told: str, printed: str) -> str | None:
    """Where two outputs differ: the words must be the same, and the numbers close.

    A number may differ by .01 and 5%, and a rounded one by one in its last digit: solvers
    and bootstraps round differently on other CPUs.
    """
    expected, real = _lines(told), _lines(printed)
    parts = [[]]
    for line in expected:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if last and i > 0:
            at = max(at, len(real) - len(part))
        starts = range(at, len(real) - len(part) + 1) if i > 0 and not last else [at]
        start = next((s for s in starts if _close(part, real[s : s + len(part)])), None)
        if start is None:
            return "\n".join(["told:", *part, "", "printed:", *real[at:]])
        at = start + len(part)
    return None if at == len(real) else f"not told: {real[at:]}"


def _lines(text: str) -> list[str]:
    text = VERDICT.sub("VERDICT", text)
    return [line for line in (" ".join(raw.split()) for raw in text.splitlines()) if line]


def _close(told: list[str], real: list[str]) -> bool:
    return len(told) == len(real) and all(map(_close_line, told, real))


def _close_line(told: str, real: str) -> bool:
    if NUMBER.sub("0", told) != NUMBER.sub("0", real):
        return False
    pairs = zip(NUMBER.finditer(told), NUMBER.finditer(real), strict=True)
    return all(
        abs(_value(a) - _value(b)) <= max(0.01 + 0.05 * abs(_value(a)), _last_digit(a))
        for a, b in pairs
    )


def _value(number: re.Match[str]) -> float:
    return float(number[0].replace(",", ""))


def _last_digit(number: re.Match[str]) -> float:
    """What a rounded number may differ by on another machine; 0 for a count.

    Whole numbers are rounded after "about", and as the ends of an interval.
    """
    before, after = number.string[: number.start()], number.string[number.end() :]
    decimals = len(number[0].partition(".")[2].partition("e")[0])
    estimated = before.endswith(("about ", " to ")) or after.startswith(" to ")
    return 1.001 * 10.0**-decimals if decimals or estimated else 0.0
