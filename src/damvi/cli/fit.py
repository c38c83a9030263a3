"""``damvi fit``: a table in a file becomes a model in a file."""

from __future__ import annotations

import hashlib
import platform
import shlex
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from .console import Output, check_output_file, current_output, to_json

if TYPE_CHECKING:
    from ..io import ModelParts
    from ..model import Comparison, Metric, Prepared
    from ..outofcore import ParquetTable

DATA = click.Path(path_type=Path)
COST = click.FloatRange(0, min_open=True)
MEMORY_SHARE = 1 / 3
"""Of the memory that a table may take as doubles: voters and their votes need the rest."""
PACKAGES = ("numpy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")
"""Whose versions a model file tells."""


@click.command()
@click.argument("data", type=DATA)
@click.option("--target", metavar="COLUMN", required=True, help="The column to predict.")
@click.option(
    "--positive",
    metavar="VALUE",
    help="The value to find, against all others. Default: the rarer of two; three or more "
    "are told apart.",
)
@click.option(
    "--metric",
    help="What to be good at: f1 (the default), ap, recall@0.9 (best precision that finds "
    "90 %), precision@0.5 (best recall where half of the flagged are right), or cost; with "
    "three or more classes macro_f1 (the default) or macro_ap.",
)
@click.option("--cost-miss", type=COST, help="What a miss costs.")
@click.option("--cost-false-alarm", type=COST, help="What a false alarm costs. [1]")
@click.option(
    "--pool",
    type=click.Choice(["strong", "trees"]),
    default="strong",
    show_default=True,
    help="Strong models of several kinds, or the paper's trees: seconds, not minutes.",
)
@click.option(
    "--out-of-core",
    is_flag=True,
    help="Read parquet in blocks and never as a whole. Folders, patterns and files that "
    "are large for the memory are read so anyway.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Fit on a Dask cluster, such as tcp://host:8786, or local for processes of this "
    "machine. Its workers read parquet, in blocks.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Leave out the slowest voters, by an estimate, to train in about this time.",
)
@click.option(
    "--unlabeled",
    type=DATA,
    metavar="FILE",
    help="More rows, without a target. Rows of DATA without one are added to them.",
)
@click.option(
    "--unlabeled-weight",
    type=click.FloatRange(0, 1, max_open=True),
    help="How much the voters' disagreement on rows without a label counts. By default "
    "such rows are left out.",
)
@click.option("--group", metavar="COLUMN", help="Which rows belong together.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="Do not use this column.")
@click.option("--keep", metavar="COLUMN", multiple=True, help="Use it, whatever it seems.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="Threads. Default: all cores.")
@click.option(
    "-o", "--out", type=DATA, default="model.damvi", show_default=True, help="Model file."
)
@click.pass_context
def fit(
    context: click.Context,
    data: Path,
    target: str,
    positive: str | None,
    metric: str | None,
    cost_miss: float | None,
    cost_false_alarm: float | None,
    pool: str,
    out_of_core: bool,
    cluster: str | None,
    time_limit: float | None,
    unlabeled: Path | None,
    unlabeled_weight: float | None,
    group: str | None,
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    seed: int,
    jobs: int | None,
    out: Path,
) -> None:
    """Fit a model on the table DATA, and say honestly how good it is.

    \b
        damvi fit data.csv --target is_fraud

    DATA is a CSV, TSV, parquet, feather or JSON lines file; CSV, TSV and JSON lines may
    be gzipped. Types are inferred; ids, constants and free text are left out, and every
    such decision is printed. The scores are out of sample: each row is judged by models,
    weights and thresholds that have not seen its label.

    A target of two values has a positive one, the rarer; of three or more values each is a
    class to be told from the others.

    DATA may also be a folder of parquet files, or a quoted pattern such as "pay/*.parquet".
    These, and parquet files that are large for the memory, are read in blocks; the voters
    are trees then. To go on with a fit that was interrupted, give the same command again.
    """
    from ..model import parse_metric

    output = current_output()
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    asked_metric = None
    if metric is not None or cost is not None:
        try:
            asked_metric = parse_metric(metric or "f1", cost)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    check_output_file(out, data)
    why = why_in_blocks(data, out_of_core, cluster)
    common: dict[str, Any] = {
        "positive": positive,
        "metric": asked_metric,
        "drop": drop,
        "keep": keep,
        "seed": seed,
        "jobs": jobs,
        "output": output,
    }
    needs_memory: dict[str, Any] = {
        "time_limit": time_limit,
        "unlabeled": unlabeled,
        "unlabeled_weight": unlabeled_weight,
        "group": group,
    }
    if why is None:
        fit_file(data, target, out, pool=pool, **needs_memory, **common)
    else:
        source = context.get_parameter_source("pool")
        asked = source is not None and source.name == "COMMANDLINE"
        refuse_in_blocks(
            needs_memory | {"pool strong": (asked and pool == "strong") or None}
        )
        common |= {"why": why, "pool_asked": asked, "cluster": cluster}
        dataset = fit_in_blocks(data, target, out, **common)
        data = Path(dataset.files[0])
    output.say("\nNext:")
    output.say(f"  damvi report {out} {data}")
    output.say(f"  damvi predict {out} NEW_DATA")


def fit_file(
    data: Path,
    target: str,
    out: Path,
    *,
    output: Output,
    metric: Metric | None = None,
    positive: str | None = None,
    pool: str = "strong",
    time_limit: float | None = None,
    unlabeled: Path | None = None,
    unlabeled_weight: float | None = None,
    group: str | None = None,
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    seed: int = 0,
    jobs: int | None = None,
) -> ModelParts:
    """Fit on a file, save the model, and print its scores."""
    from joblib import cpu_count

    from ..model import fit_table, metric_for, prepare, with_unlabeled
    from ..tables import read_table
    from .figures import show_table

    frame = read_table(data, as_text=[target])
    table = prepare(frame, target, positive, group=group, keep=keep, drop=drop)
    metric = metric_for(table.target, metric)
    made = provenance(fingerprint(data, frame))
    if unlabeled is not None:
        more = read_table(unlabeled, table.schema)
        table = with_unlabeled(table, more, str(unlabeled))
        made["unlabeled"] = fingerprint(unlabeled, more)
    show_table(output, data, table)
    with output.warnings_as_notes():
        model, comparison = fit_table(
            table,
            metric,
            pool=pool,
            time_limit=time_limit,
            unlabeled_weight=unlabeled_weight,
            seed=seed,
            n_jobs=jobs or cpu_count(),
            verbose=output.shows_progress,
            made=made,
            say=output.note,
        )
    _save(output, model, comparison, metric, table, out)
    return model


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
        return None  # the reader says what is wrong
    from ..outofcore import ParquetTable

    table = ParquetTable(data)
    size = table.n_rows * len(table.schema.names) * 8
    about = f"{table.n_rows:,} rows, {_bytes_in_words(size)} as numbers"
    if not is_file:
        n = len(table.files)
        what = "a folder" if data.is_dir() else "a pattern"
        return f"{data} is {what} of {n:,} parquet file{'s' * (n > 1)} ({about})"
    if forced or cluster is not None:
        return f"as asked ({about})"
    from .resources import memory

    there = memory()
    if there is None or size <= MEMORY_SHARE * there:
        return None
    return f"{about}, and the memory has {_bytes_in_words(there)}"


def _bytes_in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def refuse_in_blocks(given: dict[str, Any]) -> None:
    """An error for options that need all rows in memory."""
    asked = [f"--{name.replace('_', '-')}" for name, v in given.items() if v is not None]
    if asked:
        cure = "leave it out"
        if asked == ["--pool strong"]:
            cure = "give --pool trees"
        raise click.UsageError(
            f"{' and '.join(asked)} need{'s' * (len(asked) == 1)} all rows in memory, and "
            f"these are read in blocks; {cure}, or fit on a sample in one file"
        )


def fit_in_blocks(
    data: Path,
    target: str,
    out: Path,
    *,
    output: Output,
    why: str,
    pool_asked: bool = False,
    cluster: str | None = None,
    metric: Metric | None = None,
    positive: str | None = None,
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    seed: int = 0,
    jobs: int | None = None,
) -> ParquetTable:
    """Fit on a parquet dataset, here or on a cluster, save the model, print its scores."""
    from joblib import cpu_count

    from ..model import fit_dataset, metric_for, prepare_dataset
    from ..outofcore import ParquetTable
    from .figures import show_table
    from .resources import cluster_client

    output.note(f"Read in blocks, out of core: {why}.")
    if not pool_asked:
        output.note(
            "The voters are the paper's trees (--pool trees): the strong pool needs all "
            "rows in memory."
        )
    check_output_file(out, *map(Path, ParquetTable(data).files))
    how: dict[str, Any] = {
        "seed": seed,
        "n_jobs": jobs or cpu_count(),
        "verbose": output.shows_progress,
    }
    here: Any = nullcontext()
    where = here if cluster is None else cluster_client(cluster, jobs, output)
    with output.warnings_as_notes(), where as client:
        table, n_judged = prepare_dataset(
            data, target, positive, keep=keep, drop=drop, **how
        )
        metric = metric_for(table.target, metric)
        made = provenance(dataset_fingerprint(data, table.X)) | {"out_of_core": why}
        show_table(output, data, table)
        n = len(table.y)
        unlabeled = sum(group.n_all for group in table.X.groups) - n
        if unlabeled:
            output.note(f"Left out {unlabeled:,} rows whose {target!r} is missing.")
        if n_judged < n:
            output.note(
                f"Columns were judged by a sample of {n_judged:,} rows, some of each "
                f"class; --keep and --drop overrule it."
            )
        model, comparison = fit_dataset(table, metric, made=made, client=client, **how)
    _save(output, model, comparison, metric, table, out)
    dataset: ParquetTable = table.X
    return dataset


def _save(
    output: Output,
    model: ModelParts,
    comparison: Comparison,
    metric: Metric,
    table: Prepared,
    out: Path,
) -> None:
    """Write the model and its scores, and print them."""
    from .._files import write_whole
    from ..io import save
    from .figures import show_scores

    save(model, out)
    beside = out.with_name(f"{out.stem}.scores.json")
    target = model.target
    labels: dict[str, Any] = {"positive": target.positive, "negative": target.negative}
    if target.classes:
        labels = {"classes": list(target.classes)}
    summary = {
        "model": str(out),
        "scores_file": str(beside),
        "target": {"name": target.name, **labels},
        **{name: value for name, value in model.scores.items() if name != "voters"},
        "columns": model.schema.as_dict()["columns"],
        "warnings": table.warnings,
        "made": model.made,
    }
    write_whole(beside, to_json(summary) + "\n")
    show_scores(output, model, comparison, metric)
    size = out.stat().st_size / 1e6
    output.say(f"\nSaved {out} ({size:.1f} MB) and its scores in {beside}.")
    output.result(summary)


def provenance(data: dict[str, Any]) -> dict[str, Any]:
    """How the model is made: command, fingerprint of the data, versions and date."""
    versions = {"damvi": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "command": shlex.join(["damvi", *sys.argv[1:]]),
        "data": data,
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def fingerprint(path: Path, frame: Any) -> dict[str, Any]:
    """What a table can be recognised by."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": path.name,
        "sha256": digest,
        "rows": len(frame),
        "columns": len(frame.columns),
    }


def dataset_fingerprint(path: Path, table: ParquetTable) -> dict[str, Any]:
    """What a parquet dataset can be recognised by, without reading all its bytes.

    A footer has the counts, places and extremes of all that is in its file.
    """
    digest = hashlib.sha256()
    for file, footer in zip(table.files, table.footers, strict=True):
        with open(file, "rb") as opened:
            opened.seek(-(footer.serialized_size + 8), 2)
            digest.update(opened.read())
    return {
        "name": path.name,
        "files": len(table.files),
        "sha256_of_footers": digest.hexdigest(),
        "rows": sum(footer.num_rows for footer in table.footers),
        "columns": len(table.schema.names),
    }
