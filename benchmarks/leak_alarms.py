"""Which columns of real tables are called leaks, at natural rates: none should be, or few.

python benchmarks/leak_alarms.py FOLDER_OF_PARQUET... > results/leaks/real_tables.txt
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn

import damvi
from damvi.model import prepare
from damvi.tables.checks import best_alone


def main() -> None:
    print(f"damvi {damvi.__version__}, scikit-learn {sklearn.__version__}")
    print(
        "rows, positives, seconds of prepare; the best column alone; warnings and notes\n"
    )
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).glob("*.parquet")):
            frame = pd.read_parquet(path)
            if "target" not in frame:
                continue
            start = time.perf_counter()
            table = prepare(frame, "target")
            seconds = time.perf_counter() - start
            best = best_alone(table.X, np.asarray(table.y))
            alone = "none judged" if best is None else f"{best.feature}: F1 {best.f1:.3f}"
            rows = f"{len(frame):,} rows, {int(table.y.sum()):,} positives"
            print(f"{path.stem}: {rows}, {seconds:.1f} s; best alone {alone}")
            for said in [*table.warnings, *table.notes]:
                print(f"    {said}")
            dropped = [c for c in table.schema.columns if c.kind == "dropped"]
            for column in dropped[:5]:
                print(f"    dropped {column.name!r}: {column.reason}")


if __name__ == "__main__":
    main()
