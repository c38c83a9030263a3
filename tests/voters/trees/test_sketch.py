"""Sketches of the parts of a table give the bins of the whole."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.voters.trees import binning
from damvi.voters.trees.binning import Binning, EdgeSketch


def same(a, b):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("cuts", "starts", "category_codes", "categorical", "n_codes")
    )


def in_parts(X, signs, categorical, n_classes, cuts, seed, order):
    edges = [0, *cuts, len(X)]
    sketches = []
    for a, b in itertools.pairwise(edges):
        found = EdgeSketch(categorical, n_classes, seed)
        middle = (a + b) // 2
        found.add(X[a:middle], signs[a:middle], a)
        found.add(X[middle:b], signs[middle:b], middle)
        sketches.append(found)
    order = sorted(range(len(sketches)), key=lambda k: order[k % len(order)])
    total = EdgeSketch(categorical, n_classes, seed)
    for k in order:
        total = total.merge(sketches[k])
    return total.binning()


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 600)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 4),
    st.lists(st.integers(0, 900), max_size=5).map(sorted),
    st.integers(0, 2**31),
    st.permutations(range(6)),
)
def test_bins_do_not_depend_on_the_parts(n_classes, cuts, seed, order):
    rng = np.random.default_rng(seed)
    n = 900
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, 5, n),
            np.where(rng.random(n) < 0.2, np.nan, rng.standard_cauchy(n)),
            rng.integers(0, 400, n),  # categories, more than there are codes
            np.full(n, np.nan),
            np.repeat(7.0, n),
        ]
    )
    categorical = np.array([False, False, False, True, False, False])
    signs = rng.choice([-1, *range(1, n_classes), 0], n).astype(np.int16)
    signs[:n_classes] = [-1, *range(1, n_classes)]
    whole = Binning.learn(X, signs, categorical, seed)
    assert same(in_parts(X, signs, categorical, n_classes, cuts, seed, order), whole)


def test_255_values_over_two_parts_are_all_kept_and_256_are_not():
    for n in (255, 256):
        X = np.arange(float(n))[:, np.newaxis]
        signs = np.where(np.arange(n) % 9 == 0, 1, -1).astype(np.int16)
        found = in_parts(X, signs, np.zeros(1, bool), 2, [100], 0, [0])
        assert same(found, Binning.learn(X, signs, np.zeros(1, bool), 0))
        assert (found.n_codes[0] == 256) == (n == 255)
