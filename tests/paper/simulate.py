"""Cells that no run has made."""

import numpy as np

from benchmarks.paper.published import PAPER_METHODS

FIVE = ["webpage", "mammography", "scania_partial", "protein_homo", "credit_fraud"]


def cell(dataset="webpage", method="DAMVI", split=0, f1=0.5, ap=0.5, **others):
    return {
        "dataset": dataset,
        "method": method,
        "split": split,
        "ratio": None,
        "status": "done",
        "note": "",
        "f1": f1,
        "ap": ap,
        "fit_seconds": 1.5,
        "fit_cpu_seconds": 2.5,
        "predict_seconds": 0.1,
        "peak_mb": 321.0,
        "rows": 1000,
        "features": 6,
        "positives": 23,
        "train_positives": 16,
        "test_positives": 7,
        "settings": {"trees": "fast"},
        "versions": {"damvi": "0.1.0", "numpy": "2.4.6"},
        **others,
    }


def lost(dataset, method, split, status="failed", note="no samples"):
    return cell(dataset, method, split, f1=None, ap=None, status=status, note=note)


def full(level, datasets=FIVE, methods=PAPER_METHODS, splits=5, spread=None):
    """Cells whose mean is ``level(method, dataset, metric)``, evenly spread around it."""
    cells = []
    for dataset in datasets:
        for method in methods:
            width = spread(method) if spread else 0.01
            for split, step in enumerate(np.linspace(-width, width, splits)):
                scores = {m: float(level(method, dataset, m) + step) for m in ("f1", "ap")}
                cells.append(cell(dataset, method, split, **scores))
    return cells


def random_cells(
    seed, datasets=("a", "webpage", "z_%&"), methods=("EE", "DAMVI", "RF", "x")
):
    """Scores of few digits, so that ties occur, with cells failed, timed out or missing."""
    rng = np.random.RandomState(seed)
    cells = []
    for dataset in datasets:
        for method in methods:
            level, digits = rng.choice([0.1, 0.2, 0.3]), rng.choice([1, 1, 3])
            for split in range(5):
                fate = rng.rand()
                scores = np.round(level + 0.1 * rng.rand(2), digits).tolist()
                if fate < 0.92:
                    cells.append(cell(dataset, method, split, *scores))
                elif fate < 0.97:
                    status = str(rng.choice(["failed", "timeout"]))
                    cells.append(lost(dataset, method, split, status, f"note {split}"))
    rng.shuffle(cells)
    return cells


def over_ratios(level, ratios=(0.002, 0.005, 0.01, 0.02, 0.0232, 0.04, 0.1), splits=3):
    """Cells of the ratio experiment with mean ``level(method, ratio, metric)``."""
    return [
        cell(
            "mammography",
            method,
            split,
            ratio=ratio,
            f1=level(method, ratio, "f1") + 0.001 * split,
            ap=level(method, ratio, "ap") + 0.001 * split,
        )
        for method in (*PAPER_METHODS, "RF")
        for ratio in ratios
        for split in range(splits)
    ]
