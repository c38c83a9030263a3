"""``damvi evaluate``: how good a model is on a table with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .console import Output, current_output, printable
from .fit import COST

MOST_CLASSES = 12
"""Classes whose confusion table is printed; of more, the most frequent mistakes are."""


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", metavar="COLUMN", help="The true answers. Default: the model's.")
@click.option("--cost-miss", type=COST, help="What a miss costs.")
@click.option("--cost-false-alarm", type=COST, help="What a false alarm costs.")
def evaluate(
    model: Path,
    data: Path,
    target: str | None,
    cost_miss: float | None,
    cost_false_alarm: float | None,
) -> None:
    """Judge MODEL on the table DATA, with intervals.

    Training rows are recognised, and judged as damvi fit judged them: by voters, weights
    and thresholds that had not seen them. Of three or more classes each is judged against
    the rest; means count every class alike.
    """
    from ..evaluation import FittedVote, class_names, honest_rows, measure
    from ..tables import label_texts, pick
    from .figures import interval_table
    from .loading import load_with_table

    output = current_output()
    loaded, frame = load_with_table(model, data, target, output)
    names, fitted = class_names(loaded.target), FittedVote(loaded.classifier)
    two = fitted.labels.is_binary
    cost = tuple(loaded.scores.get("cost") or ())
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
        if not two:
            raise ValueError(
                f"costs are for two classes, and the model has {len(names)}; leave them out"
            )
    name = target or loaded.target.name
    answered = label_texts(pick(frame, name, "target")).notna()
    if not answered.all():
        output.note(f"Dropped {(~answered).sum():,} rows whose {name!r} is missing.")
        frame = frame.loc[answered].reset_index(drop=True)
    judged = honest_rows(loaded, frame, name)
    some = judged.has_vote
    labels = judged.labels[some]  # type: ignore[index]
    figures = measure(
        labels,
        judged.vote[some],
        judged.decided[some],
        judged.probability[some],
        cost=cost or None,
    )
    say = _OneClass() if two else _EachClass()
    for line in say.counts(data, names, figures.confusion.sum(axis=1)):
        output.say(line)
    output.say(judged.words)
    output.say()
    output.show(interval_table(figures))
    output.say()
    say.show(output, figures, names)
    output.result(
        {
            "rows": int(some.sum()),
            "training_rows": judged.n_of_fit,
            "rows_without_vote": int((~some).sum()),
            **_plain(figures, names, fitted.labels.reported.tolist()),
            **fitted.labels.told(fitted.threshold),
        }
    )


def _plain(figures: Any, names: tuple[str, ...], reported: list[int]) -> dict[str, Any]:
    """The figures for machines; of two classes, those of the positive one."""
    summary, table = figures.as_dict(), figures.confusion
    sizes, named = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    own = dict(zip(reported, summary["by_class"], strict=True))
    return {
        "classes": [
            {"class": name, "rows": sizes[c], "named": named[c], **own.get(c, {})}
            for c, name in enumerate(names)
        ],
        "figures": summary["overall"],
        "chances": summary["chances"],
        "confusion": summary["confusion"],
        "confusion_shares": summary["shares"],
    }


class _OneClass:
    """What is printed of a positive class and the rest."""

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        """How many rows there are of what."""
        n, found = int(sizes.sum()), int(sizes[1])
        return [f"{data}: {n:,} rows, {found:,} of them {names[1]!r} ({found / n:.2%})."]

    def show(self, output: Output, figures: Any, names: tuple[str, ...]) -> None:
        """What was flagged, by what is true."""
        from .figures import plain_table

        (passed, alarms), (missed, found) = figures.confusion.tolist()
        rows = [
            [names[1], f"{found:,} found", f"{missed:,} missed"],
            ["others", f"{alarms:,} false alarms", f"{passed:,} passed"],
        ]
        output.show(plain_table(["", "flagged", "not flagged"], rows))


class _EachClass:
    """What is printed of several classes."""

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        first = f"{data}: {int(sizes.sum()):,} rows of {(sizes > 0).sum()} classes."
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
