"""What a pool's training holds in memory, and when it lets go of it."""

import gc
import tempfile
import threading
import time
import tracemalloc
import weakref
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from damvi import DAMVIVotingClassifier, _kernels
from damvi.voters import PoolVoters, columns, pool
from damvi.voters.pool import Judge, ModelOnDisk, put_on_disk

N, FOLDS = 900, 3


@pytest.fixture(scope="module")
def rows():
    return make_classification(N, 6, n_informative=4, weights=[0.8], random_state=1)


class Noted(GaussianNB):
    """Notes on how many rows it is trained, and carries some weight around."""

    notes: ClassVar[list[tuple[str, int]]] = []

    def __init__(self, name="", load=0, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.name = name
        self.load = load

    def fit(self, X, y, sample_weight=None):
        self.notes.append((self.name, len(X)))
        self.load_ = np.zeros(self.load)
        return super().fit(X, y, sample_weight)


@pytest.fixture
def notes(monkeypatch):
    monkeypatch.setattr(Noted, "notes", [])
    monkeypatch.setattr(pool, "MANY_ROWS", 100)
    return Noted


def three():
    return [
        ("large", Noted("large", 10_000)),
        ("small", Noted("small", 10, var_smoothing=0.1)),
        ("medium", Noted("medium", 1000, var_smoothing=0.5)),
    ]


def fitted(rows, estimators, **options):
    return DAMVIVotingClassifier(estimators, cv=FOLDS, random_state=0, **options).fit(*rows)


def test_models_of_all_rows_come_last(rows, notes, monkeypatch):
    monkeypatch.setattr("damvi.voting.strong_pool_for", lambda *args, **options: three())
    monkeypatch.setattr(Judge, "screen", lambda judge, training: None)
    model = fitted(rows, "strong")
    n_folds = FOLDS * len(three())
    assert all(n < N for _, n in notes.notes[:n_folds])
    assert notes.notes[n_folds:] == [("large", N), ("small", N), ("medium", N)]
    assert model.voters_.names == ("large", "small", "medium")
    assert list(model.seconds_) == ["large", "small", "medium"]


def test_models_of_a_list_are_trained_in_its_order_all_rows_last(rows, notes):
    PoolVoters.train(three(), *rows, seed=0, cv=FOLDS)
    names = [name for name, _ in three()]
    expected = [(name, N * 2 // 3) for name in names for _ in range(FOLDS)]
    assert notes.notes == expected + [(name, N) for name in names]


def test_in_a_given_time_the_model_of_all_rows_is_the_last_of_its_voter(
    rows, notes, monkeypatch
):
    monkeypatch.setattr(pool, "HOPELESS", -1.0)
    fitted(rows, three(), time_limit=100)
    names = [name for name, _ in three()]
    expected = [(name, n) for name in names for n in (*[N * 2 // 3] * FOLDS, N)]
    assert [note for note in notes.notes if note[1] > N / 2] == expected


def test_voters_are_told_of_when_their_votes_are_there(rows, notes, monkeypatch):
    told = []
    plain = Judge.describe

    def describe(judge, training, k):
        told.append((training.named[k][0], len(training.models)))
        return plain(judge, training, k)

    monkeypatch.setattr(Judge, "describe", describe)
    fitted(rows, three(), verbose=1)
    assert told == [("large", 0), ("small", 0), ("medium", 0)]


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


def test_freed_memory_is_given_back_all_the_while(rows, notes, monkeypatch):
    calls = []
    monkeypatch.setattr(_kernels, "EVERY", 0.01)
    monkeypatch.setattr(_kernels, "_malloc_trim", lambda: calls.append)
    with _kernels.giving_memory_back():
        while len(calls) < 3:
            time.sleep(0.01)
    n, names = len(calls), [thread.name for thread in threading.enumerate()]
    assert "damvi-memory" not in names
    with _kernels.giving_memory_back(False):
        pass
    assert len(calls) == n
    for limit in (None, 100):
        calls.clear()
        fitted(rows, three(), time_limit=limit)
        assert len(calls) > FOLDS * len(three())


class Unpicklable:
    def __reduce__(self):
        raise TypeError("cannot pickle '_thread.lock' object")


def test_large_models_wait_on_disk_and_come_back_the_same():
    fortran = np.asfortranarray(np.random.RandomState(0).normal(size=(300, 700)))
    model = {"rows": fortran, "few": np.arange(3), "none": np.zeros((0, 4)), "name": "a"}
    waiting = put_on_disk(model)
    assert isinstance(waiting, ModelOnDisk)
    assert len(waiting.rest) < 2000
    for _ in range(2):
        again = waiting.load()
        for name in ("rows", "few", "none"):
            np.testing.assert_array_equal(again[name], model[name])
            assert again[name].dtype == model[name].dtype
            assert again[name].flags.writeable
        assert again["rows"].flags.f_contiguous
        assert again["name"] == "a"
    file = waiting.file
    del waiting
    assert file.closed


@pytest.mark.parametrize("failing", ["pickle", "no disk", "full disk"])
def test_models_that_cannot_wait_on_disk_stay_in_memory(failing, monkeypatch):
    def none(*args, **options):
        raise OSError(30, "Read-only file system")

    full = Path("/dev/full")
    if failing == "full disk" and not full.exists():
        pytest.skip("no /dev/full here")
    # The few bytes before the large array stay in a buffer, which closing tries to write.
    model = [np.zeros(9), np.zeros(2**18), Unpicklable() if failing == "pickle" else None]
    if failing != "pickle":
        opened = none if failing == "no disk" else partial(open, full, "w+b")
        monkeypatch.setattr(tempfile, "TemporaryFile", opened)
    assert put_on_disk(model) is model
    gc.collect()  # pytest reports what a finalizer raises


def test_a_model_whose_file_was_cut_off_is_not_one_of_zeros():
    waiting = put_on_disk(np.ones(2**18))
    waiting.file.truncate(10)
    with pytest.raises(OSError, match="cut off"):
        waiting.load()


@pytest.mark.parametrize("limit", [None, 1000])
def test_models_of_the_strong_pool_wait_on_disk(rows, notes, monkeypatch, limit):
    monkeypatch.setattr("damvi.voting.strong_pool_for", lambda *args, **options: three())
    monkeypatch.setattr(Judge, "screen", lambda judge, training: None)
    monkeypatch.setattr(pool, "HOPELESS", -1.0)
    monkeypatch.setattr(
        pool, "LARGE_MODEL", 50_000
    )  # bytes: more than two of the three have
    kinds = []
    plain = ModelOnDisk.load

    def load(waiting):
        kinds.append(len(waiting.sizes))
        return plain(waiting)

    monkeypatch.setattr(ModelOnDisk, "load", load)
    model = fitted(rows, "strong", time_limit=limit)
    assert len(kinds) == 1
    listed = fitted(rows, three(), time_limit=limit)
    assert len(kinds) == 1  # the user's models are not touched
    np.testing.assert_array_equal(model.vote(rows[0]), listed.vote(rows[0]))
    assert [len(one.load_) for one in model.estimators_] == [10_000, 10, 1000]
