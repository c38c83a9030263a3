"""``python -m benchmarks.leaderboard``: run the cells that are missing, and report.

    python -m benchmarks.leaderboard --cache FOLDER            # all of it: hours
    python -m benchmarks.leaderboard --cache FOLDER --budgets none 10
    python -m benchmarks.leaderboard --report                  # from stored cells

Environments, tables and answers are kept in the cache folder (about 6 GB), finished cells
in the results folder: interrupt the run when you like, and the same command goes on where
it stopped. Run nothing else meanwhile: seconds are measured.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .contenders import CONTENDERS
from .data import read_sources
from .report import write_report
from .runner import BUDGETS, ROOT, SPLITS, Cache, planned, run_missing


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cache", type=Path, help="a folder outside of the repository")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "leaderboard")
    budgets = ["none", *map(str, BUDGETS)]
    parser.add_argument("--budgets", nargs="+", choices=budgets, default=budgets)
    parser.add_argument("--datasets", nargs="+", choices=list(read_sources()))
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS))
    parser.add_argument("--splits", nargs="+", type=int, choices=range(SPLITS))
    parser.add_argument(
        "--renew",
        action="store_true",
        help="run failures again, and cells of ours by other code than the present",
    )
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    if not args.report:
        if args.cache is None:
            parser.error("--cache FOLDER is needed to run cells")
        # So that the cell under way ends with us.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
        contenders = args.contenders or list(CONTENDERS)
        # What has no budget comes first: it says which sources are ranked.
        for budget in args.budgets:
            keys = planned([None if budget == "none" else int(budget)], contenders)
            wanted = [
                key
                for key in keys
                if key.dataset in (args.datasets or read_sources())
                and key.split in (args.splits or range(SPLITS))
            ]
            run_missing(args.out, Cache(args.cache), wanted, args.renew)
    write_report(args.out)


if __name__ == "__main__":
    main()
