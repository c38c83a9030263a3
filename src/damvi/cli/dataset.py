"""``damvi fit`` on a parquet dataset that is read in blocks, here or on a cluster."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .talking import Talk

if TYPE_CHECKING:
    from ..outofcore import ParquetTable

SHARE = 1 / 3
"""Of the memory that a table may take as doubles: voters and their votes need the rest."""


def why_in_blocks(data: Path, forced: bool, cluster: str | None) -> str | None:
    """Why a table is not read as a whole; None if it is."""
    is_file = data.exists() and not data.is_dir()
    is_pattern = not data.exists() and any(sign in str(data) for sign in "*?[")
    if is_file and data.suffix.lower() != ".parquet":
        if forced or cluster is not None:
            asked = "--out-of-core" if forced else "--cluster"
            raise click.UsageError(
                f"{asked} reads parquet, and {data} is another kind of file"
            )
        return None
    if not is_file and not data.is_dir() and not is_pattern:
        return None  # whoever reads it says what is wrong
    from ..outofcore import ParquetTable

    table = ParquetTable(data)
    size = table.n_rows * len(table.schema.names) * 8
    about = f"{table.n_rows:,} rows, {_in_words(size)} as numbers"
    if not is_file:
        n = len(table.files)
        what = "a folder" if data.is_dir() else "a pattern"
        return f"{data} is {what} of {n:,} parquet file{'s' * (n > 1)} ({about})"
    if forced or cluster is not None:
        return f"as asked ({about})"
    from .memory import memory

    there = memory()
    if there is None or size <= SHARE * there:
        return None
    return f"{about}, and the memory has {_in_words(there)}"


def _in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def fit_in_blocks(
    data: Path,
    target: str,
    out: Path,
    *,
    talks: Talk,
    why: str,
    pool_asked: bool = False,
    cluster: str | None = None,
    metric: Any = None,
    positive: str | None = None,
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    seed: int = 0,
    jobs: int | None = None,
) -> ParquetTable:
    """Fit, save and tell; the dataset is returned."""
    from joblib import cpu_count

    from ..model import fit_dataset, metric_for, prepare_dataset
    from ..outofcore import ParquetTable
    from .clusters import connected
    from .fit import check_folder
    from .keeping import keep_and_tell, warnings_as_notes
    from .making import how_made, print_of_files
    from .telling import tell_table

    talks.note(f"Read in blocks, out of core: {why}.")
    if not pool_asked:
        talks.note(
            "The voters are the paper's trees (--pool trees): the strong pool needs all "
            "rows in memory."
        )
    check_folder(out, *map(Path, ParquetTable(data).files))
    how: dict[str, Any] = {
        "seed": seed,
        "n_jobs": jobs or cpu_count(),
        "verbose": talks.shows_progress,
    }
    where: Any = nullcontext() if cluster is None else connected(cluster, jobs, talks)
    with warnings_as_notes(talks), where as client:
        table, n_judged = prepare_dataset(
            data, target, positive, keep=keep, drop=drop, **how
        )
        metric = metric_for(table.target, metric)
        made = how_made(print_of_files(data, table.X), sys.argv)
        made["out_of_core"] = why
        tell_table(talks, data, table)
        _tell_sample(talks, table, n_judged, target)
        model, worth = fit_dataset(table, metric, made=made, client=client, **how)
    keep_and_tell(talks, model, worth, metric, table, out)
    return table.X


def _tell_sample(talks: Talk, table: Any, n_judged: int, target: str) -> None:
    n = len(table.y)
    without = sum(group.n_all for group in table.X.groups) - n
    if without:
        talks.note(f"Left out {without:,} rows whose {target!r} is missing.")
    if n_judged < n:
        talks.note(
            f"Columns were judged by a sample of {n_judged:,} rows, some of each class; "
            f"--keep and --drop overrule it."
        )


def refuse_in_blocks(given: dict[str, Any], wants_strong: bool) -> None:
    """Options that need all rows in memory."""
    asked = [name for name, value in given.items() if value not in (None, "auto", "none")]
    if asked:
        raise click.UsageError(
            f"{' and '.join(asked)} need{'s' * (len(asked) == 1)} all rows in memory, and "
            f"these are read in blocks; leave it out, or fit on a sample in one file"
        )
    if wants_strong:
        raise click.UsageError(
            "--pool strong needs all rows in memory, and these are read in blocks; give "
            "--pool trees, or fit on a sample in one file"
        )
