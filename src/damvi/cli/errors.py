"""What is wrong with the user's input, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with the user's input into one line and exit code 1."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error
