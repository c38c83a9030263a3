"""A Dask cluster for a command: one that runs somewhere, or one of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .talking import Talk

PATIENCE = 10
"""Seconds until a scheduler must have answered."""


@contextmanager
def connected(address: str, jobs: int | None, talks: Talk) -> Iterator[Any]:
    """A client, for as long as it is needed."""
    import damvi.distributed  # noqa: F401  (says what to install)

    with _local(jobs) if address == "local" else _remote(address) as client:
        threads = client.nthreads()
        if not threads and address != "local":
            raise ValueError(
                f"the Dask cluster at {address} has no workers; start some, as in "
                f"dask worker {address}"
            )
        n = len(threads)
        talks.note(
            f"Fitted by {n} worker{'s' * (n != 1)} ({sum(threads.values())} threads) of "
            f"{'a Dask cluster on this machine' if address == 'local' else address}."
        )
        yield client


@contextmanager
def _local(jobs: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    size = {} if jobs is None else {"n_workers": jobs, "threads_per_worker": 1}
    with (
        LocalCluster(dashboard_address=":0", **size) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _remote(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())}); "
            f"start one with dask scheduler, or give --cluster local"
        ) from error
    with client:
        yield client
