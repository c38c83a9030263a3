"""``damvi evaluate``: how good a model is on a labelled table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..messages import counted
from .console import check_output_file, current_output, load_with_table
from .fit import COST, SHARE, check_guarantee


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--target", metavar="COLUMN", help="Column of true labels. Default: the model's target."
)
@click.option("--cost-miss", type=COST, help="Cost of a missed positive. [1]")
@click.option("--cost-false-alarm", type=COST, help="Cost of a false alarm. [1]")
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also show how many positives are among the K highest-scoring rows.",
)
@click.option(
    "--guarantee",
    metavar="RATE=LEVEL",
    help="Find a threshold that guarantees a rate on new rows: recall=0.9, precision=0.5 "
    "or false_alarm_rate=0.01. Training rows in DATA are not used for it.",
)
@click.option("--confidence", type=SHARE, help="Confidence of the guarantee. [0.9]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Save the model with the guaranteed threshold here.",
)
def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    cost_miss: float | None,
    cost_false_alarm: float | None,
    top: int | None,
    guarantee: str | None,
    confidence: float | None,
    out: Path | None,
) -> None:
    """Evaluate MODEL on labelled DATA.

    Every score comes with a confidence interval. Training rows are recognised and scored
    out of sample, as in damvi fit: by voters, weights and thresholds that never saw them.
    With three or more classes, each is scored against the rest, and macro scores are plain
    means over the classes. DATA may be a folder of parquet files or a quoted pattern, which
    is read in blocks.

    With --guarantee, the rows that are new to MODEL are used to find a threshold with a
    guarantee, if there are enough of them; -o saves the model with that threshold.
    """
    from .figures import interval_table, show_guarantee, wording

    output = current_output()
    if out is not None and guarantee is None:
        raise click.UsageError("-o saves a model with a guarantee; add --guarantee")
    if confidence is not None and guarantee is None:
        raise click.UsageError("--confidence needs --guarantee")
    asked = None if guarantee is None else check_guarantee(guarantee)
    if out is not None:
        check_output_file(out, model, data)
    loaded, table = load_with_table(model, data, target, output, blocks=True, labelled=True)
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    found = loaded.evaluate(table, target=target, cost=cost, top=top)
    if found.dropped:
        name = target or loaded.target.name
        output.note(f"Dropped {counted(found.dropped, 'row')} with a missing {name!r}.")
    figures, names = found.figures, found.names
    say = wording(loaded.target.texts)
    for line in say.counts(data, names, figures.confusion.sum(axis=1)):
        output.say(line)
    output.say(found.words)
    output.say()
    output.show(interval_table(figures))
    output.say()
    say.show_confusion(output, figures, names)
    summary = found.as_dict()
    for line in found.remarks:
        output.say(f"\n{line}")
    if asked is not None:
        how: Any = {**asked, "target": target}
        if confidence is not None:
            how["confidence"] = confidence
        promise = loaded.guarantee(table, **how)
        show_guarantee(output, promise.as_dict())
        summary["guarantee"] = promise.as_dict()
        if out is not None and promise.threshold is None:
            raise ValueError(f"no guarantee could be made, so {out} was not written")
        if out is not None:
            loaded.with_guarantee(promise).save(out)
            output.say(f"Saved the model with this threshold to {out}.")
    output.result(summary)
