"""Real AdaBoost: an estimator like any other, and the boosting of the textbook."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from damvi.baselines import RealAdaBoostClassifier

checks = parametrize_with_checks([RealAdaBoostClassifier(n_estimators=5)]).mark


# A list, since older releases of scikit-learn hand pytest a generator, which it deprecates.
@pytest.mark.parametrize(checks.args[0], list(checks.args[1]), **checks.kwargs)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_two_rounds_by_hand():
    X, y = make_classification(200, 4, flip_y=0.1, random_state=3)
    signs, weights, total = 2 * y - 1, np.full(200, 1 / 200), 0
    for _ in range(2):
        stump = DecisionTreeClassifier(max_depth=1).fit(X, signs, weights)
        p = stump.predict_proba(X)[:, 1].clip(1e-16, 1 - 1e-16)
        answer = np.log(p / (1 - p)) / 2
        weights = weights * np.exp(-signs * answer)
        weights, total = weights / weights.sum(), total + answer / 2
    model = RealAdaBoostClassifier(2, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), total, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * total)), rtol=1e-9
    )


def test_separable_classes():
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(20) >= 15
    model = RealAdaBoostClassifier().fit(X, y)
    assert (model.predict(X) == y).all()
    assert np.isfinite(model.predict_proba(X)).all()
