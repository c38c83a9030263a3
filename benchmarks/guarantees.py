"""Guarantees: how often is a promise broken, how often none is made, and what is had by it?

    python benchmarks/guarantees.py ours     # 1,000 simulations each, about ten minutes
    python benchmarks/guarantees.py mapie --python VENV/bin/python   # the same rows
    python benchmarks/guarantees.py summary

A promise with 90 % confidence may be broken in one of ten draws of the rows that it comes
from: of 1,000 simulations in 1000 d + 2 sqrt(1000 d (1 - d)) = 118 at most. Simulations in
which no promise is made are counted apart, and none of them is a broken one.

"known votes" are normal, 2.5 apart, of 5 % positives; "tied votes" are the same in steps of
1/4. There the true rate of a threshold is exact. "trees" are the votes of a DAMVI that was
fitted on 1,000 other rows, 200 times, and the truth is taken from 20,000 more. Rows are
drawn with 10, 30 or 300 positives to be expected; a precision orders its thresholds by
votes of as many other rows (trees: by those of the training rows).

MAPIE's BinaryClassificationController gets the known votes as exact probabilities, on the
same rows: as it is (100 thresholds from 0 to 0.99, Bonferroni and Holm), and by its
``split_fixed_sequence``, with the rows that order our thresholds to learn the order from,
in 100 simulations of some cells (it takes 0.4 s each time).
It runs in an environment of its own:

    python -m venv VENV && VENV/bin/pip install mapie

Cells are added to results/guarantees/*.csv one by one, and a run that is interrupted goes
on where it was.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from math import erfc, sqrt
from pathlib import Path

import numpy as np

OUT = Path("results/guarantees")
SIMULATIONS, FIRST_SEED, RISK = 1000, 50_000, 0.1
FITS, SLOW = 200, 100
"""Simulations with trees, and with MAPIE's fixed sequences, which take 0.4 s each."""
RATE, SEPARATION, STEP, N_NEW = 0.05, 2.5, 0.25, 20_000
POSITIVES = (10, 30, 300)
PARTS = ("ours", "mapie", "summary")
ASKED = (
    ("recall", 0.9),
    ("recall", 0.7),
    ("precision", 0.5),
    ("precision", 0.8),
    ("false_alarm_rate", 0.02),
)
NAMES = ["by", "votes", "positives", "rate", "level", "simulations", "abstained", "broken"]
NAMES += ["mean_rate", "mean_other"]
OTHER = {"recall": "precision", "precision": "recall", "false_alarm_rate": "recall"}
Rates = dict[str, float]


def draw(n: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = (rng.random(n) < RATE).astype(int)
    return rng.standard_normal(n) + SEPARATION * targets, targets


def above(cut: float) -> float:
    return erfc(cut / sqrt(2)) / 2


def rates_at(cut: float) -> Rates:
    """The true rates of a threshold on normal votes."""
    recall, alarms = above(cut - SEPARATION), above(cut)
    flagged = RATE * recall + (1 - RATE) * alarms
    precision = RATE * recall / flagged if flagged else 0.0
    return {"recall": recall, "precision": precision, "false_alarm_rate": alarms}


def known(n: int, seed: int) -> tuple[np.ndarray, ...]:
    return *draw(n, [seed, 1]), *draw(n, [seed, 2])


def tied(n: int, seed: int) -> tuple[np.ndarray, ...]:
    vote, targets, other, labels = known(n, seed)
    return np.floor(vote / STEP) * STEP, targets, np.floor(other / STEP) * STEP, labels


def tied_rates(cut: float) -> Rates:
    return rates_at(STEP * (np.floor(cut / STEP) + 1))


def table(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    targets = (rng.random(n) < RATE).astype(int)
    X = rng.standard_normal((n, 5))
    X[:, 0] += 2.0 * targets
    X[:, 1] += 1.0 * targets
    return X, targets


def add(path: Path, cells: Iterator[list[object]]) -> None:
    new = not path.exists()
    with path.open("a", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(NAMES)
        writer.writerows(cells)


def finished(path: Path) -> set[tuple[str, ...]]:
    if not path.exists():
        return set()
    with path.open(encoding="utf-8") as file:
        return {tuple(row[:5]) for row in csv.reader(file)}


def cell(asked: tuple[str, float], found: list[Rates | None]) -> list[object]:
    """How many promised nothing, how many broke it, and what was had by those that did."""
    rate, level = asked
    made = [one for one in found if one is not None]
    kept = [
        one[rate] <= level if rate == "false_alarm_rate" else one[rate] >= level
        for one in made
    ]
    means = [
        f"{np.mean([one[name] for one in made]):.4f}" if made else ""
        for name in (rate, OTHER[rate])
    ]
    broken = len(kept) - sum(kept)
    return [rate, level, len(found), len(found) - len(made), broken, *means]


def ours() -> None:
    from damvi.decision import guarantee, promising_cuts

    path = OUT / "ours.csv"
    done = finished(path)

    def promised(
        asked: tuple[str, float],
        rows: tuple[np.ndarray, ...],
        rates: Callable[[float], Rates],
    ) -> Rates | None:
        rate, level = asked
        vote, targets, other, labels = rows
        how = {}
        if rate == "precision":
            how["cuts"] = promising_cuts(other, labels, level, len(vote))
        found = guarantee(vote, targets, rate, level, confidence=1 - RISK, **how)
        return None if found.threshold is None else rates(found.threshold)

    seeds = range(FIRST_SEED, FIRST_SEED + SIMULATIONS)
    for name, make, rates in (
        ("known votes", known, rates_at),
        ("tied votes", tied, tied_rates),
    ):
        for positives in POSITIVES:
            for asked in ASKED:
                key = "damvi", name, str(positives), asked[0], str(asked[1])
                if key in done:
                    continue
                n = round(positives / RATE)
                found = [promised(asked, make(n, seed), rates) for seed in seeds]
                add(path, iter([["damvi", name, positives, *cell(asked, found)]]))
    if ("damvi", "trees", "300", *map(str, ASKED[-1])) in done:
        return
    results: dict[tuple[int, tuple[str, float]], list[Rates | None]] = {}
    for seed in seeds[:FITS]:
        for key, one in of_trees(seed, promised).items():
            results.setdefault(key, []).append(one)
    add(path, (["damvi", "trees", k, *cell(asked, r)] for (k, asked), r in results.items()))


def of_trees(
    seed: int, promised: Callable[..., Rates | None]
) -> dict[object, Rates | None]:
    from damvi import DAMVIClassifier

    rng = np.random.default_rng([seed, 3])
    X, y = table(1000, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DAMVIClassifier(
            n_estimators=50, stratified=True, random_state=seed, n_jobs=1
        ).fit(X, y)
    Z, truth = table(N_NEW, rng)
    new, positive = model.vote(Z), truth == 1

    def rates(cut: float) -> Rates:
        flagged = new > cut
        return {
            "recall": float(flagged[positive].mean()),
            "precision": float(positive[flagged].mean()) if flagged.any() else 1.0,
            "false_alarm_rate": float(flagged[~positive].mean()),
        }

    found: dict[object, Rates | None] = {}
    for positives in POSITIVES:
        X, targets = table(round(positives / RATE), rng)
        rows = model.vote(X), targets, model.decision_.out_of_sample_vote, y
        for asked in ASKED:
            found[positives, asked] = promised(asked, rows, rates)
    return found


def mapie() -> None:
    """Run by the Python of MAPIE's environment, which has no damvi."""
    from mapie.risk_control import BinaryClassificationController

    path = OUT / "mapie.csv"
    done = finished(path)
    names = {"false_alarm_rate": "fpr"}
    odds = RATE / (1 - RATE)

    def chances(vote: np.ndarray) -> np.ndarray:
        """The exact probabilities of normal votes."""
        ratio = odds * np.exp(SEPARATION * vote - SEPARATION**2 / 2)
        chance = ratio / (1 + ratio)
        return np.column_stack([1 - chance, chance])

    def cut_of(chance: float) -> float:
        """The vote with a probability."""
        if chance <= 0:
            return -np.inf
        return (np.log(chance / (1 - chance) / odds) + SEPARATION**2 / 2) / SEPARATION

    seeds = range(FIRST_SEED, FIRST_SEED + SIMULATIONS)
    for how in ("bonferroni_holm", "split_fixed_sequence"):
        slow = how == "split_fixed_sequence"
        for positives in POSITIVES[1:] if slow else POSITIVES:
            for asked in (ASKED[0], ASKED[2]) if slow else ASKED:
                who = f"MAPIE, {how}"
                if (who, "known votes", str(positives), asked[0], str(asked[1])) in done:
                    continue
                found: list[Rates | None] = []
                for seed in seeds[:SLOW] if slow else seeds:
                    vote, targets, other, labels = known(round(positives / RATE), seed)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        controller = BinaryClassificationController(
                            chances,
                            names.get(asked[0], asked[0]),
                            asked[1],
                            confidence_level=1 - RISK,
                            fwer_method=how,
                        )
                        try:
                            if slow:
                                controller.learn_fixed_sequence_order(other, labels)
                            controller.calibrate(vote, targets)
                            best = controller.best_predict_param
                        except ValueError:  # it finds no order
                            best = None
                    found.append(None if best is None else rates_at(cut_of(float(best))))
                add(path, iter([[who, "known votes", positives, *cell(asked, found)]]))
    note("mapie", "mapie", "numpy", "scikit-learn")


def note(part: str, *packages: str) -> None:
    """What the figures were made by."""
    path = OUT / "setting.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[part] = {
        "command": f"python benchmarks/guarantees.py {part}",
        "versions": {name: version(name) for name in packages}
        | {"python": platform.python_version()},
    }
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def summary() -> int:
    """All cells, and whether fewer promises than allowed were broken."""
    most = {n: int(n * RISK + 2 * sqrt(n * RISK * (1 - RISK))) for n in (SIMULATIONS, FITS)}
    rows = []
    for name in ("ours.csv", "mapie.csv"):
        if (OUT / name).exists():
            with (OUT / name).open(encoding="utf-8") as file:
                rows += csv.DictReader(file)
    lines = [
        f"{SIMULATIONS:,} simulations each, 90 % confidence: {most[SIMULATIONS]} broken "
        f"promises are allowed; with trees\n{FITS} simulations, and {most[FITS]}.\n\n"
        f"none: no promise was made. The means are over the simulations in which one was; "
        f"the other\nrate is the precision of a recall, and the recall of the others.\n",
        f"{'promised':24} {'positives':>9}  {'votes':11}  {'by':27} {'runs':>5} "
        f"{'none':>5} {'broken':>6}  {'mean rate':>9}  {'other':>6}",
    ]
    order = {asked: k for k, asked in enumerate(ASKED)}
    rows.sort(key=lambda r: (order[r["rate"], float(r["level"])], int(r["positives"])))
    for r in rows:
        sign = "<=" if r["rate"] == "false_alarm_rate" else ">="
        asked = f"{r['rate']} {sign} {r['level']}"
        lines.append(
            f"{asked:24} {r['positives']:>9}  {r['votes']:11}  {r['by']:27} "
            f"{r['simulations']:>5} {r['abstained']:>5} {r['broken']:>6}  "
            f"{r['mean_rate'] or '-':>9}  {r['mean_other'] or '-':>6}"
        )
    own = [r for r in rows if r["by"] == "damvi"]
    over = sum(int(r["broken"]) > most[int(r["simulations"])] for r in own)
    worst = max(int(r["broken"]) for r in own if r["votes"] != "trees")
    lines.append(
        f"\ndamvi: {len(own) - over} of {len(own)} cells keep within what is allowed; the "
        f"most of {SIMULATIONS:,} is {worst}."
    )
    text = "\n".join(lines) + "\n"
    print(text)
    (OUT / "summary.txt").write_text(
        f"$ python benchmarks/guarantees.py summary\n\n{text}", encoding="utf-8"
    )
    return int(over > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="ours", choices=PARTS)
    parser.add_argument("--python", help="of the environment that has MAPIE")
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if given.part == "summary":
        sys.exit(summary())
    if given.part == "ours":
        ours()
        note("ours", "damvi", "numpy", "scipy")
    elif given.python:
        subprocess.run([given.python, __file__, "mapie"], check=True)
    else:
        mapie()


if __name__ == "__main__":
    main()
