"""Tables in files: what is in their columns, and how voters get to see it."""

from .classes import many
from .labels import binary, label_texts, pick
from .reading import SUFFIXES, read_table
from .schema import Column, Schema
from .streaming import read_blocks

__all__ = [
    "SUFFIXES",
    "Column",
    "Schema",
    "binary",
    "label_texts",
    "many",
    "pick",
    "read_blocks",
    "read_table",
]
