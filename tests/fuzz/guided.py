"""Model files, guided by what of damvi.io they reach: atheris, where it installs.

``python -m tests.fuzz.guided SOUND [libFuzzer's options]``, with the sound files that
``make fuzz KIND=models`` leaves in ``.fuzz/sound``. libFuzzer's bytes are the choices that
random numbers make elsewhere, so that it learns which mutations lead further. All cases run
in one process: a crash ends it, and libFuzzer keeps the bytes, which repeat it as an
argument.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np


class Choices:
    """The part of :class:`numpy.random.Generator` that mutations take, from bytes."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def integers(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        first, last = (0, low) if high is None else (low, high)
        if size is None:
            return self._provider.ConsumeIntInRange(first, max(last - 1, first))
        return np.array([self.integers(first, last) for _ in range(size)], dtype=np.int64)

    def random(self) -> float:
        return self._provider.ConsumeIntInRange(0, 999) / 1000

    def bytes(self, n: int) -> bytes:
        return bytes(self._provider.ConsumeBytes(n)).ljust(n, b"\x00")

    def shuffle(self, items: list[Any]) -> None:
        for k in range(len(items) - 1, 0, -1):
            other = self.integers(k + 1)
            items[k], items[other] = items[other], items[k]

    def permutation(self, array: Any) -> Any:
        order = list(range(len(array)))
        self.shuffle(order)
        return array[order]


def functions(package: str) -> Iterator[Any]:
    """The functions and methods that the modules of a package define."""
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for one in vars(module).values():
                inner = vars(one).values() if isinstance(one, type) else [one]
                for each in inner:
                    own = getattr(each, "__module__", None) == name
                    if own and isinstance(each, FunctionType):
                        yield each


def main() -> None:
    import atheris

    from .models import Models
    from .runner import limits

    warnings.simplefilter("ignore")
    kind = Models(Path(sys.argv[1]))
    kind.warm()
    for function in functions("damvi.io"):  # kernels cannot be instrumented
        atheris.instrument_func(function)
    limits(4 << 30)

    def one(data: bytes) -> None:
        kind.check(kind.make(Choices(atheris.FuzzedDataProvider(data))))  # type: ignore[arg-type]

    atheris.Setup([sys.argv[0], *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
