"""``damvi fit``: a table in a file becomes a model in a file."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import Output, check_output_file, current_output, to_json

if TYPE_CHECKING:
    from ..model import Fit, Model, Prepared

DATA = click.Path(path_type=Path)
COST = click.FloatRange(0, min_open=True)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("data", type=DATA)
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option(
    "--like",
    type=DATA,
    metavar="MODEL",
    help="An older model file: its target, settings, columns and threshold rule, but for "
    "what is given here.",
)
@click.option(
    "--positive",
    metavar="VALUE",
    help="The value to find, against all others. Default: the rarer of two; three or more "
    "are told apart.",
)
@click.option(
    "--metric",
    help="What to be good at: f1 (the default), ap, recall@0.9 (best precision that finds "
    "90 %), precision@0.5 (best recall where half of the flagged are right), flags@200 "
    "(200 of as many rows as DATA has; also flags@1%, flags@200/10000), or cost; with "
    "three or more classes macro_f1 (the default) or macro_ap.",
)
@click.option(
    "--guarantee",
    metavar="RATE=LEVEL",
    help="A promise for rows to come: recall=0.9, precision=0.5 or false_alarm_rate=0.01. "
    "It comes from rows that are set aside and train nothing.",
)
@click.option("--confidence", type=SHARE, default=0.9, help="Of the guarantee. [0.9]")
@click.option(
    "--guarantee-size",
    type=SHARE,
    default=0.3,
    help="The share of the rows that is set aside for it. [0.3]",
)
@click.option("--cost-miss", type=COST, help="What a miss costs.")
@click.option("--cost-false-alarm", type=COST, help="What a false alarm costs. [1]")
@click.option(
    "--pool",
    type=click.Choice(["strong", "trees", "best"]),
    default="strong",
    show_default=True,
    help="Strong models of several kinds, or the paper's trees: seconds, not minutes; or "
    "the strong model that is best alone.",
)
@click.option(
    "--sample-rows",
    type=click.IntRange(1),
    metavar="N",
    help="Of tables in blocks, the rows that strong models are trained on. [200000]",
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
    help="Train for about this long: as many voters as there is time for. Short limits are "
    "kept by fewer voters, or fewer rows for the first.",
)
@click.option(
    "--prefer",
    type=click.Choice(["speed"]),
    help="Quicker predictions: leave out voters that are not worth the time they take.",
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
@click.option(
    "--time",
    metavar="COLUMN",
    help="When each row was: rows are judged by what was learned from earlier ones alone.",
)
@click.option(
    "--shuffle",
    is_flag=True,
    help="Judge rows by folds at random, even if they are in the order of time.",
)
@click.option(
    "--merge-labels",
    is_flag=True,
    help="Take labels that differ in case or blanks alone, as Fraud and fraud, as one.",
)
@click.option("--group", metavar="COLUMN", help="Which rows belong together.")
@click.option(
    "--weight", metavar="COLUMN", help="How much each row counts in the training."
)
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
    target: str | None,
    like: Path | None,
    positive: str | None,
    metric: str | None,
    guarantee: str | None,
    confidence: float,
    guarantee_size: float,
    cost_miss: float | None,
    cost_false_alarm: float | None,
    pool: str,
    sample_rows: int | None,
    out_of_core: bool,
    cluster: str | None,
    time_limit: float | None,
    prefer: str | None,
    unlabeled: Path | None,
    unlabeled_weight: float | None,
    time: str | None,
    shuffle: bool,
    merge_labels: bool,
    group: str | None,
    weight: str | None,
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    seed: int,
    jobs: int | None,
    out: Path,
) -> None:
    """Fit a model on the table DATA, and say honestly how good it is.

    \b
        damvi fit data.csv --target is_fraud

    DATA is a CSV, TSV, JSON, JSON lines, parquet, feather or Excel file; the first four may
    be packed (.gz, .bz2, .zst, .zip). Types are inferred; ids, constants and free text are
    left out, and every such decision is printed. The scores are out of sample: each row is
    judged by models, weights and thresholds that have not seen its label.

    A target of two values has a positive one, the rarer; of three or more values each is a
    class to be told from the others.

    DATA may also be a folder of parquet files, or a quoted pattern such as "pay/*.parquet".
    These, and parquet files that are large for the memory, are read in blocks. The voters
    are trees then, unless --pool strong asks for models that are trained on a sample of the
    rows and vote on all of them. To go on with a fit of trees that was interrupted, give
    the same command again.
    """
    from ..model import options_like, parse_metric, refuse_in_blocks, why_in_blocks
    from ..outofcore import ParquetTable
    from .loading import load_whole

    output = current_output()
    if target is None and like is None:
        raise click.UsageError("name the column to predict: --target COLUMN")
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    asked = None
    if guarantee is not None:
        check_guarantee(guarantee)
    if metric is not None or cost is not None:
        try:
            asked = parse_metric(metric or "f1", cost)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    check_output_file(out, data, *([] if like is None else [like]))
    older = None if like is None else load_whole(like, output)
    where = {"--out-of-core": out_of_core, "--cluster": cluster is not None}
    in_blocks = [name for name, given in where.items() if given]
    if in_blocks and data.is_file() and data.suffix.lower() != ".parquet":
        raise click.UsageError(
            f"{in_blocks[0]} reads parquet, and {data} is another kind of file"
        )
    why = why_in_blocks(data, bool(in_blocks))
    typed = {
        name: (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
        for name in ("pool", "seed")
    }
    options: dict[str, Any] = {
        "pos_label": positive,
        "threshold": asked,
        "pool": pool if typed["pool"] or older is None else None,
        "sample_rows": sample_rows,
        "shuffle": shuffle,
        "drop": drop,
        "keep": keep,
        "random_state": seed if typed["seed"] or older is None else None,
        "n_jobs": jobs,
        "time_limit": time_limit,
        "prefer": prefer,
        "unlabeled_weight": unlabeled_weight,
        "time": time,
        "group": group,
        "sample_weight": weight,
        "merge_labels": merge_labels,
        "guarantee": guarantee,
        "confidence": confidence,
        "guarantee_size": guarantee_size,
    }
    options = options_like(older, {"target": target, **options})
    if why is not None:
        try:
            refuse_in_blocks({**options, "unlabeled": unlabeled}, _option)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        output.note(f"Read in blocks, out of core: {why}.")
        if older is None and not typed["pool"]:
            options["pool"] = "trees"
            output.note(
                "The voters are the paper's trees. --pool strong takes longer: it trains "
                "strong models on a sample of the rows, which vote on all of them."
            )
        check_output_file(out, *map(Path, ParquetTable(data).files))
    fit_file(
        data,
        options.pop("target"),
        out,
        output=output,
        cluster=cluster,
        in_blocks=bool(in_blocks),
        unlabeled=unlabeled,
        **options,
    )
    output.say("\nNext:")
    output.say(f"  damvi report {out} {shlex.quote(str(data))}")
    output.say(f"  damvi predict {out} NEW_DATA")
    if like is not None:
        output.say(f"  damvi compare {like} {out} {shlex.quote(str(data))}")


def check_guarantee(text: str) -> dict[str, float]:
    """The promise that is asked for, or a usage error."""
    from ..decision.guarantees import parse_guarantee

    try:
        rate, level = parse_guarantee(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return {rate: level}


def _option(name: str) -> str:
    """An option of :func:`damvi.model.train`, as it is given here."""
    return f"--{'weight' if name == 'sample_weight' else name.replace('_', '-')}"


def fit_file(
    data: Path,
    target: str,
    out: Path,
    *,
    output: Output,
    cluster: str | None = None,
    **options: Any,
) -> Model:
    """Fit on a file, save the model, and print its scores.

    ``options`` are those of :func:`damvi.model.train`.
    """
    from ..model import Watch, train
    from .figures import show_table
    from .resources import cluster_client

    class Shown(Watch):
        verbose = output.shows_progress

        def table(self, found: Prepared, aside: int = 0) -> None:
            show_table(output, data, found, aside)
            for note in found.notes:
                output.note(note)

        def say(self, text: str) -> None:
            output.note(text)

        def no_guarantee(self, text: str) -> None:
            """It is said beside the scores."""

        def worded(self, text: str) -> str:
            return text

    jobs, here = options.get("n_jobs"), nullcontext()
    where: Any = here if cluster is None else cluster_client(cluster, jobs, output)
    command = shlex.join(["damvi", *sys.argv[1:]])
    with output.warnings_as_notes(), where as client:
        found = train(
            data, target, client=client, command=command, watch=Shown(), **options
        )
    _save(output, found, out)
    return found.model


def _save(output: Output, found: Fit, out: Path) -> None:
    """Write the model and its scores, and print them."""
    from .._files import write_whole
    from .figures import show_scores

    model = found.model
    model.save(out)
    beside = out.with_name(f"{out.stem}.scores.json")
    summary = {"model": str(out), "scores_file": str(beside), **model.as_dict()}
    write_whole(beside, to_json(summary) + "\n")
    show_scores(output, model, found.comparison, found.metric)
    size = out.stat().st_size / 1e6
    output.say(f"\nSaved {out} ({size:.1f} MB) and its scores in {beside}.")
    output.result(summary)
