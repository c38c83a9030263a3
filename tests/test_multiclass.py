"""Three or more classes: the same steps as for two."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.folds import deal_folds
from damvi.labels import Labels
from damvi.moments import ClassShares
from damvi.votes import Votes, out_of_bag_vote, out_of_fold_vote, plain_margin
from damvi.weighting import Settings, fold_weights

from .conftest import weigh

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
    return DAMVIVotingClassifier(POOL, random_state=0).fit(*data)


def some_votes(seed=0, n=60, n_voters=7, n_classes=4, soft=False, skill=2.0, weight=1.0):
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, n_classes, n)
    targets[:n_classes] = np.arange(n_classes)
    towards = np.eye(n_classes)[targets][:, None] * rng.uniform(0, skill, (1, n_voters, 1))
    shares = rng.dirichlet(np.ones(n_classes), size=(n, n_voters)) + towards
    shares /= shares.sum(axis=2, keepdims=True)
    return Votes(
        shares.astype(np.float32) if soft else shares.argmax(axis=2).astype(np.uint8),
        targets,
        deal_folds(targets, 0),
        sample_weight=rng.uniform(0.1, 1, n),
        class_weight=np.ones(n_classes) * weight,
        reweighted=np.bincount(targets) * n_classes < n,
    )


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("class_weight", [1.0, np.array([1.0, 2.0, 2.0, 0.5])])
def test_weights_are_those_of_the_obvious_least_squares(soft, strength, class_weight):
    # Voters that err: of several that are always right, any may have all the weight.
    votes = some_votes(soft=soft, skill=0.5, weight=class_weight)
    n, targets = len(votes.targets), votes.targets
    own = np.eye(4)[votes.votes] if not soft else votes.votes
    shares = own[np.arange(n), :, targets]
    plain = own.mean(axis=1)
    others = np.where(np.eye(4)[targets] > 0, -np.inf, plain).max(axis=1)
    margin = plain[np.arange(n), targets] - others
    D = votes.sample_weight * np.exp(-strength * margin * votes.reweighted[targets])
    root = np.sqrt(D * votes.class_weight[targets])
    w, _ = nnls((shares - 1 / 4) * root[:, None], root)
    found = weigh(votes, Settings(reweight=strength))
    assert (w > 0).sum() > 1
    np.testing.assert_allclose(found.weights, w / w.sum(), atol=1e-5)


@given(seed=st.integers(0, 10**6), n_classes=st.integers(3, 6))
def test_the_c_bound_is_never_below_the_risk_of_the_vote(seed, n_classes):
    votes = some_votes(seed, n_classes=n_classes, n_voters=5)
    found = weigh(votes)
    targets, rows = votes.targets, np.arange(len(votes.targets))
    margin = plain_margin(votes.votes, targets, n_classes)
    D = votes.sample_weight * np.exp(-margin * votes.reweighted[targets])
    for Q in (found.weights, np.random.default_rng(seed).dirichlet(np.ones(5))):
        vote = np.einsum("ikc,k->ic", np.eye(n_classes)[votes.votes], Q)
        others = np.where(np.eye(n_classes)[targets] > 0, -np.inf, vote).max(axis=1)
        risk = D @ (vote[rows, targets] <= others) / D.sum()  # a tie counts as an error
        assert found.moments.c_bound(Q) >= risk - 1e-7
    assert found.c_bound == found.moments.c_bound(found.weights)


def centred_rows(votes, strength):
    """Votes for the rows' classes less the means, targets and weights, row by row."""
    n, n_classes = len(votes.targets), votes.n_classes
    shares = votes.votes.astype(float)
    if shares.ndim == 2:
        shares = np.eye(n_classes)[votes.votes]
    D = votes.sample_weight.copy()
    hit = votes.reweighted[votes.targets]
    margin = plain_margin(votes.votes[hit], votes.targets[hit], n_classes)
    D[hit] *= np.exp(-strength * margin)
    D *= votes.class_weight[votes.targets]
    mean = np.average(shares, axis=0, weights=D)  # (K, C)
    rate = np.bincount(votes.targets, D, minlength=n_classes) / D.sum()
    own = shares[np.arange(n), :, votes.targets] - mean.T[votes.targets]
    return own, 1 - rate[votes.targets], D


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("class_weight", [1.0, np.array([1.0, 2.0, 2.0, 0.5])])
def test_a_constant_for_each_class_is_that_of_the_obvious_least_squares(
    soft, strength, class_weight
):
    votes = some_votes(seed=3, n=300, soft=soft, weight=class_weight)
    found = weigh(votes, Settings(strength, fit_intercept=True))
    own, target, D = centred_rows(votes, strength)
    w, _ = nnls(own * np.sqrt(D)[:, None], target * np.sqrt(D))
    np.testing.assert_allclose(found.weights, w / w.sum(), atol=1e-6)
    assert found.threshold == 0
    rest = votes.folds != 2
    vote = found.out_of_sample_vote
    assert vote.shape == (300, 4)
    np.testing.assert_allclose(vote.sum(axis=1), 1, atol=1e-9)
    assert not np.allclose(vote[~rest], 0.25)


@given(seed=st.integers(0, 10**6), strength=st.sampled_from([0.0, 1.0]))
def test_constants_of_two_classes_are_a_case_of_many(seed, strength):
    rng = np.random.default_rng(seed)
    targets = (rng.random(120) < 0.2).astype(int)
    targets[:2] = 0, 1
    up = np.clip(rng.random((120, 5)) + 0.3 * targets[:, None], 0, 1).astype(np.float32)
    settings = {"sample_weight": rng.uniform(0.1, 1, 120), "folds": np.zeros(120, int)}
    D = settings["sample_weight"]
    two = Votes(2 * up - 1, targets, **settings)
    shares = np.stack([1 - up, up, np.zeros_like(up)], axis=2)
    three = Votes(
        shares,
        targets,
        **settings,
        class_weight=np.ones(3),
        reweighted=np.array([False, True, True]),
    )
    how = Settings(strength, fit_intercept=True)
    one, many = (weigh(votes, how) for votes in (two, three))
    np.testing.assert_allclose(many.weights, one.weights, atol=1e-5)
    assert D.min() > 0


def test_the_parts_of_a_table_give_the_constants_of_the_whole():
    votes = some_votes(seed=1, n=500)
    counted = np.random.default_rng(0).random((500, 7)) < 0.6
    for mask in (None, counted):
        whole = ClassShares.of(votes.votes, votes.targets, 4, votes.sample_weight, mask)
        parts = [
            ClassShares.of(
                votes.votes[some],
                votes.targets[some],
                4,
                votes.sample_weight[some],
                None if mask is None else mask[some],
            )
            for some in (slice(0, 77), slice(77, 300), slice(300, None))
        ]
        added = parts[2] + parts[0] + parts[1]
        for name in ("own", "every", "rows"):
            np.testing.assert_array_equal(getattr(added, name), getattr(whole, name))
            assert getattr(whole, name).dtype == np.int64


@pytest.mark.parametrize("votes", ["train", "oob"])
def test_three_classes_with_a_constant(data, new, votes):
    X, y = data
    model = DAMVIClassifier(
        n_estimators=20, votes=votes, fit_intercept=True, random_state=0
    ).fit(X, y)
    assert model.weights_.sum() == pytest.approx(1)
    assert model.threshold_.tolist() == [1, 1, 1]  # the largest vote decides
    assert f1_score(new[1], model.predict(new[0]), average="macro") > 0.6
    before = model.weights_
    assert not np.array_equal(model.reweigh(fit_intercept=False).weights_, before)
    np.testing.assert_array_equal(model.reweigh(fit_intercept=True).weights_, before)
    assert model.choose("macro_f1", reweight=0, shrinkage=(0, 0.1)).honest_value > 0.5
    assert len(model.prune(5).weights_) <= 5


@given(seed=st.integers(0, 10**6), masked=st.booleans())
def test_the_margin_is_that_of_two_classes_where_no_other_is_voted_for(seed, masked):
    rng = np.random.default_rng(seed)
    signed = rng.choice([-1, 1], (20, 7)).astype(np.int8)
    counted = rng.random((20, 7)) < 0.6 if masked else None
    positive = np.ones(20, int)
    two = plain_margin(signed, positive, 2, counted)
    many = plain_margin((signed > 0).astype(np.uint8), positive, 3, counted)
    np.testing.assert_array_equal(many, two)


@pytest.mark.parametrize("n", [40, 4000])
def test_votes_of_many_are_those_of_each_class_alone(n):
    votes = some_votes(n=n)
    rng = np.random.default_rng(0)
    out_of_bag = np.packbits(rng.random((7, n)) < 0.5, axis=1)
    known = [moments.moments_to_learn() for moments in votes.moments_by_fold(1.0)]
    found = [fold_weights(moments, rng.dirichlet(np.ones(7))) for moments in known]
    folds, hard = votes.folds, votes.votes
    by_fold = out_of_fold_vote(hard, folds, found, n_classes=4)
    blind = out_of_bag_vote(hard, out_of_bag, folds, found, n_classes=4)
    shares = np.eye(4, dtype=np.float32)[hard]
    soft = out_of_fold_vote(np.ascontiguousarray(shares), folds, found, n_classes=4)
    np.testing.assert_allclose(soft, by_fold, atol=1e-12)
    for c in range(4):
        alone = np.asfortranarray((hard == c).astype(np.int8))
        one = out_of_fold_vote(alone, folds, found, n_classes=2)
        np.testing.assert_allclose(by_fold[:, c], one)
        one = out_of_bag_vote(alone, out_of_bag, folds, found, n_classes=2)
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
    labels = Labels(np.array([4, 5, 6]), None, np.array([1, 2, 0]))
    vote = np.array([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5], [1, 0, 0]])
    scores = labels.scores(vote, np.ones(3))
    assert labels.predict(scores).tolist() == [5, 6, 5, 4]
    np.testing.assert_allclose(scores, vote)
    assert labels.probabilities(vote).argmax(axis=1).tolist() == [1, 2, 1, 0]


MODELS = {
    "trees": DAMVIClassifier(n_estimators=10, random_state=0),
    "any": DAMVIClassifier(DecisionTreeClassifier(), n_estimators=10, random_state=0),
    "pool": DAMVIVotingClassifier(POOL, random_state=0),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_no_result_depends_on_the_number_of_jobs(data, new, model):
    one, two = (clone(model).set_params(n_jobs=n).fit(*data) for n in (1, 2))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.predict_proba(new[0]), two.predict_proba(new[0]))
    np.testing.assert_array_equal(one.oob_decision_function_, two.oob_decision_function_)


@pytest.mark.parametrize(
    "model",
    [
        clone(MODELS["any"]).set_params(bootstrap=False),
        clone(MODELS["pool"]).set_params(calibration=None),
    ],
    ids=["any", "pool"],
)
def test_a_row_of_weight_0_is_not_there(data, new, model):
    X, y = data
    odd = np.where(np.arange(len(y)) % 2, "seldom", y)
    weights = np.concatenate([np.ones(len(y)), np.zeros(len(y))])
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


@pytest.mark.slow
def test_choosing_and_pruning(data, new):
    model = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=20, random_state=0)
    model.fit(*data)
    choice = model.choose("macro_f1", shrinkage=[0.0, 0.2], reweight=[0.0, 1.0])
    assert choice.metric == "macro F1"
    assert choice.settings[np.argmax(choice.values)] == choice.chosen
    choice = model.choose(shrinkage=[0.0], reweight=[0.0, 1.0])
    assert choice.metric == "macro average precision"
    model.prune(4)
    assert len(model.estimators_) <= 4
    assert model.pruning_.sizes[-1] <= 4
    assert f1_score(new[1], model.predict(new[0]), average="macro") > 0.4
    with pytest.raises(ValueError, match="'f1' is not available for 3 classes"):
        model.choose("f1")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No voter is better than chance:UserWarning")
def test_coin_flips_score_as_chance_does():
    values, seen = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
        model = DAMVIVotingClassifier(POOL, random_state=seed)
        tuning = model.fit(X, y).tuning_
        values.append(tuning.honest_value)
        seen.append(tuning.value)
    assert np.mean(values) == pytest.approx(1 / 3, abs=0.04)
    assert np.mean(seen) > np.mean(values)
