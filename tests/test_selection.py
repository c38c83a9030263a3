"""Settings and voters chosen on out-of-sample votes, and what the choice is worth."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, selection
from damvi.decision import tune_threshold
from damvi.decision.objectives import read_rows
from damvi.folds import deal_folds
from damvi.moments import Moments
from damvi.selection import Metric, choose_settings, keep_better_vote, prune_voters
from damvi.solvers import exact
from damvi.votes import Votes
from damvi.weighting import Settings, crossfitted_vote

from .conftest import weigh

TRIED = {"shrinkage": (0.0, 0.2), "reweight": (0.0, 1.0)}
POOL = [
    ("linear", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
]


@pytest.fixture(scope="module")
def table():
    return make_classification(
        800, 10, n_informative=5, weights=[0.85], flip_y=0.05, random_state=1
    )


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(300, weights=[0.8], random_state=0)
    return DAMVIClassifier(n_estimators=5, votes="oob", random_state=0).fit(X, y)


def some_votes(seed=0, n=400, n_voters=6, soft=True, skill=0.6):
    rng = np.random.default_rng(seed)
    targets = (rng.random(n) < 0.2).astype(int)
    signs = 2 * targets - 1
    votes = np.tanh(skill * signs[:, None] + rng.normal(size=(n, n_voters)))
    votes = votes if soft else np.where(votes > 0, 1, -1)
    kind = np.float32 if soft else np.int8
    return Votes(np.asfortranarray(votes, dtype=kind), targets, deal_folds(targets, 0))


def choose(votes, metric="average_precision", **tried):
    return choose_settings(votes, Settings(), metric, **(tried or TRIED))


@pytest.mark.parametrize("soft", [True, False])
def test_values_are_those_of_the_out_of_sample_votes(soft):
    votes = some_votes(soft=soft)
    choice = choose(votes)
    assert len(choice.settings) == 4
    for settings, value in zip(choice.settings, choice.values, strict=True):
        vote = weigh(votes, settings).out_of_sample_vote
        expected = average_precision_score(votes.targets, vote)
        assert value == pytest.approx(expected, abs=1e-12)
    assert choice.chosen == choice.settings[int(np.argmax(choice.values))]
    assert choice.best == {
        "reweight": choice.chosen.reweight,
        "shrinkage": choice.chosen.shrinkage,
    }
    assert "<- chosen" in str(choice)


def test_f1_is_judged_at_thresholds_of_the_other_folds():
    votes = some_votes()
    vote, targets = weigh(votes).out_of_sample_vote, votes.targets
    flagged = np.empty(len(vote), bool)
    for fold in range(5):
        here = votes.folds == fold
        flagged[here] = vote[here] > tune_threshold(vote[~here], targets[~here], "f1")
    value, worth = Metric.of(votes, "f1")([vote] * 5)
    assert value == worth == pytest.approx(f1_score(targets, flagged))


def test_a_fold_is_judged_by_what_does_not_know_its_labels():
    votes = some_votes()
    here = votes.folds == 2
    targets = votes.targets.copy()
    targets[here] = np.random.default_rng(1).permutation(targets[here])
    other = replace(votes, targets=targets)

    def blind_vote(votes, settings):
        by_fold = votes.moments_by_fold(settings.reweight)
        nothing = by_fold[0] - by_fold[0]
        known = [
            sum((m for f, m in enumerate(by_fold) if f not in (2, g)), start=nothing)
            for g in range(5)
        ]
        return crossfitted_vote(votes, known, settings)

    for settings in choose(votes).settings:
        one, two = (blind_vote(each, settings) for each in (votes, other))
        np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.slow
def test_the_choice_among_many_is_at_chance_on_coin_flips():
    honest, best = [], []
    tried = {"shrinkage": (0.0, 0.01, 0.1, 0.5), "reweight": (0.0, 0.5, 1.0)}
    for seed in range(12):
        votes = some_votes(seed, n=300, n_voters=20, skill=0.0)
        choice = choose(votes, **tried)
        rate = votes.targets.mean()
        honest.append(choice.honest_value - rate)
        best.append(max(choice.values) - rate)
    error = np.std(honest, ddof=1) / np.sqrt(len(honest))
    assert abs(np.mean(honest)) < 3 * error + 0.01
    assert np.mean(best) > np.mean(honest)


@pytest.mark.parametrize(
    ("metric", "sign"), [({"cost": (1, 20)}, -1), ({"recall": 0.8}, 1), ("fbeta", 1)]
)
def test_any_objective_of_a_threshold_is_a_metric(metric, sign):
    choice = choose(some_votes(), metric)
    if metric != {"recall": 0.8}:  # which wants the floor kept, before the precision
        best = max(sign * value for value in choice.values)
        assert choice.values[choice.settings.index(choice.chosen)] == sign * best


@pytest.mark.slow
def test_choosing_changes_nothing_and_reweighing_takes_the_best():
    X, y = make_classification(600, weights=[0.85], flip_y=0.1, random_state=0)
    model = DAMVIClassifier(n_estimators=20, votes="oob", random_state=0).fit(X, y)
    before, vote = model.get_params(), model.vote(X)
    choice = model.choose()
    assert choice.metric == "average precision"
    assert len(choice.settings) == 18
    assert model.get_params() == before
    np.testing.assert_array_equal(model.vote(X), vote)
    assert model.reweigh(**choice.best) is model
    assert model.shrinkage == choice.chosen.shrinkage
    again = DAMVIClassifier(**model.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    # What the threshold is tuned for is what settings are chosen by.
    choice = model.reweigh(threshold="f1").choose(reweight=[0, 1], shrinkage=[0, 0.1])
    assert choice.metric == "F1"
    assert len(choice.settings) == 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"shrinkage": [1.0]}, "shrinkage=1.0 must be below 1"),
        ({"shrinkage": []}, "is empty; give at least one"),
        ({"reweight": [-5]}, "reweight=-5 must be a number from 0 to 1"),
        (
            {"metric": "roc_auc"},
            "metric='roc_auc' is not available for 2 classes; use .*'f1'",
        ),
        ({"metric": "vote"}, "metric='vote' is not available for 2 classes"),
    ],
)
def test_what_cannot_be_chosen_is_said(fitted, wrong, words):
    with pytest.raises(ValueError, match=words):
        fitted.choose(**wrong)


def test_two_folds_are_too_few(table):
    with pytest.raises(ValueError, match="needs at least three folds"):
        DAMVIVotingClassifier(POOL[:2], cv=2).fit(*table).choose()


def test_the_path_goes_down_from_the_best_weights_to_the_best_voter():
    votes = some_votes(n=500, n_voters=12, soft=False, skill=0.4)
    settings = Settings(reweight=0)
    moments = Moments.of(votes.votes, 2 * votes.targets - 1)
    best = exact(moments)
    bounds = []
    for size in (12, 6, 3, 2, 1):
        kept, pruning, _ = prune_voters(weigh(votes, settings), size)
        assert 1 <= len(kept) <= size
        assert set(kept) <= set(np.flatnonzero(best.weights))
        assert pruning.sizes[0] == np.count_nonzero(best.weights)
        assert pruning.c_bound[0] == pytest.approx(best.c_bound)
        assert pruning.sizes[-1] == len(kept)
        # The weights of those kept are the best that there are for them.
        alone = exact(moments.restricted(kept))
        assert pruning.c_bound[-1] == pytest.approx(alone.c_bound, abs=1e-12)
        bounds.append(pruning.c_bound[-1])
    assert len(kept) == 1
    assert (np.diff(bounds) >= -1e-12).all()


@pytest.mark.parametrize("solver", ["exact", "uniform"])
def test_voters_that_are_worth_nothing_can_be_pruned_too(solver):
    targets = (np.random.default_rng(0).random(60) < 0.3).astype(int)
    against = np.repeat(1 - 2 * targets[:, None], 3, axis=1).astype(np.int8)
    votes = Votes(against, targets, deal_folds(targets, 0))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No voter is better")
        weighting = weigh(votes, Settings(solver=solver))
    kept, pruning, _ = prune_voters(weighting, 1)
    assert len(kept) == pruning.sizes[-1] == 1


@pytest.mark.filterwarnings("ignore:No voter is better")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["exact", "slsqp", "uniform"])
def test_voters_that_say_the_same_of_all_rows_can_be_pruned_too(solver, n_classes):
    targets = np.arange(60) % n_classes
    alike = np.ones((60, 4), np.int8 if n_classes == 2 else np.uint8)
    votes = Votes(
        alike,
        targets,
        deal_folds(targets, 0),
        class_weight=np.ones(n_classes),
        reweighted=np.arange(n_classes) > 0,
    )
    weighting = weigh(votes, Settings(solver=solver, fit_intercept=True))
    kept, pruning, _ = prune_voters(weighting, 2, {2: "f1", 3: "macro_f1"}[n_classes])
    assert len(kept) == pruning.sizes[-1] == 2


def test_voters_that_depend_on_one_another_can_be_pruned_too():
    # With the ridge on its diagonal, this is singular to the last bit.
    ridge = 1e-12
    M = np.array([[1, 1 + ridge, 0.1], [1 + ridge, 1, 0.1], [0.1, 0.1, 1]])
    found = selection._path(Moments(np.full(3, 0.1), M, 1), "uniform")
    assert sorted(found) == [1, 2, 3]
    assert found[2][2] == 0.5  # one of the two that are alike went first


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"votes": "oob", "threshold": "f1"},
        {"estimator": DecisionTreeClassifier(max_depth=3)},
        {"fit_intercept": True},
    ],
)
def test_a_pruned_model_votes_by_the_voters_that_it_kept(table, settings):
    X, y = table
    model = DAMVIClassifier(**{"n_estimators": 30, **settings}, random_state=0).fit(X, y)
    before, voters = model.weights_, model.estimators_
    assert np.count_nonzero(before) > 5
    assert model.prune(max_voters=5) is model
    assert 1 <= len(model.estimators_) <= 5
    assert (model.weights_ > 0).all()
    kept = [voter.predict(X).tolist() for voter in model.estimators_]
    everyone = [voter.predict(X).tolist() for voter in voters]
    assert all(one in everyone for one in kept)
    vote = (2 * np.array(kept).T - 1) @ model.weights_
    np.testing.assert_allclose(model.vote(X), vote, atol=1e-12)
    price = model.pruning_
    assert price.sizes[0] == np.count_nonzero(before)
    assert price.sizes[-1] == len(model.estimators_)
    assert list(price.c_bound) == sorted(price.c_bound)
    assert "average precision" in str(price)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_pool_is_pruned_with_its_calibrators(table):
    X, y = table
    model = DAMVIVotingClassifier(POOL, random_state=0).fit(X, y)
    model.prune(2)
    names = list(model.named_estimators_)
    kept = [pair for pair in POOL if pair[0] in names]
    assert [name for name, _ in kept] == names
    alone = DAMVIVotingClassifier(kept, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.vote(X), alone.vote(X), atol=1e-9)


def test_pruning_to_more_than_there_are_changes_no_prediction(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    vote = model.vote(X)
    model.prune(100)
    np.testing.assert_array_equal(model.vote(X), vote)
    assert len(model.pruning_.sizes) == 1


def test_no_fit_adds_voters_to_a_pruned_model(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, warm_start=True, random_state=0).fit(X, y)
    model.prune(3)
    with pytest.raises(ValueError, match="warm_start adds voters"):
        model.set_params(n_estimators=40).fit(X, y)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3"])
def test_a_number_of_voters_is_needed(fitted, bad):
    with pytest.raises(ValueError, match="must be an integer"):
        fitted.prune(bad)


class Column(ClassifierMixin, BaseEstimator):
    """The sign of a column."""

    def __init__(self, k=0):
        self.k = k

    classes_ = np.array([False, True])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, self.k] > 0

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.slow
def test_figures_after_pruning_do_not_flatter():
    scores = []
    for seed in range(15):  # voters that know nothing, fitted already
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(400, 30)), np.arange(400) < 40
        y = rng.permutation(y)
        pool = [(f"v{k}", Column(k)) for k in range(30)]
        model = DAMVIVotingClassifier(
            pool, cv="prefit", voting="hard", reweight=True, shrinkage=0, random_state=seed
        )
        model.fit(X, y).prune(2)
        scores.append(roc_auc_score(y, model.oob_decision_function_))
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    assert np.mean(scores) < 0.5 + 3 * error


def independent_votes(seed=0, n=800, n_voters=16, rate=0.05, n_classes=2):
    """Soft votes of voters that see a column each, all equally good."""
    rng = np.random.default_rng(seed)
    rates = np.full(n_classes, rate)
    rates[0] = 1 - rate * (n_classes - 1)
    targets = rng.choice(n_classes, n, p=rates)
    X = (
        rng.normal(size=(n, n_voters, n_classes))
        + 0.6 * np.eye(n_classes)[targets][:, None]
    )
    odds = rates * np.exp(0.6 * X)
    shares = (odds / odds.sum(axis=2, keepdims=True)).astype(np.float32)
    two = n_classes == 2
    return Votes(
        np.asfortranarray(2 * shares[:, :, 1] - 1) if two else shares,
        targets,
        deal_folds(targets, 0),
        class_weight=np.ones(n_classes),
        reweighted=np.arange(n_classes) > 0,
    )


POOL_SETTINGS = Settings(0.0, 0.001, fit_intercept=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_plain_vote_is_kept_where_learned_weights_are_behind(n_classes):
    votes = independent_votes(n_classes=n_classes)
    learned = weigh(votes, POOL_SETTINGS)
    found = keep_better_vote(learned)
    assert found.comparison.plain_kept
    assert found.comparison.plain - found.comparison.learned > found.comparison.error > 0
    assert "plain vote kept" in str(found.comparison)
    np.testing.assert_allclose(found.weights, 1 / 16)
    assert found.used.solver == "uniform"
    assert found.threshold == POOL_SETTINGS.threshold(found.total, found.weights)
    # The honest vote is by what each fold would have had without its rows.
    kept = [np.allclose(Q, 1 / 16) for Q in found.fold_weights]
    assert sum(kept) >= 3
    plain = votes.votes.mean(axis=1, dtype=float)
    for fold, is_plain in enumerate(kept):
        here = votes.folds == fold
        expected = plain if is_plain else learned.out_of_sample_vote
        np.testing.assert_allclose(
            found.out_of_sample_vote[here], expected[here], atol=1e-7
        )


def test_learned_weights_are_kept_where_they_are_ahead():
    votes = some_votes(n=600)
    votes.votes[:, 2:] = np.random.default_rng(0).uniform(-1, 1, (600, 4))
    learned = weigh(votes, POOL_SETTINGS)
    found = keep_better_vote(learned)
    assert not found.comparison.plain_kept
    assert found.comparison.error is None
    assert found.weights is learned.weights
    np.testing.assert_array_equal(found.out_of_sample_vote, learned.out_of_sample_vote)
    plain = average_precision_score(votes.targets, votes.votes.mean(axis=1))
    assert found.comparison.plain == pytest.approx(plain)


def test_the_choice_for_a_fold_does_not_know_its_labels():
    for seed in range(4):
        votes = independent_votes(seed, n=400)
        here = votes.folds == 2
        targets = votes.targets.copy()
        targets[here] = np.random.default_rng(1).permutation(targets[here])
        ways = [
            keep_better_vote(weigh(one, POOL_SETTINGS)).out_of_sample_vote[here]
            for one in (votes, replace(votes, targets=targets))
        ]
        np.testing.assert_allclose(*ways, atol=1e-9)


def test_there_is_nothing_to_choose_between(table):
    votes = independent_votes()
    two = replace(votes, folds=votes.folds % 2)
    assert keep_better_vote(weigh(two, POOL_SETTINGS)).comparison is None
    even = POOL_SETTINGS._replace(solver="uniform")
    assert keep_better_vote(weigh(votes, even)).comparison is None
    model = DAMVIVotingClassifier(POOL, solver="uniform", random_state=0).fit(*table)
    assert model.comparison_ is None
    assert model.reweigh(solver="exact").comparison_ is not None


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("bags", [10**6, 300])
def test_the_error_is_that_of_a_plain_bootstrap(monkeypatch, n_classes, bags):
    monkeypatch.setattr(selection, "MAX_BAGS", bags)
    votes = independent_votes(n_classes=n_classes, n=900, n_voters=4, rate=0.1)
    rng = np.random.default_rng(0)
    vote = votes.votes.mean(axis=1, dtype=float)
    other = vote + rng.normal(0, 0.3 * vote.std(axis=0), vote.shape)
    weight = rng.uniform(0.5, 1, 900)
    rows = [read_rows(one, votes.targets, weight) for one in (vote, other)]
    found = selection._error_of_difference(*rows)
    drawn = []
    for _ in range(200):
        some = rng.integers(0, 900, 900)
        pair = [
            np.mean(
                [
                    average_precision_score(
                        (votes.targets == c)[some],
                        (one if n_classes == 2 else one[:, c])[some],
                        sample_weight=weight[some],
                    )
                    for c in ([1] if n_classes == 2 else range(3))
                ]
            )
            for one in (vote, other)
        ]
        drawn.append(pair[0] - pair[1])
    assert found == pytest.approx(np.std(drawn), rel=0.35)
