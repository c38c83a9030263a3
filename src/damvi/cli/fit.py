"""``damvi fit``: from a table file to a model file."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import (
    Output,
    check_output_file,
    cluster_client,
    current_output,
    load_whole,
    write_json,
)

if TYPE_CHECKING:
    from ..io import ModelParts
    from ..model import Fit, Metric, Model

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
    help="Reuse the target, settings, columns and threshold rule of this older model. "
    "Options given here take precedence.",
)
@click.option(
    "--positive",
    metavar="VALUE",
    help="The positive class; all other values are negative. Default: the rarer of two "
    "values, or a multiclass model if there are more.",
)
@click.option(
    "--metric",
    help="What to optimise: f1 (default), ap, recall@0.9 (best precision at 90% recall), "
    "precision@0.5 (best recall at 50% precision), flags@200 (flag 200 rows per table the "
    "size of DATA; also flags@1% or flags@200/10000) or cost. With three or more classes: "
    "macro_f1 (default) or macro_ap.",
)
@click.option(
    "--guarantee",
    metavar="RATE=LEVEL",
    help="Guarantee a rate on new rows: recall=0.9, precision=0.5 or "
    "false_alarm_rate=0.01. Sets rows aside that are not used for training.",
)
@click.option(
    "--confidence", type=SHARE, default=0.9, help="Confidence of the guarantee. [0.9]"
)
@click.option(
    "--guarantee-size",
    type=SHARE,
    default=0.3,
    help="Share of rows to set aside for the guarantee. [0.3]",
)
@click.option(
    "--cost-miss",
    type=COST,
    help="Cost of a missed positive. [1] Costs are minimised, unless --metric or --like "
    "says otherwise.",
)
@click.option("--cost-false-alarm", type=COST, help="Cost of a false alarm. [1]")
@click.option(
    "--pool",
    type=click.Choice(["strong", "trees", "best"]),
    default="strong",
    show_default=True,
    help="strong: a vote of strong models of several kinds. trees: the paper's trees, "
    "fitted in seconds. best: the single best strong model.",
)
@click.option(
    "--sample-rows",
    type=click.IntRange(1),
    metavar="N",
    help="Rows to train strong models on when DATA is read in blocks. [200000]",
)
@click.option(
    "--out-of-core",
    is_flag=True,
    help="Read parquet in blocks instead of loading it into memory. Folders, patterns and "
    "files too large for memory are always read this way.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Fit on a Dask cluster, such as tcp://host:8786; local starts one on this "
    "machine. DATA must be parquet.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Train for about this long. Tight limits mean fewer voters, or fewer training "
    "rows.",
)
@click.option(
    "--prefer",
    type=click.Choice(["speed"]),
    help="Faster predictions: drop voters that add too little for the time they take.",
)
@click.option(
    "--unlabeled",
    type=DATA,
    metavar="FILE",
    help="A file of unlabelled rows to learn from, besides those in DATA.",
)
@click.option(
    "--unlabeled-weight",
    type=click.FloatRange(0, 1, max_open=True),
    help="Weight of the voters' disagreement on unlabelled rows. Default: unlabelled rows "
    "are dropped.",
)
@click.option(
    "--time",
    metavar="COLUMN",
    help="Timestamp of each row. Rows are then scored by models trained on earlier rows "
    "only.",
)
@click.option(
    "--shuffle",
    is_flag=True,
    help="Use random folds even if the rows look ordered by time.",
)
@click.option(
    "--merge-labels",
    is_flag=True,
    help="Treat labels that differ only in case or spaces (Fraud, fraud) as one.",
)
@click.option(
    "--group", metavar="COLUMN", help="Rows with the same value stay in the same fold."
)
@click.option("--weight", metavar="COLUMN", help="Sample weights for training.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="Ignore this column.")
@click.option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    help="Use this column even if damvi would drop it.",
)
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
    """Fit a model on DATA and print honest scores.

    \b
        damvi fit data.csv --target is_fraud

    DATA is a CSV, TSV, JSON, JSON lines, parquet, feather or Excel file; the first four may
    be compressed (.gz, .bz2, .zst, .zip). Column types are inferred and printed; ids and
    constants are dropped, and free text is encoded as numbers. Scores are out of sample:
    each row is scored by models, weights and thresholds that never saw its label.

    If the target has two values, the rarer one is the positive class. If it has more, the
    model is multiclass.

    DATA may also be a folder of parquet files, or a quoted pattern such as "pay/*.parquet".
    These, and parquet files too large for memory, are read in blocks. The voters are then
    trees by default; --pool strong trains strong models on a sample of the rows instead. To
    resume an interrupted fit of trees, run the same command again.
    """
    from ..model import options_like, refuse_in_blocks, why_in_blocks
    from ..outofcore import ParquetTable

    output = current_output()
    if target is None and like is None:
        raise click.UsageError("give the column to predict with --target COLUMN")
    if guarantee is not None:
        check_guarantee(guarantee)
    check_output_file(out, data, *([] if like is None else [like]))
    older = None if like is None else load_whole(like, output)
    asked = _metric(metric, cost_false_alarm, cost_miss, older)
    if asked is not None and metric is None and asked.name != "cost":
        output.note(
            f"The metric is {asked.words}, as in the older model; to minimise the costs, "
            f"add --metric cost."
        )
    where = {"--out-of-core": out_of_core, "--cluster": cluster is not None}
    in_blocks = [name for name, given in where.items() if given]
    if in_blocks and data.is_file() and data.suffix.lower() != ".parquet":
        raise click.UsageError(f"{in_blocks[0]} needs parquet files; {data} is not one")
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
        output.note(f"Reading in blocks (out of core): {why}.")
        if older is None and not typed["pool"]:
            options["pool"] = "trees"
            output.note(
                "The voters are the paper's trees. --pool strong is slower: it trains "
                "strong models on a sample of the rows, and all rows are voted on."
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
    """Parse a guarantee such as recall=0.9, or raise a usage error."""
    from ..decision.guarantees import parse_guarantee

    try:
        rate, level = parse_guarantee(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return {rate: level}


def _metric(
    name: str | None, false_alarm: float | None, miss: float | None, older: Model | None
) -> Metric | None:
    """The metric that was asked for; None if nothing was.

    What was not given is that of the older model. Without one, costs are minimised.
    """
    from ..model import parse_metric

    if name is None and false_alarm is None and miss is None:
        return None
    before = {} if older is None else older.scores
    known, cost = before.get("cost"), None
    if known or false_alarm is not None or miss is not None:
        usual = known or (1.0, 1.0)
        cost = (false_alarm or float(usual[0]), miss or float(usual[1]))
    try:
        return parse_metric(name or before.get("metric") or "cost", cost)
    except ValueError as error:
        hint = ""
        if name is None and before.get("metric"):
            whose = f"{before['metric']} is the metric of the older model"
            hint = f" ({whose}; to minimise costs, add --metric cost)"
        raise click.UsageError(f"{error}{hint}") from None


def _option(name: str) -> str:
    """The command-line name of an option of :func:`damvi.model.plan_fit`."""
    return f"--{'weight' if name == 'sample_weight' else name.replace('_', '-')}"


def fit_file(
    data: Path,
    target: str,
    out: Path,
    *,
    output: Output,
    cluster: str | None = None,
    **options: Any,
) -> ModelParts:
    """Fit on a file, save the model and print its scores.

    ``options`` are passed to :func:`damvi.model.plan_fit`.
    """
    from ..model import plan_fit, train
    from .figures import show_table

    jobs, here = options.get("n_jobs"), nullcontext()
    where: Any = here if cluster is None else cluster_client(cluster, jobs, output)
    options["command"] = shlex.join(["damvi", *sys.argv[1:]])
    options["verbose"] = output.shows_progress
    with output.warnings_as_notes(), where as client:
        plan = plan_fit(data, target, client=client, **options)
        table, aside = plan.table, plan.aside
        show_table(output, data, table, 0 if aside is None else len(aside.rows))
        for note in (*table.notes, *plan.notes):
            output.note(note)
        found = train(plan, output.note)
    for text in found.doubts:
        output.note(f"Note: {text}")
    _save(output, found, out)
    return found.model


def _save(output: Output, found: Fit, out: Path) -> None:
    """Write the model and its scores, and print the scores."""
    from ..io import save
    from .figures import show_scores

    model = found.model
    save(model, out)
    beside = out.with_name(f"{out.stem}.scores.json")
    summary = {"model": str(out), "scores_file": str(beside), **model.as_dict()}
    write_json(beside, summary)
    show_scores(output, model, found.comparison, found.metric)
    size = out.stat().st_size / 1e6
    output.say(f"\nSaved the model to {out} ({size:.1f} MB) and its scores to {beside}.")
    output.result(summary)
