"""Bins: exact where values are few, kind to the rare class where they are many."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from damvi.hashing import row_bits
from damvi.voters.trees import binning
from damvi.voters.trees.binning import (
    MAX_BINS,
    Binning,
    EdgeSketch,
    class_quantile_edges,
    midpoints,
    sample_rows,
)

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


def learn(X, positive=None, categorical=None, seed=0):
    X = np.asarray(X, dtype=float) if not sparse.issparse(X) else X
    positive = np.zeros(X.shape[0], bool) if positive is None else positive
    categorical = np.zeros(X.shape[1], bool) if categorical is None else categorical
    return Binning.learn(X, np.where(positive, 1, -1).astype(np.int8), categorical, seed)


@settings(deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=FLOATS)
)
def test_a_feature_with_few_values_keeps_them_all_in_order(X):
    codes = learn(X).encode(X)
    for x, code in zip(X.T, codes.T, strict=True):
        np.testing.assert_array_equal(code, 1 + np.searchsorted(np.unique(x), x))


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, unique=True))
def test_edges_separate_neighbouring_values(values):
    values = np.unique(np.array(values))
    edges = midpoints(values)
    assert (edges >= values[:-1]).all()
    assert (edges < values[1:]).all()


def test_values_as_far_apart_as_doubles_can_be_are_told_apart_without_a_warning():
    X = np.array([[-np.inf], [-1.7e308], [1.7e308], [np.inf]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = learn(X).encode(X)
    np.testing.assert_array_equal(codes.ravel(), [1, 2, 3, 4])


def test_exactly_255_values_are_kept_and_256_are_merged():
    x = np.arange(255.0)[:, np.newaxis]
    assert len(np.unique(learn(x).encode(x))) == 255
    x = np.arange(256.0)[:, np.newaxis]
    codes = learn(x).encode(x)
    assert 200 < len(np.unique(codes)) <= 255
    assert codes.min() >= 1


def test_codes_are_monotone_and_missing_is_zero():
    rng = np.random.default_rng(0)
    x = rng.standard_cauchy(5000)
    x[::7] = np.nan
    codes = learn(x[:, np.newaxis], rng.random(5000) < 0.01).encode(x[:, np.newaxis])[:, 0]
    assert (codes[np.isnan(x)] == 0).all()
    order = np.argsort(x[~np.isnan(x)])
    assert (np.diff(codes[~np.isnan(x)][order].astype(int)) >= 0).all()
    assert codes[~np.isnan(x)].min() == 1


def test_a_few_positives_in_the_tail_keep_bins_of_their_own():
    rng = np.random.default_rng(0)
    negatives = rng.normal(size=200_000)
    positives = 3 + 0.2 * rng.random(30)  # among about 0.1 % of the negatives
    x = np.concatenate([negatives, positives])[:, np.newaxis]
    positive = np.arange(len(x)) >= len(negatives)
    codes = learn(x, positive).encode(x)[:, 0]
    assert len(np.unique(codes[positive])) == 30
    quantile_codes = np.searchsorted(np.quantile(x, np.linspace(0, 1, 255)), positives)
    assert len(np.unique(quantile_codes)) < 3


@settings(deadline=None)
@given(
    arrays(np.float64, st.integers(0, 2000), elements=FLOATS),
    arrays(np.float64, st.integers(0, 2000), elements=FLOATS),
)
def test_never_more_edges_than_bins_allow(negatives, positives):
    edges = class_quantile_edges(np.sort(negatives), np.sort(positives))
    assert len(edges) <= MAX_BINS - 1
    assert (np.diff(edges) > 0).all()


@settings(deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 50), st.lists(st.booleans(), max_size=200))
def test_the_sample_of_a_union_is_the_sample_of_the_samples(seed, size, side):
    rows, side = np.arange(len(side)) * 17, np.array(side, dtype=bool)
    parts = [sample_rows(rows[side], seed, size), sample_rows(rows[~side], seed, size)]
    merged = sample_rows(np.sort(np.concatenate(parts)), seed, size)
    np.testing.assert_array_equal(merged, sample_rows(rows, seed, size))


def test_row_bits_look_uniform_and_depend_on_the_seed():
    a, b = row_bits(np.arange(100_000), 1), row_bits(np.arange(100_000), 2)
    assert len(np.unique(a)) == 100_000
    assert abs((a / 2.0**64).mean() - 0.5) < 0.005
    assert abs(np.corrcoef(a / 2.0**64, b / 2.0**64)[0, 1]) < 0.02


def test_unknown_and_missing_categories_have_code_zero():
    x = np.array([3.0, 1.0, 3.0, 7.0, np.nan])[:, np.newaxis]
    binning = learn(x, categorical=np.array([True]))
    np.testing.assert_array_equal(binning.encode(x)[:, 0], [2, 1, 2, 3, 0])
    np.testing.assert_array_equal(
        binning.encode(np.array([[2.0], [99.0], [7.0]]))[:, 0], [0, 0, 3]
    )


def test_beyond_255_categories_the_rarest_share_a_code():
    x = np.concatenate([np.repeat(np.arange(254.0), 3), np.arange(254.0, 400.0)])[
        :, np.newaxis
    ]
    binning = learn(x, categorical=np.array([True]))
    codes = binning.encode(x)[:, 0]
    assert len(np.unique(codes[: 254 * 3])) == 254
    assert set(codes[254 * 3 :].tolist()) == {255}


def test_sparse_tables_have_the_codes_of_dense_ones():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3000, 4)) < 0.1, rng.normal(size=(3000, 4)), 0.0)
    positive = rng.random(3000) < 0.05
    dense, csr = learn(X, positive), learn(sparse.csr_array(X), positive)
    np.testing.assert_array_equal(dense.encode(X), csr.encode(sparse.csr_array(X)))


def test_integers_beyond_single_precision_keep_their_digits():
    x = np.array([2e9, 2e9 + 1, 2e9 + 2])[:, np.newaxis]
    np.testing.assert_array_equal(learn(x).encode(x)[:, 0], [1, 2, 3])


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


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 600)


@pytest.mark.usefixtures("small_samples")
@settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
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


@pytest.mark.usefixtures("small_samples")
def test_255_values_over_two_parts_are_all_kept_and_256_are_not():
    for n in (255, 256):
        X = np.arange(float(n))[:, np.newaxis]
        signs = np.where(np.arange(n) % 9 == 0, 1, -1).astype(np.int16)
        found = in_parts(X, signs, np.zeros(1, bool), 2, [100], 0, [0])
        assert same(found, Binning.learn(X, signs, np.zeros(1, bool), 0))
        assert (found.n_codes[0] == 256) == (n == 255)
