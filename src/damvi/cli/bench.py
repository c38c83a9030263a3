"""``damvi bench``: DAMVI against other models on the user's own table."""

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
@click.option(
    "--positive", metavar="VALUE", help="The positive class; all other values are negative."
)
@click.option(
    "--group", metavar="COLUMN", help="Rows with the same value stay in the same split."
)
@click.option("--drop", metavar="COLUMN", multiple=True, help="Ignore this column.")
@click.option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    help="Use this column even if damvi would drop it.",
)
@click.option(
    "--contenders", metavar="A,B", help="Models to compare. Default: all installed ones."
)
@click.option("--splits", "n_splits", type=click.IntRange(1), default=10, show_default=True)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also measure precision and recall among the K highest-scoring test rows.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "latex"]),
    default="terminal",
    show_default=True,
    help="How to print the table. Markdown and LaTeX files are always written.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
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
    """Benchmark DAMVI against other models on DATA.

    \b
        damvi bench data.csv --target is_fraud

    DATA is read as in damvi fit. On stratified 70/30 splits, each model is trained, its
    threshold is tuned on out-of-fold training rows, and its F1 and average precision on the
    test rows are compared pairwise with DAMVI's. --top adds precision and recall at a
    budget of K alerts.

    Scores are saved to the results folder as they come in. You can interrupt the command
    at any time and run it again to resume.
    """
    from joblib import cpu_count

    from ..benchmark import available_contenders, columns, compare
    from ..contenders import CONTENDERS, make_contender
    from ..model import prepare
    from ..tables import read_table
    from .figures import show_table

    output = current_output()
    if contenders is None:
        names, missing = available_contenders()
        if missing:
            needed = ", ".join(sorted(set(missing.values())))
            output.note(
                f"Skipped: {', '.join(missing)}. To include all, run pip install "
                f"'damvi[bench]' (not installed: {needed})."
            )
    else:
        by_name = {name.lower(): name for name in CONTENDERS}
        typed = [name.strip() for name in contenders.strip(" ,").split(",")]
        names = list(dict.fromkeys(by_name.get(name.lower(), name) for name in typed))
        for name in names:
            make_contender(name)  # fails early if something is wrong
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
        raise click.ClickException(f"no model could be fitted: {found.scores.note[0]}")
    from .._files import write_whole

    texts = {"table.md": found.to_markdown(), "table.tex": found.to_latex()}
    for name, text in texts.items():
        write_whole(folder / name, text)
    if form == "terminal":
        output.show(found.to_terminal())
    else:
        output.say(texts["table.md" if form == "markdown" else "table.tex"])
    output.say(f"\nSaved {', '.join([SCORES, *texts])} to {folder}.")
    output.result(
        {
            "folder": str(folder),
            "reference": found.reference,
            "summary": found.summary.to_dict("index"),
            "scores": found.scores.to_dict("records"),
        }
    )


def _settings(table: Prepared, seed: int, top: int | None) -> dict[str, Any]:
    """Everything the scores depend on besides the contender and the split."""
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
    """Scores saved by an earlier run, if it had the same rows and settings."""
    import pandas as pd

    from .._files import write_whole

    folder.mkdir(parents=True, exist_ok=True)
    scores, made_by = folder / SCORES, folder / SETTINGS
    same = made_by.is_file() and made_by.read_text("utf-8") == json.dumps(settings)
    if scores.is_file() and same:
        # Drop a partly written last line.
        lines = scores.read_text("utf-8").splitlines(keepends=True)
        write_whole(scores, "".join(line for line in lines if line.endswith("\n")))
        empty = dict.fromkeys(names[2:-1], "")
        known = pd.read_csv(scores, keep_default_na=False, na_values=empty)
        known = known.drop_duplicates(["contender", "split"], keep="last")
        output.note(f"Resuming: {len(known)} scores are already in {scores}.")
        return known
    if scores.is_file():
        output.note(f"Overwriting {scores}: it has other rows or settings.")
    write_whole(scores, ",".join(names) + "\n")
    write_whole(made_by, json.dumps(settings))
    return None


class _Follow:
    """Saves each score as it comes in and shows progress."""

    def __init__(self, scores: Path, names: list[str], output: Output) -> None:
        self._scores, self._names, self._output = scores, names, output
        self._start = time.monotonic()

    def __call__(self, done: int, total: int, row: dict[str, Any]) -> None:
        import pandas as pd

        line = pd.DataFrame([row], columns=self._names)
        with self._scores.open("a", encoding="utf-8") as file:
            line.to_csv(file, header=False, index=False, lineterminator="\n")
        result = f"F1 {row['f1']:.3f} AP {row['ap']:.3f}"
        left = (time.monotonic() - self._start) * (total - done) / done
        self._output.note(
            f"[{done}/{total}] {row['contender']} split {row['split']}: "
            f"{printable(row['note']) or result}"
            + (f"  about {in_words(left)} left" if done < total else "")
        )


def in_words(seconds: float) -> str:
    """A duration, rounded for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"{round(minutes)} min" if minutes < 90 else f"{minutes / 60:.1f} h"
