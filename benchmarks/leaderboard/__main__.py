"""``python -m benchmarks.leaderboard``: run the cells that are missing, and report.

    python -m benchmarks.leaderboard --cache FOLDER            # all of it: hours
    python -m benchmarks.leaderboard --cache FOLDER --budgets none 10
    python -m benchmarks.leaderboard --report                  # from stored cells
    python -m benchmarks.leaderboard --board development --cache FOLDER --data FOLDER

Environments, tables and answers are kept in the cache folder (about 6 GB), finished cells
in the results folder: interrupt the run when you like, and the same command goes on where
it stopped. Run nothing else meanwhile: seconds are measured. The development board is on
the datasets that our settings were chosen on, which ``--data`` has.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .contenders import CONTENDERS
from .report import write_report
from .runner import BOARDS, DEVELOPMENT, MAIN, Cache, planned, run_missing


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--board", choices=list(BOARDS), default=MAIN)
    parser.add_argument("--cache", type=Path, help="a folder outside of the repository")
    parser.add_argument("--data", type=Path, help="a folder of development datasets")
    parser.add_argument("--out", type=Path, help="by default in results/leaderboard")
    parser.add_argument("--budgets", nargs="+", help="none, or seconds; by default all")
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS))
    parser.add_argument("--splits", nargs="+", type=int)
    parser.add_argument(
        "--renew",
        action="store_true",
        help="run failures again, and cells of ours by other code than the present",
    )
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    plan = BOARDS[args.board]
    out = args.out or plan.folder
    known: dict[str, list[str]] = {
        "budgets": ["none", *map(str, plan.budgets)],
        "datasets": list(plan.sources),
        "splits": list(map(str, range(plan.splits))),
    }
    for name, choices in known.items():
        wrong = [one for one in getattr(args, name) or () if str(one) not in choices]
        if wrong:
            parser.error(f"--{name} of this board: {', '.join(choices)}; not {wrong[0]}")
    if not args.report:
        if args.cache is None:
            parser.error("--cache FOLDER is needed to run cells")
        if args.board == DEVELOPMENT and args.data is None:
            parser.error("--data FOLDER is needed for development datasets")
        # So that the cell under way ends with us.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
        contenders = args.contenders or list(CONTENDERS)
        # What has no budget comes first: it says which sources are ranked.
        for budget in args.budgets or known["budgets"]:
            keys = planned(plan, [None if budget == "none" else int(budget)], contenders)
            wanted = [
                key
                for key in keys
                if key.dataset in (args.datasets or plan.sources)
                and key.split in (args.splits or range(plan.splits))
            ]
            run_missing(plan, out, Cache(args.cache, args.data), wanted, args.renew)
    write_report(out, plan)


if __name__ == "__main__":
    main()
