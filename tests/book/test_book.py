"""The site: what is staged, what each page carries, and what happens when Sphinx objects."""

import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial

import nbformat
import pytest
from book_fixture import PACKAGE, edited, make_checkout, text_for_pages
from bs4 import BeautifulSoup
from commands import LABELBOOK, ROOT, run_python

import labelaudit.cli
from book import cli
from book.tools.chapters import load_chapters
from book.tools.checkout import Checkout
from book.tools.page import write_page
from book.tools.panels import comparison
from book.tools.runner import execute

CLONES = ["", str(ROOT)]

# One worker builds the small book for all of them.


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The small book, built once at smoke scale."""
    root = make_checkout(tmp_path_factory.mktemp("book"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert cli.main(["book", "--scale", "smoke"]) == 0
    return Checkout(root)


@pytest.fixture(scope="module")
def copied(checkout, tmp_path_factory):
    """A copy of the built book, to change without Sphinx."""
    root = tmp_path_factory.mktemp("copied") / "book"
    shutil.copytree(checkout.root, root, symlinks=True)
    return Checkout(root)


@pytest.fixture
def no_sphinx(monkeypatch):
    """Pages of text instead of Sphinx's."""
    monkeypatch.setattr("book.tools.site.jupyter_book", text_for_pages)
    monkeypatch.setattr("book.tools.page.jupyter_book", text_for_pages)


@pytest.fixture
def build(checkout, monkeypatch, capsys):
    """Build the book again: its status, what it printed, and its error messages."""
    return partial(built_again, checkout, monkeypatch, capsys)


@pytest.fixture
def rebuild(copied, no_sphinx, monkeypatch, capsys):
    """Build the copy again, without Sphinx."""
    return partial(built_again, copied, monkeypatch, capsys)


def built_again(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout.root)
    capsys.readouterr()
    status = cli.main(["book", "--scale", "smoke"])
    return status, *capsys.readouterr()


def test_pages_carry_their_panels(checkout):
    html = (checkout.site / "notebooks" / "01_coin.html").read_text()
    assert "How this page was made" in html
    assert "<p>paper scale</p>" in html and "<p>the paper</p>" not in html
    assert "Run this chapter" in html
    assert "Your run against the book" not in html
    assert "Theorem 1.1" in html
    assert 'alt="A line that settles near the bias as tosses accumulate."' in html


def test_a_log_shows_what_has_begun_and_how_far_it_is(copied, rebuild):
    with edited(copied.source("02_plain"), "1 + 1", "1 + 2"):
        status, out, _ = rebuild()
    assert status == 0
    lines = out.splitlines()
    assert lines.index("02_plain: running") < len(lines) - 1
    assert any(line.startswith("02_plain: ran in ") for line in lines)
    counted = [re.search(r"\[(\d of 2), about a minute left\]", line) for line in lines]
    assert sorted(match[1] for match in counted if match) == ["1 of 2", "2 of 2"]
    assert rebuild()[0] == 0


def test_nothing_changed_means_nothing_is_built(checkout, build):
    page = checkout.site / "notebooks" / "01_coin.html"
    before = page.stat().st_mtime_ns
    started = time.monotonic()
    status, out, _ = build()
    assert status == 0
    assert "01_coin: up to date" in out
    assert "the site is up to date" in out
    assert page.stat().st_mtime_ns == before
    assert time.monotonic() - started < 15


def test_prose_and_configuration_rebuild_the_site_without_running_a_chapter(copied, rebuild):
    page = copied.root / "book" / "index.md"
    page.write_text(page.read_text() + "\nOne more sentence.\n")
    status, out, _ = rebuild()
    assert status == 0
    assert "01_coin: up to date" in out
    assert "the site built" in out
    assert "One more sentence." in (copied.site / "book" / "index.html").read_text()


def test_a_warning_is_shown_and_the_last_good_site_stays(checkout, build):
    before = (checkout.site / "book" / "index.html").read_text()
    with edited(checkout.root / "book" / "index.md", "It has", "See {ref}`nowhere`. It has"):
        for _ in range(2):  # a second try must not pass because Sphinx remembers the page
            status, _, err = build()
            assert status == 1
            assert "undefined label: 'nowhere'" in err
            assert (checkout.site / "book" / "index.html").read_text() == before
    assert build()[0] == 0


def test_a_failing_chapter_stops_the_build_and_the_last_good_page_stays(checkout, build):
    before = (checkout.site / "notebooks" / "02_plain.html").read_text()
    with edited(checkout.source("02_plain"), "1 + 1", "1 / 0"):
        status, _, err = build()
    assert status == 1
    assert "02_plain failed in cell [1]: ZeroDivisionError: division by zero" in err
    assert (checkout.site / "notebooks" / "02_plain.html").read_text() == before
    assert build()[0] == 0


def test_a_listed_chapter_must_exist(checkout, build):
    with edited(checkout.root / "_toc.yml", "02_plain", "03_absent"):
        status, _, err = build()
    assert status == 2
    assert err == "labelbook: _toc.yml lists '03_absent', which chapters.yml does not declare\n"


def test_the_download_is_the_executed_notebook_for_plain_jupyter(checkout):
    notebook = nbformat.read(checkout.site / "_sources/notebooks/01_coin.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert any(cell.get("outputs") for cell in notebook.cells)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "{" not in text.replace(r"\frac{1}{k}", "")
    mean = float(notebook.metadata["labelaudit"]["headlines"][0]["value"])
    assert f"The share of heads is {mean:.3f} under the law uniform." in text
    assert f"*Fig. 1.1*: Running share of heads, simulated. The final share is {mean:.2f}." in text
    assert "> **Theorem 1.1: Large numbers**" in text


def test_where_downloads_install_from_is_the_setting_of_now(copied, rebuild):
    download = copied.site / "_sources/notebooks/02_plain.ipynb"

    def installs():
        cells = nbformat.read(download, as_version=4).cells
        return next(cell.source for cell in cells if cell.cell_type == "code")

    assert "%pip install --quiet 'labelaudit[notebook]'" in installs()
    with edited(copied.root / "pyproject.toml", '"labelaudit"', '"https://a.example/b.whl"'):
        status, out, _ = rebuild()
        assert status == 0 and "02_plain: up to date" in out
        assert "'labelaudit[notebook] @ https://a.example/b.whl'" in installs()
    assert rebuild()[0] == 0


def test_a_run_with_other_parameters_is_set_beside_the_book(checkout):
    coin = load_chapters(checkout.chapters_file)["01_coin"]
    parameters = coin.resolve("smoke", {"bag_sizes": [8]})
    book_before = checkout.staged("01_coin").read_text()
    page = write_page(checkout, execute(checkout, coin, parameters, scale="smoke"))
    html = page.read_text()
    assert "Your run against the book" in html
    assert "share of heads" in html
    assert (page.parent / "01_coin" / "tosses.csv").is_file()
    assert checkout.staged("01_coin").read_text() == book_before


def test_references_out_of_the_page_lead_into_the_book(checkout):
    plain = load_chapters(checkout.chapters_file)["02_plain"]
    page = write_page(checkout, execute(checkout, plain, {}, scale="smoke"))
    article = BeautifulSoup(page.read_text(), "html.parser").article
    leads = {link.get_text(): link["href"] for link in article.find_all("a", class_="reference")}
    assert leads["Theorem 1.1"] == "../../html/notebooks/01_coin.html#large-numbers"
    assert leads["all"] == "../../html/book/index.html"
    assert "Definition 2.1" in article.get_text(), "the page keeps its chapter's number"


def test_a_page_that_links_into_the_book_is_made_again_with_it(copied, no_sphinx):
    plain = load_chapters(copied.chapters_file)["02_plain"]
    execution = execute(copied, plain, {}, scale="smoke")
    made = write_page(copied, execution).stat().st_mtime_ns
    assert write_page(copied, execution).stat().st_mtime_ns == made
    with edited(copied.site_stamp, copied.site_stamp.read_text(), "another site"):
        assert write_page(copied, execution).stat().st_mtime_ns > made


def test_the_comparison_shows_both_numbers_and_what_is_missing():
    number = {"name": "mean", "meaning": "share of heads", "value": "0.123456"}
    new = {"name": "new", "meaning": "a new number", "value": "inf"}
    yours = {"parameters": {"k": 2}, "headlines": [number, new]}
    book = {"parameters": {"k": 8}, "headlines": [number | {"value": "0.5"}]}
    text = comparison(yours, book)
    assert "| `k` | `2` | `8` |" in text
    assert "| share of heads | 0.1235 | 0.5 |" in text
    assert "| a new number | infinite | not computed |" in text


def test_help_is_quick_and_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {command} " in shown for command in cli.COMMANDS)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("rnu", "there is no command 'rnu'; did you mean run?"),
        ("", "required: COMMAND"),
        ("run 99_x", "there is no chapter '99_x'; `labelbook chapters` lists them"),
        ("run 01_setting -p bagsize 3", "no parameter 'bagsize'; did you mean bag_size?"),
        ("run 01_setting -p bag_size", "-p/--parameter: expected 2 arguments"),
        ("run 01_setting --bogus", "there is no option --bogus"),
        ("teach 2", "required: --out"),
        ("book extra", "unrecognized arguments: extra (labelbook book --help tells more)"),
        ("ledger --quik", "there is no option --quik; did you mean --quick?"),
    ],
)
def test_a_misspelt_command_is_refused_in_one_line(typed, said, capsys):
    try:
        status = cli.main(typed.split())
    except SystemExit as end:
        status = end.code
    shown, error = capsys.readouterr()
    assert (status, shown) == (2, "")
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "typed", "read"),
    [
        ("positive", "yes", "yes"),
        ("positive", "2", "2"),
        ("positive", "''", ""),
        ("label", "2026-99-99", "2026-99-99"),
        ("features", "[age, 2024, no]", ["age", "2024", "no"]),
        ("epsilons", "[1, 2e-1]", [1.0, 0.2]),
    ],
)
def test_text_is_taken_as_typed(name, typed, read):
    chapter = load_chapters(ROOT / "notebooks" / "chapters.yml")["14_audit"]
    overrides = chapter.read([(name, typed)])
    assert chapter.resolve("smoke", overrides)[name] == read


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "labelaudit", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("labelaudit ")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nothing_is_said_where_nobody_reads_on(unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": writer, "stderr": subprocess.PIPE}
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*LABELBOOK, "chapters"], **streams, env=environment, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("name", ["labelaudit", "labelbook"])
def test_help_imports_nothing_of_the_book(name):
    code = (
        "import contextlib, io, sys, book.cli, labelaudit.cli\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    (book.cli if sys.argv[1] == 'labelbook' else labelaudit.cli).main(['--help'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " ('yaml', 'nbformat', 'papermill', 'jupytext', 'sphinx', 'tqdm', 'numba', 'scipy',"
        " 'sympy', 'pandas', 'matplotlib', 'torch')])"
    )
    done = run_python(code, name)
    assert done.stdout.strip() == "[]", done.stderr


def from_a_wheel(folder, function, *arguments):
    """Call a command with a package that lies alone, as a wheel installs it."""
    shutil.copytree(PACKAGE, folder / "labelaudit", ignore=shutil.ignore_patterns("__pycache__"))
    call = (
        f"import sys; sys.path = [{str(folder)!r}, *(p for p in sys.path if p not in {CLONES!r})];"
        f" from labelaudit.cli import {function}; sys.exit({function}())"
    )
    return run_python(call, *arguments, cwd=folder)


def test_a_wheel_has_the_audit(tmp_path):
    done = from_a_wheel(tmp_path, "main", "--help")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^    (\w+) ", done.stdout, re.MULTILINE) == ["audit"]


@pytest.mark.parametrize("beside", ["", "# a reader's own file"])
def test_a_wheel_says_that_the_book_needs_a_clone(beside, tmp_path):
    if beside:
        (tmp_path / "book.py").write_text(beside)
    done = from_a_wheel(tmp_path, "labelbook", "run", "01_setting")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("labelbook: the book is not part of the installed package")
    assert "clone the repository" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_labelaudit_says_where_a_command_of_the_book_is(command, capsys):
    assert labelaudit.cli.main([command]) == 2
    shown, error = capsys.readouterr()
    assert shown == "" and f"`labelbook {command}`" in error and error.count("\n") == 1


def test_without_a_checkout_the_refusal_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("book.chapters.__file__", str(tmp_path / "a" / "b" / "c.py"))
    assert cli.main(["book"]) == 2
    assert "clone the repository and run this command inside it" in capsys.readouterr().err
