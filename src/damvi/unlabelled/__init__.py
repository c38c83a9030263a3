"""Rows without a label: what they tell of the voters, and what voters learn of them."""

from .committees import Committees
from .crowd import Crowd, RefinedTally
from .labels import refuse_missing_labels, split_unlabelled
from .pseudo_labels import PseudoLabels, centroid_scores, most_confident
from .table import Unlabeled, read_unlabelled, stack_rows

__all__ = [
    "Committees",
    "Crowd",
    "PseudoLabels",
    "RefinedTally",
    "Unlabeled",
    "centroid_scores",
    "most_confident",
    "read_unlabelled",
    "refuse_missing_labels",
    "split_unlabelled",
    "stack_rows",
]
