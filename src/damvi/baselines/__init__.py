"""The methods that DAMVI is compared with, by the paper's names, as estimators."""

from .methods import METHODS, PAPER_METHODS, Method, make_method
from .oversampled import OversampledBaggingClassifier, OversampledTreeClassifier
from .real_adaboost import RealAdaBoostClassifier

__all__ = [
    "METHODS",
    "PAPER_METHODS",
    "Method",
    "OversampledBaggingClassifier",
    "OversampledTreeClassifier",
    "RealAdaBoostClassifier",
    "make_method",
]
