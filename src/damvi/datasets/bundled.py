"""The small real dataset that ships with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch

MAMMOGRAPHY = """\
Mammography: 11,183 spots on mammograms, 260 of them (2.3 %) calcifications.

Six standardised image features (f0 to f5); target 1 marks a calcification. 3,334 rows are
exact duplicates of others.

Source: K. Woods et al. (1993), Comparative evaluation of pattern recognition techniques
for detection of microcalcifications in mammography; in the form of the imbalanced-learn
benchmark collection, doi:10.5281/zenodo.61452.
"""


def load(name: str) -> Bunch:
    """Load a dataset by name; ``"mammography"`` needs no network.

    Returns
    -------
    dataset : Bunch
        ``data`` (n, n_features), ``target`` (n,), ``feature_names`` and ``DESCR``.

    Examples
    --------
    >>> from damvi.datasets import load
    >>> data = load("mammography")
    >>> data.data.shape, int(data.target.sum())
    ((11183, 6), 260)
    """
    if name != "mammography":
        raise ValueError(f"unknown dataset {name!r}; there is 'mammography'")
    with (files(__package__) / "mammography.npz").open("rb") as file:
        arrays = np.load(file)
        data, target = arrays["data"], arrays["target"]
    return Bunch(
        data=data,
        target=target,
        feature_names=[f"f{j}" for j in range(data.shape[1])],
        DESCR=MAMMOGRAPHY,
    )
