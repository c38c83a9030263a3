"""``damvi demo``: the bundled data, a few seconds, a small table."""

from __future__ import annotations

import time

import click


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of split and voters.")
def demo(seed: int) -> None:
    """Fit DAMVI on the bundled Mammography data and compare it with two peers."""
    from rich.console import Console
    from rich.table import Table
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import (
        average_precision_score,
        f1_score,
        precision_score,
        recall_score,
    )
    from sklearn.model_selection import train_test_split

    from ..classifier import DAMVIClassifier
    from ..datasets import load

    data = load("mammography")
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.3, stratify=data.target, random_state=seed
    )
    # Compiles the kernels on the first run, so that the seconds below are the fits' own.
    DAMVIClassifier(n_estimators=2, stratified=True).fit(X, y)
    contenders = {
        "DAMVI": DAMVIClassifier(n_jobs=-1, random_state=seed),
        "plain vote, same trees": DAMVIClassifier(
            solver="uniform", n_jobs=-1, random_state=seed
        ),
        "random forest": RandomForestClassifier(n_jobs=-1, random_state=seed),
    }
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for heading in ("precision", "recall", "F1", "AP", "seconds"):
        table.add_column(heading, justify="right")
    for name, model in contenders.items():
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        flagged, score = model.predict(X_test), model.predict_proba(X_test)[:, 1]
        measures = [
            precision_score(y_test, flagged, zero_division=0),
            recall_score(y_test, flagged),
            f1_score(y_test, flagged),
            average_precision_score(y_test, score),
        ]
        table.add_row(name, *(f"{value:.3f}" for value in measures), f"{seconds:.2f}")

    console = Console()
    console.print(
        f"Mammography, {len(data.target):,} rows, {data.target.mean():.1%} positive:\n"
        f"trained on {len(y):,}, judged on {len(y_test):,} with {y_test.sum()} positives.\n"
    )
    console.print(table)
    console.print(
        "\nAP is average precision. This is one split:\n"
        "read differences of a few hundredths as noise."
    )
