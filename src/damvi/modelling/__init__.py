"""From a table to a model: the columns judged, the pool chosen, its worth measured."""

from .fitting import fit_table
from .metrics import Metric, parse_metric
from .preparing import Prepared, prepare

__all__ = ["Metric", "Prepared", "fit_table", "parse_metric", "prepare"]
