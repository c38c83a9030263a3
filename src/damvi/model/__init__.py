"""From a table to a model: columns judged, voters chosen, and both measured honestly."""

from .dataset import prepare_dataset
from .fitting import (
    Comparison,
    Metric,
    fit_dataset,
    fit_table,
    metric_for,
    parse_metric,
)
from .model import Model, load
from .table import Prepared, prepare, with_unlabeled

__all__ = [
    "Comparison",
    "Metric",
    "Model",
    "Prepared",
    "fit_dataset",
    "fit_table",
    "load",
    "metric_for",
    "parse_metric",
    "prepare",
    "prepare_dataset",
    "with_unlabeled",
]
