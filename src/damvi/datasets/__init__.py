"""Datasets with a rare class: by name, from a folder, or any table of your own."""

from .available import names
from .cache import ChecksumError
from .fetching import fetch
from .imitation import imitate_pct
from .loading import load

__all__ = ["ChecksumError", "fetch", "imitate_pct", "load", "names"]
