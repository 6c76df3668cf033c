"""What the benchmarks share: a clock, the peak of a process's memory, and the machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_turns(works: dict[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    """The best time of each in seconds, all of them run once in every round.

    What else the machine does then falls on all of them equally.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_bytes() -> int:
    """The most memory this process has held; unlike getrusage's, not inherited from its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not say how much memory a process has held")


def machine() -> str:
    """One line on what this was measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    load = os.getloadavg()[0]
    return f"{model}, {os.cpu_count()} cores (load {load:.1f}), Python {platform.python_version()}"
