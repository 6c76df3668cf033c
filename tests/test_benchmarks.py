"""The benchmarks take minutes and run by hand; the tests see that what they call is still there."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from benchmarks.__main__ import SUITES

MISSING = object()


def resolved(node, scope):
    """The object that a name or a dotted name stands for, or None where only a run can tell."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, scope)
        if inspect.ismodule(owner):
            return getattr(owner, node.attr, MISSING)
        return getattr(owner, node.attr, None) if inspect.isclass(owner) else None
    return None


def stale(source, module):
    """Names that a benchmark uses and the package lacks, and calls that its functions reject."""
    scope = dict(vars(module))
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(compile(ast.Module([node], []), module.__name__, "exec"), scope)
    broken = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and resolved(node, scope) is MISSING:
            broken.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            function = resolved(node.func, scope)
            home = getattr(function, "__module__", None) or ""
            if callable(function) and home.split(".")[0] in ("labelaudit", "benchmarks", "book"):
                broken += rejected(node, function)
    return broken


def rejected(call, function):
    """The call, if its number of arguments or their names do not fit the function."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    names = [keyword.arg for keyword in call.keywords]
    if None in names:
        return []
    try:
        inspect.signature(function).bind(*call.args, **dict.fromkeys(names))
    except TypeError:
        return [ast.unparse(call)]
    return []


@pytest.mark.parametrize("suite", [*SUITES, "tools"])
def test_a_suite_finds_what_it_measures(suite):
    module = importlib.import_module(f"benchmarks.{suite}")
    assert callable(getattr(module, "run", None)) == (suite in SUITES)
    assert stale(Path(module.__file__).read_text(encoding="utf-8"), module) == []


def test_a_stale_benchmark_is_seen():
    source = """
import labelaudit as la
def run():
    la.no_such_name()
    la.posterior(1, 2, 3, 4, 5, 6, 7)
    return la.LabelProportions(bag=3)
"""
    broken = stale(source, importlib.import_module("benchmarks.attack"))
    assert {call.split("(")[0] for call in broken} == {
        "la.no_such_name",
        "la.posterior",
        "la.LabelProportions",
    }
