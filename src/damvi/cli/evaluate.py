"""``damvi evaluate``: how good a model is on a table with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..messages import counted
from .console import check_output_file, current_output
from .fit import COST, SHARE, check_guarantee


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", metavar="COLUMN", help="The true answers. Default: the model's.")
@click.option("--cost-miss", type=COST, help="What a miss costs.")
@click.option("--cost-false-alarm", type=COST, help="What a false alarm costs.")
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also what is found if the K rows with the highest scores are looked into.",
)
@click.option(
    "--guarantee",
    metavar="RATE=LEVEL",
    help="A threshold that is promised to keep a rate on rows to come: recall=0.9, "
    "precision=0.5 or false_alarm_rate=0.01. Training rows are left out for it.",
)
@click.option("--confidence", type=SHARE, default=0.9, help="Of the guarantee. [0.9]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Where to save the model with the threshold of the guarantee.",
)
def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    cost_miss: float | None,
    cost_false_alarm: float | None,
    top: int | None,
    guarantee: str | None,
    confidence: float,
    out: Path | None,
) -> None:
    """Judge MODEL on the table DATA, with intervals.

    Training rows are recognised, and judged as damvi fit judged them: by voters, weights
    and thresholds that had not seen them. Of three or more classes each is judged against
    the rest; means count every class alike. DATA may be a folder of parquet files or a
    quoted pattern, as for damvi fit, and is read in blocks then.

    With --guarantee the rows that are new to MODEL give a threshold with a promise, if they
    are enough for one; -o saves the model that decides by it.
    """
    from .figures import interval_table, show_guarantee, wording
    from .loading import load_with_table

    output = current_output()
    if out is not None and guarantee is None:
        raise click.UsageError("-o saves a model with a guarantee; give --guarantee too")
    asked = None if guarantee is None else check_guarantee(guarantee)
    if out is not None:
        check_output_file(out, model, data)
    loaded, table = load_with_table(model, data, target, output, blocks=True)
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    found = loaded.evaluate(table, target=target, cost=cost, top=top)
    if found.dropped:
        name = target or loaded.target.name
        output.note(f"Dropped {counted(found.dropped, 'row')} whose {name!r} is missing.")
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
        how: Any = {**asked, "confidence": confidence, "target": target}
        promise = loaded.guarantee(table, **how)
        show_guarantee(output, promise.as_dict())
        summary["guarantee"] = promise.as_dict()
        if out is not None and promise.threshold is None:
            raise ValueError(f"without a guarantee {out} is not written")
        if out is not None:
            loaded.with_guarantee(promise).save(out)
            output.say(f"Saved {out}, which decides by it.")
    output.result(summary)
