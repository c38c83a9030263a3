"""How good a model is on a table, for any number of classes: plain data to print or draw.

Of two classes the positive one is reported; its number is 1 and that of the other 0. Three
or more classes are each judged against the rest, and means over them count each alike.
"""

from .differences import Differences, differences
from .draws import confusion
from .measures import (
    MEASURES,
    Figure,
    Figures,
    TopFigures,
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
    honest_blocks,
    honest_rows,
    table_fingerprint,
)
from .voters import FittedVote, voter_figures, voter_weights, voters_of_fit, voters_on

__all__ = [
    "MEASURES",
    "UNKNOWN",
    "Differences",
    "Figure",
    "Figures",
    "FittedVote",
    "Judged",
    "TopFigures",
    "alike_columns",
    "alike_words",
    "are_of_fit",
    "class_names",
    "compare",
    "confusion",
    "differences",
    "headlines",
    "honest_blocks",
    "honest_rows",
    "measure",
    "point_figures",
    "share",
    "table_fingerprint",
    "top_figures",
    "voter_figures",
    "voter_weights",
    "voters_of_fit",
    "voters_on",
]
