"""How much the voters differ, pair by pair, and how sure their vote is.

``votes`` is the (n, K) matrix of the voters' answers, +1 for the positive class and -1
for the other, as :meth:`damvi.DAMVIClassifier.cast_votes` gives it; ``y`` is the truth,
0 and 1 or -1 and +1. Soft votes (floats in [-1, 1]) are taken as they are where a mean
makes sense, in :func:`pairwise_disagreement` and :func:`margins`. The other functions look
at decisions: a vote above 0 is +1, any other is -1.

Every measure follows from the exact sums of :class:`damvi.moments.Moments`, so a pair of
voters costs one pass over their votes, and no rounding hides that a count is 0. Of
``sample_weight`` only ratios matter; weights a factor 2**31 below the largest count as 0.
With a rare class, weights that balance the classes show what the few positives say.

References
----------
L. I. Kuncheva and C. J. Whitaker (2003), Measures of Diversity in Classifier Ensembles
and Their Relationship with the Ensemble Accuracy, Machine Learning 51.
"""

from .pairs import kappa, pairwise_disagreement, q_statistic
from .vote import kappa_error, margins, voter_errors

__all__ = [
    "kappa",
    "kappa_error",
    "margins",
    "pairwise_disagreement",
    "q_statistic",
    "voter_errors",
]
