"""The install that make does: on which Python it works, and that several makes share one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata

import pytest
from packaging.specifiers import SpecifierSet
from test_frame import LOCKS, PROJECT, ROOT, locked

# Stands in for Python and, in the environment, for pip: an install is a second between two lines.
STAND_IN = """\
#!/bin/sh
case "$*" in
-c*) exec {python} "$@" ;;
*--version*) test -e "$0.installed" ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*" install "*) echo begin >>{log}; sleep 0.3; touch "$0.installed"; echo "end $*" >>{log} ;;
esac
"""


@pytest.fixture
def fresh(tmp_path):
    """A clone with nothing installed, and a Python whose pip only writes down what it is told."""
    if not shutil.which("make"):
        pytest.skip("there is no make on this machine")
    for name in ("Makefile", "pyproject.toml", *LOCKS):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python-stand-in"
    python.write_text(STAND_IN.format(python=sys.executable, log=tmp_path / "log"))
    python.chmod(0o755)
    return tmp_path


def start(folder, target):
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("MAKE")}
    command = ["make", f"PYTHON={folder / 'python-stand-in'}", f".venv/{target}"]
    options = {"cwd": folder, "env": environment, "start_new_session": True}
    return subprocess.Popen(command, **options, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_makes_that_start_together_install_one_after_the_other_and_once(fresh):
    together = [start(fresh, name) for name in ("installed", "installed-test", "installed-test")]
    for process in together:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    lines = (fresh / "log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "end"] * 3, "two were at work at once"
    whats = [line.split()[-1] for line in lines[1::2]]
    assert whats == [LOCKS[1], ".", LOCKS[0]][::-1]


def test_an_install_that_is_killed_leaves_no_lock(fresh):
    killed = start(fresh, "installed")
    while not (fresh / "log").is_file():
        assert killed.poll() is None, killed.stderr.read().decode()
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    after = start(fresh, "installed")
    _, errors = after.communicate(timeout=60)
    assert after.returncode == 0, errors.decode()
    assert (fresh / ".venv" / "installed").is_file()
    assert not (fresh / ".venv" / "incomplete").exists()


def test_every_pin_installs_on_the_oldest_python_that_is_promised():
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    installed = {
        name: metadata.metadata(name).get("Requires-Python") or ""
        for name, version in (locked(LOCKS[0]) | locked(LOCKS[1])).items()
        if _version(name) == version
    }
    assert len(installed) > 100, "this environment is that of the locks"
    late = {name: wants for name, wants in installed.items() if oldest not in SpecifierSet(wants)}
    assert not late
    asked = subprocess.run(
        [sys.executable, "-c", "import lock; print(lock.PYTHONS[0])"],
        cwd=ROOT / ".ci",
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == oldest, "make check-lock asks the index for another Python"


def _version(name):
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None
