"""The live book in a browser: form, progress, cancel, comparison, audit, and a hostile page.

One server and one browser serve the whole file. The worker is a stand-in, because neither kernels
nor Sphinx are looked at here.
"""

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from serve_fixture import UNSEEN_BIAS, Live, make_book

from book.tools.serve import audits, guard
from book.tools.serve.handlers import Sandboxed

pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
from playwright.sync_api import expect  # noqa: E402

pytestmark = pytest.mark.browser

COIN = "/notebooks/01_coin.html"
SECONDS = 30
expect.set_options(timeout=SECONDS * 1000)
AUDIT_SCRIPT = """
import pathlib, sys
print("[0 s] estimating eta", file=sys.stderr)
name = next(word for word in sys.argv if word.startswith("--output=")).partition("=")[2]
pathlib.Path(name).write_text("<html><head></head><body><h1>The report</h1></body></html>")
pathlib.Path(name).with_suffix(".json").write_text("{}")
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    server = Live(make_book(tmp_path_factory.mktemp("serve-page")))
    yield server
    server.close()


@pytest.fixture(scope="module")
def context(browser, live):
    """A browser that has opened the address which the server printed."""
    made = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = made.new_page()
    page.goto(live.entrance)
    page.wait_for_url(f"{live.address}/")
    page.close()
    yield made
    made.close()


@pytest.fixture
def visit(context, live):
    """Open a page; afterwards no script may have failed, and no other machine been asked."""
    pages, faults, asked = [], [], []

    def open_page(path=COIN, ready="form.live-form", watched=True):
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        pages.append(page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        if watched:
            page.on("request", lambda request: asked.append(request.url))
        page.goto(live.address + path)
        page.locator(ready).wait_for()
        return page

    yield open_page
    for page in pages:
        page.close()
    for job in live.jobs:
        live.loop.call_soon_threadsafe(live.app.settings["queue"].cancel, job)
    assert faults == []
    assert not [url for url in asked if not url.startswith((live.address, "data:", "blob:"))]


def command(page):
    return page.locator(".live-command code")


def line(page):
    return page.locator(".live-line").first


def test_the_form_stands_at_the_parameters_and_writes_the_command(visit):
    page = visit()
    assert page.evaluate(
        "document.querySelector('.tag_parameters').nextElementSibling.id === 'live'"
    )
    expect(command(page)).to_have_text("labelbook run 01_coin --scale smoke")
    page.get_by_label("bias", exact=True).fill("0.25")
    expect(command(page)).to_have_text("labelbook run 01_coin --scale smoke -p bias 0.25")
    page.get_by_label("laptop").check()
    expect(page.get_by_label("bag_sizes")).to_have_value("[2, 4]")
    expect(command(page)).to_have_text("labelbook run 01_coin -p bias 0.25")
    page.get_by_role("button", name="The book's values").click()
    expect(command(page)).to_have_text("labelbook run 01_coin --scale smoke")


def test_an_invalid_value_shows_the_contracts_sentence_at_its_field(visit, live):
    before = len(live.jobs)
    page = visit()
    field = page.get_by_label("bias", exact=True)
    field.fill("2")
    said = page.locator("#live-bias-error")
    expect(said).to_have_text("2 is out of range; allowed: 0 to 1")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    field.fill("0.3")
    expect(said).to_be_empty()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    assert len(live.jobs) == before


def test_a_run_shows_its_progress_and_then_its_numbers_and_figures(visit, live):
    page = visit()
    page.get_by_label("bias", exact=True).fill("0.625")
    page.get_by_label("sleep", exact=True).fill("0.9")
    with live.holding():
        page.get_by_role("button", name="Run").click()
        expect(line(page)).to_have_text(re.compile(r"Cell \d of 3: Tosses. About \d s left."))
        expect(page.get_by_role("progressbar")).to_be_visible()
    expect(line(page)).to_have_text(re.compile(r"Done in \d+ s\."))
    row = page.locator(".live-result tbody tr").first
    expect(row).to_have_text("fraction of heads0.625 (this coin)0.5 (fair coin)")
    shown = page.locator(".live-pair img")
    assert [picture.get_attribute("alt") for picture in shown.all()] == [
        "the book's coin",
        "your coin",
    ]
    for picture in shown.all():
        picture.scroll_into_view_if_needed()
        page.wait_for_function("(image) => image.naturalWidth > 0", arg=picture.element_handle())
    assert page.url.endswith("#run?scale=smoke&bias=0.625&sleep=0.9")
    expect(page.get_by_role("button", name="Show the result")).to_be_visible()


def test_a_figure_without_a_difference_is_not_shown_twice(visit, live):
    live.run(bias=str(UNSEEN_BIAS))
    page = visit(f"{COIN}#run?scale=smoke&bias={UNSEEN_BIAS}", ".live-result")
    pair = page.locator(".live-pair")
    expect(pair).to_contain_text("the same in both: your values have no effect on it")
    expect(pair.locator("img")).to_have_count(0)


def test_an_address_names_a_run_for_everybody(visit, live):
    page = visit(f"{COIN}#run?scale=smoke&bias=0.0625&bag_sizes=%5B2%2C+8%5D")
    expect(page.get_by_label("bias", exact=True)).to_have_value("0.0625")
    expect(command(page)).to_contain_text("-p bag_sizes '[2, 8]'")
    expect(page.locator(".live-result")).to_have_count(0)
    live.run(bias="0.0625", bag_sizes="[2, 8]")
    page = visit(f"{COIN}#run?scale=smoke&bias=0.0625&bag_sizes=%5B2%2C+8%5D", ".live-result")
    expect(page.locator(".live-result h3")).to_contain_text("bias 0.0625")


def test_cancel_stops_the_run_and_the_next_one_works(visit):
    page = visit()
    page.get_by_label("sleep", exact=True).fill("300")
    page.get_by_role("button", name="Run").click()
    expect(line(page)).to_contain_text("Cell ")
    page.get_by_role("button", name="Cancel").click()
    expect(line(page)).to_have_text("Cancelled. Nothing was kept.")
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    page.get_by_label("sleep", exact=True).fill("0")
    page.get_by_role("button", name=re.compile("Run|Show")).click()
    expect(line(page)).to_contain_text("Done")


def test_two_tabs_see_one_run_and_one_queue(visit, live):
    first = visit()
    first.get_by_label("sleep", exact=True).fill("0.2")
    with live.holding():
        first.get_by_role("button", name="Run").click()
        expect(line(first)).to_contain_text("Cell ")
        before = len(live.jobs)
        second = visit()
        expect(line(second)).to_contain_text("Cell ")
        second.get_by_label("sleep", exact=True).fill("0.2")
        expect(command(second)).to_contain_text("sleep 0.2")
        second.get_by_role("button", name="Run").click()
        expect(line(second)).to_contain_text("Cell ")
    for page in (first, second):
        expect(line(page)).to_contain_text("Done")
        expect(page.locator(".live-result h3")).to_contain_text("sleep 0.2")
    assert len(live.jobs) == before, "the same parameters are one job"


def test_earlier_runs_are_listed_shown_and_deleted(visit, live):
    run = live.run(bias="0.9")["run"]
    page = visit()
    page.locator(".live-runs summary").click()
    row = page.locator(".live-runs tr", has_text="bias 0.9")
    row.get_by_role("button", name="Show").click()
    expect(page.locator(".live-result h3")).to_contain_text("bias 0.9")
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert not live.checkout.page(run).exists()


def test_the_comparison_shows_both_pages_and_runs_again(visit, live):
    run = live.run(bias="0.2")["run"]
    page = visit(f"/compare/{run}", ".live-split")
    left = page.frame_locator('iframe[title="the book\'s page"]')
    right = page.frame_locator('iframe[title="your page"]')
    expect(left.locator("article h1")).to_have_text("01_coin")
    expect(left.locator(".live-box")).to_have_count(0)
    expect(right.locator("article h1")).to_have_text("A coin, yours")
    boxes = [page.locator("iframe").nth(n).bounding_box() for n in (0, 1)]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] and boxes[0]["y"] == boxes[1]["y"]
    page.get_by_text("Change the values and run again").click()
    page.get_by_label("bias", exact=True).fill("0.8")
    page.get_by_role("button", name=re.compile("Run|Show")).click()
    expect(page.locator(".live-result h2")).to_contain_text("bias 0.8")
    assert "bias=0.8" in page.url and page.url != f"{live.address}/compare/{run}"


@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_in_a_run_reaches_neither_the_server_nor_the_page_around_it(
    guarded, visit, live, monkeypatch
):
    """Without the sandbox it does, so the test is able to fail."""
    run = live.run(bias="0.21")["run"]
    before = len(live.jobs)
    if not guarded:
        monkeypatch.setattr(Sandboxed, "policy", guard.PAGE_POLICY)
    page = visit(f"/compare/{run}", ".live-split")
    body = page.frame_locator('iframe[title="your page"]').locator("body")
    expect(body).to_have_attribute("data-sent", "no" if guarded else "yes")
    if guarded:
        expect(body).to_have_attribute("data-cookie", "unreachable")
    assert (len(live.jobs) == before) == guarded


LEAK = """<script>
  parent.postMessage({follow: "../../html//{place}/message.html"}, "*");
  setTimeout(() => { location = "http://{place}/navigation"; }, 200);
  new Image().src = "http://{place}/picture";
</script>"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_in_a_run_cannot_tell_another_server_anything(
    guarded, visit, live, monkeypatch, listener
):
    """Without the policies it can, so the test is able to fail."""
    place, asked, _ = listener
    if not guarded:
        monkeypatch.setattr(guard, "PAGE_POLICY", "frame-ancestors 'self'")
        monkeypatch.setattr("book.tools.serve.chapter_pages.Shell.policy", "frame-ancestors 'self'")
    run = live.run(bias="0.23")["run"]
    page = live.checkout.page(run) / "01_coin.html"
    page.write_text(page.read_text().replace("</body>", LEAK.replace("{place}", place) + "</body>"))
    shown = visit(f"/compare/{run}", ".live-split", watched=False)
    shown.wait_for_timeout(800)
    assert asked == ([] if guarded else ["/navigation"])


HOSTILE = """<!doctype html><title>attack</title><script>
const target = "{address}/api/run/01_coin";
const body = '{{"scale": "smoke", "values": {{"seed": "99"}}}}';
const json = {{"Content-Type": "application/json"}};
Promise.allSettled([
  fetch(target, {{method: "POST", mode: "no-cors", credentials: "include", body}}),
  fetch(target, {{method: "POST", credentials: "include", body, headers: json}}),
  fetch("{address}/api/form/01_coin", {{credentials: "include"}}).then((a) => a.text()),
  new Promise((resolve) => {{
    const frame = document.createElement("iframe");
    frame.name = "sink"; frame.onload = resolve; document.body.append(frame);
    const form = document.createElement("form");
    form.method = "POST"; form.action = target; form.enctype = "text/plain"; form.target = "sink";
    const input = document.createElement("input");
    input.name = '{{"scale": "smoke", "values": {{"seed": "98"}}, "x": "'; input.value = '"}}';
    form.append(input); document.body.append(form); form.submit();
  }}),
]).then((results) => {{
  document.title = "tried " + results.map((r) => r.status).join(" ");
}});
</script>"""


@pytest.fixture
def listener(live):
    """Another server of this machine: where it is, what it was asked for, with which cookies."""
    asked, cookies = [], []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            cookies.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(("<body></body>" + HOSTILE.format(address=live.address)).encode())

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked, cookies
    server.shutdown()


@pytest.mark.parametrize("guarded", [True, False])
def test_a_hostile_page_at_another_port_starts_nothing_and_reads_nothing(
    guarded, context, listener, live, monkeypatch
):
    """Without the rules it starts a run: the browser does send the cookie along."""
    if not guarded:
        monkeypatch.setattr(guard, "RULES", (guard.known_cookie,))
    before = len(live.jobs)
    page = context.new_page()
    page.goto(f"http://{listener[0]}/")
    page.wait_for_function("document.title.startsWith('tried')")
    title = page.title()
    page.close()
    assert (len(live.jobs) == before) == guarded
    if guarded:
        assert title.split()[2:4] == ["rejected", "rejected"], "JSON and reading fail"


@pytest.mark.parametrize("guarded", [True, False])
def test_a_hostile_server_at_another_port_cannot_use_the_cookie(
    guarded, context, listener, live, monkeypatch
):
    """The browser gives it away, and a program needs no browser to send it."""
    if not guarded:
        rules = tuple(rule for rule in guard.RULES if rule.__name__ != "known_page")
        monkeypatch.setattr(guard, "RULES", rules)
    place, _, cookies = listener
    page = context.new_page()
    page.goto(f"http://{place}/")
    page.goto(f"http://{place}/again")
    stored = page.evaluate("Object.values(localStorage)")
    page.close()
    stolen = cookies[-1]
    assert live.keys.cookie in stolen and stored == []
    order = {"scale": "smoke", "values": {"seed": "97"}}
    before = len(live.jobs)
    answer = live.ask("/api/run/01_coin", order, Cookie=stolen, X_Labelaudit_Page=None)
    assert (answer.status, len(live.jobs) - before) == ((401, 0) if guarded else (200, 1))


def test_an_audit_by_upload_gives_a_report_and_leaves_nothing(visit, live, tmp_path, monkeypatch):
    monkeypatch.setattr(audits, "COMMAND", (sys.executable, "-c", AUDIT_SCRIPT))
    table = tmp_path / "survey.csv"
    table.write_text("affair,age,day\n1,20,a\n0,30,b\n")
    page = visit("/audit", "#table")
    page.locator("#table").set_input_files(table)
    expect(page.locator("#chosen")).to_have_text("survey.csv, 3 columns.")
    page.get_by_role("button", name="Audit").click()
    expect(line(page)).to_have_text("label: choose the column to protect")
    page.get_by_label("label", exact=True).select_option("affair")
    page.get_by_label("bag", exact=True).select_option("day")
    page.get_by_label("target").select_option("additive")
    page.get_by_label("limit").fill("much")
    page.get_by_role("button", name="Audit").click()
    expect(line(page)).to_have_text("limit: 'much' is not a number of at least 0")
    page.get_by_label("limit").fill("0.1")
    page.get_by_role("button", name="Audit").click()
    report = page.frame_locator("iframe.live-report")
    expect(report.locator("h1")).to_have_text("The report")
    expect(page.locator("#reports li")).to_contain_text("survey.csv: label affair, bag day")
    page.get_by_role("button", name="Delete report and table").click()
    expect(page.locator("#reports li")).to_have_count(0)
    assert not list(live.checkout.uploads.glob("*")), "the table is gone as well"


def test_a_chapter_takes_a_file_and_check_boxes(visit, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("a,b\n1,2\n")
    page = visit("/notebooks/03_table.html")
    remove = page.get_by_role("button", name="Without a file")
    expect(remove).to_be_hidden()
    page.get_by_label("table").set_input_files(table)
    expect(command(page)).to_contain_text("-p table mine.csv")
    page.get_by_label("geometric").check()
    expect(command(page)).to_contain_text("-p mechanisms '[rr, llp, geometric]'")
    for name in ("rr", "llp", "geometric"):
        page.get_by_label(name, exact=True).uncheck()
    said = page.locator("#live-mechanisms-error")
    expect(said).to_have_text("the list is empty; give at least one value")
    remove.click()
    expect(command(page)).not_to_contain_text("table mine.csv")


def test_a_table_can_be_dropped_and_found_and_deleted_after_a_reload(visit):
    page = visit("/audit", "#table")
    page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(["a,b\\n1,2\\n"], "dropped.csv"));
      document.querySelector("#drop").dispatchEvent(
        new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""")
    expect(page.locator("#chosen")).to_have_text("dropped.csv, 2 columns.")
    page.reload()
    kept = page.locator("#reports li", has_text="dropped.csv")
    kept.get_by_role("button", name="Choose").click()
    expect(page.locator("#chosen")).to_have_text("dropped.csv, 2 columns.")
    page.get_by_role("button", name="Delete this table").click()
    expect(kept).to_have_count(0)
    expect(page.locator("#chosen")).to_have_text("dropped.csv has been deleted.")


def test_everything_works_with_the_keyboard_alone(visit):
    page = visit()
    page.get_by_label("bias", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("0.5")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("bias", exact=True)).to_have_value("0.51")
    page.keyboard.press("Enter")
    # A slider does not submit; the button, reached by Tab, does.
    for _ in range(20):
        if page.evaluate("document.activeElement.type === 'submit'"):
            break
        page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is visible"
    page.keyboard.press("Enter")
    expect(page.locator(".live-result h3")).to_contain_text("bias 0.51")


@pytest.mark.parametrize("path", [COIN, "/audit", "/compare/"])
def test_pages_fit_a_phone_and_pass_axe(path, visit, live):
    ready = {"/audit": "#table", "/compare/": ".live-split"}.get(path, "form.live-form")
    run = live.run(bias="0.4")["run"]
    address = path + run if path == "/compare/" else path
    if path == COIN:
        address, ready = f"{COIN}#run?scale=smoke&bias=0.4", ".live-result"
    page = visit(address, ready)
    own = ".live-box" if path == COIN else "body"
    found = axe.Axe().run(page, context=own).response["violations"]
    assert [(violation["id"], violation["nodes"][0]["target"]) for violation in found] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
