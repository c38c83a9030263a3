"""Runs many hostile cases, so that a crash is a finding and not the end.

Cases run in children forked from a worker that has imported everything and has one thread.
A child has limits on time and memory; what it was doing when it died is told by the pipe.
A case is a function of (seed, number) alone, so that a finding is replayed by naming it.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import faulthandler
import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

CPU_SECONDS = 10.0
WALL_SECONDS = 90.0
"""Beside the processor's time, since the machine may be shared."""
ADDRESS_SPACE = 2 << 30
"""Bytes a child may map beyond what the worker has."""
MEMORY = 256 << 20
"""Bytes that a case may take, by the peak of what was resident."""
THREADS = 16
MALLOPT_PERTURB = -6


class Finding(Exception):
    """What must not happen: the kind of it, and what was seen."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Kind(Protocol):
    """What is fuzzed."""

    name: str
    per_child: int

    def make(self, rng: np.random.Generator) -> Any:
        """A case; the same for the same random numbers."""

    def check(self, case: Any) -> str:
        """The outcome in a word or two, or a :class:`Finding`."""

    def keep(self, case: Any, folder: Path) -> None:
        """Store what helps to look at a finding."""


@dataclass
class Found:
    """A finding, as it is stored."""

    kind: str
    seed: int
    number: int
    what: str
    message: str
    output: str = ""


@dataclass
class Log:
    """What came of a run."""

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[Found] = field(default_factory=list)
    cases: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[int, int] = (0, -1)


def random_of(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, number])


def only_thread() -> bool:
    """Whether this process can be forked without leaving locks behind.

    Allocators and polars have threads from their import on, and know what a fork is.
    """
    tasks = Path("/proc/self/task").iterdir()
    names = [(task / "comm").read_text() for task in tasks if task.name != str(os.getpid())]
    return all(name.startswith(("jemalloc_bg", "polars")) for name in names)


def perturb(byte: int) -> None:
    """Fill what malloc gives with another byte, so that stale memory is seen."""
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(MALLOPT_PERTURB, byte)


def run(
    kind: Kind,
    seed: int,
    numbers: Iterator[int],
    until: float,
    found: Callable[[Found], None],
    tick: Callable[[Log], None] = lambda log: None,
) -> Log:
    """Run cases until they or the time are used up, or somebody interrupts."""
    log, start = Log(), time.monotonic()
    waiting: collections.deque[int] = collections.deque()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryFile() as output, contextlib.suppress(KeyboardInterrupt):
        while time.monotonic() < until:
            while len(waiting) < kind.per_child:
                number = next(numbers, None)
                if number is None:
                    break
                waiting.append(number)
            if not waiting:
                break
            batch = [waiting.popleft() for _ in range(min(kind.per_child, len(waiting)))]
            left = _run_child(kind, seed, batch, output, log, found)
            waiting.extendleft(reversed(left))
            log.seconds = time.monotonic() - start
            tick(log)
    return log


def _run_child(
    kind: Kind,
    seed: int,
    batch: list[int],
    output: Any,
    log: Log,
    found: Callable[[Found], None],
) -> list[int]:
    """Run a batch in one child; the cases that it did not get to."""
    output.seek(0)
    output.truncate()
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(here)
        _be_child(kind, seed, batch, there, output)
    os.close(there)
    try:
        done, death = _listen(kind, seed, child, here, log, found)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(here)
    _, status = os.waitpid(child, 0)
    if done == len(batch) and not death:
        if status:
            _report(
                kind,
                seed,
                batch[-1],
                f"crash at exit: {_status(status)}",
                output,
                log,
                found,
            )
        return []
    death = death or f"crash: {_status(status)}"
    if len(batch) > 1:  # alone, to know whose fault it is
        before = len(log.findings)
        _run_child(kind, seed, [batch[done]], output, log, found)
        if len(log.findings) == before and not death.startswith("hang"):
            others = ", ".join(map(str, batch[: done + 1]))
            _report(
                kind, seed, batch[done], f"crash in company: {others}", output, log, found
            )
            log.cases -= 1
    else:
        _report(kind, seed, batch[done], death, output, log, found)
    return batch[done + 1 :]


def _listen(
    kind: Kind, seed: int, child: int, here: int, log: Log, found: Callable[[Found], None]
) -> tuple[int, str]:
    """Note what the child says: how many cases are done, and why it was ended, if so."""
    done, lines, death = 0, b"", ""
    began, spent = time.monotonic(), 0.0
    while True:
        ready, _, _ = select.select([here], [], [], 1.0)
        if ready:
            block = os.read(here, 65536)
            if not block:
                return done, ""
            *whole, lines = (lines + block).split(b"\n")
            for line in whole:
                _note(kind, seed, json.loads(line), log, found)
                done += 1
            began, spent = time.monotonic(), _cpu(child)
        elif _cpu(child) - spent > CPU_SECONDS:
            death = f"hang: more than {CPU_SECONDS:.0f} s of processor time"
        elif time.monotonic() - began > WALL_SECONDS:
            death = f"hang: more than {WALL_SECONDS:.0f} s"
        if death:
            os.kill(child, signal.SIGABRT)  # faulthandler says where it was
            time.sleep(0.2)
            os.kill(child, signal.SIGKILL)
            return done, death


def _status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.waitstatus_to_exitcode(status)}"


def _cpu(pid: int) -> float:
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _report(kind, seed, number, death, output, log, found) -> None:  # type: ignore[no-untyped-def]
    output.seek(0)
    said = output.read().decode(errors="replace")
    said = said if len(said) < 3000 else f"{said[:2500]} ... {said[-500:]}"
    what = death.partition(":")[0]
    log.cases += 1
    log.outcomes[f"FINDING {what}"] += 1
    one = Found(kind.name, seed, number, what, death, said)
    log.findings.append(one)
    found(one)


def _note(
    kind: Kind, seed: int, said: dict[str, Any], log: Log, found: Callable[[Found], None]
) -> None:
    log.cases += 1
    log.slowest = max(log.slowest, (said["seconds"], said["number"]))
    log.largest = max(log.largest, (said["grew"], said["number"]))
    if "what" not in said:
        log.outcomes[said["outcome"]] += 1
        return
    log.outcomes[f"FINDING {said['what']}"] += 1
    one = Found(kind.name, seed, said["number"], said["what"], said["message"])
    log.findings.append(one)
    found(one)


def _be_child(kind: Kind, seed: int, batch: list[int], there: int, output: Any) -> None:
    """Run the cases, say what came of each, and end without any farewell."""
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limits(ADDRESS_SPACE)
        faulthandler.enable(file=output.fileno())
        warnings.simplefilter("ignore")
        for number in batch:
            said = run_case(kind, kind.make(random_of(seed, number)))
            os.write(there, json.dumps({"number": number, **said}).encode() + b"\n")
    except BaseException:
        traceback.print_exc()
        os._exit(3)
    os._exit(0)


def limits(more: int) -> None:
    """No core files, and so much more address space than there is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = (
        int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        * resource.getpagesize()
    )
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))


def run_case(kind: Kind, case: Any) -> dict[str, Any]:
    """The outcome of one case in this process, as plain values."""
    before = _reset_peak()
    start = time.process_time()
    said: dict[str, Any] = {}
    try:
        said["outcome"] = kind.check(case)
    except Finding as error:
        said |= {"what": error.kind, "message": str(error)[:2000]}
    except MemoryError:
        said |= {"what": "memory", "message": traceback.format_exc()[-2000:]}
    except Exception:
        said |= {"what": "unclean", "message": traceback.format_exc()[-2000:]}
    said["seconds"] = time.process_time() - start
    said["grew"] = max(_status_kb("VmHWM") - before, 0) << 10
    if "what" not in said:
        if said["grew"] > MEMORY:
            grew = f"{said['grew'] >> 20} MiB for one case ({said['outcome']})"
            said |= {"what": "memory", "message": grew}
        elif said["seconds"] > CPU_SECONDS:
            slow = f"{said['seconds']:.1f} s for one case ({said['outcome']})"
            said |= {"what": "slow", "message": slow}
        elif (threads := _status_kb("Threads")) > THREADS:
            said |= {"what": "threads", "message": f"{threads} threads are left"}
    return said


def _status_kb(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _reset_peak() -> int:
    """Let the peak of resident memory start anew, from what is returned."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return _status_kb("VmHWM")
