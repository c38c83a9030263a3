"""A fit on a cluster is the fit in memory, bit by bit, however the rows are cut."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster

from damvi import DAMVIClassifier, FastTreeClassifier, VoteStream
from damvi.distributed import fit

from .conftest import frame_of, same

pytestmark = pytest.mark.slow

SETTINGS = {
    "as in the paper": {},
    "oob, tuned": {"votes": "oob", "threshold": "tuned"},
    "weighted, stratified": {"weight": True, "stratified": True, "max_samples": 300},
    "all at once": {"weight": True, "votes": "oob", "stratified": True, "reweight": 0.5},
}


def model_of(n_classes, settings):
    settings = {name: value for name, value in settings.items() if name != "weight"}
    if settings.get("threshold") == "tuned":
        settings["threshold"] = "f1" if n_classes == 2 else "macro_f1"
    return DAMVIClassifier(n_estimators=9, bootstrap="poisson", random_state=3, **settings)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_frames_in_any_partitions(client, n_classes, settings):
    frame = frame_of(n_classes=n_classes)
    weight = "weight" if "weight" in settings else None
    X = frame.drop(columns=["label"] + ([weight] if weight else []))
    here = model_of(n_classes, settings).fit(
        X, frame["label"], sample_weight=None if weight is None else frame[weight]
    )
    for n_parts in (1, 3, 7):
        table = dd.from_pandas(frame, npartitions=n_parts)
        there = model_of(n_classes, settings)
        assert fit(there, table, "label", weight, client=client) is there
        same(there, here, X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_arrays_in_any_chunks(client, n_classes):
    frame = frame_of(n_classes=n_classes)
    X = frame[["a", "b", "c", "few"]].to_numpy()
    y = frame["label"].map({"common": 5, "rare": 2, "rarest": 9}).to_numpy()
    weight = frame["weight"].to_numpy()
    tree = FastTreeClassifier(categorical_features=[3], max_features="sqrt")
    model = model_of(n_classes, {"estimator": tree, "threshold": "tuned"})
    here = model_of(n_classes, {"estimator": tree, "threshold": "tuned"})
    here.fit(X, y, sample_weight=weight)
    for rows in (900, (1, 0, 450, 449), 130):
        table = da.from_array(X, chunks=(rows, 3))
        labels, weights = (da.from_array(one, chunks=200) for one in (y, weight))
        fit(model, table, labels, weights, client=client)
        same(model, here, X)


def test_one_worker_that_must_spill():
    frame = frame_of(n_classes=3)
    X = frame.drop(columns="label")
    settings = {"votes": "oob", "threshold": "tuned"}
    here = model_of(3, settings).fit(X, frame["label"])
    # Of what it keeps, next to nothing stays in memory; its own size does not matter.
    spilling = {"target": 1e-6, "spill": False, "pause": False}
    with (
        dask.config.set({f"distributed.worker.memory.{k}": v for k, v in spilling.items()}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit="1GB"
        ) as cluster,
        Client(cluster) as client,
    ):
        there = fit(model_of(3, settings), dd.from_pandas(frame, npartitions=7), "label")
        same(there, here, X)
        (spilled,) = client.run(lambda dask_worker: len(dask_worker.data.slow)).values()
        assert spilled > 0


def test_unknown_sizes_empty_partitions_and_an_odd_index(client):
    frame = frame_of()
    frame.index = np.random.default_rng(0).permutation(len(frame)) * 3
    kept = frame[frame["a"] > -0.5]
    table = dd.from_pandas(frame, npartitions=5, sort=False)
    nothing = table[table["a"] > 100]
    table = dd.concat([nothing, table[table["a"] > -0.5], nothing])
    X = kept.drop(columns="label")
    here = model_of(2, {}).fit(X, kept["label"])
    there = model_of(2, {})
    fit(there, table.drop(columns="label"), table["label"], client=client)
    same(there, here, X)
    columns = ["a", "b", "c"]
    here.fit(kept[columns].to_numpy(), kept["label"].to_numpy())
    fit(there, table[columns].to_dask_array(), table["label"], client=client)
    same(there, here, X[columns].to_numpy())


def test_more_rows_than_a_piece_and_hashes_thinned(client, monkeypatch):
    frame = frame_of()
    X, here, there = frame.drop(columns="label"), model_of(2, {}), model_of(2, {})
    here.fit(X, frame["label"])
    monkeypatch.setattr("damvi.hashing.HASHES_TO_KEEP", 100)
    client.run(cut_small, 64, 100)
    fit(there, dd.from_pandas(frame, npartitions=2), "label", client=client)
    client.run(cut_small, 2**16, 2**20)
    assert there.row_hash_step_ == 16
    assert 0 < len(there.row_hashes_) < 150
    assert set(there.row_hashes_.tolist()) <= set(here.row_hashes_.tolist())
    there.row_hashes_ = here.row_hashes_
    same(there, here, X)


def cut_small(rows, cells):
    from damvi.distributed import work

    work.PIECE_ROWS, work.SKETCH_CELLS = rows, cells


def test_it_is_an_ordinary_model_afterwards(client):
    frame = frame_of()
    X = frame.drop(columns="label")
    here = model_of(2, {"threshold": "tuned"}).fit(X, frame["label"])
    there = model_of(2, {"threshold": "tuned"})
    fit(there, dd.from_pandas(frame, npartitions=3), "label", client=client)
    again = pickle.loads(pickle.dumps(there))
    assert np.array_equal(again.predict(X), here.predict(X))
    assert again.tuning_ == here.tuning_
    choices = []
    for model in (there, here):  # without reading the rows again
        model.reweigh(shrinkage=0.1, threshold={"recall": 0.8})
        choices.append(model.choose("average_precision", shrinkage=[0, 0.1]))
    same(there, here, X)
    assert choices[0] == choices[1]
    with pytest.raises(ValueError, match="prune needs all votes"):
        there.prune(3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_starts_from_the_votes_on_the_workers(client, n_classes):
    frame = frame_of(n_classes=n_classes)
    here = model_of(n_classes, {}).fit(frame.drop(columns="label"), frame["label"])
    there = model_of(n_classes, {})
    fit(there, dd.from_pandas(frame, npartitions=3), "label", client=client)
    streams = [VoteStream(model, min_rows=5) for model in (there, here)]
    np.testing.assert_allclose(*(one.moments_.M for one in streams), rtol=1e-12)
    np.testing.assert_allclose(*(one.rows_ for one in streams))
    np.testing.assert_allclose(*(one.weights_ for one in streams), atol=1e-9)
