"""What a model's votes are made of: its columns, and its voters."""

from .class_table import ClassExplained
from .importances import Importances, importances
from .shapley import Contributions, contributions
from .table import Explained, explain

__all__ = [
    "ClassExplained",
    "Contributions",
    "Explained",
    "Importances",
    "contributions",
    "explain",
    "importances",
]
