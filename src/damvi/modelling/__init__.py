"""From a table to a model: the columns judged, the pool chosen, its worth measured."""

from .fitting import fit_table
from .in_blocks import fit_dataset
from .looking import prepare_dataset
from .metrics import Metric, metric_for, parse_metric
from .preparing import Prepared, prepare
from .unlabelled import with_unlabelled

__all__ = [
    "Metric",
    "Prepared",
    "fit_dataset",
    "fit_table",
    "metric_for",
    "parse_metric",
    "prepare",
    "prepare_dataset",
    "with_unlabelled",
]
