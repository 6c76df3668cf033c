"""Chapters as the command runs them: pages, failures, interruptions, and the same figures twice."""

import copy
import math
import re
import signal
import subprocess
import time
from functools import partial

import nbformat
import numpy as np
import pytest
from book_fixture import edited, kernels_below, make_checkout
from commands import LABELBOOK, run_python, with_sources

from book.chapters import glue
from book.tools.cache_key import run_name
from book.tools.chapters import load_chapters, read_source, with_values
from book.tools.checkout import Checkout
from book.tools.kernel import BookKernel
from book.tools.parameters import ContractError
from book.tools.runner import ChapterFailed, execute, execute_all, why_stale

# One worker makes the small book and its first run for all of them.


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout(make_checkout(tmp_path_factory.mktemp("runner")))


@pytest.fixture(scope="module")
def coin(checkout):
    return load_chapters(checkout.chapters_file)["01_coin"]


@pytest.fixture(scope="module")
def execution(checkout, coin):
    """The coin chapter at smoke scale, executed once for all tests that only look at it."""
    return execute(checkout, coin, coin.values("smoke"), scale="smoke")


def command(checkout, *arguments, sphinx=True, **options):
    """Start `labelaudit` in a checkout, in a process of its own."""
    plain = "import book_fixture; book_fixture.leave_out_sphinx(); "
    call = LABELBOOK[-1] if sphinx else plain + LABELBOOK[-1]
    return subprocess.Popen(
        [*LABELBOOK[:-1], call, *arguments],
        cwd=checkout.root,
        env=with_sources(**options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def wait_for_kernel(checkout, run="01_coin-*"):
    """Wait until a chapter is in the middle of its run."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if list(checkout.build.glob(f"executed/{run}/partial.ipynb")):
            return
        time.sleep(0.1)
    raise AssertionError("the chapter never started")


def outputs(notebook):
    return [copy.deepcopy(cell.get("outputs")) for cell in notebook.cells]


def test_the_notebook_holds_the_run_and_what_made_it(execution):
    made = execution.facts
    assert made["parameters"]["bag_sizes"] == [2]
    assert made["scale"] == "smoke"
    assert made["data"] == []
    assert any(version.startswith("numpy ") for version in made["versions"])
    assert not any(version.startswith("torch ") for version in made["versions"])
    [number] = made["headlines"]
    assert number["meaning"] == "share of heads"
    assert 0 <= float(number["value"]) <= 1
    assert (execution.folder / "files" / "tosses.csv").is_file()
    assert not (execution.folder / "partial.ipynb").exists()


@pytest.mark.parametrize("seed", range(8))
def test_an_executed_notebook_that_was_damaged_is_not_trusted(checkout, coin, execution, seed):
    """The worst damage leaves a notebook that can be read: another digit in what was printed."""
    path, rng = execution.folder / "notebook.ipynb", np.random.default_rng(seed)
    sound = path.read_bytes()
    assert why_stale(checkout, coin, coin.values("smoke")) == ""
    digits = [index for index in range(len(sound)) if sound[index : index + 1].isdigit()]
    index = int(rng.choice(digits if seed < 6 else len(sound)))
    other = sound[index] + 1 if sound[index : index + 1] != b"9" else ord("0")
    path.write_bytes(sound[:index] + bytes([other]) + sound[index + 1 :])
    try:
        assert why_stale(checkout, coin, coin.values("smoke")) == "first run"
    finally:
        path.write_bytes(sound)


def test_values_in_the_parameters_cell_are_literals(checkout):
    values = {"bag_sizes": [1, 2], "bias": math.inf, "law": 'a "b"', "fail": True}
    notebook = with_values(
        read_source(checkout.source("01_coin")), values | {"sleep": 0.5, "seed": 1}
    )
    [cell] = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    scope = {}
    exec(cell.source, scope)
    assert {name: scope[name] for name in values} == values


def test_progress_goes_from_cell_to_cell_and_the_time_left_shrinks(checkout, coin):
    steps = []
    values = coin.values("smoke") | {"seed": 9}
    done = execute(checkout, coin, values, scale="smoke", progress=steps.append)
    assert [step.cell for step in steps] == list(range(1, len(steps) + 1))
    assert {step.cells for step in steps} == {len(steps)}
    assert {step.heading for step in steps} == {"A coin"}
    left = [step.seconds_left for step in steps]
    assert left == sorted(left, reverse=True) and left[0] > left[-1] > 0
    assert set(done.facts["cell_seconds"]) == {f"cell-{n}" for n in (1, 2, 4, 5)} | {"facts"}


def test_figures_are_opaque_svg_and_glued_values_are_not_shown(execution):
    pictures = [
        output.data["image/svg+xml"]
        for cell in execution.notebook.cells
        for output in cell.get("outputs", [])
        if "image/svg+xml" in output.get("data", {})
    ]
    assert len(pictures) == 1
    glued = [
        output.data
        for cell in execution.notebook.cells
        for output in cell.get("outputs", [])
        if "scrapbook" in output.get("metadata", {})
    ]
    assert len(glued) == 2 and not any("text/plain" in data for data in glued)
    assert "fill: #ffffff" in pictures[0]
    assert "<dc:date>" not in pictures[0]


def test_the_same_parameters_give_the_same_figures_and_numbers(checkout, coin, execution):
    again = execute(checkout, coin, coin.values("smoke"), scale="smoke", fresh=True)
    assert again.reason == "asked to"
    assert outputs(again.notebook) == outputs(execution.notebook)
    assert [cell.id for cell in again.notebook.cells] == [
        cell.id for cell in execution.notebook.cells
    ]


def test_another_seed_gives_other_numbers_and_no_socket_stays_open(
    checkout, coin, execution, monkeypatch
):
    clients, plain = [], BookKernel.client

    def client(kernel, **options):
        clients.append(plain(kernel, **options))
        return clients[-1]

    monkeypatch.setattr(BookKernel, "client", client)
    other = execute(checkout, coin, coin.values("smoke") | {"seed": 2}, scale="smoke")
    assert outputs(other.notebook) != outputs(execution.notebook)
    assert clients and all(client.context.closed for client in clients)


def test_a_failing_cell_keeps_the_partial_run_and_the_last_good_one(checkout, coin, execution):
    good = (execution.folder / "notebook.ipynb").read_text()
    broken = edited(checkout.source("01_coin"), "if fail:", "if True:")
    with broken, pytest.raises(ChapterFailed) as failure:
        execute(checkout, coin, coin.values("smoke"), scale="smoke")
    message = str(failure.value)
    assert "01_coin failed in cell [4]: RuntimeError: the coin is lost" in message
    assert 'raise RuntimeError("the coin is lost")' in message
    partial = nbformat.read(execution.folder / "partial.ipynb", as_version=4)
    assert any("image/svg+xml" in str(cell.get("outputs")) for cell in partial.cells)
    assert (execution.folder / "notebook.ipynb").read_text() == good


@pytest.mark.parametrize(
    ("tag", "raised", "outcome"),
    [
        ("refuses", 'ValueError("heads only")', (ContractError, "^01_coin: heads only$")),
        ("refuses", 'KeyError("heads")', (ChapterFailed, "failed in cell .* KeyError")),
        ("hide-input", 'ValueError("heads only")', (ChapterFailed, "failed in cell .* ValueError")),
    ],
)
def test_a_cell_may_refuse_what_a_declaration_cannot(checkout, coin, tag, raised, outcome):
    cell = f"```{{code-cell}} ipython3\n:tags: [{tag}]\nif bias == 1:\n    raise {raised}\n```\n\n"
    first = "```{code-cell} ipython3\nimport time"
    heads = coin.values("smoke") | {"bias": 1.0}
    refused, message = outcome
    with edited(checkout.source("01_coin"), first, cell + first):
        with pytest.raises(refused, match=message):
            execute(checkout, coin, heads, scale="smoke")
        left = {path.name for path in checkout.executed(run_name("01_coin", heads)).iterdir()}
    assert ("partial.ipynb" in left) == (refused is ChapterFailed)


def test_a_dead_kernel_is_reported(checkout, coin):
    broken = edited(checkout.source("01_coin"), "if fail:", "import os; os._exit(1)\nif fail:")
    with broken, pytest.raises(ChapterFailed, match="its kernel died"):
        execute(checkout, coin, coin.values("smoke") | {"seed": 3}, scale="smoke")


def test_one_failure_ends_the_others(checkout, coin):
    slow = coin.values("smoke") | {"sleep": 120.0}
    failing = coin.values("smoke") | {"fail": True}
    started = time.monotonic()
    with pytest.raises(ChapterFailed, match="the coin is lost"):
        execute_all(
            checkout, [(coin, slow), (coin, failing)], lambda done: None, workers=2, scale="smoke"
        )
    assert time.monotonic() - started < 60
    assert kernels_below(checkout) == []


def test_run_writes_a_page_that_stands_alone(checkout):
    status, out, err = finished(command(checkout, "run", "01_coin", "-p", "bag_sizes", "[8]"))
    assert status == 0, err
    page = checkout.root / out.splitlines()[-1]
    html = page.read_text()
    assert page.with_suffix(".ipynb").is_file()
    assert page.parent.parent == checkout.build / "runs"
    assert not re.search(r'<(?:script|img)[^>]* src="(?!data:)', html)
    assert not re.search(r'<link[^>]*rel="stylesheet"', html)
    assert "Theorem 1" in html
    assert "{glue:" not in html and "{prf:" not in html
    assert "How this page was made" in html
    assert "bag_sizes=[8]" in html
    again = finished(command(checkout, "run", "01_coin", "-p", "bag_sizes", "[8]"))
    assert again[1].splitlines() == ["01_coin: up to date", out.splitlines()[-1]]


def test_a_refusal_comes_before_any_work_with_status_two(checkout):
    before = sorted(checkout.build.rglob("*"))
    status, out, err = finished(command(checkout, "run", "01_coin", "-p", "bagsizes", "[8]"))
    assert (status, out) == (2, "")
    assert err == "labelbook: 01_coin has no parameter 'bagsizes'; did you mean bag_sizes?\n"
    twice = ["-p", "seed", "1", "-p", "seed", "2"]
    status, _, err = finished(command(checkout, "run", "01_coin", *twice))
    assert (status, err) == (2, "labelbook: seed is given twice\n")
    assert sorted(checkout.build.rglob("*")) == before


def test_interrupting_leaves_no_kernel_and_no_page(tmp_path):
    checkout = Checkout(make_checkout(tmp_path))
    process = command(checkout, "run", "01_coin", "-p", "sleep", "300")
    wait_for_kernel(checkout)
    assert kernels_below(checkout)
    process.send_signal(signal.SIGINT)
    status, _, err = finished(process)
    assert (status, err) == (130, "labelbook: interrupted\n")
    assert kernels_below(checkout) == []
    assert not (checkout.build / "runs").exists()


@pytest.mark.parametrize("delay", [0, 1])
def test_an_interrupt_that_reaches_another_thread_is_heeded(delay):
    """Which thread a signal goes to is the system's choice; this one goes to a worker.

    It comes while the work is being handed out, or when it is waited for. Either thread can be the
    first to say so, in one write each, so that lines stay whole.
    """
    script = """if True:
        import os, signal, sys, threading, time
        from book.tools import runner
        def work(*arguments, **options):
            time.sleep(float(sys.argv[1]))
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            os.write(1, b"cancelled\\n" if runner.cancelled.wait(20) else b"not told\\n")
        runner.execute = work
        try:
            runner.execute_all(None, [(None, {})], print, workers=1)
        except KeyboardInterrupt:
            os.write(1, b"interrupted\\n")
    """
    done = run_python(script, delay)
    assert sorted(done.stdout.splitlines()) == ["cancelled", "interrupted"], done.stderr


def test_interrupting_the_book_leaves_no_kernel_and_no_site(tmp_path):
    checkout = Checkout(make_checkout(tmp_path))
    with edited(checkout.source("02_plain"), "1 + 1", "import time; time.sleep(300)"):
        process = command(checkout, "book", "--scale", "smoke")
        wait_for_kernel(checkout, "02_plain-*")
        process.send_signal(signal.SIGINT)
        status, _, err = finished(process)
    assert (status, err) == (130, "labelbook: interrupted\n")
    assert kernels_below(checkout) == []
    assert not checkout.site.exists()


def test_a_killed_run_leaves_nothing_in_the_way_of_the_next(tmp_path):
    checkout = Checkout(make_checkout(tmp_path))
    again = partial(command, checkout, "run", "01_coin", "-p", "sleep", "1", sphinx=False)
    process = again()
    wait_for_kernel(checkout)
    process.kill()
    process.communicate()
    status, _, err = finished(again())
    assert status == 0, err


def test_two_equal_runs_at_once_share_the_work_with_an_empty_home(tmp_path):
    checkout = Checkout(make_checkout(tmp_path / "book"))
    (tmp_path / "home").mkdir()
    home = {"HOME": str(tmp_path / "home")}
    equal = partial(command, checkout, "run", "01_coin", "--scale", "smoke", sphinx=False, **home)
    pair = [equal() for _ in range(2)]
    results = [finished(process) for process in pair]
    assert [status for status, _, _ in results] == [0, 0], results
    assert sorted("first run" in out for _, out, _ in results) == [False, True]
    assert len({out.splitlines()[-1] for _, out, _ in results}) == 1


def test_an_unwritable_build_folder_is_one_clear_line(tmp_path):
    checkout = Checkout(make_checkout(tmp_path))
    checkout.build.write_text("a file where a folder should be")
    status, _, err = finished(command(checkout, "run", "02_plain"))
    assert status == 1
    assert err.startswith("labelbook: ") and "_build" in err and err.count("\n") == 1


@pytest.mark.parametrize(("in_book", "shown"), [(True, None), (False, "share: 0.25")])
def test_glue_shows_its_value_only_outside_the_book(in_book, shown, monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, **options: seen.append(data))
    monkeypatch.delenv("LABELAUDIT_BOOK", raising=False)
    if in_book:
        monkeypatch.setenv("LABELAUDIT_BOOK", "1")
    glue("share", np.float64(0.25))
    assert seen[0].get("text/plain") == shown


@pytest.mark.parametrize("value", [[1, 2], np.arange(3), None, {"a": 1}])
def test_glue_refuses_what_prose_cannot_quote(value):
    with pytest.raises(TypeError, match="cannot glue 'x'"):
        glue("x", value)
