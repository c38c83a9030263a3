"""Columns of very many categories as rates of the classes, learned from a voter's rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline

from damvi import DAMVIVotingClassifier, load, save
from damvi.io import to_onnx
from damvi.voters import FastForestClassifier, RateEncoder, strong_pool
from damvi.voters.columns import many_categories

N_SHOPS = 300


def rows(n, seed, n_classes=2):
    """A third of the shops has a class of its own, mostly."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, N_SHOPS, n)
    y = np.where(rng.random(n) < 0.8, np.minimum(shop % 3, n_classes - 1), 0)
    texts = np.array([f"shop {number}" for number in range(N_SHOPS)])[shop]
    return pd.DataFrame({"shop": texts, "size": rng.normal(size=n)}), y


def coins(n, seed):
    X, _ = rows(n, seed)
    return X, (np.random.default_rng(seed + 1).random(n) < 0.1).astype(int)


def test_only_columns_of_very_many_categories_are_replaced():
    X, y = rows(2000, 0)
    X["colour"] = np.where(X["size"] > 0, "red", "blue")
    assert many_categories(X) == ["shop"]
    encoder = RateEncoder(random_state=0)
    made = encoder.fit_transform(X, y)
    assert list(made) == ["size", "colour", "shop (rate)"]
    few = X.drop(columns="shop")
    assert clone(encoder).fit(few, y).transform(few) is few
    assert clone(encoder).fit(X.to_numpy()[:, [1]], y).rates_ == {}


def test_a_rate_is_near_that_of_its_rows_and_unknown_ones_have_the_mean():
    X, y = rows(20_000, 0)
    encoder = RateEncoder().fit(X, y)
    new = pd.DataFrame({"shop": ["shop 1", "shop 3", "elsewhere", None], "size": 0.0})
    found = encoder.transform(new)["shop (rate)"].to_numpy()
    assert found[0] == pytest.approx(y[X["shop"] == "shop 1"].mean(), abs=0.02)
    assert found[1] < 0.05
    np.testing.assert_allclose(found[2:], y.mean())


def test_the_rows_that_a_rate_is_learned_from_do_not_see_it():
    """Coin flips: shops of five rows each would tell their labels, and do not."""
    X, y = coins(1500, 0)
    made = RateEncoder(random_state=0).fit_transform(X, y)["shop (rate)"]
    assert np.corrcoef(made, y)[0, 1] < 0.05
    fresh, _ = coins(1500, 5)
    spread = RateEncoder().fit(X, y).transform(fresh)["shop (rate)"].std()
    assert spread < 0.03  # and of what is chance nothing is left


def test_text_categories_and_polars_give_the_same_rates():
    X, y = rows(2000, 0)
    expected = RateEncoder(random_state=0).fit_transform(X, y)["shop (rate)"].to_numpy()
    tables = [X.astype({"shop": "category"}), X.astype({"shop": object}), pl.from_pandas(X)]
    for table in tables:
        made = RateEncoder(random_state=0).fit_transform(table, y)
        np.testing.assert_array_equal(made["shop (rate)"].to_numpy(), expected)


def test_more_classes_have_a_rate_each():
    X, y = rows(3000, 0, n_classes=3)
    made = RateEncoder().fit(X, y).transform(X)
    rates = made[["shop (rate 1)", "shop (rate 2)"]].to_numpy()
    likely = np.where(rates.max(axis=1) > 0.4, 1 + rates.argmax(axis=1), 0)
    assert (likely == y).mean() > 0.7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pool_learns_from_them_and_its_file_names_nobody(n_classes, tmp_path):
    X, y = rows(1500, 0, n_classes)
    pool = [
        (name, make_pipeline(RateEncoder(), model))
        for name, model in [
            ("forest", FastForestClassifier(5, random_state=0)),
            ("linear", LogisticRegression()),
        ]
    ]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    fresh, truth = rows(1500, 1, n_classes)
    fresh.loc[0, "shop"] = "never seen"
    vote = model.vote(fresh)
    wanted = model.pos_label_ if n_classes == 2 else 1
    score = vote if n_classes == 2 else vote[:, 1]
    assert average_precision_score(truth == wanted, score) > 0.6
    save(model, tmp_path / "model.damvi")
    content = (tmp_path / "model.damvi").read_bytes()
    assert b"shop 1" not in content
    again = load(tmp_path / "model.damvi")
    np.testing.assert_array_equal(again.vote(fresh), vote)
    with pytest.raises(ValueError, match="column 'shop' has so many categories"):
        to_onnx(again)


def test_the_strong_pool_has_a_step_for_them_if_asked():
    plain, with_rates = strong_pool(0), strong_pool(0, rates=True)
    assert [name for name, _ in plain] == [name for name, _ in with_rates]
    assert all(isinstance(model[0], RateEncoder) for _, model in with_rates)
    assert not any(
        isinstance(step, RateEncoder)
        for _, model in plain
        for _, step in getattr(model, "steps", [])
    )
