"""``python -m tests.fuzz``, as ``make fuzz`` calls it; see docs/fuzzing.md."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

KINDS = ("models", "csv", "files", "fits", "rows")
ROOT = Path(__file__).parents[2]
LIBRARIES = ["numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "lightgbm"]
LIBRARIES += ["xgboost", "catboost", "skops", "onnxruntime"]
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")
}


def main() -> int:
    options = _parser().parse_args()
    _prepare_environment(options)
    if options.replay:
        return _replay(options)
    kinds = KINDS if options.kind == "all" else (options.kind,)
    failed = 0
    for kind in kinds:
        failed += _fuzz(kind, options, len(kinds))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", choices=(*KINDS, "all"), default="all")
    parser.add_argument("--seconds", type=float, help="in all; default: until --cases")
    parser.add_argument("--cases", type=int, help="of each kind; default: until --seconds")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=ROOT / ".fuzz", help="what is kept")
    parser.add_argument("--log", type=Path, help="folder for the logs")
    parser.add_argument("--few", action="store_true", help="fewer kinds of model files")
    parser.add_argument(
        "--unchecked", action="store_true", help="kernels as users have them"
    )
    parser.add_argument("--replay", type=Path, nargs="+", help="folders of findings")
    return parser


def _prepare_environment(options: argparse.Namespace) -> None:
    """One thread, and bounds checked; both are read when libraries are imported."""
    wanted = dict(ONE_THREAD)
    if not options.unchecked:
        wanted["NUMBA_BOUNDSCHECK"] = "1"
        # Compiled without checks is not told apart from compiled with them.
        wanted["NUMBA_CACHE_DIR"] = str((options.folder / "numba").resolve())
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})


def _kind(name: str, options: argparse.Namespace) -> Any:
    """What is fuzzed, with all that it takes imported and compiled, on one thread."""
    from .runner import only_thread

    kind: Any
    if name == "models":
        from .bases import BASES, FEW, TABLES
        from .models import Models

        folder = options.folder / "sound"
        folder.mkdir(parents=True, exist_ok=True)
        names = FEW if options.few else (*BASES, *TABLES)
        for old in folder.glob("*.damvi"):  # of other sources, perhaps
            old.unlink()
        command = [sys.executable, "-m", "tests.fuzz.bases", str(folder), *names]
        subprocess.run(command, check=True)
        kind = Models(folder)
    elif name == "rows":
        from .rows import Rows

        folder = options.folder / "rows"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.rows", str(folder)]
        subprocess.run(command, check=True)
        kind = Rows(folder)
    elif name == "csv":
        from .tables import Tables

        kind = Tables()
    elif name == "files":
        from .tables import Files

        kind = Files()
    else:
        from .fits import Fits

        kind = Fits(20 if options.few else 150)
    kind.warm()
    if not only_thread():
        raise SystemExit("the worker has started threads, and must not be forked")
    return kind


def _fuzz(name: str, options: argparse.Namespace, of: int) -> int:
    from .runner import Log, run

    kind = _kind(name, options)
    findings = options.folder / "findings"

    def found(one: Any) -> None:
        from .runner import random_of

        folder = findings / f"{one.kind}-{one.seed}-{one.number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "finding.json").write_text(json.dumps(asdict(one), indent=1))
        try:
            kind.keep(kind.make(random_of(one.seed, one.number)), folder)
        except Exception as error:  # the case itself cannot be made: our own mistake
            print(f"  {type(error).__name__} while it was made: {error}")
        print(f"{one.what}: {folder}\n  {one.message.strip().splitlines()[-1][:200]}")
        sys.stdout.flush()

    shown = [time.monotonic()]

    def tick(log: Log) -> None:
        if time.monotonic() - shown[0] > 60:
            shown[0] = time.monotonic()
            print(f"{name}: {log.cases:,} cases, {len(log.findings)} findings", flush=True)

    numbers: Iterator[int] = itertools.count(options.first)
    if options.cases is not None:
        numbers = iter(range(options.first, options.first + options.cases))
    seconds = options.seconds / of if options.seconds else float("inf")
    if options.cases is None and options.seconds is None:
        raise SystemExit("say how long: --seconds or --cases")
    start = datetime.now(UTC)
    log = run(kind, options.seed, numbers, time.monotonic() + seconds, found, tick)
    text = _summary(name, options, log, start)
    print(text)
    if options.log:
        options.log.mkdir(parents=True, exist_ok=True)
        stamp = start.strftime("%Y%m%d-%H%M")
        (options.log / f"{name}-{options.seed}-{stamp}.txt").write_text(text)
    return len(log.findings)


def _summary(name: str, options: argparse.Namespace, log: Any, start: datetime) -> str:
    said = shlex.join(sys.argv[1:]).replace(f"{ROOT}/", "")
    lines = [
        f"$ python -m tests.fuzz {said}",
        f"kind: {name}; seed {options.seed}; cases {options.first} and on",
        f"start: {start:%Y-%m-%d %H:%M} UTC; source: {_source()}",
        f"bounds checked: {'no' if options.unchecked else 'yes'}",
        "versions: python "
        + sys.version.split()[0]
        + "".join(f", {one} {_version(one)}" for one in LIBRARIES),
        f"{log.cases:,} cases in {log.seconds:,.0f} s, {len(log.findings)} findings",
        f"slowest: {log.slowest[0]:.2f} s of processor time (case {log.slowest[1]}); "
        f"most memory: {log.largest[0] >> 20} MiB (case {log.largest[1]})",
        "",
    ]
    lines += [f"{n:>8,}  {outcome}" for outcome, n in log.outcomes.most_common()]
    for one in log.findings:
        last = one.message.strip().splitlines()[-1][:160]
        lines.append(f"finding {one.kind}-{one.seed}-{one.number}: {one.what}: {last}")
    return "\n".join(lines) + "\n"


def _source() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.check_output(
            command, text=True, stderr=subprocess.DEVNULL
        ).strip()
    except (OSError, subprocess.CalledProcessError):
        return "no repository"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _replay(options: argparse.Namespace) -> int:
    """Run stored findings again, each in a child of its own."""
    from .runner import random_of, run

    failed = 0
    kinds: dict[str, Any] = {}
    for folder in options.replay:
        said = json.loads((folder / "finding.json").read_text())
        kind = kinds.get(said["kind"]) or _kind(said["kind"], options)
        kinds[said["kind"]] = kind
        seed, number = said["seed"], said["number"]
        if hasattr(kind, "kept"):
            case = kind.kept(folder)
        else:
            case = kind.make(random_of(seed, number))

        class Once:
            name, per_child = kind.name, 1
            make = staticmethod(lambda rng, case=case: case)
            check = staticmethod(kind.check)

        log = run(Once(), seed, iter([number]), float("inf"), lambda one: None)
        for outcome in log.outcomes:
            print(f"{folder}: {outcome}")
        for one in log.findings:
            print(one.message, one.output, sep="\n")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
