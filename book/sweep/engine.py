"""Where the runs of a sweep take place: this process, processes of this machine, a Dask cluster.

An engine is a function `engine(work, source, tasks)` that gives `work(source, task)` for each task,
as results come. It takes no more tasks than keep all workers busy.
"""

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from functools import partial
from typing import Any

import joblib
import numpy as np

from labelaudit.command_line import CommandError

Work = Callable[..., Any]
Results = Generator[Any, None, None]
Engine = Callable[[Work, Any, Iterable[Any]], Results]


class WorkerDied(Exception):
    """A local worker, or several in turn on Dask, died at a task."""


def local(workers: int | None = None) -> Engine:
    """Processes on this machine, of which a single one is this one.

    The default is a process for each core, but only one where there is a GPU.

    >>> sorted(local(workers=1)(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    """
    if workers is None:
        import torch

        workers = 1 if torch.cuda.is_available() else joblib.cpu_count()
    return partial(_local, workers)


def _local(workers: int, work: Work, source: Any, tasks: Iterable[Any]) -> Results:
    threads = max(1, joblib.cpu_count() // workers)
    begin = {"initializer": _begin_worker, "initargs": (os.getpid(),)}
    with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=threads, **begin):
        parallel = joblib.Parallel(batch_size=1, return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(work)(source, task) for task in tasks)
    except BrokenExecutor as error:
        raise WorkerDied(str(error)) from None


def _begin_worker(sweep: int) -> None:
    """Leave Ctrl-C to the sweep, and end with it, should it be killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == sweep:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":  # elsewhere idle workers end by themselves after five minutes
        threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def dask(address: str, timeout: float = 10) -> Iterator[Engine]:
    """An existing Dask cluster. A run whose worker dies is given to another one.

    This is not joblib's backend for Dask, which waits for ever once a run has killed its workers.
    """
    from distributed import Client, KilledWorker, as_completed

    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise CommandError(f"no Dask scheduler answers at {address} ({error})") from None

    def engine(work: Work, source: Any, tasks: Iterable[Any]) -> Results:
        if isinstance(source, np.ndarray):
            source = client.scatter(source, broadcast=True)
        # `pure=False`, so that Dask does not reuse a result of an earlier sweep.
        futures = (client.submit(work, source, task, pure=False) for task in tasks)
        busy = 2 * max(1, sum(client.nthreads().values()))
        running = as_completed(itertools.islice(futures, busy), with_results=True)
        try:
            for _, result in running:
                yield result
                running.update(itertools.islice(futures, 1))
        except KilledWorker as error:
            raise WorkerDied(str(error)) from None

    with client:
        yield engine
