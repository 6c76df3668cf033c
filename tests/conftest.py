"""Fixtures that several test files share."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import LABELBOOK, ROOT

# A shell that runs the tests in the background has Ctrl-C ignored, and children inherit that.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where there are as many workers as cores, threads that wait in a loop take a core from the next
# worker, and a product of matrices costs ten times its work. Read when the libraries are loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is trained, here and in kernels, is compared with goldens: with torch's own products.
os.environ["LABELAUDIT_PRODUCTS"] = "highest"
# Without this each process that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# While the tests are collected, which imports the whole package, next to nothing becomes garbage.
gc.disable()

# In seconds. Whoever asks for the site first runs every chapter, on a machine that may be busy.
SITE_TIMEOUT = 1500
# Folders whose tests wait for runs of chapters, which the process that builds the site makes.
LATE = ("book", "teach", "browser")
# The explorer has shown its first tab, or the one that its address names.
READY = """() => [...document.querySelectorAll('.explorer-summary, .explorer-story')]
  .some((element) => element.textContent)"""
SOURCES = (
    *("_config.yml", "_toc.yml", "book", "labelaudit", "notebooks", "results"),
    *("pyproject.toml", "requirements.lock"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Two workers more than cores: tests wait for browsers, kernels, timers, killed processes."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items):
    """Give tests of the site the time that building it takes, and choose the order of the files.

    Workers take whole files in this order (`--dist loadfile --no-loadscope-reorder`). One builds
    the site; meanwhile the others are busy with files that need neither the site nor a chapter.
    Doctests come last: they are short, so that none waits long for the other's end.
    """
    waiting = {item.path for item in items if "site" in getattr(item, "fixturenames", ())}
    builder = min(waiting, default=None)

    def turn(item):
        if item.path == builder or not item.path.is_relative_to(ROOT / "tests"):
            return 0 if item.path == builder else 3
        return 2 if item.path in waiting or item.path.parent.name in LATE else 1

    items.sort(key=turn)
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(SITE_TIMEOUT))


def pytest_collection_finish():
    """Look for garbage again."""
    gc.enable()


@pytest.fixture(scope="module")
def one_numba_thread():
    """For thousands of tiny calls: on a busy machine threads would only wait for one another."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def site():
    """The folder of the book's pages, built at smoke scale.

    They are built in a checkout made of links, so that the pages somebody reads in `_build/html`
    stay as they are. It shares the folder of executions with this checkout, from which the tests of
    chapters read: each chapter runs once. The folder is kept, so the next run of the tests builds
    only what changed. Parallel workers wait for one another inside the command.
    """
    checkout = ROOT / "_build" / "smoke"
    (checkout / "_build").mkdir(parents=True, exist_ok=True)
    (ROOT / "_build" / "executed").mkdir(exist_ok=True)
    links = {name: Path("..", "..", name) for name in SOURCES}
    for name, target in (links | {"_build/executed": Path("..", "..", "executed")}).items():
        if (checkout / name).is_dir() and not (checkout / name).is_symlink():
            shutil.rmtree(checkout / name, ignore_errors=True)
        with contextlib.suppress(FileExistsError):
            (checkout / name).symlink_to(target)
    command = [*LABELBOOK, "book", "--scale", "smoke"]
    built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"the book does not build:\n{built.stdout}\n{built.stderr}"
    return checkout / "_build" / "html"


@pytest.fixture(scope="session")
def chromium():
    """The path of the system's Chromium; tests that need it are skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium on this machine: install chromium to run the browser tests")


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, running without a window for the tests of one file."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as api:
        running = api.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


def without_formulas(context):
    """Leave out MathJax, whose start takes about a second of a page's two or three."""
    context.route("**/mathjax/**", lambda route: route.abort())


@pytest.fixture
def open_explorer(browser, site):
    """Open the built page from the disk, offline; it may ask for no network and raise no error.

    Formulas are not set: `test_pages` looks at the page with them.
    """
    contexts, asked, errors = [], [], []

    def visit(query="", script="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        context.set_offline(True)
        without_formulas(context)
        context.add_init_script(script)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "book" / "explorer.html").as_uri() + query)
        page.wait_for_function(READY)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
