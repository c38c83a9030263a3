"""How many files does a call pass through, and how often from one to another?

    python benchmarks/crossings.py [TREE ...] [--list]

Three calls on 400 rows and 20 columns are traced: `fit` on trees, `damvi fit` on a CSV
file (the strong pool), and `predict`. Counted are the damvi modules whose functions run,
and the different pairs of a calling module and a called one; frames of other libraries in
between are looked through, and what only imports or compiles is left out. Compiled kernels
count too, with the kernels that they may call. Each TREE, this checkout by default, is
traced in a process of its own; `--list` names the pairs. The exit status tells whether the
last one keeps to what is allowed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {"fit": (20, 30), "damvi fit": (50, 90), "predict": (8, 10)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", type=Path, nargs="*", metavar="TREE", default=[ROOT])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(trace_all()))
        return 0
    kept = True
    for tree in args.trees:
        found = results(tree.resolve())
        print(f"{tree.resolve()}\n{'':12}{'files':>6}{'crossings':>11}{'allowed':>12}")
        kept = True
        for name, (files, pairs) in found.items():
            most = ALLOWED[name]
            kept &= len(files) <= most[0] and len(pairs) <= most[1]
            allowed = f"{most[0]} and {most[1]}"
            print(f"{name:12}{len(files):6}{len(pairs):11}{allowed:>12}", flush=True)
            for caller, called in pairs if args.list else ():
                print(f"    {caller} -> {called}")
    return int(not kept)


def results(tree: Path) -> dict[str, tuple[list[str], list[tuple[str, str]]]]:
    ran = subprocess.run(
        [sys.executable, __file__, "--one"],
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    if not Path(found.pop("home")).is_relative_to(tree):
        raise SystemExit(f"{tree} holds no src/damvi")
    return found


def trace_all() -> dict[str, Any]:
    import pandas as pd
    from sklearn.datasets import make_classification

    import damvi
    from damvi.cli import main as command

    X, y = make_classification(400, weights=[0.9], random_state=0)
    watched = Watched()
    found: dict[str, Any] = {"home": damvi.__file__}
    model = damvi.DAMVIClassifier(random_state=0)
    found["fit"] = watched.trace(lambda: model.fit(X, y))
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "rows.csv"), Path(folder, "model.damvi")
        table = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
        table.assign(target=y).to_csv(file, index=False)
        words = ["fit", str(file), "--target", "target", "--jobs", "1", "-o", str(out)]
        found["damvi fit"] = watched.trace(
            lambda: command([*words, "--quiet"], standalone_mode=False)
        )
    found["predict"] = watched.trace(lambda: model.predict(X))
    return found


class Watched:
    """Which modules of damvi call which, while a call is traced."""

    def __init__(self) -> None:
        from numba.core.dispatcher import Dispatcher

        self.files: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.tracing = False
        compiled, watched = Dispatcher.__call__, self

        def call(kernel: Any, *args: Any, **options: Any) -> Any:
            if watched.tracing and (name := module_of(kernel.py_func.__globals__)):
                watched.note(name, sys._getframe(1))
                watched.note_kernels(kernel, set())
            return compiled(kernel, *args, **options)

        # Compiled code makes no frames that a profiler would see.
        self.kernel, Dispatcher.__call__ = Dispatcher, call

    def trace(self, work: Callable[[], Any]) -> tuple[list[str], list[tuple[str, str]]]:
        """The modules and the pairs of a call."""
        self.files.clear()
        self.pairs.clear()
        threading.setprofile(self.see)
        sys.setprofile(self.see)
        self.tracing = True
        try:
            work()
        finally:
            self.tracing = False
            sys.setprofile(None)
            threading.setprofile(None)
        return sorted(self.files), sorted(self.pairs)

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        name = module_of(frame.f_globals)
        if event == "call" and name and not prepares(frame):
            self.note(name, frame.f_back)

    def note(self, name: str, caller: FrameType | None) -> None:
        self.files.add(name)
        while caller is not None and (
            is_of_kernel(caller) or not module_of(caller.f_globals)
        ):
            caller = caller.f_back
        if caller is not None and (by := module_of(caller.f_globals)) != name:
            self.pairs.add((by, name))

    def note_kernels(self, kernel: Any, known: set[Any]) -> None:
        """The kernels that a kernel calls, and so on."""
        known.add(kernel)
        function = kernel.py_func
        by = module_of(function.__globals__)
        for word in function.__code__.co_names:
            called = function.__globals__.get(word)
            called = getattr(called, "compiled", called)
            if not isinstance(called, self.kernel) or called in known:
                continue
            if name := module_of(called.py_func.__globals__):
                self.files.add(name)
                if name != by:
                    self.pairs.add((by, name))
                self.note_kernels(called, known)


def module_of(names: dict[str, Any]) -> str:
    """The module that these are the globals of, if it is one of damvi's."""
    name = str(names.get("__name__", ""))
    return name if name.partition(".")[0] == "damvi" else ""


def prepares(frame: FrameType | None) -> bool:
    """Whether this runs because a module of damvi is imported, or a kernel called."""
    while frame is not None:
        is_import = frame.f_code.co_name == "<module>" and module_of(frame.f_globals)
        if is_import or is_of_kernel(frame):
            return True
        frame = frame.f_back
    return False


def is_of_kernel(frame: FrameType) -> bool:
    """Whether this compiles a kernel, or passes a call on to what was compiled."""
    name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
    return name.startswith("damvi._kernels.Kernel.")


if __name__ == "__main__":
    sys.exit(main())
