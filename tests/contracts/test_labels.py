"""Names of labels are names: no decision depends on them, ties included."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier

CART = DecisionTreeClassifier()  # blind to which class is called positive

RENAMINGS = {
    "the rare class last": np.array([0, 1]),
    "the rare class first": np.array([1, 0]),
    "strings": np.array(["a", "b"]),
    "strings, turned": np.array(["b", "a"]),
    "objects": np.array(["common", "Rare"], dtype=object),
    "booleans, turned": np.array([True, False]),
    "signs": np.array([-1.0, 1.0]),
}


@pytest.fixture(scope="module")
def plain(table):
    """An even number of voters with equal weights, so that ties do occur."""
    X, y = table
    return DAMVIClassifier(n_estimators=4, solver="uniform", random_state=0).fit(X, y)


@pytest.mark.parametrize("names", RENAMINGS.values(), ids=RENAMINGS)
@pytest.mark.parametrize("solver", ["uniform", "exact"])
def test_renaming_the_labels_changes_no_decision(table, fresh, plain, names, solver):
    X, y = table
    model = DAMVIClassifier(n_estimators=4, solver=solver, random_state=0)
    expected = model.fit(X, y).predict(fresh)
    renamed = model.fit(X, names[y])
    assert renamed.pos_label_ == names[1]
    assert (renamed.predict(fresh) == names[expected]).all()
    oriented = renamed.decision_function(fresh) > 0
    assert (oriented == (renamed.predict(fresh) == renamed.classes_[1])).all()
    likelier = renamed.classes_[renamed.predict_proba(fresh).argmax(axis=1)]
    assert (likelier == renamed.predict(fresh)).all()


@pytest.mark.parametrize("names", RENAMINGS.values(), ids=RENAMINGS)
def test_a_tie_goes_to_the_majority_class(table, fresh, plain, names):
    X, y = table
    ties = plain.vote(fresh) == 0
    assert ties.sum() > 5
    model = DAMVIClassifier(n_estimators=4, solver="uniform", random_state=0)
    assert (model.fit(X, names[y]).predict(fresh[ties]) == names[0]).all()


def test_the_vote_is_for_the_positive_class_whatever_its_place(table, fresh, plain):
    X, y = table
    turned = DAMVIClassifier(n_estimators=4, solver="uniform", random_state=0).fit(X, 1 - y)
    np.testing.assert_array_equal(turned.vote(fresh), plain.vote(fresh))
    decided = plain.vote(fresh) != 0
    np.testing.assert_array_equal(
        turned.decision_function(fresh)[decided], -plain.decision_function(fresh)[decided]
    )
    ties = turned.decision_function(fresh)[~decided]
    assert (ties > 0).all()
    assert (ties < 1e-15).all()


def test_out_of_bag_scores_are_oriented_like_the_decision_function(table, plain):
    X, y = table
    turned = DAMVIClassifier(n_estimators=4, solver="uniform", random_state=0).fit(X, 1 - y)
    one, other = plain.oob_decision_function_, turned.oob_decision_function_
    np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    clear = np.abs(one) > 1e-9
    np.testing.assert_array_equal(one[clear], -other[clear])


def test_pos_label_makes_the_common_class_positive(table, fresh):
    X, y = table
    names = np.array(["common", "rare"])
    model = DAMVIClassifier(n_estimators=9, pos_label="common", random_state=0)
    model.fit(X, names[y])
    assert model.pos_label_ == "common"
    won, lost = model.vote(fresh) > 0, model.vote(fresh) < 0
    assert won.any()
    assert lost.any()
    assert (model.predict(fresh[won]) == "common").all()
    assert (model.predict(fresh[lost]) == "rare").all()
    assert (model.decision_function(fresh)[won] < 0).all()


@pytest.mark.parametrize("names", [[0, 1], [1, 0]])
@pytest.mark.parametrize("positive", [0, 1])
def test_a_tie_goes_to_the_majority_class_whichever_is_positive(
    table, fresh, names, positive
):
    X, y = table
    names = np.array(names)
    plain = DAMVIClassifier(CART, n_estimators=4, solver="uniform", random_state=0)
    ties = plain.fit(X, y).vote(fresh) == 0
    assert ties.any()
    model = plain.set_params(pos_label=names[positive])
    assert (model.fit(X, names[y]).vote(fresh[ties]) == 0).all()
    assert (model.predict(fresh[ties]) == names[0]).all()


def test_pos_label_is_what_step_2_leans_on(table):
    X, y = table
    rare, common = (
        DAMVIClassifier(CART, n_estimators=9, pos_label=p, random_state=0).fit(X, y)
        for p in (1, 0)
    )
    for one, other in zip(rare.estimators_, common.estimators_, strict=True):
        np.testing.assert_array_equal(one.predict(X), 1 - other.predict(X))
    assert rare.c_bound_ != common.c_bound_
