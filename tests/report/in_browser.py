"""A page in a real browser: what the tests of both reports share.

``make test-browser`` installs Chromium and its driver; without them they are skipped.
"""

import re
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium here: make test-browser installs it", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright here: make test-browser installs it"
)


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


def check_contrasts(page):
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
    assert len(found) > 100
    for pair in {tuple(pair) for pair in found}:
        assert contrast(*map(tones, pair)) >= 4.5, pair
