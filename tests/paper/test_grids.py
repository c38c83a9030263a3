"""Every format, on the cases that are easy to get wrong."""

import csv
import io
import re
import shutil
import subprocess

import pytest

from benchmarks.paper.grids import (
    Grid,
    comparison_grid,
    cost_grid,
    latex_document,
    latex_escape,
    score_grid,
    to_csv,
    to_latex,
    to_markdown,
)
from benchmarks.paper.tables import score_table

from .simulate import cell, full, lost, random_cells

NASTY = r"50 % of a_b & c # $x$ {y} ~^\ | <b>"


@pytest.fixture(scope="module")
def cells():
    """Done, partial, failed, timed out, missing, tied, of one split, and badly named."""
    splits = range(3)
    made = [cell("d_1 & 50%", "DAMVI", s, 0.7 + 0.01 * s) for s in splits]
    made += [cell("d_1 & 50%", "EE", s, 0.5) for s in splits]
    made += [cell("d_1 & 50%", "BB", s, 0.5) for s in splits]
    made += [cell("d_1 & 50%", "part_{ly}", 0, 0.9), lost("d_1 & 50%", "part_{ly}", 1)]
    made += [lost("d_1 & 50%", "A-DT", s, note=f"{NASTY}\nü ≥ 漢 \u200b") for s in splits]
    made += [lost("d_1 & 50%", "RF", s, "timeout", "") for s in splits]
    made += [cell("single", "DAMVI", 0, 1.0), cell("single", "BB", 0, 0.0)]
    return made


@pytest.fixture(scope="module")
def grid(cells):
    return score_grid(score_table(cells, "f1"), "stratified 70/30 splits")


def latex_rows(text):
    """The places of each row of the tabulars, with braces and environments checked."""
    bare = re.sub(r"\\[{}\\&%$#_]", "", text.replace(r"\textbackslash", ""))
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{([lc|]+)\}(.*?)\\end\{tabular\}", text, re.S
    ):
        for row in body.replace(r"\hline", "").split(r"\\")[:-1]:
            places = re.split(r"(?<!\\)&", row)
            assert len(places) == len(columns.replace("|", "")), row
            yield [place.strip().removeprefix("{}") for place in places]


def test_latex_has_as_many_places_as_columns(grid):
    rows = {row[0]: row for row in latex_rows(to_latex(grid))}
    assert rows[""] == ["", r"d\_1 \& 50\%", "single"]
    assert rows["DAMVI"] == ["DAMVI", r"\textbf{.7100}$\pm$.010", r"\textbf{1.0000}"]
    assert rows["EE"][1].startswith(r"\textit{.5000}$\pm$.000")
    assert rows["BB"] == ["BB", rows["EE"][1], r"\textit{.0000}"]
    assert rows["A-DT"] == ["A-DT", "failed$^{1}$", "--"]
    assert rows["RF"] == ["RF", "time out$^{2}$", "--"]
    assert rows[r"part\_\{ly\}"][1] == ".9000$^{3}$"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b", r"a\_b"),
        ("5 % & # $ {}", r"5 \% \& \# \$ \{\}"),
        ("\\~^", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("é ç ü", r"\'{e} \c{c} " + '\\"{u}'),
        ("漢", "?"),
        ("a\n b", "a b"),
    ],
)
def test_latex_escapes(text, latex):
    assert latex_escape(text) == latex


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_compiles(cells, grid, tmp_path):
    everything = full(lambda m, d, k: 0.5 + 0.1 * (m == "DAMVI"))
    tables = [score_table(everything, metric) for metric in ("f1", "ap")]
    tables.append(score_table(random_cells(1), "f1"))
    grids = [grid, *(score_grid(t, "plain random 70/30 splits") for t in tables)]
    grids += [comparison_grid(tables[0], NASTY), score_grid(score_table([], "f1"), "none")]
    (tmp_path / "tables.tex").write_text(latex_document(map(to_latex, grids)), "utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=tmp_path,
        capture_output=True,
        encoding="latin-1",
    )
    assert run.returncode == 0, run.stdout[-2000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 1000


def test_markdown_rows_and_notes(grid):
    text = to_markdown(grid)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    unescaped = [re.sub(r"\\\|", "", row) for row in rows]
    assert {row.count("|") for row in unescaped} == {4}
    assert "| DAMVI | **.7100**±.010 | **1.0000** |" in rows
    assert "| A-DT | failed<sup>1</sup> | – |" in rows
    assert "<sup>3</sup> 1 of 3 splits (1 failed, 1 not run): no samples" in text
    assert "<sup>2</sup> over the time limit" in text
    assert "stratified 70/30 splits" in text
    assert "1 to 3 splits" in text
    assert "Wilcoxon rank-sum" in text


def test_csv_in_full_precision(cells):
    tables = [score_table(cells, metric) for metric in ("f1", "ap")]
    rows = list(csv.DictReader(io.StringIO(to_csv(tables))))
    assert len(rows) == 2 * 2 * 6
    ours = next(r for r in rows if (r["metric"], r["method"]) == ("f1", "DAMVI"))
    assert float(ours["mean"]) == pytest.approx(0.71)
    assert (ours["dataset"], ours["best"], ours["n_done"]) == ("d_1 & 50%", "1", "3")
    failed = next(r for r in rows if r["method"] == "A-DT")
    assert (failed["mean"], failed["status"]) == ("", "failed")
    assert to_csv([]) == "\n"


def test_the_comparison_has_the_papers_line_below_ours():
    cells = full(
        lambda m, d, k: 0.4 + 0.4 * (m == "DAMVI"), [*("webpage", "scania_partial")]
    )
    cells += [cell("pct_imitation", "DAMVI", s, 0.9) for s in range(5)]
    grid = comparison_grid(score_table(cells, "f1"), "plain random 70/30 splits")
    assert grid.head == ("", "", "Webpage", "Scania (part)")
    text = to_markdown(grid)
    assert "| DAMVI | ours | **.8000**±.008 | **.8000**±.008≠ |" in text
    assert "|  | paper | **.7996**±.011 | **.7289**±.011 |" in text
    assert "| S-DT | ours | *.4000*±.008↓≠ |" in text
    assert "|  | paper | *.6134*±.017↓ |" in text
    assert len(grid.rows) == 20


def test_costs_are_medians_over_done_cells():
    cells = [cell("d", "EE", s, peak_mb=m) for s, m in enumerate([100.0, 3000.4, 200.0])]
    cells += [lost("d", "BB", 0) | {"peak_mb": 5.0}]
    grid = cost_grid(cells, "peak_mb", "MB")
    assert [[box.text for box in row] for row in grid.rows] == [["EE", "200"]]
    assert cost_grid([], "peak_mb", "MB").rows == ()


def test_a_grid_may_have_no_rows():
    empty = Grid("nothing", ("", "a"), ())
    assert "| a |" in to_markdown(empty)
    assert list(latex_rows(to_latex(empty))) == [["", "a"]]
