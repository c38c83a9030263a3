"""What is known against the dependencies and the code: ``make audit``.

Asks pip-audit about the newest and the oldest supported set, runs bandit on the sources and
writes a bill of materials for the wheel. What it prints is kept in results/audit. It ends
with 0 if nothing is open, 1 if something is, and 3 if the advisories could not be reached
or did not know some package: what was not looked at has not passed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLEAN, OPEN, NOT_AUDITED = 0, 1, 3
SERVICES = ("pypi", "osv")
"""Asked in turn, until one answers."""

ACCEPTED: dict[str, str] = {
    "CVE-2024-34997": "joblib's cache holds pickles of its own user; damvi reads none",
    "PYSEC-2024-277": "the same",
}
"""Advisories that do not concern damvi, and why. They are shown, and are not open."""
INSTALLERS = {"damvi", "pip", "setuptools"}
"""In every environment, and no dependency."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", help="NAME=PYTHON, or NAME=FILE with pins")
    parser.add_argument("--wheel", required=True, help="Python that has the wheel alone")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "audit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = [f"$ make audit  ({datetime.now(UTC):%Y-%m-%d %H:%M} UTC)"]
    states = []
    for one in options.sets:
        name, _, python = one.partition("=")
        state, said = audit_set(name, python)
        states.append(state)
        lines += ["", *said]
    for check in (run_bandit, lambda: write_bill(options.wheel, options.out)):
        state, said = check()
        states.append(state)
        lines += ["", *said]
    worst = OPEN if OPEN in states else max(states)
    words = {CLEAN: "nothing open", OPEN: "OPEN, see above", NOT_AUDITED: "NOT AUDITED"}
    lines += ["", f"result: {words[worst]}" + (" in part" if worst == NOT_AUDITED else "")]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (options.out / "audit.txt").write_text(text, encoding="utf-8")
    return worst


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment that runs this script."""
    path = Path(sys.executable).parent / name
    return subprocess.run([str(path), *arguments], cwd=ROOT, capture_output=True, text=True)


def audit_set(name: str, place: str) -> tuple[int, list[str]]:
    """What is known against the packages of an environment, or of a file with pins."""
    if place.endswith(".txt"):
        which = ["--requirement", place, "--no-deps", "--disable-pip"]
    else:
        show = "import sysconfig; print(sysconfig.get_path('purelib'))"
        path = subprocess.check_output([place, "-c", show], text=True).strip()
        which = ["--path", path, "--skip-editable"]
    reason = ""
    for service in SERVICES:
        run = tool(
            "pip-audit",
            *(*which, "--vulnerability-service", service),
            *("--format", "json", "--progress-spinner", "off"),
        )
        try:
            found = json.loads(run.stdout)["dependencies"]
        except (ValueError, KeyError):  # it ends in a traceback where nobody answers
            last = (run.stderr.strip().splitlines() or ["no answer"])[-1]
            reason = f"{service}: {last[:160]}"
            continue
        state, lines = judge(name, service, found)
        if state != NOT_AUDITED or service == SERVICES[-1]:
            return state, lines
        reason = "; ".join(lines)
    return NOT_AUDITED, [
        f"pip-audit, {name} set: NOT AUDITED, the advisories could not be reached",
        f"  ({reason})",
    ]


def judge(name: str, service: str, found: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """What pip-audit's answer comes to; a package that was skipped has not passed."""
    found = [one for one in found if one["name"] not in INSTALLERS]
    skipped = [one["name"] for one in found if "skip_reason" in one]
    known = [one for one in found if "skip_reason" not in one]
    lines, n_open = [], 0
    for one in known:
        for advisory in one["vulns"]:
            names = {advisory["id"], *advisory.get("aliases", [])}
            why = next((ACCEPTED[each] for each in names if each in ACCEPTED), None)
            n_open += why is None
            fixed = ", ".join(advisory.get("fix_versions", [])) or "no release"
            lines.append(
                f"  {one['name']} {one['version']}: {advisory['id']}, mended in {fixed}: "
                + (f"accepted: {why}" if why else "OPEN")
            )
    head = f"pip-audit by {service}, {name} set: {len(known)} packages looked at"
    if skipped:
        lines.append(f"  NOT AUDITED, unknown to the service: {', '.join(sorted(skipped))}")
    lines.insert(0, f"{head}, {n_open} advisories open, {len(skipped)} not known")
    return (OPEN if n_open else NOT_AUDITED if skipped else CLEAN), lines


def run_bandit() -> tuple[int, list[str]]:
    """Bandit on the sources; what it is told to leave alone is in pyproject.toml."""
    run = tool(
        "bandit", "-q", "-c", "pyproject.toml", "-r", "src", "-f", "json", "--exit-zero"
    )
    said = json.loads(run.stdout)
    total = said["metrics"]["_totals"]
    lines = [
        f"bandit on src: {total['loc']:,} lines, {len(said['results'])} issues, "
        f"{total['nosec'] + total['skipped_tests']} left alone with a reason beside them"
    ]
    for one in said["results"]:
        where = f"{one['filename']}:{one['line_number']}"
        lines.append(
            f"  {one['test_id']} {one['issue_severity']}: {where}: {one['issue_text']}"
        )
    return (OPEN if said["results"] or said["errors"] else CLEAN), lines


def write_bill(wheel: str, out: Path) -> tuple[int, list[str]]:
    """The software bill of materials of what the wheel installs."""
    path = out / "damvi.cdx.json"
    run = tool(
        "cyclonedx-py",
        *("environment", "--output-reproducible", "--pyproject", "pyproject.toml"),
        *("--output-format", "JSON", "--output-file", str(path), wheel),
    )
    if run.returncode:
        return OPEN, [f"cyclonedx-py failed: {run.stderr.strip()[-300:]}"]
    bill = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        f"bill of materials (CycloneDX {bill['specVersion']}) of an environment with the "
        f"wheel alone: {path.name}, {len(bill['components'])} components"
    ]
    for one in sorted(bill["components"], key=lambda one: one["name"]):
        lines.append(f"  {one['name']} {one.get('version', '')}")
    return CLEAN, lines


if __name__ == "__main__":
    sys.exit(main())
