"""The strong pool: complete, quiet, and at home with any table."""

import importlib.util
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import average_precision_score

from damvi import DAMVIVotingClassifier, load, save
from damvi.voters import PoolVoters, out_of_fold_votes, portfolio
from damvi.voters.columns import NumberEncoder, RankScaler, scaled_table
from damvi.voters.estimators import weight_name
from damvi.voters.portfolio import (
    BOOSTERS,
    can_load,
    strong_pool,
    strong_pool_for,
    voter_of_pool,
)

ALWAYS = {"spline_linear", "extra_trees", "balanced_forest"}
WITHOUT_LIGHTGBM = {"hist_boosting"}
SMALL = {"n_estimators": 8, "max_iter": 8, "iterations": 50}


def small_pool(**options):
    """The whole pool with a few trees and rounds each."""
    pool = strong_pool(random_state=0, extended=True, **options)
    for _, model in pool:
        steps = getattr(model, "steps", [("", model)])
        last = steps[-1][1]
        if type(last).__name__ != "LogisticRegression":
            known = set(last.get_params()) & set(SMALL)
            last.set_params(**{name: SMALL[name] for name in known})
    return pool


def installed():
    return {name for name, package in BOOSTERS.items() if importlib.util.find_spec(package)}


def only_loads(*packages):
    return lambda name: name in packages and can_load(name)


def names_of(**options):
    return [name for name, _ in strong_pool(**options)]


def test_it_holds_what_is_installed():
    boosters = {"lightgbm", "lightgbm_pairs"} & installed()
    assert set(names_of()) == ALWAYS | (boosters or WITHOUT_LIGHTGBM)
    assert set(names_of(extended=True)) >= ALWAYS | installed() | {"forest", "networks"}


@pytest.mark.parametrize("packages", [(), ("lightgbm",)])
@pytest.mark.parametrize("sparse", [False, True])
def test_more_time_adds_voters_at_the_end(monkeypatch, packages, sparse):
    monkeypatch.setattr(portfolio, "can_load", only_loads(*packages))
    few = strong_pool(0, sparse=sparse)
    more = strong_pool(0, sparse=sparse, extended=True)
    assert len(more) > len(few) >= 4
    assert [name for name, _ in more[: len(few)]] == [name for name, _ in few]
    assert [repr(one) for _, one in more[: len(few)]] == [repr(one) for _, one in few]


@pytest.mark.parametrize("packages", [(), ("lightgbm",), ("xgboost", "lightgbm")])
def test_missing_packages_are_left_out(monkeypatch, packages):
    monkeypatch.setattr(portfolio, "can_load", only_loads(*packages))
    present = {name for name in installed() if BOOSTERS[name] in packages}
    here = set(names_of(extended=True))
    assert here & set(BOOSTERS) == present
    assert here >= ALWAYS | (set() if "lightgbm" in present else WITHOUT_LIGHTGBM)


def test_a_package_that_does_not_load_counts_as_missing(monkeypatch):
    def load(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(portfolio, "import_module", load)
    here = set(names_of(extended=True))
    assert not here & set(BOOSTERS)
    assert here >= ALWAYS | WITHOUT_LIGHTGBM


@pytest.mark.parametrize("n_shops", [3, 300])
def test_one_voter_is_made_as_in_the_pool_and_loads_no_booster(monkeypatch, n_shops):
    shops = pd.Categorical([f"shop {i % n_shops}" for i in range(600)])
    X, y = pd.DataFrame({"shop": shops, "size": np.arange(600.0)}), np.arange(600) == 7
    pool = dict(strong_pool_for(X, y, 3, extended=True))
    monkeypatch.delattr(portfolio, "can_load")
    for name, model in pool.items():
        assert repr(voter_of_pool(name, X, y, 3)) == repr(model)


def test_names_differ_and_models_can_be_cloned_seeded_and_weighted():
    pool = strong_pool(random_state=3, extended=True)
    assert len({name for name, _ in pool}) == len(pool)
    for name, model in pool:
        clone(model)
        seeds = [v for k, v in model.get_params().items() if k.endswith("random_state")]
        assert seeds, name
        assert set(seeds) <= {3, None}
        assert weight_name(model) is not None


@pytest.fixture(scope="module")
def tables():
    """Amounts with holes, and a rare class that a few of them give away."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1200, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=1200) > 2).astype(np.int8)
    X[rng.rand(*X.shape) < 0.05] = np.nan
    X[:, 4] = np.nan  # a column of nothing
    return X[:600], y[:600], X[600:], y[600:]


def test_every_voter_beats_chance_with_missing_values(tables):
    X, y, Z, z = tables
    pool = small_pool()
    voters, votes, _ = PoolVoters.train(pool, X, y, seed=0, cv=3)
    assert votes.dtype == np.float32
    for (name, _), said in zip(pool, voters.votes(Z).T, strict=True):
        assert average_precision_score(z, said) > 2.5 * z.mean(), name


def test_threads_change_nothing(tables):
    X, y, Z, _ = tables
    one, votes, _ = PoolVoters.train(small_pool(), X, y, seed=0, cv=2)
    two, others, _ = PoolVoters.train(small_pool(), X, y, seed=0, cv=2, n_jobs=2)
    np.testing.assert_array_equal(votes, others)
    np.testing.assert_array_equal(one.votes(Z), two.votes(Z, n_jobs=2))


def test_weights_are_taken(tables):
    X, y, _, _ = tables
    weights = np.random.RandomState(0).rand(len(y))
    plain = out_of_fold_votes(small_pool(), X, y, seed=0, cv=2)
    _, votes, _ = PoolVoters.train(small_pool(), X, y, seed=0, cv=2, sample_weight=weights)
    assert (votes != plain).any(axis=0).all()


def frame_of(X, colours, kind):
    if kind == "pandas":
        frame = pd.DataFrame(X, columns=list("abcde"))
        return frame.assign(colour=pd.Categorical(colours))
    frame = pl.DataFrame(X, schema=list("abcde"))
    return frame.with_columns(pl.Series("colour", colours).cast(pl.Categorical))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_with_categories_are_taken(tables, kind):
    X, y, Z, z = tables
    rng = np.random.RandomState(0)

    def colours(y):
        warm, cold = (
            rng.choice(["red", "pink"], len(y)),
            rng.choice(["blue", "grey"], len(y)),
        )
        said = np.where(rng.rand(len(y)) < 0.9, np.where(y == 1, warm, cold), "green")
        return [None if i % 50 == 0 else str(colour) for i, colour in enumerate(said)]

    frame = frame_of(X, colours(y), kind)
    new = colours(z)
    new[1] = "a colour that nobody has seen"
    voters, _, _ = PoolVoters.train(small_pool(), frame, y, seed=0, cv=2)
    for name, said in zip(
        voters.names, voters.votes(frame_of(Z, new, kind)).T, strict=True
    ):
        assert average_precision_score(z, said) > 0.75, name


def test_sparse_tables_are_taken(tables):
    X, y, Z, _ = tables
    X, Z = (sparse.csr_array(np.nan_to_num(one).clip(0)) for one in (X, Z))
    pool = small_pool(sparse=True)
    assert not portfolio.DENSE_ONLY & set(dict(pool))
    assert {"linear", "balanced_linear"} <= set(dict(pool))
    voters, _, _ = PoolVoters.train(pool, X, y, seed=0, cv=2)
    assert voters.votes(Z).shape == (600, len(pool))


def test_two_positives_are_no_trouble(tables):
    X, y, _, _ = tables
    rare = np.zeros_like(y)
    rare[:2] = 1
    _, votes, _ = PoolVoters.train(small_pool(), X, rare, seed=0, cv=2)
    assert np.isfinite(votes).all()


def starts_from_rate(*given, **options):
    """Whether LightGBM does, which is its own default."""
    model = dict(strong_pool(0, *given, **options))["lightgbm"][-1]
    return model.get_params().get("boost_from_average", True)


@pytest.mark.skipif("lightgbm" not in installed(), reason="needs LightGBM")
def test_lightgbm_starts_from_even_odds_where_a_class_is_rare():
    y = np.repeat(["no", "yes"], [995, 5])
    assert starts_from_rate()
    assert not starts_from_rate(y)
    assert not starts_from_rate(y == "no")
    assert starts_from_rate(np.repeat([0, 1], [980, 20]))
    assert not starts_from_rate(np.repeat([0, 1, 2], [500, 495, 5]))
    assert starts_from_rate(y, sample_weight=np.where(y == "yes", 9, 1))
    assert starts_from_rate(y, sample_weight=np.where(y == "yes", 0, 1))


def rare_cluster(n, seed):
    """Ten thousand rows and more, 16 of which are positive and lie together."""
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 5)), np.arange(n) < 16
    X[:16] = rng.normal(size=(16, 5)) * 0.7 + 2.2
    return X, y.astype(np.int8)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(installed() - {"catboost"}))
def test_boosters_bear_rare_positives(name):
    found = []
    for seed in (0, 2):
        X, y = rare_cluster(10_000, seed)
        Z, z = rare_cluster(20_000, seed + 100)
        model = dict(strong_pool(0, y, extended=True))[name].fit(X, y)
        found.append(average_precision_score(z, model.predict_proba(Z)[:, 1]))
    assert np.mean(found) > 0.8  # LightGBM had 0.44


@pytest.mark.skipif("lightgbm" not in installed(), reason="needs LightGBM")
def test_the_start_is_that_of_all_rows_and_kept_in_a_file(monkeypatch, tmp_path):
    def two(*given, **options):
        pool = strong_pool_for(*given, **options | {"extended": True})
        kept = [(name, model) for name, model in pool if name in ("lightgbm", "xgboost")]
        for _, model in kept:
            model[-1].set_params(n_estimators=5)
        return kept

    monkeypatch.setattr("damvi.voting.strong_pool_for", two)
    X, y = rare_cluster(1600, 0)  # 1 %, of which no fold has more; and then less
    for rows, start in ((np.arange(1600), None), (np.arange(1, 1600), False)):
        model = DAMVIVotingClassifier(random_state=0).fit(X[rows], y[rows])
        save(model, tmp_path / "model.damvi")
        again = load(tmp_path / "model.damvi")
        for one in (model, again):
            told = one.named_estimators_["lightgbm"][-1].get_params()
            assert told.get("boost_from_average") is start
        np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_nobody_writes_or_warns(tables, capfd, tmp_path, monkeypatch):
    X, y, _, _ = tables
    monkeypatch.chdir(tmp_path)
    dict(small_pool())["forest"].fit(X, y)  # compiles the kernels, and says so
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PoolVoters.train(small_pool(), X, y, seed=0, cv=2)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_numbers_of_categories_are_those_of_the_fit():
    frame = pd.DataFrame(
        {"colour": pd.Categorical(["red", "blue", None]), "size": [1, 2, 3]}
    )
    encoder = NumberEncoder().fit(frame)
    new = pd.DataFrame({"colour": pd.Categorical(["red", "new", None]), "size": [4, 5, 6]})
    expected = [[1, 4], [-1, 5], [np.nan, 6]]
    np.testing.assert_array_equal(encoder.transform(new), expected)
    X = np.ones((2, 2))
    assert NumberEncoder().fit(X).transform(X) is X


def test_text_becomes_the_number_of_its_category():
    frame = pd.DataFrame({"words": ["some", "text", None]})
    encoder = NumberEncoder().fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame).ravel(), [0, 1, np.nan])
    new = pd.DataFrame({"words": pd.Categorical(["text", "other"])})
    np.testing.assert_array_equal(encoder.transform(new).ravel(), [1, -1])


def test_rare_categories_share_a_place():
    labels = np.repeat(np.arange(300).astype(str), 2)
    frame = pd.DataFrame({"code": pd.Categorical(labels), "size": np.arange(600.0)})
    assert scaled_table().fit_transform(frame).shape == (600, 101)


def test_ranks_are_normal_scores_whatever_the_scale():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(5000, 1))
    np.testing.assert_allclose(RankScaler().fit_transform(X), X.clip(-2.3, 2.3), atol=0.25)
    wild = np.sinh(5 * X)
    assert abs(RankScaler().fit_transform(wild)).max() < 2.4
    ties = np.where(X < 1, 0.0, X)
    scores = RankScaler().fit(ties).transform([[0.0], [np.nan], [-9.0], [9.0]]).ravel()
    np.testing.assert_allclose(scores, [-0.2, 0, -0.2, 2.33], atol=0.05)
    assert (RankScaler().fit_transform(np.full((4, 2), np.nan)) == 0).all()
