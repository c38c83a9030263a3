"""The first lines of every stored result: the command and the versions behind it."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version

import damvi


def print_setting(*packages: str) -> None:
    script = os.path.relpath(sys.argv[0])
    print("$ " + " ".join(["python", script, *sys.argv[1:]]))
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"damvi {damvi.__version__}, Python {platform.python_version()}, {versions}\n")
