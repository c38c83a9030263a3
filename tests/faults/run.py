"""Faults on purpose, at every file operation of the commands, and what they leave.

    python -m tests.faults.run -o results/faults            all of them
    python -m tests.faults.run --every 9                    some, in a minute

Everything is loaded once, and each fault happens in a process forked from there. After each
one the outputs must be the old files or the new ones, byte by byte, and nothing else may be
there (after a kill -9: once the command has run again, which must give the new ones).
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # threads do not survive a fork
    os.environ[f"{name}_NUM_THREADS"] = "1"

from ..cli.conftest import fraud  # noqa: E402
from .hook import HOWS, Operations  # noqa: E402

LIMIT = 120
"""Seconds that a command may take."""
OLD = b"the old file"


@dataclass
class Command:
    """What is run, and what it writes.

    Attributes
    ----------
    name : str
    words : list of str
        After ``damvi``; or of Python code, a function and its argument.
    outputs : list of str
        Files that are replaced.
    kept : list of str
        Others that may be there afterwards, in folders of their own.
    step : int
        It is killed at every operation, and put to other faults at each such one.
    """

    name: str
    words: list[str]
    outputs: list[str]
    kept: list[str] = field(default_factory=list)
    step: int = 1
    code: Callable[[], None] | None = None
    new: dict[str, bytes] = field(default_factory=dict)
    operations: list[str] = field(default_factory=list)


class Fault(NamedTuple):
    """A line of the table."""

    command: str
    fault: str
    operation: str
    n: int
    ended: str
    outcome: str


def fit_in_python() -> None:
    """A fit on disk whose bins stay in a folder that is named."""
    from damvi import DAMVIClassifier, ParquetTable, save

    table = ParquetTable("pay", columns=["age"], cache="bins")
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(table, "is_fraud")
    save(model, "python.damvi")


def commands() -> list[Command]:
    fit = ["--target", "is_fraud", "--quiet", "--jobs", "1"]
    data = ["made.damvi", "data.csv"]
    bins = ("bins", "codes", "done", "hashes", "key", "lock", "readers")
    return [
        Command(
            "fit",
            ["fit", "data.csv", "--pool", "trees", *fit, "-o", "m.damvi"],
            ["m.damvi", "m.scores.json"],
        ),
        Command(
            "fit on disk",
            ["fit", "pay", *fit, "--shuffle", "-o", "disk.damvi"],
            ["disk.damvi", "disk.scores.json"],
            step=3,
        ),
        Command(
            "fit on disk, named cache",
            [],
            ["python.damvi"],
            [f"bins/{name}" for name in bins],
            code=fit_in_python,
        ),
        Command("predict", ["predict", *data, "-o", "p.csv", "--jobs", "1"], ["p.csv"]),
        Command(
            "predict to parquet",
            ["predict", *data, "-o", "p.parquet", "--jobs", "1"],
            ["p.parquet"],
        ),
        Command("report", ["report", *data, "-o", "r.html"], ["r.html"]),
        Command("drift", ["drift", *data, "-o", "d.html"], ["d.html"]),
        Command(
            "export to onnx",
            ["export", "made.damvi", "--to", "onnx"],
            ["made.onnx", "made.onnx.json"],
        ),
        Command(
            "export to scikit-learn",
            ["export", "made.damvi", "--to", "sklearn"],
            ["made.sklearn.skops"],
        ),
    ]


def prepare() -> None:
    """The inputs, in the folder where we are, and all that is imported and compiled."""
    from damvi.cli import main

    frame = fraud(240).drop(columns="shop")  # scikit-learn's trees take no categories
    frame.to_csv("data.csv", index=False)
    Path("pay").mkdir()
    for number in range(2):
        part = frame.iloc[120 * number : 120 * (number + 1)].reset_index(drop=True)
        part.to_parquet(f"pay/{number}.parquet", row_group_size=60)
    Path("tmp").mkdir()
    tempfile.tempdir = os.path.abspath("tmp")
    _stop_the_clock()
    _train_peers_once()
    warnings.simplefilter("ignore")  # of forks, from Python 3.12 on
    words = ["fit", "data.csv", "--target", "is_fraud", "--pool", "trees", "--jobs", "1"]
    words += ["--drop", "comment"]  # free text cannot be exported
    main([*words, "-o", "made.damvi", "--quiet"], standalone_mode=False)
    for command in commands():
        if command.code is not None:
            command.code()
        else:
            main([*command.words, "--quiet"], standalone_mode=False)
    gc.collect()


def _stop_the_clock() -> None:
    """The same command gives the same bytes."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC)

    for name in ("damvi.model.table", "damvi.report.summary"):
        import_module(name).datetime = Clock
    for name in ("damvi.model.training", "damvi.voters.pool"):
        import_module(name).time = SimpleNamespace(perf_counter=lambda: 0.0)


def _train_peers_once() -> None:
    """They are most of the time of a small fit, and write no file."""
    training = import_module("damvi.model.training")
    usual, known = training.peer_votes, {}

    def votes(classifier: Any, X: Any, *given: Any) -> Any:
        if len(X) not in known:
            known[len(X)] = usual(classifier, X, *given)
        return dict(known[len(X)])

    training.peer_votes = votes


def in_child(work: Callable[[], None]) -> int:
    """Run it in a process of its own; its exit code, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            silent = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            os.close(silent)
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            gc.collect()  # what goes with a model goes now
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + LIMIT
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(
                f"still running after {LIMIT} s: {Path('said').read_text(encoding='utf-8')}"
            )
        time.sleep(0.002)


def execute(command: Command, operations: Operations | None = None) -> Callable[[], None]:
    """The command as a function to be run in a child."""

    def work() -> None:
        from damvi.cli import run

        sys.argv = ["damvi", *command.words]
        if operations is not None:
            operations.watch()
        if command.code is not None:
            command.code()
        else:
            run()

    return work


def files() -> dict[str, bytes]:
    """All files that are not inputs, by name."""
    found = {
        str(path): content(path)
        for path in Path().rglob("*")
        if path.is_file() and path.name != "said"
    }
    return {name: found[name] for name in found if name not in _inputs()}


def content(path: Path) -> bytes:
    """What is in a file; of one by skops, without addresses and times, which differ."""
    if path.suffix != ".skops" or not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in sorted(archive.namelist())}
    ids: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return ids.setdefault(found[0], f"object {len(ids)}")

    schema = re.sub(r"(?<![.\w])\d{9,}\b", number, members.pop("schema.json").decode())
    arrays = [re.sub(r"\d{9,}", lambda found: ids.get(found[0], ""), n) for n in members]
    return repr((schema, sorted(zip(arrays, members.values(), strict=True)))).encode()


def _inputs() -> set[str]:
    return {"data.csv", "made.damvi", "made.scores.json", "pay/0.parquet", "pay/1.parquet"}


def clear() -> None:
    for name in files():
        Path(name).unlink()
    for folder in ("tmp", "bins"):
        for path in Path().glob(f"{folder}*"):
            shutil.rmtree(path)
    Path("tmp").mkdir()


def measure(command: Command) -> None:
    """The new files, and the operations that they take."""
    clear()
    run_well(command)
    command.new = {name: content(Path(name)) for name in command.outputs}
    clear()
    for name in command.outputs:
        Path(name).write_bytes(OLD)
    log = Path("tmp") / "operations"

    def work() -> None:
        operations = Operations(os.getcwd())
        with suppress(SystemExit):
            execute(command, operations)()
        gc.collect()
        seen = list(operations.seen)
        log.write_text("\n".join(seen))

    assert in_child(work) == 0, Path("said").read_text(encoding="utf-8")
    command.operations = log.read_text().split("\n")


def run_well(command: Command) -> None:
    code = in_child(execute(command))
    assert code == 0, (command.name, code, Path("said").read_text(encoding="utf-8"))


def provoke(command: Command, how: str, n: int) -> Fault:
    """One fault; an AssertionError says what it broke."""
    clear()
    for name in command.outputs:
        Path(name).write_bytes(OLD)
    code = in_child(execute(command, Operations(os.getcwd(), how, n)))
    said = Path("said").read_text(encoding="utf-8")
    place = f"{command.name}: {how} at {n}, {command.operations[n - 1]}: {code} {said}"
    found = files()
    outcome = check_outputs(command, found, place)
    extra = set(found) - set(command.outputs) - set(command.kept)
    if how == "terminate" and command.code is None:
        assert code in (143, 0), place
        # Bins of an interrupted fit are there to be gone on from.
        assert not {name for name in extra if not name.startswith("tmp/damvi-bins")}, (
            place,
            extra,
        )
    elif how in ("full", "read-only"):
        assert code in (0, 1, 70), place
        if command.code is None:
            assert code != 70, place
            assert "Traceback" not in said, place
        if how == "full":
            assert not {name for name in extra if "/damvi-bins" not in name}, (place, extra)
    else:
        assert code in (-9, -15, 0), place
    again(command, place)
    if extra:
        outcome += ", parts removed by the next run"
    return Fault(command.name, how, command.operations[n - 1], n, _said(code), outcome)


def check_outputs(command: Command, found: dict[str, bytes], place: str) -> str:
    states = []
    for name, new in command.new.items():
        assert found.get(name) in (OLD, new), (place, name)
        states.append("new" if found[name] == new else "old")
    return states[0] if len(set(states)) == 1 else "model new, scores old"


def again(command: Command, place: str) -> None:
    """The same command: the same bits, and nothing else left."""
    run_well(command)
    found = files()
    for name, new in command.new.items():
        assert found[name] == new, (place, name)
    assert set(found) - set(command.kept) == set(command.outputs), (place, set(found))


def _said(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


def two_writers(command: Command, n: int) -> Fault:
    """Two at once, to one place; what is there is whole, and nothing is left."""
    clear()
    children = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if in_child(execute(command)) == 0 else 1)
        children.append(pid)
    for pid in children:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, command.name
    found = files()
    for name, new in command.new.items():
        assert found[name] == new, (command.name, name)
    extra = set(found) - set(command.outputs) - set(command.kept)
    assert not {name for name in extra if not name.startswith("bins-1/")}, extra
    return Fault(command.name, "two writers", "all", n, "exit 0", "new")


def small_disk(command: Command, kilobytes: int) -> Fault:
    """A real disk of that size, for whoever may mount one."""
    clear()
    disk = Path("tmp/disk")
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(disk)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
    try:
        (name, *_) = command.outputs
        Path(disk / name).write_bytes(OLD)
        words = [str(disk / word) if word == name else word for word in command.words]
        code = in_child(execute(Command(command.name, words, [])))
        said = Path("said").read_text(encoding="utf-8")
        place = f"{command.name} on a disk of {kilobytes} kB: {code} {said}"
        left = {path.name: path.read_bytes() for path in disk.iterdir()}
        assert code in (0, 1), place
        assert "Traceback" not in said, place
        assert left[name] == OLD or code == 0 or command.name == "fit", place
        assert set(left) <= set(command.outputs), (place, set(left))
        state = "old" if left[name] == OLD else "new"
        assert state == "old" or left[name][:8] == command.new[name][:8], place
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return Fault(command.name, "small disk", f"{kilobytes} kB", 0, _said(code), state)


def may_mount() -> bool:
    if os.name != "posix" or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            command = ["mount", "-t", "tmpfs", "none", folder]
            subprocess.run(command, check=True, capture_output=True)
            subprocess.run(["umount", folder], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


def faults(every: int, names: list[str], hows: list[str]) -> Iterator[Fault | str]:
    """Each fault, or what is wrong; of some commands, of some kinds, every so many."""
    mounts, place = may_mount(), 0
    for command in commands():
        if names and command.name not in names:
            continue
        measure(command)
        tasks: list[tuple[Callable[..., Fault], tuple[Any, ...]]] = []
        for how in [how for how in HOWS if not hows or how in hows]:
            for n, operation in enumerate(command.operations, 1):
                is_killed = how in ("kill", "torn")
                if how == "torn" and operation != "write":
                    continue
                if is_killed or n % command.step == 0:
                    tasks.append((provoke, (command, how, n)))
        if not hows or "two writers" in hows:
            tasks += [(two_writers, (command, n)) for n in range(3)]
        if mounts and command.code is None and (not hows or "small disk" in hows):
            tasks += [(small_disk, (command, size)) for size in (4, 16, 64)]
        for task, given in tasks:
            place += 1
            if place % every:
                continue
            try:
                yield task(*given)
            except (AssertionError, TimeoutError) as error:
                yield str(error)


def write(out: Path, fault: Fault, is_first: bool) -> None:
    """A line of the command's table."""
    out.mkdir(parents=True, exist_ok=True)
    name = fault.command.replace(",", "").replace(" ", "_")
    with open(out / f"{name}.csv", "w" if is_first else "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_first:
            writer.writerow(Fault._fields)
        writer.writerow(fault)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--out", type=Path, help="folder of the table")
    parser.add_argument("--every", type=int, default=1, help="only each such fault")
    parser.add_argument("--command", action="append", default=[], help="of these alone")
    parser.add_argument("--fault", action="append", default=[], help="these alone")
    options = parser.parse_args()
    out = options.out and options.out.absolute()
    survived: list[Fault] = []
    broken: list[str] = []
    seen: set[str] = set()
    start, home = time.monotonic(), os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        for one in faults(options.every, options.command, options.fault):
            if isinstance(one, Fault):
                survived.append(one)
                if out is not None:
                    write(out, one, is_first=one.command not in seen)
                seen.add(one.command)
            else:
                broken.append(one)
                print("BROKEN", one, file=sys.stderr, flush=True)
        os.chdir(home)
    for name in sorted(seen):
        n = sum(one.command == name for one in survived)
        print(f"{name}: {n} survived")
    total = len(survived) + len(broken)
    print(f"{len(survived)} of {total} faults survived, {time.monotonic() - start:.0f} s")
    sys.exit(bool(broken) or not survived)


if __name__ == "__main__":
    main()
