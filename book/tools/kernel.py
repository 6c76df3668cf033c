"""The kernel a chapter runs in: this Python, this clone's package, no one's private settings.

The kernel's IPython and matplotlib folders are made fresh in `_build`, so that a reader's own
start-up files cannot change a page, and figures come out the same, as SVG on white, every time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from book.chapters import IN_BOOK
from book.tools.checkout import Cancelled, Checkout, cancelled
from labelaudit.files import write_atomically

IPYTHON = """\
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}
c.HistoryManager.enabled = False
c.InteractiveShellApp.exec_lines = [
    "from book.chapters.number_format import shorten as _shorten",
    "_shorten(get_ipython().display_formatter.formatters['text/plain'])",
]
"""
# A fixed salt gives the ids inside an SVG the same names on every run.
MATPLOTLIB = """\
svg.hashsalt: labelaudit
figure.facecolor: white
axes.facecolor: white
savefig.facecolor: white
"""
# Python runs a module of this name at its start, in the kernel and in the processes that a chapter
# trains in. It notes each module of the package that they import.
RECORDER_FILE = "sitecustomize.py"
RECORDER = """\
import os, sys

class Recorder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith(("labelaudit", "book.")):
            with open(os.environ["LABELAUDIT_IMPORTS"], "a", encoding="utf-8") as file:
                file.write(name + "\\n")

if "LABELAUDIT_IMPORTS" in os.environ:
    sys.meta_path.insert(0, Recorder)
"""
# Runs in the chapter's kernel after its last cell, so it can name what the chapter really used.
FACTS = """\
import json as _json, os as _os, platform as _platform, sys as _sys
from importlib import metadata as _metadata
_names = ["labelaudit", "numpy", "scipy", "numba", "matplotlib", "pandas", "scikit-learn", "torch"]
_modules = {"scikit-learn": "sklearn"}
_versions = [f"{_name} {_metadata.version(_name)}" for _name in _names
             if _modules.get(_name, _name) in _sys.modules]
_facts = {"versions": ["python " + _platform.python_version(), *_versions],
          "device": f"CPU ({_platform.machine()}, {_os.cpu_count()} cores)"}
if "torch" in _sys.modules and _sys.modules["torch"].cuda.is_available():
    _facts["device"] = _sys.modules["torch"].cuda.get_device_name()
print(_json.dumps(_facts))
"""
# What a kernel is started with, and so a part of every chapter's cache key; the last is the
# routine for matrix products, on which the digits of a training depend.
SETTINGS = (IPYTHON, MATPLOTLIB, RECORDER, FACTS, os.environ.get("LABELAUDIT_PRODUCTS", "auto"))
SPECIFICATION = {"name": "python3", "display_name": "Python 3", "language": "python"}
# A busy machine may take minutes to start a kernel.
START_SECONDS = 600

_running: set[BookKernel] = set()
_settings_lock = threading.Lock()


class BookKernel(AsyncKernelManager):
    """Starts `sys.executable`, whatever kernels of the same name a user has installed."""

    clients: tuple[AsyncKernelClient, ...] = ()

    @property
    def kernel_spec(self) -> KernelSpec:
        """The specification of this very Python, never one installed on the machine."""
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        encrypted = {"supported_encryption": ["curve"]}
        return KernelSpec(
            argv=launch, display_name="Python 3", language="python", metadata=encrypted
        )

    def client(self, **options: Any) -> AsyncKernelClient:  # type: ignore[override]
        """A client that `close_clients` closes: papermill leaves those of a given kernel open."""
        client = super().client(**options)
        self.clients = (*self.clients, client)
        return client

    def close_clients(self) -> None:
        """Give back the sockets of every client."""
        for client in self.clients:
            client.stop_channels()
            client.context.destroy(linger=0)


@contextlib.contextmanager
def started_kernel(
    checkout: Checkout, folder: Path, imports: Path, threads: int
) -> Iterator[BookKernel]:
    """Run a kernel that works in `folder`, with `threads` threads for numpy, numba and torch.

    The names of the package's modules that it imports are written to the file `imports`.
    """
    kernel = start(checkout, folder, imports, threads)
    try:
        if cancelled.is_set():
            raise Cancelled
        yield kernel
    finally:
        stop(kernel)


def start(checkout: Checkout, folder: Path, imports: Path, threads: int) -> BookKernel:
    """Start a kernel, which `stop` ends; `started_kernel` does both."""
    kernel = BookKernel(transport_encryption="auto")
    environment = os.environ | _environment(checkout, imports, threads)
    run_sync(kernel.start_kernel)(cwd=str(folder), env=environment)
    _running.add(kernel)
    return kernel


def stop(kernel: BookKernel) -> None:
    """End a kernel, and give back its sockets."""
    _running.discard(kernel)
    kernel.close_clients()
    run_sync(kernel.shutdown_kernel)(now=True)


def process_of(kernel: BookKernel) -> int | None:
    """The process of a kernel, which leads a session of its own."""
    process = getattr(kernel.provisioner, "process", None)
    return process.pid if process is not None else None


def _environment(checkout: Checkout, imports: Path, threads: int) -> dict[str, str]:
    with _settings_lock:
        settings = _settings(checkout)
    folders = [settings / "recorder", checkout.package.parent, os.environ.get("PYTHONPATH", "")]
    limits = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM")
    return {f"{limit}_THREADS": str(threads) for limit in limits} | {
        "PYTHONPATH": os.pathsep.join(str(folder) for folder in folders if folder),
        "PYTHONHASHSEED": "0",
        IN_BOOK: "1",
        "LABELAUDIT_IMPORTS": str(imports),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "IPYTHONDIR": str(settings / "ipython"),
        "MPLCONFIGDIR": str(settings / "matplotlib"),
    }


def cancel_everything() -> None:
    """End every kernel this process started; the threads that wait for them then give up."""
    cancelled.set()
    for kernel in list(_running):
        process = process_of(kernel)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                # The kernel leads a session of its own, so its children end with it.
                os.killpg(process, 9)


def _settings(checkout: Checkout) -> Path:
    """Make the kernels' settings folder, with matplotlib's font list already in it."""
    settings = checkout.build / "kernel"
    files = {
        settings / "ipython" / "profile_default" / "ipython_kernel_config.py": IPYTHON,
        settings / "matplotlib" / "matplotlibrc": MATPLOTLIB,
        settings / "recorder" / RECORDER_FILE: RECORDER,
    }
    for path, text in files.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
    if not list((settings / "matplotlib").glob("fontlist*.json")):
        # Otherwise the first chapter to draw would carry matplotlib's notice about it.
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            env=os.environ | {"MPLCONFIGDIR": str(settings / "matplotlib")},
            check=False,
            capture_output=True,
        )
    return settings
