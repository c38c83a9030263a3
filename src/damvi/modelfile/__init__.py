"""Model files: a fitted classifier with all that is needed to use it on a table.

A file holds plain arrays and JSON under a SHA-256, and loading it runs no code that it
brings; ``docs/model_files.md`` describes the format.
"""

from .errors import ModelFileError
from .files import load, load_model, save, save_model
from .foreign import ALLOWED
from .model import Model, Target, Training

__all__ = [
    "ALLOWED",
    "Model",
    "ModelFileError",
    "Target",
    "Training",
    "load",
    "load_model",
    "save",
    "save_model",
]
