"""A model, the rows of its fit, and rows that it has not seen."""

import os

import pytest

from .toy import make_model, make_table


@pytest.fixture(scope="session")
def fitted():
    return make_table()


@pytest.fixture(scope="session")
def fresh_rows():
    return make_table(500, seed=1)


@pytest.fixture(scope="session")
def model(fitted):
    return make_model(fitted)


@pytest.fixture(scope="module")
def browser():
    from .in_browser import CHROMIUM, playwright

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield browser
        browser.close()
