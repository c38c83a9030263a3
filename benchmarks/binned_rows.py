"""From how many rows should LightGBM find its bins?

    python benchmarks/binned_rows.py [--data FOLDER]

Average precision on test rows, and CPU seconds of a fit, of the two LightGBM voters of the
default pool with LightGBM's default of 200,000 rows, and with as many as the pool has. All
rows of three datasets with more than that, 70/30, two splits of each.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from pools import read
from report_parts import paired, plus_minus
from setting import add_data_option, print_setting
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from damvi.voters import columns, strong_pool

DATASETS = ("credit_fraud", "smtp_kdd99", "protein_homo")
DEFAULT, OURS = 200_000, columns.BINNED_ROWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    args = parser.parse_args()
    print_setting("lightgbm", "scikit-learn", "numpy")
    warnings.simplefilter("ignore")  # scikit-learn's, of names of columns
    gains, seconds = [], {DEFAULT: 0.0, OURS: 0.0}
    for name in DATASETS:
        X, y = read(name, args.data)
        for seed in (0, 1):
            split = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
            for voter in ("lightgbm", "lightgbm_pairs"):
                found = {}
                for rows in (DEFAULT, OURS):
                    columns.BINNED_ROWS = rows  # of the trees that choose the pairs
                    model = dict(strong_pool(0, split[2]))[voter]
                    model.set_params(lgbmclassifier__subsample_for_bin=rows)
                    start = time.process_time()
                    model.fit(split[0], split[2])
                    seconds[rows] += time.process_time() - start
                    chance = model.predict_proba(split[1])[:, 1]
                    found[rows] = average_precision_score(split[3], chance)
                gains.append(found[OURS] - found[DEFAULT])
                told = ", ".join(f"{rows:,}: {ap:.4f}" for rows, ap in found.items())
                print(f"{name:13} {seed} {voter:15} {len(split[2]):,} rows; AP by {told}")
    print(f"\n{OURS:,} less {DEFAULT:,}: {plus_minus(*paired(np.array(gains)))} AP")
    print(
        "CPU s: " + ", ".join(f"{rows:,}: {spent:.1f}" for rows, spent in seconds.items())
    )


if __name__ == "__main__":
    main()
