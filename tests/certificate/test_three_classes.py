"""Certificates of three or more classes."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.certificate import certify, clopper_pearson_upper


def rows(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 3))
    X[:, 0] += 3 * (y == "b")
    X[:, 1] += 3 * (y == "c")
    return X, y


@pytest.fixture(scope="module")
def model():
    trees = DecisionTreeClassifier(max_depth=3)
    return DAMVIClassifier(trees, n_estimators=15, random_state=0).fit(*rows(600, 0))


def test_rates_are_counted_for_each_class(model):
    X, y = rows(2000, 1)
    found = certify(model, X, y, delta=0.06)
    decided = model.predict(X)
    assert found.labels == ("a", "b", "c")
    for label, missed, flagged in zip(
        found.labels, found.missed_by_class, found.flagged_by_class, strict=True
    ):
        own = y == label
        assert (missed.rows, missed.errors) == (own.sum(), (decided[own] != label).sum())
        assert (flagged.rows, flagged.errors) == (
            (~own).sum(),
            (decided[~own] == label).sum(),
        )
        assert missed.upper == pytest.approx(
            float(clopper_pearson_upper(missed.errors, missed.rows, 0.01))
        )
    assert found.overall.errors == (decided != y).sum()
    assert not found.overall.vacuous
    shown = str(found)
    assert "'c' missed" in shown
    assert "PAC-Bayes" in shown
    with pytest.raises(AttributeError, match="no positive class"):
        found.missed  # noqa: B018
    assert found.as_dict()["pac_bayes"]["n_voters"] == 15


def test_pac_bayes_bounds_are_above_the_risk_and_need_the_plain_vote(model):
    found = certify(model, *rows(2000, 1))
    risk = found.overall.seen
    for name in ("twice_gibbs", "tandem", "c_bound"):
        bound = getattr(found.pac_bayes, name)
        assert risk < bound.overall <= 1
        assert bound.missed is None
    tuned = DAMVIClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=5, threshold=[1, 2, 3]
    ).fit(*rows(600, 0))
    assert certify(tuned, *rows(500, 1)).pac_bayes is None


def test_rows_of_the_fit_are_refused(model):
    with pytest.raises(ValueError, match="they include training rows"):
        certify(model, *rows(600, 0))


@pytest.mark.slow
def test_the_bounds_hold_as_often_as_they_say(model):
    X, y = rows(40_000, 2)
    decided = model.predict(X)
    true = [np.mean(decided[y == label] != label) for label in "abc"]
    broken = 0
    for part in np.array_split(np.arange(40_000), 100):
        found = certify(model, X[part], y[part], delta=0.2)
        broken += any(
            truth > one.upper
            for truth, one in zip(true, found.missed_by_class, strict=True)
        )
    assert broken <= 20
