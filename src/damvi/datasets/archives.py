"""What the public archives hold, each in its own layout, as arrays."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .files import need


class Table(NamedTuple):
    """Features, target in 0/1, names, and the group of each row where there is one."""

    data: NDArray[Any]
    target: NDArray[np.int8]
    feature_names: list[str]
    groups: NDArray[Any] | None = None


def collection(archive: Path, member: str) -> Table:
    """Read a table of imbalanced-learn's collection: one npz file of the tar each."""
    with np.load(io.BytesIO(_from_tar(archive, member)), allow_pickle=False) as arrays:
        label = np.asarray(arrays["label"]).ravel()
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            data = sparse.csr_matrix(parts, shape=tuple(arrays["shape"])).toarray()
        else:
            data = arrays["data"]
    target = (label > 0).astype(np.int8)
    return Table(data, target, [f"f{j}" for j in range(data.shape[1])])


def scania(archive: Path, member: str) -> Table:
    """Read the training file of the UCI archive: a licence, a header, then the rows."""
    with zipfile.ZipFile(archive) as files:
        names = [name for name in files.namelist() if PurePosixPath(name).name == member]
        if not names:
            raise ValueError(f"{archive.name} holds no {member}")
        text = files.read(names[0])
    start = text.find(b"\nclass,") + 1
    frame = need("pandas").read_csv(io.BytesIO(text[start:]), na_values="na")
    target = (frame.pop("class") == "pos").to_numpy().astype(np.int8)
    return Table(frame.to_numpy(dtype=np.float64), target, list(frame.columns))


def kdd_cup_2004(archive: Path, member: str) -> Table:
    """Read the proteins of KDD Cup 2004: block, example, label, then the features."""
    text = io.BytesIO(_from_tar(archive, member))
    rows = need("pandas").read_csv(text, sep=r"\s+", header=None).to_numpy()
    names = [f"f{j}" for j in range(4, rows.shape[1] + 1)]
    blocks = rows[:, 0].astype(np.int32)
    return Table(rows[:, 3:], (rows[:, 2] > 0).astype(np.int8), names, blocks)


def credit_fraud(file: Path, member: str) -> Table:
    """Read Kaggle's file as it is."""
    frame = need("pandas").read_csv(file)
    target = frame.pop("Class").to_numpy().astype(np.int8)
    return Table(frame.to_numpy(dtype=np.float64), target, list(frame.columns))


READERS = {
    "collection": collection,
    "scania": scania,
    "kdd_cup_2004": kdd_cup_2004,
    "credit_fraud": credit_fraud,
}


def _from_tar(archive: Path, member: str) -> bytes:
    with tarfile.open(archive) as files:
        # Read in place and never unpacked, so that no name in it can do harm.
        for entry in files:
            if entry.isfile() and PurePosixPath(entry.name).name == member:
                content = files.extractfile(entry)
                assert content is not None
                return content.read()
    raise ValueError(f"{archive.name} holds no {member}")
