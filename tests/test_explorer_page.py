"""The explorer as a page of the book: keys, touch, address, theme, phone, speed."""

import numpy as np
import pytest

import labelaudit as la
from labelaudit import plots

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

LOOKS = {
    "rr": la.RandomizedResponse,
    "llp": la.LabelProportions,
    "geom": la.GeometricProportions,
    "lap": la.LaplaceProportions,
}


@pytest.fixture
def open_explorer(browser, site):
    """Open the built page from the disk, offline; it may ask for no network and raise no error."""
    contexts, asked, errors = [], [], []

    def visit(query="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "book" / "explorer.html").as_uri() + query)
        page.wait_for_function("() => document.querySelector('.explorer-summary').textContent")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]


def tile(page, name):
    return page.locator(f"[data-tile={name}] dd").first.inner_text()


def test_page_shows_the_package_s_numbers(open_explorer):
    page = open_explorer("?mechanism=geom&law=uniform&k=16&epsilon=0.7&seed=11")
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
    page = open_explorer("?mechanism=geom&law=uniform&k=8&epsilon=1")
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


def test_a_law_is_drawn_by_keys_and_by_touch(open_explorer):
    page = open_explorer("?law=drawn-11111111111111111111", has_touch=True)
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
    assert page.locator("#explorer-law").input_value() == "drawn"


def test_attacks_differ_and_come_back_with_the_address(open_explorer):
    page = open_explorer("?mechanism=lap&law=uniform&epsilon=2", reduced_motion="reduce")
    released = page.locator(".explorer-release")
    first = released.inner_text()
    page.get_by_role("button", name="Attack again").click()
    page.wait_for_function("() => location.search.includes('attack=2')")
    second = released.inner_text()
    assert first != second
    again = open_explorer("?mechanism=lap&law=uniform&epsilon=2&attack=2")
    assert again.locator(".explorer-release").inner_text() == second
    rows = again.locator(".explorer-bag tbody tr").all_inner_texts()
    assert len(rows) == 10
    assert rows == page.locator(".explorer-bag tbody tr").all_inner_texts()


def test_bag_of_ten_is_the_package_s(open_explorer):
    page = open_explorer("?mechanism=llp&law=uniform&seed=3")
    eta = np.array(
        [page.evaluate("[...Explorer.people.population('uniform', 3).eta.slice(0, 10)]")]
    )
    secrets = page.locator(".explorer-bag tbody td:nth-of-type(1)").all_inner_texts()
    after = page.locator(".explorer-bag tbody td:last-child").all_inner_texts()
    expected = la.posterior(eta, la.LabelProportions(10), [np.mean([int(one) for one in secrets])])
    assert [float(one.split("%")[0]) for one in after] == pytest.approx(
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
    for name, kind in LOOKS.items():
        assert light[name] == plots.LOOKS[kind].colour.lower()
        assert (
            page.evaluate("(name) => Explorer.plots.LOOKS[name].label", name)
            == plots.LOOKS[kind].name
        )
    pixels = "() => document.querySelector('[data-plot=scatter]').toDataURL()"
    before = page.evaluate(pixels)
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    page.wait_for_function(f"(before) => ({pixels})() !== before", arg=before)
    dark = page.evaluate(palette)
    assert all(dark[name] != light[name] for name in LOOKS)


def test_everything_is_labelled(open_explorer):
    page = open_explorer()
    for picture in page.locator("#explorer canvas").all():
        assert len(picture.get_attribute("aria-label")) > 60
    for role in ("slider", "radio", "combobox", "button"):
        for control in page.locator("#explorer").get_by_role(role).all():
            assert control.evaluate(
                "(one) => one.ariaLabel || one.labels?.[0]?.textContent || one.textContent"
            ).strip()
    assert page.locator("#explorer [aria-live=polite]").count() == 3


def test_links_set_the_state_without_leaving(open_explorer):
    page = open_explorer()
    page.evaluate("() => { window.stayed = true; }")
    page.locator("a[href*='law=uniform&k=2']").click()
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
        page = open_explorer(f"?mechanism={mechanism}&law=two-0.02-0.5-0.2", **phone)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_scripts_load_on_this_page_alone(site):
    for path in site.rglob("*.html"):
        if "_static" not in path.parts:
            loads = "_static/explorer" in path.read_text(encoding="utf-8")
            assert loads == (path.name == "explorer.html"), path.name


def test_a_setting_seen_before_is_drawn_when_others_push_it_out(open_explorer):
    """The chosen curve stays even if computing a quick one drops it from what is kept."""
    page = open_explorer("?mechanism=lap&law=uniform&k=8&epsilon=1")
    page.evaluate(
        """async () => {
          const audit = Explorer.auditing.audit, epsilon = document.getElementById("explorer-epsilon");
          Explorer.auditing.audit = (eta, mechanism) => {
            const until = performance.now() + (mechanism.continuous ? 60 : 0);
            while (performance.now() < until);
            return audit(eta, mechanism);
          };
          const forth = Array.from({ length: 30 }, (_, j) => 1.5 + 0.05 * j);
          for (const value of [...forth, ...forth.slice(0, 12)]) {
            epsilon.value = value;
            epsilon.dispatchEvent(new Event("input"));
            await new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0)));
          }
        }"""
    )
    page.wait_for_function("() => location.search.includes('epsilon=2.05')")
    assert tile(page, "guarantee") == "ε = 2.05"


def test_speed_is_reported(open_explorer, capsys):
    """Prints what a step of a slider takes at k = 64; a busy machine must not fail the suite."""
    page = open_explorer("?law=uniform&k=64")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def processor_time():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ScriptDuration")

    step = """async ([mechanism, rounds]) => {
      const [k, epsilon] = ["k", "epsilon"].map((id) => document.getElementById(`explorer-${id}`));
      document.querySelector(`input[value=${mechanism}]`).click();
      const times = [];
      for (let j = 0; j < rounds; j++) {
        const moved = mechanism === "llp" ? k : epsilon;
        moved.value = mechanism === "llp" ? 64 - j : 1 + 0.05 * j;
        moved.dispatchEvent(new Event("input"));
        await new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0)));
        times.push(Explorer.lastRender);
      }
      return times;
    }"""
    rounds = 20
    for mechanism in LOOKS:
        before = processor_time()
        times = page.evaluate(step, [mechanism, rounds])
        busy = 1000 * (processor_time() - before) / rounds
        assert len(times) == rounds and min(times) > 0 and busy > 0
        with capsys.disabled():
            print(
                f"\nexplorer, {mechanism}, k = 64, a step: {busy:.0f} ms of processor time, ",
                end="",
            )
            print(f"{min(times):.0f} to {max(times):.0f} ms by the clock", end="")
