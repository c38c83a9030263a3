"""What quicker predictions cost: the strong pool as it is, and with prefer="speed".

    python benchmarks/prefer_speed.py [--data FOLDER] [--out results/prefer_speed]
        [--rows 10000] [--splits 3] [--datasets ...] [--votes FOLDER] [--report]

Both are fitted on the same rows, and timed on the same test rows, on one thread, taking
turns: the least of five. Cells are kept as they come, and the same command goes on where it
stopped. "AP told" is what the model itself knows of, out of fold, which for speed does not
count in that voters were chosen. With ``--votes``, stored by benchmarks/portfolio.py,
several prices are compared on all five splits of the 13 datasets as well; nobody is trained
for that, and the time to answer is that of the training of these votes. The pool and its
settings, the price among them, were chosen on these datasets.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from early_stopping import raw_votes
from paper.protocol import Protocol
from pool_contenders import Pool, average_precision, default_setting, votes_of
from pools import read, split_of, versions
from portfolio import CHEAPEST_FIRST, Place, of_pool, places
from report_parts import markdown, paired, plus_minus
from setting import add_data_option
from sklearn.metrics import average_precision_score, f1_score

from damvi import DAMVIVotingClassifier
from damvi.selection import PRICE, keep_better_vote, without_slow_voters
from damvi.voters import strong_pool
from damvi.weighting import minimize_c_bound

DATASETS = ("mammography", "satimage", "ozone_level", "webpage", "census_kdd_half")
TIMES = 5
USUAL, SPEED = "as it is", "for speed"
PRICES = (0.0, 0.005, 0.01, PRICE, 0.05, 0.1)
METRICS = {"ap": "AP", "f1": "F1", "told": "AP told", "microseconds": "µs a row"}


def run(name: str, split: int, data: Path, rows: int) -> dict[str, Any]:
    X, y = read(name, data)
    train, test, seed = split_of(y, Protocol("stratified"), rows, "rate", split)
    models = {
        kind: DAMVIVotingClassifier(prefer=prefer, n_jobs=2, random_state=seed)
        for kind, prefer in ((USUAL, None), (SPEED, "speed"))
    }
    took: dict[str, list[float]] = {kind: [] for kind in models}
    for model in models.values():
        model.fit(X[train], y[train]).n_jobs = 1
    for _ in range(TIMES):
        for kind, model in models.items():
            start = time.perf_counter()
            model.predict_proba(X[test])
            took[kind].append((time.perf_counter() - start) / len(test))
    cell: dict[str, Any] = {"dataset": name, "split": split, "rows": rows}
    for kind, model in models.items():
        chance = model.predict_proba(X[test])[:, 1]
        told = model.decision_.out_of_sample_vote
        voters = zip(model.voters_.names, model.weights_, strict=True)
        cell[kind] = {
            "ap": average_precision_score(y[test], chance),
            "f1": f1_score(y[test], model.predict(X[test])),
            "told": average_precision_score(y[train], told),
            "microseconds": 1e6 * min(took[kind]),
            "voters": {name: round(float(weight), 3) for name, weight in voters},
        }
    return cell


def by_price(place: Place, makers: dict[str, Any]) -> dict[str, Any] | None:
    """The AP on test rows of those who stay at each price, and their share of the time."""
    said = raw_votes(place, makers)
    if len(said) < len(makers):
        return None
    train, test, _ = place.rows
    unseen, asked = (
        np.asfortranarray(np.stack([one[part] for one in said.values()], axis=1))
        for part in ("unseen", "test")
    )
    folds = next(iter(said.values()))["folds"].astype(np.int32)
    usual, truth = default_setting(), place.y[test] == 1
    pool = Pool(tuple(said), unseen, asked, place.y[train], folds)
    pool = pool.calibrated(usual.calibration, usual.balance)
    votes, settings = votes_of(pool, usual.balance), usual.of_weights
    seconds = np.array([float(one["ask_seconds"]) for one in said.values()])
    everybody = minimize_c_bound(votes, settings.moments_by_fold(votes), settings, 1)
    cell: dict[str, Any] = {"dataset": place.dataset, "split": place.split}
    for price in (None, *PRICES):
        kept = np.arange(len(seconds))
        if price is not None:
            kept = without_slow_voters(everybody, seconds, price)
        some = votes.take(kept)
        found = minimize_c_bound(some, settings.moments_by_fold(some), settings, 1)
        found = keep_better_vote(found)
        asked_for = seconds[kept[found.weights > 0]].sum()
        cell[str(price)] = {
            "ap": average_precision(pool.test[:, kept] @ found.weights, truth),
            "told": average_precision(found.out_of_sample_vote, place.y[train] == 1),
            "time": float(asked_for / seconds.sum()),
            "voters": [pool.names[k] for k in kept],
        }
    return cell


def price_lines(cells: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(cell["dataset"] for cell in cells))

    def means(price: Any, what: Any) -> np.ndarray:
        own = [[what(c[str(price)]) for c in cells if c["dataset"] == n] for n in names]
        return np.array([np.mean(one) for one in own])

    rows = []
    for price in (None, *PRICES):
        quality = []
        for metric in ("ap", "told"):
            values = means(price, lambda one, metric=metric: one[metric])
            usual = means(None, lambda one, metric=metric: one[metric])
            quality += [f"{values.mean():.4f}", plus_minus(*paired(values - usual))]
        label = "everybody" if price is None else f"{price:g}"
        n_voters = f"{means(price, lambda one: len(one['voters'])).mean():.1f}"
        time_left = f"{means(price, lambda one: one['time']).mean():.2f}"
        row = [f"**{label}**" if price == PRICE else label, *quality, time_left, n_voters]
        rows.append(["" if price is None and "+0" in one else one for one in row])
    head = ["price", "AP", "difference", "AP told", "difference", "time", "voters"]
    words = (
        f"{len(cells)} splits of {len(names)} datasets as in results/pools, means over "
        "datasets ± one standard error; time as a share of that of all five voters. The "
        "price in use in bold."
    )
    return ["## By price", "", words, "", *markdown(head, rows)]


def report(cells: list[dict[str, Any]], prices: list[Any], command: str) -> str:
    rows, of_datasets = [], []
    for name in dict.fromkeys(cell["dataset"] for cell in cells):
        own = [cell for cell in cells if cell["dataset"] == name]
        means = {
            kind: {m: float(np.mean([cell[kind][m] for cell in own])) for m in METRICS}
            for kind in (USUAL, SPEED)
        }
        of_datasets.append(means)
        for kind, found in means.items():
            voters = [", ".join(v for v, w in c[kind]["voters"].items() if w) for c in own]
            quality = [f"{found[m]:.4f}" for m in ("ap", "f1", "told")]
            speed = f"{found['microseconds']:.1f}"
            told = "; ".join(voters) if kind == SPEED else ""
            rows.append([name, kind, *quality, speed, told])
    lines = ["# Quicker predictions", "", f"`{command}`", ""]
    lines += [", ".join(f"{name} {one}" for name, one in versions().items()), ""]
    lines += [f"Means over {len(cells) // len(of_datasets)} splits of each dataset.", ""]
    lines += markdown(["", "", *METRICS.values(), "who stayed, by split"], rows)
    for metric in ("ap", "f1", "told"):
        differences = [one[SPEED][metric] - one[USUAL][metric] for one in of_datasets]
        told = plus_minus(*paired(np.array(differences)))
        lines.append(f"- {METRICS[metric]}, for speed less as it is: {told} over datasets")
    ratios = [o[SPEED]["microseconds"] / o[USUAL]["microseconds"] for o in of_datasets]
    mean = float(np.exp(np.mean(np.log(ratios))))
    lines.append(f"- time to predict: {mean:.2f} of what it was (geometric mean)")
    lines += ["", *price_lines(prices)] if prices else []
    return "\n".join(lines).rstrip() + "\n"


def stored(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def add(path: Path, cells: list[dict[str, Any]], cell: dict[str, Any]) -> None:
    cells.append(cell)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(cell) + "\n")
    print(path.stem, cell["dataset"], cell["split"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=Path("results/prefer_speed"))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--votes", type=Path, metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    paths = [args.out / f"{name}.jsonl" for name in ("cells", "prices")]
    cells, prices = (stored(path) for path in paths)
    known = {(cell["dataset"], cell["split"], cell["rows"]) for cell in cells}
    warnings.simplefilter("ignore")
    for split in range(0 if args.report else args.splits):
        for name in args.datasets:
            if (name, split, args.rows) not in known:
                add(paths[0], cells, run(name, split, args.data, args.rows))
    if args.votes is not None and not args.report:
        makers = {name: of_pool(name) for name, _ in strong_pool()}
        priced = {(cell["dataset"], cell["split"]) for cell in prices}
        every = argparse.Namespace(
            **vars(args) | {"datasets": CHEAPEST_FIRST, "first_split": 0, "splits": 5}
        )
        for place in places(every):
            if (place.dataset, place.split) not in priced:
                cell = by_price(place, makers)
                if cell is not None:
                    add(paths[1], prices, cell)
    shown = f"python benchmarks/prefer_speed.py --rows {args.rows} --splits {args.splits}"
    text = report(cells, prices, f"{shown} --votes FOLDER" if prices else shown)
    (args.out / "prefer_speed.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
