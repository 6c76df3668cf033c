"""The pages in a browser, from the disk, with the network cut.

Each page is opened once. In that visit it is looked at as on a desktop in the light and in the dark
theme, on a phone, and on paper; `axe-core` judges both themes.
"""

import re
from importlib.resources import files

import pytest
import yaml
from conftest import ROOT, without_formulas

pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python")
pytestmark = pytest.mark.browser

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
# An A4 page less the margins of the style sheet, in the pixels of CSS.
PAPER = {"width": 665, "height": 900}
CONTENTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
# Pages that Sphinx adds. They have no article.
ADDED = ["genindex", "search"]
# The report that chapter 14 offers, a page in the folder of downloads.
REPORT = "report"
WRITTEN = [
    CONTENTS["root"],
    *(page["file"] for part in CONTENTS["parts"] for page in part["chapters"]),
]
# Signs that touch a formula but start the next line.
STRANDED = """() => [...document.querySelectorAll("article span.math")].filter(formula => {
  const sign = formula.nextSibling;
  if (sign?.nodeType !== Node.TEXT_NODE || /^\\s/.test(sign.data)) return false;
  const range = document.createRange();
  range.setStart(sign, 0);
  range.setEnd(sign, 1);
  const box = range.getBoundingClientRect();
  return box.width > 0 && box.left < formula.getBoundingClientRect().left;
}).map(formula => formula.nextSibling.data.slice(0, 20))"""
# Mark two texts of each style: colour, size and weight, and all that lies behind the text.
EVERY_STYLE = """() => {
  const behind = new Map([[null, ""]]), marked = new Map();
  const ground = (element) => {
    if (!behind.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const above = ground(element.parentElement);
      const clear = backgroundColor === "rgba(0, 0, 0, 0)" && backgroundImage === "none";
      behind.set(element, clear && opacity === "1"
        ? above : `${above} ${backgroundColor} ${backgroundImage} ${opacity}`);
    }
    return behind.get(element);
  };
  for (const element of document.body.querySelectorAll(":not(svg *)")) {
    element.removeAttribute("data-contrast");
    const texts = [...element.childNodes].some(
      (node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!texts || !element.checkVisibility()) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const style = [color, fontSize, fontWeight, ground(element)].join();
    marked.set(style, (marked.get(style) ?? 0) + 1);
    if (marked.get(style) <= 2) element.setAttribute("data-contrast", "");
  }
}"""
# For axe a formula is a few dozen elements that one program makes, and its time grows faster than
# their number. It sees the first formulas of a page whole. The others keep their size, so that they
# can still be too wide for the page, and a letter in place of what a screen reader reads.
FEWER_FORMULAS = """() => [...document.querySelectorAll("mjx-container")].slice(10)
  .flatMap((formula) => [...formula.children])
  .forEach((part) => part.replaceChildren(...(part.localName === "svg" ? [] : ["x"])))"""
# Each token of code is an element, too. Of each class of tokens two remain in each kind of block,
# which the classes around it tell. The others become text, which is as wide.
FEWER_TOKENS = """() => {
  const kind = (element) => element ? `${kind(element.parentElement)} ${element.className}` : "";
  const remaining = new Map();
  for (const block of document.querySelectorAll(".highlight pre")) {
    const around = kind(block);
    for (const token of block.querySelectorAll("span:not(:has(*))")) {
      const style = `${around} ${token.className}`;
      remaining.set(style, (remaining.get(style) ?? 0) + 1);
      if (remaining.get(style) > 2) token.replaceWith(token.textContent);
    }
    block.normalize();
  }
}"""
# A colour half-way from one theme to the other is nobody's fault.
STILL = """() => {
  if (document.getElementById("still")) return;
  const style = document.createElement("style");
  style.id = "still";
  style.textContent = "*, *::before, *::after { transition: none !important; }";
  document.head.append(style);
}"""
# The theme makes what scrolls reachable by keys 300 milliseconds after a change of the window. A
# timer of the page that is set later, for longer, ends later.
RESIZED = "() => new Promise((done) => setTimeout(done, 500))"
# Of the rules that axe runs unasked, two depend on colours.
AXE = """(coloursOnly) => {
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-contrast]" }] });
  const only = coloursOnly ? { runOnly: ["color-contrast", "link-in-text-block"] } : {};
  return axe.run(document, { ...only, resultTypes: ["violations"] });
}"""
PRINTED = """(width) => {
  const article = document.querySelector(".bd-article");
  const visible = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const named = (element) =>
    `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`;
  const within = [...article.querySelectorAll(":not(svg *, mjx-assistive-mml *)")].filter(visible);
  const dark = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g);
    return alpha > 0 && Math.max(red, green, blue) < 128;
  };
  const plain = within.filter((element) => !element.closest("#explorer, .swatch"));
  const announced = getComputedStyle(article, "::after").content.includes("solutions are open");
  const folds = article.querySelector("details.hide") !== null;
  return {
    "wider than paper": within
      .filter((element) => element.getBoundingClientRect().right > width + 1).map(named),
    "to click on paper": [...document.querySelectorAll(
      "button, input, select, summary, nav, .copybtn")].filter(visible).map(named),
    "dark on paper": plain.filter(dark).map(named),
    "folded on paper": [...article.querySelectorAll(".solution, .how-this-page-was-made")]
      .filter((element) => !visible(element.lastElementChild) || element.offsetHeight < 40)
      .map(named),
    "folded code on paper": [...article.querySelectorAll("details.hide")]
      .filter(visible).map(named),
    "open solutions announced on paper": announced === folds ? [] : [announced],
  };
}"""


@pytest.fixture
def open_page(browser, site):
    """Open a page of the site offline; it may ask for no network and raise no error."""
    contexts, asked, errors = [], [], []

    def visit(name, query="", scheme="light", formulas=True):
        context = browser.new_context(viewport=DESKTOP, color_scheme=scheme, offline=True)
        contexts.append(context)
        if not formulas:
            without_formulas(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / name).as_uri() + query, wait_until="load")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not [url for url in asked if not re.match(r"(?:file|data|blob):", url)]
    assert not errors


def settled(page):
    """Wait until MathJax has set every formula, and return how many formulas there are."""
    formulas = page.locator("span.math, div.math").count()
    if formulas:
        page.wait_for_function("() => Boolean(window.MathJax?.startup?.promise)")
        page.evaluate("() => MathJax.startup.promise.then(() => true)")
    return formulas


def not_shown(page):
    """Formulas not set or set with an error, pictures without pixels, solutions in plain sight."""
    formulas = settled(page)
    pictures = """() => [...document.querySelectorAll('article img')]
      .filter(image => !(image.complete && image.naturalWidth > 0)).map(image => image.src)"""
    return {
        "formulas not set": max(0, formulas - page.locator("mjx-container svg").count()),
        "formulas with an error": page.locator("mjx-merror, [data-mjx-error]").count(),
        "pictures without pixels": page.evaluate(pictures),
        "solutions in plain sight": page.locator("article .solution:not(.toggle-hidden)").count(),
    }


def switch(page, size, **media):
    """Change the window and the media, and wait until the page is laid out in them."""
    page.evaluate(STILL)
    # The size last: the theme measures what scrolls when the window's size has changed.
    page.emulate_media(**media)
    page.set_viewport_size(size)
    page.evaluate(
        """() => new Promise(requestAnimationFrame).then(() => {
          for (const running of document.getAnimations()) running.finish?.();
          return new Promise(requestAnimationFrame).then(() => true);
        })"""
    )


def violations(page, *, colours_only=False):
    """Serious and critical violations: the rule, how many elements, and the first of them.

    The contrast of a text follows from its style, so it is computed for two texts of each style.
    For every text of a long page it would take five times as long as all other rules together.
    """
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    page.evaluate(EVERY_STYLE)
    rules = page.evaluate(AXE, colours_only)["violations"]
    return [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:200])
        for rule in rules
        if rule["impact"] in ("serious", "critical")
    ]


def faults_on_a_phone(page):
    """A page that scrolls sideways, and signs that a line break parts from their formula."""
    width = page.evaluate("document.documentElement.scrollWidth")
    return {
        "wider than a phone": max(0, width - PHONE["width"]),
        "signs apart from their formula": page.evaluate(STRANDED),
    }


def faults(page, *, article=True):
    """All that is wrong with an open page, by the rule that it breaks."""
    broken = not_shown(page) if article else {}
    settled(page)
    switch(page, PHONE, color_scheme="light")
    broken |= faults_on_a_phone(page)
    if article:
        switch(page, PAPER, color_scheme="dark", media="print")
        broken |= page.evaluate(PRINTED, PAPER["width"])
        page.evaluate(FEWER_FORMULAS)
        page.evaluate(FEWER_TOKENS)
        switch(page, DESKTOP, color_scheme="light", media="screen")
        page.evaluate(RESIZED)
        for scheme in ("light", "dark"):
            switch(page, DESKTOP, color_scheme=scheme, media="screen")
            broken[f"violations, {scheme}"] = violations(page, colours_only=scheme == "dark")
        broken["in one theme only"] = page.locator(".only-dark, .only-light").count()
    return {rule: what for rule, what in broken.items() if what}


def address(site, name):
    """The file of a page, below the site."""
    if name != REPORT:
        return f"{name}.html"
    (path,) = site.glob(f"_downloads/*/{REPORT}.html")
    return path.relative_to(site).as_posix()


@pytest.mark.parametrize("name", [*WRITTEN, *ADDED, REPORT])
def test_a_page_in_both_themes_on_a_phone_and_on_paper(open_page, site, name):
    page = open_page(address(site, name))
    assert faults(page, article=name in WRITTEN) == {}
    if name in WRITTEN:
        assert page.locator("html").get_attribute("data-theme") == "dark"
    if name.startswith("notebooks/"):
        assert page.locator("article h1").count() == 1


def test_every_page_is_visited(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    # The front address only leads on to the landing page.
    own = {page for page in pages if not page.startswith("_static/")} - {"index.html"}
    assert own == {address(site, name) for name in [*WRITTEN, *ADDED, REPORT]}


def test_a_page_with_faults_is_seen_through(browser, tmp_path):
    faulty = tmp_path / "faulty.html"
    # The last of eleven formulas is too wide, in a box that only a mouse can scroll.
    formulas = "".join(
        f"<span class=math><mjx-container><svg width={width} /></mjx-container></span>"
        for width in (*(9,) * 10, 900)
    )
    # The same tokens are readable in the first block of code and faint in the second.
    tokens = "<pre>" + "<span class=k>token</span>" * 5 + "</pre>"
    code = f"<div class=highlight>{tokens}</div><div class='faint highlight'>{tokens}</div>"
    faulty.write_text(
        "<html lang=en><title>t</title><style>.faint .k { color: #aaa }</style>"
        "<main><h1>t</h1><article class=bd-article>"
        f"<div style='width: 200px; overflow-x: auto'>{formulas}</div>{code}"
        "<span class=math></span><mjx-merror></mjx-merror><img class=only-dark src=x.png>"
        "<p style='color: #aaa; background: #fff'>faint</p>"
        "<p style='width: 900px; background: black; color: white'>wide</p><button>b</button>"
        "<div class=solution><p hidden>folded</p></div>"
        "<details class=hide><summary>code</summary></details>"
        "<script>window.MathJax = {startup: {promise: Promise.resolve()}}</script></article></main>"
    )
    page = browser.new_page(viewport=DESKTOP)
    page.goto(faulty.as_uri())
    seen = faults(page)
    page.close()
    # A paragraph and two tokens are faint.
    assert [(rule, count) for rule, count, _ in seen["violations, light"]] == [
        *(("color-contrast", 3), ("image-alt", 1), ("scrollable-region-focusable", 1))
    ]
    assert [rule for rule, *_ in seen["violations, dark"]] == ["color-contrast"]
    assert seen["formulas not set"] == seen["formulas with an error"] == 1
    assert set(seen) == {
        *("formulas not set", "formulas with an error", "pictures without pixels"),
        "solutions in plain sight",
        *(
            "violations, light",
            "violations, dark",
            "in one theme only",
            "wider than a phone",
            "wider than paper",
        ),
        *("to click on paper", "dark on paper", "folded on paper", "folded code on paper"),
        "open solutions announced on paper",
    }


def luminance(page, selector, property_name):
    """Relative luminance (WCAG) of a colour as the browser computes it."""
    style = page.locator(selector).first.evaluate(
        "(element, name) => getComputedStyle(element)[name]", property_name
    )
    channels = [float(part) / 255 for part in re.findall(r"[\d.]+", style)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_landing_page(open_page):
    page = open_page("index.html", formulas=False)
    page.wait_for_url(re.compile(r"book/index\.html$"))
    assert page.locator("h1").first.inner_text().strip("# \n") == "Auditing label privacy"
    for door in ("Read", "Re-run", "Teach"):
        card = page.locator(".sd-card", has_text=door).first
        assert card.locator("a").count() == 1
    button = page.locator("button.theme-switch-button:visible").first
    themes = set()
    for _ in range(3):
        button.click()
        themes.add(page.locator("html").get_attribute("data-theme"))
    assert themes == {"light", "dark"}
    page.locator(".sd-card", has_text="Re-run").first.click()
    page.wait_for_url(re.compile(r"rerun\.html$"))


def test_search_finds_pages(open_page):
    page = open_page("search.html", "?q=posterior")
    # Results come in one by one.
    page.wait_for_selector("#search-results ul.search li a:text-is('Notation')")
    listed = page.locator("#search-results ul.search li a").all_inner_texts()
    assert "1. A bag, a prior, a release" in listed


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("Theorem 3.7", "05_multiplicative_advantage.html#thm-multiplicative-printed"),
        ("3.7", "05_multiplicative_advantage.html#thm-multiplicative-printed"),
        ("T3.7", "05_multiplicative_advantage.html#thm-multiplicative-printed"),
        ("definition 3.6", "05_multiplicative_advantage.html#def-multiplicative"),
        ("3.5", "04_randomized_response.html#thm-response-advantage"),
        ("Lemma A.1", "02_additive_advantage.html#lem-additive-bayes"),
        ("Figure 3", "12_privacy_utility.html"),
        ("Theorem 13.2", "13_sharper_bounds.html#thm-"),
        ("13.2", "13_sharper_bounds.html#"),
        ("S2-alpha", "ledger.html#s2-alpha"),
    ],
)
def test_search_leads_from_a_number_to_its_statement(open_page, query, address):
    page = open_page("search.html", f"?q={query}")
    page.wait_for_selector("#search-results ul.search li a")
    results = page.locator("#search-results ul.search li")
    assert address in results.nth(0).locator("a").get_attribute("href")
    if "3.7" in query:
        assert "book/paper.html" in results.nth(1).locator("a").get_attribute("href")


def test_formulas_are_no_tab_stops(open_page):
    page = open_page("notebooks/01_setting.html")
    assert settled(page) > 20
    assert page.locator("mjx-container[tabindex='0']").count() == 0


def test_a_figure_opens_at_its_natural_size_and_goes_back(browser, site):
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    without_formulas(context)
    page = context.new_page()
    page.goto((site / "notebooks" / "07_scatter_plots.html").as_uri(), wait_until="load")
    address = page.url
    link = page.locator("#fig-scatter-main a.image-reference")
    assert link.get_attribute("href").endswith("_images/scatter-main.svg")
    # Before the tap it scrolls by itself, with letters of 9 pixels where matplotlib's have 12.
    shown, natural = link.locator("img").evaluate("i => [i.clientWidth, i.naturalWidth]")
    assert shown >= 0.74 * natural > link.evaluate("element => element.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    link.click()
    view = page.locator("dialog.figure-view")
    assert view.is_visible()
    picture = view.locator("img")
    natural = picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert picture.evaluate("image => image.clientWidth") >= natural > 390
    ground = view.evaluate("element => getComputedStyle(element).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 60, "a dark page has a dark ground"
    for suffix in ("svg", "png"):
        with page.expect_download() as download:
            view.get_by_text(f"Save as {suffix.upper()}").click()
        assert download.value.suggested_filename == f"scatter-main.{suffix}"
    page.go_back()
    assert not view.is_visible()
    assert page.url == address
    link.click()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.figure-view", state="hidden")
    context.close()


def test_proofs_are_folded_on_screen_and_open_on_paper(open_page):
    page = open_page("notebooks/13_sharper_bounds.html", formulas=False)
    proof = page.locator("details.folded-proof").first
    inside = proof.locator("div.proof")
    assert not inside.is_visible()
    proof.locator("summary").click()
    assert inside.is_visible()
    page.emulate_media(media="print")
    assert page.locator("details.folded-proof div.proof").nth(1).is_visible()


def test_text_stands_out_and_paper_is_white_without_menus(open_page):
    page = open_page("book/read.html", formulas=False)
    for scheme in ("light", "dark"):
        switch(page, DESKTOP, color_scheme=scheme)
        ground = luminance(page, "body", "backgroundColor")
        assert ground < 0.1 if scheme == "dark" else ground > 0.9
        for selector in (
            "article p",
            ".verdict-holds",
            ".verdict-false",
            ".verdict-misprint",
            ".verdict-gap",
            ".verdict-loose",
            ".verdict-answered",
            ".verdict-unchecked",
        ):
            text = luminance(page, selector, "color")
            contrast = (max(text, ground) + 0.05) / (min(text, ground) + 0.05)
            assert contrast >= 4.5, f"{selector} has contrast {contrast:.1f} in the {scheme} theme"
    assert page.locator(".bd-sidebar-primary").is_visible()
    switch(page, DESKTOP, color_scheme="dark", media="print")
    assert luminance(page, "body", "backgroundColor") == 1
    assert luminance(page, "article p", "color") < 0.05
    assert not page.locator(".bd-sidebar-primary").is_visible()


def test_ledger_finds_a_letter_by_its_name(open_page):
    page = open_page("notebooks/ledger.html", formulas=False)
    box = page.get_by_label("Words to look for")
    rows = page.locator("tr[data-verdict]:visible")
    box.fill("epsilon-label-DP")
    assert 0 < rows.count() < 20
    # A folded proof belongs to its row.
    assert all("ε-label-DP" in text for text in rows.all_text_contents())
    # Names that stay names: a statement's id, a distribution.
    box.fill("S2-alpha")
    assert rows.count() == 1
    box.fill("")
    page.locator("button[data-grade=certified]").click()
    assert rows.count() == page.locator("tr[data-grade=certified]").count() > 0
    page.locator("button[data-verdict=false]").click()
    assert rows.count() == 0
    page.locator("button[data-grade='']").click()
    assert rows.count() == page.locator("tr[data-verdict=false]").count() > 0
    page.locator("button[data-verdict='']").click()
    box.fill("Beta(2, 30)")
    assert rows.count() > 0
    box.fill("no such words anywhere")
    assert rows.count() == 0


def test_the_explorer_prints_what_it_shows_in_light_colours(open_page):
    page = open_page("book/explorer.html", scheme="dark", formulas=False)
    switch(page, PAPER, media="print", color_scheme="dark")
    page.wait_for_function("() => document.querySelector('.explorer-summary').textContent")
    assert not page.locator(".explorer-controls").is_visible()
    assert page.locator(".explorer-summary").is_visible()
    inks = """() => {
      const { ink, card } = Explorer.plots.palette(document.getElementById("explorer"));
      const dot = getComputedStyle(document.querySelector(".explorer-posterior"));
      return [ink, card, dot.printColorAdjust];
    }"""
    assert page.evaluate(inks) == ["#14181e", "#ffffff", "exact"]
    pixels = "() => document.querySelector('[data-plot=scatter]').toDataURL()"
    on_paper = page.evaluate(pixels)
    page.emulate_media(media="screen", color_scheme="dark")
    page.wait_for_function(f"(before) => ({pixels})() !== before", arg=on_paper)
