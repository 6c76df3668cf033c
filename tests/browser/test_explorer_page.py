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
    page = open_explorer("?mechanism=geom&priors=uniform&k=16&epsilon=0.7&seed=11")
    eta = page.evaluate("[...Explorer.people.population('uniform', 11).eta]")
    bags = np.reshape(eta, (-1, 16))
    mechanism = la.GeometricProportions(16, 0.7)
    assert tile(page, "additive") == f"{la.additive_advantage(bags, mechanism).mean():.4f}"
    assert tile(page, "quantile") == f"{la.multiplicative_quantile(bags, mechanism, 0.98):.3f}"
    assert tile(page, "infinite") == "0.00%"
    assert tile(page, "guarantee") == "ε = 0.70"
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


def test_two_strokes_within_a_frame_are_both_kept(open_explorer):
    page = open_explorer("?priors=drawn-11111111111111111111")
    page.evaluate(
        """() => {
          const bars = document.querySelector(".explorer-bars");
          bars.focus();
          for (const key of ["ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp"]) {
            bars.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          }
        }"""
    )
    page.wait_for_function("() => location.search.includes('drawn-32111111111111111111')")


def test_nothing_glides_where_motion_is_unwelcome(open_explorer):
    for motion, glides in (("reduce", False), ("no-preference", True)):
        page = open_explorer("?priors=uniform", reduced_motion=motion)
        page.get_by_role("button", name="Attack again").click()
        page.wait_for_selector(".explorer-animated")
        dot = page.locator(".explorer-posterior").first
        assert (
            dot.evaluate("(element) => getComputedStyle(element).transitionDuration") != "0s"
        ) == glides


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


def test_bad_address_leaves_a_note(open_explorer):
    page = open_explorer("?k=900&epsilon=<b>")
    note = page.locator(".explorer-note")
    assert "k = 900 is outside 1 to 64; 64 is shown." in note.inner_text()
    assert "epsilon = <b> is not a number" in note.inner_text()
    assert page.locator("output[for=explorer-k]").inner_text() == "64"
    page.locator("#explorer-k").press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('.explorer-note').hidden")


def test_colours_are_the_figures_and_follow_the_theme(open_explorer):
    page = open_explorer("?mechanism=rr", color_scheme="light")
    palette = "() => Explorer.plots.palette(document.getElementById('explorer'))"
    light = page.evaluate(palette)
    for name, kind in KINDS.items():
        assert light[name] == mechanisms.KINDS[kind].colour.lower()
        assert page.evaluate("(name) => Explorer.plots.KINDS[name].label", name) == kind
    pixels = "() => document.querySelector('[data-plot=scatter]').toDataURL()"
    before = page.evaluate(pixels)
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    page.wait_for_function(f"(before) => ({pixels})() !== before", arg=before)
    dark = page.evaluate(palette)
    assert all(dark[name] != light[name] for name in KINDS)


def test_everything_is_labelled(open_explorer):
    page = open_explorer()
    for picture in page.locator("#explorer canvas").all():
        assert len(picture.get_attribute("aria-label")) > 60
    for role in ("slider", "radio", "combobox", "button"):
        for control in page.locator("#explorer").get_by_role(role).all():
            assert control.evaluate(
                "(node) => node.ariaLabel || node.labels?.[0]?.textContent || node.textContent"
            ).strip()
    # Notes, summary and the bag of ten; one more in each of the other tabs.
    assert page.locator("#explorer [aria-live=polite]").count() == 5


def test_links_set_the_state_without_leaving(open_explorer):
    page = open_explorer()
    page.evaluate("() => { window.stayed = true; }")
    page.locator("a[href*='priors=uniform&k=2']").click()
    page.wait_for_function(
        "() => document.querySelector('output[for=explorer-k]').textContent === '2'"
    )
    assert page.evaluate("window.stayed")
    page.go_back()
    page.wait_for_function(
        "() => document.querySelector('output[for=explorer-k]').textContent === '8'"
    )


def test_phone_shows_all_without_sideways_scroll(open_explorer):
    phone = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
    for mechanism in ("rr", "lap"):
        page = open_explorer(f"?mechanism={mechanism}&priors=two-0.02-0.5-0.2", **phone)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_scripts_load_on_this_page_alone(site):
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    loading = [path for path in pages if "_static/explorer" in path.read_text(encoding="utf-8")]
    assert [path.name for path in loading] == ["explorer.html"] and len(pages) > 30


def test_other_people_keep_the_axis_and_nobody_is_cut_off(open_explorer):
    page = open_explorer("?mechanism=llp&priors=two-0.02-0.5-0.2&k=2")
    page.evaluate(
        """() => {
          const { additive } = Explorer.plots;
          window.seen = [];
          Explorer.plots.additive = (canvas, colours, shown) => {
            seen.push([shown.reach, shown.curves[shown.name].at(-1)[1]]);
            additive(canvas, colours, shown);
          };
        }"""
    )
    for seed in range(2024, 2030):
        page.get_by_role("button", name="Ten other people").click()
        page.wait_for_function(f"() => location.search.includes('seed={seed}')")
    seen = page.evaluate("seen")
    assert len(seen) >= 6
    assert {tuple(pair) for pair in seen} == {(0.5, 1)}


def test_people_beyond_the_axis_are_counted(open_explorer):
    page = open_explorer()
    written = page.evaluate(
        """(points) => {
          const root = document.getElementById("explorer"), { plots } = Explorer, written = [];
          const { fillText } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...position) {
            written.push(text);
            fillText.call(this, text, ...position);
          };
          const shown = { name: "llp", epsilon: Infinity, reach: 0.2, curves: { llp: points } };
          plots.additive(root.querySelector("[data-plot=additive]"), plots.palette(root), shown);
          return written;
        }""",
        [[0, 0], [0.1, 0.5], [0.2, 0.996]],
    )
    assert "0.4% beyond" in written


def test_a_refused_address_hinders_nothing(open_explorer):
    page = open_explorer()
    page.evaluate(
        """() => {
          history.pushState = history.replaceState = () => {
            throw new DOMException("refused", "SecurityError");
          };
        }"""
    )
    page.locator("a[href*='priors=uniform&k=2']").click()
    page.wait_for_function(
        "() => document.querySelector('output[for=explorer-k]').textContent === '2'"
    )


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
    page.go_back()
    page.wait_for_function(
        "() => document.querySelector('output[for=explorer-k]').textContent === '13'"
    )


def test_the_guarantee_names_its_assumption(open_explorer):
    page = open_explorer("?mechanism=geom&priors=uniform&epsilon=1")
    assert "if labels are independent" in page.locator("[data-tile=guarantee]").inner_text()


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


@pytest.mark.parametrize("tab", ["again", "design"])
def test_the_other_tabs_fit_a_phone(open_explorer, tab):
    page = open_explorer(f"?tab={tab}&priors=uniform", viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate("""() => [...document.querySelectorAll('#explorer :is(button, input)')]
      .filter((e) => e.offsetParent && e.type !== 'checkbox' && e.type !== 'radio')
      .filter((e) => e.getBoundingClientRect().height < 24).map((e) => e.id)""")
    assert small == []
