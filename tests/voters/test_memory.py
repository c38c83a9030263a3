"""What a pool's training holds in memory, and when it lets go of it."""

import tracemalloc

import numpy as np
import pytest

from damvi.voters import columns


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_pairs_are_made_within_the_memory_of_the_result(dtype):
    rng = np.random.RandomState(0)
    X = np.round(rng.normal(size=(30_000, 8)) * 3).astype(dtype)
    pairs = columns.PairColumns(random_state=0).fit(X, X[:, 0] * X[:, 1] > 3)
    tracemalloc.start()
    made = pairs.transform(X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.dtype == np.result_type(X, X / 1)
    assert most < 1.3 * made.nbytes
    np.testing.assert_array_equal(made[:100], pairs.transform(X[:100]))
    np.testing.assert_array_equal(made[-100:], pairs.transform(X[-100:]))
    assert pairs.transform(X[:0]).shape == (0, made.shape[1])
