"""The example service under load, with wrong, huge and slow requests among good ones.

    python benchmarks/service_load.py [--seconds 120] > results/service/load.txt

The service (examples/service) runs in a process of its own on the loopback, with a model of
trees that is replaced by another while requests come in. Every good request must get the
answer of one of the two models, every other its error; memory must stay flat.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

SERVICE = Path(__file__).resolve().parents[1] / "examples/service"
N_GOOD = 4
"""Clients that send good requests, one after the other."""


def two_models(folder: Path):
    """Two models of one table, and rows with the answers of both."""
    import damvi

    rng = np.random.default_rng(0)
    n = 600
    table = pd.DataFrame(
        {
            "amount": rng.gamma(2.0, 50.0, n).round(2),
            "shop": rng.choice(["north", "south", "web"], n),
            "opened": pd.date_range("2024-01-01", periods=n, freq="7h").astype(str),
        }
    )
    risky = table["amount"] / 200 + (table["shop"] == "web") + rng.normal(size=n) / 2 > 1.9
    table["fraud"] = np.where(risky, "yes", "no")
    models = []
    for seed in (0, 1):
        model = damvi.fit(table, "fraud", pool="trees", shuffle=True, random_state=seed)
        model.save(folder / f"{seed}.damvi")
        models.append(model)
    rows = json.loads(table.drop(columns="fraud").iloc[:50].to_json(orient="records"))
    return rows, [[model.predict_row(row) for row in rows] for model in models]


class Service:
    """The example in a process of its own."""

    def __init__(self, model: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # As it is started in a container, on another port.
        told = (SERVICE / "Dockerfile").read_text().partition("\nCMD ")[2]
        command = [sys.executable, "-m", *json.loads(told)]
        changed = {"--host": "127.0.0.1", "--port": str(self.port)}
        for name, value in changed.items():
            command[command.index(name) + 1] = value
        command += ["--log-level", "warning", "--no-access-log"]
        environment = {**os.environ, "DAMVI_MODEL": str(model)}
        self.process = subprocess.Popen(command, cwd=SERVICE, env=environment)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        import httpx

        until = time.monotonic() + 120
        while True:
            try:
                httpx.get(self.url + "/health").raise_for_status()
                return self
            except httpx.TransportError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    @property
    def memory(self) -> int:
        """Bytes that are resident."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) << 10
        raise RuntimeError("no memory is told")


def good(service, rows, answers, until, told):
    """One row after the other, and now and then all of them."""
    import httpx

    with httpx.Client(base_url=service.url, timeout=60) as client:
        number = 0
        while time.monotonic() < until:
            number += 1
            k = number % len(rows)
            every = number % 20 == 0
            start = time.perf_counter()
            try:
                answer = client.post("/predict", json=rows if every else rows[k])
                found = answer.json()
                right = any(found == (own if every else own[k]) for own in answers)
                told["good" if answer.status_code == 200 and right else "good, lost"] += 1
            except httpx.HTTPError as error:
                told[f"good, lost: {type(error).__name__}"] += 1
            if not every:
                told.times.append(time.perf_counter() - start)


def wrong(service, rows, until, told):
    """What a service is sent by mistake or on purpose, each with the error that it gets."""
    import httpx

    row = rows[0]
    cases = {
        "no JSON": (b"{", 400),
        "deep JSON": (b"[" * 100_000, 400),
        "no row": (b"3", 422),
        "rows that are none": (b"[1, 2]", 422),
        "a column is missing": (json.dumps({"amount": 1}).encode(), 422),
        "a list for a value": (json.dumps(row | {"amount": [1]}).encode(), 422),
        "too many rows": (json.dumps([{}] * 1001).encode(), 413),
        "huge": (b" " * (3 << 20), 413),
    }
    with httpx.Client(base_url=service.url, timeout=60) as client:
        while time.monotonic() < until:
            for name, (body, status) in cases.items():
                try:
                    found = client.post("/predict", content=body).status_code
                except httpx.HTTPError as error:  # it need not read all that is huge
                    found = status if name == "huge" else type(error).__name__
                told[name if found == status else f"{name}: {found} instead"] += 1
                time.sleep(0.02)


def slow(service, rows, until, told):
    """Requests whose body never ends, and some that go away in the middle."""
    begun = b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n{"
    while time.monotonic() < until:
        with socket.create_connection(("127.0.0.1", service.port), 60) as line:
            line.sendall(begun)
            if told["slow"] % 2:
                told["slow"] += 1
                told["gone in the middle"] += 1
                continue
            answer = line.recv(1000).split(b" ", 2)[1:2]
            right = answer == [b"408"]
            told["slow" if right else f"slow: {answer} instead"] += 1


class Told(Counter):
    """What came of all requests, and the seconds of good ones."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []


def run(seconds: float, slow_ones: int = 2) -> dict[str, object]:
    """What came of it, as plain values."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, answers = two_models(folder)
        model = folder / "model.damvi"
        model.write_bytes((folder / "0.damvi").read_bytes())
        told = Told()
        with Service(model) as service:
            warm = time.monotonic() + min(2.0, seconds / 4)
            good(service, rows, answers, warm, Told())
            until = time.monotonic() + seconds
            work = [(good, (service, rows, answers, until, told))] * N_GOOD
            work += [(wrong, (service, rows, until, told))]
            work += [(slow, (service, rows, until, told))] * slow_ones
            threads = [threading.Thread(target=one, args=own) for one, own in work]
            for thread in threads:
                thread.start()
            memory, turn = [], 0
            while time.monotonic() < until:
                time.sleep(seconds / 20)
                memory.append(service.memory)
                turn += 1
                if turn % 5 == 2:  # another model, in one step
                    new = folder / "new.damvi"
                    new.write_bytes((folder / f"{turn // 5 % 2 ^ 1}.damvi").read_bytes())
                    new.replace(model)
                if turn == 14:  # and one that is broken, for a while
                    model.write_bytes(b"no model")
            for thread in threads:
                thread.join()
            import httpx

            metrics = httpx.get(service.url + "/metrics").text.splitlines()
    times = np.array(told.times) * 1e3
    return {
        "seconds": seconds,
        "requests": dict(sorted(told.items())),
        "lost": sum(n for what, n in told.items() if "lost" in what),
        "surprises": sum(n for what, n in told.items() if "instead" in what),
        "milliseconds of one good row": {
            "p50": round(float(np.median(times)), 2),
            "p99": round(float(np.quantile(times, 0.99)), 2),
        },
        "MiB resident": [round(one / 2**20, 1) for one in memory],
        "metrics": metrics,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    args = parser.parse_args()
    from setting import print_setting

    print_setting("fastapi", "uvicorn", "httpx", "numba")
    told = run(args.seconds)
    print(json.dumps(told, indent=1))
    return 1 if told["lost"] or told["surprises"] else 0


if __name__ == "__main__":
    sys.exit(main())
