"""Datasets with a rare class: by name, from a folder, or any table of your own."""

from .imitation import imitate_pct
from .loading import load

__all__ = ["imitate_pct", "load"]
