"""The page on model files: what it says is so (tests/docs runs its example)."""

from pathlib import Path

import pytest

from damvi.io.container import FORMAT, MOST_SHRUNK, SKLEARN
from damvi.io.files import LONGEST_JSON

PAGE = Path(__file__).parents[2] / "docs" / "model_files.md"


@pytest.fixture(scope="module")
def text():
    if not PAGE.exists():
        pytest.skip("the documents are not part of the package")
    return PAGE.read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_code(text):
    assert f"\ndamvi model {FORMAT} " in text
    assert f"a factor of {MOST_SHRUNK} at most" in text
    assert f"at most {LONGEST_JSON >> 20} MiB" in text


def test_the_members_of_the_strong_pool_are_listed(text):
    for name in ("Pipeline", "ColumnTransformer", "SimpleImputer", "OneHotEncoder"):
        assert f"`{name}`" in text
        assert name in SKLEARN
