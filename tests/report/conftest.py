"""A model, the rows of its fit, and rows that it has not seen."""

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
