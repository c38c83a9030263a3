"""The pages in a real browser: Debian's Chromium, driven by playwright.

``make test-browser`` installs both; without them these tests are skipped.
"""

import csv
import os
import re
import shutil
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from damvi.drift import DriftWarning
from damvi.evaluation import share
from damvi.report import write_report
from damvi.report.curves import OWN, STEPS, offer_cuts
from damvi.report.page import RATIOS
from damvi.report.words import lead, per_hundred, range_of_hundred
from damvi.tables.profile import Profile

from .test_page import many_classes
from .toy import (
    CLASSES,
    HOSTILE,
    best_with_recall,
    cheapest,
    make_class_model,
    make_class_table,
    make_model,
    make_table,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
if CHROMIUM is None:
    pytest.skip("no Chromium here: make test-browser installs it", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright here: make test-browser installs it"
)
pytestmark = pytest.mark.slow


@contextmanager
def silent_page(browser, path):
    """The page, which must neither complain nor ask anybody for anything."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(path.as_uri())
    yield page
    assert errors == []
    assert requests == [path.as_uri()]
    context.close()


def number(page, selector):
    return int(page.inner_text(selector).replace(",", ""))


def move(page, slider, value):
    page.eval_on_selector(
        slider,
        "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }",
        str(value),
    )


def colours(page):
    """Of the text and the ground."""
    return [
        tones(page.evaluate(f"getComputedStyle(document.body).{which}"))
        for which in ("color", "backgroundColor")
    ]


def tones(text):
    """Red, green and blue, from 0 to 255, as the browser writes them."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", text)][:3]
    return (
        tuple(255 * n for n in numbers) if text.startswith("color(srgb") else tuple(numbers)
    )


def contrast(one, other):
    """By the Web Content Accessibility Guidelines."""

    def light(colour):
        share = np.array(colour) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    return max(light(one), light(other)) / min(light(one), light(other))


def check_contrasts(page, least=100):
    """Every text stands out from its ground."""
    found = page.evaluate(
        """() => {
          const ground = (e) => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (!c.endsWith(", 0)")) return c; } return "rgb(255, 255, 255)"; };
          const kinds = "p, th, td, h1, h2, h3, b, span, em, summary, label, figcaption";
          return [...document.querySelectorAll(kinds + ", output, button, legend, select")]
            .filter((e) => e.textContent.trim() && e.offsetWidth > 1)
            .map((e) => [getComputedStyle(e).color, ground(e)]); }"""
    )
    assert len(found) > least
    for pair in {tuple(pair) for pair in found}:
        assert contrast(*map(tones, pair)) >= 4.5, pair


def check_chart_texts(page, least=50):
    """Names in charts fit and can be read."""
    texts = page.evaluate(
        """() => [...document.querySelectorAll("main svg text")]
          .filter((text) => text.textContent && text.checkVisibility())
          .map((text) => {
            const own = text.getBoundingClientRect();
            const svg = text.ownerSVGElement, all = svg.getBoundingClientRect();
            const scale = all.width / svg.viewBox.baseVal.width;
            const size = parseFloat(getComputedStyle(text).fontSize) * scale;
            const room = [own.left - all.left, all.right - own.right];
            return [text.textContent, ...room, size]; })"""
    )
    assert len(texts) > least
    for text, left, right, size in texts:
        assert min(left, right) >= -1, text
        assert size >= 10, text


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield browser
        browser.close()


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
        "#cell-1-1": (flagged & positive).sum(),
        "#cell-1-0": (~flagged & positive).sum(),
        "#cell-0-1": (flagged & ~positive).sum(),
        "#cell-0-0": (~flagged & ~positive).sum(),
    }
    for selector, count in expected.items():
        assert number(page, selector) == count
    return threshold


def off_the_curve(page, chart, of):
    """How far the dot lies from its curve, in units of the drawing."""
    x, y = (float(page.get_attribute(f"#mark-{chart}-{of}", at)) for at in ("cx", "cy"))
    text = page.get_attribute(f"#chart-{chart}-{of} polyline.main", "points")
    points = np.array([[float(n) for n in pair.split(",")] for pair in text.split()])
    start, along = points[:-1], np.diff(points, axis=0)
    share = ((np.array([x, y]) - start) * along).sum(axis=1) / (along**2).sum(axis=1)
    nearest = start + np.clip(share, 0, 1)[:, None] * along
    return np.hypot(*(nearest - [x, y]).T).min()


def test_the_sentence_and_the_dot_follow_the_slider(opened, report):
    _, said, _, positive = report
    sentences = set()
    steps = [("#s-cost", step) for step in range(0, len(RATIOS), 4)]
    for slider, value in [*steps, ("#s-recall", 1), ("#s-recall", 100)]:
        move(opened, slider, value)
        found, alarms = (number(opened, f"#cell-{y}-1") for y in (1, 0))
        sentence = opened.inner_text("#lead")
        if found + alarms:
            told = f"about {per_hundred(found / (found + alarms))} are positive"
            assert told in sentence
            assert f"about {per_hundred(found / positive.sum())} are found" in sentence
        else:
            assert sentence.startswith("nothing is flagged")
        assert off_the_curve(opened, "pr", 1) < 0.2
        assert off_the_curve(opened, "roc", 1) < 0.2
        sentences.add(opened.inner_text(".lead"))
    assert len(sentences) > 5
    opened.check("#m-own")
    assert opened.inner_text(".lead") == lead(said)


def test_the_flagged_rows_follow_and_can_be_downloaded(opened, report):
    _, _, vote, positive = report
    for mode in ("#m-own", "#m-recall"):
        opened.check(mode)
        threshold = check_counts(opened, vote, positive)
        flagged = np.flatnonzero(vote > threshold) + 1
        assert number(opened, "#n-found") == len(flagged)
        rows = opened.locator("#rows-flagged tbody tr:visible th").all_inner_texts()
        assert len(rows) == min(50, len(flagged))
        assert {int(row) for row in rows} <= set(flagged.tolist())
        with opened.expect_download() as download:
            opened.click("#download")
        text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
        assert download.value.suggested_filename == "flagged.csv"
        table = list(csv.reader(text.splitlines()))
        assert table[0][:5] == ["row", "score", "probability", "decision", "id"]
        assert sorted(int(row[0]) for row in table[1:]) == flagged.tolist()
        for row in table[1:]:
            assert float(row[1]) == vote[int(row[0]) - 1]
            assert 0 < float(row[2]) < 1
            assert row[3] == "yes"
            assert row[4].startswith(HOSTILE[:60])


def test_formulas_are_text_in_the_download(browser, tmp_path):
    model = make_model(make_table())
    frame = make_table(300, seed=1)
    bad = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "＝1", "-0.25", 'plain, "x"']
    frame["id"] = [bad[i % len(bad)] for i in range(len(frame))]
    path = tmp_path / "report.html"
    write_report(model, frame, path)
    with silent_page(browser, path) as page:
        with page.expect_download() as download:
            page.click("#download")
        text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    ids = {row[4] for row in list(csv.reader(text.splitlines()))[1:]}
    assert ids <= {*("'" + each for each in bad[:5]), *bad[5:]}
    assert len(ids) == len(bad)


def test_segments_are_shown_one_column_at_a_time(opened, report):
    _, said, _, _ = report
    names = opened.locator("#segment option").all_inner_texts()
    assert names == [one["name"] for one in said["segments"]]
    for place, one in enumerate(said["segments"]):
        opened.select_option("#segment", str(place))
        assert opened.locator(".segment:visible").count() == 1
        cells = opened.locator(".segment:visible tbody td:nth-child(2)").all_inner_texts()
        assert [int(n.replace(",", "")) for n in cells] == [
            g["rows"] for g in one["groups"]
        ]
    assert opened.locator("svg[id^=chart-effect]").count() == len(said["effects"]) > 3


def test_it_starts_where_the_model_decides(opened, report):
    _, said, vote, positive = report
    assert check_counts(opened, vote, positive) == said["threshold"]
    assert opened.is_checked("#m-own")
    assert HOSTILE in opened.inner_text(".kicker")
    assert opened.locator("img").count() == 0


def test_ranges_allow_for_rows_that_are_alike(browser, tmp_path):
    """Where the slider starts and where it goes, as in Python."""
    model = make_model(make_table())
    model = replace(model, scores={**model.scores, "alike": {"time": "day"}})
    frame = make_table(500, seed=1)
    hard = np.arange(500) // 42 % 3 == 0  # stretches in which all goes wrong
    frame["amount"] = np.where(hard, 0.0, frame["amount"])
    said = write_report(model, frame, tmp_path / "report.html")
    effects = said["decision"]["effects"]
    assert effects["recall"][1] > 1.5
    with silent_page(browser, tmp_path / "report.html") as page:
        for step in (None, 2, len(RATIOS) - 2):
            if step is not None:
                move(page, "#s-cost", step)
            found, missed, alarms = (
                number(page, f"#cell-{cell}") for cell in ("1-1", "1-0", "0-1")
            )
            wholes = {"precision": found + alarms, "recall": found + missed}
            for key, whole in wholes.items():
                rate = share(found, whole, effects[key][1])
                shown = page.inner_text(f"#o-{key}-range")
                assert shown == range_of_hundred(rate), (key, step)
        page.locator("details").first.evaluate("each => each.open = true")
        assert "close in time ('day')" in page.inner_text("main")


def test_the_cost_slider_finds_the_cheapest_threshold(opened, report):
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
        assert number(opened, "#cell-1-1") >= percent / 100 * positive.sum() - 1e-9
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
    found = opened.inner_text("#cell-1-1")
    opened.locator("#live:not(:empty)").wait_for(state="attached")
    assert opened.text_content("#live").startswith(f"{found} found")
    frame = opened.get_attribute("#chart-pr-1", "data-frame").split()
    x0, _, x1, _ = map(float, frame)
    at = float(opened.get_attribute("#mark-pr-1", "cx"))
    assert (at - x0) / (x1 - x0) == pytest.approx(int(found) / positive.sum())


def test_tables_sort(opened, report):
    table = opened.locator("table.sortable").first
    for column in (2, 0, 3):
        head = table.locator("thead th").nth(column)
        for direction in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            cells = table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
            values = [float(cell) for cell in cells]
            assert values == sorted(values, reverse=direction == "descending")
    assert len(values) == len(report[1]["rows"]["flagged"]["rows"])


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
    assert number(page, "#cell-1-1") == said["decision"]["confusion"][1][1]
    assert not page.is_visible("#controls")
    context.close()


@pytest.fixture(scope="module")
def class_report(tmp_path_factory):
    """The page on new rows, with hostile names, and what it is made of."""
    model = make_class_model(make_class_table(width=HOSTILE))
    frame = make_class_table(500, seed=1, width=HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    said = write_report(model, frame, path, name=HOSTILE)
    labels = frame["fault"].map({name: c for c, name in enumerate(CLASSES)}).to_numpy()
    return path, said, model.classifier, model.schema.encode(frame), labels


@pytest.fixture
def four(browser, class_report):
    with silent_page(browser, class_report[0]) as page:
        yield page


def check_page(page, class_report, place=0, step=1.0):
    """All figures are those of the votes for a class counted ``step`` times as much."""
    _, _, classifier, X, labels = class_report
    factors = classifier.threshold_.copy()
    factors[place] *= step
    order = classifier.labels_.order
    decided = order[(classifier.vote(X) * factors)[:, order].argmax(axis=1)]
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


def test_it_starts_where_the_model_decides_with_many_classes(four, class_report):
    _, _, classifier, X, _ = class_report
    decided = check_page(four, class_report)
    np.testing.assert_array_equal(decided, classifier.predict(X))
    assert HOSTILE in four.inner_text(".kicker")
    assert four.locator("img").count() == 0
    assert four.inner_text("#which") == "As the model decides"
    assert four.inner_text(".lead") == lead(class_report[1])


@pytest.mark.parametrize("place", range(4))
def test_the_slider_moves_every_figure_of_each_class(four, class_report, place):
    four.select_option("#weighed", str(place))
    tables = set()
    for step in (0, 9, 14, 16, len(STEPS) - 1):
        move(four, "#s-weight", step)
        decided = check_page(four, class_report, place, STEPS[step])
        tables.add(tuple(np.bincount(decided, minlength=4)))
        factor = class_report[2].threshold_[place] * STEPS[step]
        assert float(four.inner_text("#v-factor")) == pytest.approx(factor, rel=0.006)
        own = four.locator(".of-mean").all_inner_texts()
        assert not any(text.strip() for text in own)
    assert len(tables) > 3
    assert CLASSES[place] in four.inner_text("#which")
    four.click("#reset")
    check_page(four, class_report)
    assert four.inner_text("#v-weight") == "1"
    assert all(
        "90% interval" in text for text in four.locator(".of-mean").all_inner_texts()
    )


def test_the_class_chosen_is_the_one_shown(four, class_report):
    views = [view["class"] for view in class_report[1]["views"]]
    for selector in ("#shown", "#weighed"):
        for place in views:
            four.select_option(selector, str(place))
            assert four.locator(".panel:not([hidden])").count() == 3
            assert four.is_visible(f"#scores-{place}")
            assert four.input_value("#shown") == four.input_value("#weighed")
            assert four.input_value("#shown") == str(place)


def test_the_dot_is_what_is_decided(four, class_report):
    labels = class_report[4]
    four.select_option("#weighed", "1")
    move(four, "#s-weight", 17)
    decided = check_page(four, class_report, 1, STEPS[17])
    found = ((labels == 1) & (decided == 1)).sum()
    x0, y0, x1, y1 = map(float, four.get_attribute("#chart-pr-1", "data-frame").split())
    at = [float(four.get_attribute("#mark-pr-1", name)) for name in ("cx", "cy")]
    assert (at[0] - x0) / (x1 - x0) == pytest.approx(found / (labels == 1).sum())
    assert (at[1] - y0) / (y1 - y0) == pytest.approx(found / (decided == 1).sum())


@pytest.mark.parametrize("place", range(4))
def test_the_dot_of_each_class_stays_on_its_curve(four, class_report, place):
    labels = class_report[4]
    four.select_option("#weighed", str(place))
    for step in range(0, len(STEPS), 3):
        move(four, "#s-weight", step)
        assert off_the_curve(four, "pr", place) < 1
        assert off_the_curve(four, "roc", place) < 1
    right = sum(number(four, f"#cell-{c}-{c}") for c in range(4))
    words = f"of 100 rows, about {per_hundred(right / len(labels))} are classified"
    assert words in four.inner_text("#lead")


def test_it_works_by_keyboard_and_speaks_with_many_classes(four, class_report):
    four.focus("#weighed")
    first = four.input_value("#weighed")
    four.keyboard.press("ArrowDown")
    place = int(four.input_value("#weighed"))
    assert str(place) != first
    four.focus("#s-weight")
    four.keyboard.press("ArrowRight")
    check_page(four, class_report, place, STEPS[OWN + 1])
    assert "count 1.2 times as much" in four.get_attribute("#s-weight", "aria-valuetext")
    found = four.inner_text(f"#cell-{place}-{place}")
    spoken = four.locator("#live", has_text=f": {found} of ")
    spoken.wait_for(state="attached")


@pytest.mark.parametrize("table", [0, 1])
def test_tables_sort_with_many_classes(four, table):
    found = four.locator("table.sortable").nth(table)
    headings = found.locator("thead th").all_inner_texts()
    assert any("Recall" in text or "Score" in text for text in headings)
    for column, heading in enumerate(headings):
        if not heading.startswith(("Row", "Recall", "Precision", "Score", "F1")):
            continue
        head = found.locator("thead th").nth(column)
        for direction in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            cells = found.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()
            values = [float(cell.replace(",", "")) for cell in cells]
            assert len(values) > 3
            assert values == sorted(values, reverse=direction == "descending")


def test_a_sorted_table_still_follows_the_slider(four, class_report):
    four.locator("#classes thead button").nth(4).click()
    four.select_option("#weighed", "3")
    move(four, "#s-weight", 15)
    check_page(four, class_report, 3, STEPS[15])


def test_it_prints_the_class_that_is_shown(four):
    four.select_option("#shown", "1")
    four.emulate_media(media="print", color_scheme="dark")
    assert colours(four)[1] == (255, 255, 255)
    assert not four.is_visible("#controls")
    assert four.is_visible("#confusion")
    assert four.is_visible("#scores-1")
    assert not four.is_visible("#scores-2")
    assert not four.is_visible("#shown")
    pdf = four.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000


def test_without_scripts_the_figures_and_all_classes_are_there(browser, class_report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(class_report[0].as_uri())
    check_page(page, class_report)
    assert not page.is_visible("#controls")
    for place in range(4):
        assert page.is_visible(f"#scores-{place}")
    context.close()


def test_rows_without_the_truth_and_very_many_classes(browser, class_report, tmp_path):
    frame, model = many_classes(20, 1500)
    for name, rows in (("many", frame), ("none", frame.drop(columns="kind"))):
        path = tmp_path / f"{name}.html"
        said = write_report(model, rows, path)
        place = str(said["views"][3]["class"])
        with silent_page(browser, path) as page:
            assert page.locator("#s-weight").count() == 0
            page.select_option("#shown", place)
            assert page.is_visible(f"#scores-{place}")
            assert page.evaluate(
                "document.querySelectorAll('.panel:not([hidden])').length"
            ) == 2 + (name == "many")


def test_classes_without_rows_have_no_charts_and_do_no_harm(
    browser, class_report, tmp_path
):
    model = make_class_model(make_class_table())
    frame = make_class_table(300, seed=3)
    for names, panels in ((["fine", "dent"], 6), (["fine"], 0)):
        path = tmp_path / f"{panels}.html"
        write_report(model, frame[frame["fault"].isin(names)].reset_index(drop=True), path)
        with silent_page(browser, path) as page:
            assert page.locator(".panel").count() == panels
            before = number(page, "#n-3")
            page.select_option("#weighed", "3")
            move(page, "#s-weight", len(STEPS) - 1)
            assert number(page, "#n-3") > before
            assert page.locator(".panel:not([hidden])").count() == panels / 2


@pytest.fixture(params=["two classes", "four classes"])
def each_page(request, browser, report, class_report):
    path = (report if request.param == "two classes" else class_report)[0]
    with silent_page(browser, path) as page:
        yield page


def test_dark_and_light(each_page):
    assert colours(each_page)[1] == (255, 255, 255)
    each_page.emulate_media(color_scheme="dark")
    ink, paper = colours(each_page)
    assert max(paper) < 60
    assert contrast(ink, paper) > 7
    each_page.click("#theme")  # to light, against the system's wish
    assert colours(each_page)[1] == (255, 255, 255)
    each_page.click("#theme")
    assert max(colours(each_page)[1]) < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(each_page, scheme):
    each_page.emulate_media(color_scheme=scheme)
    check_contrasts(each_page)


def test_a_phone_shows_all_without_scrolling_sideways(each_page):
    each_page.set_viewport_size({"width": 360, "height": 740})
    assert each_page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_names_in_charts_fit_and_can_be_read(each_page, width, scheme):
    each_page.set_viewport_size({"width": width, "height": 740})
    each_page.emulate_media(color_scheme=scheme)
    check_chart_texts(each_page)


def test_the_first_box_is_one_line(each_page):
    for width, lines in ((1280, 1), (360, 2)):
        each_page.set_viewport_size({"width": width, "height": 740})
        each_page.wait_for_function("document.fonts.ready")
        text = each_page.evaluate(
            """() => { const range = document.createRange();
              range.selectNodeContents(document.querySelector(".basis"));
              return new Set([...range.getClientRects()].map((r) => r.top)).size; }"""
        )
        assert text <= lines


@pytest.fixture(scope="module")
def drift_page(tmp_path_factory):
    """What changed, with hostile names: a scale, gaps, new categories and unread cells."""
    model = make_model(make_table(1500, amount=HOSTILE))
    before = make_table(1500, amount=HOSTILE)
    profile = Profile.learn(model.schema, model.schema.encode(before), before)
    decided = np.arange(1500) % 8 == 0
    model = replace(model, profile=profile.with_decisions(decided.astype(int), 2))
    new = make_table(1000, seed=1, amount=HOSTILE)
    new[HOSTILE] = 3 + 10 * new[HOSTILE]
    new["noise"] = new["noise"].astype(object)
    new.loc[:200, "noise"] = "n.a.!"
    new.loc[300:600, "noise"] = np.nan
    new.loc[::3, "kind"] = "a kind with <i>a very long name</i> that nobody has seen before"
    path = tmp_path_factory.mktemp("drift") / "drift.html"
    batches = path.with_name("batches.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        model.drift(make_table(400, seed=2, amount=HOSTILE), history=batches)
        unlabelled = new.drop(columns="fraud")
        found = model.drift(unlabelled, history=batches, name=HOSTILE)
    found.save(path, name=HOSTILE, command=f"damvi drift {HOSTILE}")
    return path, found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_of_drift(browser, drift_page, width, scheme):
    path, found = drift_page
    assert len(found.warnings) >= 3
    with silent_page(browser, path) as page:
        page.set_viewport_size({"width": width, "height": 740})
        page.emulate_media(color_scheme=scheme)
        ink, paper = colours(page)
        assert contrast(ink, paper) > 7
        assert (max(paper) < 60) == (scheme == "dark")
        check_contrasts(page, least=50)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown = page.locator("main li").all_inner_texts()
        assert shown[: len(found.warnings)] == found.warnings
        columns = page.get_by_role("region", name="All columns")
        names = columns.locator("tbody th").all_inner_texts()
        assert names == [column.name for column in found.columns]
        told = page.get_by_role("region", name="Scores").locator("tbody th")
        assert told.all_inner_texts() == ["precision", "recall", "F1", "AP"]
        assert found.worth[0] in page.inner_text("main")
        seen = page.get_by_role("region", name="All batches").locator("tbody th")
        assert seen.all_inner_texts() == [one.name for one in reversed(found.batches)]
        assert page.locator("[id^=history-] circle.mark").count() == 4  # of one batch
        assert page.locator("main figure").count() >= 7
        check_chart_texts(page, least=10)
        pictures = os.environ.get("PICTURES")  # a folder, to look at them
        if pictures:
            name = f"{pictures}/drift-{width}-{scheme}.png"
            page.screenshot(path=name, full_page=True)


def test_the_page_of_drift_without_a_change(browser, tmp_path):
    model = make_model(make_table(600))
    before = make_table(600)
    profile = Profile.learn(model.schema, model.schema.encode(before), before)
    model = replace(model, profile=profile)
    path = tmp_path / "drift.html"
    model.drift(before).save(path)
    with silent_page(browser, path) as page:
        assert "no change is both significant" in page.inner_text("main")
        assert page.locator("main figure").count() == 0


def test_the_budget_slider_tells_what_is_found(opened, report):
    budget = report[1]["budget"]
    move(opened, "#s-top", len(budget) - 1)
    assert number(opened, "#v-top") == budget[-1]["rows"] == report[1]["data"]["judged"]
    assert "and 100 (" in opened.inner_text("#o-top")
    move(opened, "#s-top", 0)
    assert opened.inner_text("#v-top") == "1"
