"""PairRates: categories as numbers, with class rates of categories and their pairs."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline

from damvi import DAMVIVotingClassifier, load, save
from damvi.io.container import ModelFileError
from damvi.voters import NumberEncoder
from damvi.voters.columns import PairRates


def rows(n, seed, n_columns=3, n_classes=2):
    """Two categories tell the class together, and neither does alone."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, n_columns))
    y = np.where(rng.random(n) < 0.9, (codes[:, 0] + codes[:, 1]) % n_classes, 0)
    X = pd.DataFrame(
        {f"c{j}": np.array(list("abcd"))[codes[:, j]] for j in range(n_columns)}
    )
    return X.astype("category").assign(size=rng.normal(size=n)), y


def test_rates_are_those_of_the_rows_and_unknown_pairs_have_the_mean():
    X, y = rows(20_000, 0, n_columns=2)
    X.loc[:999, "c1"] = np.nan
    encoder = PairRates().fit(X, y)
    assert encoder.groups == [(0,), (1,), (0, 1)]
    new = pd.DataFrame(
        {"c0": ["a", "a", "a", "z", None], "c1": ["b", None, "z", "b", None]}
    )
    found = encoder.transform(new.astype("category").assign(size=1.5))
    np.testing.assert_array_equal(
        found[:, :3],
        NumberEncoder().fit(X).transform(new.astype("category").assign(size=1.5)),
    )
    both, first, second = found[:, 5], found[:, 3], found[:, 4]
    is_a, is_b, none = X["c0"] == "a", X["c1"] == "b", X["c1"].isna()
    assert both[0] == pytest.approx(y[is_a & is_b].mean(), abs=0.01)
    assert both[1] == pytest.approx(y[is_a & none].mean(), abs=0.03)
    np.testing.assert_allclose(both[2:], y.mean())
    assert first[0] == pytest.approx(y[is_a].mean(), abs=0.01)
    assert second[1] == pytest.approx(y[none].mean(), abs=0.03)
    np.testing.assert_allclose(first[3:], y.mean())


def test_the_rows_that_a_rate_is_learned_from_do_not_see_it():
    X, _ = rows(1500, 0, n_columns=6)
    y = (np.random.default_rng(1).random(len(X)) < 0.1).astype(int)
    made = PairRates(random_state=0).fit_transform(X, y)[:, X.shape[1] :]
    assert made.shape[1] == 21
    spread = made.std(axis=0) > 0
    assert max(np.corrcoef(made[:, spread].T, y)[-1, :-1], default=0) < 0.07


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_model_learns_from_pairs(n_classes):
    X, y = rows(3000, 0, n_classes=n_classes)
    new, truth = rows(3000, 1, n_classes=n_classes)

    def score(encoder):
        model = make_pipeline(encoder, LogisticRegression(C=100, max_iter=1000)).fit(X, y)
        return average_precision_score(truth == 1, model.predict_proba(new)[:, 1])

    assert score(NumberEncoder()) < 0.7
    assert score(PairRates(random_state=0)) > 0.85


def test_the_columns_that_differ_most_are_paired():
    rng = np.random.default_rng(0)
    X, _ = rows(4000, 0, n_columns=9)
    y = (rng.random(4000) < np.where(X["c7"] == "a", 0.6, 0.2)).astype(int)
    y |= (rng.random(4000) < np.where(X["c4"] == "b", 0.4, 0.0)).astype(int)
    encoder = PairRates(n_columns=2).fit(X, y)
    assert encoder.columns_.tolist() == [4, 7]
    assert [len(one) for one in encoder.rates_] == [6, 6, 36]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_without_categories_nothing_is_added(kind):
    X = kind(np.random.RandomState(0).rand(50, 3))
    y = np.arange(50) % 2
    encoder = PairRates()
    for made in (encoder.fit_transform(X, y), encoder.transform(X)):
        expected = NumberEncoder().fit(X).transform(X)
        if sparse.issparse(made):
            made, expected = made.toarray(), expected.toarray()
        np.testing.assert_array_equal(made, expected)
    assert encoder.rates_ == []


def columns(encoder, value):
    encoder.columns_ = np.array(value, dtype=np.int64)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda e: columns(e, [0, 1, 3]), "without categories"),
        (lambda e: columns(e, [0, 0, 1]), "twice"),
        (lambda e: e.rates_.pop(), "rates are missing"),
        (lambda e: e.rates_.__setitem__(2, e.rates_[2][:-1]), "rates has shape"),
        (
            lambda e: e.rates_.__setitem__(2, e.rates_[2].repeat(2, axis=1)),
            "of other classes",
        ),
        (lambda e: e.rates_[0].fill(np.nan), "out of range"),
        (lambda e: vars(e).update(categories_=None), "without categories|expects"),
    ],
)
def test_a_file_with_other_rates_is_refused(tmp_path, change, match):
    X, y = rows(300, 0)
    model = make_pipeline(PairRates(), LogisticRegression())
    pool = DAMVIVotingClassifier([("rates", model)], cv=2, random_state=0).fit(X, y)
    save(pool, tmp_path / "model.damvi")
    again = load(tmp_path / "model.damvi")
    np.testing.assert_array_equal(again.predict_proba(X), pool.predict_proba(X))
    change(pool.named_estimators_["rates"][0])
    save(pool, tmp_path / "other.damvi")
    with pytest.raises(ModelFileError, match=match):
        load(tmp_path / "other.damvi")
