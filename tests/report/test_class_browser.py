"""The page of four classes in a real browser; see :mod:`tests.report.in_browser`."""

import numpy as np
import pytest

from damvi.decision import decide
from damvi.evaluation.rates import share
from damvi.report import write_report
from damvi.report.class_weights import OWN, STEPS

from .class_toy import CLASSES, make_class_model, make_class_table
from .in_browser import (
    check_contrasts,
    colours,
    contrast,
    move,
    number,
    silent_page,
)
from .toy import HOSTILE


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page on new rows, with hostile names, and what it is made of."""
    model = make_class_model(make_class_table(width=HOSTILE))
    frame = make_class_table(500, seed=1, width=HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    said = write_report(model, frame, path, name=HOSTILE)
    labels = frame["fault"].map({name: c for c, name in enumerate(CLASSES)}).to_numpy()
    return path, said, model.classifier, model.schema.encode(frame), labels


@pytest.fixture
def opened(browser, report):
    with silent_page(browser, report[0]) as page:
        yield page


def check_page(page, report, place=0, step=1.0):
    """All figures are those of the votes for a class counted ``step`` times as much."""
    _, _, classifier, X, labels = report
    factors = classifier.threshold_.copy()
    factors[place] *= step
    decided = decide(classifier.vote(X), factors, classifier._majority)
    scores = []
    for c in range(4):
        found, named = (
            int(((labels == c) & (decided == c)).sum()),
            int((decided == c).sum()),
        )
        rows = int((labels == c).sum())
        for true in range(4):
            cell = ((labels == true) & (decided == c)).sum()
            assert number(page, f"#cell-{true}-{c}") == cell
        assert number(page, f"#n-{c}") == named
        for key, whole in (("r", rows), ("p", named)):
            rate = share(found, whole)
            shown = page.inner_text(f"#{key}-{c}")
            if not whole:
                assert shown == ""
                continue
            assert float(shown) == pytest.approx(100 * found / whole, abs=0.051)
            low, high = page.inner_text(f"#{key}-{c}-range").split(" to ")
            assert float(low) == pytest.approx(100 * rate["low"], abs=0.051)
            assert float(high) == pytest.approx(100 * rate["high"], abs=0.051)
        scores.append(2 * found / (rows + named))
        assert float(page.inner_text(f"#f-{c}")) == pytest.approx(scores[-1], abs=0.0006)
    assert float(page.inner_text("#o-f1")) == pytest.approx(np.mean(scores), abs=0.0051)
    assert number(page, "#o-wrong") == (labels != decided).sum()
    return decided


def test_it_starts_where_the_model_decides(opened, report):
    _, _, classifier, X, _ = report
    decided = check_page(opened, report)
    np.testing.assert_array_equal(decided, classifier.predict(X))
    assert HOSTILE in opened.inner_text(".kicker")
    assert opened.locator("img").count() == 0
    assert opened.inner_text("#which") == "As the model decides"


@pytest.mark.parametrize("place", range(4))
def test_the_slider_moves_every_figure_of_each_class(opened, report, place):
    opened.select_option("#weighed", str(place))
    tables = set()
    for step in (0, 9, 14, 16, len(STEPS) - 1):
        move(opened, "#s-weight", step)
        decided = check_page(opened, report, place, STEPS[step])
        tables.add(tuple(np.bincount(decided, minlength=4)))
        factor = report[2].threshold_[place] * STEPS[step]
        assert float(opened.inner_text("#v-factor")) == pytest.approx(factor, rel=0.006)
        own = opened.locator(".of-mean").all_inner_texts()
        assert not any(text.strip() for text in own)
    assert len(tables) > 3
    assert CLASSES[place] in opened.inner_text("#which")
    opened.click("#reset")
    check_page(opened, report)
    assert opened.inner_text("#v-weight") == "1"
    assert all(
        "confidence" in text for text in opened.locator(".of-mean").all_inner_texts()
    )


def test_the_class_chosen_is_the_one_shown(opened, report):
    views = [view["class"] for view in report[1]["views"]]
    for selector in ("#shown", "#weighed"):
        for place in views:
            opened.select_option(selector, str(place))
            assert opened.locator(".panel:not([hidden])").count() == 1
            assert opened.is_visible(f"#panel-{place}")
            assert opened.input_value("#shown") == opened.input_value("#weighed")
            assert opened.input_value("#shown") == str(place)


def test_the_dot_is_what_is_decided(opened, report):
    labels = report[4]
    opened.select_option("#weighed", "1")
    move(opened, "#s-weight", 17)
    decided = check_page(opened, report, 1, STEPS[17])
    found = ((labels == 1) & (decided == 1)).sum()
    x0, y0, x1, y1 = map(float, opened.get_attribute("#chart-pr-1", "data-frame").split())
    at = [float(opened.get_attribute("#mark-pr-1", name)) for name in ("cx", "cy")]
    assert (at[0] - x0) / (x1 - x0) == pytest.approx(found / (labels == 1).sum())
    assert (at[1] - y0) / (y1 - y0) == pytest.approx(found / (decided == 1).sum())


def test_it_works_by_keyboard_and_speaks(opened, report):
    opened.focus("#weighed")
    first = opened.input_value("#weighed")
    opened.keyboard.press("ArrowDown")
    place = int(opened.input_value("#weighed"))
    assert str(place) != first
    opened.focus("#s-weight")
    opened.keyboard.press("ArrowRight")
    check_page(opened, report, place, STEPS[OWN + 1])
    assert "count 1.2 times as much" in opened.get_attribute("#s-weight", "aria-valuetext")
    found = opened.inner_text(f"#cell-{place}-{place}")
    spoken = opened.locator("#live", has_text=f": {found} of ")
    spoken.wait_for(state="attached")


@pytest.mark.parametrize("table", [0, 1])
def test_tables_sort(opened, table):
    found = opened.locator("table.sortable").nth(table)
    headings = found.locator("thead th").all_inner_texts()
    assert any("Found" in text or "Votes" in text for text in headings)
    for column, heading in enumerate(headings):
        if not heading.startswith(("Row", "Found", "Right", "Votes", "F1")):
            continue
        head = found.locator("thead th").nth(column)
        for direction in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            cells = found.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
            values = [float(cell.replace(",", "")) for cell in cells]
            assert len(values) > 3
            assert values == sorted(values, reverse=direction == "descending")


def test_a_sorted_table_still_follows_the_slider(opened, report):
    opened.locator("#classes thead button").nth(4).click()
    opened.select_option("#weighed", "3")
    move(opened, "#s-weight", 15)
    check_page(opened, report, 3, STEPS[15])


def test_dark_and_light(opened):
    assert colours(opened)[1] == (255, 255, 255)
    opened.emulate_media(color_scheme="dark")
    ink, paper = colours(opened)
    assert max(paper) < 60
    assert contrast(ink, paper) > 7
    opened.click("#theme")
    assert colours(opened)[1] == (255, 255, 255)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    check_contrasts(opened)


def test_a_phone_shows_all_without_scrolling_sideways(opened):
    opened.set_viewport_size({"width": 360, "height": 740})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


def test_it_prints_the_class_that_is_shown(opened):
    opened.select_option("#shown", "1")
    opened.emulate_media(media="print", color_scheme="dark")
    assert colours(opened)[1] == (255, 255, 255)
    assert not opened.is_visible("#controls")
    assert opened.is_visible("#confusion")
    assert opened.is_visible("#panel-1")
    assert not opened.is_visible("#panel-2")
    assert not opened.is_visible("#shown")
    pdf = opened.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000


def test_without_scripts_the_figures_and_all_classes_are_there(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report[0].as_uri())
    check_page(page, report)
    assert not page.is_visible("#controls")
    for place in range(4):
        assert page.is_visible(f"#panel-{place}")
    context.close()


def test_rows_without_the_truth_and_very_many_classes(browser, report, tmp_path):
    from .test_class_page import many_classes

    frame, model = many_classes(20, 1500)
    for name, rows in (("many", frame), ("none", frame.drop(columns="kind"))):
        path = tmp_path / f"{name}.html"
        said = write_report(model, rows, path)
        place = str(said["views"][3]["class"])
        with silent_page(browser, path) as page:
            assert page.locator("#s-weight").count() == 0
            page.select_option("#shown", place)
            assert page.is_visible(f"#panel-{place}")
            assert (
                page.evaluate("document.querySelectorAll('.panel:not([hidden])').length")
                == 1
            )


def test_classes_without_rows_have_no_charts_and_do_no_harm(browser, report, tmp_path):
    model = make_class_model(make_class_table())
    frame = make_class_table(300, seed=3)
    for names, panels in ((["fine", "dent"], 2), (["fine"], 0)):
        path = tmp_path / f"{panels}.html"
        write_report(model, frame[frame["fault"].isin(names)].reset_index(drop=True), path)
        with silent_page(browser, path) as page:
            assert page.locator(".panel").count() == panels
            before = number(page, "#n-3")
            page.select_option("#weighed", "3")
            move(page, "#s-weight", len(STEPS) - 1)
            assert number(page, "#n-3") > before
            assert page.locator(".panel:not([hidden])").count() == min(panels, 1)
