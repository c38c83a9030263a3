"""A CSV, TSV or parquet file as a data frame."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .folders import SUFFIXES

if TYPE_CHECKING:
    import pandas as pd


def need(module: str) -> Any:
    """Import a package of the ``bench`` extra, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this needs {module}, which is not installed: pip install 'damvi[bench]'"
        ) from error


def read_file(path: Path) -> pd.DataFrame:
    """Read a table, or say what is wrong with the file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it, or pass it as data_dir")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise ValueError(f"{path}: not one of the kinds read here, {', '.join(SUFFIXES)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    pandas = need("pandas")
    try:
        if name.endswith(".parquet"):
            need("pyarrow")
            frame = pandas.read_parquet(path)
            names = [str(column) for column in frame.columns]
        else:
            how = {"sep": "\t" if ".tsv" in name else ","}
            names = _header(pandas, path, how)
            if len(names) == 1 and ";" in names[0]:
                # Where the comma is the decimal sign, this is what "CSV" means.
                how = {"sep": ";", "decimal": ","}
                names = _header(pandas, path, how)
            elif len(names) == 1 and "\t" in names[0]:
                how = {"sep": "\t"}
                names = _header(pandas, path, how)
            frame = pandas.read_csv(path, low_memory=False, **how)
    except ImportError:
        raise
    except pandas.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty") from error
    except Exception as error:
        # Parsers fail in many ways of their own; the reader needs the file and the reason.
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as a table: {reason}") from error
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    for column in names:
        if names.count(column) > 1:
            raise ValueError(f"{path} has more than one column named {column!r}")
    frame.columns = [str(column) for column in frame.columns]
    return frame


def _header(pandas: Any, path: Path, how: dict[str, str]) -> list[str]:
    """Return the names as the file has them: pandas renames what occurs twice."""
    first = pandas.read_csv(path, header=None, nrows=1, dtype=str, **how)
    return [str(name) for name in first.iloc[0].dropna()]
