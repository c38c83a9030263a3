"""What a folder of results holds."""

import csv
import re

import pytest

from benchmarks.paper.page import write_outputs
from benchmarks.paper.published import PAPER_METHODS
from benchmarks.paper.tables import score_table

from .simulate import FIVE, cell, full, lost, over_ratios

WORDS = "plain random 70/30 splits"
TEXTS = {
    "cells.csv",
    "tables.md",
    "tables.tex",
    "tables.csv",
    "comparison.md",
    "comparison.html",
}


def level(method, dataset, metric):
    return 0.3 + 0.03 * len(method)


@pytest.fixture(scope="module")
def cells():
    made = full(level, FIVE[:3], methods=(*PAPER_METHODS, "RF"), splits=3)
    made += [lost("pct_imitation", "EE", s, "timeout", "over 60 s") for s in range(3)]
    return made + [cell("pct_imitation", "DAMVI", s) for s in range(3)]


@pytest.fixture(scope="module")
def folder(cells, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "findings.md").write_text(
        "## Findings\n\nBy *hand*, <script>x</script>.\n\n"
        "![far](https://far.example/a.png) ![near](near.png)\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "utf-8",
    )
    (folder / "near.png").write_bytes(b"\x89PNG")
    ratio = over_ratios(level, ratios=(0.002, 0.02), splits=2)
    paths = write_outputs(cells, folder, ratio_cells=ratio, protocol_words=WORDS)
    expected = TEXTS | {"ratio_cells.csv"}
    expected |= {
        f"{n}.{k}" for n in ("ratio", "ranks_f1", "ranks_ap") for k in ("png", "svg")
    }
    assert {path.name for path in paths} == expected
    left = {path.name for path in folder.iterdir()} - {"findings.md", "near.png"}
    assert left == expected, "no temporary file stays"
    return folder


def test_the_cells_as_they_came(folder, cells):
    with (folder / "cells.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(cells)
    assert list(rows[0])[:5] == ["dataset", "method", "split", "f1", "ap"]
    assert "ratio" not in rows[0]
    for row, one in zip(rows, cells, strict=True):
        assert (row["dataset"], row["method"], int(row["split"])) == (
            one["dataset"],
            one["method"],
            one["split"],
        )
        assert row["f1"] == ("" if one["f1"] is None else repr(one["f1"]))
    assert rows[0]["settings"] == '{"trees": "fast"}'
    with (folder / "ratio_cells.csv").open(encoding="utf-8") as file:
        assert {row["ratio"] for row in csv.DictReader(file)} == {"0.002", "0.02"}


def test_the_page_loads_nothing_and_shows_html_as_text(folder):
    html = (folder / "comparison.html").read_text("utf-8")
    sources = re.findall(r'(?:src|srcset|poster|data)="([^"]*)"', html)
    assert len(sources) == 4
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"<(script|link|iframe|object|embed)\b|@import|url\(", html)
    assert "prefers-color-scheme: dark" in html
    assert "&lt;script&gt;" in html
    assert "<sup>1</sup>" in html
    assert '<a href="https://far.example/a.png">far</a>' in html


def test_the_page_says_it_all_in_both_forms(folder):
    for name in ("comparison.md", "comparison.html"):
        text = (folder / name).read_text("utf-8")
        for words in (
            WORDS,
            "DAMVI is best in F1 on all datasets.",
            "Scania (part)",
            "PCT (imitation)",
            "over 60 s",
            "Where the two differ",
            "is lower by",
            "Peak memory",
            "numpy 2.4.6",
            "Findings",
        ):
            assert words in text, (name, words)
    assert "![Critical-difference diagram by F1](ranks_f1.png)" in (
        folder / "comparison.md"
    ).read_text("utf-8")


@pytest.mark.slow
def test_the_same_cells_give_the_same_files(folder, cells, tmp_path):
    ratio = over_ratios(level, ratios=(0.002, 0.02), splits=2)
    for path in write_outputs(cells + ratio, tmp_path, protocol_words=WORDS):
        if not path.name.startswith("comparison"):
            assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_datasets_of_ones_own_are_not_held_against_the_paper(tmp_path):
    cells = [cell("mine", m, s) for m in ("EE", "DAMVI") for s in range(2)]
    write_outputs(cells, tmp_path, protocol_words="stratified 70/30 splits")
    page = (tmp_path / "comparison.md").read_text("utf-8")
    assert "benchmark" in page
    assert "claims" not in page
    assert "paper's methods" not in (tmp_path / "tables.md").read_text("utf-8")


def test_nothing_at_all(tmp_path):
    assert {p.name for p in write_outputs([], tmp_path, protocol_words="x")} == TEXTS


def test_a_write_that_fails_leaves_the_old_file(cells, tmp_path, monkeypatch):
    write_outputs([], tmp_path, protocol_words="x")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_outputs(cells, tmp_path, protocol_words="x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_cells_for_one_place_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Two cells"):
        write_outputs([cell(), cell()], tmp_path, protocol_words="x")
    assert score_table([cell()], "f1")["DAMVI", "webpage"].n_done == 1
