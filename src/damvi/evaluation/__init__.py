"""What a model is worth on a table: plain data, for whoever prints or draws it."""

from .honesty import Judged, decide, honest_rows
from .measures import MEASURES, Figure, confusion, measure
from .pairs import compare

__all__ = [
    "MEASURES",
    "Figure",
    "Judged",
    "compare",
    "confusion",
    "decide",
    "honest_rows",
    "measure",
]
