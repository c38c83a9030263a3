"""What is wrong with a model file, in one class."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or cannot be used here; the message says which.

    Also raised on save, for a model that no file could hold.
    """
