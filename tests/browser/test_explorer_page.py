"""The explorer as a page of the book: keys, touch, address, theme, phone, speed."""

import numpy as np
import pytest

import labelaudit as la
from labelaudit import mechanisms

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

KINDS = {"rr": "RR", "llp": "LLP", "geom": "LLP+Geom", "lap": "LLP+Lap"}


def tile(page, name):
    return page.locator(f"[data-tile={name}] dd").first.inner_text()


def test_page_shows_the_package_s_numbers(open_explorer):
    address = "?mechanism=geom&priors=uniform&k=16&epsilon=0.7&seed=11"
    page = open_explorer(address, color_scheme="light")
    eta = page.evaluate("[...Explorer.people.population('uniform', 11).eta]")
    bags = np.reshape(eta, (-1, 16))
    mechanism = la.GeometricProportions(16, 0.7)
    assert tile(page, "additive") == f"{la.additive_advantage(bags, mechanism).mean():.4f}"
    assert tile(page, "quantile") == f"{la.multiplicative_quantile(bags, mechanism, 0.98):.3f}"
    assert tile(page, "infinite") == "0.00%"
    assert tile(page, "guarantee") == "ε = 0.70"
    palette = page.evaluate("Explorer.plots.palette(document.getElementById('explorer'))")
    for name, kind in KINDS.items():
        assert palette[name] == mechanisms.KINDS[kind].colour.lower()
    page.get_by_label("LLP", exact=True).check()
    page.wait_for_function(
        "() => document.querySelector('[data-tile=guarantee] dd').textContent === 'none'"
    )
    revealed = 1 - la.multiplicative_cdf(bags, la.LabelProportions(16), 1e300)
    assert tile(page, "infinite") == f"{revealed:.2%}"


def test_keys_move_sliders_and_the_address_follows(open_explorer):
    page = open_explorer("?mechanism=geom&priors=uniform&k=8&epsilon=1")
    before = tile(page, "additive")
    page.locator("#explorer-k").press("ArrowRight")
    page.locator("#explorer-epsilon").press("ArrowRight")
    page.wait_for_function(
        "() => location.search.includes('k=9') && /epsilon=1.05/.test(location.search)"
    )
    assert tile(page, "additive") != before
    shown = {name: tile(page, name) for name in ("additive", "quantile", "infinite", "guarantee")}
    again = open_explorer(page.evaluate("location.search"))
    assert {name: tile(again, name) for name in shown} == shown
    assert "LLP+Geom, bags of 9, epsilon 1.05" in again.locator(".explorer-summary").inner_text()


def test_a_distribution_is_drawn_by_keys_and_by_touch(open_explorer):
    page = open_explorer("?priors=drawn-11111111111111111111", has_touch=True)
    bars = page.locator(".explorer-bars")
    bars.focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    page.wait_for_function("() => location.search.includes('drawn-13111111111111111111')")
    assert bars.get_attribute("aria-valuetext") == "bar 2 of 20, priors 0.05 to 0.10, height 3 of 9"
    box = bars.bounding_box()
    page.touchscreen.tap(box["x"] + 0.975 * box["width"], box["y"] + 2)
    page.wait_for_function("() => location.search.includes('drawn-13111111111111111119')")
    assert page.locator("#explorer-priors").input_value() == "drawn"


def test_a_quick_stroke_draws_a_line_and_the_ends_are_keys(open_explorer):
    page = open_explorer("?priors=uniform")
    bars = page.locator(".explorer-bars")
    box = bars.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    # The pointer is seen at both ends alone.
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2)
    page.mouse.up()
    # The address may follow the first end before the second is seen.
    page.wait_for_function("() => /priors=drawn-9.{18}0/.test(location.search)")
    drawn = page.url.split("drawn-")[1][:20]
    assert set(drawn) == set("0123456789")
    assert list(drawn) == sorted(drawn, reverse=True)
    for key, height in (("End", "9"), ("Home", "0")):
        bars.press(key)
        # It is shown, and spoken, with the next frame.
        page.wait_for_function(
            "(end) => document.querySelector('.explorer-bars').ariaValueText.endsWith(end)",
            arg=f"height {height} of 9",
        )
        assert page.evaluate("scrollY") == 0


def test_attacks_differ_and_come_back_with_the_address(open_explorer):
    page = open_explorer("?mechanism=lap&priors=uniform&epsilon=2", reduced_motion="reduce")
    released = page.locator(".explorer-release")
    first = released.inner_text()
    page.get_by_role("button", name="Attack again").click()
    page.wait_for_function("() => location.search.includes('attack=2')")
    second = released.inner_text()
    assert first != second
    again = open_explorer("?mechanism=lap&priors=uniform&epsilon=2&attack=2")
    assert again.locator(".explorer-release").inner_text() == second
    rows = again.locator(".explorer-bag tbody tr").all_inner_texts()
    assert len(rows) == 10
    assert rows == page.locator(".explorer-bag tbody tr").all_inner_texts()


def test_bag_of_ten_is_the_package_s(open_explorer):
    page = open_explorer("?mechanism=llp&priors=uniform&seed=3")
    eta = np.array(
        [page.evaluate("[...Explorer.people.population('uniform', 3).eta.slice(0, 10)]")]
    )
    secrets = page.locator(".explorer-bag tbody td:nth-of-type(1)").all_inner_texts()
    after = page.locator(".explorer-bag tbody td:last-child").all_inner_texts()
    expected = la.posterior(
        eta, la.LabelProportions(10), [np.mean([int(label) for label in secrets])]
    )
    assert [float(cell.split("%")[0]) for cell in after] == pytest.approx(
        100 * expected[0], abs=0.051
    )
    exact = la.additive_advantage(eta, la.LabelProportions(10)).sum()
    alone = np.maximum(eta, 1 - eta).sum()
    assert (
        f"exactly: {alone + exact:.2f} and {alone:.2f}"
        in page.locator(".explorer-tally").inner_text()
    )


def test_scripts_load_on_this_page_alone(site):
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    loading = [path for path in pages if "_static/explorer" in path.read_text(encoding="utf-8")]
    assert [path.name for path in loading] == ["explorer.html"] and len(pages) > 30


def test_the_last_step_before_a_link_is_there_on_the_way_back(open_explorer):
    page = open_explorer("?mechanism=llp&k=8")
    page.evaluate(
        """() => {
          const k = document.getElementById("explorer-k");
          k.value = 13;
          k.dispatchEvent(new Event("input"));
          document.querySelector("a[href*='priors=uniform&k=2']").click();
        }"""
    )
    shown = "(k) => document.querySelector('output[for=explorer-k]').textContent === k"
    page.wait_for_function(shown, arg="2")
    page.go_back()
    page.wait_for_function(shown, arg="13")


def test_tabs_are_chosen_by_keys_and_kept_in_the_address(open_explorer):
    page = open_explorer("?priors=uniform")
    tabs = page.get_by_role("tab")
    assert tabs.all_inner_texts() == ["One release", "Released again", "Design a release"]
    tabs.first.focus()
    for key, name in (("ArrowRight", "again"), ("End", "design"), ("ArrowRight", "one")):
        page.keyboard.press(key)
        page.wait_for_selector(f"#explorer[data-tab={name}]")
        assert page.evaluate("document.activeElement.dataset.tab") == name
        visible = [panel for panel in page.get_by_role("tabpanel").all() if panel.is_visible()]
        assert [panel.get_attribute("id") for panel in visible] == [f"explorer-panel-{name}"]
    page.keyboard.press("End")
    page.wait_for_function("() => location.search.includes('tab=design')")
    # The plots of the first tab have their size again when it returns.
    page.keyboard.press("Home")
    page.wait_for_selector("#explorer[data-tab=one]")
    page.wait_for_function("() => document.querySelector('[data-plot=scatter]').width > 100")


def test_labels_fall_week_by_week_unless_the_bags_are_fixed(open_explorer):
    page = open_explorer("?tab=again&priors=uniform&k=4&releases=0&seed=5")
    boxes = page.locator(".explorer-town li")
    assert boxes.count() == 48 and tile(page, "proven") == "0 of 48"
    for week in range(1, 5):
        page.get_by_role("button", name="One week more").click()
        page.wait_for_function(
            f"() => document.querySelector('output[for$=releases]').textContent === '{week}'"
        )
    assert tile(page, "right") == "48 of 48"
    town = page.evaluate("""() => {
      const population = Explorer.people.population('uniform', 5);
      population.labels = population.eta.map((p, i) => (population.labelUniform[i] < p ? 1 : 0));
      const state = { mechanism: 'llp', k: 4, epsilon: 1, seed: 5, releases: 4, redraw: 1 };
      const { eta, labels, weeks } = Explorer.again.town(state, population);
      const plain = ({ bags, positions }) => ({ bags, positions: [...positions] });
      return { eta: [...eta], labels: [...labels], weeks: weeks.map(plain) };
    }""")
    partitions = np.array([week["bags"] for week in town["weeks"]])
    releases = np.array([week["positions"] for week in town["weeks"]]) / 4
    np.testing.assert_allclose(releases, np.array(town["labels"])[partitions].mean(axis=-1))
    after = la.redrawn_attack(town["eta"], la.LabelProportions(4), partitions, releases)
    assert tile(page, "proven") == f"{after.proven.sum()} of 48"
    assert page.locator(".explorer-proven").count() == after.proven.sum()
    page.get_by_label("Draw new bags every week").uncheck()
    page.wait_for_function("() => location.search.includes('redraw=0')")
    history = page.locator("#explorer-panel-again tbody tr").all_inner_texts()
    assert len(history) == 5
    assert len({tuple(row.split()[1:]) for row in history[1:]}) == 1
    page.get_by_label("LLP+Geom").check()
    page.wait_for_function(
        "() => document.querySelector('[data-tile=total] dd').textContent === 'ε = 4.00'"
    )


def test_zero_advantage_can_reveal_nine_in_ten(open_explorer):
    page = open_explorer("?tab=design&eta=0.05&advantage=0&unlimited=1")
    assert [tile(page, name) for name in ("worth", "gain", "certain")] == [
        "47.4%", "0.0000", "90.0%",
    ]  # fmt: skip
    assert not page.locator(".explorer-controls").is_visible()
    page.get_by_label("No limit on the shift").uncheck()
    # The slider takes keys from the next frame on, when it is no longer disabled.
    page.wait_for_function("() => !document.getElementById('explorer-design-epsilon').disabled")
    page.locator("#explorer-design-epsilon").press("ArrowRight")
    page.wait_for_function("() => location.search.includes('epsilon=1.05')")
    best = la.design.best_response(0.05, 1.05, 0.0)
    assert tile(page, "worth") == f"{best.value:.1%}" and tile(page, "certain") == "0.0%"


@pytest.mark.parametrize("tab", ["one", "again", "design"])
def test_a_tab_fits_a_phone(open_explorer, tab):
    page = open_explorer(f"?tab={tab}&priors=uniform", viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate("""() => [...document.querySelectorAll('#explorer :is(button, input)')]
      .filter((e) => e.offsetParent && e.type !== 'checkbox' && e.type !== 'radio')
      .filter((e) => e.getBoundingClientRect().height < 24).map((e) => e.id)""")
    assert small == []


# A clock that only the audits move, those with Laplace noise more than the others.
CLOCK = """
  let clock = 0, auditing;
  window.renders = [];
  window.audits = [];
  performance.now = () => clock;
  window.Explorer = {
    get auditing() { return auditing; },
    set auditing(made) {
      const { audit } = made;
      made.audit = (eta, mechanism) => {
        if (eta.length > 10) {
          clock += mechanism.continuous ? 4 + 0.5 * mechanism.bagSize : 0.1 * mechanism.bagSize;
          window.audits.push(`${mechanism.name} ${mechanism.bagSize}`);
        }
        return audit(eta, mechanism);
      };
      auditing = made;
    },
    set lastRender(time) { window.renders.push(time); },
    get lastRender() { return window.renders.at(-1); },
  };
"""


@pytest.mark.parametrize("first", [2, 64])
def test_other_mechanisms_wait_if_a_frame_would_be_late(open_explorer, first):
    """At the first call of a mechanism too, and when the bag grows at a stroke."""
    page = open_explorer(f"?mechanism=llp&priors=uniform&k={first}&epsilon=1", script=CLOCK)
    page.wait_for_function("(last) => audits.includes(last)", arg=f"lap {first}")
    page.locator("#explorer-k").press("End")
    page.wait_for_function("() => audits.includes('lap 64')")
    assert max(page.evaluate("renders")) <= 30
