"""The paper's experiments: protocol, runner, tables and figures."""

from .._files import write_whole
from .layout import score_grid
from .outputs import cells_csv, write_outputs
from .plan import Plan
from .protocol import Protocol
from .render import to_terminal
from .runner import run
from .store import read_cells
from .tables import score_table

__all__ = [
    "Plan",
    "Protocol",
    "cells_csv",
    "read_cells",
    "run",
    "score_grid",
    "score_table",
    "to_terminal",
    "write_outputs",
    "write_whole",
]
