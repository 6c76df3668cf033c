"""Every page, in both themes, by the rules of axe-core."""

from importlib.resources import files

import pytest
import yaml
from conftest import ROOT

pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python")
pytestmark = pytest.mark.browser


def pages():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [page["file"] for part in contents["parts"] for page in part["chapters"]]
    return [contents["root"], *listed]


def violations(browser, address, scheme):
    """Serious and critical violations: the rule, how many elements, and the first of them."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(address, wait_until="load")
    if page.locator("span.math, div.math").count():
        page.wait_for_function("() => Boolean(window.MathJax?.startup?.promise)")
        page.evaluate("() => MathJax.startup.promise.then(() => true)")
    page.evaluate(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    page.close()
    return [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", pages())
def test_no_serious_violation(browser, site, name, scheme):
    assert violations(browser, (site / f"{name}.html").as_uri(), scheme) == []


def test_a_page_with_a_fault_is_found_out(browser, tmp_path):
    faulty = tmp_path / "faulty.html"
    faulty.write_text("<html lang=en><title>t</title><main><h1>t</h1><img src=x.png></main></html>")
    assert [rule for rule, *_ in violations(browser, faulty.as_uri(), "light")] == ["image-alt"]
