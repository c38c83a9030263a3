"""A stream's moments are those of all its rows at once; drift is what chance is not."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import damvi
from damvi import (
    DAMVIClassifier,
    DAMVIVotingClassifier,
    VoteStream,
    load,
    save,
)
from damvi.moments import Moments
from damvi.solvers import exact
from damvi.streaming import Drift
from damvi.streaming.drift import LEVEL, Margins
from damvi.votes import Votes, emphasis, plain_margin
from damvi.weighting import Settings

from .conftest import imbalanced, weigh

K = 5


class Column(ClassifierMixin, BaseEstimator):
    """Says what is in a column: a vote from -1 to 1."""

    def __init__(self, k=0):
        self.k = k

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        up = (1 + X[:, self.k]) / 2
        return np.column_stack([1 - up, up])

    def predict(self, X):
        return self.classes_[(X[:, self.k] > 0).astype(int)]


def cast(seed, n, soft=False, rate=0.25, skill=(0.9, 0.6, 0.4, 0.3, 0.1)):
    """Votes as a table, and labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    y[:2] = 0, 1
    leaning = (2 * y - 1)[:, np.newaxis] * np.array(skill) + rng.normal(size=(n, K))
    votes = np.tanh(leaning)
    return (votes if soft else np.where(votes > 0, 1.0, -1.0)), y


class Read:
    """The same voters asked at once, as thousands of batches want it."""

    def __init__(self, dtype):
        self.dtype = dtype

    def votes(self, X, n_jobs=None):
        return X.astype(self.dtype)

    def weighted_vote(self, X, weights, n_jobs=None):
        return X.astype(self.dtype) @ weights


def fitted(soft=False, **settings):
    X, y = cast(1000, 400, soft)
    pool = [(f"voter {k}", Column(k).fit(X, y)) for k in range(K)]
    way = {"voting": "soft" if soft else "hard", "calibration": None}
    model = DAMVIVotingClassifier(pool, cv="prefit", random_state=0, **way, **settings)
    model.fit(X, y)
    read = Read(np.float32 if soft else np.int8)
    assert np.array_equal(model.cast_votes(X), read.votes(X))
    model.voters_ = read
    return model


MODELS = {
    soft: fitted(
        soft,
        reweight=True,
        balance=0,
        shrinkage=0,
        fit_intercept=False,
        threshold="vote",
    )
    for soft in (False, True)
}


def signs_of(y):
    return np.where(y == 1, 1, -1).astype(np.int8)


def emphasized(votes, signs):
    """The rows' weights after step 2."""
    margin = plain_margin(votes, np.ones(len(votes), int), 2)
    return np.where(signs > 0, emphasis(margin, 1.0), 1.0)


def votes_of(X, y, soft=False, balance=0.0):
    """All rows at once, in one fold."""
    votes = X.astype(np.float32 if soft else np.int8)
    weight = ((y == 0).sum() / (y == 1).sum()) ** balance
    folds = np.zeros(len(y), np.int8)
    return Votes(votes, y, folds, class_weight=np.array([1.0, weight]))


def batch_moments(X, y, soft, weights=None):
    """The moments of all rows, from their definition."""
    H = X.astype(np.float32).astype(float) if soft else X
    signs = signs_of(y).astype(float)
    base = np.ones(len(y)) if weights is None else weights
    D = base * emphasized(H, signs)
    return H.T @ (D * signs), H.T @ (H * D[:, np.newaxis]), D.sum()


def assert_like(moments, m, M, total, tolerance=1e-12):
    unit = 2.0**30
    np.testing.assert_allclose(moments.m / unit, m, rtol=0, atol=tolerance * total)
    np.testing.assert_allclose(moments.M / unit, M, rtol=0, atol=tolerance * total)
    assert moments.total / unit == pytest.approx(total, rel=tolerance)


def feed(stream, X, y, sizes, weights=None):
    """All rows, in batches of these sizes over and over."""
    start, drifts = 0, []
    while start < len(y):
        size = sizes[len(drifts) % len(sizes)]
        rows = slice(start, start + size)
        some = None if weights is None else weights[rows]
        drifts.append(stream.partial_fit(X[rows], y[rows], some))
        start += size
    return drifts


@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    n=st.integers(2, 150),
)
def test_hard_votes_without_decay_are_exact_in_any_order(seed, sizes, n):
    X, y = cast(seed, n)
    stream = VoteStream(MODELS[False], prior_rows=0)
    feed(stream, X, y, sizes)
    again = VoteStream(MODELS[False], prior_rows=0)
    order = np.random.default_rng(seed).permutation(n)
    feed(again, X[order], y[order], sizes[::-1])
    votes, signs = X.astype(np.int8), signs_of(y)
    whole = Moments.of(votes, signs, emphasized(votes, signs))
    assert stream.moments_ == whole
    assert again.moments_ == whole
    assert stream.moments_.M.dtype == np.int64
    assert stream.rows_.tolist() == [(y == 0).sum(), (y == 1).sum()]
    assert stream.n_rows_seen_ == n


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True])
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    half_life=st.none() | st.floats(0.5, 1e6),
    weighted=st.booleans(),
)
def test_moments_are_those_of_all_rows_with_their_age(
    soft, seed, sizes, half_life, weighted
):
    X, y = cast(seed, 120, soft)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0, 7, 120) * (rng.random(120) < 0.8) if weighted else None
    stream = VoteStream(MODELS[soft], prior_rows=0, half_life=half_life, min_rows=1000)
    feed(stream, X, y, sizes, weights)
    age = np.arange(119, -1, -1.0)
    D = np.ones(120) if half_life is None else 0.5 ** (age / half_life)
    if weighted:
        D = D * weights
    # Without weights and decay, the emphasis is in fixed point as everywhere else.
    plain = half_life is None and not weighted
    assert_like(stream.moments_, *batch_moments(X, y, soft, D), 1e-9 if plain else 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("soft", "prior_rows"), [(False, "auto"), (True, 0)])
def test_the_size_of_the_batches_does_not_matter(soft, prior_rows):
    X, y = cast(3, 1000, soft)
    streams = []
    for size in (1, 7, 1000):
        stream = VoteStream(MODELS[soft], half_life=200, prior_rows=prior_rows)
        feed(stream, X, y, [size])
        streams.append(stream)
    for other in streams[1:]:
        m, M = streams[0].moments_.normalised()
        np.testing.assert_allclose(other.moments_.normalised()[0], m, atol=1e-12)
        np.testing.assert_allclose(other.moments_.normalised()[1], M, atol=1e-12)
        np.testing.assert_allclose(other.rows_, streams[0].rows_, rtol=1e-12)
        np.testing.assert_allclose(other.weights_, streams[0].weights_, atol=1e-9)


def test_large_batches_are_added_up_in_blocks(monkeypatch):
    X, y = cast(3, 1000)
    whole = VoteStream(MODELS[False], half_life=200)
    whole.partial_fit(X, y)
    monkeypatch.setattr("damvi.streaming.stream.BLOCK_BYTES", 8 * K * 64)
    blocks = VoteStream(MODELS[False], half_life=200)
    drift = blocks.partial_fit(X, y)
    np.testing.assert_allclose(blocks.weights_, whole.weights_, atol=1e-12)
    np.testing.assert_allclose(drift.vote, X @ MODELS[False].weights_, atol=1e-12)


def test_whole_numbers_become_floats_before_they_run_over(monkeypatch):
    monkeypatch.setattr("damvi.streaming.memory.ROOM", 100 * 2**30)
    X, y = cast(5, 600)
    stream = VoteStream(MODELS[False], prior_rows=0)
    feed(stream, X, y, [50])
    assert stream.moments_.M.dtype == np.float64
    assert_like(stream.moments_, *batch_moments(X, y, False), 1e-9)


def test_the_weights_are_the_solution_for_the_moments():
    X, y = cast(7, 3000)
    stream = VoteStream(MODELS[False], prior_rows=0)
    feed(stream, X, y, [500])
    expected = exact(stream.moments_).weights
    assert np.array_equal(stream.weights_, expected)
    assert np.array_equal(expected, weigh(votes_of(X, y)).weights)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("balance", [0, 0.25, 1])
def test_the_balance_of_classes_follows_the_rate_of_now(soft, balance):
    model = fitted(soft, balance=balance, reweight=0.5, shrinkage=0.01)
    X, y = cast(8, 1500, soft, rate=0.1)
    stream = VoteStream(model, prior_rows=0)
    feed(stream, X, y, [400])
    how = Settings(reweight=0.5, shrinkage=0.01, fit_intercept=True)
    expected = weigh(votes_of(X, y, soft, balance), how)
    np.testing.assert_allclose(stream.weights_, expected.weights, atol=1e-9)


def test_with_decay_the_classes_follow_a_change_of_rate():
    rare, frequent = cast(9, 4000, rate=0.05), cast(10, 4000, rate=0.4)
    forgets = VoteStream(MODELS[False], half_life=300)
    keeps = VoteStream(MODELS[False])
    first = feed(forgets, *rare, [500])
    feed(keeps, *rare, [500])
    down, up = forgets.rows_
    assert up / (up + down) == pytest.approx(0.05, abs=0.03)
    assert not first[-1].beyond_chance
    turn = feed(forgets, *frequent, [500])
    feed(keeps, *frequent, [500])
    down, up = forgets.rows_
    assert up / (up + down) == pytest.approx(0.4, abs=0.05)
    assert down + up == pytest.approx(300 / np.log(2), rel=0.01)
    # Without decay it is the rate of all rows, those of the fit among them.
    down, up = keeps.rows_
    y_fit = cast(1000, 400)[1]
    both = y_fit.sum() + rare[1].sum() + frequent[1].sum()
    assert up / (up + down) == both / 8400
    # The drift is seen at once, and is over once it is what is remembered.
    assert turn[0].beyond_chance
    assert turn[0].positive_rate.before < 0.1 < 0.3 < turn[0].positive_rate.now
    assert turn[0].positive_rate.p_value < 1e-6
    assert not turn[-1].beyond_chance


def test_the_weights_follow_voters_that_change():
    old, new = (0.1, 0.1, 0.1, 0.1, 2.0), (2.0, 0.1, 0.1, 0.1, 0.1)
    stream = VoteStream(MODELS[False], half_life=500)
    feed(stream, *cast(11, 3000, skill=old), [500])
    assert stream.weights_.argmax() == 4
    X, y = cast(13, 3000, skill=new)
    before = average_precision_score(y, stream.vote(X))
    drifts = feed(stream, *cast(12, 3000, skill=new), [500])
    assert stream.weights_.argmax() == 0
    assert drifts[0].gibbs_risk.p_value < 1e-6
    assert drifts[0].gibbs_risk.now > drifts[0].gibbs_risk.before + 0.2
    assert average_precision_score(y, stream.vote(X)) > before + 0.3


def test_a_batch_is_judged_by_weights_that_have_not_seen_it():
    X, y = cast(14, 300)
    stream = VoteStream(MODELS[False], prior_rows=0)
    feed(stream, *cast(15, 500), [500])
    weights = stream.weights_.copy()
    signs = signs_of(y)
    # Labels turned round would teach other weights, and must not change the vote.
    drift = pickle.loads(pickle.dumps(stream)).partial_fit(X, y)
    turned = pickle.loads(pickle.dumps(stream)).partial_fit(X, 1 - y)
    np.testing.assert_allclose(drift.vote, X @ weights, atol=1e-12)
    assert np.array_equal(drift.vote, turned.vote)
    margin = signs * (X @ weights)
    assert drift.gibbs_risk.now == pytest.approx(np.mean((1 - margin) / 2), abs=1e-12)
    assert drift.disagreement.now == pytest.approx(np.mean((1 - margin**2) / 2))
    assert drift.positive_rate.now == y.mean()
    assert drift.gibbs_risk_positives.now == pytest.approx((1 - margin[y == 1].mean()) / 2)
    # So are the figures before: weights learned on the rows would flatter.
    assert drift.gibbs_risk.before != stream.moments_.gibbs_risk(weights)


def test_weights_are_kept_until_enough_is_known_of_both_classes():
    X, y = cast(16, 2000)
    model = MODELS[False]
    stream = VoteStream(model, prior_rows=0, min_rows=50)
    up, down = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    for rows in (down[:600], up[:49]):
        assert not stream.partial_fit(X[rows], y[rows]).learned
        assert np.array_equal(stream.weights_, model.weights_)
        assert np.array_equal(stream.predict(X), model.predict(X))
    one_class = stream.partial_fit(X[up[49:50]], y[up[49:50]])
    assert one_class.learned
    assert not np.array_equal(stream.weights_, model.weights_)
    # Positives fade while only negatives come; what was learned stays.
    fading = VoteStream(model, prior_rows=0, half_life=200)
    assert fading.partial_fit(X, y).learned
    learned = fading.weights_
    drift = fading.partial_fit(X[down], y[down])
    assert not drift.learned
    assert np.array_equal(fading.weights_, learned)
    assert np.isnan(drift.gibbs_risk_positives.now)
    for _ in range(300):  # down to nothing at all
        fading.partial_fit(X[down], y[down])
    assert fading.rows_[1] == 0
    assert np.array_equal(fading.weights_, learned)
    assert fading.partial_fit(X, y).learned


def test_an_empty_batch_changes_nothing():
    X, y = cast(17, 300)
    stream = VoteStream(MODELS[False], half_life=100)
    stream.partial_fit(X, y)
    weights, moments = stream.weights_, stream.moments_
    drift = stream.partial_fit(X[:0], y[:0])
    assert (drift.n_rows, drift.learned, drift.beyond_chance) == (0, False, False)
    assert np.isnan(drift.gibbs_risk.now)
    assert len(drift.vote) == 0
    assert stream.weights_ is weights
    assert stream.moments_ == moments


def test_rows_of_no_weight_are_no_rows_but_pass_the_time():
    X, y = cast(18, 300)
    stream = VoteStream(MODELS[False], half_life=100, prior_rows=0)
    stream.partial_fit(X, y)
    rows = stream.rows_
    drift = stream.partial_fit(X[:100], y[:100], sample_weight=np.zeros(100))
    np.testing.assert_allclose(stream.rows_, rows / 2)
    assert np.isnan(drift.gibbs_risk.now)
    assert not drift.beyond_chance


@given(st.integers(0, 1000))
def test_a_row_of_weight_three_is_three_rows(seed):
    X, y = cast(seed, 60)
    times = np.random.default_rng(seed).integers(0, 4, 60)
    heavy = VoteStream(MODELS[False], prior_rows=0)
    heavy.partial_fit(X, y, times)
    many = VoteStream(MODELS[False], prior_rows=0)
    if times.sum():
        many.partial_fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    m, M = heavy.moments_.m, heavy.moments_.M
    np.testing.assert_allclose(m, many.moments_.m, rtol=1e-8, atol=100)
    np.testing.assert_allclose(M, many.moments_.M, rtol=1e-8, atol=100)


def test_voters_no_better_than_a_coin_leave_the_weights_alone():
    X, y = cast(19, 800, skill=(-2, -2, -2, -2, -2))
    stream = VoteStream(MODELS[False], prior_rows=0)
    with pytest.warns(UserWarning, match="no voter beats a coin flip"):
        drift = stream.partial_fit(X, y)
    assert not drift.learned
    assert np.array_equal(stream.weights_, MODELS[False].weights_)
    assert stream.n_rows_seen_ == 800


def test_an_untuned_threshold_follows_the_constant_and_any_other_stays():
    X, y = cast(20, 3000, soft=True, rate=0.1)
    model = fitted(True, threshold="vote", balance=0)
    stream = VoteStream(model, prior_rows=0)
    stream.partial_fit(X, y)
    how = Settings(reweight=0, shrinkage=model.shrinkage, fit_intercept=True)
    expected = weigh(votes_of(X, y, soft=True), how)
    np.testing.assert_allclose(stream.weights_, expected.weights, atol=1e-9)
    assert stream.threshold_ == pytest.approx(expected.threshold, abs=1e-9)
    assert stream.threshold_ != model.threshold_
    tuned = fitted(True)
    stream = VoteStream(tuned)
    drift = stream.partial_fit(X, y)
    assert stream.threshold_ == tuned.threshold_
    stream.threshold_ = 0.25
    assert np.array_equal(stream.predict(X) == 1, stream.vote(X) > 0.25)
    np.testing.assert_allclose(stream.decision_function(X), stream.vote(X) - 0.25)
    stream.partial_fit(X, y)
    assert stream.threshold_ == 0.25
    assert tuned.threshold_ != 0.25
    assert drift.learned


def real_models():
    X, y = imbalanced(1500, seed=2)
    two = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    tree = [*two, ("tree", DecisionTreeClassifier(max_depth=4, random_state=0))]
    yield "trees", DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    settings = {"n_estimators": 20, "votes": "oob", "random_state": 0}
    yield "out of bag", DAMVIClassifier(**settings).fit(X, y)
    yield "pool", DAMVIVotingClassifier(tree, random_state=0).fit(X, y)
    weights = np.random.default_rng(0).uniform(0.1, 9, 1500)
    yield "weighted", DAMVIVotingClassifier(tree, random_state=0).fit(X, y, weights)
    yield "hard pool", DAMVIVotingClassifier(tree, voting="hard", random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def models():
    return dict(real_models())


@pytest.mark.parametrize("name", ["trees", "out of bag", "pool", "weighted", "hard pool"])
def test_it_starts_from_votes_on_rows_that_the_voters_were_not_trained_on(models, name):
    model = models[name]
    kept = model.weights_.copy()
    stream = VoteStream(model)
    assert stream.rows_.sum() == 1500
    assert stream.n_rows_seen_ == 0
    if isinstance(model, DAMVIVotingClassifier):
        np.testing.assert_allclose(stream.weights_, model.weights_, atol=1e-9)
    else:
        # Trees do better on rows they know; nothing of that is taken over.
        honest = stream.moments_.gibbs_risk(stream.weights_)
        assert honest > model.gibbs_risk_ * (1.2 if name == "trees" else 0.8)
    X, y = imbalanced(3000, seed=5)
    drift = stream.partial_fit(X, y)
    assert not drift.beyond_chance
    figures = drift.gibbs_risk, drift.disagreement, drift.gibbs_risk_positives
    for figure in figures:
        assert figure.before == pytest.approx(figure.now, abs=0.06)
    assert np.array_equal(model.weights_, kept)


def test_the_rows_of_the_fit_count_for_as_many_as_one_says(models):
    for rows in (10, 4000):
        stream = VoteStream(models["trees"], prior_rows=rows)
        assert stream.rows_.sum() == pytest.approx(rows)
        m, M = stream.moments_.normalised()
        expected = VoteStream(models["trees"]).moments_.normalised()
        np.testing.assert_allclose(m, expected[0], atol=1e-12)
        np.testing.assert_allclose(M, expected[1], atol=1e-12)
    few = VoteStream(models["trees"], prior_rows=10)
    assert np.array_equal(few.weights_, models["trees"].weights_)


def test_voters_that_have_seen_all_rows_start_from_nothing():
    X, y = imbalanced(400, seed=0)
    model = DAMVIClassifier(
        n_estimators=5, bootstrap=False, max_samples=1.0, random_state=0
    ).fit(X, y)
    stream = VoteStream(model)
    assert not stream.rows_.any()
    assert np.array_equal(stream.weights_, model.weights_)
    assert np.isnan(stream.partial_fit(X, y).gibbs_risk.before)
    with pytest.raises(ValueError, match="voters were trained on all rows of a class"):
        VoteStream(model, prior_rows=100)


def test_a_loaded_model_starts_from_nothing(models):
    loaded = pickle.loads(pickle.dumps(models["trees"]))
    stream = VoteStream(loaded)
    assert stream.rows_.tolist() == [0, 0]
    assert np.array_equal(stream.weights_, loaded.weights_)
    X, y = imbalanced(800, seed=6)
    first = stream.partial_fit(X, y)
    assert np.isnan(first.gibbs_risk.before)
    assert np.isnan(first.gibbs_risk.p_value)
    assert first.learned
    assert not first.beyond_chance
    with pytest.raises(ValueError, match="does not include the votes on its training rows"):
        VoteStream(loaded, prior_rows=100)


@pytest.mark.parametrize("half_life", [None, 1000])
@pytest.mark.parametrize("name", ["trees", "pool"])
def test_a_saved_stream_goes_on_where_it_was(models, name, half_life, tmp_path):
    X, y = imbalanced(900, seed=7)
    stream = VoteStream(models[name], half_life=half_life)
    stream.partial_fit(X[:400], y[:400])
    stream.save(tmp_path / "stream.npz")
    save(models[name], tmp_path / "model.damvi")
    loaded = load(tmp_path / "model.damvi")
    again = VoteStream.load(tmp_path / "stream.npz", loaded)
    for each in (stream, again):
        each.partial_fit(X[400:], y[400:])
    assert np.array_equal(stream.weights_, again.weights_)
    assert stream.threshold_ == again.threshold_
    assert np.array_equal(stream.decision_function(X), again.decision_function(X))
    assert repr(stream) == repr(again)
    assert "900 rows seen" in repr(stream)


def saved(stream, path, **changed):
    stream.save(path)
    with np.load(path) as arrays:
        np.savez(path, **{**arrays, **changed})
    return path


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": np.full(9, 1 / 9)}, "inconsistent"),
        ({"weights": np.zeros(15)}, "inconsistent"),
        ({"threshold": np.array(np.nan)}, "inconsistent"),
        ({"rows": np.array([1.0, -1.0])}, "negative number of rows"),
        ({"mass": np.array([1.0, np.inf])}, "mass is not finite"),
        ({"negatives_M": np.zeros((9, 9))}, "wrong dtype or shape"),
        ({"positives_m": np.zeros(15, np.float32)}, "wrong dtype or shape"),
        ({"margins": np.array([{}], object)}, "allow_pickle=False|Object arrays"),
        ({"more": np.zeros(10**6)}, "too large"),
        ({"min_rows": np.array("many")}, "min_rows='many'; expected a number of rows"),
        ({"made_from": np.array("other")}, "of another model"),
        ({"made_from": np.array([])}, "not a stream of this model"),
    ],
)
def test_files_that_are_no_stream_of_the_model(models, tmp_path, changed, said):
    path = saved(VoteStream(models["trees"]), tmp_path / "stream.npz", **changed)
    with pytest.raises(ValueError, match=said):
        VoteStream.load(path, models["trees"])


def test_a_stream_is_refused_by_another_model_and_when_damaged(models, tmp_path):
    path = tmp_path / "stream.npz"
    VoteStream(models["trees"]).save(path)
    with pytest.raises(ValueError, match=r"not a stream of this model|another model"):
        VoteStream.load(path, models["pool"])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged"):
        VoteStream.load(path, models["trees"])


def test_what_happens_to_the_model_later_does_not_reach_the_stream(models):
    X, y = imbalanced(600, seed=8)
    model = DAMVIClassifier(n_estimators=15, random_state=0).fit(X, y)
    stream = VoteStream(model)
    said = stream.vote(X)
    model.prune(3)
    assert np.array_equal(stream.vote(X), said)
    assert stream.partial_fit(X, y).n_rows == 600
    pruned = VoteStream(model)
    assert len(pruned.weights_) == len(model.weights_) <= 3
    pruned.partial_fit(X, y)


def test_frames_and_words_for_labels():
    X, y = imbalanced(600, seed=9)
    names = [f"column {k}" for k in range(4)]
    frame, words = pd.DataFrame(X, columns=names), pd.Series(np.where(y, "bad", "good"))
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(frame, words)
    stream = VoteStream(model)
    stream.partial_fit(frame[:200], words[:200])
    assert set(stream.predict(frame)) <= {"bad", "good"}
    assert stream.pos_label_ == "bad"
    with pytest.raises(ValueError, match="feature names should match"):
        stream.partial_fit(frame.rename(columns={"column 0": "other"}), words)
    with pytest.raises(ValueError, match="feature names should match"):
        stream.partial_fit(frame[names[:3]], words)
    with pytest.raises(ValueError, match=r"y is 'ugly' at row 3, which is not .*'bad'"):
        stream.partial_fit(frame[:4], ["bad", "good", "good", "ugly"])
    assert stream.n_rows_seen_ == 200


@pytest.mark.parametrize(
    ("y", "weights", "said"),
    [
        (
            [0, 1, 2],
            None,
            r"y is 2 at row 2, which is not one of the model's classes \[0, 1\]",
        ),
        (["0", "1", "1"], None, "y is '0' at row 0"),
        ([0, 1, np.nan], None, "y is nan at row 2.*remove rows without a label"),
        ([0, 1, None], None, "y is None at row 2"),
        ([0, 1], None, "inconsistent numbers of samples"),
        ([0, 1, 1], [1, 1], "sample_weight has shape"),
        ([0, 1, 1], [1, -1, 1], "sample_weight is negative in row 1"),
        ([0, 1, 1], [1, np.inf, 1], "sample_weight is inf at row 1"),
        (
            [0, 1, 1],
            [1, 1e200, 1],
            r"sample_weight has a maximum of 1e\+200, .* counts for 1",
        ),
    ],
)
def test_what_it_does_not_take_changes_nothing(y, weights, said):
    stream = VoteStream(MODELS[False])
    before = stream.moments_
    with pytest.raises(ValueError, match=said):
        stream.partial_fit(np.ones((3, K)), y, weights)
    assert stream.moments_ == before
    assert stream.n_rows_seen_ == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"half_life": 0},
        {"half_life": -5},
        {"half_life": np.inf},
        {"half_life": "day"},
        {"half_life": True},
        {"min_rows": 0},
        {"prior_rows": -1},
        {"prior_rows": "all"},
        {"prior_rows": np.nan},
    ],
)
def test_settings_that_make_no_sense(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name}=.*; expected a number of rows"):
        VoteStream(MODELS[False], **settings)


def test_models_that_make_no_sense():
    with pytest.raises(
        TypeError, match=r"needs a fitted DAMVIClassifier or .*, not Gaussian"
    ):
        VoteStream(GaussianNB())
    with pytest.raises(ValueError, match="not fitted"):
        VoteStream(DAMVIClassifier())


@pytest.mark.slow
def test_of_a_model_of_a_table_it_takes_the_classifier(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=600), "shop": list("abcdef") * 100})
    cuts = np.searchsorted([1, 2], table["size"] + rng.normal(size=600) / 3)
    table["kind"] = np.array(["good", "poor", "bad"])[cuts]
    model = damvi.fit(table, "kind", pool="trees")
    model.save(tmp_path / "model.damvi")
    model = damvi.load(tmp_path / "model.damvi")
    for make in (VoteStream, partial(VoteStream.load, tmp_path / "none.npz")):
        with pytest.raises(TypeError, match=r"VoteStream\(model.classifier\).*encode"):
            make(model)
    stream = VoteStream(model.classifier, min_rows=5)
    assert stream.rows_.tolist() == [0, 0, 0]
    rows = model.schema.encode(table)
    places = table["kind"].map(model.target.classes.index)
    drift = stream.partial_fit(rows, places)
    assert drift.learned
    assert np.isnan(drift.gibbs_risk.before)
    assert (stream.predict(rows) == places).mean() > 0.8


def rows(rng, n, rate=0.05, skill=0.6):
    """Margins of a vote that is right more often than not, and the classes."""
    positive = rng.random(n) < rate
    margin = np.clip(rng.normal(np.where(positive, skill - 0.4, skill), 0.5), -1, 1)
    return margin, positive


def drift_of(before, now):
    return Drift(1, before.compared(now), learned=True, vote=np.empty(0))


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 50),
    factor=st.floats(0.01, 1),
    weighted=st.booleans(),
)
def test_the_sums_hold_means_and_variances(seed, n, factor, weighted):
    rng = np.random.default_rng(seed)
    margin, positive = rows(rng, n, rate=0.5)
    weights = rng.uniform(0.1, 5, n) if weighted else np.ones(n)
    cut = n // 2
    parts = [
        Margins.of(margin[some], positive[some], weights[some])
        for some in (slice(cut), slice(cut, None))
    ]
    found = (parts[0].faded(factor) + parts[1]).samples()
    D = weights * np.where(np.arange(n) < cut, factor, 1)
    figures = {
        "positive_rate": (positive.astype(float), positive >= 0),
        "gibbs_risk": ((1 - margin) / 2, positive >= 0),
        "disagreement": ((1 - margin**2) / 2, positive >= 0),
        "gibbs_risk_positives": ((1 - margin) / 2, positive),
    }
    for name, (values, counted) in figures.items():
        if not counted.any():
            assert np.isnan(found[name].mean)
            continue
        d, x = D[counted], values[counted]
        mean = np.average(x, weights=d)
        assert found[name].mean == pytest.approx(mean, abs=1e-12)
        variance = np.average((x - mean) ** 2, weights=d)
        assert found[name].variance == pytest.approx(variance, abs=1e-10)
        assert found[name].rows == pytest.approx(d.sum() ** 2 / (d**2).sum())


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 20, 500])
@pytest.mark.parametrize("remembered", [5, 50, 5000])
def test_chance_is_rarely_called_drift(n, remembered):
    rng = np.random.default_rng(n)
    alarms = [
        drift_of(
            Margins.of(*rows(rng, remembered)), Margins.of(*rows(rng, n))
        ).beyond_chance
        for _ in range(1000)
    ]
    assert np.mean(alarms) <= LEVEL


def test_what_is_no_chance_is_seen():
    rng = np.random.default_rng(0)
    before = Margins.of(*rows(rng, 20_000))
    seen = {
        "gibbs_risk": rows(rng, 1000, skill=0.4),
        "positive_rate": rows(rng, 1000, rate=0.12),
        "disagreement": (np.sign(rows(rng, 1000)[0]), rng.random(1000) < 0.05),
    }
    for name, changed in seen.items():
        drift = drift_of(before, Margins.of(*changed))
        assert getattr(drift, name).p_value < LEVEL / 4
        assert drift.beyond_chance
    # Positives that are found no more hardly show in the risk of all rows.
    margin, positive = rows(rng, 1000)
    margin[positive] -= 0.7
    drift = drift_of(before, Margins.of(np.maximum(margin, -1), positive))
    assert drift.gibbs_risk_positives.p_value < 1e-4
    assert drift.gibbs_risk.p_value > 1e-3


def test_no_rows_no_verdict():
    some = Margins.of(*rows(np.random.default_rng(0), 50))
    for before, now in ((Margins.none(), some), (some, Margins.none())):
        drift = drift_of(before, now)
        assert all(np.isnan(change.p_value) for change in drift.changes.values())
        assert not drift.beyond_chance
    same = drift_of(some, some)
    assert all(change.p_value == 1 for change in same.changes.values())


def test_as_a_row_of_a_table_and_as_text():
    rng = np.random.default_rng(1)
    drift = drift_of(Margins.of(*rows(rng, 500)), Margins.of(*rows(rng, 500, skill=0)))
    table = pd.DataFrame([drift.as_dict(), drift.as_dict()])
    assert len(table.columns) == 3 + 3 * 4
    assert table["gibbs_risk_now"][0] == drift.gibbs_risk.now
    assert table["beyond_chance"].all()
    text = str(drift)
    assert "gibbs risk positives" in text
    assert text.endswith("significant change; weights solved again")


class Shares(Column):
    """What is in three columns, one for each class."""

    def predict_proba(self, X):
        return X[:, 3 * self.k : 3 * self.k + 3]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def cast_three(seed, n, rates=(0.7, 0.2, 0.1), skill=1.0):
    """Shares of the vote of K voters as a table, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=rates)
    y[:3] = 0, 1, 2
    good = skill * np.array([1.4, 1.2, 1.0, 0.8, 0.4])[:, np.newaxis]
    leaning = np.exp(good * (y[:, np.newaxis] == np.arange(3))[:, np.newaxis, :])
    shares = leaning * rng.exponential(size=(n, K, 3))
    return (shares / shares.sum(axis=2, keepdims=True)).reshape(n, 3 * K), y


def fitted_three(soft, **settings):
    X, y = cast_three(1000, 400)
    pool = [(f"voter {k}", Shares(k).fit(X, y)) for k in range(K)]
    way = {"voting": "soft" if soft else "hard", "calibration": None}
    model = DAMVIVotingClassifier(pool, cv="prefit", random_state=0, **way, **settings)
    return model.fit(X, y)


@pytest.fixture(scope="module")
def of_three():
    """With the settings of the paper, and with those of a pool."""
    paper = {"reweight": True, "balance": 0, "shrinkage": 0, "fit_intercept": False}
    return {
        "hard": fitted_three(False, threshold="vote", **paper),
        "soft": fitted_three(True, threshold="vote", **paper),
        "hard pool": fitted_three(False, reweight=0.5, balance=0.5),
        "soft pool": fitted_three(True),
    }


KINDS = ["hard", "soft", "hard pool", "soft pool"]


@pytest.mark.parametrize("kind", KINDS)
def test_three_classes_have_the_weights_of_all_rows_at_once(of_three, kind):
    model = of_three[kind]
    # Rates unlike those of the fit: the classes that are rare now are emphasized.
    X, y = cast_three(1, 1500, rates=(0.2, 0.55, 0.25))
    stream = VoteStream(model, prior_rows=0)
    drifts = feed(stream, X, y, [400])
    assert stream.rows_.tolist() == np.bincount(y).tolist()
    votes = Votes(
        model.cast_votes(X),
        y,
        np.zeros(len(y), np.int8),
        class_weight=model.labels_.class_weight(np.bincount(y), model.balance),
        reweighted=np.array([True, False, True]),
    )
    expected = weigh(votes, Settings.of(model))
    m, M = expected.moments.normalised()
    np.testing.assert_allclose(stream.moments_.normalised()[0], m, atol=1e-9)
    np.testing.assert_allclose(stream.moments_.normalised()[1], M, atol=1e-9)
    np.testing.assert_allclose(stream.weights_, expected.weights, atol=1e-7)
    assert not np.allclose(stream.weights_, model.weights_, atol=1e-3)
    if kind == "hard":
        assert stream.moments_ == expected.moments
    # The estimator's answers, with these weights.
    like = pickle.loads(pickle.dumps(model))
    like.weights_ = stream.weights_
    assert np.array_equal(stream.threshold_, model.threshold_)
    assert stream.vote(X).shape == (1500, 3)
    assert np.array_equal(stream.vote(X), like.vote(X))
    assert np.array_equal(stream.decision_function(X), like.decision_function(X))
    assert np.array_equal(stream.predict(X), like.predict(X))
    np.testing.assert_allclose(drifts[0].vote, model.vote(X[:400]), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half_life", [None, 200])
def test_batches_of_three_classes_may_be_cut_anywhere(of_three, kind, half_life):
    X, y = cast_three(2, 600)
    streams = [VoteStream(of_three[kind], half_life=half_life) for _ in range(3)]
    for stream, size in zip(streams, (7, 100, 600), strict=True):
        feed(stream, X, y, [size])
    for other in streams[1:]:
        m, M = streams[0].moments_.normalised()
        np.testing.assert_allclose(other.moments_.normalised()[0], m, atol=1e-12)
        np.testing.assert_allclose(other.moments_.normalised()[1], M, atol=1e-12)
        np.testing.assert_allclose(other.rows_, streams[0].rows_, rtol=1e-12)
        np.testing.assert_allclose(other.weights_, streams[0].weights_, atol=1e-8)


def test_drift_of_three_classes_is_told_class_by_class(of_three):
    model = of_three["soft pool"]
    stream = VoteStream(model)
    calm = stream.partial_fit(*cast_three(3, 1000))
    assert not calm.beyond_chance
    X, y = cast_three(4, 1000)
    drift = pickle.loads(pickle.dumps(stream)).partial_fit(X, y)
    own = drift.vote[np.arange(1000), y]
    assert drift.gibbs_risk.now == pytest.approx(1 - own.mean(), abs=1e-6)
    assert drift.disagreement.now == pytest.approx(2 * np.mean(own * (1 - own)), abs=1e-6)
    for c in range(3):
        assert drift.changes[f"rate_{c}"].now == np.mean(y == c)
        risk = drift.changes[f"gibbs_risk_{c}"]
        assert risk.now == pytest.approx(1 - own[y == c].mean(), abs=1e-6)
        assert risk.before == pytest.approx(risk.now, abs=0.05)
    with pytest.raises(AttributeError, match=r"drift\.changes has the figures"):
        _ = drift.positive_rate
    more = pickle.loads(pickle.dumps(stream)).partial_fit(
        *cast_three(5, 1000, rates=(0.6, 0.15, 0.25))
    )
    assert more.beyond_chance
    assert more.changes["rate_2"].p_value < 1e-6
    assert "rate 2" in str(more)
    # A rare class that voters know no more shows in its own risk first.
    turned = X.reshape(-1, K, 3).copy()
    turned[y == 2] = turned[y == 2][:, :, ::-1]
    worse = stream.partial_fit(turned.reshape(1000, -1), y)
    assert worse.changes["gibbs_risk_2"].p_value < 1e-9 < worse.gibbs_risk.p_value
    assert worse.changes["gibbs_risk_0"].p_value == 1
    assert worse.beyond_chance
    assert "of 0, " in repr(stream)
    empty = stream.partial_fit(X[:0], y[:0])
    assert empty.vote.shape == (0, 3)


def real_models_of_three():
    X, y = imbalanced(900, seed=2)
    y = np.array(["b", "c", "a"])[y + (X[:, 0] > 1.2)]
    two = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    trees = {"n_estimators": 12, "random_state": 0}
    yield X, y, DAMVIClassifier(**trees).fit(X, y)
    yield X, y, DAMVIVotingClassifier(two, random_state=0).fit(X, y)


@pytest.mark.parametrize("half_life", [None, 700])
def test_streams_of_three_classes_start_from_the_fit_and_can_be_saved(half_life, tmp_path):
    for X, y, model in real_models_of_three():
        stream = VoteStream(model, half_life=half_life, min_rows=5)
        assert stream.rows_.tolist() == [(y == label).sum() for label in "abc"]
        if isinstance(model, DAMVIVotingClassifier):
            np.testing.assert_allclose(stream.weights_, model.weights_, atol=1e-6)
        assert not stream.partial_fit(X[:300], y[:300]).beyond_chance
        stream.save(tmp_path / "stream.npz")
        save(model, tmp_path / "model.damvi")
        loaded = load(tmp_path / "model.damvi")
        again = VoteStream.load(tmp_path / "stream.npz", loaded)
        assert np.array_equal(again.weights_, stream.weights_)
        for each in (stream, again):
            each.partial_fit(X[300:], y[300:])
        assert np.array_equal(stream.weights_, again.weights_)
        assert np.array_equal(stream.decision_function(X), again.decision_function(X))
        assert repr(stream) == repr(again)
        path = saved(stream, tmp_path / "other.npz", threshold=np.array(0.5))
        with pytest.raises(ValueError, match="inconsistent"):
            VoteStream.load(path, loaded)
        # A loaded model has no votes: it starts from nothing, with its own weights.
        fresh = VoteStream(loaded, min_rows=5)
        assert fresh.rows_.tolist() == [0, 0, 0]
        assert np.array_equal(fresh.weights_, model.weights_)
        few = y != "a"
        assert not fresh.partial_fit(X[few], y[few]).learned
        assert fresh.partial_fit(X, y).learned
        assert set(fresh.predict(X)) <= set("abc")
