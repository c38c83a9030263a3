"""Everything that is made of the cells, written into a folder; one page puts the paper and
its reproduction side by side."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from .claims import (
    FAILS,
    HOLDS,
    UNTESTED,
    Claim,
    difference_words,
    our_checks,
    ratio_claims,
    table_claims,
)
from .figures import NATURAL, rank_figure, ratio_figure
from .grids import (
    Box,
    Grid,
    comparison_grid,
    cost_grid,
    dataset_grid,
    latex_document,
    score_grid,
    to_csv,
    to_latex,
    to_markdown,
)
from .published import METRICS, SHORT, in_the_paper, label
from .store import write_whole
from .tables import Cell, Table, check_distinct, complete_ranks, score_table

OUR_CHECKS = (
    "Checks of our own. Two means agree when they are no further apart than two standard "
    "errors of their difference."
)
_FIRST_COLUMNS = (
    "dataset",
    "method",
    "split",
    "ratio",
    "f1",
    "ap",
    "status",
    "note",
    "fit_seconds",
    "fit_cpu_seconds",
    "predict_seconds",
    "peak_mb",
    "rows",
    "features",
    "positives",
    "train_positives",
    "test_positives",
)


def write_outputs(
    cells: Iterable[Cell],
    folder: str | Path,
    *,
    ratio_cells: Iterable[Cell] | None = None,
    protocol_words: str,
) -> list[Path]:
    """Write tables, page, figures and the raw cells, and return the files' paths.

    Parameters
    ----------
    cells : iterable of dict
        The cells of the main experiment. Those with a ratio count as ``ratio_cells``.
    folder : path
        Made if it is not there. Its ``findings.md``, if any, ends the page.
    ratio_cells : iterable of dict, optional
        The cells of the experiment on the imbalance ratio; they go to a file of their own.
    protocol_words : str
        How the splits were made, such as ``"plain random 70/30"``.
    """
    everything = [*cells, *(ratio_cells or ())]
    check_distinct(everything)
    main = [cell for cell in everything if cell.get("ratio") is None]
    ratio = [cell for cell in everything if cell.get("ratio") is not None]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str | bytes] = {"cells.csv": cells_csv(main)}
    if ratio:
        texts["ratio_cells.csv"] = cells_csv(ratio)
    tables = [score_table(main, metric) for metric in METRICS]
    grids = [score_grid(table, protocol_words) for table in tables]
    if any(in_the_paper(dataset) for dataset in tables[0].datasets):
        grids += [comparison_grid(table, protocol_words) for table in tables]
    texts["tables.md"] = "\n".join(map(to_markdown, grids))
    texts["tables.tex"] = latex_document(map(to_latex, grids))
    texts["tables.csv"] = to_csv(tables)
    pictures, files = _figures(tables, ratio)
    texts.update(files)
    findings = folder / "findings.md"
    written = findings.read_text(encoding="utf-8") if findings.is_file() else ""
    page = page_text(main, ratio, protocol_words, pictures, written)
    texts["comparison.md"] = page
    texts["comparison.html"] = to_html(page, folder, files)
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


def cells_csv(cells: Sequence[Cell]) -> str:
    """One row a cell, settings and versions as JSON; a ratio column only if one has it."""
    known = [name for name in _FIRST_COLUMNS if name != "ratio"]
    if any(cell.get("ratio") is not None for cell in cells):
        known = list(_FIRST_COLUMNS)
    others = sorted({name for cell in cells for name in cell} - set(_FIRST_COLUMNS))
    out = io.StringIO()
    writer = csv.DictWriter(
        out, [*known, *others], extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    for cell in cells:
        writer.writerow({name: _plain(value) for name, value in cell.items()})
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return " ".join(value.split()) if isinstance(value, str) else value


def _figures(
    tables: Sequence[Table], ratio: Sequence[Cell]
) -> tuple[list[str], dict[str, bytes]]:
    """The pictures of the page in Markdown, or why there is none, and their files."""
    pictures: list[str] = []
    files: dict[str, bytes] = {}

    def add(name: str, title: str, words: str, draw: Callable[[], Any]) -> None:
        figure = draw()
        for kind in ("png", "svg"):
            files[f"{name}.{kind}"] = _drawn(figure, kind)
        pictures.append(f"![{title}]({name}.png)\n\n{words}")

    for dataset in sorted({cell["dataset"] for cell in ratio}):
        mine = [cell for cell in ratio if cell["dataset"] == dataset]
        is_the_papers = dataset == "mammography"
        natural = NATURAL if is_the_papers else None
        name = "ratio" if is_the_papers else "ratio_" + re.sub(r"\W+", "_", dataset)
        title = f"F1 and average precision against the imbalance ratio on {label(dataset)}"
        words = (
            f"{title}: means over the splits, and bands of one standard deviation (n − 1) "
            "either side."
        )
        add(name, title, words, partial(ratio_figure, mine, natural))
    for table in tables:
        ranks = complete_ranks(table)
        if isinstance(ranks, str):
            pictures.append(ranks)
        else:
            title = f"Critical-difference diagram by {SHORT[table.metric]}"
            add(f"ranks_{table.metric}", title, ranks.words, partial(rank_figure, ranks))
    return pictures, files


def _drawn(figure: Any, kind: str) -> bytes:
    import matplotlib

    out = io.BytesIO()
    # Without a date and with fixed names inside, the same cells give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "damvi"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(out, format=kind, dpi=180, metadata=metadata)
    return out.getvalue()


def page_text(
    cells: Sequence[Cell],
    ratio_cells: Sequence[Cell],
    protocol_words: str,
    pictures: Sequence[str] = (),
    findings: str = "",
) -> str:
    """The page in GitHub's Markdown, from top to bottom."""
    f1, ap = (score_table(cells, metric) for metric in METRICS)
    of_the_paper = any(in_the_paper(dataset) for dataset in f1.datasets)
    title = "DAMVI: the paper and its reproduction" if of_the_paper else "DAMVI: benchmark"
    blocks: list[str | Grid] = [f"# {title}", _opening(cells, ratio_cells, protocol_words)]
    if of_the_paper:
        claims = [*table_claims(f1, ap), *ratio_claims(ratio_cells)]
        counts = Counter(claim.verdict for claim in claims)
        blocks += [
            "## The paper's claims",
            f"Of {len(claims)} claims, {counts[HOLDS]} hold, {counts[FAILS]} do not hold, "
            f"{counts[UNTESTED]} not tested.",
            _claims_grid(claims, "Claims of the paper's text, among its ten methods."),
            _claims_grid(our_checks(f1, ap), OUR_CHECKS),
        ]
    blocks += ["## Results", *(score_grid(table, protocol_words) for table in (f1, ap))]
    if of_the_paper:
        blocks += ["## Beside the paper's numbers"]
        blocks += [comparison_grid(table, protocol_words) for table in (f1, ap)]
        blocks += ["## Where the two differ", difference_words((f1, ap))]
    if pictures:
        blocks += ["## Figures", *pictures]
    seconds = "CPU seconds of a fit, median over the splits."
    blocks += ["## Data", dataset_grid(cells), "## Time and memory"]
    blocks += [cost_grid(cells, "fit_cpu_seconds", seconds)]
    blocks += [cost_grid(cells, "peak_mb", "Peak memory in MB beyond the data, median.")]
    blocks += ["## How it was run", _versions([*cells, *ratio_cells], protocol_words)]
    blocks += [findings.strip()]
    shown = [
        to_markdown(block).strip() if isinstance(block, Grid) else block
        for block in blocks
        if block and not (isinstance(block, Grid) and not block.rows)
    ]
    return "\n\n".join(shown) + "\n"


def _claims_grid(claims: Sequence[Claim], caption: str) -> Grid:
    rows = tuple((Box(c.text), Box(c.verdict, bold=True), Box(c.figures)) for c in claims)
    return Grid(caption, ("claim", "verdict", "figures"), rows, stub=3)


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


def to_html(page: str, folder: Path, files: Mapping[str, bytes]) -> str:
    """The page as HTML that loads nothing from elsewhere, light or dark as the reader's.

    Pictures are taken in from ``files`` or ``folder``; others become links.
    """
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def image(_: Any, tokens: Any, place: int, *rest: Any) -> str:
        source, words = str(tokens[place].attrs["src"]), str(tokens[place].content)
        kind = {".png": "png", ".svg": "svg+xml", ".jpg": "jpeg"}.get(Path(source).suffix)
        near = files.get(source)
        if near is None and "://" not in source and (folder / source).is_file():
            near = (folder / source).read_bytes()
        if near is None or kind is None:
            return f'<a href="{escape(source)}">{escape(words or source)}</a>'
        code = base64.b64encode(near).decode()
        return f'<img alt="{escape(words)}" src="data:image/{kind};base64,{code}">'

    markdown.add_render_rule("image", image)
    # The only HTML that our Markdown has, for notes; all else is shown as it is written.
    body = re.sub(r"&lt;(/?sup)&gt;", r"<\1>", markdown.render(page))
    body = body.replace("<table>", '<div class="wide"><table>')
    body = body.replace("</table>", "</table></div>")
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    title = page.splitlines()[0].removeprefix("# ")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )
