"""Step 1 of DAMVI: who votes."""

from .bagging import BaggedVoters
from .draws import Draws

__all__ = ["BaggedVoters", "Draws"]
