"""One self-contained HTML page about a model on a table.

A summary of plain values (:func:`summarise`) goes through a template to a page that loads
nothing from anywhere (:func:`write_report`).
"""

from .page import render, write_report
from .summary import summarise

__all__ = ["render", "summarise", "write_report"]
