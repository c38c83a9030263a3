"""The methods, their data and their splits: as the paper had them."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from benchmarks.paper.data import imitate_pct
from benchmarks.paper.methods import METHODS, RealAdaBoostClassifier, make_method
from benchmarks.paper.protocol import Protocol, rows_at_ratio

Y = (np.arange(1000) % 25 == 0).astype(np.int8)  # 4 %
RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not part of the package")
@pytest.mark.parametrize("folder", ["paper", "paper/ratios", "groups", "ablation"])
def test_the_methods_are_those_of_the_stored_cells(folder):
    for line in (RESULTS / folder / "cells.jsonl").read_text("utf-8").splitlines():
        told = json.loads(line)["settings"]
        if told["split"] == 0 and told["method"] != "XGBoost":  # its words change
            model = make_method(told["method"], trees=told["trees"], random_state=0)
            words = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
            assert words == told["estimator"]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_and_ranks(name):
    X, y = make_classification(300, 5, weights=[0.85], flip_y=0.05, random_state=2)
    model = make_method(name, trees="cart")
    if name.startswith("EE"):
        model.set_params(easyensembleclassifier__n_estimators=3)
    assert model.fit(X, y).predict_proba(X).shape == (300, 2)
    if "-BG" in name or name in ("DAMVI", "uniform"):
        assert isinstance(model.estimator, DecisionTreeClassifier)


def test_an_unknown_name_is_told_the_near_one():
    with pytest.raises(ValueError, match=r"'BRG'\. Did you mean BRF\? There are: S-DT, R"):
        make_method("BRG")


def test_two_rounds_of_real_adaboost_by_hand():
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
    certain = RealAdaBoostClassifier().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    assert np.isfinite(certain.predict_proba([[0.0]])).all()


@pytest.mark.parametrize("kind", ["random", "stratified", "groups"])
def test_splits_share_out_all_rows_and_repeat(kind):
    protocol, groups = Protocol(splits=kind, seed=3), np.arange(1000) // 10
    train, test = protocol.split(Y, groups, 1, None)
    assert sorted([*train, *test]) == list(range(1000))
    # Split 1 from seed 3 is split 0 from seed 4: seeds are fixed per split.
    other = Protocol(splits=kind, seed=4).split(Y, groups, 0, None)
    assert (train == other[0]).all()
    if kind == "random":
        expected, _ = train_test_split(np.arange(1000), test_size=0.3, random_state=4)
        assert (train == expected).all()
    elif kind == "stratified":
        assert Y[test].sum() == 12
    else:
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize("ratio", [0.005, 0.02, 0.04, 0.1, 0.3])
def test_thinning_takes_rows_of_one_class_only(ratio):
    rows = rows_at_ratio(Y, ratio, seed=0)
    assert Y[rows].mean() == pytest.approx(ratio, abs=0.001)
    assert len(set(rows)) == len(rows)
    assert any([Y[rows].sum() == 40, (1 - Y[rows]).sum() == 960])
    assert (rows == rows_at_ratio(Y, ratio, seed=0)).all()


def test_the_imitation_has_episodes_and_repeats():
    small = imitate_pct(n=50_000)
    assert small.data.shape == (50_000, 17)
    assert small.target.sum() == 10
    assert (small.data == imitate_pct(n=50_000).data).all()
    episodes = np.unique(small.groups[small.target == 1])
    assert not set(episodes) & set(small.groups[small.target == 0])
    with pytest.raises(ValueError, match="too few rows"):
        imitate_pct(n=50)
