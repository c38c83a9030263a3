"""Pools: honest votes, whatever the models, the folds and the tables."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from damvi.decision import calibrate_votes
from damvi.folds import deal_folds
from damvi.voters import FastForestClassifier, PoolVoters, out_of_fold_votes
from damvi.voters.estimators import Relabelled
from damvi.voters.pool import seed_of

from .models import Recorder, Silent, Strict

POOL = [
    ("forest", RandomForestClassifier(10)),
    ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
    ("ridge", RidgeClassifier()),
    ("boosted", HistGradientBoostingClassifier(max_iter=10)),
]


def trained(named, X, y, **options):
    options = {"seed": 0, "cv": 3, **options}
    return PoolVoters.train(named, X, np.asarray(y).astype(np.int8), **options)


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the rows that it was trained on by heart, and guesses elsewhere."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.known_ = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        return self

    def predict_proba(self, X):
        guess = np.mean(list(self.known_.values()))
        last = np.array([self.known_.get(row.tobytes(), guess) for row in X])
        return np.column_stack([1 - last, last])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_votes_are_those_of_models_that_have_not_seen_the_fold(table, voting):
    X, y = table
    voters, votes, folds = trained(POOL, X, y, voting=voting)
    assert votes.shape == (len(y), 4)
    assert votes.dtype == (np.int8 if voting == "hard" else np.float32)
    np.testing.assert_array_equal(folds, deal_folds(y, 0, 3))
    for fold in range(3):
        model = LogisticRegression()
        scaler = StandardScaler().fit(X[folds != fold])
        model.fit(scaler.transform(X[folds != fold]), y[folds != fold])
        new = scaler.transform(X[folds == fold])
        expected = (
            2 * model.predict(new) - 1
            if voting == "hard"
            else 2 * model.predict_proba(new)[:, 1] - 1
        )
        np.testing.assert_allclose(votes[folds == fold, 1], expected, atol=1e-5)
    assert len(voters) == 4
    assert voters.names == ("forest", "linear", "ridge", "boosted")
    assert voters.n_without_class.tolist() == [0, 0]


def test_a_voter_that_memorises_is_no_better_than_chance_on_coin_flips():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(1000, 3)), (rng.rand(1000) < 0.05).astype(int)
    pool = [("memory", Memory()), ("nearest", KNeighborsClassifier(1))]
    voters, votes, folds = trained(pool, X, y, cv=5)
    assert roc_auc_score(y, voters.votes(X)[:, 0]) == 1  # where it has seen the rows
    for k in range(2):
        assert roc_auc_score(y, votes[:, k]) == pytest.approx(0.5, abs=0.05)
    calibrated, _ = calibrate_votes(votes, y, folds)
    for k in range(2):
        assert roc_auc_score(y, calibrated[:, k]) == pytest.approx(0.5, abs=0.05)


def test_groups_are_never_split():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(200, 3)), (rng.rand(200) < 0.3).astype(int)
    X, y, groups = np.tile(X, (5, 1)), np.tile(y, 5), np.tile(np.arange(200), 5)
    for cv in (4, GroupKFold(4)):
        _, votes, folds = trained([("memory", Memory())], X, y, cv=cv, groups=groups)
        assert all(len(set(folds[groups == g])) == 1 for g in range(200))
        assert roc_auc_score(y, votes[:, 0]) == pytest.approx(0.5, abs=0.1)
    _, votes, _ = trained([("memory", Memory())], X, y, cv=4)
    assert roc_auc_score(y, votes[:, 0]) > 0.9  # the copies give it away


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_neither_threads_nor_processes_nor_order_change_anything(table, voting):
    X, y = table
    options = {"voting": voting}
    one, votes, _ = trained(POOL, X, y, **options)
    two, others, _ = trained(POOL, X, y, **options, n_jobs=2)
    np.testing.assert_array_equal(votes, others)
    np.testing.assert_array_equal(one.votes(X), two.votes(X, n_jobs=2))
    weights = np.array([0.5, 0.0, 0.25, 0.25])
    np.testing.assert_array_equal(
        one.weighted_vote(X, weights), two.weighted_vote(X, weights, n_jobs=2)
    )
    _, reverse, _ = trained(POOL[::-1], X, y, **options)
    np.testing.assert_array_equal(reverse[:, ::-1], votes)


def test_seeds_come_from_the_seed_and_the_name(table):
    X, y = table
    nested = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=3))
    pool = [("a", Recorder()), ("b", Recorder(7)), ("c", nested)]
    voters, _, _ = trained(pool, X, y, seed=5)
    a, b, c = voters.estimators
    assert [a.random_state, b.random_state] == [seed_of(5, "a"), seed_of(5, "b")]
    assert c[-1].random_state == seed_of(5, "c")
    assert len({seed_of(5, "a"), seed_of(5, "b"), seed_of(6, "a")}) == 3
    assert pool[1][1].random_state == 7  # the caller's models are left alone
    forest = [("forest", RandomForestClassifier(5))]
    _, votes, _ = trained(forest, X, y, seed=1)
    np.testing.assert_array_equal(votes, trained(forest, X, y, seed=1)[1])
    assert (votes != trained(forest, X, y, seed=2)[1]).any()


def test_the_voters_know_all_rows(table):
    X, y = table
    voters, _, _ = trained([("r", Recorder())], X, y)
    np.testing.assert_array_equal(voters.estimators[0].X_, X)


def test_votes_can_be_had_without_voters(table):
    X, y = table
    _, expected, _ = trained(POOL, X, y)
    votes = out_of_fold_votes(POOL, X, y.astype(np.int8), seed=0, cv=3)
    np.testing.assert_array_equal(votes, expected)


def test_the_weighted_vote_does_not_ask_voters_of_weight_zero(table):
    X, y = table
    models = [one.fit(X, y) for one in (Recorder(), Silent(), Recorder())]
    voters = PoolVoters(("a", "b", "c"), models, np.arange(2), "hard")
    vote = voters.weighted_vote(X, np.array([0.25, 0.0, 0.75]))
    np.testing.assert_array_equal(vote, np.where(X[:, 0] > 0, 1.0, -1.0))


def test_the_weighted_vote_is_the_sum_of_votes(table, fresh):
    X, y = table
    voters, votes, folds = trained(POOL, X, y)
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = voters.votes(fresh).astype(float) @ weights
    np.testing.assert_allclose(voters.weighted_vote(fresh, weights), expected)
    calibrators = calibrate_votes(votes, y, folds)[1]
    right = voters.calibrated(calibrators)
    for k, calibrator in enumerate(calibrators):
        np.testing.assert_allclose(
            right.votes(fresh)[:, k], calibrator(voters.votes(fresh)[:, k])
        )
    again = pickle.loads(pickle.dumps(right))
    np.testing.assert_array_equal(again.votes(fresh), right.votes(fresh))


def test_calibrators_must_fit(table):
    voters, _, _ = trained(POOL[:2], *table)
    with pytest.raises(ValueError, match="1 calibrators for 2 voters"):
        voters.calibrated([np.asarray])
    hard, _, _ = trained(POOL[:2], *table, voting="hard")
    with pytest.raises(ValueError, match="hard votes cannot be calibrated"):
        hard.calibrated([np.asarray, np.asarray])


def test_a_fold_that_trains_on_one_class_is_named(table):
    X, y = table
    order = np.argsort(y)
    with pytest.raises(ValueError, match=r"fold 1 has 150 training rows of a single class"):
        trained(POOL[:1], X[order], y[order], cv=KFold(2))
    lonely = np.zeros(300, int)
    lonely[0] = 1
    with pytest.raises(ValueError, match="of a single class"):
        trained(POOL[:1], X, lonely, cv=5)


def test_fewer_positives_than_folds_are_enough(table):
    X, _ = table
    rare = np.zeros(300, int)
    rare[:2] = 1
    _, votes, folds = trained(POOL, X, rare, cv=5)
    assert len(set(folds)) == 5
    assert np.isfinite(votes).all()


class Failing(Recorder):
    def fit(self, X, y):
        raise KeyError("oh")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_failures_name_the_voter(table, n_jobs):
    X, y = table
    pool = [*POOL[1:2], ("odd", Failing())]
    with pytest.raises(
        RuntimeError, match=r"voter 'odd' failed on (all rows|fold .): KeyError: 'oh'"
    ):
        trained(pool, X, y, n_jobs=n_jobs)
    with pytest.raises(RuntimeError, match=r"voter 'odd' failed on fold .: KeyError"):
        out_of_fold_votes(pool, X, y.astype(np.int8), seed=0, cv=3, n_jobs=n_jobs)
    holes = np.where(X > 2, np.nan, X)
    with pytest.raises(ValueError, match=r"(?s)voter '(linear|ridge)' failed on .*: .*NaN"):
        trained(POOL, holes, y, n_jobs=n_jobs)
    voters, _, _ = trained(POOL[:2], X, y)
    with pytest.raises(ValueError, match=r"(?s)voter 'forest' failed: X has 2 features"):
        voters.votes(X[:, :2])


class Unsure(Recorder):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_votes_that_are_no_numbers_are_refused(table):
    with pytest.raises(ValueError, match=r"voter 'u' failed on fold .: its vote is NaN"):
        trained([("u", Unsure())], *table)


def test_bad_pools_are_refused(table):
    for pool, message in [
        ([], "the pool is empty"),
        ([("a", Recorder()), ("a", Recorder())], r"\['a'\] appear more than once"),
        (
            [("line", LinearRegression())],
            r"'line' \(LinearRegression\) is not a classifier",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            trained(pool, *table)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_every_model_also_in_pipelines(table, routing):
    X, y = table
    weights = np.random.RandomState(0).randint(0, 4, len(y)) / 3
    pool = [("r", Recorder()), ("p", make_pipeline(StandardScaler(), Recorder()))]
    with sklearn.config_context(enable_metadata_routing=routing):
        Recorder.fits.clear()
        voters, votes, folds = trained(pool, X, y, sample_weight=weights)
    used = weights > 0
    for model in (voters.estimators[0], voters.estimators[1][-1]):
        np.testing.assert_array_equal(model.weights_, weights[used])
        np.testing.assert_array_equal(model.y_, y[used])
    seen = [model.weights_.tolist() for model in Recorder.fits]
    for fold in range(3):
        assert seen.count(weights[used & (folds != fold)].tolist()) == 2
    assert len(votes) == len(y)  # rows of weight 0 are judged, too


def test_a_model_that_takes_no_weights_is_named_unless_they_are_all_alike(table):
    X, y = table
    pool = [*POOL, ("nearest", KNeighborsClassifier())]
    with pytest.raises(ValueError, match=r"voter 'nearest' \(KNeighborsClassifier\)"):
        trained(pool, X, y, sample_weight=np.arange(len(y)) / len(y))
    _, votes, _ = trained(pool, X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_array_equal(votes, trained(pool, X, y)[1])


def test_fit_params_go_to_their_voter_row_by_row(table):
    X, y = table
    params = {"a": {"note": np.arange(len(y))}, "b": {"note": "as it is"}}
    pool = [("a", Recorder()), ("b", Recorder()), ("c", Recorder())]
    Recorder.fits.clear()
    voters, _, folds = trained(pool, X, y, fit_params=params)
    a, b, c = voters.estimators
    np.testing.assert_array_equal(a.note_, np.arange(len(y)))
    assert (b.note_, c.note_) == ("as it is", None)
    notes = [model.note_ for model in Recorder.fits]
    for fold in range(3):
        rows = np.flatnonzero(folds != fold)
        assert any(np.array_equal(note, rows) for note in notes)


@pytest.mark.parametrize(
    "kind",
    [
        lambda X: pd.DataFrame(X, columns=list("abcd"), index=range(7, 7 + len(X))),
        lambda X: pl.DataFrame(X, schema=list("abcd")),
        sparse.csr_array,
    ],
)
def test_every_kind_of_table_gives_the_votes_of_an_array(table, fresh, kind):
    X, y = table
    pool = [("logit", LogisticRegression()), ("fast", FastForestClassifier(5))]
    expected, votes, _ = trained(pool, X, y)
    voters, same, _ = trained(pool, kind(X), y)
    np.testing.assert_allclose(same, votes, atol=1e-5)
    np.testing.assert_allclose(voters.votes(kind(fresh)), expected.votes(fresh), atol=1e-5)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_with_categories_reach_the_models_as_they_are(table, kind):
    _, y = table
    colours = np.where(y == 1, "red", "blue")
    if kind == "pandas":
        frame = pd.DataFrame({"colour": pd.Categorical(colours)})
    else:
        frame = pl.DataFrame({"colour": colours}).cast(pl.Categorical)
    _, votes, _ = trained([("fast", FastForestClassifier(5))], frame, y)
    np.testing.assert_array_equal(votes[:, 0], 2 * y - 1)


@pytest.mark.parametrize("positive", ["no", "yes"])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_fitted_models_vote_in_the_labels_that_they_know(table, fresh, voting, positive):
    X, y = table
    labels = np.array(["no", "yes"])[y]
    pool = [
        ("bayes", GaussianNB().fit(X, labels)),
        ("ridge", RidgeClassifier().fit(X, labels.astype(object))),
    ]
    classes = np.array(["no", "yes"] if positive == "yes" else ["yes", "no"])
    voters = PoolVoters.prefit(pool, classes=classes, voting=voting)
    votes = voters.votes(fresh)
    assert votes.dtype == (np.int8 if voting == "hard" else np.float32)
    for k, (_, model) in enumerate(pool):
        assert voters.estimators[k] is model
        said = model.predict(fresh) == positive
        np.testing.assert_array_equal(votes[:, k] > 0, said)
    assert len(voters) == 2


def test_models_that_are_not_fitted_or_on_other_labels_are_refused(table):
    X, y = table
    options = {"classes": ["no", "yes"]}
    with pytest.raises((ValueError, NotFittedError), match=r"voter 'b'.*not fitted yet"):
        PoolVoters.prefit([("b", GaussianNB())], **options)
    with pytest.raises(
        ValueError, match=r"'b' was fitted on the classes .* y has the classes \['no'"
    ):
        PoolVoters.prefit([("b", GaussianNB().fit(X, y))], **options)
    three = GaussianNB().fit(X, np.array(["no", "yes", "?"])[np.arange(300) % 3])
    with pytest.raises(ValueError, match="was fitted on the classes"):
        PoolVoters.prefit([("b", three)], **options)


def test_models_train_on_one_thread_each(table):
    class Counting(Recorder):
        def fit(self, X, y):
            self.threads_ = {
                info["num_threads"]
                for info in threadpool_info()
                if info["user_api"] in {"openmp", "blas"}
            }
            return super().fit(X, y)

    for n_jobs in (1, 2):
        with threadpool_limits(2):  # whatever the tests are allowed
            voters, _, _ = trained([("c", Counting())], *table, n_jobs=n_jobs)
        assert voters.estimators[0].threads_ <= {1}


def test_warnings_of_the_models_are_heard(table):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        trained([("logit", LogisticRegression(max_iter=1))], *table)
    assert any("failed to converge" in str(one.message) for one in heard)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 2, centers=4, random_state=0)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_a_pool_on_many_classes(blobs, voting):
    X, y = blobs
    pool = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]
    voters, votes, folds = trained(pool, X, y, n_classes=4, cv=4, voting=voting)
    for fold in range(4):
        model = GaussianNB().fit(X[folds != fold], y[folds != fold])
        ask = model.predict if voting == "hard" else model.predict_proba
        expected = ask(X[folds == fold]).astype(votes.dtype)
        np.testing.assert_array_equal(votes[folds == fold, 0], expected)
    cast = voters.votes(X)
    assert cast.shape == ((200, 2, 4) if voting == "soft" else (200, 2))
    spread = cast if voting == "soft" else np.eye(4)[cast]
    expected = np.einsum("ikc,k->ic", spread, [0.3, 0.7])
    np.testing.assert_allclose(voters.weighted_vote(X, np.array([0.3, 0.7])), expected)


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_class_that_a_fold_never_met_gets_no_share(blobs, lost):
    X, y = blobs
    test = np.union1d(np.flatnonzero(y == lost), np.arange(80))
    rest = np.setdiff1d(np.arange(200), test)
    splits = [(rest, test), (test, rest)]
    _, votes, folds = trained([("strict", Strict())], X, y, n_classes=4, cv=splits)
    assert not votes[folds == 0, 0, lost].any()
    np.testing.assert_allclose(votes.sum(axis=2), 1, atol=1e-6)


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_voters_that_never_met_a_class_keep_the_numbers_of_the_others(blobs, lost):
    X, y = blobs
    weights = np.where(y == lost, 0.0, 1.0)
    pool = [("bayes", GaussianNB())]
    voters, _, _ = trained(pool, X, y, n_classes=4, sample_weight=weights)
    (model,) = voters.estimators
    assert isinstance(model, Relabelled) == (lost < 3)
    assert model.classes_.tolist() == [c for c in range(4) if c != lost]
    assert lost not in model.predict(X)
    assert not voters.votes(X)[:, 0, lost].any()
    with pytest.raises(AttributeError, match="feature_importances_"):
        model.feature_importances_  # noqa: B018


def test_the_seconds_of_each_voter_are_told():
    X, y = make_classification(200, weights=[0.8], random_state=0)
    seconds = {}
    PoolVoters.train(POOL, X, y, seed=0, cv=2, seconds=seconds)
    assert seconds.keys() == dict(POOL).keys()
    assert min(seconds.values()) > 0


def test_a_voter_that_says_nothing_of_its_own_rows_is_refused_at_once(table):
    """A fuzzed fit: variances overflowed on all rows, though not on those of any fold."""
    with pytest.raises(ValueError, match="'bayes' failed on all rows: its vote is NaN"):
        trained([("bayes", Overflowing(len(table[1])))], *table)


class Overflowing(GaussianNB):
    def __init__(self, all_rows):
        super().__init__()
        self.all_rows = all_rows

    def predict_proba(self, X):
        found = super().predict_proba(X)
        return found if self.class_count_.sum() < self.all_rows else found + np.nan
