"""What a model's votes are made of: its columns, and its voters."""

from .importances import Importances, importances
from .shapley import Contributions, contributions

__all__ = ["Contributions", "Importances", "contributions", "importances"]
