"""What the scripts share: where the data are, and the first lines of a stored result."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import damvi


def print_setting(*packages: str) -> None:
    script = os.path.relpath(sys.argv[0])
    print("$ " + " ".join(["python", script, *sys.argv[1:]]))
    print(versions_of(*packages) + "\n")


def versions_of(*packages: str) -> str:
    """The versions of damvi, Python and these packages, in a line."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"damvi {damvi.__version__}, Python {platform.python_version()}, {versions}"


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """``--data``: a folder of datasets, by default DAMVI_DATA or ../shared/data."""
    default = os.environ.get("DAMVI_DATA", "../shared/data")
    parser.add_argument("--data", type=_existing, default=default, metavar="FOLDER")


def _existing(name: str) -> Path:
    if not Path(name).is_dir():
        raise argparse.ArgumentTypeError(f"no folder {name}: nothing was measured")
    return Path(name)
