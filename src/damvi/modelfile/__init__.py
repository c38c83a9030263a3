"""Model files: a fitted classifier with all that is needed to use it on a table."""

from .model import Model, Target, Training

__all__ = ["Model", "Target", "Training"]
