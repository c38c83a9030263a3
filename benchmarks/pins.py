"""Do two source trees give the same results, bit by bit?

    python benchmarks/pins.py compare BEFORE [AFTER] [--walks NAME ...]
    python benchmarks/pins.py run OUT.npz [--walks NAME ...]
    python benchmarks/pins.py store

BEFORE and AFTER are checkouts (or what `run` wrote of one); AFTER is this one by default.
Each is run in a process of its own, on one thread, by the walks of this checkout's
tests/pins. A line a walk; the exit status tells whether all is the same. `store` renews
tests/pins/expected.json, what `make test` holds the results against on any machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
ERROR = "error"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run")
    run_parser.add_argument("out", type=Path)
    compare_parser = commands.add_parser("compare")
    compare_parser.add_argument("before", type=Path)
    compare_parser.add_argument("after", type=Path, nargs="?", default=ROOT)
    compare_parser.add_argument("--most", type=int, default=40, help="lines a walk")
    commands.add_parser("store")
    for each in (run_parser, compare_parser):
        each.add_argument("--walks", nargs="+", metavar="NAME", default=[])
    args = parser.parse_args()
    if args.command == "run":
        return run(args.out, args.walks)
    if args.command == "store":
        return store()
    with tempfile.TemporaryDirectory() as folder:
        before = results(args.before, args.walks, Path(folder, "before.npz"))
        after = results(args.after, args.walks, Path(folder, "after.npz"))
    return compare(before, after, args.walks, args.most)


def results(source: Path, walks: list[str], out: Path) -> dict[str, dict[str, object]]:
    """What a tree finds, by walk."""
    if source.suffix != ".npz":
        source = source.resolve()
        home = subprocess.run(
            [sys.executable, "-c", "import damvi; print(damvi.__file__)"],
            env=environment(source),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        if not Path(home.strip()).is_relative_to(source):
            raise SystemExit(f"{source} holds no src/damvi; Python found {home.strip()}")
        print(f"walking {source}", flush=True)
        command = [sys.executable, __file__, "run", str(out)]
        command += ["--walks", *walks] if walks else []
        subprocess.run(command, env=environment(source), check=True)
        source = out
    found: dict[str, dict[str, object]] = {}
    with np.load(source) as file:
        for key in file.files:
            walk, _, name = key.partition("|")
            found.setdefault(walk, {})[name] = file[key]
    return found


def environment(tree: Path) -> dict[str, str]:
    return os.environ | ONE_THREAD | {"PYTHONPATH": str(tree / "src")}


def compare(before: dict, after: dict, walks: list[str], most: int) -> int:
    """Tell what differs; 1 if anything does, else 0."""
    changed = 0
    for walk in walks or dict.fromkeys([*before, *after]):
        one, other = before.get(walk, {}), after.get(walk, {})
        told = [
            f"{side} fails: {found[ERROR]}"
            for side, found in (("before", one), ("after", other))
            if ERROR in found
        ]
        if not told:
            told = [f"{k}: only before{number(one[k])}" for k in one.keys() - other.keys()]
            told += [
                f"{k}: only after{number(other[k])}" for k in other.keys() - one.keys()
            ]
            for name in one.keys() & other.keys():
                told += difference(name, one[name], other[name])
        changed += bool(told)
        print(f"{walk:24} {'DIFFERENT' if told else f'same ({len(one)} arrays)'}")
        for line in sorted(told)[:most]:
            print(f"    {line}")
        if len(told) > most:
            print(f"    and {len(told) - most} more; --most shows more")
    return int(changed > 0)


def difference(name: str, one: np.ndarray, other: np.ndarray) -> list[str]:
    if one.shape != other.shape:
        return [f"{name}: shape {one.shape} has become {other.shape}"]
    kinds = {one.dtype.kind, other.dtype.kind}
    if not kinds <= set("biuf"):
        return [] if np.array_equal(one, other) else [f"{name}: other texts"]
    if one.dtype == other.dtype and one.tobytes() == other.tobytes():
        return []
    if "f" not in kinds and np.array_equal(one, other):
        return []  # whole numbers of another width
    differ = ~((one == other) | ((one != one) & (other != other)))
    if not differ.any():
        if one.dtype == other.dtype:
            return []  # 0.0 and -0.0, or NaNs of other bits
        return [f"{name}: {one.dtype} has become {other.dtype}, of the same values"]
    gap = np.abs(one[differ].astype(float) - other[differ].astype(float)).max()
    return [f"{name}: {differ.sum()} of {differ.size} differ, by up to {gap:.3g}"]


def number(values: np.ndarray) -> str:
    return f" ({values[()]})" if values.ndim == 0 else ""


def walks_here() -> object:
    sys.path.insert(0, str(ROOT))
    from tests.pins import walks

    return walks


def run(out: Path, names: list[str]) -> int:
    """Walk with the damvi that Python finds, and write all arrays to a file."""
    walks = walks_here().WALKS
    unknown = set(names) - set(walks)
    if unknown:
        raise SystemExit(f"no walks: {', '.join(unknown)}; there are {', '.join(walks)}")
    arrays = {}
    for name in names or walks:
        start = time.perf_counter()
        try:
            found = walks[name].run()
        except Exception as error:
            traceback.print_exc()
            found = {ERROR: f"{type(error).__name__}: {error}"}
        for key, values in found.items():
            arrays[f"{name}|{key}"] = np.asarray(values)
        print(f"    {name:24} {time.perf_counter() - start:5.1f} s", flush=True)
    np.savez(out, **arrays)
    return 0


def store() -> int:
    walks = walks_here().WALKS
    from tests.pins import expectations

    expectations.store({name: w for name, w in walks.items() if w.kept != "nothing"})
    file = expectations.FILE
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
