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
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi.decision import calibrate_votes
from damvi.voters import FastForestClassifier, PoolVoters
from damvi.voters.asking import FoldModels
from damvi.voters.folds import deal_folds
from damvi.voters.out_of_fold import seed_of

POOL = [
    ("forest", RandomForestClassifier(10)),
    ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
    ("ridge", RidgeClassifier()),
    ("boosted", HistGradientBoostingClassifier(max_iter=10)),
]


def trained(named, X, y, **options):
    options = {"seed": 0, "cv": 3, **options}
    return PoolVoters.train(named, X, np.asarray(y).astype(np.int8), **options)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on; says yes above 0 in the first column."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None, note=None):
        self.classes_ = np.unique(y)
        self.X_, self.y_, self.weights_, self.note_ = X, y, sample_weight, note
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


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
    np.testing.assert_array_equal(folds, deal_folds(np.where(y == 1, 1, -1), 0, 3))
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
    assert voters.n_without_positive == 0


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


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_neither_threads_nor_processes_nor_order_change_anything(table, voting, refit):
    X, y = table
    options = {"voting": voting, "refit": refit}
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


def test_refit_trains_on_everything_or_keeps_the_folds(table):
    X, y = table
    voters, _, _ = trained([("r", Recorder())], X, y)
    np.testing.assert_array_equal(voters.estimators[0].X_, X)
    voters, votes, folds = trained([("tree", DecisionTreeClassifier())], X, y, refit=False)
    (model,) = voters.estimators
    assert isinstance(model, FoldModels)
    assert len(model.models) == 3
    means = np.mean([one.predict_proba(X)[:, 1] for one in model.models], axis=0)
    np.testing.assert_allclose(voters.votes(X)[:, 0], 2 * means - 1, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], means, atol=1e-6)
    for fold, one in enumerate(model.models):
        alone = 2 * one.predict_proba(X[folds == fold])[:, 1] - 1
        np.testing.assert_allclose(votes[folds == fold, 0], alone)


def test_the_fold_models_decide_by_majority(table):
    X, y = table
    pool = [("tree", DecisionTreeClassifier(max_depth=3))]
    voters, _, _ = trained(pool, X, y, voting="hard", refit=False)
    (model,) = voters.estimators
    most = np.sum([one.predict(X) for one in model.models], axis=0) >= 2
    np.testing.assert_array_equal(voters.votes(X)[:, 0], 2 * most - 1)
    np.testing.assert_array_equal(model.predict(X), most)


class Silent(Recorder):
    def predict(self, X):
        raise AssertionError("a voter of weight 0 was asked")


def test_the_weighted_vote_does_not_ask_voters_of_weight_zero(table):
    X, y = table
    models = [one.fit(X, y) for one in (Recorder(), Silent(), Recorder())]
    voters = PoolVoters(("a", "b", "c"), models, "hard")
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


def test_fold_models_are_calibrated_one_by_one(table, fresh):
    X, y = table
    voters, votes, folds = trained(POOL[:1], X, y, refit=False)
    (calibrator,) = calibrators = calibrate_votes(votes, y, folds)[1]
    models = voters.estimators[0].models
    each = [calibrator(2 * one.predict_proba(fresh)[:, 1] - 1) for one in models]
    right = voters.calibrated(calibrators).votes(fresh)[:, 0]
    np.testing.assert_allclose(right, np.mean(each, axis=0), atol=1e-6)


def test_calibrators_must_fit(table):
    voters, _, _ = trained(POOL[:2], *table)
    with pytest.raises(ValueError, match="1 calibrators for 2 voters"):
        voters.calibrated([np.asarray])
    hard, _, _ = trained(POOL[:2], *table, voting="hard")
    with pytest.raises(ValueError, match="hard votes cannot be calibrated"):
        hard.calibrated([np.asarray, np.asarray])


def test_a_decision_function_is_read_as_log_odds(table):
    X, y = table
    voters, votes, _ = trained([("ridge", RidgeClassifier())], X, y)
    scores = voters.estimators[0].decision_function(X)
    np.testing.assert_allclose(voters.votes(X)[:, 0], np.tanh(scores / 2), rtol=1e-5)
    assert np.unique(votes).size > 100


def test_a_model_with_decisions_only_casts_them(table):
    X, y = table
    _, votes, _ = trained([("r", Recorder())], X, y, voting="soft")
    assert votes.dtype == np.float32
    np.testing.assert_array_equal(votes[:, 0], np.where(X[:, 0] > 0, 1, -1))


@pytest.mark.parametrize(
    "cv", [StratifiedKFold(4), KFold(4), list(KFold(4).split(np.zeros(300)))]
)
def test_any_splitter_that_partitions_the_rows_will_do(table, cv):
    X, y = table
    _, votes, folds = trained([("tree", DecisionTreeClassifier())], X, y, cv=cv)
    splits = cv if isinstance(cv, list) else list(cv.split(X, y))
    for fold, (_, test) in enumerate(splits):
        assert (folds[test] == fold).all()
    assert np.isfinite(votes).all()


def test_folds_may_train_on_less_than_all_the_others(table):
    X, y = table
    rows = np.arange(300)
    cv = [(rows % 3 == (fold + 1) % 3, rows % 3 == fold) for fold in range(3)]
    voters, _, folds = trained([("r", Recorder())], X, y, cv=cv, refit=False)
    np.testing.assert_array_equal(folds, rows % 3)
    np.testing.assert_array_equal(voters.estimators[0].models[0].X_, X[rows % 3 == 1])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(3), "cv judges row 0 0 times, and 75 of 300 rows"),
        (ShuffleSplit(3, random_state=0), "not exactly once"),
        ([(np.arange(300), np.arange(300))], "trains on rows that it judges, in fold 0"),
        (1, "from 2 to 100"),
        (True, None),
    ],
)
def test_other_splits_are_refused(table, cv, message):
    with pytest.raises(ValueError, match=message):
        trained(POOL[:1], *table, cv=cv)


def test_a_fold_that_trains_on_one_class_is_named(table):
    X, y = table
    order = np.argsort(y)
    with pytest.raises(ValueError, match=r"fold 1 .* 150 rows with no positive"):
        trained(POOL[:1], X[order], y[order], cv=KFold(2))
    lonely = np.zeros(300, int)
    lonely[0] = 1
    with pytest.raises(ValueError, match="no positive among them"):
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
        trained(pool, X, y, n_jobs=n_jobs, refit=False)
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
    with pytest.raises(ValueError, match="voter 'u' failed on fold 2: its vote is NaN"):
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
        voters, votes, folds = trained(pool, X, y, sample_weight=weights)
        kept, _, _ = trained(pool, X, y, sample_weight=weights, refit=False)
    used = weights > 0
    for model in (voters.estimators[0], voters.estimators[1][-1]):
        np.testing.assert_array_equal(model.weights_, weights[used])
        np.testing.assert_array_equal(model.y_, y[used])
    others = used & (folds != 1)
    np.testing.assert_array_equal(kept.estimators[0].models[1].weights_, weights[others])
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
    voters, _, folds = trained(pool, X, y, fit_params=params, refit=False)
    a, b, c = (voter.models[2] for voter in voters.estimators)
    np.testing.assert_array_equal(a.note_, np.flatnonzero(folds != 2))
    assert (b.note_, c.note_) == ("as it is", None)


@pytest.mark.parametrize("refit", [True, False])
def test_progress_follows_every_training(table, refit):
    seen = []

    def progress(results, length):
        for result in results:
            seen.append(length)
            yield result

    trained(POOL[:2], *table, refit=refit, progress=progress)
    assert seen == [8 if refit else 6] * (8 if refit else 6)


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
    options = {"classes": np.array(["no", "yes"]), "positive": positive}
    voters = PoolVoters.prefit(pool, **options, voting=voting)
    votes = voters.votes(fresh)
    assert votes.dtype == (np.int8 if voting == "hard" else np.float32)
    for k, (_, model) in enumerate(pool):
        assert voters.estimators[k] is model
        said = model.predict(fresh) == positive
        np.testing.assert_array_equal(votes[:, k] > 0, said)
    assert len(voters) == 2


def test_models_that_are_not_fitted_or_on_other_labels_are_refused(table):
    X, y = table
    options = {"classes": ["no", "yes"], "positive": "yes"}
    with pytest.raises((ValueError, NotFittedError), match=r"voter 'b'.*not fitted yet"):
        PoolVoters.prefit([("b", GaussianNB())], **options)
    with pytest.raises(ValueError, match=r"'b' was fitted on the classes .* y has \['no'"):
        PoolVoters.prefit([("b", GaussianNB().fit(X, y))], **options)
    three = GaussianNB().fit(X, np.array(["no", "yes", "?"])[np.arange(300) % 3])
    with pytest.raises(ValueError, match="was fitted on the classes"):
        PoolVoters.prefit([("b", three)], **options)


def test_models_train_on_one_thread_each(table):
    class Counting(Recorder):
        def fit(self, X, y):
            from threadpoolctl import threadpool_info

            self.threads_ = {
                info["num_threads"]
                for info in threadpool_info()
                if info["user_api"] in {"openmp", "blas"}
            }
            return super().fit(X, y)

    for n_jobs in (1, 2):
        voters, _, _ = trained([("c", Counting())], *table, n_jobs=n_jobs)
        assert voters.estimators[0].threads_ <= {1}


def test_warnings_of_the_models_are_heard(table):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        trained([("logit", LogisticRegression(max_iter=1))], *table)
    assert any("failed to converge" in str(one.message) for one in heard)
