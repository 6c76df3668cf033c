"""Compiled inner loops, imported on first use so that `import labelaudit` stays light.

numba keeps compiled code on disk, so that a second process starts warm. But it checks only the file
that defines a function: after a change in one kernel, others would use their old compiled copies of
it. Compiled kernels are therefore kept in a folder named by a digest of all kernel sources.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba import get_num_threads, njit, set_num_threads

__all__ = ["compiled"]

config: Any = numba_config
# With fewer priors, starting a second thread costs more than it saves.
SMALL_BATCH = 20_000


def _cache_folder() -> str:
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif os.access(folder, os.W_OK):
        base = folder / "__pycache__"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labelaudit"
    return str(base / f"kernels-{digest.hexdigest()[:16]}")


_FOLDER = _cache_folder()


def compiled(
    *, parallel: bool = False, any_order: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a kernel in IEEE arithmetic with fused multiply-add, its sums in `any_order`."""
    fastmath = {"contract", "reassoc"} if any_order else {"contract"}
    make = njit(cache=True, error_model="numpy", fastmath=fastmath, parallel=parallel)

    def wrap(kernel: Callable[..., Any]) -> Callable[..., Any]:
        before = config.CACHE_DIR
        config.CACHE_DIR = _FOLDER
        try:
            made = make(kernel)
        finally:
            config.CACHE_DIR = before
        return _launcher(made) if parallel else made

    return wrap


def _launcher(kernel: Any) -> Callable[..., Any]:
    """Call a parallel kernel, whose first argument is eta, on one thread if the batch is small."""

    @functools.wraps(kernel)
    def launch(eta: Any, *arguments: Any) -> Any:
        if eta.size >= SMALL_BATCH:
            return kernel(eta, *arguments)
        before = get_num_threads()
        set_num_threads(1)
        try:
            return kernel(eta, *arguments)
        finally:
            set_num_threads(before)

    launch.stats = kernel.stats  # type: ignore[attr-defined]
    return launch
