"""``damvi fit``: a table in a file becomes a model in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .talking import Talk, talk

DATA = click.Path(path_type=Path)
COST = click.FloatRange(0, min_open=True)


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
    help="Read parquet in blocks and never as a whole, as folders, patterns and files that "
    "are large for the memory are anyway.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Let the workers of a Dask cluster do it, such as tcp://host:8786, or local for "
    "processes of this machine. They read parquet, in blocks.",
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
    help="More rows, whose target nobody knows. Rows of DATA without one are such too.",
)
@click.option(
    "--unlabeled-weight",
    type=click.FloatRange(0, 1, max_open=True),
    help="How much the voters' disagreement on rows without a label counts; by default "
    "these are left out.",
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
    """Fit a model on the table DATA, and say honestly what it is worth.

    \b
        damvi fit data.csv --target is_fraud

    DATA is a CSV, TSV, parquet, feather or JSON lines file; CSV, TSV and JSON lines may
    be gzipped. Types are found out; ids, constants and free text are left out, and all
    that is decided is said. The scores are out of sample: each row is judged by models,
    weights and thresholds that have not seen its label.

    A target of two values has a positive one, the rarer; of three or more values each is a
    class to be told from the others.

    DATA may also be a folder of parquet files, or a quoted pattern such as "pay/*.parquet".
    These, and parquet files that are large for the memory, are read in blocks; the voters
    are trees then. A fit that was interrupted goes on from where it was: give the same
    command again.
    """
    from ..model import parse_metric
    from .dataset import fit_in_blocks, refuse_in_blocks, why_in_blocks

    talks = talk()
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    aim = None
    if metric is not None or cost is not None:
        try:
            aim = parse_metric(metric or "f1", cost)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    check_folder(out, data)
    why = why_in_blocks(data, out_of_core, cluster)
    common: dict[str, Any] = {
        "positive": positive,
        "metric": aim,
        "drop": drop,
        "keep": keep,
        "seed": seed,
        "jobs": jobs,
        "talks": talks,
    }
    if why is None:
        memory: dict[str, Any] = {
            "pool": pool,
            "time_limit": time_limit,
            "unlabeled": unlabeled,
            "unlabeled_weight": unlabeled_weight,
            "group": group,
        }
        fit_file(data, target, out, **memory, **common)
    else:
        source = context.get_parameter_source("pool")
        asked = source is not None and source.name == "COMMANDLINE"
        refuse_in_blocks(
            {
                "--time-limit": time_limit,
                "--unlabeled": unlabeled,
                "--unlabeled-weight": unlabeled_weight,
                "--group": group,
            },
            asked and pool == "strong",
        )
        common |= {"why": why, "pool_asked": asked, "cluster": cluster}
        dataset = fit_in_blocks(data, target, out, **common)
        data = Path(dataset.files[0])
    talks.say("\nNext:")
    talks.say(f"  damvi report {out} {data}")
    talks.say(f"  damvi predict {out} NEW_DATA")


def check_folder(out: Path, *read: Path) -> None:
    """Say so before the work, not after it, if there is nowhere to write.

    A file that is read is never written over.
    """
    import tempfile

    if out.is_dir():
        raise ValueError(f"{out} is a folder; name a file in it")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent} to write {out.name} to")
    if out.exists() and any(path.exists() and out.samefile(path) for path in read):
        raise click.UsageError(f"-o names {out}, a file that is read; name another")
    try:
        tempfile.TemporaryFile(dir=out.absolute().parent).close()
    except OSError as error:
        raise PermissionError(
            f"nothing can be written to the folder {out.parent}: {error.strerror}"
        ) from None


def fit_file(
    data: Path,
    target: str,
    out: Path,
    *,
    talks: Talk,
    metric: Any = None,
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
) -> Any:
    """Fit, save and tell; the model is returned."""
    from joblib import cpu_count

    from ..model import fit_table, metric_for, prepare, with_unlabeled
    from ..tables import read_table
    from .keeping import keep_and_tell, warnings_as_notes
    from .making import how_made, print_of
    from .telling import tell_table

    frame = read_table(data, as_text=[target])
    table = prepare(frame, target, positive, group=group, keep=keep, drop=drop)
    metric = metric_for(table.target, metric)
    made = how_made(print_of(data, frame), sys.argv)
    if unlabeled is not None:
        more = read_table(unlabeled, table.schema)
        table = with_unlabeled(table, more, str(unlabeled))
        made["unlabeled"] = print_of(unlabeled, more)
    tell_table(talks, data, table)
    with warnings_as_notes(talks):
        model, worth = fit_table(
            table,
            metric,
            pool=pool,
            time_limit=time_limit,
            unlabeled_weight=unlabeled_weight,
            seed=seed,
            n_jobs=jobs or cpu_count(),
            verbose=talks.shows_progress,
            made=made,
            say=talks.note,
        )
    keep_and_tell(talks, model, worth, metric, table, out)
    return model
