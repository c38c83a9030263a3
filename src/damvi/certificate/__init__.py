"""Bounds on the risk of a model's decisions, from held-out rows."""

from .bounds import (
    binary_kl,
    c_bound,
    clopper_pearson,
    clopper_pearson_upper,
    kl_divergence,
    kl_lower,
    kl_upper,
    tandem,
    twice_gibbs,
)
from .certificate import Bound, Certificate, PacBayes, Rate, certify, pac_bayes

__all__ = [
    "Bound",
    "Certificate",
    "PacBayes",
    "Rate",
    "binary_kl",
    "c_bound",
    "certify",
    "clopper_pearson",
    "clopper_pearson_upper",
    "kl_divergence",
    "kl_lower",
    "kl_upper",
    "pac_bayes",
    "tandem",
    "twice_gibbs",
]
