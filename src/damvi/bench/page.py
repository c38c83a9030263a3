"""One page that puts the paper and its reproduction side by side."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .checks import our_checks
from .claims import FAILS, HOLDS, UNTESTED, Claim, table_claims
from .differences import dataset_grid, difference_words
from .layout import Box, Grid, comparison_grid, cost_grid, score_grid
from .names import METRICS, in_the_paper
from .ratio_claims import ratio_claims
from .render import to_html, to_markdown
from .tables import Cell, score_table

OUR_CHECKS = (
    "Checks of our own. Two means agree when they are no further apart than one standard "
    "deviation of the paper plus one of ours."
)
_KINDS = {HOLDS: "holds", FAILS: "fails", UNTESTED: "untested"}


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its PNG file, and what it shows."""

    file: str
    title: str
    words: str
    png: bytes


Block = str | Grid | Picture


def claims_grid(claims: Sequence[Claim], caption: str) -> Grid:
    rows = tuple(
        (Box(c.text), Box(c.verdict, bold=True, kind=_KINDS[c.verdict]), Box(c.figures))
        for c in claims
    )
    return Grid(caption, ("claim", "verdict", "figures"), rows, stub=3)


def page_blocks(
    cells: Sequence[Cell],
    ratio_cells: Sequence[Cell],
    protocol_words: str,
    pictures: Sequence[Picture | str] = (),
    findings: str = "",
) -> list[Block]:
    """The page from top to bottom. Strings are Markdown; a picture that is a string says
    why there is none."""
    f1, ap = (score_table(cells, metric) for metric in METRICS)
    of_the_paper = any(in_the_paper(dataset) for dataset in f1.datasets)
    title = "DAMVI: the paper and its reproduction" if of_the_paper else "DAMVI: benchmark"
    blocks: list[Block] = [f"# {title}", _opening(cells, ratio_cells, protocol_words)]
    if of_the_paper:
        claims = [*table_claims(f1, ap), *ratio_claims(ratio_cells)]
        blocks += ["## The paper's claims", _tally(claims)]
        blocks.append(
            claims_grid(claims, "Claims of the paper's text, among its ten methods.")
        )
        checks = our_checks(f1, ap)
        blocks.append(claims_grid(checks, OUR_CHECKS) if checks else "")
    blocks += ["## Results", *(score_grid(table, protocol_words) for table in (f1, ap))]
    if of_the_paper:
        blocks += ["## Beside the paper's numbers"]
        blocks += [comparison_grid(table, protocol_words) for table in (f1, ap)]
        blocks += ["## Where the two differ", difference_words((f1, ap))]
    if pictures:
        blocks += ["## Figures", *pictures]
    blocks += ["## Data", dataset_grid(cells), "## Time and memory"]
    blocks += [
        cost_grid(
            cells, "fit_cpu_seconds", "CPU seconds of a fit, median over the splits."
        ),
        cost_grid(cells, "peak_mb", "Peak memory in MB beyond the data, median."),
    ]
    blocks += ["## How it was run", _versions([*cells, *ratio_cells], protocol_words)]
    blocks += [findings.strip()]
    return [b for b in blocks if b and not (isinstance(b, Grid) and not b.rows)]


def _opening(
    cells: Sequence[Cell], ratio_cells: Sequence[Cell], protocol_words: str
) -> str:
    counts = Counter(cell["status"] for cell in [*cells, *ratio_cells])
    words = ", ".join(f"{n:,} {status}" for status, n in counts.most_common())
    ratio = (
        f" {len(ratio_cells):,} of them are of the experiment on the imbalance ratio."
        if ratio_cells
        else ""
    )
    return (
        f"Protocol: {protocol_words}. {len(cells) + len(ratio_cells):,} cells (a cell is "
        f"one method on one split of one dataset): {words or 'none'}.{ratio} All of this "
        "page is made from the cells, but for findings written by hand at its end."
    )


def _tally(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    return (
        f"Of {len(claims)} claims, {counts[HOLDS]} hold, {counts[FAILS]} do not hold, "
        f"{counts[UNTESTED]} not tested."
    )


def _versions(cells: Sequence[Cell], protocol_words: str) -> str:
    found: dict[str, list[str]] = {}
    for cell in cells:
        versions: Mapping[str, Any] = cell.get("versions") or {}
        for name, version in versions.items():
            known = found.setdefault(name, [])
            if str(version) not in known:
                known.append(str(version))
    listed = ", ".join(f"{name} {' and '.join(found[name])}" for name in sorted(found))
    protocol = f"{protocol_words[:1].upper()}{protocol_words[1:]}"
    return f"{protocol}.\n\nVersions: {listed or 'unknown'}."


def to_markdown_page(blocks: Sequence[Block]) -> str:
    """The page in GitHub's Markdown, with pictures linked."""

    def shown(block: Block) -> str:
        if isinstance(block, Grid):
            return to_markdown(block).strip()
        if isinstance(block, Picture):
            return f"![{block.title}]({block.file})\n\n{block.words}"
        return block

    return "\n\n".join(map(shown, blocks)) + "\n"


def to_html_page(blocks: Sequence[Block], folder: Path | None = None) -> str:
    """The page in HTML that loads nothing from elsewhere, light or dark as the reader's.

    Local pictures of hand-written text are taken in from ``folder``; others become links.
    """
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule(
        "image", lambda _, tokens, place, *rest: _image(tokens[place], folder)
    )

    def shown(block: Block) -> str:
        if isinstance(block, Grid):
            return to_html(block)
        if isinstance(block, Picture):
            caption = f"<figcaption>{escape(block.words)}</figcaption>"
            return f"<figure>{_embedded(block.png, 'png', block.title)}{caption}</figure>"
        return str(markdown.render(block))

    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    title = next(
        (b[2:] for b in blocks if isinstance(b, str) and b.startswith("# ")), "DAMVI"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(map(shown, blocks))
        + "</main>\n</body>\n</html>\n"
    )


def _embedded(data: bytes, kind: str, words: str) -> str:
    code = base64.b64encode(data).decode()
    return f'<img alt="{escape(words)}" src="data:image/{kind};base64,{code}">'


def _image(token: Any, folder: Path | None) -> str:
    source, words = str(token.attrs.get("src", "")), str(token.content)
    kind = {".png": "png", ".svg": "svg+xml", ".jpg": "jpeg"}.get(
        Path(source).suffix.lower()
    )
    if folder is not None and kind and "://" not in source and (folder / source).is_file():
        return _embedded((folder / source).read_bytes(), kind, words)
    return f'<a href="{escape(source)}">{escape(words or source)}</a>'
