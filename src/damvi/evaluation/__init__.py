"""How good a model is on a table, for any number of classes, as plain data.

With two classes, scores are for the positive one (1; the negative is 0). With three or
more, each class is scored against the rest, and macro scores are plain means over them.
"""

from .differences import Differences, differences
from .draws import confusion
from .expected import Expected, achieved_figures, expected_figures, expected_of
from .measures import (
    MEASURES,
    Figure,
    Figures,
    TopFigures,
    alike_blocks,
    compare,
    headlines,
    measure,
    point_figures,
    share,
    top_figures,
)
from .rows import (
    UNKNOWN,
    Judged,
    alike_columns,
    alike_words,
    are_of_fit,
    class_names,
    fingerprint_of,
    honest_blocks,
    honest_rows,
    table_fingerprint,
    true_labels,
    value_hashes,
    with_votes,
)
from .voters import FittedVote, voter_figures, voter_weights, voters_of_fit, voters_on

__all__ = [
    "MEASURES",
    "UNKNOWN",
    "Differences",
    "Expected",
    "Figure",
    "Figures",
    "FittedVote",
    "Judged",
    "TopFigures",
    "achieved_figures",
    "alike_blocks",
    "alike_columns",
    "alike_words",
    "are_of_fit",
    "class_names",
    "compare",
    "confusion",
    "differences",
    "expected_figures",
    "expected_of",
    "fingerprint_of",
    "headlines",
    "honest_blocks",
    "honest_rows",
    "measure",
    "point_figures",
    "share",
    "table_fingerprint",
    "top_figures",
    "true_labels",
    "value_hashes",
    "voter_figures",
    "voter_weights",
    "voters_of_fit",
    "voters_on",
    "with_votes",
]
