"""From a table to a fitted model with honest scores."""

from .comparison import Comparison, Metric, as_metric, metric_for, parse_metric
from .dataset import DatasetRows, prepare_dataset
from .evaluation import Evaluation
from .model import Model, load
from .table import Prepared, files_of, prepare, why_in_blocks, with_unlabeled
from .training import (
    Fit,
    Plan,
    fit,
    fit_dataset,
    fit_table,
    options_like,
    plan_fit,
    refuse_in_blocks,
    train,
)

__all__ = [
    "Comparison",
    "DatasetRows",
    "Evaluation",
    "Fit",
    "Metric",
    "Model",
    "Plan",
    "Prepared",
    "as_metric",
    "files_of",
    "fit",
    "fit_dataset",
    "fit_table",
    "load",
    "metric_for",
    "options_like",
    "parse_metric",
    "plan_fit",
    "prepare",
    "prepare_dataset",
    "refuse_in_blocks",
    "train",
    "why_in_blocks",
    "with_unlabeled",
]
