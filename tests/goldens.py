"""Goldens: numbers of the whole project as they were written, which a change must reproduce.

`python -m tests.goldens write` writes them to `tests/golden/`, `python -m tests.goldens` lists what
differs from them, and `test_goldens.py` and `test_ledger.py` compare them in the suite. Kinds that
are named after either command (`audits`, `sweep`, `ledger`, `pages`, `tables`) restrict it to them.
A golden changes only in a commit of its own that says why.

audits   every number and decision that an audit writes as JSON, for the cases of `golden_audits.py`
sweep    every result of a small grid by its key, as `labelbook sweep` stores it
ledger   verdict, grade and evidence of each statement of the paper, as a quick run finds them
pages    what each chapter stores for its prose, at smoke scale
tables   the csv files of the chapters on data, at smoke scale

Nothing here knows how the package is divided into modules: what is read is JSON, csv, and the
outputs of notebooks. Times, versions and sentences are left out. What is compared is what the
golden has; a new field is no difference.

How close two numbers must be. Texts, whole numbers, truth values, infinite and undefined numbers
are the same. On a machine like the one that wrote the goldens, in processor and in versions of the
libraries, so is every digit of a float64: the arithmetic is deterministic. What torch has trained
in float32 agrees to six digits. On any other machine the last digits of float64 differ, since numpy
chooses its exp and log by the processor, OpenBLAS the order of its sums, and numba joins
multiplications to additions and sums in the order of the processor's vectors; there numbers agree
to 1e-9, relative or absolute where they are below 1e-3, and a number in a text to one unit of its
last place. What was learned from data on another machine, trees by scikit-learn or networks by
torch, is not compared: a split or an order of scores that flips with the last digit changes much.
"""

import contextlib
import gzip
import hashlib
import io
import json
import math
import os
import platform
import re
import sys
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

# As `conftest` does for the suite; read where training is first imported, and by kernels.
os.environ["LABELAUDIT_PRODUCTS"] = "highest"
FOLDER = Path(__file__).resolve().parent / "golden"
KINDS = ("audits", "sweep", "ledger", "pages", "tables")
# A packed file cannot be read in a commit, so only the largest one is packed.
PACKED = ("tables",)
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "torch")
TABLES_OF = ("10_higgs", "11_kdd12", "12_privacy_utility", "14_audit")
# What learns from data, and of that what trains with torch.
TRAINED = ("09_learning", "10_higgs", "11_kdd12", "12_privacy_utility", "17_training")
LEARNED = (
    *("features", "persons", "three classes", "three classes, a prior"),
    *("14_audit", "data"),
)
NOT_KEPT = {
    "audits": {
        "plan",
        "made",
        "seconds",
        "versions",
        "command",
        "summary",
        "reasons",
        "warnings",
        "file",
    }
    | {"sha256", "notes", "sentence", "text"},
    "sweep": {"made", "sha256", "seconds", "cpu_seconds"},
}
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# A number in a text with fewer digits than this is the same or another one.
MIN_DIGITS = 4
MAX_SHOWN = 20


@contextlib.contextmanager
def exact_products():
    """Full precision in products of float32 matrices, and one thread, while a test trains here."""
    import torch

    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_num_threads(threads)


def machine():
    """A digest of what the last digits depend on: the processor, the system, the libraries."""
    from llvmlite import binding

    versions = [(name, metadata.version(name)) for name in LIBRARIES]
    processor = binding.get_host_cpu_name(), sorted(binding.get_host_cpu_features().items())
    described = repr((platform.system(), processor, versions))
    return hashlib.sha256(described.encode()).hexdigest()[:16]


# What is kept


def audit(name):
    """The JSON of an audit."""
    from golden_audits import audited

    from labelaudit import auditing as report

    return without(json.loads(report.as_json(audited(name))), NOT_KEPT["audits"])


@cache
def sweep():
    """The stored results of the small grid, by key."""
    from book.cli import main

    with tempfile.TemporaryDirectory() as folder, exact_products():
        store = Path(folder, "store")
        options = ["--grid", str(FOLDER / "sweep.yml"), "--store", str(store), "--workers", "1"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = main(["sweep", "--dataset", "higgs-like", *options])
        assert status == 0, f"the sweep ended with status {status}"
        files = [path for path in store.rglob("*.json") if path.parent != store]
        results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}
    return without(results, NOT_KEPT["sweep"])


def statement(found):
    """What is kept of a statement's entry in the ledger."""
    return {name: found[name] for name in ("verdict", "grade", "evidence")}


def page(chapter):
    """What a chapter stored for its prose, and which data sets it read."""
    from smoke import executed, glued

    execution = executed(chapter)
    read = [data for data in execution.facts["data"] if not Path(data["name"]).suffix]
    numbers = {
        name: value if isinstance(value, int | float | str) else str(value)
        for name, value in glued(execution).items()
    }
    return {"data": {data["name"]: data["simulated"] for data in read}} | numbers


def tables(chapter):
    """The csv files of a chapter, line by line."""
    from smoke import executed

    files = sorted((executed(chapter).folder / "files").glob("*.csv"))
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in files}


def names(kind):
    """The goldens of a kind."""
    if kind == "audits":
        from golden_audits import CASES

        return list(CASES)
    if kind == "ledger":
        from book import ledger

        return [row.id for row in ledger.rows()]
    if kind == "pages":
        from smoke import DECLARED

        return list(DECLARED)
    return list(TABLES_OF) if kind == "tables" else sorted(sweep())


def measured(kind, name):
    """One golden as it is now."""
    if kind == "ledger":
        from book import ledger

        return statement(ledger.run(only=name, quick=True)[0])
    if kind == "sweep":
        return sweep().get(name)
    return {"audits": audit, "pages": page, "tables": tables}[kind](name)


def without(value, keys):
    """A JSON value without the fields of these names."""
    if isinstance(value, dict):
        return {name: without(part, keys) for name, part in value.items() if name not in keys}
    return [without(part, keys) for part in value] if isinstance(value, list) else value


# Files


def path_of(kind):
    """The file of a kind."""
    return FOLDER / (f"{kind}.json.gz" if kind in PACKED else f"{kind}.json")


@cache
def load(kind):
    """The goldens of a kind by name, as they were written; besides, the machine that wrote them."""
    content = path_of(kind).read_bytes()
    return json.loads(gzip.decompress(content) if kind in PACKED else content)


def write(kind):
    """Write the goldens of a kind: a line for each field of each of them."""
    blocks = {name: measured(kind, name) for name in names(kind)}
    parts = [f'"machine": "{machine()}"']
    for name, fields in blocks.items():
        lines = [f"{json.dumps(field)}: {compact(value)}" for field, value in fields.items()]
        parts.append(json.dumps(name) + ": {\n" + ",\n".join(lines) + "\n}")
    content = ("{\n" + ",\n".join(parts) + "\n}\n").encode()
    path_of(kind).write_bytes(gzip.compress(content, mtime=0) if kind in PACKED else content)
    load.cache_clear()


def compact(value):
    """JSON in one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# Comparison


def compared(kind, name):
    """Why a golden is not compared on this machine, or "" where it is."""
    if kind not in ("sweep", "ledger") and name not in (*TRAINED, *LEARNED):
        return ""
    if kind == "ledger" or load(kind)["machine"] == machine():
        return ""
    return "what was learned from data is compared on machines like the one that wrote the goldens"


def differences(kind, name, found):
    """Where a golden and what is found differ: a line for each place."""
    similar = load(kind)["machine"] == machine()
    tolerance = 0.0 if similar else 1e-9
    if kind == "sweep" or name in TRAINED:
        tolerance = 1e-6
    return list(_differences(load(kind)[name], found, tolerance, name))


def _differences(kept, found, tolerance, place):
    if isinstance(kept, dict) and isinstance(found, dict):
        for name, part in kept.items():
            if name in found:
                yield from _differences(part, found[name], tolerance, f"{place}, {name}")
            else:
                yield f"{place}: {name} is missing"
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{place}: {len(found)} entries instead of {len(kept)}"
        for index, (part, other) in enumerate(zip(kept, found, strict=False)):
            yield from _differences(part, other, tolerance, f"{place} [{index}]")
    elif not equal(kept, found, tolerance):
        yield f"{place}: {found!r} instead of {kept!r}"


def equal(kept, found, tolerance):
    """Whether two values agree: numbers to the tolerance, texts but for their numbers exactly.

    >>> equal(0.1, 0.1 + 1e-12, 1e-9), equal(0.1, 0.1 + 1e-12, 0), equal(3, 3.0, 0), equal(1, 2, 1)
    (True, False, False, False)
    >>> texts = ["0.4123,7", "0.4124,7", "0.4125,7", "0.4123,8", "0.41,7"]
    >>> [equal("0.4123,7", text, 1e-9) for text in texts]
    [True, True, False, False, False]
    """
    if type(kept) is not type(found):
        return False
    if isinstance(kept, float):
        if math.isnan(kept) or math.isinf(kept):
            return repr(kept) == repr(found)
        return abs(kept - found) <= tolerance * max(abs(kept), 1e-3)
    if not isinstance(kept, str) or not tolerance or kept == found:
        return bool(kept == found)
    if NUMBER.sub("#", kept) != NUMBER.sub("#", found):
        return False
    pairs = zip(NUMBER.findall(kept), NUMBER.findall(found), strict=True)
    return all(_same_number(first, second) for first, second in pairs)


def _same_number(first, second):
    """Whether two numbers in texts agree: the same, or one unit apart in the last place."""
    if first == second:
        return True
    finer = max(first, second, key=_places)
    if _places(finer) == 0 or len(re.sub(r"e.*|\D", "", finer).lstrip("0")) < MIN_DIGITS:
        return False
    values = [float(text.replace(",", "").replace("−", "-")) for text in (first, second)]
    return abs(values[0] - values[1]) <= 1.01 * 10.0 ** -_places(finer)


def _places(text):
    """How many decimal places a number is written with."""
    mantissa, _, exponent = text.partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def main(arguments):
    """Write the goldens, or list what differs."""
    writes = arguments[:1] == ["write"]
    chosen = arguments[writes:] or list(KINDS)
    if unknown := set(chosen) - set(KINDS):
        print(f"a kind is one of {', '.join(KINDS)}, not {unknown.pop()}", file=sys.stderr)
        return 2
    lines = []
    for kind in chosen:
        if writes:
            write(kind)
            print(f"{path_of(kind).stat().st_size:9,} bytes in {path_of(kind).name}", flush=True)
            continue
        for name in load(kind).keys() - {"machine"}:
            if not compared(kind, name):
                lines += differences(kind, name, measured(kind, name))
    print("\n".join(lines[:MAX_SHOWN]))
    if len(lines) > MAX_SHOWN:
        print(f"and {len(lines) - MAX_SHOWN} more differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.path[:0] = [str(FOLDER.parent), str(FOLDER.parents[1])]
    # The module that the tests import, so that what is computed once is kept once.
    import goldens

    sys.exit(goldens.main(sys.argv[1:]))
