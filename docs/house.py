"""Draw the layers of the package, and who imports whom: python docs/house.py [FILE].

The layers are those that tests/contracts/test_architecture.py enforces, and their titles
those of the table in docs/design.md. An arc goes from a layer to one that it imports from,
the wider the more files do. The picture is docs/images/house.svg (`make house`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "damvi"
PICTURE = ROOT / "docs" / "images" / "house.svg"

TITLE, BOXES, ARCS = 190, 580, 190
"""Widths of the three columns."""
LINE, GAP, BETWEEN = 26, 7, 20
LETTER = 7.8
"""What a letter of a name takes, at 13 points."""


def main(where: list[str]) -> None:
    picture = Path(where[0]) if where else PICTURE
    picture.write_text(drawn(), encoding="utf-8")


def layers() -> list[list[str]]:
    """The modules and packages by layer, from the ground up."""
    test = ROOT / "tests" / "contracts" / "test_architecture.py"
    for node in ast.parse(test.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            return [names.split() for names in ast.literal_eval(node.value)]
    raise SystemExit(f"{test} has no LAYERS")


def titles() -> list[str]:
    """What the layers are called, from the ground up."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.partition("### Layers")[2].partition("\n## ")[0]
    return re.findall(r"^\| ([^|`-][^|`]*) \| `", table, flags=re.MULTILINE)[::-1]


def imports() -> Iterator[tuple[str, str]]:
    """Pairs of parts of the package, once for each file of the first."""
    for file in sorted(SOURCE.rglob("*.py")):
        package = ("damvi", *file.relative_to(SOURCE).parent.parts)
        own = package[1] if len(package) > 1 else file.stem
        found = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                base += tuple(node.module.split(".")) if node.module else ()
                names = [(*base, alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [tuple(alias.name.split(".")) for alias in node.names]
            else:
                continue
            found |= {name[1] for name in names if name[0] == "damvi" and len(name) > 1}
        yield from ((own, name) for name in sorted(found - {own}))


def drawn() -> str:
    """The picture as SVG."""
    house = layers()
    level = {name: k for k, names in enumerate(house) for name in names}
    counts = Counter(
        (level[one], level[other])
        for one, other in imports()
        if one in level and other in level and level[one] != level[other]
    )
    parts, middles, y = [], {}, BETWEEN
    for k in reversed(range(len(house))):
        boxes, height = rows_of_boxes(house[k], y)
        middles[k] = y + height / 2
        shade = 97 - 3 * (k % 2)
        parts.append(
            f'<rect x="0" y="{y - BETWEEN / 2:g}" width="{TITLE + BOXES}" '
            f'height="{height + BETWEEN:g}" fill="hsl(210 30% {shade}%)"/>'
        )
        title = f'<text x="12" y="{middles[k] + 5:g}" font-weight="600">'
        parts.append(f"{title}{escape(titles()[k])}</text>")
        parts += boxes
        y += height + BETWEEN
    for (one, other), count in sorted(counts.items()):
        parts.append(arc(middles[one], middles[other], count))
    width, height = TITLE + BOXES + ARCS, y + 18
    words = "An arc: files of the upper layer import from the lower one; wider for more."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="#1d2733" role="img">\n'
        "<title>Layers of damvi: a module imports its own layer and those below</title>\n"
        f'<rect width="{width}" height="{height:g}" fill="#fff"/>\n'
        + "\n".join(parts)
        + f'\n<text x="{width - 12}" y="{height - 8:g}" text-anchor="end" font-size="11">'
        f"{words}</text>\n</svg>\n"
    )


def rows_of_boxes(names: list[str], top: float) -> tuple[list[str], float]:
    """Boxes with names, in as many lines as they take, and their height."""
    parts, x, y = [], 0.0, top
    for name in names:
        width = LETTER * len(name) + 16
        if x + width > BOXES - 12:
            x, y = 0.0, y + LINE + GAP
        parts.append(
            f'<rect x="{TITLE + x:g}" y="{y:g}" width="{width:g}" height="{LINE}" rx="5" '
            f'fill="#fff" stroke="#8aa0b5"/>'
            f'<text class="part" x="{TITLE + x + width / 2:g}" y="{y + 17.5:g}" '
            f'text-anchor="middle">{name}</text>'
        )
        x += width + GAP
    return parts, y + LINE - top


def arc(start: float, end: float, count: int) -> str:
    """From a layer down to one that it imports from, the farther out the longer."""
    x, reach = TITLE + BOXES, 14 + 0.32 * abs(end - start)
    wide = min(0.8 + 0.28 * count**0.75, 7)
    shift = 5  # arcs leave a layer below its middle, and come in above
    a, b = (start + shift, end - shift) if start < end else (start - shift, end + shift)
    return (
        f'<path d="M{x} {a:g}C{x + reach:.1f} {a:g} {x + reach:.1f} {b:g} {x} {b:g}" '
        f'fill="none" stroke="#2f6f9f" stroke-opacity=".55" stroke-width="{wide:.1f}"/>'
    )


if __name__ == "__main__":
    main(sys.argv[1:])
