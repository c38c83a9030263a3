"""Settings chosen on unseen votes, and what the choice is worth."""

import numpy as np
import pytest
from damvi.ballots import Ballots
from damvi.choosing import Judge, choose_rule
from damvi.weighing import Rule, honest_vote, weigh
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier
from damvi.folds import deal_folds

RULES = [Rule(emphasis, shrinkage) for shrinkage in (0.0, 0.2) for emphasis in (0.0, 1.0)]


def ballots_of(seed=0, n=400, n_voters=6, soft=True, skill=0.6):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.2, 1, -1).astype(np.int8)
    votes = np.tanh(skill * signs[:, None] + rng.normal(size=(n, n_voters)))
    votes = votes if soft else np.where(votes > 0, 1, -1)
    kind = np.float32 if soft else np.int8
    return Ballots(np.asfortranarray(votes, dtype=kind), signs, None, deal_folds(signs, 0))


@pytest.mark.parametrize("soft", [True, False])
def test_values_are_those_of_the_votes_on_unseen_rows(soft):
    ballots = ballots_of(soft=soft)
    choice, _ = choose_rule(ballots, RULES, "average_precision")
    for rule, value in zip(RULES, choice.values, strict=True):
        vote = weigh(ballots, rule).unseen_vote
        expected = average_precision_score(ballots.signs > 0, vote)
        assert value == pytest.approx(expected, abs=1e-12)
    assert choice.chosen == RULES[int(np.argmax(choice.values))]
    assert "<- chosen" in str(choice)


def test_f1_is_judged_at_thresholds_of_the_other_folds():
    from damvi.decision import tune_threshold

    ballots = ballots_of()
    vote, targets = weigh(ballots).unseen_vote, ballots.targets
    flagged = np.empty(len(vote), bool)
    for fold in range(5):
        here = ballots.folds == fold
        flagged[here] = vote[here] > tune_threshold(vote[~here], targets[~here], "f1")
    value, worth = Judge.of(ballots, "f1")([vote] * 5)
    assert value == worth == pytest.approx(f1_score(targets, flagged))


def test_a_fold_is_judged_by_what_does_not_know_its_labels():
    ballots = ballots_of()
    here = ballots.folds == 2
    signs = ballots.signs.copy()
    signs[here] = np.random.default_rng(1).permutation(signs[here])
    other = Ballots(ballots.votes, signs, None, ballots.folds)

    def blind_vote(ballots, rule):
        tallies = ballots.tallies(rule.emphasis)
        known = [
            sum(
                (t for f, t in enumerate(tallies) if f not in (2, g)),
                start=tallies[0] - tallies[0],
            )
            for g in range(5)
        ]
        return honest_vote(ballots, known, rule)

    for rule in RULES:
        np.testing.assert_allclose(
            blind_vote(ballots, rule), blind_vote(other, rule), atol=1e-9
        )


def test_the_choice_among_many_is_at_chance_on_coin_flips():
    honest, best = [], []
    rules = [Rule(e, s) for s in (0.0, 0.01, 0.1, 0.5) for e in (0.0, 0.5, 1.0)]
    for seed in range(12):
        ballots = ballots_of(seed, n=300, n_voters=20, skill=0.0)
        choice, _ = choose_rule(ballots, rules, "average_precision")
        rate = (ballots.signs > 0).mean()
        honest.append(choice.honest_value - rate)
        best.append(max(choice.values) - rate)
    error = np.std(honest, ddof=1) / np.sqrt(len(honest))
    assert abs(np.mean(honest)) < 3 * error + 0.01
    assert np.mean(best) > np.mean(honest)


@pytest.mark.parametrize(
    ("metric", "sign"), [({"cost": (1, 20)}, -1), ({"recall": 0.8}, 1), ("fbeta", 1)]
)
def test_any_aim_of_a_threshold_is_a_metric(metric, sign):
    choice, _ = choose_rule(ballots_of(), RULES, metric)
    if metric != {"recall": 0.8}:  # which wants the floor kept, before the precision
        best = max(sign * value for value in choice.values)
        assert choice.values[choice.rules.index(choice.chosen)] == sign * best


def test_a_threshold_is_no_metric():
    with pytest.raises(ValueError, match="metric='vote' is a threshold"):
        choose_rule(ballots_of(), RULES, "vote")


def test_the_estimator_chooses_and_keeps_what_it_chose():
    X, y = make_classification(600, weights=[0.85], flip_y=0.1, random_state=0)
    model = DAMVIClassifier(n_estimators=20, votes="oob", random_state=0).fit(X, y)
    assert model.choose() is model
    assert model.choice_.metric == "average precision"
    assert len(model.choice_.rules) == 18
    assert model.shrinkage == model.choice_.chosen.shrinkage
    again = DAMVIClassifier(**model.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    model.reweigh(threshold="f1").choose(reweight=[0, 1], shrinkage=[0, 0.1])
    assert model.choice_.metric == "F1"
    assert len(model.choice_.rules) == 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"shrinkage": [1.0]}, "shrinkage=1.0 must be below 1"),
        ({"shrinkage": []}, "no value to try"),
        ({"reweight": [-5]}, "reweight=-5 is not a number from 0 to 1"),
        ({"metric": "roc_auc"}, "metric='roc_auc' is not known"),
    ],
)
def test_what_cannot_be_chosen_is_said(wrong, words):
    X, y = make_classification(300, weights=[0.8], random_state=0)
    model = DAMVIClassifier(n_estimators=5, votes="oob", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=words):
        model.choose(**wrong)


def test_two_folds_are_too_few():
    X, y = make_classification(300, weights=[0.8], random_state=0)
    pool = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
    with pytest.raises(ValueError, match="takes three or more"):
        DAMVIClassifier(pool, cv=2).fit(X, y).choose()


def noise(seed, n=400, n_voters=30):
    """Voters that know nothing, fitted already, and rows of theirs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_voters))
    y = np.arange(n) < n // 10
    pool = [(f"v{k}", Column(k)) for k in range(n_voters)]
    return (
        DAMVIClassifier(pool, votes="prefit", voting="hard", random_state=seed),
        X,
        rng.permutation(y),
    )


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


@pytest.mark.parametrize("then", ["choose", "prune"])
def test_figures_after_a_choice_do_not_flatter(then):
    scores = []
    for seed in range(15):
        model, X, y = noise(seed)
        model.fit(X, y)
        model.choose("average_precision") if then == "choose" else model.prune(2)
        scores.append(roc_auc_score(y, model.oob_decision_function_))
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    assert np.mean(scores) < 0.5 + 3 * error
