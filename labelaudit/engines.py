"""Where the runs of a sweep take place: this process, processes of this machine, a Dask cluster.

All three are executors of `concurrent.futures`, so a sweep has one code path. An executor of
another library serves too, as `Engine(executor, workers)`.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from labelaudit.checks import Floats
from labelaudit.command_line import CommandError

# What numerical libraries read when they are loaded.
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)


class _ThisProcess(Executor):
    """Runs a call when it is submitted; an interruption ends the caller at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass(frozen=True)
class Engine:
    """An executor, how many runs it does at once, and how an array reaches all of its workers.

    By default runs take place in this process, one after another. `send` turns an array into what
    goes with each run: the array itself, something that the executor replaces by it, or the path
    of an .npy file that the worker reads.
    """

    executor: Executor = field(default_factory=_ThisProcess)
    workers: int = 1
    send: Callable[[Floats], Any] = lambda values: values


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers() -> int:
    """How many local processes: one for each core, but only one where there is a GPU."""
    import torch

    return 1 if torch.cuda.is_available() else cores()


@contextlib.contextmanager
def local(workers: int | None = None) -> Iterator[Engine]:
    """Processes on this machine, by default `default_workers` of them; a single one is this one.

    They end at once when this block is left by an error, or when this process dies. A script that
    uses them needs the usual `if __name__ == "__main__":`, for every process imports it.

    >>> with local(workers=1) as engine:
    ...     engine.executor.submit(max, 1, 2).result()
    2
    """
    count = workers or default_workers()
    if count == 1:
        yield Engine()
        return
    # No worker inherits the writing end, so its end of the pipe closes when this process dies.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(
        count, context, _start_worker, (reader, max(1, cores() // count))
    )
    with tempfile.TemporaryDirectory() as folder, reader, writer:

        def send(values: Floats) -> Path:
            path = Path(folder, f"{time.monotonic_ns()}.npy")
            np.save(path, values)
            return path

        try:
            yield Engine(executor, count, send)
        except BaseException:
            writer.close()
            raise
        finally:
            executor.shutdown(cancel_futures=True)


def _start_worker(pipe: Connection, threads: int) -> None:
    """Limit the threads of a local worker, and end it when the other end of the pipe closes."""
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    threadpool_limits(threads)  # of the libraries that are loaded already
    # Ctrl-C reaches all processes of a terminal; the sweep itself decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            pipe.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def dask(address: str, timeout: float = 10) -> Iterator[Engine]:
    """An existing Dask cluster. A run whose worker dies is given to another one."""
    from distributed import Client

    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise CommandError(
            f"no Dask scheduler answers at {address} ({error}); nothing was run"
        ) from None
    with client:
        count = max(1, sum(client.nthreads().values()))
        # `pure=False`, so that Dask does not reuse a result of an earlier sweep.
        executor = client.get_executor(pure=False)
        yield Engine(executor, count, lambda values: client.scatter(values, broadcast=True))


def deaths() -> tuple[type[BaseException], ...]:
    """The errors that say that workers died: a local one, or several in turn on Dask."""
    if "distributed" not in sys.modules:
        return (BrokenExecutor,)
    from distributed import KilledWorker

    return BrokenExecutor, KilledWorker
