"""The queue: who waits, who runs, how far it is, and the processes that do the work.

One job runs at a time. A job is a chapter, run by the worker, or the audit of a table, which is the
command `labelaudit audit` in a process of its own. Cancelling a job ends its processes alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from book.tools.checkout import Checkout

FINISHED = frozenset({"done", "refused", "failed", "cancelled"})
# Finished jobs that are remembered, for pages that ask later.
KEPT = 200
# In seconds, for a worker to end by itself.
MAX_END_SECONDS = 5
# Bytes of one event or line.
MAX_REPORT_LINE = 2**20


@dataclass(kw_only=True)
class Job:
    """One piece of work and how far it is."""

    id: str
    kind: str
    subject: str
    order: dict[str, Any]
    state: str = "waiting"
    details: dict[str, Any] = field(default_factory=dict)
    processes: set[int] = field(default_factory=set)
    created: float = field(default_factory=time.time)
    started: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in FINISHED


Runner = Callable[[Job, "Queue"], Awaitable[None]]


class Queue:
    """Runs jobs one after the other; `runners` says how each kind is run."""

    def __init__(self, runners: dict[str, Runner]) -> None:
        """Nothing runs until `work` is started as a task."""
        self.runners = runners
        self.jobs: dict[str, Job] = {}
        self.waiting: deque[Job] = deque()
        self.arrived = asyncio.Event()
        self.numbers = itertools.count(1)

    def add(self, kind: str, subject: str, order: dict[str, Any]) -> Job:
        """Put work into the queue; the same work that has not finished yet is not added twice."""
        for job in self.jobs.values():
            if not job.finished and (job.kind, job.order) == (kind, order):
                return job
        job = Job(id=str(next(self.numbers)), kind=kind, subject=subject, order=order)
        self.jobs[job.id] = job
        self.waiting.append(job)
        for old in [old for old in self.jobs.values() if old.finished][:-KEPT]:
            del self.jobs[old.id]
        self.arrived.set()
        return job

    def cancel(self, job: Job) -> None:
        """Take a job out of the queue, or end its processes."""
        if job.finished:
            return
        job.state = "cancelled"
        if job in self.waiting:
            self.waiting.remove(job)
        end(job.processes)

    def update(self, job: Job, event: dict[str, Any]) -> None:
        """Take note of what a process says about its job."""
        if "kernel" in event:
            kernel = event.pop("kernel")
            if kernel is not None:
                job.processes.add(kernel)
                if job.state == "cancelled":
                    end({kernel})
        state = event.pop("state", None)
        if not job.finished:
            job.state = state or job.state
            job.details |= event

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as pages see it."""
        position = self.waiting.index(job) + 1 if job in self.waiting else 0
        elapsed = time.time() - (job.started or job.created)
        return {
            "id": job.id,
            "kind": job.kind,
            "subject": job.subject,
            "state": job.state,
            "ahead": position,
            "elapsed": round(elapsed, 1),
            **job.details,
        }

    async def work(self) -> None:
        """Run jobs as they come, for ever."""
        while True:
            await self.arrived.wait()
            self.arrived.clear()
            while self.waiting:
                job = self.waiting.popleft()
                job.state, job.started = "starting", time.time()
                try:
                    await self.runners[job.kind](job, self)
                except Exception as error:
                    self.update(job, {"state": "failed", "message": f"{error}"})
                if not job.finished:
                    self.update(job, {"state": "failed", "message": "its process has ended"})


def end(processes: set[int]) -> None:
    """Kill processes that lead sessions of their own, with all their children."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)


class Workers:
    """The worker process, started again whenever it has ended."""

    def __init__(self, checkout: Checkout, command: list[str] | None = None) -> None:
        """`command` is another worker to start, for tests."""
        self.checkout = checkout
        module = [sys.executable, "-m", "book.tools.serve.worker", str(checkout.root)]
        self.command = command or module
        self.process: asyncio.subprocess.Process | None = None
        self.warmed = ""
        self.busy = asyncio.Lock()

    async def start(self) -> asyncio.subprocess.Process:
        """The worker, which leads a session of its own, so that Ctrl-C reaches the server alone."""
        if self.process is None or self.process.returncode is not None:
            self.warmed = ""
            log = open(self.checkout.build / "serve.log", "ab")  # noqa: SIM115
            root = Path(__file__).resolve().parents[3]
            search = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
            self.process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                limit=MAX_REPORT_LINE,
                env=os.environ | {"PYTHONPATH": search.rstrip(os.pathsep)},
            )
            log.close()
        return self.process

    async def warm(self, chapter: str) -> None:
        """Let an idle worker prepare for a chapter; one that runs is left alone."""
        if self.busy.locked():
            return
        process = await self.start()
        if self.warmed != chapter:
            self.warmed = chapter
            await self._send(process, {"warm": chapter})

    async def run(self, job: Job, queue: Queue) -> None:
        """Have the worker run a chapter, and pass on what it says."""
        async with self.busy:
            process = await self.start()
            job.processes.add(process.pid)
            await self._send(process, job.order)
            while line := await process.stdout.readline():  # type: ignore[union-attr]
                event = json.loads(line)
                if event.get("state") == "ready":
                    continue
                queue.update(job, event)
                if job.finished:
                    break
            # Its output has ended before it is known to have ended itself, so wait in both cases.
            if job.state == "cancelled" or not job.finished:
                end({process.pid})
                await process.wait()
            # The kernel that was ready has been used.
            self.warmed = ""
            job.processes.clear()
        if not job.finished:
            queue.update(job, {"state": "failed", "message": "its process was ended"})
        await self.warm(job.subject)

    async def _send(self, process: asyncio.subprocess.Process, order: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()

    async def close(self) -> None:
        """End the worker; it ends its kernels when its input does."""
        if self.process is not None and self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.process.wait(), MAX_END_SECONDS)
                return
            end({self.process.pid})
            await self.process.wait()
