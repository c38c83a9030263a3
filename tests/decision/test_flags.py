import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi import DAMVIClassifier
from damvi.decision import Flags, parse_objective, tune, tune_threshold


@pytest.mark.parametrize(
    ("spec", "share"),
    [({"flags": 20}, 0.2), ({"flags": (3, 60)}, 0.05), ({"flags": 0.3}, 0.3)],
)
def test_a_budget_in_its_words(spec, share):
    assert parse_objective(spec).among(100).share == pytest.approx(share)


@pytest.mark.parametrize("spec", [{"flags": 0}, {"flags": (1, 0)}, {"flags": "all"}])
def test_budgets_that_cannot_be(spec):
    with pytest.raises(ValueError, match="number of"):
        parse_objective(spec)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_other_cut_flags_closer_to_the_budget(data):
    """With ties and weights, for any budget, and whatever the truth."""
    n = data.draw(st.integers(2, 15))
    vote = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)))
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    number = data.draw(st.floats(0.05, 20))
    targets = np.arange(n) % 2
    aim = {"flags": (number, n)}
    found = tune_threshold(vote, targets, aim, sample_weight=weight)
    shares = [weight[vote > cut].sum() / weight.sum() for cut in [-4, *np.unique(vote)]]
    off = [abs(share - min(number / n, 1)) for share in shares]
    own = weight[vote > found].sum() / weight.sum()
    assert abs(own - min(number / n, 1)) <= min(off) + 1e-9
    twice = np.repeat(vote, weight), np.repeat(targets, weight)
    assert tune_threshold(*twice, aim) == found
    assert tune_threshold(vote, targets[::-1], aim, sample_weight=weight) == found


def test_more_than_there_are_and_next_to_none():
    vote, targets = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 1, 0, 1])
    assert (vote > tune_threshold(vote, targets, {"flags": 100})).all()
    assert (vote > tune_threshold(vote, targets, {"flags": 1})).sum() == 1
    assert (vote > tune_threshold(vote, targets, {"flags": 2})).sum() == 1  # 3 is as far
    assert not (vote > tune_threshold(vote, targets, {"flags": 0.1})).any()


def test_a_fixed_threshold_flags_what_was_asked_on_average():
    """Few flags, where half a row more would show."""
    flagged = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        cut = tune_threshold(rng.random(200), np.arange(200) % 9 == 0, {"flags": 4})
        flagged.append(200 * (1 - cut))
    error = np.std(flagged) / np.sqrt(300)
    assert np.mean(flagged) == pytest.approx(4, abs=3 * error)


def test_tuning_for_a_budget():
    rng = np.random.default_rng(0)
    targets = (rng.random(3000) < 0.05).astype(int)
    vote = rng.normal(size=3000) + 2 * targets
    tuning = tune(vote, targets, {"flags": 90})
    assert tuning.objective == "recall at 90 flags"
    assert (vote > tuning.threshold).sum() == 90
    low, high = tuning.threshold_interval
    assert low < tuning.threshold < high
    assert tuning.value_interval[0] < tuning.honest_recall < tuning.value_interval[1]
    assert tune(vote, targets, {"flags": 0.03}).threshold == tuning.threshold


def test_an_estimator_with_a_budget():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600) > 2.2
    model = DAMVIClassifier(n_estimators=20, threshold={"flags": 30}, random_state=0).fit(
        X, y
    )
    vote = model.decision_.out_of_sample_vote
    assert abs((vote > model.threshold_).sum() - 30) <= 3  # hard votes tie
    assert isinstance(model.decision_.objective, Flags)
    many = DAMVIClassifier(n_estimators=5, threshold={"flags": 30})
    with pytest.raises(ValueError, match="Only binary"):
        many.fit(X, np.arange(600) % 3)
