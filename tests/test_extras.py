"""What an extra promises: an audit runs with the packages of `audit` and nothing else."""

import tomllib
from importlib import metadata

import numpy as np
import pandas
import pytest
from commands import ROOT, run_python
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def leads_to(texts):
    """The distributions that requirements lead to."""
    names, waiting = set(), [Requirement(text).name for text in texts]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in names:
            names.add(name)
            children = map(Requirement, metadata.distribution(name).requires or ())
            environment = {"extra": ""}
            waiting += [
                child.name
                for child in children
                if child.marker is None or child.marker.evaluate(environment)
            ]
    return names


def modules_outside(extra):
    """The installed modules that do not come with an extra, nor with the package itself."""
    texts = PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]
    known = leads_to(texts) | {"labelaudit", "pip", "setuptools"}
    return {
        module
        for module, owners in metadata.packages_distributions().items()
        if known.isdisjoint(map(canonicalize_name, owners))
    }


BLOCKED = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from labelaudit.cli import main
sys.exit(main({arguments!r}))
"""


def run(extra, arguments):
    code = BLOCKED.format(modules=modules_outside(extra), arguments=[*map(str, arguments)])
    return run_python(code)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, 600)
    sick = rng.random(600) < 1 / (1 + np.exp((45 - age) / 5))
    path = tmp_path / "table.csv"
    pandas.DataFrame({"age": age, "sick": sick.astype(int)}).to_csv(path, index=False)
    return path


def test_an_audit_needs_the_extra_of_its_name_only(table, tmp_path):
    page = tmp_path / "report.html"
    quick = ["--refits", "2", "--bag-sizes", "4"]
    done = run("audit", ["audit", table, "--label", "sick", "--output", page, *quick])
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 10_000


def test_the_blocker_can_fail(table, tmp_path):
    assert {"torch", "IPython", "pytest"} <= modules_outside("audit")
    done = run("test", ["audit", table, "--label", "sick", "--output", tmp_path / "r.html"])
    assert done.returncode != 0
