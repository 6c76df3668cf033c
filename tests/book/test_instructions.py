"""The commands that the pages print, run as printed on files of the kind they name.

What would take minutes is run at the smallest scale or as a plan, whichever the command offers.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import ROOT

import book.cli
import labelaudit.cli
from book.tools.chapters import find_chapter, load_chapters
from book.tools.checkout import Checkout
from book.tools.commands import add_parser

PAGES = ["README.md", "book/rerun.md", "book/teach.md"]
# The commands by their program.
MAIN = {"labelaudit": labelaudit.cli.main, "labelbook": book.cli.main}
PROGRAMS = tuple(f".venv/bin/{name} " for name in MAIN)
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
SAMPLES = {
    "higgs": "higgs_uci_real_subset.csv.gz",
    "kdd12": "kdd12_track2_click_prediction_small.parquet",
    "diabetes": "brfss2015_diabetes_253680.parquet",
}


def printed(page):
    """The commands of a page: the lines of its shell blocks, and those quoted in a sentence."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`((?:\.venv/bin/label(?:audit|book)|make) [^`]+)`", text)
    return {shlex.join(shlex.split(line, comments=True)) for line in lines} - {""}


README = sorted(printed("README.md"))
COMMANDS = sorted(set().union(*map(printed, PAGES)))


def starting(words):
    return [line for line in COMMANDS if line.startswith(words)]


def make(words, folder):
    """Run a target of the Makefile with this Python, in an environment that counts as installed."""
    if not shutil.which("make"):
        pytest.skip("there is no make on this machine")
    (folder / "installed").touch()
    wrappers = {"python": '"$@"'}
    for name, main in MAIN.items():
        call = f"import sys; from {main.__module__} import main; sys.exit(main())"
        wrappers[name] = f'-c {shlex.quote(call)} "$@"'
    for name, arguments in wrappers.items():
        write_script(folder / "bin" / name, f"exec {shlex.quote(sys.executable)} {arguments}")
    own = {"PYTHONPATH": str(ROOT), "SCALE": "smoke", "LABELAUDIT_DATA": str(folder / "data")}
    return finished([*words, f"VENV={folder}"], os.environ | own)


def finished(words, environment):
    # What `make test` leaves for a make of its own would make this one talk of its folders.
    own = {name: value for name, value in environment.items() if name not in OF_MAKE}
    done = subprocess.run(words, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def write_script(path, line):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def called(tmp_path, monkeypatch, capsys):
    """Call a command in this process, in the clone; its status must be 0. Gives what it says."""

    def call(words, data=tmp_path / "data"):
        monkeypatch.chdir(ROOT)
        monkeypatch.setenv("LABELAUDIT_DATA", str(data))
        program, *arguments = words
        status, told = MAIN[Path(program).name](arguments), capsys.readouterr()
        assert status == 0, f"{shlex.join(words)}\n{told.out}\n{told.err}"
        return told.out

    return call


def prepare(name, folder):
    """Prepare a real sample as the pages say, in place of the file that they name."""
    beside = ROOT.parent / "shared" / "data"
    sample = Path(os.environ.get("LABELAUDIT_SAMPLES", beside)) / SAMPLES[name]
    if not sample.is_file():
        pytest.skip(f"no real sample {sample.name}: set LABELAUDIT_SAMPLES to its folder")
    return make(["make", f"data-{name}", f"SOURCE={sample}"], folder)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder with a real data set, prepared once for all commands that read it."""

    @cache
    def folder(name):
        made = tmp_path_factory.mktemp(name)
        assert "prepared " in prepare(name, made)
        return made / "data"

    return folder


def test_every_command_is_tried():
    known = (*PROGRAMS, "make ", ".venv/bin/pip install ")
    assert [line for line in COMMANDS if not line.startswith(known)] == []
    commands = {line.split()[1] for program in PROGRAMS for line in starting(program)}
    assert commands >= {"audit", "chapters", "grade", "ledger", "run", "sweep", "teach"}
    # Names of students must end up neither in the clone nor where `make clean` deletes them.
    assert all(words[words.index("--out") + 1].startswith("../") for words in FIVE[1:])
    targets = {line.split()[1] for line in starting("make ")}
    assert targets >= {"book", "test", "data-higgs", "chapter"}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((400, 3)), columns=["age", "visits", "spent"])
    frame["clicked"] = (rng.random(400) < 1 / (1 + np.exp(-frame["age"]))).astype(int)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path / "mine.csv"


# Chapters are tried below; what `results` lists, sweeps must have made.
@pytest.mark.parametrize(
    "line",
    [
        line
        for program in PROGRAMS
        for line in starting(program)
        if line.split()[1] not in ("run", "results", "teach", "grade", "slides", "handout")
    ],
)
def test_a_printed_command_works(line, tmp_path, table, called, prepared):
    words = [str(table) if word == "mine.csv" else word for word in shlex.split(line)]
    words = [word.replace("$SLURM_ARRAY_TASK_ID", "3") for word in words]
    if words[1] == "audit":
        words += ["--refits", "2", "--output", str(tmp_path / "audit.html")]
    folder = tmp_path / "data"
    if words[1] == "sweep":
        words += ["--dry-run"] * ("--dry-run" not in words)
        data = words[words.index("--dataset") + 1]
        folder = prepared(data) if data in SAMPLES else folder
    assert called(words, folder)


FIVE = [
    shlex.split(line)
    for line in re.search(
        r"## Five commands.*?```sh\n(.*?)```",
        (ROOT / "book" / "teach.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )[1].splitlines()
]


def in_folder(words, folder):
    """The words of a command with its files in a folder, at the smallest scale."""
    moved = [re.sub(r"^\.\./|^(?=\w+\.csv$)", f"{folder}/", word) for word in words[1:]]
    return [words[0], *moved, "--scale", "smoke"]


@pytest.mark.parametrize(
    ("size", "grading"),
    [
        (2, FIVE[-1:]),
        pytest.param(2, FIVE[-2:], marks=pytest.mark.slow),
        pytest.param(12, FIVE[-1:], marks=pytest.mark.slow),
    ],
)
def test_a_class_gets_notebooks_and_grades(size, grading, tmp_path, called):
    """The last three of the five commands as printed; between them a student answers.

    The last one grades too, so it stands for both where time counts.
    """
    logins = {f"Student {number}": f"s{number}" for number in range(size)}
    rows = "".join(f"{name},{login}\n" for name, login in logins.items())
    (tmp_path / "students.csv").write_text(f"Name,Login\n{rows}")
    sheet = "".join(f"{login},\n" for login in logins.values())
    (tmp_path / "sheet.csv").write_text(f"Login,Homework\n{sheet}")
    called(in_folder(FIVE[2], tmp_path))
    answers = pd.read_csv(tmp_path / "class" / "answers.csv", index_col="student")
    assert (
        answers.index.tolist() == list(logins)
        and not answers["ex-additive-coin"].duplicated().any()
    )
    first = tmp_path / "class" / "students" / "Student-0.ipynb"
    blank, right = "coins = ...  # your answer", f"coins = {answers['ex-additive-coin'].iloc[0]}"
    copy = first.read_text(encoding="utf-8")
    assert copy.count(blank) == 1
    first.write_text(copy.replace(blank, right), encoding="utf-8")
    for words in grading:
        called(in_folder(words, tmp_path))
        grades = pd.read_csv(tmp_path / "grades" / "grades.csv", index_col="student")
        assert grades["total"].tolist() == [1] + [0] * (size - 1)
    filled = pd.read_csv(tmp_path / "grades" / "sheet.csv", index_col="Login")
    assert filled["Homework"].tolist() == grades["total"].tolist()


@pytest.mark.slow
def test_slides_and_handouts_are_made_as_printed(tmp_path, chromium, called):
    slides, handout = (in_folder(words, tmp_path) for words in FIVE[:2])
    deck = ROOT / called(slides).splitlines()[-1]
    assert deck.is_file() and "up to date" in called([*slides, "--check"])
    called(handout)
    figures = {path.name for path in (tmp_path / "handout" / "figures").iterdir()}
    assert {
        path.removesuffix(".svg") + ".png" for path in figures if path.endswith("svg")
    } < figures
    assert (tmp_path / "handout" / "cards.html").is_file()


@pytest.mark.parametrize("line", starting("make chapter "))
def test_a_printed_chapter_takes_its_parameters(line, tmp_path, table, monkeypatch):
    handed = finished([*shlex.split(line), f"VENV={stand_in(tmp_path)}"], os.environ)
    assert_accepted(handed.splitlines(), tmp_path, monkeypatch)


def stand_in(folder):
    """An environment whose command only writes down what `make` hands to it."""
    if not shutil.which("make"):
        pytest.skip("there is no make on this machine")
    write_script(folder / "bin" / "labelbook", 'for word in "$@"; do printf "%s\\n" "$word"; done')
    (folder / "installed").touch()
    return folder


def test_the_command_judges_a_name_and_make_what_is_no_pair(tmp_path):
    words = ["make", "chapter", "C=07", f"VENV={stand_in(tmp_path)}"]
    handed = finished([*words, "P=Seed=3 priors=[*]"], os.environ).splitlines()
    assert handed[-6:] == ["-p", "Seed", "3", "-p", "priors", "[*]"]
    spaced = subprocess.run(
        [*words, "P=bag_sizes=[4, 16]"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert spaced.returncode and "P: '16]' is not name=value" in spaced.stderr


@pytest.mark.parametrize("line", starting(".venv/bin/labelbook run "))
def test_a_printed_run_takes_its_parameters(line, table, tmp_path, monkeypatch):
    assert_accepted(shlex.split(line)[1:], tmp_path, monkeypatch)


def assert_accepted(words, folder, monkeypatch):
    """The words after `labelbook` name a chapter and parameters it takes."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    parsed = parser.parse_args(words)
    chapter = find_chapter(load_chapters(Checkout(ROOT).chapters_file), parsed.chapter)
    monkeypatch.chdir(folder)
    resolved = chapter.resolve(parsed.scale, chapter.read(parsed.parameter))
    assert set(resolved) == set(chapter.parameters)


@pytest.mark.parametrize("line", [line for line in README if "make chapter" in line])
def test_the_readmes_chapters_run(line, tmp_path):
    """As printed, but at the scale of the tests, whose execution of the chapter serves here too."""
    page = make([*shlex.split(line), "SCALE=smoke"], tmp_path).splitlines()[-1]
    assert (ROOT / page).is_file()


@pytest.mark.parametrize("line", starting("make data-"))
def test_printed_data_is_prepared(line, prepared):
    _, target, source = shlex.split(line)
    assert source.startswith("SOURCE=")
    name = target.removeprefix("data-")
    assert (prepared(name) / name).is_dir()
