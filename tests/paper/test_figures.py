"""Figures are drawn, with a line for each method."""

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmarks.paper.figures import rank_figure, ratio_figure, ratio_scores
from benchmarks.paper.published import PAPER_METHODS
from benchmarks.paper.tables import Ranks, complete_ranks, score_table

from .simulate import FIVE, cell, full, lost, over_ratios


def level(method, ratio, metric):
    return 0.3 + 0.02 * len(method) + ratio + 0.1 * (metric == "ap")


@pytest.fixture(scope="module")
def figure():
    return ratio_figure(over_ratios(level))


def test_a_line_and_a_band_for_each_method_in_both_panels(figure):
    assert len(figure.axes) == 2
    for axes in figure.axes:
        drawn = [line for line in axes.lines if not line.get_label().startswith("_")]
        assert [line.get_label() for line in drawn] == [*PAPER_METHODS, "RF"]
        assert len(axes.collections) == len(drawn)
        assert axes.get_xscale() == "log"
    ours = next(line for line in figure.axes[0].lines if line.get_label() == "DAMVI")
    assert ours.get_linewidth() == max(
        line.get_linewidth() for line in figure.axes[0].lines
    )
    np.testing.assert_allclose(ours.get_xdata(), [0.2, 0.5, 1, 2, 2.32, 4, 10])
    np.testing.assert_allclose(ours.get_ydata()[0], level("DAMVI", 0.002, "f1") + 0.001)


def test_the_papers_methods_are_told_from_the_others(figure):
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:2] == ["the paper's methods", "DAMVI"]
    assert names[-2:] == ["beyond the paper", "RF"]
    styles = {line.get_label(): line.get_linestyle() for line in figure.axes[0].lines}
    assert styles["RF"] != styles["EE"] == styles["DAMVI"]


def test_the_natural_share_is_marked(figure):
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts == ["natural, 2.32 %"] * 2


def test_one_split_and_failed_cells_are_no_trouble(tmp_path):
    cells = over_ratios(level, ratios=(0.002, 0.1), splits=1)
    cells += [lost("mammography", "BB", 1) | {"ratio": 0.1}]
    cells += [lost("mammography", "mine", 0) | {"ratio": 0.1}]
    assert ratio_scores(cells, "f1")["mine"] == {}
    ratio_figure(cells, natural=None).savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 1000


def test_one_dataset_a_figure():
    with pytest.raises(ValueError, match="shows one dataset"):
        ratio_figure([cell("a", ratio=0.1), cell("b", ratio=0.1)])


def test_average_ranks_over_the_datasets(tmp_path):
    rng = np.random.RandomState(0)
    means = {(m, d): rng.rand() for m in PAPER_METHODS for d in FIVE}
    ranks = complete_ranks(score_table(full(lambda m, d, k: means[m, d]), "f1"))
    assert isinstance(ranks, Ranks)
    scores = np.array([[means[m, d] for m in PAPER_METHODS] for d in FIVE])
    expected = np.mean([rankdata(-row) for row in scores], axis=0)
    assert ranks.average == pytest.approx(dict(zip(PAPER_METHODS, expected, strict=True)))
    assert "over 5 datasets" in ranks.words
    figure = rank_figure(ranks)
    shown = " ".join(text.get_text() for text in figure.axes[0].texts).split()
    assert set(PAPER_METHODS) <= set(shown)
    figure.savefig(tmp_path / "f.svg")


def test_the_critical_difference_of_demsar():
    """Demšar's table 5(a): q = 2.343 for three classifiers and 3.164 for ten."""
    for k, q in ((3, 2.343), (10, 3.164)):
        ranks = Ranks("f1", tuple("abcdefghij"[:k]), ("x",) * 6, np.zeros((6, k)), ())
        expected = q * np.sqrt(k * (k + 1) / 36)
        assert ranks.critical_difference == pytest.approx(expected, abs=2e-3)


def test_who_is_not_complete_is_left_out_of_the_ranks():
    five = ("BB", "EE", "DAMVI", "uniform", "LightGBM")
    cells = full(lambda m, d, k: 0.5, methods=(*five, "RF"))
    cells.remove(next(c for c in cells if c["method"] == "RF"))
    ranks = complete_ranks(score_table(cells, "ap"))
    assert ranks.methods == five
    assert "Left out as not complete: RF." in ranks.words
    started = [*cells, cell("abalone", "EE", 0)]
    assert complete_ranks(score_table(started, "ap")).left_out == ("RF", "abalone")


@pytest.mark.parametrize(
    ("datasets", "methods"), [(FIVE[:2], PAPER_METHODS), (FIVE, ["EE"])]
)
def test_too_few_to_rank(datasets, methods):
    said = complete_ranks(score_table(full(lambda m, d, k: 0.5, datasets, methods), "f1"))
    assert said.startswith(
        "No critical-difference diagram by F1: it takes at least 3 methods"
    )
