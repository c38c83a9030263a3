"""From the user's table to codes: categories and bins, learned once for all trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._jit import announce_compilation
from .binning import Binning
from .frames import Categories, FrameTable

if TYPE_CHECKING:
    from .classifier import FastTreeClassifier


@dataclass(frozen=True, eq=False)
class Features:
    """How to read a table as codes, one byte a cell."""

    categories: Categories | None
    binning: Binning

    @classmethod
    def learn(
        cls,
        tree: FastTreeClassifier,
        X: Any,
        signs: NDArray[np.integer[Any]],
        seed: int,
        n_jobs: int | None = None,
    ) -> Features:
        announce_compilation()
        categorical = tree.categorical_mask(X)
        if not hasattr(X, "columns"):
            return cls(None, Binning.learn(X, signs, categorical, seed, n_jobs))
        categories = Categories.learn(X)
        table = FrameTable(X, categories)
        categorical = categorical | categories.mask
        return cls(categories, Binning.learn(table, signs, categorical, seed, n_jobs))

    def table(self, X: Any) -> Any:
        """``X`` as something to read numbers from by blocks of rows."""
        if X.shape[1] != len(self):  # the kernels trust it, and check no index
            raise ValueError(
                f"X has {X.shape[1]} columns, the trees were grown on {len(self)}; a fit "
                f"that failed half way leaves a model unusable: fit it again"
            )
        if self.categories is None:
            return X
        if not hasattr(X, "columns"):
            raise ValueError(
                "the model was fitted on a dataframe with categories or named columns; "
                "give it a dataframe with the same columns"
            )
        return FrameTable(X, self.categories)

    def encode(self, X: Any, n_jobs: int | None = None) -> NDArray[np.uint8]:
        """The codes of all of ``X``."""
        return self.binning.encode(self.table(X), n_jobs)

    def __len__(self) -> int:
        return len(self.binning.n_codes)
