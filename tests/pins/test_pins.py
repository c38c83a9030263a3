"""Results that must not change by accident; ``benchmarks/pins.py store`` renews them.

Where a change is intended, the commit that makes it says so and why.
"""

import pytest

from .expectations import differences, load
from .walks import WALKS

SLOW = {"cluster", "commands", "strong"}
STORED = {name: walk for name, walk in WALKS.items() if walk.kept != "nothing"}


@pytest.fixture(scope="module")
def expected():
    return load()


def test_every_walk_has_its_expectations(expected):
    assert list(expected) == list(STORED)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in STORED]
)
def test_results_are_those_stored(name, expected):
    assert differences(expected[name], STORED[name]) == []
