"""``python -m benchmarks.leaderboard.presets``: which preset AutoGluon gets at a budget.

Tried on development datasets, so that nothing is chosen for it, nor against it, on the
leaderboard's own tables. Run it alone; what it prints is kept in
``results/leaderboard/presets.md``, and the choice is ``contenders.CHOSEN``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.report_parts import markdown

from .contenders import AUTOGLUON, CONTENDERS, PRESETS
from .runner import ROOT, Cache, answer, patience_for

TRIED = {10: ("medium", "best, not stacked"), 60: tuple(PRESETS)}
TABLES = ("paper/mammography", "extra/satimage", "extra/ozone_level")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="development datasets")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(TRIED))
    parser.add_argument("--tables", nargs="+", default=TABLES)
    args = parser.parse_args()
    cache = Cache(args.cache)
    python = cache.python(CONTENDERS[AUTOGLUON].environment)
    rows = []
    for budget in args.budgets:
        for preset in TRIED[budget]:
            found = []
            for table in args.tables:
                request = {
                    "contender": AUTOGLUON,
                    "table": str((args.data / f"{table}.parquet").resolve()),
                    "split": 0,
                    "budget": budget,
                    "preset": preset,
                }
                kept = cache.folder / "presets.npz"
                found.append(answer(request, python, kept, patience_for(budget)))
                print(budget, preset, table, found[-1], flush=True)
            row = [str(budget), preset]
            for metric in ("ap", "f1", "log_loss"):
                row.append(f"{np.mean([f['scores'][metric] for f in found]):.4f}")
            seconds = [f.get("fit_seconds", np.nan) for f in found]
            errors = {f["error"] for f in found if "error" in f}
            rows.append([*row, f"{np.mean(seconds):.1f}", "; ".join(sorted(errors))])
    head = ("seconds", "preset", "AP", "F1", "log loss", "wall s", "failures")
    text = [
        "# AutoGluon's presets",
        "",
        "By `python -m benchmarks.leaderboard.presets`: means over development datasets "
        f"({', '.join(args.tables)}), split 0, two cores. A failure counts as knowing "
        "nothing.",
        "",
        *markdown(head, rows),
    ]
    out = ROOT / "results" / "leaderboard" / "presets.md"
    out.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
