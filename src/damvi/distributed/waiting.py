"""Results of a cluster, or one clear error when it cannot give them."""

from __future__ import annotations

import time
from typing import Any

from distributed import Client, Future, KilledWorker, wait

LOOK_EVERY = 5.0
"""Seconds between looks at whether there are workers at all."""
PATIENCE = 60.0
"""Seconds without a worker until nobody believes that one will come."""
GONE = (
    "the connection to the cluster is lost, and with it the rows of the fit; connect a "
    "client, and fit again"
)


class Watch:
    """Waits for futures for as long as there is somebody to work on them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._alone_since: float | None = None

    def result(self, future: Future) -> Any:
        """The value of a future."""
        self.wait([future])
        patience = LOOK_EVERY
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._look()
                patience *= 2  # a large value may take longer to arrive
            except Exception as error:
                raise self._told(error) from None

    def wait(self, futures: list[Future], how: str = "ALL_COMPLETED") -> None:
        """Until all are there (or the first of them), or one has failed."""
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=LOOK_EVERY, return_when=how)
                break
            except TimeoutError:
                self._look()
                if any(future.status in ("error", "lost") for future in futures):
                    break
            except Exception as error:  # a worker or the scheduler is gone
                raise self._told(error) from error
        for future in futures:
            if future.status == "error":
                raise self._told(future.exception())

    def _look(self) -> None:
        """Whether there is anybody to wait for."""
        try:
            if self.client.nthreads():
                self._alone_since = None
                return
        except (OSError, ValueError) as error:  # a closed connection, or client
            raise RuntimeError(GONE) from error
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since >= PATIENCE:
            raise RuntimeError(
                f"no worker is left in the cluster, and none came for {PATIENCE:.0f} "
                f"seconds; start some, and fit again"
            )

    def _told(self, error: Any) -> Any:
        """Dask's own errors in the terms of whoever asked for a fit."""
        name, text = type(error).__name__, str(error).partition("\n")[0]
        if isinstance(error, KilledWorker):
            return RuntimeError(
                f"workers die again and again at the same task ({text}); most likely they "
                f"run out of memory: cut the table into smaller partitions, or give "
                f"workers more memory"
            )
        if not ("Cancelled" in name or "CommClosed" in name):
            return error
        if self.client.status != "running":
            return RuntimeError(GONE)
        return RuntimeError(
            f"the cluster has lost data that it cannot make again ({name}: {text}); fit "
            f"again, on data that workers read themselves rather than get from the client"
        )
