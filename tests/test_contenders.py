"""Contenders by name, and oversampled classifiers that are clear where samplers fail."""

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from damvi import contenders
from damvi.contenders import (
    CONTENDERS,
    OversampledBaggingClassifier,
    OversampledTreeClassifier,
    make_contender,
)

SAMPLERS = ["random", "smote", "adasyn"]

checks = parametrize_with_checks(
    [
        OversampledTreeClassifier(),
        OversampledTreeClassifier("smote", k_neighbors=1),
        OversampledBaggingClassifier(n_estimators=10),
    ]
).mark


# A list, since older releases of scikit-learn hand pytest a generator, which it deprecates.
@pytest.mark.slow
@pytest.mark.parametrize(checks.args[0], list(checks.args[1]), **checks.kwargs)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_papers_ten_in_its_order():
    names = [name for name, contender in CONTENDERS.items() if contender.in_paper]
    assert " ".join(names) == "S-DT R-DT A-DT R-BG S-BG A-BG BB BRF EE DAMVI"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [name for name in CONTENDERS if name != "DAMVI-strong"])
def test_every_contender_fits_and_ranks(name, n_classes):
    X, y = make_classification(
        200, 6, n_informative=4, n_classes=n_classes, weights=[0.6, 0.2], random_state=2
    )
    model = make_contender(name, random_state=0)
    assert is_classifier(model)
    if name == "EE":
        model.set_params(easyensembleclassifier__n_estimators=3)
    elif name == "CatBoost":
        model.set_params(iterations=5)
    assert model.fit(X, y).predict_proba(X).shape == (200, n_classes)


def test_an_unknown_name_is_told_the_near_one_and_all():
    with pytest.raises(
        ValueError, match=r"'BRG'\. Did you mean BRF\? Choose from: S-DT, R"
    ):
        make_contender("BRG")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(contenders, "can_load", lambda name: False)
    with pytest.raises(ImportError, match=r"XGBoost needs the package xgboost.*\[bench\]"):
        make_contender("XGBoost")


@pytest.fixture(scope="module")
def table():
    return make_classification(600, 8, weights=[0.9], flip_y=0.05, random_state=1)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    "family", [OversampledTreeClassifier, OversampledBaggingClassifier]
)
def test_the_seed_repeats_the_fit(table, family, sampler):
    X, y = table
    first, again = (family(sampler, random_state=5).fit(X, y) for _ in range(2))
    assert (first.predict_proba(X) == again.predict_proba(X)).all()
    assert (first.predict(X) == first.classes_[first.predict_proba(X).argmax(1)]).all()


def test_one_tree_is_what_imbalanced_learn_and_scikit_learn_give(table):
    X, y = table
    ours = OversampledTreeClassifier("smote", random_state=0).fit(X, y)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    more_X, more_y = SMOTE(random_state=seed).fit_resample(X, y)
    theirs = DecisionTreeClassifier(random_state=seed).fit(more_X, more_y)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier()])
def test_samples_are_a_share_of_the_original_rows(table, estimator):
    X, y = table
    model = OversampledBaggingClassifier(
        estimator=estimator, n_estimators=3, random_state=0
    ).fit(X, y)
    assert model.model_.max_samples == 120
    assert (model.model_.weights_ == model.model_.weights_[0]).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_missing_values_become_training_medians(table, sampler):
    X, y = table
    X = X.copy()
    X[::7, 2], X[:, 5] = np.nan, np.nan
    model = OversampledTreeClassifier(sampler, random_state=0).fit(X, y)
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize("sampler", ["smote", "adasyn"])
@pytest.mark.parametrize("positives", [1, 5])
def test_fewer_positives_than_neighbours(sampler, positives):
    X, y = np.arange(80.0).reshape(40, 2), np.arange(40) < positives
    with pytest.raises(ValueError, match=f"rarest class has only {positives} training row"):
        OversampledTreeClassifier(sampler).fit(X, y)
    OversampledTreeClassifier("random").fit(X, y)


def test_adasyn_without_a_negative_near_any_positive():
    X, y = np.arange(80.0).reshape(40, 2), np.arange(40) >= 30
    X[y] += 1000
    with pytest.raises(ValueError, match="use sampler='smote'"):
        OversampledTreeClassifier("adasyn").fit(X, y)


def test_equal_classes_are_left_alone_and_unknown_samplers_refused():
    X, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    for sampler in SAMPLERS:
        OversampledTreeClassifier(sampler).fit(X, y)
    with pytest.raises(ValueError, match=r"unknown sampler='smot'; use one of rand"):
        OversampledTreeClassifier("smot").fit(X, y)
