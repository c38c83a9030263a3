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

    Training rows are recognised, and judged by their stored out-of-sample votes, never by
    the model that has seen them. Of three or more classes
    each is judged against the rest; means count every class alike.
    """
    from ..evaluation import FittedVote, class_names, honest_rows, measure
    from ..tables import label_texts, pick
    from .figures import interval_table
    from .loading import load_with_table

    output = current_output()
    loaded, frame = load_with_table(model, data, target, output)
    names, fitted = class_names(loaded.target), FittedVote(loaded.classifier)
    two = len(names) == 2
    cost = tuple(loaded.scores.get("cost") or ()) if two else ()
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
    some, cut = judged.has_vote, loaded.classifier.threshold_
    labels = judged.labels[some]  # type: ignore[index]
    figures = measure(
        labels,
        judged.vote[some],
        judged.decided[some],
        judged.probability[some],
        cost=cost or None,
    )
    _show_counts(output, data, names, figures.confusion.sum(axis=1))
    output.say(judged.words)
    if judged.of_fit.any():
        known = _tuned_on_rows(fitted, two)
        if known:
            output.say(f"{known} on these rows too: new rows may do a bit worse.")
    output.say()
    output.show(interval_table(figures.overall))
    output.say()
    show = _show_flagged if two else _show_classes
    show(output, figures, names)
    output.result(
        {
            "rows": int(some.sum()),
            "training_rows": judged.n_of_fit,
            "rows_without_vote": int((~some).sum()),
            **_plain(figures, names),
            **({"threshold": float(cut)} if two else {"factors": cut.tolist()}),
        }
    )


def _plain(figures: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The figures for machines; of two classes, those of the positive one."""
    summary, table = figures.as_dict(), figures.confusion
    sizes, named = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    own = summary["by_class"] if len(names) > 2 else [{}, *summary["by_class"]]
    return {
        "classes": [
            {"class": name, "rows": sizes[c], "named": named[c], **own[c]}
            for c, name in enumerate(names)
        ],
        "figures": summary["overall"],
        "confusion": summary["confusion"],
        "confusion_shares": summary["shares"],
    }


def _show_counts(output: Output, data: Path, names: tuple[str, ...], sizes: Any) -> None:
    """How many rows there are of what."""
    total = int(sizes.sum())
    if len(names) == 2:
        found = int(sizes[1])
        output.say(
            f"{data}: {total:,} rows, {found:,} of them {names[1]!r} ({found / total:.2%})."
        )
        return
    output.say(f"{data}: {total:,} rows of {(sizes > 0).sum()} classes.")
    lacking = [repr(printable(name)) for name, n in zip(names, sizes, strict=True) if not n]
    if lacking:
        output.say(f"No row is {' or '.join(lacking[:5])}: the means are over the others.")


def _tuned_on_rows(fitted: Any, two: bool) -> str:
    """What was learned from training rows beside voters and weights."""
    if two:
        return "The threshold was tuned"
    if not (fitted.factors != 1).any():
        return "Probabilities were calibrated" if fitted.calibrates else ""
    calibrated = ", and probabilities calibrated," if fitted.calibrates else ""
    return f"The factors of the classes were tuned{calibrated}"


def _show_flagged(output: Output, figures: Any, names: tuple[str, ...]) -> None:
    """What was flagged, by what is true."""
    from .figures import plain_table

    (passed, alarms), (missed, found) = figures.confusion.tolist()
    rows = [
        [names[1], f"{found:,} found", f"{missed:,} missed"],
        ["others", f"{alarms:,} false alarms", f"{passed:,} passed"],
    ]
    output.show(plain_table(["", "flagged", "not flagged"], rows))


def _show_classes(output: Output, figures: Any, names: tuple[str, ...]) -> None:
    """Each class against the rest, and which are taken for which."""
    from .figures import class_table, mistakes, plain_table

    output.show(class_table(figures, names, output.columns))
    output.say()
    if len(names) > MOST_CLASSES:
        output.show(
            plain_table(["true", "decided", "rows"], mistakes(figures.confusion, names), 2)
        )
        return
    rows = [
        [name, *(f"{count:,}" for count in row)]
        for name, row in zip(names, figures.confusion.tolist(), strict=True)
    ]
    output.show(plain_table(["true \\ decided", *names], rows))
