"""Dask clusters for commands."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..messages import counted
from .console import Output

PATIENCE = 10
"""Seconds to wait for a scheduler."""


@contextmanager
def cluster_client(address: str, jobs: int | None, output: Output) -> Iterator[Any]:
    """A client of the cluster at an address, or of a new local one."""
    import damvi.distributed  # noqa: F401  (says what to install)

    with _local_client(jobs) if address == "local" else _remote_client(address) as client:
        threads = client.nthreads()
        if not threads and address != "local":
            raise ValueError(
                f"the Dask cluster at {address} has no workers; start one with "
                f"dask worker {address}"
            )
        where = "a Dask cluster on this machine" if address == "local" else address
        output.note(
            f"Using {counted(len(threads), 'worker')} "
            f"({counted(sum(threads.values()), 'thread')}) on {where}."
        )
        yield client


@contextmanager
def _local_client(jobs: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    size: dict[str, Any] = (
        {} if jobs is None else {"n_workers": jobs, "threads_per_worker": 1}
    )
    with (
        # Silence warnings about workers that are slow to stop.
        LocalCluster(dashboard_address=":0", silence_logs=logging.ERROR, **size) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _remote_client(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"cannot reach a Dask scheduler at {address!r} "
            f"({' '.join(str(error).split())}); start one with dask scheduler, or use "
            f"--cluster local"
        ) from error
    with client:
        yield client
