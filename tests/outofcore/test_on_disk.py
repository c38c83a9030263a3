"""A fit on a parquet dataset is the fit in memory, bit by bit."""

import itertools
import pickle
import warnings
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from damvi import (
    DAMVIClassifier,
    FastTreeClassifier,
    ParquetTable,
    VoteStream,
    load,
    save,
)
from damvi.certificate import certify
from damvi.outofcore import blocks, parquet


def frame_of(n=1500, n_classes=2, seed=0, text=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["few"] = rng.integers(0, 6, n)
    frame["flag"] = rng.random(n) < 0.3
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    score = frame["a"] + frame["few"] / 3 + rng.normal(size=n) / 2
    if text:
        frame["shop"] = rng.choice(["x", "north", "älter"], n)
        frame.loc[rng.random(n) < 0.05, "shop"] = None
        score += frame["shop"].eq("x")
    cuts = np.quantile(score, [0.9, 0.97][: n_classes - 1])
    names = np.array(["common", "rare", "rarest"])
    frame["label"] = names[np.searchsorted(cuts, score)]
    frame["weight"] = rng.integers(0, 4, n) / 4
    return frame


def write(folder, frame, sizes=(700, 1, 799), group=300):
    start = 0
    for number, size in enumerate(sizes):
        part = frame.iloc[start : start + size]
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=group)
        start += size
    assert start == len(frame)
    return folder


def same(one, other, X):
    assert np.array_equal(one.weights_, other.weights_)
    assert np.array_equal(one.threshold_, other.threshold_)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.c_bound_ == other.c_bound_
    assert np.array_equal(one.oob_decision_function_, other.oob_decision_function_)
    assert np.array_equal(one.row_hashes_, other.row_hashes_)
    assert one.pos_label_ == other.pos_label_
    assert list(one.feature_names_in_) == list(other.feature_names_in_)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 128)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 200)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"votes": "oob", "n_jobs": 2},
        {"stratified": True, "weight": "weight", "max_samples": 400},
    ],
)
def test_the_same_as_in_memory(tmp_path, n_classes, text, settings):
    frame = frame_of(n_classes=n_classes, text=text)
    write(tmp_path, frame)
    settings = dict(settings)
    weight = settings.pop("weight", None)
    tuned = "f1" if n_classes == 2 else "macro_f1"
    model = DAMVIClassifier(
        n_estimators=12, bootstrap="poisson", random_state=3, threshold=tuned, **settings
    )
    X = frame.drop(columns=["label"] + (["weight"] if weight else []))
    if text:
        X["shop"] = X["shop"].astype("category")
    ours = DAMVIClassifier(**model.get_params()).set_params(bootstrap=True)
    ours.fit(str(tmp_path), "label", sample_weight=weight)
    model.fit(X, frame["label"], sample_weight=None if weight is None else frame[weight])
    same(ours, model, X)
    save(ours, tmp_path / "model.damvi")
    for again in (pickle.loads(pickle.dumps(ours)), load(tmp_path / "model.damvi")):
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.tuning_.as_dict() == model.tuning_.as_dict()
        with pytest.raises(AttributeError, match="beyond memory"):
            again.oob_decision_function_  # noqa: B018


def test_columns_numbers_as_categories_and_a_pattern(tmp_path):
    frame = frame_of()
    write(tmp_path, frame)
    tree = FastTreeClassifier(categorical_features=["few"], max_features="sqrt")
    model = DAMVIClassifier(tree, n_estimators=8, bootstrap="poisson", random_state=0)
    X = frame[["d", "few", "a"]]
    found = ParquetTable(tmp_path / "part-*.parquet", columns=["d", "few", "a"])
    ours = DAMVIClassifier(**model.get_params(deep=False)).fit(found, "label")
    same(ours, model.fit(X, frame["label"]), X)


@pytest.mark.slow
def test_bins_are_those_of_the_columns_that_are_categories(tmp_path):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 9, (60, 1200))).rename(columns="c{}".format)
    wide.assign(y=wide["c0"] > 4).to_parquet(tmp_path / "t.parquet")
    stored = ParquetTable(tmp_path / "t.parquet", cache=tmp_path / "bins")
    for place in (600, 601):  # numpy does not print those in the middle
        mask = np.arange(1200) == place
        tree = FastTreeClassifier(categorical_features=mask)
        model = DAMVIClassifier(tree, n_estimators=1, max_samples=1.0, random_state=0).fit(
            stored, "y"
        )
        assert np.array_equal(model.voters_.features.binning.categorical, mask)
        del model


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_table_in_any_parts(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    n = int(rng.choice([2 * n_classes, 50, 600]))
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(int(rng.integers(0, 4)))).rename(
        columns=str
    )
    y = rng.permutation(np.append(np.arange(n_classes), rng.integers(0, 2, n - n_classes)))
    weight = [None, 10.0 ** rng.uniform(-8, 0, n), rng.integers(1, 99, n)][rng.integers(3)]
    choices = {
        "max_samples": [0.2, 1.0, 5, 3 * n][rng.integers(4)],
        "stratified": bool(rng.integers(2)),
        "votes": ["train", "oob"][rng.integers(2)],
        "random_state": int(rng.integers(2**31)),
        "n_estimators": 4,
    }
    frame = X.assign(y=y) if weight is None else X.assign(y=y, w=weight)
    cuts = [0, *np.sort(rng.integers(0, n + 1, 3)).tolist(), n]
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # of samples without a class
        for start, stop in itertools.pairwise(cuts):
            path = f"{folder}/{start:04d}-{stop:04d}.parquet"
            frame[start:stop].to_parquet(path, row_group_size=int(rng.choice([7, 300])))
        ours = DAMVIClassifier(**choices).fit(folder, "y", None if weight is None else "w")
        model = DAMVIClassifier(**choices, bootstrap="poisson").fit(X, y, weight)
        assert np.array_equal(ours.weights_, model.weights_)
        assert np.array_equal(ours.decision_function(X), model.decision_function(X))
        votes = ours.oob_decision_function_, model.oob_decision_function_
        assert np.array_equal(*votes, equal_nan=True)


@pytest.mark.slow
def test_reweigh_and_choose_without_reading_again(tmp_path):
    frame = frame_of()
    write(tmp_path, frame)
    X = frame.drop(columns="label")
    ours = DAMVIClassifier(n_estimators=10, random_state=0).fit(str(tmp_path), "label")
    model = DAMVIClassifier(n_estimators=10, random_state=0, bootstrap="poisson")
    model.fit(X, frame["label"])
    for one in (ours, model):
        one.reweigh(shrinkage=0.1, threshold={"recall": 0.8})
    same(ours, model, X)
    choices = [one.choose("average_precision") for one in (ours, model)]
    assert choices[0] == choices[1]
    with pytest.raises(ValueError, match="prune needs all votes"):
        ours.prune(3)


@pytest.mark.parametrize(
    "settings", [{}, {"votes": "oob"}, {"weight": "weight"}, {"n_classes": 3}]
)
def test_a_stream_starts_from_out_of_bag_votes(tmp_path, settings):
    settings = dict(settings)
    frame = frame_of(n_classes=settings.pop("n_classes", 2))
    write(tmp_path, frame)
    weight = settings.pop("weight", None)
    rows = frame.drop(columns=["label"] if weight is None else ["label", weight])
    base = None if weight is None else frame[weight]
    model = DAMVIClassifier(n_estimators=8, random_state=0, bootstrap="poisson", **settings)
    whole = VoteStream(clone(model).fit(rows, frame["label"], base))
    stream = VoteStream(model.fit(tmp_path, "label", weight))
    assert np.allclose(stream.weights_, whole.weights_, rtol=0, atol=1e-12)
    drifts = [one.partial_fit(rows[:200], frame["label"][:200]) for one in (stream, whole)]
    assert drifts[0].as_dict() == pytest.approx(drifts[1].as_dict(), rel=1e-9)
    assert np.allclose(stream.moments_.M, whole.moments_.M, rtol=1e-12)


def test_a_certificate_knows_a_thinned_table_again(tmp_path, monkeypatch):
    monkeypatch.setattr("damvi.hashing.HASHES_TO_KEEP", 100)
    frame, fresh = frame_of(), frame_of(seed=5)
    write(tmp_path, frame)
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(str(tmp_path), "label")
    assert 50 < len(model.row_hashes_) < 300
    save(model, tmp_path / "model.damvi")
    for one in (model, load(tmp_path / "model.damvi")):
        certify(one, fresh.drop(columns="label"), fresh["label"])
        with pytest.raises(ValueError, match="they include training rows"):
            certify(one, frame.drop(columns="label"), frame["label"])
