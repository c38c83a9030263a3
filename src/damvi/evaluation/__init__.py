"""What a model is worth on a table: plain data, for whoever prints or draws it."""

from .class_measures import CLASS_MEASURES, ClassFigures, measure_classes
from .honesty import decide, honest_rows
from .judged import ClassJudged, Judged
from .measures import MEASURES, Figure, confusion, measure
from .pairs import compare

__all__ = [
    "CLASS_MEASURES",
    "MEASURES",
    "ClassFigures",
    "ClassJudged",
    "Figure",
    "Judged",
    "compare",
    "confusion",
    "decide",
    "honest_rows",
    "measure",
    "measure_classes",
]
