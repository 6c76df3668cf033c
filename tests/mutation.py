"""Random mutants of the package: which small changes of its code does no test notice?

`python tests/mutation.py --number 100 --seed 1 --write FILE` changes one place at a time (a
comparison, an operator, a number, a condition, a call or `raise` that is left out), runs the tests
that know the module, with its doctests, and prints which changes they noticed and the rate.
`--again FILE` tries those of an earlier list. A mutant is named by module, function, operator and
occurrence, such as `labelaudit.checks:whole_number:Lt-LtE:0`. A function that has moved is found
again by its name, and a place in it by its text, which the list holds as well.

`tests/golden/mutants.txt` is the list of version 0.2.1, `--number 100 --seed 1`. Of the first 50
tests noticed 42; of the other 8, 6 change no result, and 2 are noticed since.

The tree itself stays as it is: tests run in a copy in a temporary folder, in processes forked from
this one, which has imported the libraries. `make test` does not run it. A hundred mutants take
about an hour of one core.
"""

import argparse
import ast
import contextlib
import importlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("pytest", "hypothesis", "numba", "scipy.stats", "scipy.optimize", "sympy", "yaml")
LIBRARIES += ("pandas", "sklearn.ensemble", "sklearn.linear_model", "torch", "matplotlib.pyplot")
# The tests of a module, or of all modules below a package: names of files without "test_", and
# of a test in one after two colons.
TESTS = {
    "labelaudit": "properties refusals frame",
    "labelaudit.advantage": "advantage kernels worth oracles properties refusals",
    "labelaudit.attack": "posterior advantage oracles properties refusals redrawn",
    "labelaudit.bounds": "bounds sharper_bounds refusals",
    "labelaudit.channel_program": "design",
    "labelaudit.checks": "refusals posterior design mechanisms",
    "labelaudit.cli": "extras book instructions audit_command",
    "labelaudit.command_line": "audit_command book ledger contract instructions",
    "labelaudit.datasets": "datasets datasets_prepare datasets_fetch refusals",
    "labelaudit.auditing.table": "audit_table audit_verdicts audit_command refusals",
    "labelaudit.design": "design refusals",
    "labelaudit.distribution": "advantage kernels oracles properties refusals",
    "labelaudit.estimates": "estimates refusals",
    "labelaudit.files": "files datasets_scripts datasets_prepare store runner",
    "labelaudit.kernels": "kernels posterior advantage worth oracles models",
    "labelaudit.kernels.embedding_adam": "adam kernels models",
    "labelaudit.learning": "training likelihood losses eta calibration models adam products",
    "book.sweep": "grid plan store engines audits command learning_figures selection",
    "book.ledger": "ledger verdicts certificates",
    "labelaudit.mechanisms": "mechanisms posterior advantage refusals design",
    "labelaudit.mechanisms.custom": "audit_custom audit_command mechanisms",
    "labelaudit.multiclass": "multiclass audit_classes refusals",
    "labelaudit.partitions": "redrawn estimates posterior",
    "labelaudit.plots": "plots learning_figures frame",
    "labelaudit.poisson_binomial": "poisson_binomial design sharper_bounds",
    "labelaudit.poisson_multinomial": "multiclass audit_classes",
    "labelaudit.priors": "estimates refusals worth",
    "labelaudit.redrawn": "redrawn repeated",
    "labelaudit.repeated": "repeated redrawn",
    "labelaudit.auditing": "audit_attack audit_verdicts audit_recommended audit_intervals"
    " audit_recomputed audit_adversarial audit_command audit_custom audit_utility audit_classes"
    " goldens::test_audits_are_as_they_were",
    "labelaudit.auditing.priors": "audit_priors",
}
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
# Numbers the mutants of a run.
CHANGES = itertools.count(1)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Mutant:
    """A place in a file, and what stands there instead."""

    module: str
    function: str
    operator: str
    occurrence: int
    span: tuple[int, int, int, int]
    new: str
    change: str

    @property
    def name(self):
        """Module, function, operator, occurrence."""
        return f"{self.module}:{self.function}:{self.operator}:{self.occurrence}"

    @property
    def path(self):
        """The module's file, relative to the root."""
        path = Path(*self.module.split("."))
        package = path / "__init__.py"
        return package if (ROOT / package).is_file() else path.with_suffix(".py")

    def applied(self, text):
        """The file's text with the change in it; columns count bytes."""
        first, start, last, end = self.span
        lines = [line.encode() for line in text.splitlines(keepends=True)]
        before = b"".join(lines[: first - 1]) + lines[first - 1][:start]
        after = lines[last - 1][end:] + b"".join(lines[last:])
        return (before + self.new.encode() + after).decode()


def mutants(module, text):
    """Every mutant of a module, in the order of its text.

    >>> source = "def f(x):\\n    if x < 1:\\n        raise ValueError\\n    return x + 1\\n"
    >>> for mutant in mutants("m", source):
    ...     print(mutant.name, "|", mutant.change)
    m:f:if:0 | x < 1 -> (not (x < 1))
    m:f:Lt-LtE:0 | x < 1 -> (x <= 1)
    m:f:number:0 | 1 -> 2
    m:f:raise:0 | raise ValueError -> pass
    m:f:Add-Sub:0 | x + 1 -> (x - 1)
    m:f:number:1 | 1 -> 2
    """
    counts = {}
    for node, function in _nodes(ast.parse(text), "<module>"):
        for place, operator, new in _changes(node):
            count = counts[function, operator] = counts.get((function, operator), -1) + 1
            span = place.lineno, place.col_offset, place.end_lineno, place.end_col_offset
            change = f"{_short(place)} -> {' '.join(new.split())[:90]}"
            yield Mutant(module, function, operator, count, span, new, change)


def _nodes(node, function):
    """The nodes that may be changed, each with the function around it."""
    yield node, function
    for name, value in ast.iter_fields(node):
        # Types are for readers; the text of an error, or of a formatted number, is no arithmetic.
        if name in ("annotation", "returns", "exc", "cause"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            inner = function
            if isinstance(child, SCOPES):
                inner = f"{function}.{child.name}".removeprefix("<module>.")
            yield from _nodes(child, inner)


def _changes(node):
    """The place, the operator and the new text of each change of a node."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield node.test, "if", f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        other = SWAPS[type(node.ops[0])]()
        changed = ast.Compare(node.left, [other, *node.ops[1:]], node.comparators)
        yield node, _swap(node.ops[0], other), f"({ast.unparse(changed)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not _holds_text(node):
        other = SWAPS[type(node.op)]()
        changed = ast.BinOp(node.left, other, node.right)
        yield node, _swap(node.op, other), f"({ast.unparse(changed)})"
    elif isinstance(node, ast.BoolOp):
        other = SWAPS[type(node.op)]()
        yield node, _swap(node.op, other), f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node, type(node.op).__name__, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, "truth", repr(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, "number", repr(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield node, "number", repr(node.value * 1.5 or 1.0)
    elif isinstance(node, ast.Raise):
        yield node, "raise", "pass"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "call", "pass"
    elif isinstance(node, ast.AugAssign) and type(node.op) in SWAPS:
        other = SWAPS[type(node.op)]()
        changed = ast.AugAssign(node.target, other, node.value)
        yield node, _swap(node.op, other), ast.unparse(changed)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
        arguments = node.value.args
        if len(arguments) == 1 and not isinstance(arguments[0], ast.GeneratorExp | ast.Starred):
            yield node.value, "return", ast.unparse(arguments[0])


def _swap(old, new):
    return f"{type(old).__name__}-{type(new).__name__}"


def _holds_text(node):
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.JoinedStr))
    return any(isinstance(part, ast.JoinedStr) or isinstance(part.value, str) for part in parts)


def _short(node):
    return " ".join(ast.unparse(node).split())[:90]


def all_mutants(packages):
    """Every mutant of the packages, module by module."""
    found = []
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found += mutants(module, path.read_text(encoding="utf-8"))
    return found


def sample(found, number, seed):
    """Random ones, at most one of a line."""
    shuffled = random.Random(seed).sample(found, len(found))
    lines = {(mutant.module, mutant.span[0]): mutant for mutant in reversed(shuffled)}
    chosen = [each for each in shuffled if lines[each.module, each.span[0]] is each]
    return chosen[:number]


def find_again(name, change, found):
    """The mutant of an earlier list: where it was, else where its function is now.

    >>> old = list(mutants("a", "def f(x):\\n    return x - 1\\n"))[0]
    >>> now = list(mutants("b.c", "def f(x):\\n    y = 2 - x\\n    return x - 1\\n"))
    >>> find_again(old.name, old.change, now).name
    'b.c:f:Sub-Add:1'
    >>> find_again("a:g:Sub-Add:0", "x - 1 -> (x + 1)", now)
    """
    module, function, operator, occurrence = name.rsplit(":", 3)
    places = [each for each in found if (each.function, each.operator) == (function, operator)]
    same_text = [each for each in places if each.change == change]
    for candidates in (
        [each for each in same_text if each.name == name],
        [each for each in same_text if each.module == module],
        # A file that has moved into another folder.
        [each for each in same_text if Path(each.path).stem == module.rpartition(".")[2]],
        same_text,
        [each for each in places if each.occurrence == int(occurrence)],
    ):
        # In several modules a function of this name may be another one.
        if len({each.module for each in candidates}) == 1:
            return min(candidates, key=lambda each: abs(each.occurrence - int(occurrence)))
    return None


def files_for(module):
    """The test files that know a module."""
    names = []
    while module and not names:
        names = TESTS.get(module, "").split()
        module = module.rpartition(".")[0]
    paths = {path.stem: path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    files = (name.partition("::") for name in names)
    return [f"{paths[f'test_{file}']}{colons}{test}" for file, colons, test in files]


def copy_tree(folder):
    """A copy of the tree as it is, of what git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        *(), cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def start(folder, arguments, log):
    """Fork a process that runs pytest in a copy of the tree; returns its number."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        with open(log, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".") != ROOT)]
        import pytest

        options = ["-x", "-q", "-m", "not slow and not browser", "-p", "no:cacheprovider"]
        status = int(pytest.main([*options, "-p", "no:xdist", *arguments]))
    finally:
        os._exit(status)


def outcome(copy, arguments, timeout, mutant=None):
    """What becomes of a run of pytest in a copy of the tree, with a mutant in it."""
    if mutant:
        path = copy / mutant.path
        path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        # Python takes compiled code for current if time, in seconds, and size are the same.
        changed = (ROOT / mutant.path).stat().st_mtime + next(CHANGES)
        os.utime(path, (changed, changed))
    child, end = start(copy, arguments, copy.with_suffix(".log")), time.monotonic() + timeout
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < end:
        time.sleep(0.05)
        done, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if mutant:
        shutil.copy2(ROOT / mutant.path, copy / mutant.path)
    if not done:
        os.waitpid(child, 0)
        return "timeout"
    # 5: no test was chosen, as in a module without doctests.
    return "survived" if os.waitstatus_to_exitcode(status) in (0, 5) else "killed"


def check_sound(copy, timeout, chosen):
    """The tests concerned must pass without a mutant, or nothing is learned."""
    files = sorted({file for mutant in chosen for file in files_for(mutant.module)})
    modules = sorted({str(mutant.path) for mutant in chosen})
    for arguments in (modules, *([file] for file in files)):
        if outcome(copy, arguments, timeout) != "survived":
            log = copy.with_suffix(".log").read_text(errors="replace")
            tail = "\n".join(log.splitlines()[-15:])
            sys.exit(f"without a mutant {arguments[0]} does not pass in time:\n{tail}")


def main():
    """Choose mutants, run them, print the rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("--number", type=int, default=100, help="how many random mutants")
    option("--seed", type=int, default=0, help="of the choice")
    option("--packages", nargs="+", default=["labelaudit"], help="folders, such as book/tools")
    option("--again", type=Path, metavar="FILE", help="the mutants of an earlier list instead")
    option("--write", type=Path, metavar="FILE", help="keep the list, a line for each mutant")
    option("--timeout", type=float, default=600, help="seconds for the tests of a mutant")
    option("--unchecked", action="store_true", help="do not run the tests without a mutant first")
    arguments = parser.parse_args()
    # What the package had when a list was written may be in `book` now.
    found = all_mutants(["labelaudit", "book"] if arguments.again else arguments.packages)
    lost = []
    if arguments.again:
        listed = [line.split("\t") for line in arguments.again.read_text("utf-8").splitlines()]
        again = {name: find_again(name, change, found) for name, _, change in listed}
        lost = [name for name, mutant in again.items() if mutant is None]
        chosen = [mutant for mutant in again.values() if mutant]
    else:
        chosen = sample(found, arguments.number, arguments.seed)
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    lines, outcomes = [], []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder, "tree")
        copy_tree(copy)
        if not arguments.unchecked:
            check_sound(copy, arguments.timeout, chosen)
        for mutant in chosen:
            tried = [str(mutant.path), *files_for(mutant.module)]
            outcomes.append(outcome(copy, tried, arguments.timeout, mutant))
            lines.append(f"{mutant.name}\t{outcomes[-1]}\t{mutant.change}")
            print(f"{len(lines):4} {outcomes[-1]:8} {mutant.name}  {mutant.change}", flush=True)
            if arguments.write:
                arguments.write.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    killed = sum(result != "survived" for result in outcomes)
    print(f"killed {killed} of {len(outcomes)} ({killed / max(len(outcomes), 1):.0%})")
    for name in lost:
        print(f"not found again: {name}")


if __name__ == "__main__":
    main()
