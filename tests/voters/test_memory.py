"""What a pool's training holds in memory, and when it lets go of it."""

import tracemalloc
import weakref
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from damvi.voters import PoolVoters, columns

N = 900


@pytest.fixture(scope="module")
def rows():
    return make_classification(N, 6, n_informative=4, weights=[0.8], random_state=1)


class Doubled(BaseEstimator):
    """Makes a table of its own, and remembers which it was given."""

    given: ClassVar[list[weakref.ref]] = []

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        self.given.append(weakref.ref(X))
        return np.hstack([X, X])


class Lonely(GaussianNB):
    """Trained when the table of the step before is gone."""

    there: ClassVar[list[bool]] = []

    def fit(self, X, y, sample_weight=None):
        self.there.append(Doubled.given[-1]() is not None)
        return super().fit(X, y, sample_weight)


def test_pipelines_do_not_keep_the_copy_of_the_rows(rows):
    X, y = rows
    weight = np.linspace(1, 2, N)
    piped = [("piped", make_pipeline(Doubled(), Lonely()))]
    voters, votes, _ = PoolVoters.train(piped, X, y, seed=0, sample_weight=weight)
    assert Lonely.there == [False] * 6
    alone = make_pipeline(Doubled(), GaussianNB()).fit(
        X, y, gaussiannb__sample_weight=weight
    )
    (model,) = voters.estimators
    assert [name for name, _ in model.steps] == ["doubled", "lonely"]
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    # A pipeline with settings of its own is fitted by itself.
    own = [("piped", make_pipeline(Doubled(), Lonely(), verbose=True))]
    _, again, _ = PoolVoters.train(own, X, y, seed=0, sample_weight=weight)
    np.testing.assert_array_equal(votes, again)


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
