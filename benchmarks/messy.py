"""Fit and score the twelve messy tables as the README says, and the oracle beside them.

For each table: ``damvi fit FILE --target NAME``, then ``damvi evaluate`` on the fresh rows;
the same for the clean values, which an oracle would read. What is recorded: how each column
was used, how well its values were understood (the rank correlation of what the model sees
with the clean values, on the fresh rows), what was lost and whether the output says so, and
what was promised and achieved. Finished parts are not run again.

    python benchmarks/messy.py results/messy [TABLE ...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pandas as pd
from messy_making import Table
from messy_tables import tables

import damvi

STRONG = ("swiss_invoices", "churn_notes")
"""Tables whose voters are the default ones; the others have the paper's trees."""
MERGED = ("--merge-labels",)
"""For labels that differ in case alone, as ``damvi fit`` advises."""
KEPT = ("name", "kind", "reason", "doubt")
UNDERSTOOD = 0.98
"""The rank correlation with the clean values from which on a column counts as read."""


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    """A command of damvi: what it printed, and how it ended."""
    command = [sys.executable, "-m", "damvi", *arguments]
    environment = os.environ | {"COLUMNS": "160"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    shown = " ".join(["damvi", *arguments])
    return {
        "command": shown,
        "code": done.returncode,
        "output": done.stdout,
        "errors": done.stderr,
    }


def fit_and_evaluate(
    folder: Path, file: str, target: str, pool: str, *options: str
) -> dict[str, Any]:
    """Fit on a file, evaluate on its fresh rows."""
    model = f"{Path(file).stem}.damvi"
    options = (*options, *(() if pool == "strong" else ("--pool", pool)))
    fitted = run(
        folder, "fit", file, "--target", target, *options, "--jobs", "1", "-o", model
    )
    result: dict[str, Any] = {"fit": fitted}
    if fitted["code"]:
        return result
    scores = json.loads((folder / f"{Path(file).stem}.scores.json").read_text("utf-8"))
    result["promised"] = scores["models"]["DAMVI"]
    result["warnings"], result["notes"] = scores["warnings"], scores["notes"]
    result["columns"] = [{key: c[key] for key in KEPT} for c in scores["columns"]]
    result["versions"] = scores["made"]["versions"]
    result["evaluate"] = run(folder, "evaluate", model, "new_" + file)
    if not result["evaluate"]["code"]:
        machine = run(folder, "evaluate", model, "new_" + file, "--json")
        result["achieved"] = json.loads(machine["output"])["figures"]
    return result


def understood(table: Table, folder: Path) -> dict[str, float]:
    """How the numbers that the model sees go with the clean values, by column of signal."""
    model = damvi.load(folder / f"{Path(table.file).stem}.damvi")
    frame = model.read(folder / f"new_{table.file}")
    seen = model.schema.encode(frame).select_dtypes("number").reset_index(drop=True)
    clean = table.clean.iloc[table.n_fit :].reset_index(drop=True)
    found = {}
    for name in table.terms:
        own = [
            feature
            for feature in map(str, seen)
            if feature == name
            or feature.startswith(f"{name} (")
            or feature.endswith(f"since {name})")
        ]
        if not own or not pd.api.types.is_numeric_dtype(clean[name]):
            continue
        pairs = [seen[feature].corr(clean[name], method="spearman") for feature in own]
        found[name] = float(np.nanmax(np.abs(pairs))) if np.isfinite(pairs).any() else 0.0
    return found


def fate(name: str, result: dict[str, Any]) -> str:
    """What became of a column: read, used as categories, in part, or lost."""
    if "columns" not in result:
        return "refused"
    column = next((c for c in result["columns"] if c["name"] == name), None)
    if column is None:
        return "lost: not among the columns"
    if column["kind"] == "dropped":
        return f"lost: {column['reason']}"
    share = result["understood"].get(name)
    if column["kind"] not in ("number", "date") or share is None:
        return column["reason"] or column["kind"]
    return "read" if share >= UNDERSTOOD else f"misread (rank correlation {share:.2f})"


def show(figures: dict[str, Any] | None, name: str, interval: bool = False) -> str:
    if figures is None:
        return "–"
    figure = figures[name]
    low, high = (f"{figure[end]:.2f}".lstrip("0") for end in ("low", "high"))
    return f"{figure['value']:.3f}" + (f" ({low}–{high})" if interval else "")


def summary(results: list[dict[str, Any]]) -> str:
    """One page about all tables."""
    versions = next(
        (r["messy"]["versions"] for r in results if "versions" in r["messy"]), {}
    )
    lines = [
        "# Twelve messy tables",
        "",
        "Made by `python benchmarks/messy.py results/messy`, with "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
        "",
        "The tables were written by someone who had read only the README "
        "(`benchmarks/messy_tables.py`). Promised is what `damvi fit` says of the vote, "
        "with its 90 % interval; achieved is what `damvi evaluate` finds on fresh rows; "
        "the oracle is the same model on the clean values, on the same fresh rows; best is "
        "the true log odds.",
        "",
        f"Run so far: {len(results)} of the twelve, {sum('oracle' in r for r in results)} "
        "with the oracle.",
        "",
        "| table | pool | AP promised | achieved | oracle | best "
        "| F1 promised | achieved |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        messy, oracle = r["messy"], r.get("oracle", {})
        promised, achieved = messy.get("promised"), messy.get("achieved")
        lines.append(
            f"| {r['table']} | {r['pool']} | {show(promised, 'ap', True)} "
            f"| {show(achieved, 'ap')} | {show(oracle.get('achieved'), 'ap')} "
            f"| {r['best']:.3f} | {show(promised, 'f1', True)} | {show(achieved, 'f1')} |"
        )
    for r in results:
        messy = r["messy"]
        lines += ["", f"## {r['table']}", "", r["about"], ""]
        if "columns" not in messy:
            lines += [f"`{messy['fit']['command']}`: {messy['fit']['errors'].strip()}"]
            continue
        lines += [
            "| column of signal | best AP without | used as | became |",
            "|---|---|---|---|",
        ]
        used = {c["name"]: c for c in messy["columns"]}
        for name, without in r["without"].items():
            kind = used.get(name, {}).get("kind", "–")
            lines.append(f"| {name} | {without:.3f} | {kind} | {fate(name, messy)} |")
        others = [
            f"{name or '(no name)'} ({trap}): "
            + (f"{used[name]['kind']}, {used[name]['reason']}" if name in used else "–")
            for name, trap in r["traps"].items()
        ]
        if others:
            lines += ["", "Traps:", "", *(f"- {text}" for text in others)]
        said = [*messy["warnings"], *messy["notes"]]
        said += [f"{c['name']}: {c['doubt']}" for c in messy["columns"] if c["doubt"]]
        if said:
            lines += ["", "The tool said:", "", *(f"- {text}" for text in said)]
    return "\n".join(lines) + "\n"


def commit() -> str:
    here = Path(__file__).parent
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=here,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def main(out: Path, wanted: list[str], files: Path, only: str | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    results = []
    for table in tables():
        path = out / f"{table.name}.json"
        result = json.loads(path.read_text("utf-8")) if path.exists() else {}
        if not wanted or table.name in wanted:
            folder = files / table.name
            table.write(folder)
            pool = "strong" if table.name in STRONG else "trees"
            result |= {
                "table": table.name,
                "about": table.about,
                "pool": pool,
                "rows": table.n_fit,
                "best": table.ceiling(),
                "without": {name: table.ceiling(name) for name in table.terms},
                "traps": table.traps,
            }
            sources = {
                "oracle": ("oracle.parquet", "label"),
                "messy": (table.file, table.target),
            }
            for part, (file, target) in sources.items():
                if only not in (None, part) or "achieved" in result.get(part, {}):
                    continue
                # What the output of a first try advises is followed.
                options = MERGED if part == "messy" and len(table.spellings) > 2 else ()
                result[part] = fit_and_evaluate(folder, file, target, pool, *options)
                result[part]["commit"] = commit()
                if part == "messy" and "columns" in result[part]:
                    result[part]["understood"] = understood(table, folder)
                text = json.dumps(result, indent=1, ensure_ascii=False)
                path.write_text(text + "\n", "utf-8")
                print(table.name, part, result[part]["fit"]["code"], flush=True)
        if "messy" in result:
            results.append(result)
    (out / "messy.md").write_text(summary(results), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--files", type=Path, default=Path(gettempdir(), "damvi-messy"))
    parser.add_argument("--only", choices=["oracle", "messy"])
    given = parser.parse_args()
    main(given.out, given.tables, given.files, given.only)
