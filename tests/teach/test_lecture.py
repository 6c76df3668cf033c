"""Slides and handouts: what is projected, what only the speaker sees, and what needs no network."""

import io
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup
from smoke import CHECKOUT, DECLARED

from book import cli
from book.tools import handout, slides, tall_figures

LONG = " ".join(["word"] * 60)
SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='72pt' height='36pt'></svg>".replace("'", '"')
PAGE = f"""<html><head><script>window.MathJax = {{"tex": {{}}}}</script>
<script>/* the longest script */ {"MathJax.startup = {promise: Promise.resolve()};" * 3}</script>
</head><body><article><section><h1>2. A title<a class="headerlink" href="#">#</a></h1>
<div class="important your-run admonition"><p class="admonition-title">Your run</p></div>
<p>An introduction.</p>
<section><h2>2.1. First &lt;i&gt;</h2>
<p>Prose before the figure. More prose.</p>
<div class="cell"><div class="cell_input">code = 1</div><div class="cell_output">
<figure id="fig-one"><img src="data:image/svg+xml,{SVG.replace('"', "%22")}">
<figcaption><p><span class="caption-number">Fig. 1 </span><span class="caption-text">What this
figure shows to a whole class. And details. <a class="reference download">The numbers</a>.
</span></p></figcaption></figure></div></div>
<p>Prose after it.</p>
<div class="tip admonition"><p class="admonition-title">Write down a prediction</p>
<p>How many?</p></div>
<div class="proof theorem admonition"><p class="admonition-title">Theorem 1</p>
<section><p>{LONG}</p><ol><li>{LONG}</li><li>{LONG}</li></ol>
<div class="math">\\[x\\]</div></section></div>
<div class="proof admonition"><p>Proof. By induction.</p></div></section>
<section><h2>2.2. Only prose</h2>
<p>Short. A sentence of more than eight words stands here now. Left out.</p></section>
<section><h2>2.3. Exercises</h2>
<div class="exercise admonition"><p class="admonition-title">Exercise 1</p><p>Compute.</p></div>
<div class="solution dropdown admonition"><p class="admonition-title">Solution</p>
<p>Secret.</p></div>
<div class="tip run-this-chapter admonition"><p class="admonition-title">Run this chapter</p></div>
</section></section></article></body></html>"""


def made():
    return slides.make_slides(BeautifulSoup(PAGE, "html.parser"))


def projected(slide):
    return BeautifulSoup(slide.title + slide.html, "html.parser").get_text(" ")


def test_boxes_figures_and_exercises_are_slides_in_order():
    assert [slide.kind for slide in made()] == [
        *("title", "prediction", "figure", "box", "box", "box", "prose", "exercise")
    ]


def drawn(rows):
    """A figure of three columns as matplotlib writes it."""
    figure, _ = plt.subplots(rows, 3, figsize=(9, 2.2 * rows))
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file.getvalue()


def test_a_tall_figure_is_shown_in_bands_of_whole_rows():
    tall, low = drawn(5), drawn(2)
    parts = tall_figures.bands(tall)
    heights = [float(tall_figures.ROOT.search(part)[2]) for part in parts]
    whole = float(tall_figures.ROOT.search(tall)[2])
    tops = sorted({round(float(top), 1) for _, top in tall_figures.PANEL.findall(tall)})
    head = tops[0] - tall_figures.MARGIN
    assert len(tops) == 5 and len(parts) == 3 and max(heights) <= 0.6 * 648 < whole
    assert sum(heights) - len(parts) * head == pytest.approx(whole - head)
    assert tall_figures.bands(low) == [low] and tall_figures.bands(SVG) == [SVG]


def test_prose_proofs_and_solutions_are_for_the_speaker_only():
    shown = " ".join(map(projected, made()))
    noted = " ".join(str(note) for slide in made() for note in slide.notes)
    for text in ("Prose before", "Prose after", "By induction", "Secret", "And details"):
        assert text in noted and text not in shown
    assert "code = 1" not in shown + noted and "Run this" not in shown + noted
    assert "What this" in shown and "Your run" not in shown + noted and "#" not in shown


def test_a_long_box_goes_on_on_the_next_slide():
    boxes = [slide for slide in made() if slide.kind == "box"]
    assert [slide.continued for slide in boxes] == [False, True, True]
    assert {slide.title for slide in boxes} == {"Theorem 1"}
    assert all(sum(map(slides.weight, slide.blocks)) <= slides.FULL for slide in boxes)
    lists = [block for slide in boxes for block in slide.blocks if block.name == "ol"]
    assert [item["start"] for item in lists] == ["1", "2"]


@pytest.fixture
def deck(tmp_path, monkeypatch):
    """A deck of the small page, written for an execution that never ran."""
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    for module in (slides, handout):
        monkeypatch.setattr(module, "write_page", lambda checkout, execution: page)
    facts = {"key": {"source": "1"}, "started": "now", "parameters": {}}
    execution = SimpleNamespace(chapter=SimpleNamespace(id="02_x", title="A title"), facts=facts)
    checkout = SimpleNamespace(build=tmp_path, source=CHECKOUT.source)
    slides.write_deck(checkout, execution)
    return checkout, execution, slides.deck_path(checkout, "02_x")


def test_a_deck_is_one_file_that_asks_for_nothing(deck):
    text = deck[2].read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    addresses = [
        tag.get("src") or tag.get("href") for tag in soup.find_all(["script", "link", "img"])
    ]
    assert all(address.startswith("data:") for address in filter(None, addresses))
    assert not re.search(r"@import|url\(http", str(soup.find_all("style")))
    assert len(soup.select(".slides > section")) == len(made())
    headings = soup.select(".slides p.heading")
    assert "First <i>" in headings[0].text and not soup.select("p.heading i"), "text stays text"


def test_a_deck_of_another_run_is_out_of_date(deck):
    checkout, execution, path = deck
    assert slides.is_current(checkout, execution)
    execution.facts["started"] = "later"
    assert not slides.is_current(checkout, execution)
    path.unlink()
    assert not slides.is_current(checkout, execution)


def test_a_deck_opens_and_fits(deck, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 720}, offline=True)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(deck[2].as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    assert page.evaluate("Reveal.getTotalSlides()") == len(made()) and not errors
    heights = "[...document.querySelectorAll('.slides > section')].map((s) => +s.dataset.height)"
    assert 0 < max(page.evaluate(heights)) <= 690
    assert max(page.evaluate(heights.replace("height", "width"))) <= 1180
    page.evaluate("Reveal.slide(7)")
    assert page.get_by_text("Compute.", exact=True).is_visible()
    assert not page.get_by_text("Secret.", exact=True).is_visible()
    page.close()


def test_without_the_package_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("book.tools.slides.PACKAGE", "no_such_package")
    assert cli.main(["slides", "01"]) == 2
    error = capsys.readouterr().err
    assert "pip install '.[slides]'" in error and error.count("\n") == 1


def test_a_handout_has_sheet_cards_and_figures(deck, tmp_path, chromium):
    checkout, execution, _ = deck
    out = tmp_path / "out"
    assert handout.write_handout(checkout, [execution], out) == ["fig-one"]
    assert (out / "figures" / "fig-one.svg").read_text() == SVG
    sheet = BeautifulSoup((out / "predictions.html").read_text(), "html.parser")
    assert "How many?" in sheet.get_text() and len(sheet.select(".line")) == 3
    cards = BeautifulSoup((out / "cards.html").read_text(), "html.parser").select(".card")
    assert [card.find("strong").get_text() for card in cards][:3] == ["0.05", "0.10", "0.30"]
    png = handout.write_png(out / "figures" / "fig-one.svg", chromium)
    header = png.read_bytes()[:24]
    assert header[1:4] == b"PNG"
    assert int.from_bytes(header[16:20]) == 96 * handout.SHARPNESS


def test_the_cards_are_the_first_chapters_people():
    people = handout.people(CHECKOUT)
    assert len(people) == DECLARED["01_setting"].parameters["bag_size"].high
    assert all(0 < prior < 1 and label in (0, 1) for _, prior, label in people)
    assert len({name for name, _, _ in people}) == len(people)
