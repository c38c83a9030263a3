"""A dataset fitted by the workers of a Dask cluster, which read it themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..classifier import DAMVIClassifier
from ..hashing import Hashes, kept, row_hashes
from .encoded import EncodedGroup, EncodedTable

if TYPE_CHECKING:
    import pandas as pd


def fit_on_cluster(
    classifier: DAMVIClassifier, table: EncodedTable, client: Any
) -> tuple[NDArray[np.intp], Hashes]:
    """Fit, and return the rows to be remembered with their hashes.

    A partition is a row group, so that rows have the numbers that they have on disk.
    """
    import dask.dataframe as dd

    from ..distributed import fit

    encoder, groups = table.encoder, _groups(table)
    label = encoder.as_labels(np.empty(0, np.int64))
    meta = encoder.example.assign(**{encoder.label: label})
    frame = dd.from_map(read_group, groups, meta=meta, label="damvi-read")
    fit(classifier, frame, encoder.label, client=client)
    look = partial(rows_to_keep, step=classifier.row_hash_step_)
    found = client.gather(client.map(look, groups, pure=False))
    starts = np.cumsum([0, *(group.n_rows for group in groups)])
    places = [start + rows for start, (rows, _) in zip(starts, found, strict=False)]
    return np.concatenate(places), np.concatenate([hashes for _, hashes in found])


def _groups(table: EncodedTable) -> list[EncodedGroup]:
    """The row groups, by names of files that hold in any folder."""
    return [
        replace(group, file=os.path.abspath(group.file))
        for group in table.groups
        if isinstance(group, EncodedGroup)
    ]


def read_group(group: EncodedGroup, columns: list[str] | None = None) -> pd.DataFrame:
    """The encoded rows of a row group, and their labels beside, as far as asked for."""
    import pandas as pd

    encoder = group.encoder
    wanted = [*encoder.schema.features, encoder.label] if columns is None else columns
    if list(wanted) == [encoder.label]:
        parts = [batch.column(0).to_numpy(False) for batch in _there(group, wanted)]
        return pd.DataFrame({encoder.label: _joined(parts, encoder.as_labels)})
    frames, labels = [encoder.example], [encoder.as_labels(np.empty(0, np.int64))]
    _there(group, wanted)
    for frame, own in group.frames(labels=encoder.label in wanted):
        frames.append(frame)
        labels.append(own)
    whole = pd.concat(frames[1:] or frames, ignore_index=True)
    if encoder.label in wanted:
        whole[encoder.label] = np.concatenate(labels)
    return whole[list(wanted)]


def _joined(parts: list[Any], as_labels: Any) -> NDArray[Any]:
    return np.concatenate([as_labels(np.empty(0, np.int64)), *parts])


def _there(group: EncodedGroup, names: list[str]) -> Iterator[Any]:
    """The batches of a group whose file this worker can see."""
    if not os.path.exists(group.file):
        raise FileNotFoundError(
            f"{group.file} is not there for a worker of the cluster; put the dataset where "
            f"all workers see it under the same name"
        )
    return group.batches(names)


def rows_to_keep(group: EncodedGroup, step: int) -> tuple[NDArray[np.intp], Hashes]:
    """The places of the rows to remember in a row group, and their hashes."""
    parts = [
        row_hashes(frame, np.asarray(labels)) for frame, labels in group.frames(labels=True)
    ]
    hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
    rows = kept(hashes, step)
    return rows, hashes[rows]
