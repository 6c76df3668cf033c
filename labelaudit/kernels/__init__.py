"""Compiled inner loops, imported on first use so that `import labelaudit` stays light.

numba keeps compiled code on disk, so that a second process starts warm. But it checks only the file
that defines a function: after a change in one kernel, others would use their old compiled copies of
it. Compiled kernels are therefore kept in a folder named by a digest of all kernel sources.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from numba import njit

from labelaudit.kernels import cache
from labelaudit.kernels.cache import config

# With fewer priors, a second thread costs more than it saves; on a machine that has other work,
# threads wait for each other for milliseconds.
SMALL_BATCH = 20_000


_FOLDER = cache.folder()


def compiled(
    *, parallel: bool = False, any_order: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a kernel in IEEE arithmetic with fused multiply-add, its sums in `any_order`."""
    fastmath = {"contract", "reassoc"} if any_order else {"contract"}

    def make(kernel: Callable[..., Any], parallel: bool) -> Any:
        before = config.CACHE_DIR
        # On disk numba does not distinguish the version with threads from the other.
        config.CACHE_DIR = f"{_FOLDER}-threads" if parallel else _FOLDER
        try:
            jit = njit(cache=True, error_model="numpy", fastmath=fastmath, parallel=parallel)
            return cache.seal(jit(kernel))
        finally:
            config.CACHE_DIR = before

    def wrap(kernel: Callable[..., Any]) -> Callable[..., Any]:
        alone = make(kernel, False)
        return _launcher(alone, make(kernel, True)) if parallel else alone

    return wrap


def _launcher(alone: Any, threaded: Any) -> Callable[..., Any]:
    """Call a kernel with threads only if its first argument, such as eta, is large.

    numba may share its threads with torch. The first kernel with threads then resets the number
    that torch uses, which is restored here.
    """

    @functools.wraps(alone)
    def launch(first: Any, *arguments: Any) -> Any:
        if first.size < SMALL_BATCH:
            return alone(first, *arguments)
        torch = sys.modules.get("torch")
        before = torch.get_num_threads() if torch is not None else None
        try:
            return threaded(first, *arguments)
        finally:
            if torch is not None and torch.get_num_threads() != before:
                torch.set_num_threads(before)

    launch.alone, launch.threaded = alone, threaded  # type: ignore[attr-defined]
    return launch
