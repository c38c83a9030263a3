"""``python -m benchmarks.paper``: run the cells that are missing, and write what they say.

    python -m benchmarks.paper --data FOLDER                # the whole paper: hours
    python -m benchmarks.paper --quick                      # Mammography, two splits
    python -m benchmarks.paper webpage --methods R-BG-os    # some of it

Finished cells are kept in the results folder: interrupt the run when you like, and the same
command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import cpu_count

from .data import load, paper_names
from .grids import score_grid, to_markdown
from .methods import USUAL, make_method
from .page import write_outputs
from .protocol import Protocol
from .runner import Plan, run
from .tables import score_table

PAPER_RATIOS = (0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
QUICK_RATIOS = (0.2, 1.0, 3.0, 10.0)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def follow(done: int, total: int, left: float | None, cell: Any) -> None:
    """How a run goes, on the standard error."""
    if cell is None:
        note(f"{total} cells to run")
        return
    at = "" if cell["ratio"] is None else f" at {cell['ratio']:.1%}"
    result = f"{cell['status']}: {cell['note']}"
    if cell["status"] == "done":
        result = f"F1 {cell['f1']:.3f} AP {cell['ap']:.3f}"
    words = f"  about {left / 60:.0f} min left" if left and done < total else ""
    name = f"{cell['dataset']}{at} {cell['method']} split {cell['split']}"
    note(f"[{done}/{total}] {name}: {result}{words}")


def read_all(names: Sequence[str], folder: Path | None) -> Iterator[Any]:
    for name in names:
        data = load(name, folder)
        rows, features = data.data.shape
        rate = data.target.mean()
        note(f"{name}: {rows:,} rows, {features} features, {rate:.2%} positive")
        yield data


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("datasets", nargs="*", help="by default the paper's, and its figure")
    add("--quick", action="store_true", help="Mammography in two splits: minutes")
    add("--data", type=Path, default=os.environ.get("DAMVI_DATA"), metavar="FOLDER")
    add("--methods", nargs="*", default=USUAL)
    add("--splits", type=int, help="by default 5")
    add("--split-by", choices=("random", "stratified", "groups"), default="random")
    add("--ratios", nargs="*", type=float, metavar="PERCENT", help="of positives")
    add("--trees", choices=("fast", "cart"), default="fast")
    add("--seed", type=int, default=0)
    add("--out", "-o", type=Path, metavar="FOLDER")
    add("--jobs", type=int, default=cpu_count(), help="cells at a time")
    add("--memory", type=float, metavar="GB", help="of cells side by side")
    add("--time-limit", type=float, default=3600.0, metavar="SECONDS", help="of a cell")
    add("--dry-run", action="store_true", help="only say how many cells are missing")
    args = parser.parse_args(arguments)
    whole = not args.datasets and not args.quick
    names = args.datasets or (
        ["mammography"] if args.quick else paper_names(args.data, note)
    )
    ratios = args.ratios
    if ratios is None:
        ratios = PAPER_RATIOS if whole else QUICK_RATIOS if args.quick else ()
    if any(not 0 < percent < 50 for percent in ratios):
        parser.error("--ratios takes percentages between 0 and 50")
    for method in args.methods:
        make_method(method)  # says what is wrong with it, before the work
    kind = "paper" if whole else "quick" if args.quick else "-".join(names)
    folder = args.out or Path("damvi-bench") / kind
    protocol = Protocol(splits=args.split_by, seed=args.seed)

    def run_part(part: Path, names: Sequence[str], at: Sequence[float | None]) -> Any:
        datasets = read_all(names, args.data)
        n_splits = args.splits or (2 if args.quick else 5)
        return run(
            Plan(datasets, args.methods, n_splits, at, args.trees),
            part,
            protocol,
            n_jobs=args.jobs,
            memory_mb=args.memory and args.memory * 1000,
            time_limit=args.time_limit,
            follow=follow,
            dry=args.dry_run,
        )

    cells = run_part(folder, names, [None])
    thin_cells = None
    if ratios:
        thinned = ["mammography"] if whole else names
        shares = [percent / 100 for percent in ratios]
        thin_cells = run_part(folder / "ratios", thinned, shares)
    if args.dry_run:
        return 0
    for metric in ("f1", "ap"):
        print(to_markdown(score_grid(score_table(cells, metric), protocol.words)))
    written = write_outputs(
        cells, folder, ratio_cells=thin_cells, protocol_words=protocol.words
    )
    print(f"Written to {folder}: {', '.join(path.name for path in written)}")
    return 0 if any(cell["status"] == "done" for cell in cells) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
