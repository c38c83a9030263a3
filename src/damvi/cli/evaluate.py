"""``damvi evaluate``: how good a model is on a table with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..messages import counted
from .console import Output, check_output_file, current_output, printable
from .fit import COST, SHARE, check_guarantee

MOST_CLASSES = 12
"""Classes whose confusion table is printed; of more, the most frequent mistakes are."""


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
    from .figures import interval_table, show_guarantee
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
    say = _EachClass() if loaded.target.classes else _OneClass()
    for line in say.counts(data, names, figures.confusion.sum(axis=1)):
        output.say(line)
    output.say(found.words)
    output.say()
    output.show(interval_table(figures))
    output.say()
    say.show(output, figures, names)
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


class _OneClass:
    """What is printed of a positive class and the rest."""

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        """How many rows there are of what."""
        n, found = int(sizes.sum()), int(sizes[1])
        return [
            f"{data}: {counted(n, 'row')}, {found:,} of them {names[1]!r} "
            f"({found / n:.2%})."
        ]

    def show(self, output: Output, figures: Any, names: tuple[str, ...]) -> None:
        """What was flagged, by what is true."""
        from .figures import plain_table

        (passed, alarms), (missed, found) = figures.confusion.tolist()
        rows = [
            [names[1], f"{found:,} found", f"{missed:,} missed"],
            ["others", counted(alarms, "false alarm"), f"{passed:,} passed"],
        ]
        output.show(plain_table(["", "flagged", "not flagged"], rows))


class _EachClass:
    """What is printed of several classes."""

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        classes = counted((sizes > 0).sum(), "class", "classes")
        first = f"{data}: {counted(sizes.sum(), 'row')} of {classes}."
        lacking = [repr(printable(names[c])) for c in (sizes == 0).nonzero()[0]]
        if not lacking:
            return [first]
        them = " or ".join(lacking[:5])
        return [first, f"No row is {them}: the means are over the others."]

    def show(self, output: Output, figures: Any, names: tuple[str, ...]) -> None:
        """Each class against the rest, and which are taken for which."""
        from .figures import class_table, mistakes, plain_table

        output.show(class_table(figures, names, output.columns))
        output.say()
        if len(names) > MOST_CLASSES:
            pairs = mistakes(figures.confusion, names)
            output.show(plain_table(["true", "decided", "rows"], pairs, 2))
            return
        rows = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(names, figures.confusion.tolist(), strict=True)
        ]
        output.show(plain_table(["true \\ decided", *names], rows))
