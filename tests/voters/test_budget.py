"""Voters in a given time: who is tried, who is left out, and that it can be repeated."""

import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIVotingClassifier, io, voting
from damvi.voters import FastForestClassifier, SomeRows, budget


class Clock:
    """What the voters below say it is."""

    now = 0.0


class Timed(GaussianNB):
    """Takes so long a row, by the clock of the test."""

    def __init__(self, seconds=1.0, start=0.0, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.seconds = seconds
        self.start = start

    def fit(self, X, y, sample_weight=None):
        Clock.now += self.start + self.seconds * len(X)
        return super().fit(X, y, sample_weight)


class SlowToAnswer(LogisticRegression):
    """Takes so long a row to predict, by the clock of the test."""

    def __init__(self, seconds=1.0, C=1.0):
        super().__init__(C=C)
        self.seconds = seconds

    def predict_proba(self, X):
        Clock.now += self.seconds * len(X)
        return super().predict_proba(X)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)
    monkeypatch.setattr("damvi.voters.pool.HOPELESS", -1.0)
    # Threads do not wait for each other's clock: who is waited for must not depend on it.
    monkeypatch.setattr(budget, "PATIENCE", 1000.0)
    before = set(threading.enumerate())
    yield
    # Trainings that were given up go on, and would set the clock of the next test.
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)


@pytest.fixture
def small_trials(monkeypatch):
    monkeypatch.setattr(budget, "TRIALS", (100, 400))
    monkeypatch.setattr(budget, "ROWS_A_SECOND", 10)


@pytest.fixture(scope="module")
def rows():
    return make_classification(3000, 6, n_informative=4, weights=[0.9], random_state=1)


def fitted(pool, rows, **options):
    options = {"random_state": 0, "cv": 3, **options}
    return DAMVIVotingClassifier(pool, **options).fit(*rows)


def assert_same(one, other, X):
    assert one.voters_.names == other.voters_.names
    np.testing.assert_array_equal(one.weights_, other.weights_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.threshold_, other.threshold_)


def test_with_time_enough_a_limit_changes_nothing(rows):
    pool = [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=4))]
    free, limited = fitted(pool, rows), fitted(pool, rows, time_limit=300, n_jobs=2)
    assert_same(free, limited, rows[0])
    assert limited.left_out_ == {}
    assert free.estimators_used_ == limited.estimators_used_ == pool


@pytest.mark.usefixtures("clock")
def test_who_takes_too_long_is_left_out_and_others_are_tried(rows):
    # Three folds of 2,000 rows and all 3,000: nine times 1,000 rows.
    pool = [
        ("first", Timed(1e-3)),
        ("slow", Timed(8e-3, var_smoothing=0.1)),
        ("last", Timed(1e-3, var_smoothing=0.5)),
    ]
    model = fitted(pool, rows, time_limit=40)
    assert model.voters_.names == ("first", "last")
    assert "too slow: about" in model.left_out_["slow"]
    assert Clock.now < 40
    again = fitted(model.estimators_used_, rows)
    assert_same(model, again, rows[0])


@pytest.mark.usefixtures("clock")
def test_what_no_time_is_left_for_is_not_tried(rows):
    pool = [(name, Timed(3e-3)) for name in "abc"]
    model = fitted(pool, rows, time_limit=30)
    assert model.voters_.names == ("a",)
    assert set(model.left_out_) == {"b", "c"}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("start", [0.0, 0.2])
def test_the_first_voter_gets_fewer_rows_rather_than_no_time(rows, start, monkeypatch):
    X, y = rows
    monkeypatch.setattr(budget, "TRIALS", (300, 1200))
    pool = [("slow", Timed(10e-3, start)), ("slower", Timed(1.0))]
    with pytest.warns(UserWarning, match=r"'slow' on [0-9]{3}\), keeping all"):
        model = fitted(pool, rows, time_limit=60)
    assert model.seconds_["slow"] < 45  # the first fold, on all rows, took 20
    assert model.voters_.names == ("slow",)
    some = model.estimators_used_[0][1]
    assert isinstance(some, SomeRows)
    assert 300 <= some.max_rows < 1000
    # The voter is the classifier itself, with the whole weight of the table.
    assert isinstance(model.estimators_[0], Timed)
    assert model.estimators_[0].class_count_.sum() == pytest.approx(len(y))
    assert 0 < model.predict_proba(X)[:, 1].mean() < 0.5
    assert_same(model, fitted(model.estimators_used_, rows), X)


@pytest.mark.usefixtures("clock", "small_trials")
def test_a_trial_tells_who_cannot_be_the_first(rows, monkeypatch):
    monkeypatch.setattr(budget, "PATIENCE", 100.0)
    pool = [("heavy", Timed(0.0, 13.8)), ("light", Timed(1e-3))]
    model = fitted(pool, rows, time_limit=60)
    assert model.voters_.names == ("light",)
    assert model.left_out_ == {"heavy": "too slow even on 100 rows"}
    # With little time left, no other is looked for.
    pool = [("heavy", Timed(0.0, 20.0)), ("never", Timed(0.0, 1000.0))]
    with pytest.warns(UserWarning, match=r"'heavy' on 100\)"):
        model = fitted(pool, rows, time_limit=60)
    assert model.left_out_ == {"never": "no time left"}


@pytest.mark.usefixtures("clock", "small_trials")
def test_a_trial_tells_how_many_rows_there_is_time_for(rows):
    pool = [("slow", Timed(0.02)), ("slower", Timed(1.0))]
    with pytest.warns(UserWarning, match="trained on fewer .'slow' on"):
        model = fitted(pool, rows, time_limit=60)
    assert 200 < model.estimators_used_[0][1].max_rows < 900
    assert 15 < model.seconds_["slow"] < 45
    assert "slower" in model.left_out_


@pytest.mark.usefixtures("clock", "small_trials")
def test_others_get_fewer_rows_too_if_they_are_enough(rows):
    pool = [("quick", Timed(1e-3)), ("slow", Timed(0.015, var_smoothing=0.1))]
    with pytest.warns(UserWarning, match="trained on fewer .'slow' on"):
        model = fitted(pool, rows, time_limit=100)
    assert model.voters_.names == ("quick", "slow")
    assert 400 < model.estimators_used_[1][1].max_rows < 2000
    assert Clock.now < 115
    assert_same(model, fitted(model.estimators_used_, rows), rows[0])


@pytest.mark.usefixtures("clock")
def test_the_only_voter_is_trained_whatever_it_takes(rows):
    with pytest.warns(UserWarning, match=r"'heavy' on 1,000\)"):
        model = fitted([("heavy", Timed(0.0, 50.0))], rows, time_limit=20)
    assert model.voters_.names == ("heavy",)


class Sleeping(GaussianNB):
    """Takes longer than anybody could tell from a trial."""

    def __init__(self, awake, n_rows, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.awake = awake
        self.n_rows = n_rows

    def fit(self, X, y, sample_weight=None):
        if len(X) >= self.n_rows:
            AWAKE[self.awake].wait(20)
        return super().fit(X, y, sample_weight)


AWAKE = {}


@pytest.mark.parametrize("n_rows", [0, 900], ids=["any", "all"])
def test_nobody_waits_for_a_voter_that_does_not_come(rows, n_rows):
    few = rows[0][:900], rows[1][:900]
    AWAKE[n_rows] = threading.Event()
    pool = [("bayes", GaussianNB()), ("asleep", Sleeping(n_rows, n_rows))]
    start = time.perf_counter()
    model = fitted(pool, few, time_limit=3, n_jobs=2)
    assert 2 < time.perf_counter() - start < 8
    AWAKE[n_rows].set()
    assert model.left_out_ == {"asleep": "not trained in time"}
    again = fitted(model.estimators_used_, few)
    assert_same(model, again, rows[0])


def test_errors_of_voters_come_through(rows):
    class Broken(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("no luck")

    with pytest.raises(ValueError, match="voter 'broken' failed on fold 0: no luck"):
        fitted([("broken", Broken())], rows, time_limit=5)


def test_trees_that_are_yet_to_be_compiled_have_no_part(rows, monkeypatch):
    monkeypatch.setattr(budget, "is_compiled", lambda kernel: False)
    pool = [("trees", FastForestClassifier(2, n_jobs=1)), ("linear", LogisticRegression())]
    with pytest.warns(UserWarning, match="must be compiled once on this machine"):
        model = fitted(pool, rows, time_limit=20)
    assert model.voters_.names == ("linear",)
    assert "not compiled yet" in model.left_out_["trees"]


class Guess(GaussianNB):
    """Knows nothing, and says so."""

    def predict_proba(self, X):
        chance = np.random.RandomState(len(X)).uniform(size=len(X))
        return np.column_stack([1 - chance, chance])


def pool_with_a_guess(*args, **options):
    return [
        ("linear", LogisticRegression()),
        ("tree", DecisionTreeClassifier(max_depth=5)),
        ("guess", Guess()),
    ]


@pytest.fixture
def strong_with_a_guess(monkeypatch):
    monkeypatch.setattr(voting, "strong_pool_for", pool_with_a_guess)
    monkeypatch.setattr("damvi.voters.pool.HOPELESS", 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("strong_with_a_guess")
def test_who_would_have_no_weight_is_trained_no_further(rows):
    models = [fitted("strong", rows, n_jobs=n_jobs) for n_jobs in (1, 2)]
    for model in models:
        assert model.voters_.names == ("linear", "tree")
        assert list(model.left_out_) == ["guess"]
        assert "no weight" in model.left_out_["guess"]
        assert_same(models[0], model, rows[0])
    # A list is taken as it is: everybody in it has a vote.
    listed = fitted(models[0].estimators_used_, rows)
    assert_same(models[0], listed, rows[0])
    assert len(fitted(pool_with_a_guess(), rows).voters_) == 3
    # In a given time a list is no exception.
    limited = fitted(pool_with_a_guess(), rows, time_limit=100)
    assert_same(models[0], limited, rows[0])


@pytest.mark.slow
@pytest.mark.usefixtures("strong_with_a_guess")
def test_processes_leave_out_the_same(rows):
    with parallel_config(backend="loky"):
        there = fitted("strong", rows, n_jobs=2)
    assert_same(fitted("strong", rows), there, rows[0])


@pytest.mark.usefixtures("strong_with_a_guess")
@pytest.mark.parametrize("what", ["few", "folds", "time"])
def test_nobody_is_left_out_on_noise(rows, what):
    X, y = rows
    cv = 3
    if what == "few":
        X, y = X[:200], y[:200]
    elif what == "folds":
        cv = 2
    else:
        cv = TimeSeriesSplit(3)
    assert len(fitted("strong", (X, y), cv=cv).voters_) == 3


@pytest.mark.usefixtures("strong_with_a_guess")
def test_progress_tells_of_voters_as_they_come(rows, capsys):
    quiet = fitted("strong", rows)
    assert capsys.readouterr().err == ""
    for limit in (None, 100):
        assert_same(quiet, fitted("strong", rows, verbose=1, time_limit=limit), rows[0])
        told = capsys.readouterr().err
        assert "linear" in told
        assert "alone" in told
        assert "Dropped guess: no weight" in told


def test_a_limit_and_who_was_used_survive_clones_and_files(rows, tmp_path):
    pool = [("some", SomeRows(LogisticRegression(), 500)), ("bayes", GaussianNB())]
    model = fitted(pool, rows, time_limit=100)
    assert clone(model).time_limit == 100
    io.save(model, tmp_path / "model.damvi")
    back = io.load(tmp_path / "model.damvi")
    assert back.time_limit == 100
    np.testing.assert_array_equal(back.predict_proba(rows[0]), model.predict_proba(rows[0]))
    for wrong in (0, -1, "soon"):
        with pytest.raises(ValueError, match="time_limit"):
            fitted(pool, rows, time_limit=wrong)


def pool_with_a_slow_copy():
    return [
        ("bayes", Timed(1e-3)),
        ("linear", SlowToAnswer(1e-3)),
        ("copy", SlowToAnswer(1.0, C=0.9)),
    ]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("options", [{}, {"reweight": True}, {"time_limit": 1e6}])
def test_for_speed_who_is_slow_and_not_missed_leaves(rows, options):
    pool = pool_with_a_slow_copy()
    model = fitted(pool, rows, prefer="speed", **options)
    assert "adds too little" in model.left_out_["copy"]
    assert "bayes" in model.voters_.names  # which takes no time, by this clock
    # Given as a list, those that stayed make the same model, which knows nothing of more.
    options.pop("time_limit", None)
    assert_same(model, fitted(model.estimators_used_, rows, **options), rows[0])
    assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.usefixtures("clock")
def test_for_speed_nobody_leaves_whom_the_vote_would_miss(rows):
    pool = [("slow", SlowToAnswer(1.0)), ("weak", DecisionTreeClassifier(max_depth=1))]
    model = fitted(pool, rows, prefer="speed")
    assert model.left_out_ == {}
    assert_same(fitted(pool, rows), model, rows[0])


@pytest.mark.usefixtures("clock")
def test_for_speed_fitted_voters_are_timed_too(rows, capsys):
    X, y = rows
    trained = [(name, voter.fit(X, y)) for name, voter in pool_with_a_slow_copy()]
    model = fitted(trained, rows, cv="prefit", prefer="speed", verbose=1)
    assert "copy" in model.left_out_
    assert [name for name, _ in model.estimators_used_] == list(model.voters_.names)
    assert "Dropped copy: adds too little" in capsys.readouterr().err


def test_speed_survives_clones_and_files_and_needs_rows_in_memory(rows, tmp_path):
    X, y = rows
    pool = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]
    model = fitted(pool, rows, prefer="speed")
    assert clone(model).prefer == "speed"
    io.save(model, tmp_path / "model.damvi")
    back = io.load(tmp_path / "model.damvi")
    assert back.prefer == "speed"
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="prefer"):
        fitted(pool, rows, prefer="size")
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(TypeError, match="prefer cannot be used"):
        DAMVIVotingClassifier(pool, prefer="speed").fit(tmp_path / "x.parquet", "y")


def test_some_rows_are_all_of_the_rare_and_weighted_back():
    y = np.repeat([0, 1, 2], [9000, 900, 20])
    rows, factor = SomeRows(GaussianNB(), 2000).draw(y)
    assert np.bincount(y[rows]).tolist() == [1080, 900, 20]
    np.testing.assert_allclose(np.bincount(y[rows], factor), [9000, 900, 20])
    # In proportion if the rare are many, or cannot be weighted.
    rows, factor = SomeRows(GaussianNB(), 1000).draw(y)
    assert np.bincount(y[rows]).tolist() == [907, 91, 2]
    rows, factor = SomeRows(KNeighborsClassifier(), 2000).draw(y)
    assert factor is None
    assert np.bincount(y[rows]).tolist() == [1815, 181, 4]


def test_some_rows_make_a_classifier_of_their_own(rows):
    X, y = rows
    labels = np.array(["no", "yes"])[y]
    model = SomeRows(LogisticRegression(), 600, random_state=3).fit(X, labels)
    assert model.score(X, labels) > 0.85
    assert model.predict_proba(X).shape == (len(X), 2)
    assert (model.predict(X) == np.where(model.decision_function(X) > 0, "yes", "no")).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted = SomeRows(LogisticRegression(), 600).fit(X, labels, np.ones(len(y)))
    assert weighted.score(X, labels) > 0.85
