"""The runs that readers made: names, titles, the list, the comparison before the book is built."""

import json
import math
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from book_fixture import make_checkout, text_for_pages
from bs4 import BeautifulSoup
from conftest import ROOT

from book import cli
from book.tools import headlines, runs
from book.tools.chapters import load_chapters
from book.tools.checkout import Checkout
from book.tools.commands import Bars
from book.tools.page import write_page
from book.tools.panels import comparison
from book.tools.parameters import SCALES
from book.tools.references import references
from book.tools.runner import Progress, execute


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The small book, not built, with the published numbers of its first chapter."""
    made = Checkout(make_checkout(tmp_path_factory.mktemp("runs")))
    number = {"name": "mean", "meaning": "share of heads", "value": "0.5", "setting": "fair"}
    book = {"scale": "laptop", "parameters": {"bias": 0.5}, "headlines": [number]}
    made.headlines.parent.mkdir()
    made.headlines.write_text(json.dumps({"01_coin": book}))
    return made


@pytest.fixture(scope="module")
def coin(checkout):
    return load_chapters(checkout.chapters_file)["01_coin"]


@pytest.fixture(scope="module")
def page(checkout, coin):
    values = coin.resolve("smoke", {"bias": 0.25})
    return write_page(checkout, execute(checkout, coin, values, scale="smoke"), text_for_pages)


@pytest.mark.parametrize(
    ("scale", "changed", "name"),
    [
        ("laptop", {}, "01_coin-laptop-"),
        ("smoke", {}, "01_coin-smoke-"),
        ("smoke", {"bias": 0.25}, "01_coin-smoke-bias=0.25-"),
        ("laptop", {"bag_sizes": [4, 16]}, "01_coin-laptop-bag_sizes=4,16-"),
        ("laptop", {"bag_sizes": list(range(1, 40))}, "01_coin-laptop-bag_sizes=1,2,3,"),
    ],
)
def test_a_folder_says_what_differs(coin, scale, changed, name):
    values = coin.resolve(scale, changed)
    folder = runs.folder_name(coin, values)
    assert folder.startswith(name) and len(folder) < 110
    assert re.fullmatch(r"[\w.,=-]+-[0-9a-f]{10}", folder)
    assert folder != runs.folder_name(coin, values | {"seed": 7})


def test_a_readers_own_file_is_named_without_its_folders():
    chapter = load_chapters(ROOT / "notebooks" / "chapters.yml")["14_audit"]
    values = chapter.values("smoke") | {"table": "/data/secret/mine.csv"}
    assert runs.differences(chapter, values) == ("smoke", {"table": "mine.csv"})
    assert "secret" not in runs.folder_name(chapter, values)


def test_a_finished_run_has_a_record_its_figures_and_a_place_in_the_list(checkout, page):
    [run] = runs.list_runs(checkout, "01_coin")
    assert run["run"] == page.parent.name
    assert run["changed"] == {"bias": "0.25"} and run["files"] == ["tosses.csv"]
    [figure] = run["figures"]
    assert figure["name"] == "fig-coin" and figure["alt"].startswith("A line that settles")
    assert (page.parent / "figures" / figure["file"]).read_text().startswith("<?xml")
    index = (checkout.build / "runs" / "index.html").read_text()
    assert f'href="{run["run"]}/01_coin.html"' in index and "smoke scale, bias 0.25" in index
    assert runs.list_runs(checkout, "02_plain") == []


def test_the_title_says_what_differs(checkout, coin):
    def titled(source, output, **settings):
        html = text_for_pages(source, output, **settings)
        head = "<title>\n    1. A coin &#8212; A small book\n  </title>"
        (html / "notebooks" / "01_coin.html").write_text(f"<head>{head}</head>")
        return html

    values = coin.resolve("smoke", {"bias": 0.75, "law": "beta-2-30"})
    made = write_page(checkout, execute(checkout, coin, values, scale="smoke"), titled)
    title = "<title>1. A coin: smoke scale, bias 0.75, law beta-2-30 &#8212; A small book"
    assert title in made.read_text()
    runs.delete_run(checkout, made.parent.name)


def test_before_the_book_is_built_a_run_is_compared_with_the_published_one(page):
    text = page.read_text()
    assert "the published book&#x27;s" in text
    assert re.search(r"share of heads \| 0\.\d+ \| 0\.5", text)


def test_a_deleted_run_is_gone_with_its_execution(checkout, coin):
    values = coin.resolve("smoke", {"seed": 12})
    execution = execute(checkout, coin, values, scale="smoke")
    run = write_page(checkout, execution, text_for_pages).parent.name
    runs.delete_run(checkout, run)
    assert not checkout.page(run).exists() and not execution.folder.exists()
    assert run not in (checkout.build / "runs" / "index.html").read_text()
    runs.delete_run(checkout, run)  # a second time does no harm


def test_a_folder_without_a_record_is_no_run(checkout, page):
    stray = checkout.build / "runs" / "01_coin-half"
    stray.mkdir()
    (stray / "run.json").write_text("{")
    assert [run["run"] for run in runs.list_runs(checkout)] == [page.parent.name]


def test_both_sides_are_named_where_they_are_about_different_things():
    def made(setting, value):
        number = {"name": "a", "meaning": "revealed", "value": value, "setting": setting}
        return {"parameters": {"k": value}, "headlines": [number], "versions": []}

    text = comparison(made("KDD12", "0.69"), made("Beta(2, 30)", "0.5967"))
    assert "| revealed | 0.69 (KDD12) | 0.5967 (Beta(2, 30)) |" in text
    newer = made("KDD12", "0.69")
    newer["parameters"]["added"] = 1
    assert "added" not in comparison(newer, made("KDD12", "0.5")), "the book has no such value"
    same = comparison(made("KDD12", "0.69"), made("KDD12", "0.5"))
    assert "| revealed | 0.69 | 0.5 |" in same


def test_open_opens_the_page(checkout, monkeypatch):
    opened = []
    monkeypatch.chdir(checkout.root)
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("book.tools.page.jupyter_book", text_for_pages)
    command = ["run", "01_coin", "--scale", "smoke", "-p", "bias", "0.25"]
    assert cli.main(command) == 0 and opened == []
    assert cli.main([*command, "--open"]) == 0
    assert Path(unquote(opened[0]).removeprefix("file://")).is_file()


def test_the_terminal_shows_the_cell_and_the_time_left(coin, capsys):
    bars = Bars()
    bars(Progress(chapter=coin, cell=1, cells=2, heading="Tosses", seconds_left=3.4))
    assert "01_coin" in (shown := capsys.readouterr().err)
    assert "cell 1 of 2, about 3 s left, Tosses" in shown
    bars(Progress(chapter=coin, cell=2, cells=2, heading="Summary", seconds_left=0.2))
    assert "cell 2 of 2, about 0 s left, Summary" in capsys.readouterr().err
    assert bars.bars == {}, "the bar of the last cell is removed"


def test_the_shipped_numbers_fit_the_chapters():
    chapters = load_chapters(ROOT / "notebooks" / "chapters.yml")
    table = runs.read_headlines(Checkout(ROOT))
    assert table and set(table) <= set(chapters)
    for entry in table.values():
        assert entry["scale"] == "laptop" and set(entry) == {"scale", "parameters", "headlines"}
        for number in entry["headlines"]:
            assert {"name", "meaning", "value"} <= set(number)
            assert not math.isnan(float(number["value"]))


def test_numbers_are_taken_from_a_run_of_the_text_as_it_is(checkout, coin):
    assert headlines.executed(checkout, coin) is None
    execute(checkout, coin, coin.values("laptop"), scale="laptop")
    entry = headlines.executed(checkout, coin)
    assert entry["parameters"] == coin.values("laptop") and len(entry["headlines"]) == 1
    source = checkout.source("01_coin")
    source.write_text(source.read_text() + "\nOne more sentence.\n")
    assert headlines.executed(checkout, coin) is None


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("02_plain", "Plain"),
        ("large-numbers", "Theorem 1.1"),
        ("sum", "Definition 2.1"),
        ("fig-coin", "Fig. 1.1"),
        ("nowhere", None),
    ],
)
def test_references_have_names_before_the_book_is_built(checkout, name, title):
    assert references(checkout).get(name) == title


def test_references_out_of_the_page_are_text_before_the_book_is_built(checkout):
    plain = load_chapters(checkout.chapters_file)["02_plain"]
    made = write_page(checkout, execute(checkout, plain, {}, scale="smoke"))
    article = BeautifulSoup(made.read_text(), "html.parser").article
    assert "By Theorem 1.1, all is well." in " ".join(article.get_text().split())
    assert not article.find_all("a", class_="reference")
    assert "Definition 2.1" in article.get_text(), "the page has its chapter's number"
    runs.delete_run(checkout, made.parent.name)


def test_every_scale_is_nearest_to_itself():
    for chapter in load_chapters(ROOT / "notebooks" / "chapters.yml").values():
        for scale in SCALES:
            assert runs.differences(chapter, chapter.values(scale))[1] == {}


def test_the_title_of_a_reference_leaves_out_the_badge_of_a_verdict(checkout):
    source = "(sec-a)=\n## A rise of $k$ {verdict}`T3.5`\n"
    checkout.source("03_more").write_text(source)
    assert references(checkout)["sec-a"] == "A rise of k"
