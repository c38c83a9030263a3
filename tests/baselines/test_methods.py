"""The registry: the paper's ten by name, and what a name gives."""

import importlib.util

import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from damvi.baselines import METHODS, PAPER_METHODS, make_method
from damvi.baselines import methods as registry


def test_the_papers_ten_in_its_order():
    assert " ".join(PAPER_METHODS) == "S-DT R-DT A-DT R-BG S-BG A-BG BB BRF EE DAMVI"


@pytest.mark.parametrize("trees", ["fast", "cart"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_and_ranks(name, trees):
    if METHODS[name].needs and importlib.util.find_spec(METHODS[name].needs) is None:
        pytest.skip(f"{METHODS[name].needs} is not installed")
    X, y = make_classification(300, 5, weights=[0.85], flip_y=0.05, random_state=2)
    model = make_method(name, trees=trees, random_state=0)
    assert is_classifier(model)
    for part in (model, getattr(model, "estimator", None)):
        if part is not None and "n_estimators" in part.get_params():
            assert part.n_estimators in (100, None)  # None is XGBoost's 100
    if name.startswith("EE"):
        model.set_params(easyensembleclassifier__n_estimators=3)
    model.fit(X, y)
    assert model.predict_proba(X).shape == (300, 2)


def test_cart_reaches_damvi_and_the_bagging_baselines():
    for name in ("DAMVI", "uniform", "R-BG", "S-BG", "A-BG"):
        model = make_method(name, trees="cart")
        assert isinstance(model.estimator, DecisionTreeClassifier)


def test_an_unknown_name_is_told_the_near_one_and_all():
    with pytest.raises(ValueError, match=r"'BRG'\. Did you mean BRF\? There are: S-DT, R"):
        make_method("BRG")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"XGBoost needs the package xgboost.*\[bench\]"):
        make_method("XGBoost")
