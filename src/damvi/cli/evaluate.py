"""``damvi evaluate``: what a model is worth on a table with known answers."""

from __future__ import annotations

from pathlib import Path

import click

from .fit import COST
from .talking import talk


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
    out-of-sample votes, never by the model that has seen them.
    """
    from ..evaluation import confusion, honest_rows, measure
    from ..tabular import label_texts, pick
    from .figures import confusion_table, interval_table
    from .loading import load_with_table

    talks = talk()
    loaded, frame = load_with_table(model, data, target, talks)
    name = target or loaded.target.name
    answered = label_texts(pick(frame, name, "target")).notna()
    if not answered.all():
        talks.note(f"Dropped {(~answered).sum():,} rows whose {name!r} is missing.")
        frame = frame.loc[answered].reset_index(drop=True)
    judged = honest_rows(loaded, frame, name)
    assert judged.positive is not None  # the column is there: pick found it
    some = judged.has_vote
    truth, flagged = judged.positive[some], judged.flagged[some]
    stored = loaded.scores.get("cost")
    cost = tuple(stored) if stored else None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
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
    talks.result(
        {
            "rows": len(truth),
            "positives": int(truth.sum()),
            "rows_of_the_fit": int(judged.of_fit.sum()),
            "rows_without_vote": int((~some).sum()),
            "figures": {key: figure.as_dict() for key, figure in figures.items()},
            "confusion": counts,
            "threshold": float(loaded.classifier.threshold_),
        }
    )
