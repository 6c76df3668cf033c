"""Locks that several processes of a clone share."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout


class Busy(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(
    path: Path, *, waiting: Callable[[], None] | None = None, stop: threading.Event | None = None
) -> Iterator[None]:
    """Hold an exclusive lock on `path`; the operating system frees it when the holder dies.

    Without `waiting` a lock that another process holds raises `Busy` at once. With it, `waiting` is
    called once and the lock is waited for, until `stop` is set, which raises `Busy` as well.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        if waiting is None:
            raise Busy(path) from None
        waiting()
        try:
            lock.acquire(timeout=-1, cancel_check=stop.is_set if stop else None)
        except Timeout:
            raise Busy(path) from None
    try:
        yield
    finally:
        lock.release()
