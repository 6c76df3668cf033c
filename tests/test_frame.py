"""The repository's own promises: one lock, light imports, true instructions, arrows one way."""

import ast
import importlib
import itertools
import re
import subprocess
import tomllib
from collections import defaultdict
from importlib import metadata

import numpy as np
import pytest
import yaml
from commands import ROOT, run_python
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.__main__ import SUITES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

HEAVY = ("torch", "matplotlib", "IPython", "jupyter_core", "nbformat", "pandas", "numba")


LOCKS = ("requirements.lock", "requirements-test.lock")


def pins(lines):
    """The `name==version` lines as a dictionary; an environment marker may follow."""
    words = (line.strip().removeprefix("- ").partition("; ")[0] for line in lines)
    return dict(word.split("==") for word in words if re.fullmatch(r"[\w.-]+==[\w.]+", word))


def locked(lock="requirements.lock"):
    return pins((ROOT / lock).read_text().splitlines())


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("lock, least", [(LOCKS[0], 50), (LOCKS[1], 15)])
def test_lock_is_nothing_but_exact_pins(lock, least):
    lines = (ROOT / lock).read_text().splitlines()
    assert len(locked(lock)) == sum(not line.startswith("#") for line in lines) > least


def test_the_book_needs_no_test_oracle_and_no_compiler():
    book, test = map(locked, LOCKS)
    assert book["torch"] == "2.13.0" and book.keys().isdisjoint(test)
    assert {"qif", "riskcal", "pytest", "ruff", "mypy"} <= test.keys()
    lines = (ROOT / LOCKS[1]).read_text().splitlines()
    limited = {
        name for name in test for line in lines if line.startswith(f"{name}==") and ";" in line
    }
    assert limited == {"qif", "riskcal"}, "every other pin installs on all systems"


def test_environment_mirrors_the_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, through_pip = environment["dependencies"]
    assert conda == ["python=3.11", "pip"]
    assert through_pip["pip"].pop() == "-e ."
    assert pins(through_pip["pip"]) == locked()
    assert len(through_pip["pip"]) == len(locked())


def test_lock_satisfies_every_requirement():
    book, test = (
        {canonicalize_name(name): version for name, version in locked(lock).items()}
        for lock in LOCKS
    )
    extras = PROJECT["optional-dependencies"]
    assert set(extras) == {"audit", "notebook", "book", "train", "certify", "pdf", "slides", "test"}
    for extra, texts in {"": PROJECT["dependencies"], **extras}.items():
        lock = book | test if extra in {"certify", "pdf", "slides", "test"} else book
        for requirement in map(Requirement, texts):
            assert requirement.specifier.contains(lock[canonicalize_name(requirement.name)])


def test_import_is_light():
    code = (
        "import sys; from labelaudit import datasets;"
        "datasets.load_or_standin('higgs').fingerprint; print(*sys.modules)"
    )
    loaded = run_python(code)
    assert loaded.returncode == 0, loaded.stderr
    modules = set(loaded.stdout.split())
    assert "labelaudit" in modules
    assert modules.isdisjoint({*HEAVY, "scipy.stats", "labelaudit.bounds", "labelaudit.multiclass"})


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    released = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    wheel = re.search(r"labelaudit-([\d.]+)-py3", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = {str(citation["version"]), released[0], metadata.version("labelaudit"), wheel[1]}
    assert versions == {PROJECT["version"]}
    day = re.search(r"^## \[\d.*?\] - (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert str(citation["date-released"]) == day[1]


def test_instructions_name_real_targets():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):.*##", makefile, re.MULTILINE))
    folders = [ROOT / "book", ROOT / "notebooks"]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    pages += [page for folder in folders for page in folder.glob("*.md")]
    # A command is either alone on its line or in backquotes; prose may "make sense" freely.
    command = re.compile(r"(?:^[ ]*|`)make ([a-z][a-z0-9-]*)", re.MULTILINE)
    named = {name for page in pages for name in command.findall(page.read_text(encoding="utf-8"))}
    assert {"test", "book", "chapter"} <= named
    assert named <= targets, f"no such target: {named - targets}"


def shown_on(page):
    """The scope after a page's Python has run, and the value of each of its bare expressions."""
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert examples
    scope, values = {}, []
    for statement in ast.parse("\n".join(examples)).body:
        if isinstance(statement, ast.Expr):
            values.append(eval(compile(ast.Expression(statement.value), page, "eval"), scope))
        else:
            exec(compile(ast.Module([statement], []), page, "exec"), scope)
    return scope, values


def test_python_in_the_readme_shows_what_it_says():
    scope, (rise, shift, worth) = shown_on("README.md")
    epsilon = scope["mechanism"].epsilon
    # Theorem of chapter 4 for the first, the definition of label privacy for the second.
    assert 0 < rise < np.tanh(epsilon / 2) / 2
    assert 0.5 * epsilon < shift <= epsilon * (1 + 1e-12)
    # Chapter 16: no release with this epsilon is worth more than randomized response.
    assert 0 < worth < np.tanh(epsilon / 2) ** 2


def test_python_on_the_page_of_own_mechanisms_shows_what_it_says():
    scope, (advantage,) = shown_on("book/rerun.md")
    eta, channel = [0.3, 0.6], scope["matrix"]
    expected = []
    for person in range(2):
        joint = np.zeros((2, 2))
        for labels in itertools.product([0, 1], repeat=2):
            probability = np.prod([p if y else 1 - p for p, y in zip(eta, labels, strict=True)])
            joint[labels[person]] += probability * channel[sum(labels)]
        expected.append(joint.max(axis=0).sum() - joint.sum(axis=1).max())
    np.testing.assert_allclose(advantage, [expected], atol=1e-12)
    assert advantage.max() > 0.01


def test_no_machine_in_the_repository():
    folder = re.compile(r"(?<![\w.~-])/(?:work|root|home|Users|opt|tmp|mnt)/\w")
    host = re.compile(r"pypi\.org|python[h]osted|download\.pytorch|[\w-]+\.internal\b")
    packed = {".png", ".gz", ".npz", ".parquet", ".woff2"}
    texts = [path for path in tracked_files() if path.suffix not in packed]
    assert len(texts) > 200
    for path in texts:
        text = path.read_text(encoding="utf-8")
        for pattern in (folder, host):
            found = pattern.search(text)
            assert not found, f"{path.relative_to(ROOT)} names {found and found.group()!r}"


def repeated_classes(sources):
    """Names of classes that stand in more than one module, with the modules."""
    homes = defaultdict(list)
    for module, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_a_class_name_is_used_once():
    folders = (ROOT / "labelaudit", ROOT / "book", ROOT / "data_scripts")
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in folder.rglob("*.py")
    }
    assert len(sources) > 50
    assert repeated_classes(sources) == {}


def test_a_wheel_holds_the_package_alone():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == ["labelaudit"]


@pytest.mark.parametrize("suite", [*SUITES, "tools"])
def test_a_benchmark_imports_what_is_still_there(suite):
    """`make lint` sees whether its calls still fit."""
    module = importlib.import_module(f"benchmarks.{suite}")
    assert callable(getattr(module, "run", None)) == (suite in SUITES)
