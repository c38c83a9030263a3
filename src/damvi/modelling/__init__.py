"""From a table to a model: the columns judged, the pool chosen, its worth measured."""

from .fitting import fit_table
from .metrics import Metric, metric_for, parse_metric
from .preparing import Prepared, prepare
from .unlabelled import WAYS, with_unlabelled

__all__ = [
    "WAYS",
    "Metric",
    "Prepared",
    "fit_table",
    "metric_for",
    "parse_metric",
    "prepare",
    "with_unlabelled",
]
