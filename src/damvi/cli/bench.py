"""``damvi bench``: DAMVI against its peers, on the paper's data or the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from .following import Following
from .talking import talk

PAPER_RATIOS = (0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
QUICK_RATIOS = (0.2, 1.0, 3.0, 10.0)


@click.command()
@click.argument("data", nargs=-1, metavar="[DATA]...")
@click.option("--paper", is_flag=True, help="The paper's datasets, tables and figure.")
@click.option("--quick", is_flag=True, help="Mammography, two splits: a few minutes.")
@click.option("--target", metavar="COLUMN", help="The column to predict, for a file.")
@click.option("--positive", metavar="VALUE", help="The value of the target that is rare.")
@click.option("--groups", metavar="COLUMN", help="Column of groups, for --split-by groups.")
@click.option("--methods", metavar="A,B", help="Only these methods. Default: all.")
@click.option("--splits", "n_splits", type=click.IntRange(1), help="Splits. Default: 5.")
@click.option(
    "--split-by",
    "kind",
    type=click.Choice(["random", "stratified", "groups"]),
    default="random",
    show_default=True,
    help="How rows are split: plain random is the paper's way.",
)
@click.option("--ratios", metavar="0.5,2", help="Thin to these percentages of positives.")
@click.option(
    "--trees",
    type=click.Choice(["fast", "cart"]),
    default="fast",
    show_default=True,
    help="Trees of DAMVI and the bagging baselines: built-in, or scikit-learn's.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=0,
    show_default=True,
    help="Seed of splits and methods.",
)
@click.option(
    "-o", "--out", type=click.Path(file_okay=False, path_type=Path), help="Results folder."
)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of datasets.",
)
@click.option("--jobs", type=click.IntRange(1), help="Cells at a time. Default: all cores.")
@click.option(
    "--memory",
    type=click.FloatRange(0, min_open=True),
    metavar="GB",
    help="Memory for cells side by side.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    default=3600.0,
    show_default=True,
    help="Seconds that a cell may take.",
)
def bench(
    data: tuple[str, ...],
    paper: bool,
    quick: bool,
    target: str | None,
    positive: str | None,
    groups: str | None,
    methods: str | None,
    n_splits: int | None,
    kind: Any,
    ratios: str | None,
    trees: Any,
    seed: int,
    out: Path | None,
    data_dir: Path | None,
    jobs: int | None,
    memory: float | None,
    time_limit: float,
) -> None:
    """Compare DAMVI with the paper's nine baselines and four modern ones.

    DATA are names of datasets (see: damvi datasets) or tables of your own, such as

    \b
        damvi bench data.csv --target is_fraud

    Finished cells are kept in the results folder: break the run off when you like, and
    the same command goes on where it stopped.
    """
    from joblib import cpu_count

    from ..bench import Plan, Protocol, run

    if sum([bool(data), paper, quick]) != 1:
        raise click.UsageError("give one of DATA, --paper or --quick")
    if ratios and len(data) > 1:
        raise click.UsageError("--ratios takes one dataset at a time")
    protocol = Protocol(splits=kind, seed=seed)
    chosen = _choose_methods(methods)
    names = ["mammography"] if quick else list(dict.fromkeys(data))
    names = _paper_names(data_dir) if paper else names
    shares = _read_shares(ratios, PAPER_RATIOS if paper else QUICK_RATIOS if quick else ())
    folder = out or _default_folder(names, paper, quick)
    n_splits = n_splits or (2 if quick else 5)

    def run_part(part: Path, names: Sequence[str], at: Sequence[float | None]) -> Any:
        datasets = _load_each(names, data_dir, target, positive, groups)
        with Following(talk().quiet) as follow:
            return run(
                Plan(datasets, chosen, n_splits, at, trees),
                part,
                protocol,
                n_jobs=jobs or cpu_count(),
                memory_mb=memory and memory * 1000,
                time_limit=time_limit,
                follow=follow,
            )

    cells = run_part(folder, names, [None])
    thinned = ["mammography"] if paper else names
    thin_cells = run_part(folder / "ratios", thinned, shares) if shares else None
    _report(cells, thin_cells, folder, protocol.words)
    if not any(cell["status"] == "done" for cell in cells):
        raise click.ClickException("no cell could be run; the notes say why")


def _choose_methods(asked: str | None) -> list[str]:
    """The methods by name; of all, those whose packages are installed."""
    from ..baselines import METHODS, make_method

    if asked is not None:
        names = [name.strip() for name in asked.split(",")]
        for name in names:
            make_method(name)  # says what is wrong with it, if anything
        return list(dict.fromkeys(names))
    names = []
    for name, method in METHODS.items():
        if method.kind not in ("paper", "beyond"):
            continue
        try:
            make_method(name)
            names.append(name)
        except ImportError as error:
            talk().note(f"Left out: {error}")
    return names


def _paper_names(data_dir: Path | None) -> list[str]:
    """The paper's datasets that can be had; what has to be placed by hand is said."""
    from ..datasets import names

    found = {record["name"]: record for record in names(data_dir)}
    chosen = []
    for name, record in found.items():
        if not record["paper"]:
            continue
        part = f"{name}_partial"
        at_hand = record["where"] in ("bundled", "made here", "folder", "cache")
        if not at_hand and part in found and found[part]["where"] == "folder":
            chosen.append(part)
        elif record["where"] == "to place by hand":
            talk().note(f"Left out: {name}; see: damvi datasets show {name}")
        else:
            chosen.append(name)
    return chosen


def _read_shares(asked: str | None, default: Sequence[float]) -> list[float]:
    """Percentages as shares."""
    if asked is None:
        return [percent / 100 for percent in default]
    try:
        shares = [float(percent) / 100 for percent in asked.split(",") if percent.strip()]
    except ValueError:
        raise click.UsageError(
            f"--ratios takes percentages such as 0.5,2, not {asked!r}"
        ) from None
    if any(not 0 < share < 0.5 for share in shares):
        raise click.UsageError(
            f"--ratios takes percentages between 0 and 50, not {asked!r}"
        )
    return list(dict.fromkeys(shares))


def _default_folder(names: Sequence[str], paper: bool, quick: bool) -> Path:
    kind = "paper" if paper else "quick" if quick else "-".join(Path(n).stem for n in names)
    return Path("damvi-bench") / kind


def _load_each(
    names: Sequence[str],
    data_dir: Path | None,
    target: str | None,
    positive: str | None,
    groups: str | None,
) -> Iterator[Any]:
    """The datasets one by one, with what there is to know about each said aloud."""
    from ..datasets import load
    from ..datasets.folders import is_path

    for name in names:
        columns = {"target": target, "positive": positive, "groups": groups}
        dataset = load(name, data_dir=data_dir, **(columns if is_path(name) else {}))
        rows, features = dataset.data.shape
        talk().note(
            f"{dataset.name}: {rows:,} rows, {features} features, "
            f"{dataset.target.mean():.2%} positive"
        )
        for note in dataset.notes:
            talk().note(f"  {note}")
        yield dataset


def _report(cells: Any, thin_cells: Any, folder: Path, protocol_words: str) -> None:
    """The tables on the screen, everything else in files, and where they are."""
    from rich.console import Console

    from ..bench import score_grid, score_table, to_terminal, write_outputs

    talks = talk()
    for metric in ("f1", "ap"):
        grid = score_grid(score_table(cells, metric), protocol_words)
        talks.show(to_terminal(grid, Console().width))
        talks.say()
    written = write_outputs(
        cells, folder, ratio_cells=thin_cells, protocol_words=protocol_words
    )
    talks.say(f"Written to {folder}: {', '.join(path.name for path in written)}")
    talks.result(
        {
            "folder": str(folder),
            "files": [path.name for path in written],
            "cells": list(cells),
            "ratio_cells": list(thin_cells or []),
        }
    )
