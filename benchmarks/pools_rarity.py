"""How boosted trees bear rare positives: settings of the strong pool's boosters, alone.

    python benchmarks/pools_rarity.py [--data FOLDER] [--out results/pools/rarity]
        [--splits 1] [--report]

Each dataset is trained on at its natural rate of positives, and at lower ones by leaving
positives out; all settings of a split are judged on the same test rows, which keep all
of theirs. Rows are added to cells.csv as they come, and the same command goes on where it
stopped. The report has each setting's difference in AP from the first one by rate, and
the rule: which setting below which rate, chosen without each dataset in turn.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from paper.protocol import Protocol
from paper.store import write_whole
from pools import EXTRA, PAPER, capped, read
from setting import add_data_option, print_setting
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from damvi.voters import strong_pool

PACKAGES = ("numpy", "scikit-learn", "lightgbm", "xgboost")
RATES = (1.0, 0.01, 0.003, 0.001, 0.0003)
"""Of positives among the training rows, at most; 1 is the natural rate."""
MOST_ROWS, FEWEST_POSITIVES = 60_000, 12
AS_BEFORE: dict[str, dict[str, Any]] = {
    "lightgbm": {"min_child_weight": 0.001},
    "xgboost": {},
}
"""What the pool had until then: this was measured for what it has now."""
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "lightgbm": {
        "as before": {},
        "boost_from_average=False": {"boost_from_average": False},
        "max_delta_step=2": {"max_delta_step": 2},
        "reg_lambda=1": {"reg_lambda": 1.0},
        "min_child_weight=0.1": {"min_child_weight": 0.1},
        "min_child_weight=1": {"min_child_weight": 1.0},
        "both": {"boost_from_average": False, "min_child_weight": 0.1},
    },
    "xgboost": {"as before": {}, "base_score=0.5": {"base_score": 0.5}},
}
COLUMNS = ["dataset", "split", "rate", "rows", "positives", "test_positives", "voter"]
COLUMNS += ["setting", "ap", "cpu_seconds"]
BANDS = {"1 % and more": 0.01, "0.3 to 1 %": 0.003, "0.1 to 0.3 %": 0.001, "below": 0.0}


def thinned(y: np.ndarray, train: np.ndarray, rate: float, seed: int) -> np.ndarray | None:
    """The training rows with fewer positives; None where there would be too few."""
    positives, negatives = train[y[train] > 0], train[y[train] <= 0]
    kept = round(len(negatives) * rate / (1 - rate)) if rate < 1 else len(positives)
    if kept < FEWEST_POSITIVES or kept > len(positives):
        return None
    chosen = np.random.default_rng([seed, 7]).permutation(positives)[:kept]
    return np.sort(np.concatenate([chosen, negatives]))


def tasks(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be measured, the first split of every dataset first."""
    names = (*EXTRA, *PAPER)
    tables = {name: read(name, args.data) for name in names}
    protocol = Protocol("stratified")
    for split in range(args.splits):
        for name in names:
            X, y = tables[name]
            rows = capped(y, MOST_ROWS, "rate", split)
            train, test = (r for r in protocol.split(y[rows], None, split, None))
            train, test = rows[train], rows[test]
            for rate in RATES:
                some = thinned(y, train, rate, split)
                if some is not None:
                    yield {
                        "dataset": name,
                        "split": split,
                        "rate": round(float(y[some].mean()), 6),
                        "data": (X, y, some, test),
                    }


def measure(task: dict[str, Any], known: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    X, y, train, test = task.pop("data")
    pool = dict(strong_pool(task["split"]))  # as for classes that are not rare
    for voter, settings in SETTINGS.items():
        for setting, told in settings.items():
            row = {**task, "voter": voter, "setting": setting}
            if tuple(str(row[c]) for c in KEY) in known:
                continue
            model = clone(pool[voter])
            model[-1].set_params(**{**AS_BEFORE[voter], **told})
            start = time.process_time()
            model.fit(X[train], y[train])
            seconds = time.process_time() - start
            ap = average_precision_score(y[test], model.predict_proba(X[test])[:, 1])
            yield {
                **row,
                "rows": len(train),
                "positives": int(y[train].sum()),
                "test_positives": int(y[test].sum()),
                "ap": round(float(ap), 6),
                "cpu_seconds": round(seconds, 2),
            }


class Rule(NamedTuple):
    """One setting below a rate of positives, another from there on."""

    below: str
    rate: float
    otherwise: str

    def __str__(self) -> str:
        if self.below == self.otherwise:
            return self.below
        return f"{self.below} below {self.rate:.1%}, {self.otherwise} from there on"


NOW = {
    "lightgbm": Rule("both", 0.01, "min_child_weight=0.1"),
    "xgboost": Rule("as before", 0.01, "as before"),
}
SWITCHES = (0.0005, 0.002, 0.005, 0.01, 0.025, 0.05)
KEY = ("dataset", "split", "rate", "voter", "setting")


def as_markdown(table: pd.DataFrame) -> str:
    lines = [[table.index.name or "", *table.columns]]
    lines += [["---"] * len(lines[0])]
    lines += [[str(name), *map(str, row)] for name, row in table.iterrows()]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def by_dataset(cells: pd.DataFrame, voter: str) -> pd.DataFrame:
    """AP beyond the first setting's, a row for each dataset and rate (mean of splits)."""
    own = cells[cells.voter == voter]
    rate = own.rate.round(4)
    table = own.assign(rate=rate).pivot_table(
        index=["dataset", "rate"], columns="setting", values="ap"
    )
    table = table[list(SETTINGS[voter])].dropna()
    return table.sub(table["as before"], axis=0)


def under_rule(gain: pd.DataFrame, rule: Rule) -> pd.Series:
    """What a rule gains on each dataset, in the mean over rates."""
    rates = gain.index.get_level_values("rate")
    chosen = gain[rule.otherwise].where(rates >= rule.rate, gain[rule.below])
    return chosen.groupby("dataset").mean()


def leave_one_out(gain: pd.DataFrame, rules: list[Rule]) -> tuple[Counter[Rule], float]:
    """The rules chosen without each dataset, and what they gain on it."""
    gains = pd.DataFrame({rule: under_rule(gain, rule) for rule in rules})
    best = {name: int(gains.drop(index=name).mean().argmax()) for name in gains.index}
    kept = [gains.loc[name].iloc[k] for name, k in best.items()]
    return Counter(rules[k] for k in best.values()), float(np.mean(kept))


def report(out: Path) -> str:
    cells = pd.read_csv(out / "cells.csv")
    splits = cells.split.nunique()
    text = [
        "# Rare positives and boosted trees, each model alone\n",
        f"`python benchmarks/pools_rarity.py --splits {splits}`; the settings of the last "
        f'commit before `strong_pool` looked at its labels are "as before", `both` is '
        f"even odds and `min_child_weight=0.1`. cells.csv has some settings more, on some "
        f"of the datasets. "
        + ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        + ".\n",
    ]
    for voter, settings in SETTINGS.items():
        gain = by_dataset(cells, voter)
        rates = gain.index.get_level_values("rate")
        edges = [*BANDS.values()]
        table = {}
        for (band, floor), top in zip(BANDS.items(), [2.0, *edges], strict=False):
            here = gain[(rates >= floor) & (rates < top)].groupby("dataset").mean()
            table[f"{band} ({len(here)} datasets)"] = [
                f"{here[name].mean():+.4f} ± {here[name].sem():.4f}" for name in settings
            ]
        table["worst"] = [f"{gain[name].min():+.4f}" for name in settings]
        frame = pd.DataFrame(table, index=pd.Index(settings, name="setting"))
        text += [
            f"## {voter}\n\nAP beyond that of the first setting, mean over datasets ± "
            f"standard error, by rate of positives in training.\n",
            as_markdown(frame) + "\n",
        ]
        now = NOW[voter]
        rules = [
            Rule(below, rate, otherwise)
            for below in settings
            for otherwise in settings
            for rate in (SWITCHES if below != otherwise else SWITCHES[:1])
        ]
        chosen, kept = leave_one_out(gain, rules)
        words = "; ".join(f"{rule} ({times} times)" for rule, times in chosen.most_common())
        own = under_rule(gain, now)
        text.append(
            f"The pool has {now}: {own.mean():+.4f} ± {own.sem():.4f} over {len(own)} "
            f"datasets, worst {own.min():+.4f}. Chosen without each dataset among all "
            f"pairs of settings and {len(SWITCHES)} rates: {words}; {kept:+.4f} on the "
            f"dataset left out.\n"
        )
    both = cells.pivot_table(
        index=["dataset", "rate", "positives"], columns=["voter", "setting"], values="ap"
    )
    both = both[[(voter, name) for voter in SETTINGS for name in SETTINGS[voter]]].round(4)
    both.index = pd.Index(
        [f"{name}, {rate:.2%} ({n})" for name, rate, n in both.index],
        name="dataset, rate (training positives)",
    )
    both.columns = [f"{voter}, {setting}" for voter, setting in both.columns]
    return "\n".join([*text, "## AP\n", as_markdown(both), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=Path("results/pools/rarity"))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="write the report only")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print_setting(*PACKAGES)
    path = args.out / "cells.csv"
    if not args.report:
        args.out.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(",".join(COLUMNS) + "\n")
        with open(path, encoding="utf-8") as file:
            known = {tuple(row[c] for c in KEY) for row in csv.DictReader(file)}
        with threadpool_limits(1):
            for task in tasks(args):
                for row in measure(task, known):
                    line = io.StringIO()
                    csv.DictWriter(line, COLUMNS, lineterminator="\n").writerow(row)
                    with open(path, "a", encoding="utf-8") as file:
                        file.write(line.getvalue())
                    print(line.getvalue(), end="", flush=True)
    write_whole(args.out / "rarity.md", report(args.out))


if __name__ == "__main__":
    main()
