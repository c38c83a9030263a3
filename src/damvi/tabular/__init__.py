"""Tables in files: what is in their columns, and how voters get to see it."""

from .schema import Column, Schema

__all__ = ["Column", "Schema"]
