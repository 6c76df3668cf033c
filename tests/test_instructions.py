"""The commands that the pages print, run as printed on files of the kind they name."""

import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

PAGES = ["README.md", "book/rerun.md", "book/teach.md"]
CALL = "import sys; from labelaudit.cli import main; sys.exit(main())"
# What would take minutes: sweeps beyond their plan, and chapters, which have tests of their own.
LONG = re.compile(r"^run |^sweep (?!.*--dry-run)|^results")


def printed(page):
    """The `labelaudit` lines of a page's shell blocks, continued lines joined."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    called = [line.strip().removeprefix(".venv/bin/") for line in lines]
    return [line.removeprefix("labelaudit ") for line in called if line.startswith("labelaudit ")]


COMMANDS = sorted({line for page in PAGES for line in printed(page) if not LONG.match(line)})


def test_there_are_commands():
    assert {line.split()[0] for line in COMMANDS} >= {"audit", "chapters", "ledger", "teach"}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_printed_command_works(line, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((400, 3)), columns=["age", "visits", "spent"])
    table["clicked"] = (rng.random(400) < 1 / (1 + np.exp(-table["age"]))).astype(int)
    table.to_csv(tmp_path / "mine.csv", index=False)
    words = shlex.split(line)
    swap = {"mine.csv": str(tmp_path / "mine.csv"), "../class": str(tmp_path / "class")}
    words = [swap.get(word, word) for word in words]
    # Names of students must end up neither in the clone nor where `make clean` deletes them.
    assert words[0] != "teach" or words[words.index("--out") + 1] == swap["../class"]
    if words[0] == "audit":
        words += ["--refits", "2", "--output", str(tmp_path / "audit.html")]
    done = subprocess.run(
        [sys.executable, "-c", CALL, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
