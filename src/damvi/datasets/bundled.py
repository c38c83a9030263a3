"""The small real dataset that ships with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAMMOGRAPHY = """\
Mammography: 11,183 spots on mammograms, 260 of them (2.3 %) calcifications.

Six standardised image features (f0 to f5); target 1 marks a calcification. 3,334 rows are
exact duplicates of others.

Source: K. Woods et al. (1993), Comparative evaluation of pattern recognition techniques
for detection of microcalcifications in mammography; in the form of the imbalanced-learn
benchmark collection, doi:10.5281/zenodo.61452.
"""


def mammography() -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return the bundled features, in single precision, and the target."""
    with (files(__package__) / "mammography.npz").open("rb") as file:
        arrays = np.load(file)
        return arrays["data"], arrays["target"]
