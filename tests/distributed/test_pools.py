"""A pool of different models on a cluster is that of the same rows on disk, bit by bit."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from damvi import DAMVIVotingClassifier, ParquetTable
from damvi.distributed import fit, predict

from ..outofcore.test_pool import tiny_pool
from .conftest import frame_of, same

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_partitions_and_files_give_one_model(client, tmp_path, n_classes):
    frame = frame_of(1200, n_classes=n_classes)
    frame["shop"] = frame["shop"].cat.set_categories(["north", "x", "älter"])
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=250)
    X = frame.drop(columns=["label", "weight"])
    settings = {"random_state": 2, "n_jobs": 2}
    here = DAMVIVotingClassifier(tiny_pool(), **settings)
    here.fit(ParquetTable(tmp_path, sample_rows=500), "label", "weight")
    for n_parts in (1, 5):
        table = dd.from_pandas(frame, npartitions=n_parts)
        there = DAMVIVotingClassifier(tiny_pool(), **settings)
        assert fit(there, table, "label", "weight", client, sample_rows=500) is there
        same(there, here, X)
        assert np.array_equal(there.votes_.votes, here.votes_.votes)
        decided = predict(there, table[list(X.columns)]).compute()
        assert np.array_equal(decided, here.predict(X))


def test_arrays_and_refusals(client, tmp_path):
    frame = frame_of()
    X, y = frame[["a", "c", "few"]].to_numpy(), (frame["label"] == "rare").to_numpy()
    models = []
    for rows in (900, (1, 0, 450, 449)):
        table, labels = da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=300)
        model = DAMVIVotingClassifier(tiny_pool(), random_state=0)
        models.append(fit(model, table, labels, client=client, sample_rows=300))
    same(*models, X)
    assert not hasattr(models[0], "feature_names_in_")
    model = DAMVIVotingClassifier([("near", KNeighborsClassifier())])
    with pytest.raises(ValueError, match="does not accept sample_weight"):
        fit(model, table, labels, client=client, sample_rows=300)
    with pytest.raises(ValueError, match="the pool is empty"):
        fit(DAMVIVotingClassifier([]), table, labels, client=client)
