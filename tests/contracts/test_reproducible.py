"""One seed, one answer: to the last bit, whoever does the work."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier


def bits(model, X):
    arrays = (model.weights_, model.vote(X), model.oob_decision_function_)
    return [array.tobytes() for array in arrays]


@pytest.fixture(scope="module")
def model():
    tree = DecisionTreeClassifier(max_features=2, splitter="random")
    return DAMVIClassifier(tree, n_estimators=12, random_state=3)


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_neither_n_jobs_nor_the_backend_changes_a_bit(model, table, fresh, backend, n_jobs):
    expected = bits(clone(model).fit(*table), fresh)
    with joblib.parallel_config(backend=backend):
        other = clone(model).set_params(n_jobs=n_jobs).fit(*table)
        assert bits(other, fresh) == expected


def test_another_seed_gives_another_fit(model, table, fresh):
    one = clone(model).fit(*table)
    other = clone(model).set_params(random_state=4).fit(*table)
    assert bits(one, fresh) != bits(other, fresh)


def test_no_seed_draws_anew_and_a_random_state_moves_on(model, table, fresh):
    free = clone(model).set_params(random_state=None)
    assert bits(clone(free).fit(*table), fresh) != bits(clone(free).fit(*table), fresh)
    rng = np.random.RandomState(3)
    first = clone(model).set_params(random_state=rng).fit(*table)
    assert bits(first, fresh) == bits(clone(model).fit(*table), fresh)


def test_a_second_fit_starts_again(model, table, fresh):
    once = clone(model).fit(*table)
    expected = bits(once, fresh)
    assert bits(once.fit(*table), fresh) == expected


def test_a_pickle_predicts_the_same(model, table, fresh):
    fitted = clone(model).fit(*table)
    restored = pickle.loads(pickle.dumps(fitted))
    assert bits(restored, fresh) == bits(fitted, fresh)
    assert restored.predict(fresh).tolist() == fitted.predict(fresh).tolist()


def test_the_order_of_prediction_rows_and_their_company_change_no_bit(model, table, fresh):
    fitted = clone(model).fit(*table)
    whole = fitted.vote(fresh)
    order = np.random.RandomState(0).permutation(len(fresh))
    np.testing.assert_array_equal(fitted.vote(fresh[order]), whole[order])
    np.testing.assert_array_equal(fitted.vote(fresh[:1]), whole[:1])
