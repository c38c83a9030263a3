"""What commands share: human and JSON output, models and tables, Dask clusters."""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._files import check_writable, write_whole
from ..messages import counted

if TYPE_CHECKING:
    from ..model import Model

KEY = "damvi.cli.output"
WIDE = 160
"""Line width for files and pipes, which have none of their own."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Leading characters that make a spreadsheet read a cell as a formula."""
STEERS = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters JSON leaves alone but terminals obey: C1 codes and text direction marks."""
ENOUGH_ROWS = 10
"""With fewer rows, an empty column is nothing unusual."""
SOME_ROWS = 20_000
"""Rows of a table in blocks to check for empty columns."""
PATIENCE = 10
"""Seconds to wait for a scheduler."""


@dataclass
class Output:
    """Where a command's output goes: text, JSON, or nowhere."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, text: str = "") -> None:
        """Print text for people to standard output."""
        if not (self.as_json or self.quiet):
            click.echo(visible(text))

    def show(self, table: Any) -> None:
        """Print a rich table, in colour only on a terminal."""
        if not (self.as_json or self.quiet):
            _console().print(_Visible(table))

    @property
    def columns(self) -> int:
        """Width of the terminal in characters."""
        return int(_console().width)

    def note(self, text: str) -> None:
        """Print a side note to standard error."""
        if not self.quiet:
            click.echo(visible(text), err=True)

    def result(self, values: Any) -> None:
        """Print the result as JSON, if asked for."""
        if self.as_json:
            text = to_json(values)
            try:
                text.encode(sys.stdout.encoding or "utf-8")
            except UnicodeEncodeError:  # a code page: escape what it lacks
                text = json.dumps(json.loads(text), indent=2)
            click.echo(text)

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar has an audience: standard error is a terminal."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn library warnings inside this context into notes, each printed once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(
            str(each.message) for each in caught if issubclass(each.category, UserWarning)
        ):
            self.note(f"Note: {' '.join(text.split())}")


class _Visible:
    """A rich renderable, with control characters from the user's data escaped."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for part in console.render(self._drawn, options):
            yield part if part.control else Segment(visible(part.text), part.style)


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def current_output(context: click.Context | None = None) -> Output:
    """The output of the running command."""
    context = context or click.get_current_context()
    found: Output = context.meta.setdefault(KEY, Output())
    return found


def to_json(values: Any) -> str:
    """Strict JSON, without NaN.

    Characters are written as they are, except those a terminal would obey: these are
    escaped.
    """
    text = json.dumps(_plain(values), indent=2, ensure_ascii=False)
    return STEERS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def write_json(path: Path, values: Any) -> None:
    """Write values as JSON."""
    write_whole(path, to_json(values) + "\n")


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {str(key): _plain(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    values = getattr(values, "item", lambda: values)()
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values


def printable(text: str) -> str:
    """Text from the user's data, with control characters escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def visible(text: str) -> str:
    """The same for multi-line text."""
    return "\n".join(map(printable, text.split("\n")))


def no_formula(text: str) -> str:
    """Text from the user's data, quoted if a spreadsheet would read it as a formula.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("-1"), no_formula("ok")
    ("'=1+1", '-1', 'ok')
    """
    try:
        float(text)  # -1 is a fine label
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def check_output_file(out: Path, *inputs: Path) -> None:
    """Fail before the work, not after it, if ``out`` cannot be written.

    Input files are never overwritten.
    """
    if out.is_dir():
        raise ValueError(f"{out} is a folder; give a file name inside it")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {out}: the folder {out.parent} does not exist"
        )
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise click.UsageError(
            f"-o would overwrite the input file {out}; choose another name"
        )
    try:
        check_writable(out)
    except OSError as error:
        if error.filename == str(out.absolute()):  # the file itself, not its folder
            raise
        raise PermissionError(
            f"cannot write to the folder {out.parent}: {error.strerror}"
        ) from None


# Models and tables.


def load_whole(path: Path, output: Output) -> Model:
    """Load a table's model; warnings become notes."""
    from ..io import ModelFileError
    from ..model import Model, load

    with output.warnings_as_notes():
        found = load(path)
    if not isinstance(found, Model):
        raise ModelFileError(
            f"{path} holds a bare classifier without a table schema. Load it in Python "
            f"with damvi.load, or make a full model with damvi fit"
        )
    return found


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection during imports and loading, whose objects are long-lived.

    It would take a sixth of a command's start-up time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # skip these objects later, too
        if enabled:
            gc.enable()


def load_with_table(
    model: Path,
    data: Path,
    target: str | None,
    output: Output,
    *,
    blocks: bool = False,
    labelled: bool = False,
) -> tuple[Model, Any]:
    """Load the model, and the table by its schema.

    If the caller accepts ``blocks`` and the table is large, its path is returned instead.
    A table in memory must have the target if it is ``labelled``.
    """
    from ..model import DatasetRows, why_in_blocks
    from ..tables import pick

    loaded, table = load_whole(model, output), None
    if blocks and why_in_blocks(data) is not None:
        more = [] if target is None else [target]
        frame, table = DatasetRows(data, loaded.schema, more).sample(SOME_ROWS), data
    else:
        frame = table = loaded.read(data, target)
    try:
        if target is not None:
            pick(frame, target, "target")
        loaded.schema.check(list(frame.columns))
    except ValueError as error:
        raise ValueError(f"{data}: {error}") from None
    own = loaded.target.name
    if labelled and target is None and own not in frame.columns and table is frame:
        raise ValueError(
            f"{data} has no target column {own!r}; name it with --target. Without labels, "
            f"damvi drift estimates the model's scores"
        )
    encoded = loaded.schema.encode(frame)
    empty = [feature for feature in encoded.columns if encoded[feature].isna().all()]
    note_unread_columns(output, loaded.schema, empty, len(frame))
    return loaded, table


def note_unread_columns(
    output: Output, schema: Any, empty: Collection[str], rows: int
) -> list[str]:
    """Note the columns without a single readable value, and return their names.

    They are probably written differently than in training.
    """
    names = [
        column.name
        for column in schema.used
        if rows >= ENOUGH_ROWS and set(column.features) <= set(empty)
    ]
    for name in names[:10]:
        output.note(
            f"Note: no value in {printable(name)!r} could be read, so all are treated as "
            f"missing. Is the column written as it was in training?"
        )
    if len(names) > 10:
        output.note(f"Note: the same holds for {counted(len(names) - 10, 'more column')}.")
    return names


# Dask clusters.


@contextmanager
def cluster_client(address: str, jobs: int | None, output: Output) -> Iterator[Any]:
    """A client of the cluster at an address, or of a new local one."""
    import damvi.distributed  # noqa: F401  (says what to install)

    with _local_client(jobs) if address == "local" else _remote_client(address) as client:
        threads = client.nthreads()
        if not threads and address != "local":
            raise ValueError(
                f"the Dask cluster at {address} has no workers; start one with "
                f"dask worker {address}"
            )
        where = "a Dask cluster on this machine" if address == "local" else address
        output.note(
            f"Using {counted(len(threads), 'worker')} "
            f"({counted(sum(threads.values()), 'thread')}) on {where}."
        )
        yield client


@contextmanager
def _local_client(jobs: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    size: dict[str, Any] = (
        {} if jobs is None else {"n_workers": jobs, "threads_per_worker": 1}
    )
    with (
        # Silence warnings about workers that are slow to stop.
        LocalCluster(dashboard_address=":0", silence_logs=logging.ERROR, **size) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _remote_client(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"cannot reach a Dask scheduler at {address!r} "
            f"({' '.join(str(error).split())}); start one with dask scheduler, or use "
            f"--cluster local"
        ) from error
    with client:
        yield client
