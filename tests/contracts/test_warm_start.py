"""Voters added later are the voters that a larger fit would have had."""

import numpy as np
import pytest

from damvi import DAMVIClassifier


@pytest.fixture
def five(table):
    return DAMVIClassifier(n_estimators=5, random_state=0, warm_start=True).fit(*table)


@pytest.mark.parametrize("options", [{}, {"stratified": True}, {"bootstrap": False}])
def test_five_voters_and_seven_more_are_twelve_at_once(table, fresh, options):
    grown = DAMVIClassifier(n_estimators=5, random_state=0, warm_start=True, **options)
    grown.fit(*table)
    first = [voter.predict(fresh) for voter in grown.estimators_]
    grown.set_params(n_estimators=12).fit(*table)
    at_once = DAMVIClassifier(n_estimators=12, random_state=0, **options).fit(*table)
    kept = [voter.predict(fresh) for voter in grown.estimators_[:5]]
    np.testing.assert_array_equal(kept, first)
    np.testing.assert_array_equal(grown.weights_, at_once.weights_)
    np.testing.assert_array_equal(grown.vote(fresh), at_once.vote(fresh))
    np.testing.assert_array_equal(
        grown.oob_decision_function_, at_once.oob_decision_function_
    )


def test_voters_are_added_even_when_the_seed_is_not_fixed(table):
    model = DAMVIClassifier(n_estimators=3, warm_start=True).fit(*table)
    first = [voter.predict(table[0]) for voter in model.estimators_]
    model.set_params(n_estimators=6).fit(*table)
    kept = [voter.predict(table[0]) for voter in model.estimators_[:3]]
    np.testing.assert_array_equal(kept, first)
    assert len(model.weights_) == 6


def test_as_many_voters_as_before_only_solves_again(table, five):
    before = [voter.predict(table[0]) for voter in five.estimators_]
    five.set_params(solver="uniform").fit(*table)
    after = [voter.predict(table[0]) for voter in five.estimators_]
    np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(five.weights_, 0.2)


def test_fewer_voters_are_refused(table, five):
    message = "n_estimators=3 is less than the 5 voters.*warm_start=False"
    with pytest.raises(ValueError, match=message):
        five.set_params(n_estimators=3).fit(*table)


@pytest.mark.parametrize(
    "change",
    [
        {"max_samples": 0.5},
        {"bootstrap": False},
        {"stratified": True},
    ],
)
def test_another_way_to_draw_is_refused(table, five, change):
    with pytest.raises(ValueError, match="must not change; set warm_start=False"):
        five.set_params(n_estimators=8, **change).fit(*table)


def test_other_rows_or_weights_are_refused(table, five):
    X, y = table
    five.set_params(n_estimators=8)
    with pytest.raises(ValueError, match=r"so X, y, sample_weight.*must not change"):
        five.fit(X[:-10], y[:-10])
    with pytest.raises(ValueError, match="must not change"):
        five.fit(X, y, sample_weight=np.linspace(1, 2, len(y)))


def test_other_labels_are_refused(table, five):
    X, y = table
    with pytest.raises(ValueError, match="must not change"):
        five.set_params(n_estimators=8).fit(X, np.roll(y, 1))


def test_another_positive_class_is_refused(table, five):
    with pytest.raises(ValueError, match="must not change"):
        five.set_params(n_estimators=8, pos_label=0).fit(*table)


def test_without_warm_start_a_fit_forgets_the_last_one(table, five):
    X, y = table
    five.set_params(warm_start=False, n_estimators=3).fit(X[:-10], y[:-10])
    assert len(five.estimators_) == len(five.weights_) == 3


def test_the_warning_on_missing_positives_counts_all_voters(table):
    X, y = table
    rare = np.zeros_like(y)
    rare[:2] = 1
    model = DAMVIClassifier(n_estimators=6, random_state=0, warm_start=True)
    counts = []
    for n_estimators in (6, 12):
        with pytest.warns(UserWarning, match="samples drew none") as caught:
            model.set_params(n_estimators=n_estimators).fit(X, rare)
        counts.append(str(caught[0].message).split()[0])
    blind = [voter.predict_proba(X)[:, 1].max() == 0 for voter in model.estimators_]
    assert counts == [str(sum(blind[:6])), str(sum(blind))]
    assert counts[0] != counts[1]
