"""Every test can fail: no check that is true whatever happens, none that may never be reached.

Found are, in the tests of all files:

1. a side of an `or` that is true whatever happens: a constant, a list that is not empty, a name
   that only ever holds one of these; in a loop, a side that is the same in each round beside one
   that is not. And a value that is compared with itself;
2. a test whose checks all stand under an `if` that has no check in its `else`;
3. a loop over what was filtered, searched or listed, with checks in it, unless an `assert` before
   names what is left.

A check is an `assert`, a block that expects an error or a warning, and a call of a function of the
same file that checks, or whose name begins with `assert`, `fail` or `wait_for`.
"""

import ast
from itertools import pairwise
from pathlib import Path

import mutation
import pytest

FILES = sorted(Path(__file__).parent.rglob("test_*.py"))
# Calls whose result may be empty.
SEARCHES = {"filter", "glob", "rglob", "iterdir", "findall", "finditer", "find_all", "select"}
SEARCHES |= {"splitlines", "query", "walk"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def findings(text):
    """What is found in a file: the line of each finding, and what it is."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    searching = {function.name for function in functions if gives_a_search(function)}
    checking = {f.name for f in functions if any(isinstance(n, ast.Assert) for n in ast.walk(f))}
    constants = constant_names(tree.body)
    for function in functions:
        local = constant_names(list(ast.walk(function)))
        yield from always_true(function, constants | local, frozenset())
        if not function.name.startswith("test_"):
            continue
        paths = list(checks(function, checking))
        if paths and all(under_if(path, checking) for path in paths):
            yield function.lineno, "every check stands under an if"
        if paths and all(in_search(path, function, searching, nested=True) for path in paths):
            yield function.lineno, "every check stands in a loop that may have no round"
        elif any(in_search(path, function, searching) for path in paths):
            yield function.lineno, "a check stands in a loop that may have no round"


# 1. What is always true


def constant_names(statements):
    """Names whose every assignment is a value that is true."""
    values = {}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in names_in(target):
                    simple = isinstance(target, ast.Name)
                    values.setdefault(name, []).append(simple and is_true(statement.value, set()))
        elif isinstance(statement, ast.For | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            for name in names_in(statement.target):
                values.setdefault(name, []).append(False)
        elif isinstance(statement, ast.arg):
            values.setdefault(statement.arg, []).append(False)
    return {name for name, found in values.items() if all(found)}


def is_true(node, constants):
    """Whether an expression is true whatever happens."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(not isinstance(part, ast.Starred) for part in node.elts)
    if isinstance(node, ast.Dict):
        return any(key is not None for key in node.keys)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return isinstance(node.operand, ast.Constant) and not node.operand.value
    if isinstance(node, ast.Name):
        return node.id in constants
    return isinstance(node, ast.Lambda)


def always_true(node, constants, rounds):
    """Findings of the first kind; `rounds` are the names that a loop around changes."""
    if isinstance(node, ast.For):
        rounds = rounds | names_in(node.target)
        rounds |= changed_by(node.body, rounds)
    if isinstance(node, COMPREHENSIONS):
        for generator in node.generators:
            rounds = rounds | names_in(generator.target)
    # The last side of an `or` may be a default; of one that is asserted it may not.
    chooses = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    if chooses and any(is_true(side, constants) for side in node.values[:-1]):
        yield node.lineno, "a side of an or is always true"
    if isinstance(node, ast.Assert):
        yield from asserted(node.test, constants, rounds)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield from always_true(child, constants, rounds)


def asserted(test, constants, rounds):
    """Findings in what is asserted."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = node.left, node.comparators[0]
            equal = isinstance(node.ops[0], ast.Eq | ast.LtE | ast.GtE | ast.Is)
            if equal and ast.unparse(left) == ast.unparse(right) and not calls(left):
                yield node.lineno, "a value is compared with itself"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        if is_true(test.values[-1], constants):
            yield test.lineno, "a side of an or is always true"
        fixed = [not names_in(side) & rounds for side in test.values]
        if any(fixed) and not all(fixed):
            yield test.lineno, "a side of an or is the same in every round"


def calls(node):
    """Whether an expression calls what may answer otherwise the second time."""
    plain = {"float", "int", "len", "str", "sorted", "set", "list"}
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(ast.unparse(part.func) not in plain for part in parts)


def names_in(node):
    """The names in an expression."""
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def changed_by(statements, rounds):
    """The names that are assigned in a loop from what changes in it."""
    changed = set()
    for _ in range(2):  # a name may depend on one that is assigned further down
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and names_in(node.value) & (rounds | changed):
                    changed |= {name for target in node.targets for name in names_in(target)}
                elif isinstance(node, ast.For) and names_in(node.iter) & (rounds | changed):
                    changed |= names_in(node.target)
                elif isinstance(node, ast.With):
                    for item in node.items:
                        if item.optional_vars and names_in(item.context_expr) & (rounds | changed):
                            changed |= names_in(item.optional_vars)
    return frozenset(changed)


# 2. and 3. What may never be reached


def checks(function, checking):
    """The checks of a test, each with the statements around it, the outermost first."""

    def visit(node, path):
        if is_check(node, checking):
            yield [*path, node]
            return
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, FUNCTIONS):
                yield from visit(child, [*path, node])

    for statement in function.body:
        yield from visit(statement, [])


def is_check(node, checking):
    """Whether a statement or a call can end a test."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.With | ast.AsyncWith):
        texts = [ast.unparse(item.context_expr) for item in node.items]
        return any(text.startswith(("pytest.raises", "pytest.warns")) for text in texts)
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    return name in checking or name.startswith(("assert", "fail", "wait_for"))


def under_if(path, checking):
    """Whether a check stands under an `if` whose other side has none."""
    for outer, inner in pairwise(path):
        if isinstance(outer, ast.If) and inner is not outer.test:
            sides = [outer.body, outer.orelse]
            nodes = [[node for part in side for node in ast.walk(part)] for side in sides]
            if not all(any(is_check(node, checking) for node in side) for side in nodes):
                return True
    return False


def in_search(path, function, searching, *, nested=False):
    """Whether a check stands in a loop over what may be empty, and no assert before names it."""
    loops = [node for node in path[:-1] if isinstance(node, ast.For)]
    for loop in loops if nested else loops[:1]:
        if may_be_empty(loop.iter, function, searching):
            return not any(
                isinstance(node, ast.Assert)
                and node.lineno < loop.lineno
                and names_in(node) & names_in(loop.iter)
                for node in ast.walk(function)
            )
    return False


def may_be_empty(node, function, searching):
    """Whether an expression is a search, or the name of one; a list of entries is neither."""
    if is_true(node, set()):
        return False
    if is_search(node, searching):
        return True
    return any(
        isinstance(assigned, ast.Assign)
        and names_in(node) & {n for target in assigned.targets for n in names_in(target)}
        and is_search(assigned.value, searching)
        for assigned in ast.walk(function)
    )


def is_search(node, searching):
    """Whether an expression filters, or calls what may find nothing."""
    for part in ast.walk(node):
        if isinstance(part, COMPREHENSIONS) and any(each.ifs for each in part.generators):
            return True
        if isinstance(part, ast.Call):
            name = ast.unparse(part.func).rpartition(".")[2]
            if name in SEARCHES or name in searching:
                return True
    return False


def gives_a_search(function):
    """Whether a function of the file returns a search, and does not check it."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(function)):
        return False
    results = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return any(may_be_empty(value, function, set()) for value in results if value is not None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_test_can_fail(path):
    found = findings(path.read_text(encoding="utf-8"))
    assert [f"{path.name}:{line}: {what}" for line, what in found] == []


PLANTED = [
    ("    assert run() or True", "a side of an or is always true"),
    ("    assert run() or ALWAYS", "a side of an or is always true"),
    ("    x = 1 or run()\n    assert x", "a side of an or is always true"),
    ("    for x in NAMES:\n        assert float(x) == float(x)", "compared with itself"),
    (
        "    real = any(run())\n    for name in NAMES:\n        assert name in run() or real",
        "a side of an or is the same in every round",
    ),
    (
        "    for name in NAMES:\n        real = any(run())\n        assert name in run() or real",
        "a side of an or is the same in every round",
    ),
    ("    if run():\n        assert run() > 1", "every check stands under an if"),
    ("    if run():\n        with pytest.raises(ValueError):\n            run()", "under an if"),
    ("    for x in [y for y in NAMES if y]:\n        assert run(x)", "may have no round"),
    ("    found = re.findall('a', run())\n    for x in found:\n        assert x", "no round"),
    ("    for path in ROOT.glob('*.py'):\n        assert_light(path)", "may have no round"),
    ("    for x in filtered():\n        assert x\n    assert run()", "may have no round"),
]
SOUND = [
    "    assert run() == run()",
    "    assert run() or run(2)",
    "    for name in NAMES:\n        assert name in run() or name == 'b'",
    "    for name in NAMES:\n        here = run(name)\n        assert name in run() or here",
    "    if run():\n        assert run() > 1\n    else:\n        assert run() < 1",
    "    if run():\n        assert run() > 1\n    assert run()",
    "    found = re.findall('a', run())\n    assert found\n    for x in found:\n        assert x",
    "    for x in kept():\n        assert x",
    "    for x in NAMES:\n        assert x",
    "    found = filtered()\n    for x in (len(found), run()):\n        assert x",
]
AROUND = """
NAMES = ["a", "b"]
ALWAYS = "yes"

def filtered():
    return [name for name in NAMES if run(name)]

def kept():
    found = [name for name in NAMES if run(name)]
    assert found
    return found

def test_something():
"""


@pytest.mark.parametrize(("body", "what"), PLANTED)
def test_a_test_that_cannot_fail_is_found(body, what):
    found = [told for _, told in findings(AROUND + body)]
    assert len(found) == 1 and what in found[0]


@pytest.mark.parametrize("body", SOUND)
def test_a_test_that_can_fail_is_left_alone(body):
    assert list(findings(AROUND + body)) == []


def test_every_module_has_tests_that_mutants_of_it_run():
    modules = {mutant.module for mutant in mutation.all_mutants(["labelaudit"])}
    chosen = {module: mutation.files_for(module) for module in modules}
    assert len(chosen) > 50 and all(chosen.values())
    files = {file.partition("::")[0] for found in chosen.values() for file in found}
    assert [file for file in sorted(files) if not (mutation.ROOT / file).is_file()] == []
