"""CategoryBoostingClassifier: CatBoost, to which categories are categories."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline

from damvi import DAMVIVotingClassifier, load, save
from damvi.io import ModelFileError
from damvi.voters import (
    CategoryBoostingClassifier,
    NumberEncoder,
    RateEncoder,
    strong_pool,
)
from damvi.voters.estimators import seeded_clone

catboost = pytest.importorskip("catboost")


def table(n=600, seed=0, n_shops=40):
    """What two columns of categories say together, with holes; a rare class."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X.loc[::7, "a"] = np.nan
    X.insert(1, "shop", pd.Categorical([f"shop {k}" for k in rng.integers(0, n_shops, n)]))
    X["grade"] = pd.Categorical(rng.integers(0, 4, n))
    X["new"] = pd.Categorical(rng.choice(["yes", "no"], n))
    good = X["shop"].str.endswith("7") & (X["grade"] != 2)
    y = (good | (X["a"].fillna(0) > 2.2)) ^ (rng.random(n) < 0.01)
    X.loc[::11, "shop"] = np.nan
    return X, y.to_numpy().astype(int)


def three(X, y):
    return y + (y & (X["grade"] == 0)).to_numpy()


def same(one, other):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["array", "sparse", "pandas", "polars"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_categories_it_is_catboost_on_numbers(kind, n_classes):
    X, y = table()
    y = y if n_classes == 2 else three(X, y)
    numbers = X[["a", "b", "c"]].assign(empty=np.nan)
    made = {
        "array": numbers.to_numpy(),
        "sparse": sparse.csr_array(np.nan_to_num(numbers.to_numpy()).clip(0)),
        "pandas": numbers,
        "polars": pl.from_pandas(numbers),
    }[kind]
    plain = catboost.CatBoostClassifier(
        iterations=30,
        learning_rate=0.05,
        depth=4,
        thread_count=1,
        random_state=3,
        verbose=False,
        allow_writing_files=False,
    )
    plain = make_pipeline(NumberEncoder(), plain).fit(made, y)
    model = CategoryBoostingClassifier(30, depth=4, random_state=3).fit(made, y)
    same(model.predict_proba(made), plain.predict_proba(made))
    same(model.predict(made), plain.predict(made).ravel())


def test_the_pool_has_it_with_its_settings():
    model = dict(strong_pool(7, extended=True))["catboost"]
    assert model.get_params() == {
        "iterations": 300,
        "learning_rate": 0.05,
        "depth": 6,
        "random_state": 7,
    }


def test_very_many_categories_are_its_own_too():
    pool = dict(strong_pool(0, rates=True, extended=True))
    assert isinstance(pool["catboost"], CategoryBoostingClassifier)
    assert isinstance(pool["xgboost"][0], RateEncoder)
    X, y = table(9000, n_shops=1500)
    Z, z = table(3000, seed=1, n_shops=1500)
    assert X["shop"].nunique() > 1000
    model = CategoryBoostingClassifier(100, learning_rate=0.1, random_state=0).fit(X, y)
    assert average_precision_score(z, model.predict_proba(Z)[:, 1]) > 3 * z.mean()


def test_categories_and_numbers_are_told_apart():
    X, y = table()
    model = CategoryBoostingClassifier(5, random_state=0).fit(X, y)
    assert model.categorical == [1, 4, 5]
    assert model.estimator_.get_cat_feature_indices() == [1, 4, 5]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_are_the_same_in_any_table(n_classes):
    """As pandas or polars, as categories or text, in any order."""
    X, y = table()
    y = y if n_classes == 2 else three(X, y)
    names = ["shop", "grade", "new"]
    texts = X.assign(**{name: X[name].astype(object) for name in names})
    texts["grade"] = texts["grade"].astype(str)
    shops = X["shop"].cat
    other = X.assign(shop=shops.set_categories(shops.categories[::-1]))
    model = CategoryBoostingClassifier(60, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    for one in (texts, other, pl.from_pandas(texts)):
        same(model.predict_proba(one), expected)
        again = CategoryBoostingClassifier(60, random_state=0).fit(one, y)
        same(again.predict_proba(X), expected)


def test_new_and_missing_categories():
    X, y = table()
    model = CategoryBoostingClassifier(60, random_state=0).fit(X, y)
    new = X.assign(shop=pd.Categorical(["never seen"] * len(X)))
    newer = X.assign(shop=pd.Categorical(["neither"] * len(X)))
    same(model.predict_proba(new), model.predict_proba(newer))
    missing = X.assign(shop=pd.Categorical([None] * len(X)))
    assert (model.predict_proba(new) != model.predict_proba(missing)).any()


def test_seeds_and_weights():
    X, y = table()
    model = CategoryBoostingClassifier(20)
    assert clone(model).get_params() == model.get_params()

    def shares(seed, weight=None):
        fitted = seeded_clone(model, seed).fit(X, y, sample_weight=weight)
        return fitted.predict_proba(X)

    same(shares(1), shares(1))
    same(shares(None), shares(0))  # CatBoost's own default
    assert (shares(1) != shares(2)).any()
    assert (shares(1) != shares(1, np.arange(len(y)) + 1.0)).any()


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = table()
    y = y if request.param == 2 else three(X, y)
    # CatBoost combines categories from 200 trees on.
    pool = [("catboost", CategoryBoostingClassifier(200, depth=3))]
    return DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y), X


def test_files_give_the_same_bits(fitted, tmp_path):
    model, X = fitted
    save(model, tmp_path / "model.damvi")
    again = load(tmp_path / "model.damvi")
    rates = again.estimators_[0].estimator_
    assert rates.get_cat_feature_indices() == [1, 4, 5]
    surprises = table(seed=1, n_shops=60)[0]
    for rows in (X, surprises, surprises.iloc[:1]):
        same(again.predict_proba(rows), model.predict_proba(rows))
    same(rates.feature_importances_, model.estimators_[0].estimator_.feature_importances_)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m: setattr(m, "classes_", m.classes_ + 1), "wrong classes"),
        (lambda m: setattr(m, "estimator_", NumberEncoder()), "missing trees"),
        (lambda m: setattr(m, "estimator_", catboost.CatBoostClassifier()), "missing tr"),
        (lambda m: setattr(m, "encoder_", m.estimator_), "missing encoder"),
        (lambda m: setattr(m.encoder_, "categories_", None), "wrong categories"),
        (lambda m: setattr(m.encoder_, "categories_", [1]), "missing encoder"),
        (lambda m: setattr(m.encoder_, "empty_", np.zeros(5, bool)), "5 columns"),
        (lambda m: delattr(m, "encoder_"), "content is invalid"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(tmp_path, change, match):
    X, y = table()
    pool = [("catboost", CategoryBoostingClassifier(50, depth=3))]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    change(model.named_estimators_["catboost"])
    save(model, tmp_path / "model.damvi")
    with pytest.raises(ModelFileError, match=match):
        load(tmp_path / "model.damvi")
