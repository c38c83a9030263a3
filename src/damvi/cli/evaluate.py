"""``damvi evaluate``: what a model is worth on a table with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .fit import COST
from .talking import Talk, talk

Cost = tuple[float, float]


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

    Rows that the model was fitted on are known again: they are judged by their stored
    out-of-sample votes, never by the model that has seen them. Of three or more classes
    each is judged against the rest; means count every class alike.
    """
    from ..evaluation import ClassJudged, honest_rows
    from ..tables import label_texts, pick
    from .class_evaluation import tell_classes
    from .loading import load_with_table

    talks = talk()
    loaded, frame = load_with_table(model, data, target, talks)
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    name = target or loaded.target.name
    answered = label_texts(pick(frame, name, "target")).notna()
    if not answered.all():
        talks.note(f"Dropped {(~answered).sum():,} rows whose {name!r} is missing.")
        frame = frame.loc[answered].reset_index(drop=True)
    judged = honest_rows(loaded, frame, name)
    tell = tell_classes if isinstance(judged, ClassJudged) else tell_two
    told = tell(talks, data, loaded, judged, cost)
    some = judged.has_vote
    talks.result(
        {
            "rows": int(some.sum()),
            "rows_of_the_fit": judged.n_of_fit,
            "rows_without_vote": int((~some).sum()),
            **told,
        }
    )


def tell_two(
    talks: Talk, data: Path, loaded: Any, judged: Any, cost: Cost | None
) -> dict[str, Any]:
    """The positive class against the other: figures, and what was found and missed."""
    from ..evaluation import confusion, measure
    from .figures import confusion_table, interval_table

    some = judged.has_vote
    truth, flagged = judged.positive[some], judged.flagged[some]
    stored = loaded.scores.get("cost")
    if cost is None and stored:
        cost = tuple(stored)
    figures = measure(
        truth, judged.vote[some], flagged, judged.probability[some], cost=cost
    )
    counts = confusion(truth, flagged)
    talks.say(
        f"{data}: {len(truth):,} rows, {int(truth.sum()):,} of them "
        f"{loaded.target.positive!r} ({truth.mean():.2%}).\n{judged.words}"
    )
    if judged.of_fit.any():
        talks.say("The threshold was tuned on these rows too: new rows may do a bit worse.")
    talks.say()
    talks.show(interval_table(figures))
    talks.say()
    talks.show(confusion_table(counts, loaded.target.positive))
    return {
        "positives": int(truth.sum()),
        "figures": {key: figure.as_dict() for key, figure in figures.items()},
        "confusion": counts,
        "threshold": float(loaded.classifier.threshold_),
    }
