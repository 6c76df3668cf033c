"""Where the checkout is, and the command of the book in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LABELBOOK = (sys.executable, "-c", "import sys; from book.cli import main; sys.exit(main())")


def run_python(code, *arguments, **options):
    """Run code in a Python of its own, below the root where nothing else is said."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    options = {"cwd": ROOT, "capture_output": True, "text": True, "check": False} | options
    return subprocess.run(command, **options)


def with_sources(**variables):
    """This environment, with the package, the book and the helpers of the tests on the path."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return os.environ | {"PYTHONPATH": path} | variables
