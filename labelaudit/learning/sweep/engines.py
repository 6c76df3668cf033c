"""Where the runs of a sweep take place: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from typing import Any

from labelaudit.command_line import CommandError


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers() -> int:
    """How many local processes: one for each core, but one alone where there is a GPU.

    Every training takes the first GPU it sees. Several are for as many shards, each started with
    a `CUDA_VISIBLE_DEVICES` of its own.
    """
    import torch

    return 1 if torch.cuda.is_available() else cores()


@contextlib.contextmanager
def local(workers: int | None = None) -> Iterator[int]:
    """Processes on this machine, `default_workers` unless told; they share the cores' threads.

    >>> with local(workers=2) as processes:
    ...     processes
    2
    """
    import joblib

    count = workers or default_workers()
    threads = max(1, cores() // count)
    with joblib.parallel_config(
        "loky", n_jobs=count, inner_max_num_threads=threads, initializer=_leave_with_parent
    ):
        yield count


def _leave_with_parent() -> None:
    """End this worker when the sweep is killed: it would otherwise wait for work for minutes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def dask(address: str, timeout: float = 10) -> Iterator[int]:
    """An existing Dask cluster. A run whose worker dies is given to another one."""
    import joblib
    from distributed import Client

    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise CommandError(
            f"no Dask scheduler answers at {address} ({error}); nothing was run"
        ) from None
    with client:
        count = sum(client.nthreads().values())
        with joblib.parallel_config(_telling_backend(client), n_jobs=-1):
            yield count


def _telling_backend(client: Any) -> Any:
    """joblib's backend for Dask, which also tells when a run has failed for good.

    joblib's own passes on results alone: after a run that killed every worker it was given to, a
    sweep would wait for it for ever.
    """
    from joblib._dask import DaskDistributedBackend

    class Telling(DaskDistributedBackend):  # type: ignore[misc]
        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)

            def tell(done: Any) -> None:
                if (error := done.exception()) is not None and callback is not None:
                    callback(error)

            future.add_done_callback(tell)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    return Telling(client=client)


def deaths() -> tuple[type[BaseException], ...]:
    """What joblib raises when workers are gone: a local one, or one after another on Dask."""
    if "distributed" not in sys.modules:
        return (BrokenExecutor,)
    from distributed import KilledWorker

    return BrokenExecutor, KilledWorker
