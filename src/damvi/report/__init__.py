"""A self-contained HTML report on a model and a table.

:func:`summarise` collects the contents as plain values, and :func:`write_report` renders
them with a template.
"""

from .page import render, write_report
from .summary import summarise

__all__ = ["render", "summarise", "write_report"]
