"""The same fit on a Dask cluster, by the workers that hold the rows.

The result is that of a fit in memory with ``bootstrap="poisson"``, bit by bit, however the
rows are cut into partitions and however many workers there are.
"""

from __future__ import annotations

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"damvi.distributed needs Dask ({error}): pip install 'damvi[dask]'"
    ) from error

from .fitting import fit
from .predicting import decision_function, predict, predict_proba, vote

__all__ = ["decision_function", "fit", "predict", "predict_proba", "vote"]
