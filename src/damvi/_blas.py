"""Linear algebra on one thread, where the matrices are small."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS does not share out its work.

    On matrices as wide as there are voters its threads mostly wait for each other, and
    burn processor time while they do.
    """
    return _controller().limit(limits=1, user_api="blas")
