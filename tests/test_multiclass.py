"""Three or more classes, and two by the way of many."""

import pickle

import damvi.electing
import numpy as np
import pandas as pd
import pytest
from damvi.class_ballots import ClassBallots
from damvi.contest import ManyClasses
from damvi.weighing import Rule, weigh
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.crossfit import fold_weights, out_of_bag_vote, out_of_fold_vote
from damvi.decision import Fixed
from damvi.folds import deal_folds
from damvi.moments import Moments
from damvi.reweighting import class_margin, uniform_class_vote, uniform_vote
from damvi.voters import VoteReader

POOL = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]


def three_classes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * (y == 1)
    X[:, 1] += 2.0 * (y == 2)
    return X, np.array(["often", "rare", "seldom"])[[0, 2, 1]][y]


@pytest.fixture(scope="module")
def data():
    return three_classes()


@pytest.fixture(scope="module")
def new():
    return three_classes(seed=1)


@pytest.fixture(scope="module")
def bagged(data):
    return DAMVIClassifier(DecisionTreeClassifier(), n_estimators=20, random_state=0).fit(
        *data
    )


@pytest.fixture(scope="module")
def pooled(data):
    return DAMVIClassifier(POOL, random_state=0).fit(*data)


class TwoOfMany(ManyClasses):
    """Two classes, each with a factor."""

    def aim(self, wanted):
        return Fixed(np.ones(2))


class Forced(DAMVIClassifier):
    """Two classes by the way of many."""

    def _read_labels(self, y):
        return TwoOfMany.read(y, None)

    @property
    def _contest(self):
        return TwoOfMany(self.classes_, self._majority)


@pytest.fixture
def numbered(monkeypatch):
    """Voters that name one of two classes by its number."""
    from damvi.voters.trees.voters import TreeVoters

    class Numbered(TreeVoters):
        @classmethod
        def train(cls, *arguments, **options):
            voters, votes = super().train(*arguments, **options)
            return voters, (votes > 0).astype(np.uint8)

        def weighted_vote(self, X, weights, n_jobs=None):
            last = (self.votes(X) > 0) @ weights
            return np.column_stack([weights.sum() - last, last])

    def voters_for(estimator, known=damvi.electing.voters_for):
        return Numbered if known(estimator) is TreeVoters else known(estimator)

    monkeypatch.setattr(damvi.electing, "voters_for", voters_for)
    monkeypatch.setattr(VoteReader, "is_binary", False)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"votes": "oob"},
        {"shrinkage": 0.1},
        {"reweight": False},
        {"reweight": 0.3, "balance": 0.5},
        {"solver": "slsqp"},
        {"stratified": True},
        {"estimator": DecisionTreeClassifier(max_depth=4)},
        {"estimator": LogisticRegression(), "votes": "oob"},
        {"estimator": POOL, "voting": "hard", "threshold": "vote"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_by_the_way_of_many_are_the_same_bits(
    table, fresh, numbered, settings, weighted, monkeypatch
):
    X, y = table
    weights = np.random.default_rng(0).uniform(0.5, 1, len(y)) if weighted else None
    options = {"n_estimators": 15, "random_state": 0, **settings}
    many = Forced(**options).fit(X, y, sample_weight=weights)
    assert many.decision_function(fresh).shape == (len(fresh), 2)
    decided = many.predict(fresh)
    monkeypatch.undo()
    two = DAMVIClassifier(**options).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(many.weights_, two.weights_)
    np.testing.assert_array_equal(decided, two.predict(fresh))
    assert (many.c_bound_, many.gibbs_risk_) == (two.c_bound_, two.gibbs_risk_)


def test_soft_votes_by_the_way_of_many_differ_by_rounding_alone(
    table, fresh, numbered, monkeypatch
):
    options = {"estimator": POOL, "threshold": "vote", "random_state": 0}
    many = Forced(**options).fit(*table)
    vote = many.vote(fresh)
    monkeypatch.undo()
    two = DAMVIClassifier(**options).fit(*table)
    np.testing.assert_allclose(many.weights_, two.weights_, atol=1e-4)
    np.testing.assert_allclose(vote[:, 1] - vote[:, 0], two.vote(fresh), atol=1e-4)


def class_ballots(seed=0, n=60, n_voters=7, n_classes=4, soft=False, skill=2.0, **settings):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)
    lean_to = np.eye(n_classes)[labels][:, None] * rng.uniform(0, skill, (1, n_voters, 1))
    shares = rng.dirichlet(np.ones(n_classes), size=(n, n_voters)) + lean_to
    shares /= shares.sum(axis=2, keepdims=True)
    votes = shares.astype(np.float32) if soft else shares.argmax(axis=2).astype(np.uint8)
    given = {
        "base": rng.uniform(0.1, 1, n),
        "folds": deal_folds(labels, 0),
        "unseen": None,
        "only_unseen": False,
        "rare": np.bincount(labels) * n_classes < n,
        "lean": np.ones(n_classes),
        **settings,
    }
    return ClassBallots(votes, labels, **given)


@given(seed=st.integers(0, 10**6), omega=st.integers(2, 9))
def test_moments_at_omega_are_those_of_the_shifted_votes(seed, omega):
    rng = np.random.default_rng(seed)
    right = rng.choice([-1, 1], (30, 5)).astype(np.int8)
    D = rng.integers(1, 9, 30) / 8
    found = Moments.of(right, np.ones(30), D).at(omega)
    a = (right > 0) - 1 / omega
    m, M = found.normalised()
    if omega == 2:  # on the scale of the votes
        m, M = m / 2, M / 4
    np.testing.assert_allclose(m, D @ a / D.sum(), atol=1e-9)
    np.testing.assert_allclose(M, a.T @ (a * D[:, None]) / D.sum(), atol=1e-9)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("lean", [None, np.array([1.0, 2.0, 2.0, 0.5])])
def test_weights_are_those_of_the_obvious_least_squares(soft, strength, lean):
    # Voters that err: of several that are always right, any may have all the weight.
    lean = np.ones(4) if lean is None else lean
    ballots = class_ballots(soft=soft, skill=0.5, lean=lean)
    n, labels = len(ballots.labels), ballots.labels
    own = np.eye(4)[ballots.votes] if not soft else ballots.votes
    shares = own[np.arange(n), :, labels]
    plain = own.mean(axis=1)
    others = np.where(np.eye(4)[labels] > 0, -np.inf, plain).max(axis=1)
    margin = plain[np.arange(n), labels] - others
    D = ballots.base * np.exp(-strength * margin * ballots.rare[labels])
    root = np.sqrt(D * ballots.lean[labels])
    w, _ = nnls((shares - 1 / 4) * root[:, None], root)
    found = weigh(ballots, Rule(emphasis=strength))
    assert (w > 0).sum() > 1
    np.testing.assert_allclose(found.weights, w / w.sum(), atol=1e-5)


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 6), oob=st.booleans())
def test_the_c_bound_is_never_below_the_risk_of_the_vote(seed, n_classes, oob):
    ballots = class_ballots(seed, n_classes=n_classes, n_voters=5)
    found = weigh(ballots, Rule(emphasis=1.0))
    labels, rows = ballots.labels, np.arange(len(ballots.labels))
    plain = np.eye(n_classes)[ballots.votes].mean(axis=1)
    margin = class_margin(plain, labels)
    D = ballots.base * np.exp(-margin * ballots.rare[labels])
    for Q in (found.weights, np.random.default_rng(seed).dirichlet(np.ones(5))):
        vote = np.einsum("ikc,k->ic", np.eye(n_classes)[ballots.votes], Q)
        others = np.where(np.eye(n_classes)[labels] > 0, -np.inf, vote).max(axis=1)
        risk = D @ (vote[rows, labels] <= others) / D.sum()  # a tie counts as an error
        assert found.moments.c_bound(Q) >= risk - 1e-7
    assert found.c_bound == found.moments.c_bound(found.weights)


@given(seed=st.integers(0, 10**6), masked=st.booleans())
def test_the_exponent_is_the_binary_margin_when_there_are_two(seed, masked):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], 20)
    votes = rng.choice([-1, 1], (20, 7)).astype(np.int8)
    mask = rng.random((20, 7)) < 0.6 if masked else None
    got = uniform_class_vote((votes > 0).astype(np.uint8), 2, mask)
    counted = 7 if mask is None else np.maximum(mask.sum(axis=1), 1)
    margin = class_margin(got, (signs > 0).astype(int)) / counted
    np.testing.assert_array_equal(margin, signs * uniform_vote(votes, mask))


@pytest.mark.parametrize("n", [40, 4000])
def test_votes_of_many_are_those_of_each_class_alone(n):
    ballots = class_ballots(n=n)
    rng = np.random.default_rng(0)
    unseen = np.packbits(rng.random((7, n)) < 0.5, axis=1)
    known = [tally.moments_to_learn() for tally in ballots.tallies(1.0)]
    found = [fold_weights(moments, rng.dirichlet(np.ones(7))) for moments in known]
    settings = ballots.folds, found
    by_fold = out_of_fold_vote(ballots.votes, *settings, n_classes=4)
    blind = out_of_bag_vote(ballots.votes, unseen, *settings, n_classes=4)
    shares = np.eye(4, dtype=np.float32)[ballots.votes]
    soft = out_of_fold_vote(np.ascontiguousarray(shares), *settings, n_classes=4)
    np.testing.assert_allclose(soft, by_fold, atol=1e-12)
    for c in range(4):
        alone = np.asfortranarray((ballots.votes == c).astype(np.int8))
        np.testing.assert_allclose(by_fold[:, c], out_of_fold_vote(alone, *settings))
        one = out_of_bag_vote(alone, unseen, *settings)
        np.testing.assert_allclose(blind[:, c], one, atol=1e-12)


def test_shapes_and_names(bagged, pooled, data):
    X, y = data
    for model in (bagged, pooled):
        assert model.classes_.tolist() == ["often", "rare", "seldom"]
        assert model.pos_label_ is None
        for method in (model.vote, model.decision_function, model.predict_proba):
            assert method(X).shape == (len(X), 3)
        assert model.oob_decision_function_.shape == (len(X), 3)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        winner = model.decision_function(X).argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[winner])
    np.testing.assert_allclose(bagged.vote(X), bagged.predict_proba(X), atol=1e-12)
    assert bagged.threshold_.tolist() == [1, 1, 1]
    assert bagged.cast_votes(X).shape == (len(X), 20)
    assert f1_score(y, bagged.predict(X), average="macro") > 0.7


def test_the_built_in_trees_take_many_classes(data, new):
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(*data)
    assert f1_score(new[1], model.predict(new[0]), average="macro") > 0.5
    votes = model.cast_votes(new[0])
    expected = np.einsum("ikc,k->ic", np.eye(3)[votes], model.weights_)
    np.testing.assert_allclose(model.vote(new[0]), expected, atol=1e-12)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_names_and_their_order_change_nothing(data, new, bagged):
    numbers = {"often": 2, "rare": 0, "seldom": 1}
    y = np.array([numbers[label] for label in data[1]])
    other = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=20, random_state=0)
    other.fit(pd.DataFrame(data[0], columns=list("abcd")), y)
    frame = pd.DataFrame(new[0], columns=list("abcd"))
    assert other.feature_names_in_.tolist() == list("abcd")
    # Folds are dealt class by class, so the order of the classes shuffles the draws only.
    agree = other.predict(frame) == [numbers[label] for label in bagged.predict(new[0])]
    assert agree.mean() > 0.9


def test_ties_go_to_the_more_frequent_class():
    contest = ManyClasses(np.array([4, 5, 6]), np.array([1, 2, 0]))
    vote = np.array([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5], [1, 0, 0]])
    scores = contest.scores(vote, np.ones(3))
    assert contest.winners(scores).tolist() == [1, 2, 1, 0]
    np.testing.assert_allclose(scores, vote)
    assert contest.chances(vote, None).argmax(axis=1).tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), POOL])
def test_no_result_depends_on_the_number_of_jobs(data, new, estimator):
    one, two = (
        DAMVIClassifier(estimator, n_estimators=10, random_state=0, n_jobs=n).fit(*data)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.predict_proba(new[0]), two.predict_proba(new[0]))
    np.testing.assert_array_equal(one.oob_decision_function_, two.oob_decision_function_)


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), POOL])
def test_a_row_of_weight_0_is_not_there(data, new, estimator):
    X, y = data
    odd = np.where(np.arange(len(y)) % 2, "seldom", y)
    options = {"bootstrap": False} if estimator is not POOL else {"calibration": None}
    weights = np.concatenate([np.ones(len(y)), np.zeros(len(y))])
    model = DAMVIClassifier(estimator, n_estimators=10, random_state=0, **options)
    model.fit(np.vstack([X, X + 9]), np.concatenate([y, odd]), sample_weight=weights)
    assert f1_score(new[1], model.predict(new[0]), average="macro") > 0.5
    twice = model.weights_.copy()
    model.fit(np.vstack([X, X - 9]), np.concatenate([y, odd]), sample_weight=weights)
    np.testing.assert_allclose(model.weights_, twice, atol=1e-7)


def test_a_weight_is_a_say(data):
    X, y = data
    heavy = np.where(y == "rare", 1.0, 0.01)
    model = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=10, random_state=0)
    assert (model.fit(X, y, sample_weight=heavy).predict(X) == "rare").mean() > 0.5


@pytest.mark.parametrize("name", ["bagged", "pooled"])
def test_it_comes_back_from_a_pickle(name, new, request):
    model = request.getfixturevalue(name)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(new[0]), model.predict_proba(new[0]))
    np.testing.assert_array_equal(back.oob_decision_function_, model.oob_decision_function_)
    assert back.tuning_ == model.tuning_


def test_a_pool_is_tuned_for_macro_f1(pooled, data):
    tuning = pooled.tuning_
    assert tuning.objective == "macro F1"
    assert tuning.threshold == tuple(pooled.threshold_)
    assert tuning.value_interval[0] < tuning.honest_value < tuning.value_interval[1]
    labels = np.searchsorted(pooled.classes_, data[1])
    seen = pooled.oob_decision_function_.argmax(axis=1)
    assert tuning.value == pytest.approx(f1_score(labels, seen, average="macro"))
    assert "on rows not tuned on" in str(tuning)
    rates = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(pooled.predict_proba(data[0]).mean(axis=0), rates, atol=0.05)


def test_choosing_and_pruning(data, new):
    model = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=20, random_state=0)
    model.fit(*data).choose("macro_f1", shrinkage=[0.0, 0.2], reweight=[0.0, 1.0])
    assert model.choice_.metric == "macro F1"
    best = np.argmax(model.choice_.values)
    assert model.choice_.rules[best] == model.choice_.chosen
    model.choose(shrinkage=[0.0], reweight=[0.0, 1.0])
    assert model.choice_.metric == "macro average precision"
    model.prune(4)
    assert len(model.estimators_) <= 4
    assert model.pruning_.sizes[-1] <= 4
    assert f1_score(new[1], model.predict(new[0]), average="macro") > 0.4
    with pytest.raises(ValueError, match="'f1' does not go with 3 classes"):
        model.choose("f1")


@pytest.mark.filterwarnings("ignore:No voter does better than a coin:UserWarning")
def test_coin_flips_score_as_chance_does():
    values, seen = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
        model = DAMVIClassifier(POOL, random_state=seed)
        tuning = model.fit(X, y).tuning_
        values.append(tuning.honest_value)
        seen.append(tuning.value)
    assert np.mean(values) == pytest.approx(1 / 3, abs=0.04)
    assert np.mean(seen) > np.mean(values)
