"""A pool of different models on a parquet dataset: a sample trains, and all rows vote."""

import warnings

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIVotingClassifier, ParquetTable, load, save
from damvi.folds import deal_folds_by_rank
from damvi.outofcore import parquet, pool
from damvi.validation import new_seed
from damvi.voters.columns import NumberEncoder, scaled_table
from damvi.voters.trees.estimators import FastForestClassifier

from ..voters.models import Recorder
from .test_on_disk import frame_of, same, write


def bayes():
    return make_pipeline(NumberEncoder(), SimpleImputer(), GaussianNB())


def tiny_pool():
    return [
        ("linear", make_pipeline(scaled_table(), LogisticRegression())),
        ("bayes", bayes()),
        ("forest", FastForestClassifier(10)),
    ]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 256)
    monkeypatch.setattr(pool, "BLOCK_ROWS", 400)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "text", "weight"), [(2, True, None), (3, False, "weight")]
)
def test_any_files_row_groups_and_jobs_give_one_model(tmp_path, n_classes, text, weight):
    frame = frame_of(n_classes=n_classes, text=text)
    features = [name for name in frame.columns if name not in ("label", "weight")]
    cuts = [((1500,), 1500, 1), ((700, 1, 799), 300, 2), ((90, 1410), 171, 2)]
    models = []
    for number, (sizes, group, n_jobs) in enumerate(cuts):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = ParquetTable(
            write(folder, frame, sizes, group), columns=features, sample_rows=400
        )
        model = DAMVIVotingClassifier(tiny_pool(), random_state=1, n_jobs=n_jobs)
        models.append(model.fit(table, "label", weight))
    X = frame[features]
    if text:
        X = X.astype({"shop": "category"})
    for model in models[1:]:
        same(model, models[0], X)
        assert np.array_equal(model.votes_.votes, models[0].votes_.votes)
    first = models[0]
    assert first.n_features_in_ == len(features)
    assert list(first.seconds_) == ["linear", "bayes", "forest"]
    save(first, tmp_path / "pool.damvi")
    assert np.array_equal(load(tmp_path / "pool.damvi").predict(X), first.predict(X))
    before = first.threshold_
    first.reweigh(solver="uniform", threshold="vote")
    assert not np.array_equal(first.threshold_, before)
    assert len(first.prune(2).weights_) == 2


def test_a_sample_of_all_rows_is_the_fit_in_memory(tmp_path):
    frame = frame_of()
    X = frame.drop(columns=["label", "weight"])
    frame = frame.drop(columns="weight")
    table = ParquetTable(write(tmp_path, frame), sample_rows=10**6)
    there = DAMVIVotingClassifier(tiny_pool(), random_state=5).fit(table, "label")
    targets = (frame["label"] == "rare").to_numpy().astype(np.uint8)
    folds = deal_folds_by_rank(targets, new_seed(5))
    cv = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    here = DAMVIVotingClassifier(tiny_pool(), random_state=5, cv=cv)
    here.fit(X.astype(float), frame["label"])
    assert np.allclose(there.weights_, here.weights_, atol=1e-6)
    assert np.allclose(there.votes_.votes, here.votes_.votes, atol=1e-6)
    assert np.array_equal(there.row_hashes_, here.row_hashes_)
    assert there.tuning_.threshold == pytest.approx(here.tuning_.threshold, abs=1e-6)


def test_all_rare_rows_train_and_frequent_ones_stand_for_others(tmp_path):
    frame = frame_of(4000).drop(columns="weight")
    write(tmp_path, frame, (4000,), 500)
    Recorder.fits.clear()
    voters = [("one", Recorder()), ("bayes", bayes())]
    table = ParquetTable(tmp_path, sample_rows=1000)
    DAMVIVotingClassifier(voters, random_state=0).fit(table, "label")
    whole, *of_folds = sorted(Recorder.fits, key=lambda fit: -len(fit.y_))
    assert len(of_folds) == 5
    n_rare = int((frame["label"] == "rare").sum())
    assert (whole.y_ == 1).sum() == n_rare
    assert len(whole.y_) == pytest.approx(1000, rel=0.1)
    assert set(whole.weights_[whole.y_ == 1]) == {1.0}
    assert whole.weights_.sum() == pytest.approx(4000, rel=0.1)
    # Each row of the sample trains for all folds but its own.
    assert sum(len(fit.y_) for fit in of_folds) == 4 * len(whole.y_)


def test_no_row_is_judged_by_a_model_that_knows_it(tmp_path):
    frame = frame_of(3000).drop(columns="weight")
    frame["label"] = np.random.default_rng(1).permutation(frame["label"])
    table = ParquetTable(write(tmp_path, frame, (3000,), 500))
    voters = [
        ("by heart", make_pipeline(NumberEncoder(), DecisionTreeClassifier())),
        ("forest", FastForestClassifier(10)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no voter beats a coin
        model = DAMVIVotingClassifier(voters, random_state=0).fit(table, "label")
    score = roc_auc_score(frame["label"] == "rare", model.oob_decision_function_)
    assert abs(score - 0.5) < 0.07
    for vote in model.votes_.votes.T:
        assert abs(roc_auc_score(frame["label"] == "rare", vote) - 0.5) < 0.07


def test_hard_votes_and_three_folds(tmp_path):
    frame = frame_of(n_classes=3).drop(columns="weight")
    table = ParquetTable(write(tmp_path, frame), sample_rows=600)
    model = DAMVIVotingClassifier(tiny_pool(), voting="hard", cv=3, random_state=0)
    model.fit(table, "label")
    assert model.votes_.votes.dtype == np.uint8
    assert model.votes_.n_folds == 3
    assert set(model.predict(frame.drop(columns="label"))) <= {"common", "rare", "rarest"}


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        ({"cv": KFold(3)}, {}, "needs all rows in memory"),
        ({"cv": "prefit"}, {}, "needs all rows in memory"),
        ({"cv": 1}, {}, "between 2 and 100 folds"),
        ({}, {"groups": [1]}, "groups cannot be used"),
        ({}, {"X_unlabeled": np.zeros((2, 6))}, "X_unlabeled cannot be used"),
        ({}, {"y": [1, 2]}, "y must be the name of a column"),
        ({"threshold": {"recall": 2}}, {}, "recall"),
        ({"estimators": []}, {}, "the pool is empty"),
        (
            {"estimators": [("near", KNeighborsClassifier())]},
            {},
            "voter 'near' .* does not accept sample_weight, but on an out-of-core table",
        ),
        ({"estimators": [("bayes", GaussianNB())]}, {}, "voter 'bayes' failed on"),
    ],
)
def test_what_is_refused(tmp_path, settings, given, words):
    frame = frame_of().drop(columns="weight")
    table = ParquetTable(write(tmp_path, frame), sample_rows=300)
    model = DAMVIVotingClassifier(**{"estimators": tiny_pool(), **settings})
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(table, **{"y": "label", **given})
