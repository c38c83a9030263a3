"""A cache of its own for each test, a small web server, and the folder of real files."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from damvi.datasets import transfer


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder from outside, and no waiting between attempts."""
    monkeypatch.setenv("DAMVI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DAMVI_DATA", raising=False)
    monkeypatch.setattr(transfer, "PAUSE", 0)
    return tmp_path / "cache"


class Server(ThreadingHTTPServer):
    """Serves ``pages``, counts the requests, and drops the line where told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.requests, self.drops = {}, [], 0

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.lstrip("/")
        self.server.requests.append(name)
        body = self.server.pages.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


# Taken before the fixture above hides the variable from the tests.
REAL = Path(os.environ.get("DAMVI_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(scope="session")
def real():
    """The folder of the real datasets."""
    if not (REAL / "paper").is_dir():
        pytest.skip("no folder of real data: set DAMVI_DATA to one")
    return REAL
