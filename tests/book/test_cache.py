"""A chapter re-runs when, and only when, something it depends on has changed."""

import json

import nbformat
import pytest
from book_fixture import edited, make_checkout

from book.tools.cache_key import (
    data_read,
    folder_files,
    imported_files,
    ingredients,
    package_files,
    run_name,
)
from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.parameters import SCALES, ContractError, Parameter
from book.tools.runner import execute

SEED = Parameter(name="seed", type="integer", meaning="seed", values={"paper": 1}, low=0, high=9)
TABLE = Parameter(name="table", type="path", meaning="a table", values={"paper": ""})
# A part of the package that the chapter imports, and one that it does not.
MODULES = {
    "used/__init__.py": "",
    "used/inner.py": "value = 1\n",
    "used/worker.py": "",
    "used/tables/rows.yml": "a: 1\n",
    "unused/__init__.py": "",
    "unused/later.py": "",
    "unused/style.css": "",
}
CELL = """\
import subprocess, sys

from labelaudit.used import inner

subprocess.run([sys.executable, "-c", "import labelaudit.used.worker"], check=True)
inner.value"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A clone that also holds a file a chapter reads and modules that it imports."""
    root = make_checkout(tmp_path_factory.mktemp("cache"))
    (root / "numbers.csv").write_text("1\n")
    for name, text in MODULES.items():
        path = root / "labelaudit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    chapter = root / "notebooks" / "02_plain.md"
    chapter.write_text(chapter.read_text().replace("1 + 1", CELL))
    return Checkout(root)


def plain(checkout):
    """The chapter that imports two modules, reads one file and takes one parameter."""
    seconds = dict.fromkeys(SCALES, 1)
    return Chapter(
        id="02_plain",
        title="Plain",
        data=("numbers.csv",),
        seconds=seconds,
        parameters={"seed": SEED},
    )


def run(checkout, **parameters):
    return execute(checkout, plain(checkout), {"seed": 1} | parameters, scale="smoke")


def append_line(path):
    path.write_text(path.read_text() + "\n")


def test_each_ingredient_makes_it_run_again_and_nothing_else_does(checkout):
    root = checkout.root
    assert run(checkout).reason == "first run"
    assert run(checkout).reason == ""
    changes = {
        "source": root / "notebooks" / "02_plain.md",
        "package": root / "labelaudit" / "used" / "inner.py",
        "lock file": root / "requirements.lock",
        "data": root / "numbers.csv",
    }
    for ingredient, path in changes.items():
        append_line(path)
        assert run(checkout).reason == f"changed: {ingredient}"
        assert run(checkout).reason == "", "and then it is up to date"
    for unrelated in ["README.md", "_config.yml", "book/index.md", "labelaudit/x.pyc"]:
        (root / unrelated).write_text("changed")
        assert run(checkout).reason == ""


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("__init__.py", "changed: package"),
        ("used/worker.py", "changed: package"),  # imported in a process that the chapter starts
        ("used/tables/rows.yml", "changed: package"),
        ("unused/later.py", ""),
        ("unused/style.css", ""),
        ("cli.py", ""),
    ],
)
def test_of_the_package_only_what_the_chapter_imported_counts(checkout, file, reason):
    run(checkout)
    append_line(checkout.package / file)
    assert run(checkout).reason == reason


def test_a_module_that_an_imported_one_begins_to_import_is_seen(checkout):
    run(checkout)
    inner, later = checkout.package / "used" / "inner.py", checkout.package / "unused" / "later.py"
    with edited(inner, "value = 1", "from labelaudit.unused import later\nvalue = 1"):
        assert run(checkout).reason == "changed: package"
        assert "labelaudit.unused.later" in run(checkout).facts["modules"]
        append_line(later)
        assert run(checkout).reason == "changed: package"
    assert run(checkout).reason == "changed: package"
    append_line(later)
    assert run(checkout).reason == "", "it is no longer imported"


def test_a_module_that_becomes_a_folder_is_seen(checkout):
    run(checkout)
    worker = checkout.package / "used" / "worker.py"
    worker.with_suffix("").mkdir()
    worker.rename(worker.with_suffix("") / "__init__.py")
    assert run(checkout).reason == "changed: package"


def test_what_changes_during_a_run_is_seen_by_the_next(checkout):
    inner = checkout.package / "used" / "inner.py"
    change = f"open({str(inner)!r}, 'a').write(chr(10))\n"
    with edited(checkout.source("02_plain"), "inner.value", f"{change}inner.value"):
        assert run(checkout).reason == "changed: source"
        assert run(checkout).reason == "changed: package"


def test_parameters_have_executions_of_their_own(checkout):
    first, second = run(checkout), run(checkout, seed=2)
    assert second.reason == "first run"
    assert second.folder != first.folder
    assert run(checkout).reason == run(checkout, seed=2).reason == ""
    keys = [ingredients(checkout, plain(checkout), {"seed": seed}, []) for seed in (1, 2)]
    assert [name for name in keys[0] if keys[0][name] != keys[1][name]] == ["parameters"]
    assert run_name("c", {"a": 1, "b": 2.0}) == run_name("c", {"b": 2.0, "a": 1})
    shared = execute(checkout, plain(checkout), {"seed": 1}, scale="laptop")
    assert (shared.reason, shared.facts["scale"]) == ("", "laptop"), "one run, not its name"


def test_a_half_written_or_foreign_notebook_is_not_trusted(checkout):
    stored = run(checkout).folder / "notebook.ipynb"
    for damage in ["", stored.read_text()[:200], nbformat.writes(nbformat.v4.new_notebook())]:
        stored.write_text(damage)
        assert run(checkout).reason == "first run"


def test_a_new_or_renamed_module_changes_the_package(checkout):
    before = folder_files(checkout.package)
    module = checkout.package / "new.py"
    module.write_text("")
    added = folder_files(checkout.package)
    renamed = module.rename(module.with_name("other.py"))
    assert before != added != folder_files(checkout.package) != before
    renamed.unlink()
    assert folder_files(checkout.package) == before


def test_helpers_of_the_chapters_count_with_the_package(checkout):
    helper = checkout.package.parent / "book" / "chapters" / "helper.py"
    helper.parent.mkdir(parents=True)
    helper.write_text("value = 1\n")
    before = package_files(checkout)
    assert "chapters/helper.py" not in imported_files(before, ["labelaudit"])
    first = imported_files(before, ["labelaudit", "book.chapters", "book.chapters.helper"])
    helper.write_text("value = 2\n")
    second = imported_files(package_files(checkout), ["book.chapters.helper"])
    assert first["chapters/helper.py"] != second["chapters/helper.py"]


def test_a_readers_own_file_is_fingerprinted(checkout, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a\n")
    chapter = Chapter(id="14", title="t", data=(), seconds={}, parameters={"table": TABLE})
    [before] = data_read(checkout, chapter, {"table": str(table)})
    table.write_text("b\n")
    [after] = data_read(checkout, chapter, {"table": str(table)})
    assert before["fingerprint"] != after["fingerprint"]
    # The page must not call a reader's own records simulated.
    assert before["simulated"] is after["simulated"] is False
    assert data_read(checkout, chapter, {"table": ""}) == []


def test_a_declared_file_that_is_absent_is_refused(checkout):
    chapter = Chapter(
        id="12", title="t", data=("results/published.csv.gz",), seconds={}, parameters={}
    )
    with pytest.raises(ContractError, match="there is no file"):
        data_read(checkout, chapter, {})


def test_a_data_set_counts_by_its_fingerprint(checkout, monkeypatch):

    class Standin:
        fingerprint, simulated = "s1", True

    class Real:
        fingerprint, simulated = "r1", False

    held = {"higgs": Standin}
    monkeypatch.setattr("labelaudit.datasets.load_or_standin", held.__getitem__)
    chapter = Chapter(id="02_plain", title="t", data=("higgs",), seconds={}, parameters={})

    def key():
        return ingredients(checkout, chapter, {}, data_read(checkout, chapter, {}))

    before = key()
    held["higgs"] = Real
    after = key()
    assert [name for name in before if before[name] != after[name]] == ["data"]
    assert json.dumps(data_read(checkout, chapter, {})) == (
        '[{"name": "higgs", "fingerprint": "r1", "simulated": false}]'
    )
