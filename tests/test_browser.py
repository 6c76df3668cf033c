"""The pages in a browser, from the disk, with the network cut."""

import re

import pytest

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
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


@pytest.fixture
def open_page(browser, site):
    """Open a page of the site offline; afterwards, nothing may have asked for the network."""
    contexts, asked = [], []

    def visit(name, viewport=DESKTOP, scheme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / name).as_uri(), wait_until="load")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not [url for url in asked if not re.match(r"(?:file|data|blob):", url)]


def names(site, pattern="**/*.html"):
    """Pages of the site, less its front address, which only leads on to the landing page."""
    found = (path.relative_to(site).as_posix() for path in sorted(site.glob(pattern)))
    kept = [name for name in found if name != "index.html" and not name.startswith("_static/")]
    assert len(kept) > 10
    return kept


def settle_maths(page):
    """Wait until MathJax has set every formula, and give how many there are."""
    formulas = page.locator("span.math, div.math").count()
    if formulas:
        page.wait_for_function("() => Boolean(window.MathJax?.startup?.promise)")
        page.evaluate("() => MathJax.startup.promise.then(() => true)")
    return formulas


def assert_shown(page):
    """Maths is set without an error and every picture has pixels."""
    if formulas := settle_maths(page):
        assert page.locator("mjx-container svg").count() >= formulas
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    pictures = "[...document.querySelectorAll('article img')]"
    assert page.evaluate(f"{pictures}.every(image => image.complete && image.naturalWidth > 0)")


def luminance(page, selector, property_name):
    """Relative luminance (WCAG) of a colour as the browser computes it."""
    style = page.locator(selector).first.evaluate(
        "(element, name) => getComputedStyle(element)[name]", property_name
    )
    channels = [float(part) / 255 for part in re.findall(r"[\d.]+", style)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_landing_page(open_page):
    page = open_page("index.html")
    page.wait_for_url(re.compile(r"book/index\.html$"))
    assert page.locator("h1").first.inner_text().strip("# \n") == "Auditing label privacy"
    assert_shown(page)
    for door in ("Read", "Re-run", "Teach"):
        card = page.locator(".sd-card", has_text=door).first
        assert card.locator("a").count() == 1
    page.locator(".sd-card", has_text="Re-run").first.click()
    page.wait_for_url(re.compile(r"rerun\.html$"))


def test_chapters_show_maths_and_figures(open_page, site):
    for name in names(site, "notebooks/*.html"):
        page = open_page(name)
        assert_shown(page)
        assert page.locator("article h1").count() == 1, name


def test_search_finds_pages(open_page):
    page = open_page("search.html")
    page.goto(page.url + "?q=posterior")
    # Results come in one by one.
    page.wait_for_selector("#search-results ul.search li a:text-is('Notation')")
    found = page.locator("#search-results ul.search li a").all_inner_texts()
    assert "1. A bag, a prior, a release" in found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(open_page, scheme):
    page = open_page("book/read.html", scheme=scheme)
    ground = luminance(page, "body", "backgroundColor")
    assert ground < 0.1 if scheme == "dark" else ground > 0.9
    for selector in (
        "article p",
        ".verdict-holds",
        ".verdict-false",
        ".verdict-misprint",
        ".verdict-gap",
        ".verdict-unchecked",
    ):
        text = luminance(page, selector, "color")
        contrast = (max(text, ground) + 0.05) / (min(text, ground) + 0.05)
        assert contrast >= 4.5, f"{selector} has contrast {contrast:.1f} in the {scheme} theme"


def test_button_switches_the_theme(open_page):
    page = open_page("book/index.html")
    button = page.locator("button.theme-switch-button:visible").first
    seen = set()
    for _ in range(3):
        button.click()
        seen.add(page.locator("html").get_attribute("data-theme"))
    assert seen == {"light", "dark"}


def test_ledger_finds_a_letter_by_its_name(open_page):
    page = open_page("notebooks/ledger.html")
    box = page.get_by_label("Words to look for")
    rows = page.locator("tr[data-verdict]:visible")
    box.fill("epsilon-label-DP")
    assert 0 < rows.count() < 20
    assert all("ε-label-DP" in text for text in rows.all_inner_texts())
    # Names that stay names: a statement's id, a law.
    box.fill("S2-alpha")
    assert rows.count() == 1
    box.fill("Beta(2, 30)")
    assert rows.count() > 0
    box.fill("no such words anywhere")
    assert rows.count() == 0


def test_paper_is_white_and_has_no_menus(open_page):
    page = open_page("book/read.html", scheme="dark")
    assert page.locator(".bd-sidebar-primary").is_visible()
    page.emulate_media(media="print")
    assert luminance(page, "body", "backgroundColor") == 1
    assert luminance(page, "article p", "color") < 0.05
    assert not page.locator(".bd-sidebar-primary").is_visible()


def test_phone_never_scrolls_sideways(open_page, site):
    for name in names(site):
        page = open_page(name, viewport=PHONE)
        settle_maths(page)
        page.wait_for_load_state("load")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], f"{name} is {width} pixels wide"
        assert page.evaluate(STRANDED) == [], name
        page.context.close()


def test_prose_pages_show(open_page, site):
    for name in names(site, "book/*.html"):
        assert_shown(open_page(name))
