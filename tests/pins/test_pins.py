"""Results that must not change by accident; ``benchmarks/pins.py store`` renews them.

Where a change is intended, the commit that makes it says so and why.
"""

import pytest

from .expectations import differences, kept_of, load
from .walks import WALKS


@pytest.fixture(scope="module")
def expected():
    return load()


def test_every_walk_has_its_expectations(expected):
    assert list(expected) == list(WALKS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", WALKS)
def test_results_are_those_stored(name, expected):
    walk = WALKS[name]
    found = kept_of(walk.run(), by_decisions=walk.by_decisions)
    assert differences(expected[name], found, by_decisions=walk.by_decisions) == []
