"""What a model is worth on rows without labels: what was expected, and what came true.

    python benchmarks/worth.py [--data FOLDER] [--nannyml PYTHON] [-o results/worth]
    python benchmarks/worth.py --known

Fifty shifted batches of real tables. A model (the paper's trees) is fitted on half of a
table, and each batch is drawn from the other half: "labels", by class, to a class rate of
0.2 to 5 %; "columns", by the value of one column, with weights that rise with its rank (the
positives among the rows, and so the class rate, follow from that). Precision, recall and AP
are then expected without the labels, by ``damvi.evaluation.expected_of`` under the
assumption that holds (and, for batches by class, under the one that does not), and by
NannyML's CBPE, which is given the same probabilities and decisions, with the out-of-sample
ones of the training rows for its reference. NannyML runs in an environment of its own, by
``--nannyml``, the path of a Python that has it; without it its columns stay empty.

What is done is kept in ``batches.jsonl`` and not done again; ``summary.txt`` is made of it.

``--known`` draws votes instead, new ones and those that the calibration is learned from
alike, so that what is assumed holds: how often are the achieved figures in the interval?
``known_votes.txt`` has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from setting import add_data_option, print_setting

import damvi
from damvi.decision import calibrate_vote
from damvi.evaluation import achieved_figures, expected_figures, expected_of, honest_rows

TABLES = {
    "mammography": "paper/mammography.parquet",
    "credit_fraud": "paper/credit_fraud.parquet",
    "letter_img": "extra/letter_img.parquet",
    "census": "extra/census_kdd_half.parquet",
    "webpage": "paper/webpage.parquet",
}
RATES = (0.002, 0.005, 0.01, 0.02, 0.05)
MOST_FIT, BATCH = 6000, 4000
FIGURES = ("precision", "recall", "ap")
CBPE = """
import sys, json, warnings, logging
warnings.filterwarnings("ignore")
import pandas as pd, nannyml
folder = sys.argv[1]
reference, batch = (pd.read_csv(f"{folder}/{name}.csv") for name in ("a", "b"))
metrics = ["precision", "recall", "average_precision"]
found = {"version": nannyml.__version__}
for metric in metrics:
    try:
        cbpe = nannyml.CBPE(problem_type="classification_binary", y_pred_proba="p",
            y_pred="decided", y_true="y", metrics=[metric], chunk_number=1)
        frame = cbpe.fit(reference).estimate(batch).filter(period="analysis").to_df()
        name = "ap" if metric == "average_precision" else metric
        own = frame[metric].iloc[0]
        value, error = float(own["value"]), float(own["sampling_error"])
        found[name] = [value, value - 1.645 * error, value + 1.645 * error]
    except Exception as error:
        found[metric + " failed"] = str(error)[:200]
print(json.dumps(found))
"""


def halves(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to fit on, with all positives of their half, and the other half."""
    rng = np.random.default_rng(seed)
    frame = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    cut = len(frame) // 2
    fit, rest = frame.iloc[:cut], frame.iloc[cut:].reset_index(drop=True)
    return fit.iloc[: MOST_FIT * 5 if fit["target"].mean() < 0.005 else MOST_FIT], rest


def batch_of(rest: pd.DataFrame, kind: str, rate: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, round(1e4 * rate)])
    y = rest["target"].to_numpy()
    if kind == "labels":
        up, down = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        n_up = min(max(round(BATCH * rate), 3), len(up))
        n_down = min(round(n_up * (1 - rate) / rate), len(down))
        rows = [
            rng.choice(up, n_up, replace=False),
            rng.choice(down, n_down, replace=False),
        ]
        return rest.iloc[rng.permutation(np.concatenate(rows))].reset_index(drop=True)
    others = rest.drop(columns="target")
    columns = [name for name in others if others[name].nunique() > 5]
    columns = columns or [*others.var().sort_values().index[-5:]]  # of flags alone
    column = rest[columns[seed % len(columns)]].rank(pct=True).fillna(0.5).to_numpy()
    strength = 3 * rate / max(RATES) * (1 if seed % 2 else -1)
    weight = np.exp(strength * column)
    rows = rng.choice(len(rest), BATCH, replace=False, p=weight / weight.sum())
    return rest.iloc[rows].reset_index(drop=True)


def cbpe(python: str, model: Any, judged: Any, y: Any) -> dict[str, Any]:
    """What NannyML expects of the same rows."""
    training = model.training
    known = ~np.isnan(training.vote)
    reference = pd.DataFrame(
        {
            "p": training.probability[known],
            "decided": (training.vote > training.threshold)[known].astype(int),
            "y": training.positive[known].astype(int),
        }
    )
    batch = pd.DataFrame({"p": judged.probability, "decided": judged.decided, "y": y})
    with tempfile.TemporaryDirectory() as folder:
        reference.to_csv(f"{folder}/a.csv", index=False)
        batch.drop(columns="y").to_csv(f"{folder}/b.csv", index=False)
        call = [python, "-c", CBPE, folder]
        env = os.environ | {"NML_DISABLE_USAGE_LOGGING": "1", "PYTHONPATH": ""}
        run = subprocess.run(
            call, capture_output=True, text=True, cwd=folder, env=env, check=False
        )
    if run.returncode:
        return {"failed": run.stderr.strip().splitlines()[-1:]}
    return json.loads(run.stdout.strip().splitlines()[-1])


def run(name: str, number: int, data: Path, python: str | None, out: Path) -> Any:
    """Ten batches of a table: five rates by class, and five strengths by a column."""
    frame = pd.read_parquet(data / TABLES[name])
    fit, rest = halves(frame, number)
    model = damvi.fit(fit, "target", pool="trees", shuffle=True, random_state=number)
    for kind in ("labels", "columns"):
        for rate in RATES:
            yield model, kind, rate, batch_of(rest, kind, rate, number)


def judge(model: Any, kind: str, batch: pd.DataFrame, python: str | None) -> dict[str, Any]:
    y = batch["target"].to_numpy().astype(np.intp)
    judged = honest_rows(model, batch.drop(columns="target"))
    found: dict[str, Any] = {
        "rows": len(y),
        "positives": int(y.sum()),
        "flagged": int(judged.decided.sum()),
        "achieved": achieved_figures(y, judged.vote, judged.decided),
    }
    ways = {"covariate": False} | ({"label": True} if kind == "labels" else {})
    for way, label_shift in ways.items():
        expected = expected_of(model, judged, label_shift=label_shift)
        assert expected is not None
        own = {k: [f.value, f.low, f.high] for k, f in expected.overall.items()}
        rows = expected.by_class[0]["rows"]
        found[way] = own | {"rows": [rows.value, rows.low, rows.high]}
    if kind == "labels":  # by moments, of the share that is flagged
        vote, truth = model.training.vote, model.training.positive
        known = ~np.isnan(vote)
        flags = (vote > model.training.threshold)[known]
        hit, alarm = flags[truth[known]].mean(), flags[~truth[known]].mean()
        rate = np.clip((judged.decided.mean() - alarm) / (hit - alarm), 0, 1)
        found["rate_by_moments"] = float(rate)
    if python is not None:
        found["nannyml"] = cbpe(python, model, judged, y)
    return found


def summary(lines: list[dict[str, Any]]) -> str:
    text = [
        f"{len(lines)} batches. Mean absolute error of the expected figure, the share of",
        "batches whose achieved figure is in the 90 % interval, and its mean width.",
        "NannyML's interval is its own sampling error times 1.645 (it draws 3 of them);",
        "it has none for the calibration.",
        "",
        f"{'batches by':12}{'figure':11}{'expected by':26}{'batches':>8}{'error':>8}"
        f"{'covered':>9}{'width':>7}",
    ]
    ways = {
        "labels": {
            "label": "damvi, label shift",
            "covariate": "damvi, P(y|x) (wrong here)",
            "nannyml": "NannyML CBPE",
        },
        "columns": {"covariate": "damvi, P(y|x)", "nannyml": "NannyML CBPE"},
    }
    for kind, own in ways.items():
        some = [line for line in lines if line["kind"] == kind]
        for figure in FIGURES:
            for way, called in own.items():
                pairs = [
                    (line[way][figure], line["achieved"][figure])
                    for line in some
                    if figure in line.get(way, {}) and figure in line["achieved"]
                ]
                pairs = [pair for pair in pairs if np.isfinite(pair[0]).all()]
                if not pairs:
                    text.append(f"{kind:12}{figure:11}{called:26}{0:8}")
                    continue
                error = np.mean([abs(e[0] - a) for e, a in pairs])
                inside = np.mean([e[1] - 1e-9 <= a <= e[2] + 1e-9 for e, a in pairs])
                width = np.mean([min(e[2], 1) - max(e[1], 0) for e, _ in pairs])
                text.append(
                    f"{kind:12}{figure:11}{called:26}{len(pairs):8}{error:8.3f}"
                    f"{inside:9.0%}{width:7.2f}"
                )
    text += ["", "Class rates estimated from the votes, batches by class:", ""]
    text.append(f"{'rate':>8}{'batches':>9}{'error, likelihood':>19}{'error, moments':>16}")
    for rate in RATES:
        some = [one for one in lines if one["kind"] == "labels" and one["rate"] == rate]
        if some:
            real = np.array([one["positives"] / one["rows"] for one in some])
            em = np.array([one["label"]["rows"][0] / one["rows"] for one in some])
            by = np.array([one["rate_by_moments"] for one in some])
            a, b = np.abs(em - real).mean(), np.abs(by - real).mean()
            text.append(f"{rate:8.1%}{len(some):9}{a:19.4%}{b:16.4%}")
    return "\n".join(text) + "\n"


def known_votes(draws: int = 200) -> str:
    """Coverage where new votes are like those of training, but for the class rate."""
    text = [
        "$ python benchmarks/worth.py --known",
        "",
        f"{draws} draws each; batches of 3,000 rows. Share of achieved figures in the",
        "90 % interval, and mean error of the expected figure.",
        "",
        "training rows  rate  batches                 figure     covered   error",
    ]

    def draw(rng: Any, n: int, rate: float, apart: float) -> tuple[Any, Any]:
        y = (rng.random(n) < rate).astype(np.intp)
        return np.tanh((rng.normal(size=n) + apart * y - 1.5) / 2), y

    for n, apart, shifts in ((3000, 2.0, False), (3000, 2.0, True), (10_000, 2.5, False)):
        rate = 0.03
        found: dict[str, list[tuple[bool, float]]] = {name: [] for name in FIGURES}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            vote, y = draw(rng, n, rate, apart)
            factor = rng.choice([0.2, 1, 2]) if shifts else 1
            new, truth = draw(rng, 3000, rate * factor, apart)
            decided = (new > np.quantile(vote, 1 - rate)).astype(np.intp)
            curve = calibrate_vote(vote, y)
            told = expected_figures(new, decided, curve, (vote, y), label_shift=shifts)
            came = achieved_figures(truth, new, decided)
            for name in FIGURES:
                own = told.overall[name]
                if name in came:
                    inside = own.low <= came[name] <= own.high
                    found[name].append((inside, own.value - came[name]))
        kind = "rate x 0.2, 1 or 2" if shifts else "unchanged"
        for name, pairs in found.items():
            covered, error = np.mean(pairs, axis=0)
            line = f"{n:13,}{rate:6.0%}  {kind:24}{name:10}{covered:8.0%}{error:+8.3f}"
            text.append(line)
            print(line, flush=True)
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--nannyml", metavar="PYTHON", help="That has NannyML.")
    parser.add_argument("-o", "--out", type=Path, default=Path("results/worth"))
    parser.add_argument("--known", action="store_true", help="Drawn votes instead.")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.known:
        (chosen.out / "known_votes.txt").write_text(known_votes(), encoding="utf-8")
        return
    kept = chosen.out / "batches.jsonl"
    lines = (
        [json.loads(line) for line in kept.read_text().splitlines()]
        if kept.exists()
        else []
    )
    done = {(line["table"], line["kind"], line["rate"]) for line in lines}
    for number, name in enumerate(TABLES):
        if all((name, k, r) in done for k in ("labels", "columns") for r in RATES):
            continue
        for model, kind, rate, batch in run(
            name, number, chosen.data, chosen.nannyml, chosen.out
        ):
            if (name, kind, rate) in done:
                continue
            found = judge(model, kind, batch, chosen.nannyml)
            line = {"table": name, "kind": kind, "rate": rate, **found}
            lines.append(line)
            with kept.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(name, kind, rate, flush=True)
        (chosen.out / "summary.txt").write_text(summary(lines), encoding="utf-8")
    print_setting("numpy", "scikit-learn", "pandas", "scipy")
    print(summary(lines))


if __name__ == "__main__":
    main()
