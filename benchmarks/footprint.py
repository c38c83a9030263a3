"""What does an installation weigh, and how long does an import take?

    python benchmarks/footprint.py [PACKAGE=PYTHON ...] [-o results/footprint]

Without names, damvi of this checkout and imbalanced-learn are installed, each in an
environment of its own. With names, a package is measured as that Python has it, such as
`autogluon.tabular[lightgbm]=.venv-autogluon/bin/python`. Counted are the files of the
package and of all that it requires (and compiled bytecode, which pip makes), and the CPU
time of a new process that imports it, the least of five, without that of Python itself.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TRIES = 5
IMPORTS = {
    "damvi": [
        "import damvi",
        "from damvi.cli import main; main(['--help'], standalone_mode=False)",
        "from damvi import DAMVIClassifier",
        "from damvi import Model",
    ],
    "imbalanced-learn": [
        "import imblearn",
        "from imblearn.ensemble import BalancedRandomForestClassifier",
    ],
    "autogluon.tabular": ["from autogluon.tabular import TabularPredictor"],
}

# Run by the Python that is measured, which may have nothing but its own package.
CLOSURE = """
import json, re, sys
from importlib.metadata import PackageNotFoundError, distribution
from os.path import getsize

try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement

found, waiting = {}, [Requirement(sys.argv[1])]
seen = set()
while waiting:
    asked = waiting.pop()
    name = re.sub(r"[-_.]+", "-", asked.name).lower()
    if (name, frozenset(asked.extras)) in seen:
        continue
    seen.add((name, frozenset(asked.extras)))
    try:
        there = distribution(name)
    except PackageNotFoundError:
        continue
    for text in there.requires or []:
        one = Requirement(text)
        extras = ["", *asked.extras]
        if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras):
            waiting.append(one)
    paths = [there.locate_file(file) for file in there.files or []]
    size = sum(getsize(path) for path in paths if path.is_file())
    found[name] = [there.version, size]
print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", metavar="PACKAGE=PYTHON")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        which = [one.rpartition("=")[::2] for one in args.which] or [
            ("damvi", installed(str(ROOT), Path(folder, "damvi"))),
            ("imbalanced-learn", installed("imbalanced-learn", Path(folder, "imblearn"))),
        ]
        measured = {name: measure(name, python) for name, python in which}
    names = " ".join(f"'{name}=PYTHON'" for name, _ in which) if args.which else ""
    text = f"$ python benchmarks/footprint.py {names}\n".replace(" \n", "\n")
    text += (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
    )
    text += "".join(told(name, one) for name, one in measured.items())
    print(text, end="")
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        (args.output / "footprint.txt").write_text(text, encoding="utf-8")
        stored = json.dumps(measured, indent=1) + "\n"
        (args.output / "footprint.json").write_text(stored, encoding="utf-8")


def installed(what: str, folder: Path) -> str:
    """A Python with nothing but a package and what it requires."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "-q", "install", what], check=True)
    return python


def measure(name: str, python: str) -> dict[str, Any]:
    ran = subprocess.run(
        [python, "-I", "-c", CLOSURE, name], stdout=subprocess.PIPE, text=True, check=True
    )
    packages: dict[str, tuple[str, int]] = json.loads(ran.stdout)
    alone = seconds(python, "pass")
    codes = IMPORTS.get(name.partition("[")[0], [])
    return {
        "packages": dict(sorted(packages.items(), key=lambda one: -one[1][1])),
        "bytes": sum(size for _, size in packages.values()),
        "seconds": {code: round(seconds(python, code) - alone, 3) for code in codes},
    }


def seconds(python: str, code: str) -> float:
    """CPU time of a process, user and system, the least of some."""
    taken = []
    for _ in range(TRIES + 1):  # the first one may compile bytecode
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, "-I", "-c", code], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(taken)


def told(name: str, measured: dict[str, Any]) -> str:
    packages = measured["packages"]
    lines = [f"\n{name}: {measured['bytes'] / 1e6:,.0f} MB in {len(packages)} packages"]
    large = [one for one in packages.items() if one[1][1] >= 0.01 * measured["bytes"]]
    lines += [f"  {size / 1e6:7.1f} MB  {one} {version}" for one, (version, size) in large]
    rest = sum(size for _, size in packages.values()) - sum(one[1][1] for one in large)
    lines.append(f"  {rest / 1e6:7.1f} MB  {len(packages) - len(large)} others")
    lines += [f"  {taken:7.2f} s   {code}" for code, taken in measured["seconds"].items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
