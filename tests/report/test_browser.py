"""The page in a real browser: Debian's Chromium, driven by playwright.

``make test-browser`` installs both; without them these tests are skipped.
"""

import pytest

from damvi.report import write_report
from damvi.report.cuts import best_with_recall, cheapest, offer_cuts
from damvi.report.two_page import RATIOS

from .in_browser import (
    check_contrasts,
    colours,
    contrast,
    move,
    number,
    silent_page,
)
from .toy import HOSTILE, make_model, make_table


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a model with hostile names on new rows, and what it is made of."""
    model = make_model(make_table(amount=HOSTILE))
    frame = make_table(500, seed=1, amount=HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    said = write_report(model, frame, path, name=HOSTILE)
    vote = model.classifier.vote(model.schema.encode(frame))
    return path, said, vote, (frame["fraud"] == "yes").to_numpy()


@pytest.fixture
def opened(browser, report):
    with silent_page(browser, report[0]) as page:
        yield page


def check_counts(page, vote, positive):
    """The confusion table is that of the threshold shown; returns the threshold."""
    threshold = float(page.get_attribute("#c-threshold", "data-exact"))
    flagged = vote > threshold
    expected = {
        "#c-found": (flagged & positive).sum(),
        "#c-missed": (~flagged & positive).sum(),
        "#c-alarms": (flagged & ~positive).sum(),
        "#c-passed": (~flagged & ~positive).sum(),
    }
    for selector, count in expected.items():
        assert number(page, selector) == count
    return threshold


def test_it_starts_where_the_model_decides(opened, report):
    _, said, vote, positive = report
    assert check_counts(opened, vote, positive) == said["threshold"]
    assert opened.is_checked("#m-own")
    assert HOSTILE in opened.inner_text(".kicker")
    assert opened.locator("img").count() == 0


def test_the_cost_slider_finds_the_cheapest_line(opened, report):
    _, said, vote, positive = report
    cuts = offer_cuts(vote, positive, said["threshold"])
    thresholds = set()
    for step, miss in enumerate(RATIOS):
        move(opened, "#s-cost", step)
        threshold = check_counts(opened, vote, positive)
        assert threshold == cuts.threshold[cheapest(cuts, miss)]
        thresholds.add(threshold)
        flagged = vote > threshold
        cost = miss * (~flagged & positive).sum() + (flagged & ~positive).sum()
        shown = float(opened.inner_text("#o-cost").replace(",", ""))
        assert shown == pytest.approx(cost * 1000 / len(vote), rel=0.006)
        # No other threshold costs less.
        least = min(
            miss * (~(vote > t) & positive).sum() + ((vote > t) & ~positive).sum()
            for t in [*vote, -2.0]
        )
        assert cost == pytest.approx(least)
    assert len(thresholds) > 4
    assert opened.is_checked("#m-cost")
    move(opened, "#unit", 2)
    assert float(opened.inner_text("#o-cost").replace(",", "")) == pytest.approx(
        2 * cost * 1000 / len(vote), rel=0.006
    )


def test_the_recall_slider_keeps_its_floor(opened, report):
    _, said, vote, positive = report
    cuts = offer_cuts(vote, positive, said["threshold"])
    for percent in (1, 30, 55, 80, 90, 99, 100):
        move(opened, "#s-recall", percent)
        threshold = check_counts(opened, vote, positive)
        assert threshold == cuts.threshold[best_with_recall(cuts, percent / 100)]
        assert number(opened, "#c-found") >= percent / 100 * positive.sum() - 1e-9
    opened.check("#m-own")
    assert check_counts(opened, vote, positive) == said["threshold"]


def test_it_works_by_keyboard_and_speaks(opened, report):
    _, _, vote, positive = report
    opened.focus("#s-cost")
    before = opened.inner_text("#v-cost")
    opened.keyboard.press("ArrowRight")
    assert opened.inner_text("#v-cost") != before
    assert "A miss costs" in opened.get_attribute("#s-cost", "aria-valuetext")
    check_counts(opened, vote, positive)
    found = opened.inner_text("#c-found")
    opened.locator("#live:not(:empty)").wait_for(state="attached")
    assert opened.text_content("#live").startswith(f"{found} found")
    frame = opened.get_attribute("#chart-pr", "data-frame").split()
    x0, _, x1, _ = map(float, frame)
    at = float(opened.get_attribute("#mark-pr", "cx"))
    assert (at - x0) / (x1 - x0) == pytest.approx(int(found) / positive.sum())


def test_tables_sort(opened, report):
    table = opened.locator("table.sortable").first
    for column in (1, 0, 2):
        head = table.locator("thead th").nth(column)
        for direction in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            cells = table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
            values = [float(cell) for cell in cells]
            assert values == sorted(values, reverse=direction == "descending")
    assert len(values) == len(report[1]["missed"]["rows"])


def test_dark_and_light(opened):
    assert colours(opened)[1] == (255, 255, 255)
    opened.emulate_media(color_scheme="dark")
    ink, paper = colours(opened)
    assert max(paper) < 60
    assert contrast(ink, paper) > 7
    opened.click("#theme")  # to light, against the system's wish
    assert colours(opened)[1] == (255, 255, 255)
    opened.click("#theme")
    assert max(colours(opened)[1]) < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    check_contrasts(opened)


def test_a_phone_shows_all_without_scrolling_sideways(opened):
    opened.set_viewport_size({"width": 360, "height": 740})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


def test_it_prints(opened):
    opened.emulate_media(media="print", color_scheme="dark")
    assert colours(opened)[1] == (255, 255, 255)
    assert not opened.is_visible("#controls")
    assert opened.is_visible("#confusion")
    pdf = opened.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000


def test_without_scripts_the_figures_are_there(browser, report):
    path, said, _, _ = report
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert number(page, "#c-found") == said["decision"]["found"]
    assert not page.is_visible("#controls")
    context.close()
