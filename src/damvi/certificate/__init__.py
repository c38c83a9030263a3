"""What can be promised about the risk of the decisions, honestly."""

from .binary_kl import binary_kl, kl_lower, kl_upper
from .bounds import (
    c_bound,
    clopper_pearson,
    clopper_pearson_upper,
    kl_divergence,
    tandem,
    twice_gibbs,
)
from .by_class import ClassCertificate, OverallBounds
from .certify import certify
from .pac_bayes import pac_bayes
from .statement import Bound, Certificate, PacBayes, Rate

__all__ = [
    "Bound",
    "Certificate",
    "ClassCertificate",
    "OverallBounds",
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
