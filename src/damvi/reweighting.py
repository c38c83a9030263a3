"""Step 2 of DAMVI: lean on the positives that the plain vote misses.

The weight of each positive is multiplied by exp(-margin), once, where the margin is that of
the plain vote: a real number, so a positive that every voter misses gains a factor e, and
one that all find loses it. With three or more classes this holds for the rows of each class
below its even share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .moments import ClassMoments
    from .votes import AnyVotes


def emphasize_missed_positives(
    votes: AnyVotes,
    strength: float = 1.0,
    unlabeled_weight: float = 0.0,
    fit_intercept: bool = False,
) -> list[ClassMoments]:
    """The moments of the votes, fold by fold, with more weight on missed positives.

    The votes multiply the weights by :func:`emphasis` themselves, where their rows are. The
    paper's normalisation is left out: nothing that follows depends on the scale.

    Parameters
    ----------
    votes : Votes
        In memory, on disk or on a cluster.
    strength : float, default=1
        A factor of the exponent: 1 is the paper's step 2, 0 leaves all weights alone.
    unlabeled_weight : float, default=0
        How much the disagreement of the voters on unlabelled rows counts.
    fit_intercept : bool, default=False
        Whether a constant will be fitted along with the weights, which takes the mean votes
        for each of three or more classes.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.votes import Votes
    >>> hard = np.array([[-1, -1], [1, 1], [1, -1], [-1, -1]], dtype=np.int8)
    >>> votes = Votes(hard, targets=np.array([1, 1, 0, 0]), folds=np.array([0, 1, 0, 1]))
    >>> first, second = emphasize_missed_positives(votes, strength=0)
    >>> float((first + second).moments().gibbs_risk([0.5, 0.5]))
    0.375
    >>> first, second = emphasize_missed_positives(votes, strength=1)
    >>> float(round((first + second).moments().gibbs_risk([0.5, 0.5]), 3))
    0.633
    """
    return votes.moments_by_fold(strength, unlabeled_weight, fit_intercept)


def emphasis(margin: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """What a positive's weight is multiplied by, given the margin of the plain vote."""
    factor: NDArray[np.float64] = np.exp(-strength * margin)
    return factor


def plain_margin(
    votes: NDArray[Any],
    targets: NDArray[Any],
    n_classes: int,
    counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """The margin of the plain vote on rows of the classes that step 2 reweights.

    ``votes`` are signed votes for the positive class of two (the rows are its own), numbers
    of classes (n, K), or shares of them (n, K, C). ``counted`` (n, K) says which votes
    count; the margin is 0 where none does. Hard votes are added up exactly.

    Examples
    --------
    >>> import numpy as np
    >>> plain_margin(np.array([[1, 1, -1]], dtype=np.int8), np.array([1]), 2)
    array([0.33333333])
    >>> plain_margin(np.array([[2, 2, 0]], dtype=np.uint8), np.array([2]), 3)
    array([0.33333333])
    """
    n_counted: Any = votes.shape[1]
    if counted is not None:
        n_counted = np.maximum(counted.sum(axis=1), 1)
    if n_classes == 2:
        dtype = np.int64 if votes.dtype.kind == "i" else np.float64
        taken = votes if counted is None else np.where(counted, votes, 0)
        return np.asarray(taken.sum(axis=1, dtype=dtype) / n_counted)
    if votes.ndim == 3:
        vote = votes.sum(axis=1, dtype=np.float64)
    else:
        vote = np.empty((len(votes), n_classes))
        for c in range(n_classes):
            named = votes == c
            vote[:, c] = (named if counted is None else named & counted).sum(axis=1)
    rows = np.arange(len(vote))
    others = vote.copy()
    others[rows, targets] = -np.inf
    return np.asarray((vote[rows, targets] - others.max(axis=1)) / n_counted)
