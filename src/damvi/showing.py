"""The voters of a fitted model, one by one and together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted


class ShowsVoters:
    """The part of :class:`~damvi.DAMVIClassifier` that shows who votes."""

    weights_: NDArray[np.float64]
    n_features_in_: int
    _is_pool: Any
    _voters: Any

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the voters' feature importances, weighted as they vote.

        Voters of a pool that have none are left out.
        """
        check_is_fitted(self, "weights_")
        # A constant voter (one class in its sample) uses no feature.
        known = [getattr(voter, "feature_importances_", None) for voter in self.estimators_]
        if all(importances is None for importances in known):
            kinds = ", ".join(sorted({type(voter).__name__ for voter in self.estimators_}))
            raise AttributeError(f"the voters ({kinds}) have no feature_importances_")
        mean, asked = np.zeros(self.n_features_in_), 0.0
        for weight, importances in zip(self.weights_, known, strict=True):
            if importances is None:
                continue
            # Models count in units of their own.
            scale = float(np.sum(importances)) if self._is_pool else 1.0
            mean += weight * np.asarray(importances) / (scale or 1.0)
            asked += weight
        return mean / asked if self._is_pool and asked > 0 else mean

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of their draws."""
        check_is_fitted(self, "weights_")
        return self._voters.estimators

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """The voters of a pool by name, in the order of ``weights_``."""
        check_is_fitted(self, "weights_")
        if not self._is_pool:
            raise AttributeError("only the voters of a pool have names")
        return dict(zip(self._voters.names, self.estimators_, strict=True))
