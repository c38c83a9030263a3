"""``damvi bench``: DAMVI beside other models on a table of the user's own."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import Output, current_output, printable

if TYPE_CHECKING:
    import pandas as pd

    from ..model import Prepared

SCORES, SETTINGS = "scores.csv", "settings.json"


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", metavar="COLUMN", required=True, help="The column to predict.")
@click.option("--positive", metavar="VALUE", help="The value to find, against all others.")
@click.option("--group", metavar="COLUMN", help="Which rows belong together.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="Do not use this column.")
@click.option("--keep", metavar="COLUMN", multiple=True, help="Use it, whatever it seems.")
@click.option(
    "--contenders", metavar="A,B", help="Only these. Default: all that are installed."
)
@click.option("--splits", "n_splits", type=click.IntRange(1), default=10, show_default=True)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also tell what the K test rows with the highest scores of each split hold.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "latex"]),
    default="terminal",
    show_default=True,
    help="How the table is printed. Files have the other two in any case.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="Threads. Default: all cores.")
@click.option(
    "-o", "--out", type=click.Path(file_okay=False, path_type=Path), help="Results folder."
)
def bench(
    data: Path,
    target: str,
    positive: str | None,
    group: str | None,
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    contenders: str | None,
    n_splits: int,
    top: int | None,
    form: str,
    seed: int,
    jobs: int | None,
    out: Path | None,
) -> None:
    """Compare DAMVI with other models on the table DATA.

    \b
        damvi bench data.csv --target is_fraud

    DATA is read as damvi fit reads it. Over stratified 70/30 splits, each contender is
    trained with its threshold tuned on training rows that it has not seen, judged on the
    test rows by F1 and average precision, and compared in pairs with DAMVI. With --top,
    also by the precision and the recall of a budget of so many alerts.

    Scores are kept in the results folder as they are made: interrupt the command when you
    like, and the same command goes on where it stopped.
    """
    from joblib import cpu_count

    from ..benchmark import available_contenders, columns, compare
    from ..contenders import make_contender
    from ..model import prepare
    from ..tables import read_table
    from .figures import show_table

    output = current_output()
    if contenders is None:
        names, reasons = available_contenders()
        for reason in reasons:
            output.note(f"Left out: {reason}")
    else:
        names = list(dict.fromkeys(name.strip() for name in contenders.split(",")))
        for name in names:
            make_contender(name)  # says what is wrong with it, before the work
    frame = read_table(data, as_text=[target])
    table = prepare(frame, target, positive, group=group, keep=keep, drop=drop)
    show_table(output, data, table)
    folder = out or Path("damvi-bench") / data.name.split(".")[0]
    known = _open(folder, _settings(table, seed, top), columns(top), output)
    found = compare(
        table.X,
        table.y,
        names,
        pos_label=table.target.pos_label,
        groups=table.groups,
        n_splits=n_splits,
        top=top,
        random_state=seed,
        n_jobs=jobs or cpu_count(),
        known=known,
        follow=_Follow(folder / SCORES, columns(top), output),
    )
    if found.scores["f1"].isna().all():
        raise click.ClickException(f"no contender could be fitted: {found.scores.note[0]}")
    from .._files import write_whole

    texts = {"table.md": found.to_markdown(), "table.tex": found.to_latex()}
    for name, text in texts.items():
        write_whole(folder / name, text)
    if form == "terminal":
        output.show(found.to_terminal())
    else:
        output.say(texts["table.md" if form == "markdown" else "table.tex"])
    output.say(f"\nWritten to {folder}: {', '.join([SCORES, *texts])}")
    output.result(
        {
            "folder": str(folder),
            "reference": found.reference,
            "summary": found.summary.to_dict("index"),
            "scores": found.scores.to_dict("records"),
        }
    )


def _settings(table: Prepared, seed: int, top: int | None) -> dict[str, Any]:
    """What scores depend on beyond the contender and the split."""
    from pandas.util import hash_pandas_object

    from .. import __version__

    digest = hashlib.sha256(repr(list(table.X.columns)).encode())
    digest.update(hash_pandas_object(table.X, index=False).to_numpy().tobytes())
    digest.update(table.y.tobytes())
    if table.groups is not None:
        digest.update(repr(table.groups.tolist()).encode())
    found = {"damvi": __version__, "rows": digest.hexdigest(), "seed": seed}
    return found if top is None else {**found, "top": top}


def _open(
    folder: Path, settings: dict[str, Any], names: list[str], output: Output
) -> pd.DataFrame | None:
    """The scores that an earlier run has left, if they are of the same rows."""
    import pandas as pd

    from .._files import write_whole

    folder.mkdir(parents=True, exist_ok=True)
    scores, made_by = folder / SCORES, folder / SETTINGS
    same = made_by.is_file() and made_by.read_text("utf-8") == json.dumps(settings)
    if scores.is_file() and same:
        # A line that was not written whole is none.
        lines = scores.read_text("utf-8").splitlines(keepends=True)
        write_whole(scores, "".join(line for line in lines if line.endswith("\n")))
        empty = dict.fromkeys(names[2:-1], "")
        known = pd.read_csv(scores, keep_default_na=False, na_values=empty)
        known = known.drop_duplicates(["contender", "split"], keep="last")
        output.note(f"{len(known)} scores are in {scores} already.")
        return known
    if scores.is_file():
        output.note(f"{scores} is of other rows or settings, and is written anew.")
    write_whole(scores, ",".join(names) + "\n")
    write_whole(made_by, json.dumps(settings))
    return None


class _Follow:
    """Writes each score as it comes, and tells how far the comparison is."""

    def __init__(self, scores: Path, names: list[str], output: Output) -> None:
        self._scores, self._names, self._output = scores, names, output
        self._start = time.monotonic()

    def __call__(self, done: int, total: int, row: dict[str, Any]) -> None:
        import pandas as pd

        line = pd.DataFrame([row], columns=self._names)
        with self._scores.open("a", encoding="utf-8") as file:
            line.to_csv(file, header=False, index=False, lineterminator="\n")
        said = f"F1 {row['f1']:.3f} AP {row['ap']:.3f}"
        left = (time.monotonic() - self._start) * (total - done) / done
        self._output.note(
            f"[{done}/{total}] {row['contender']} split {row['split']}: "
            f"{printable(row['note']) or said}"
            + (f"  about {in_words(left)} left" if done < total else "")
        )


def in_words(seconds: float) -> str:
    """A time that a person waits, without false precision."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"{round(minutes)} min" if minutes < 90 else f"{minutes / 60:.1f} h"
