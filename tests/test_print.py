"""The book on paper: nothing cut off, nothing to click, solutions open, and never dark."""

import pytest

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

# An A4 page less the margins of the style sheet, in the pixels of CSS.
WIDTH = 665
LOOK = """(width) => {
  const article = document.querySelector(".bd-article");
  const seen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const named = (one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`;
  const within = [...article.querySelectorAll(":not(svg *, mjx-assistive-mml *)")].filter(seen);
  const dark = (one) => {
    const [red, green, blue, alpha = 1] = getComputedStyle(one).backgroundColor.match(/[\\d.]+/g);
    return alpha > 0 && Math.max(red, green, blue) < 128;
  };
  const plain = within.filter((one) => !one.closest("#explorer, .swatch"));
  return {
    wide: within.filter((one) => one.getBoundingClientRect().right > width + 1).map(named),
    clickable: [...document.querySelectorAll("button, input, select, summary, nav, .copybtn")]
      .filter(seen).map(named),
    dark: plain.filter(dark).map(named),
    folded: [...article.querySelectorAll(".solution, .how-this-page-was-made")]
      .filter((one) => !seen(one.lastElementChild) || one.offsetHeight < 40).map(named),
    code: [...article.querySelectorAll("details.hide")].filter(seen).map(named),
    told: getComputedStyle(article, "::after").content.includes("solutions are open"),
    folds: article.querySelector("details.hide") !== null,
  };
}"""


@pytest.fixture
def paper(browser, site):
    """Lay a page out for the printer, chosen dark by its reader."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 900}, color_scheme="dark", offline=True
    )
    page = context.new_page()
    page.emulate_media(media="print", color_scheme="dark")

    def lay_out(name):
        page.goto((site / name).as_uri())
        page.evaluate("() => window.MathJax?.startup?.promise")
        return page

    yield lay_out
    context.close()


def test_every_page_prints_whole_and_plain(paper, site):
    names = [*site.glob("book/*.html"), *site.glob("notebooks/*.html")]
    assert len(names) > 20
    for path in names:
        found = paper(path.relative_to(site)).evaluate(LOOK, WIDTH)
        told, folds = found.pop("told"), found.pop("folds")
        assert told == folds, path.name
        assert found == {key: [] for key in found}, path.name


def test_the_explorer_prints_what_it_shows_in_light_colours(paper):
    page = paper("book/explorer.html")
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
