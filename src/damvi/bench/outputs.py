"""Everything that is made of the cells, written into a folder."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .._files import write_whole
from .figures import NATURAL, ratio_figure
from .latex import latex_document, to_latex
from .layout import Grid, comparison_grid, score_grid
from .names import METRICS, SHORT, in_the_paper, label
from .page import Picture, page_blocks, to_html_page, to_markdown_page
from .ranks import complete_ranks, rank_figure
from .render import to_csv, to_html, to_markdown
from .tables import Cell, Table, check_distinct, score_table

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
    say: Callable[[str], None] | None = None,
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
        How the splits were made, such as ``"plain random 70/30 splits"``.
    say : callable, optional
        Told of outputs skipped because a library is missing; by default a warning.
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
    grids = paper_grids(tables, protocol_words)
    texts["tables.md"] = "\n".join(map(to_markdown, grids))
    texts["tables.tex"] = latex_document(map(to_latex, grids))
    texts["tables.html"] = "\n".join(map(to_html, grids))
    texts["tables.csv"] = to_csv(tables)

    pictures, files, skipped = _figures(tables, ratio)
    texts.update(files)
    findings = folder / "findings.md"
    written = findings.read_text(encoding="utf-8") if findings.is_file() else ""
    blocks = page_blocks(main, ratio, protocol_words, pictures, written)
    texts["comparison.md"] = to_markdown_page(blocks)
    texts["comparison.html"] = to_html_page(blocks, folder)

    if skipped and say is None:
        warnings.warn("\n".join(skipped), UserWarning, stacklevel=2)
    elif say is not None:
        for words in skipped:
            say(words)
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


def paper_grids(tables: Sequence[Table], protocol_words: str) -> list[Grid]:
    """The tables, and those beside the paper's numbers if any of its datasets is there."""
    grids = [score_grid(table, protocol_words) for table in tables]
    if any(in_the_paper(dataset) for dataset in tables[0].datasets):
        grids += [comparison_grid(table, protocol_words) for table in tables]
    return grids


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
) -> tuple[list[Picture | str], dict[str, bytes], list[str]]:
    """The pictures of the page, their files, and what is missing to draw the others."""
    pictures: list[Picture | str] = []
    files: dict[str, bytes] = {}
    skipped: list[str] = []

    def add(name: str, title: str, words: str, draw: Callable[[], Any]) -> None:
        try:
            figure = draw()
        except ImportError as error:
            why = (
                f"{name}.png was not drawn: {error.name} is not installed. "
                "Get it with: pip install 'damvi[bench]'"
            )
            skipped.append(why)
            pictures.append(why)
            return
        for kind in ("png", "svg"):
            files[f"{name}.{kind}"] = _drawn(figure, kind)
        pictures.append(Picture(f"{name}.png", title, words, files[f"{name}.png"]))

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
    return pictures, files, skipped


def _drawn(figure: Any, kind: str) -> bytes:
    import matplotlib

    out = io.BytesIO()
    # Without a date and with fixed names inside, the same cells give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "damvi"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(out, format=kind, dpi=180, metadata=metadata)
    return out.getvalue()
