"""A chapter re-runs when, and only when, something it depends on has changed."""

import json

import nbformat
import pytest
from book_fixture import make_checkout

from book.tools import cache_key as key
from book.tools.cache_key import data_read, ingredients, package_digest, run_name
from book.tools.chapters import Chapter, load_chapters
from book.tools.checkout import Checkout
from book.tools.parameters import ContractError, Parameter
from book.tools.runner import execute

SEED = Parameter("seed", "integer", "seed", {"paper": 1}, low=0, high=9)
TABLE = Parameter("table", "path", "a table", {"paper": ""})


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout that also holds a file a chapter reads."""
    root = make_checkout(tmp_path_factory.mktemp("cache"))
    (root / "numbers.csv").write_text("1\n")
    return Checkout(root)


def plain(checkout):
    """The chapter without imports, reading one file and taking one parameter."""
    declared = load_chapters(checkout.chapters_file)["02_plain"]
    parameters = {"seed": SEED}
    return Chapter("02_plain", declared.title, ("numbers.csv",), declared.seconds, parameters)


def run(checkout, **parameters):
    return execute(checkout, plain(checkout), {"seed": 1} | parameters, scale="smoke")


def test_each_ingredient_makes_it_run_again_and_nothing_else_does(checkout):
    root = checkout.root
    assert run(checkout).reason == "first run"
    assert run(checkout).reason == ""
    changes = {
        "source": root / "notebooks" / "02_plain.md",
        "package": root / "labelaudit" / "__init__.py",
        "lock file": root / "requirements.lock",
        "data": root / "numbers.csv",
    }
    for ingredient, path in changes.items():
        original = path.read_text()
        path.write_text(original + "\n")
        assert run(checkout).reason == f"changed: {ingredient}"
        assert run(checkout).reason == "", "and then it is up to date"
    for unrelated in ["README.md", "_config.yml", "book/index.md", "labelaudit/x.pyc"]:
        (root / unrelated).write_text("changed")
        assert run(checkout).reason == ""


def test_parameters_have_executions_of_their_own(checkout):
    first, second = run(checkout), run(checkout, seed=2)
    assert second.reason == "first run"
    assert second.folder != first.folder
    assert run(checkout).reason == run(checkout, seed=2).reason == ""


def test_scales_with_the_same_values_share_one_run_but_not_its_name(checkout):
    run(checkout)
    shared = execute(checkout, plain(checkout), {"seed": 1}, scale="laptop")
    assert shared.reason == ""
    assert shared.facts["scale"] == "laptop"


def test_a_changed_parameter_is_an_ingredient_even_in_the_same_folder(checkout):
    chapter = plain(checkout)
    one, two = (ingredients(checkout, chapter, {"seed": seed})["parameters"] for seed in (1, 2))
    assert one != two


def test_a_half_written_or_foreign_notebook_is_not_trusted(checkout):
    stored = run(checkout).folder / "notebook.ipynb"
    for damage in ["", stored.read_text()[:200], nbformat.writes(nbformat.v4.new_notebook())]:
        stored.write_text(damage)
        assert run(checkout).reason == "first run"


def test_the_order_of_parameters_does_not_matter():
    assert run_name("c", {"a": 1, "b": 2.0}) == run_name("c", {"b": 2.0, "a": 1})


def test_a_new_or_renamed_module_changes_the_package(checkout):
    before = package_digest(checkout)
    module = checkout.root / "labelaudit" / "new.py"
    module.write_text("")
    added = package_digest(checkout)
    renamed = module.rename(module.with_name("other.py"))
    assert len({before, added, package_digest(checkout)}) == 3
    renamed.unlink()
    assert package_digest(checkout) == before


def test_a_readers_own_file_is_fingerprinted(checkout, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a\n")
    chapter = Chapter("14", "t", (), {}, {"table": TABLE})
    [before] = data_read(checkout, chapter, {"table": str(table)})
    table.write_text("b\n")
    [after] = data_read(checkout, chapter, {"table": str(table)})
    assert before["fingerprint"] != after["fingerprint"]
    assert data_read(checkout, chapter, {"table": ""}) == []


def test_a_declared_file_that_is_absent_is_refused(checkout):
    chapter = Chapter("12", "t", ("results/published.csv",), {}, {})
    with pytest.raises(ContractError, match="there is no file"):
        data_read(checkout, chapter, {})


def test_a_data_set_counts_by_its_fingerprint(checkout, monkeypatch):
    """Preparing the real data turns a page made from the stand-in out of date."""

    class Standin:
        fingerprint, simulated = "s1", True

    class Real:
        fingerprint, simulated = "r1", False

    held = {"higgs": Standin}
    module = type("datasets", (), {"load_or_standin": staticmethod(held.__getitem__)})
    monkeypatch.setattr(key.importlib, "import_module", lambda name: module)
    chapter = Chapter("10", "t", ("higgs",), {}, {})
    before = ingredients(checkout, chapter, {})
    held["higgs"] = Real
    after = ingredients(checkout, chapter, {})
    assert [name for name in before if before[name] != after[name]] == ["data"]
    assert json.dumps(data_read(checkout, chapter, {})) == (
        '[{"name": "higgs", "fingerprint": "r1", "simulated": false}]'
    )
