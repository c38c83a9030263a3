"""Weights drawn towards the plain vote, for when the votes are few or noisy."""

from __future__ import annotations

import numpy as np

from .moments import Moments


def shrink(moments: Moments, share: float) -> Moments:
    """Moments whose optimal weights lie between the C-bound's and equal ones.

    A ridge alone would draw the weights towards the voters' own strengths m. Here the
    penalty is on the distance to equal weights c, at the scale c where these do best:
    (w - c)'(w - c) adds 1 to the diagonal of M and c to m.

    Parameters
    ----------
    moments : Moments
    share : float in [0, 1)
        0 leaves the moments as they are; near 1 the weights are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.moments import Moments
    >>> from damvi.shrinkage import shrink
    >>> from damvi.solvers import exact
    >>> votes = np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], dtype=np.int8)
    >>> moments = Moments.of(votes, np.array([1, 1, -1, -1]))
    >>> for share in (0, 0.5, 0.99):
    ...     print(exact(shrink(moments, share)).weights.round(2))
    [1. 0.]
    [0.67 0.33]
    [0.5 0.5]
    """
    if share == 0:
        return moments
    m, M = moments.normalised()
    strength = share / (1 - share) * float(np.trace(M)) / len(m)
    spread = float(M.sum())
    scale = max(float(m.sum()), 0.0) / spread if spread > 0 else 0.0
    return Moments(m + strength * scale, M + strength * np.eye(len(m)), 1)
