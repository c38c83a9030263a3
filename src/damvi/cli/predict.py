"""``damvi predict``: score, probability and decision for each row of a file.

Rows are read, scored and written block by block, in constant memory.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory, mkdtemp
from typing import IO, TYPE_CHECKING, Any

import click

from .._files import discarded, remove_at_end, whole_file
from .console import (
    Output,
    check_output_file,
    current_output,
    load_whole,
    no_formula,
    printable,
    without_garbage_collection,
)

if TYPE_CHECKING:
    from ..drift import Drift
    from ..model import Model
    from ..model.prediction import Block, Judged
    from ..tables import Rows
    from ..tables.profile import ColumnCounts

KINDS = (".csv", ".parquet", ".xlsx")
STREAM = Path("-")
KEPT_IN_MEMORY = 1 << 24
"""Bytes of standard output to buffer in memory before spilling to disk."""
MOST_EXCEL_ROWS = (1 << 20) - 1
LONGEST_EXCEL_TEXT = 32_767


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A .csv, .parquet or .xlsx file, or - for standard output. If DATA is a folder or "
    "pattern, also a new folder. Default: DATA's name with .predictions.csv.",
)
@click.option(
    "--id", "id_", metavar="COLUMN", help="Column of DATA to put first, such as an id."
)
@click.option(
    "--columns",
    metavar="A,B",
    help="Columns of DATA to copy to the output unchanged.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help="Write only the N highest-scoring rows, highest first.",
)
@click.option(
    "--by", metavar="COLUMN", help="With --top: N rows for each value of this column."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Fail, instead of warning, if DATA has drifted from the training rows.",
)
@click.option("--jobs", type=click.IntRange(1), help="Threads. Default: all cores.")
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    id_: str | None,
    columns: str | None,
    top: int | None,
    by: str | None,
    strict: bool,
    jobs: int | None,
) -> None:
    """Score every row of DATA with MODEL.

    The output has one line per row, in the order of DATA: the score (the vote, from -1 to
    1), the probability of the positive class and the decision. With three or more classes
    it has the decision, and a probability and a score (share of the vote) per class.
    Columns of DATA may be in any order; extra ones are ignored. Files may be larger than
    memory. DATA may be - to read CSV from standard input. If predictions go to standard
    output, messages go to standard error.

    DATA may also be a folder of parquet files or a quoted pattern. Predictions are then
    written to one file, or to a folder with a parquet file for each input file.

    You are warned if a column is unreadable, newly missing or out of its training range,
    or if the share of flagged rows is far from expected; damvi drift shows the details. A
    note tells you if the first rows are training rows.
    """
    from .figures import wording

    with without_garbage_collection():
        from ..model import files_of

    output = current_output()
    if by is not None and top is None:
        raise click.UsageError("--by needs --top, the number of rows for each value")
    out = out or (STREAM if data == STREAM else default_name(data))
    if out == STREAM and output.as_json:
        raise click.UsageError(
            "--json and -o - both write to standard output; drop one of them"
        )
    files = [data] if data == STREAM else files_of(data)
    in_files = files != [data] and not out.suffix
    if in_files:
        if out.exists():
            raise click.UsageError(f"the folder {out} exists already; choose a new name")
        if top is not None:
            raise click.UsageError("--top writes a single file; name it with -o")
    elif out != STREAM:
        if out.suffix.lower() not in KINDS:
            raise click.UsageError(f"-o must be a {', '.join(KINDS)} file or -, not {out}")
        check_output_file(out, model, *files)
    with without_garbage_collection():
        loaded = load_whole(model, output)
    carried = [*([id_] if id_ else []), *split_names(columns)]
    numbered = not carried
    if by is not None and by not in carried:
        carried.append(by)
    with _input(data) as source:
        files = [source] if data == STREAM else files
        counts, written, drift = _write(
            loaded, files, out, in_files, carried, top, by, numbered, strict, jobs, output
        )
    n = sum(counts.values())
    best = "" if top is None else f"the {written:,} highest-scoring rows with "
    if by is not None:
        best = f"the {top:,} highest-scoring rows of each {printable(by)!r} ({written:,} "
        best += "in total) with "
    file = "" if out == STREAM else str(out)
    names = "".join(f"{printable(name)}, " for name in carried)
    decided = wording(loaded.target.texts).show_decided(output, counts, file, names, best)
    changed = [] if drift is None else drift.warnings
    output.result(
        {"out": str(out), "rows": n, "written": written, **decided, "changed": changed}
    )


def default_name(data: Path) -> Path:
    """The default output: in the current folder, named after the data."""
    from ..tables import SUFFIXES

    stem = data.name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if stem.lower().endswith(suffix):
            stem = stem[: -len(suffix)]
            break
    stem = "".join(sign for sign in stem if sign not in "*?[]").strip("-_. ") or "table"
    return Path(f"{stem}.predictions.csv")


def split_names(text: str | None) -> list[str]:
    """Split a comma-separated list of names; names with a comma are quoted.

    Examples
    --------
    >>> split_names('a,"b, c"')
    ['a', 'b, c']
    """
    return next(csv.reader([text]), []) if text else []


@contextmanager
def _input(data: Path) -> Iterator[Path]:
    """The file to read; standard input is copied to a temporary one.

    Parsing CSV reliably takes two passes.
    """
    if data != STREAM:
        yield data
        return
    with TemporaryDirectory(prefix="damvi-") as folder:
        remove_at_end(Path(folder))
        path = Path(folder) / "input.csv"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield path
        except ValueError as error:  # the user has never heard of that file
            error.args = (str(error).replace(str(path), "standard input"),)
            raise
    discarded(Path(folder))


@contextmanager
def _output(out: Path) -> Iterator[IO[bytes]]:
    """The output file, written completely or not at all."""
    if out != STREAM:
        with whole_file(out) as file:
            yield file
        return
    with SpooledTemporaryFile(KEPT_IN_MEMORY) as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to ``out`` on success."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    remove_at_end(part)
    try:
        yield part
        part.chmod(0o777 & ~_umask())
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        discarded(part)


def _umask() -> int:
    """This process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write(
    model: Model,
    files: list[Path],
    out: Path,
    in_files: bool,
    carried: list[str],
    top: int | None,
    by: str | None,
    numbered: bool,
    strict: bool,
    jobs: int | None,
    output: Output,
) -> tuple[dict[str, int], int, Drift | None]:
    """Write predictions; return counts by decision, rows written, and the drift."""
    from joblib import cpu_count

    from ..model.prediction import Judge, Top, drift_of, note_on_training_rows
    from ..tables import read_blocks

    judge = Judge(model, carried, 1)  # parallelism is over blocks
    best = None if top is None else Top(model, top, by, numbered)
    kind = ".parquet" if in_files else out.suffix.lower() or ".csv"
    # Labels may look like formulas; copied columns are the user's own and stay as they are.
    labels = judge.labels
    if kind == ".csv":
        labels = [no_formula(label) for label in labels]

    def make(judged: Judged) -> Any:
        batch = judge.batch(judged, labels, as_text=kind != ".parquet")
        return csv_lines(batch) if kind == ".csv" and best is None else batch

    counts: Any = [0] * len(judge.labels)
    total: ColumnCounts | None = None
    n_best = 0
    origin: list[str] = []

    def look(rows: Callable[[], Rows]) -> Rows:
        found = rows()
        origin.append(note_on_training_rows(model, found.X))
        return found

    def write_rows(some: list[Path], file: IO[bytes]) -> None:
        nonlocal counts, total, n_best
        rows = (rows for one in some for rows in read_blocks(one, model.schema, carried))
        if not origin:
            rows = (block if n else partial(look, block) for n, block in enumerate(rows))
        blocks = judge.blocks(rows, make, jobs or cpu_count())
        if output.shows_progress:
            blocks = with_progress(blocks)
        with PredictionFile(file, kind) as written:
            for block in blocks:
                for piece in block.made:
                    if best is None:
                        written.write(piece, judge.names)
                    else:
                        best.add(piece)
                counts = [a + int(b) for a, b in zip(counts, block.counts, strict=True)]
                total = (
                    block.column_counts
                    if total is None
                    else total.plus(block.column_counts)
                )
            if best is not None and any(counts):
                rows_of_best = best.rows
                n_best = len(rows_of_best)
                for batch in rows_of_best.to_batches():
                    piece = csv_lines(batch) if kind == ".csv" else batch
                    written.write(piece, batch.schema.names)

    where: Any = _folder(out) if in_files else _output(out)
    with where as place:
        if in_files:
            root = os.path.commonpath([file.parent for file in files])
            for one in files:
                path = place / os.path.relpath(one, root)
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "wb") as file:
                    write_rows([one], file)
                if not path.stat().st_size:  # the input had no rows
                    path.unlink()
        else:
            write_rows(files, place)
        if not any(counts):
            raise ValueError(f"{files[0]} has a header but no rows")
        if origin[0]:
            output.note(origin[0])
        drift = drift_of(model, total)
        _report_drift(drift, strict, output)
    n = sum(counts) if best is None else n_best
    return dict(zip(judge.labels, counts, strict=True)), n, drift


def _report_drift(drift: Drift | None, strict: bool, output: Output) -> None:
    """Warn of drift, or with ``strict`` fail before the output is in place."""
    from ..drift import DriftError

    if drift is None or not drift.warnings:
        return
    if strict:
        raise DriftError(
            f"the data have drifted from the training rows: {'; '.join(drift.warnings)}. "
            f"Nothing was written (--strict)"
        )
    output.note(f"Warning: the data have drifted from the training rows.\n{drift.summary}")


class PredictionFile:
    """Writes CSV lines, or parquet or Excel batches, to an open file.

    Parameters
    ----------
    file : binary file
    kind : str
        One of :data:`KINDS`.
    """

    def __init__(self, file: IO[bytes], kind: str) -> None:
        self._file, self._kind = file, kind
        self._writer: Any = None
        self._close: Callable[[], Any] = lambda: None

    def write(self, piece: Any, names: Sequence[str]) -> None:
        """Append rows, as CSV lines or a batch; ``names`` are the column names."""
        if self._writer is None:
            self._begin(piece, names)
        self._writer(piece)

    def _begin(self, piece: Any, names: Sequence[str]) -> None:
        if self._kind == ".csv":
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(names)
            self._file.write(header.getvalue().encode())
            self._writer = self._file.write
        elif self._kind == ".parquet":
            from pyarrow import parquet

            writer = parquet.ParquetWriter(self._file, piece.schema)
            self._writer, self._close = writer.write_batch, writer.close
        else:
            sheet = ExcelSheet(self._file, names)
            self._writer, self._close = sheet.write, sheet.close

    def __enter__(self) -> PredictionFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()


def csv_lines(batch: Any) -> Any:
    """The rows of a batch as lines of a CSV."""
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    sink = pa.BufferOutputStream()
    how = WriteOptions(include_header=False, quoting_style="needed")
    write_csv(batch, sink, how)
    return sink.getvalue()


class ExcelSheet:
    """One sheet, written row by row; text is never a formula or a link."""

    def __init__(self, file: IO[bytes], names: Sequence[str]) -> None:
        try:
            from xlsxwriter import Workbook
        except ImportError:
            raise ImportError(
                "writing Excel files needs xlsxwriter: pip install 'damvi[excel]', or "
                "write a .csv"
            ) from None
        self._book = Workbook(file, {"constant_memory": True})
        self._sheet = self._book.add_worksheet("predictions")
        self._row = 0
        self._text([*enumerate(names)])

    def write(self, batch: Any) -> None:
        columns = [column.to_pylist() for column in batch.columns]
        for cells in zip(*columns, strict=True):
            self._row += 1
            if self._row > MOST_EXCEL_ROWS:
                raise ValueError(
                    f"an Excel sheet holds at most {MOST_EXCEL_ROWS:,} rows; write a .csv "
                    f"or .parquet file, or use --top"
                )
            self._text([(k, c) for k, c in enumerate(cells) if isinstance(c, str)])
            for place, cell in enumerate(cells):
                if isinstance(cell, float | int):
                    self._sheet.write_number(self._row, place, cell)

    def _text(self, cells: list[tuple[int, str]]) -> None:
        for place, cell in cells:
            if len(cell) > LONGEST_EXCEL_TEXT:
                raise ValueError(
                    f"an Excel cell holds at most {LONGEST_EXCEL_TEXT:,} characters, but "
                    f"one in row {self._row} has {len(cell):,}; write a .csv file"
                )
            self._sheet.write_string(self._row, place, cell)

    def close(self) -> None:
        self._book.close()


def with_progress(blocks: Iterator[Block]) -> Iterator[Block]:
    """Pass blocks on, showing the rows so far on standard error."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    rows = TextColumn("{task.completed:,.0f} rows")
    columns = (SpinnerColumn(), rows, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        for block in blocks:
            yield block
            bar.advance(task, int(sum(block.counts)))
