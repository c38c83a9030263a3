"""From a table to a model: columns judged, voters chosen, and both measured honestly."""

from .comparison import Comparison, Metric, as_metric, metric_for, parse_metric
from .dataset import prepare_dataset
from .fitting import fit_dataset, fit_table
from .model import Model, load
from .table import Prepared, prepare, with_unlabeled

__all__ = [
    "Comparison",
    "Metric",
    "Model",
    "Prepared",
    "as_metric",
    "fit_dataset",
    "fit_table",
    "load",
    "metric_for",
    "parse_metric",
    "prepare",
    "prepare_dataset",
    "with_unlabeled",
]
