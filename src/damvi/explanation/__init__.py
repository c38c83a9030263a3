"""What a model's votes are made of: its columns, and its voters."""

from .importances import Importances, importances
from .shapley import Contributions, contributions
from .table import Explained, explain

__all__ = [
    "Contributions",
    "Explained",
    "Importances",
    "contributions",
    "explain",
    "importances",
]
