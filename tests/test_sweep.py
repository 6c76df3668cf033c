"""Sweeps: grids, plans, engines, and that nothing is lost whatever dies."""

import contextlib
import errno
import functools
import importlib
import itertools
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import ROOT
from sklearn.metrics import roc_auc_score
from sweep_work import constant, deadly, endless, failing, slow, slow_valley, threads, valley
from tqdm import tqdm

from book import cli, sweep
from book.sweep import advantages, comparisons, published, runs, scaling
from book.sweep import store as stores
from book.sweep.command import SCALES
from book.sweep.grid import ETA, Grid, GridError, mechanism, next_rate, read_grid
from book.sweep.runs import GUESSED_SECONDS
from book.sweep.scales import scale_grid
from book.sweep.store import Store, StoreError, verify
from book.tools.chapters import load_chapters
from labelaudit import (
    LabelProportions,
    RandomizedResponse,
    multiplicative_cdf,
    posterior,
)
from labelaudit.datasets import Dataset, NotPrepared, Split
from labelaudit.datasets.dataset import Arrays

torch = pytest.importorskip(
    "torch", reason="sweeps train with torch: in a clone: pip install '.[train]'"
)
training = importlib.import_module("labelaudit.learning.training")

GRID = Grid(
    mechanisms={
        "clean": {},
        "RR": {"epsilon": [0.5, 1.0]},
        "LLP": {"bag_size": [1, 4]},
        "LLP+Geom": {"bag_size": [2], "epsilon": [1.0]},
    },
    learning_rates=(1e-3, 1e-2),
    trials=4,
    train_rows=400,
    training={"model": "linear", "epochs": 1},
)
RUNS = 6 * 2 * 4
# macOS has no affinity.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.fixture(scope="module")
def data():
    return sweep.load("higgs-like", GRID)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def results(records):
    """What a sweep found, times aside."""
    return {record.key: (record.configuration, record.result) for record in records}


def expected(data):
    runs = sweep.configurations(GRID, data)
    return {stores.key(run, data.fingerprint): (run, constant(data, run)) for run in runs}


# Grids


def test_the_paper_grid_is_the_papers():
    paper = scale_grid("paper")
    assert len(paper) == 17_600 + 80  # and clean labels, whose AUC the paper mentions
    kinds = [described["kind"] for described in paper.descriptions()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        **{"clean": 1, "RR": 10, "LLP": 10, "LLP+Lap": 100, "LLP+Geom": 100}
    }


def test_the_published_grid_has_two_learners_for_each_of_65_mechanisms():
    grid = read_grid(ROOT / "results" / "published.yml")
    for name in ("higgs", "kdd12", "diabetes"):
        own = grid.for_data(name)
        assert len(list(own.descriptions())) == 1 + 65
        assert own.losses == ("cross_entropy", "likelihood")
        assert own.trials == 3 and len(own.learning_rates) == 3 and own.rate_limits
        assert len(own) == 3 * 3 * (1 + 2 * 65)


def test_scales_are_those_of_the_chapter():
    chapter = load_chapters(ROOT / "notebooks" / "chapters.yml")["12_privacy_utility"]
    for scale in SCALES:
        grid, here = scale_grid(scale), chapter.values(scale)
        pairs = {"bag_size": here["pair_bag_sizes"], "epsilon": here["pair_epsilons"]}
        assert grid.mechanisms["RR"] == {"epsilon": here["epsilons"]}
        assert grid.mechanisms["LLP"] == {"bag_size": here["bag_sizes"]}
        assert grid.mechanisms["LLP+Lap"] == grid.mechanisms["LLP+Geom"] == pairs
        assert grid.learning_rates == tuple(here["learning_rates"])
        assert grid.losses == tuple(here["losses"])
        assert (grid.trials, grid.seed) == (here["trials"], here["seed"])
        assert grid.training == {name: here[name] for name in ("epochs", "batch_size")}
        assert grid.train_rows in (here["train_rows"], None)


def test_a_description_makes_its_mechanism():
    assert mechanism({"kind": "RR", "epsilon": 1.0}) == RandomizedResponse(1.0)
    assert mechanism({"kind": "LLP", "bag_size": 3}) == LabelProportions(3)
    assert mechanism({"kind": "clean"}) is None


def test_repeated_mechanisms_run_once():
    grid = replace(GRID, mechanisms={"RR": {"epsilon": [1, 1.0, "1e0"]}})
    assert list(grid.descriptions()) == [{"kind": "RR", "epsilon": 1.0}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mechanisms: {RX: {epsilon: [1]}}", "mechanism 'RX' is unknown; there are clean, RR, LLP"),
        ("mechanisms: {RR: {epsilon: [-1]}}", r"RR: epsilon must lie in \[0, inf\], not -1"),
        ("mechanisms: {RR: {epsilon: [0]}}", "RR: at epsilon 0 there is nothing to learn"),
        ("mechanisms: {RR: {epsilon: [high]}}", "RR: epsilon must be a number.*'high'"),
        ("mechanisms: {LLP: {bag_size: [0]}}", "bag_size must be a whole number of at least 1"),
        ("mechanisms: {LLP: {bag_size: [2.5]}}", "bag_size must be a whole number.*2.5"),
        ("mechanisms: {LLP: {epsilon: [1]}}", r"LLP takes \{bag_size: \[...\]\}"),
        ("mechanisms: {RR: {epsilon: 1}}", "RR epsilon must be a list of numbers, not 1"),
        ("mechanisms: {}", "mechanisms names none"),
        ("learning_rates: [0]", "a learning rate must be above 0"),
        ("learning_rates: []", "learning_rates must be a list of numbers"),
        ("trials: 0", "trials must be a whole number of at least 1, not 0"),
        ("trails: 3", "'trails' is unknown; there are datasets, eta, learning_rates"),
        ("datasets: {higgs: {rows: 3}}", "'rows' is unknown"),
        ("mechanisms: [RR]", r"mechanisms must be a mapping of names to values, not \['RR'\]"),
        ("mechanisms: null", "mechanisms must be a mapping of names to values, not None"),
        ("mechanisms: {RR: 1}", r"RR takes \{epsilon: \[...\]\}, not 1"),
        ("datasets: [a]", "datasets must be a mapping"),
        (
            "datasets: {higs: {trials: 3}}",
            "datasets: 'higs' is unknown; there are diabetes, fair, higgs",
        ),
        ("datasets: {higgs: 5}", "datasets: higgs must be a mapping of names to values, not 5"),
        ("datasets: {higgs: {training: 5}}", "datasets: higgs: training must be a mapping"),
        ("datasets: {higgs: {datasets: {}}}", "datasets: higgs: 'datasets' is unknown"),
        ("training: 5", "training must be a mapping of names to values, not 5"),
        ("training: null", "training must be a mapping"),
        ("eta: [1]", "eta must be a mapping"),
        ("losses: squared", "losses must be a list of names, not 'squared'"),
        ("losses: [[squared]]", "losses must be a list of names"),
        ("losses: [1]", "losses must be a list of names"),
        ("{losses: [squared], training: {loss: squared}}", "loss 'squared' would be ignored"),
        ("training: {learning_rate: 1}", "learning_rate 1 would be ignored"),
        ("rate_limits: [0.001]", "the least and the largest rate of the search"),
        ("rate_limits: [0.1, 0.001]", "the least and the largest rate of the search"),
        ("rate_limits: [0.002, 0.1]", "all learning_rates between them"),
        ("rate_limits: [0, 0.1]", "rate_limits: a learning rate must be above 0"),
        ("rate_limits: wide", "rate_limits must be a list of numbers, not 'wide'"),
        ("rate_limits: [a, b]", "rate_limits must be a number"),
        ("rate_limits: [.nan, 1]", "rate_limits must lie in"),
        ("{rate_limits: [0.0001, 1], learning_rates: [0.001]}", "a search .* begins with"),
        ("{rate_limits: [0.0001, 1], learning_rates: [0.01, 0.0101]}", "at least 1.5 times"),
        ("- 1", "must be a mapping"),
        ("a: [", "is not YAML: expected the node content.*, line 1, column 5$"),
        ("trials: 3\n{[1]: 2}", "is not YAML: .*, line 2, column"),
    ],
)
def test_a_bad_grid_is_refused(tmp_path, text, said):
    (tmp_path / "grid.yml").write_text(text)
    with pytest.raises(GridError, match=said) as refused:
        read_grid(tmp_path / "grid.yml")
    assert "\n" not in str(refused.value)


def test_a_grid_that_is_not_there(tmp_path):
    with pytest.raises(GridError, match="cannot read the grid"):
        read_grid(tmp_path / "none.yml")


def test_a_grid_file_and_one_data_set_of_it(tmp_path):
    held = {
        "trials": 2,
        "mechanisms": {"RR": {"epsilon": [1]}},
        "learning_rates": ["1e-4"],
        "training": {"epochs": 3, "batch_size": 64},
        "datasets": {"kdd12": {"training": {"epochs": 1}, "trials": 5}},
    }
    (tmp_path / "grid.yml").write_text(yaml.safe_dump(held))
    grid = read_grid(tmp_path / "grid.yml")
    assert grid.learning_rates == (1e-4,)
    assert grid.for_data("higgs").training == {"epochs": 3, "batch_size": 64}
    own = grid.for_data("kdd12")
    assert own.training == {"epochs": 1, "batch_size": 64} and own.trials == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"training": {"model": "linear", "epoch": 1}}, "epoch"),
        ({"training": {"model": "none"}}, "model must be one of"),
        ({"losses": ["likely"]}, "loss must be one of .*, not 'likely'"),
        ({"mechanisms": {"LLP": {"bag_size": [401]}}}, "at most the number of training rows, 400"),
        (
            {"mechanisms": {"LLP": {"bag_size": [201]}}},
            "bag_size 201 leaves too few bags: 400 training rows make one",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_runs(data, store, change, said):
    with pytest.raises(GridError, match=said):
        sweep.plan(replace(GRID, **change), data, store)
    assert not store.folder.exists()


@pytest.mark.parametrize(
    ("eta", "said"),
    [
        ({"epoch": 3}, "the grid's eta: 'epoch' is unknown"),
        ({"epochs": "many"}, "the grid's eta cannot be run: epochs must be a whole number"),
    ],
)
def test_a_bad_network_for_eta_is_refused_even_where_none_is_needed(data, store, eta, said):
    assert data.simulated
    with pytest.raises(GridError, match=said):
        advantages.plan(replace(GRID, eta=eta), data, store)


# Plans


def test_trials_share_their_seed_and_rates_their_release(data):
    runs = list(sweep.configurations(GRID, data))
    assert len(runs) == len(GRID) == RUNS
    assert {(run["trial"], run["seed"]) for run in runs} == {(t, 2023 + t) for t in range(4)}


def test_a_batch_holds_a_bag(data):
    small = replace(GRID, training={"model": "linear", "batch_size": 2})
    runs = list(sweep.configurations(small, data))
    sizes = {run["mechanism"].get("bag_size", 1): run["settings"]["batch_size"] for run in runs}
    assert sizes == {1: 2, 2: 2, 4: 4}


def test_everything_is_done_once(data, store):
    first = sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    assert results(first) == expected(data)
    again = sweep.plan(GRID, data, store)
    assert again.to_do == [] and len(again.done) == RUNS
    # A hit is never run: this work would raise.
    assert results(sweep.run(again, store, work=None)) == expected(data)


def test_a_change_is_never_a_hit(data, store):
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    more_rows = replace(GRID, train_rows=401)
    other = sweep.load("higgs-like", more_rows)
    assert len(sweep.plan(more_rows, other, store).to_do) == RUNS
    assert len(sweep.plan(replace(GRID, seed=1), data, store).to_do) == RUNS
    epochs = replace(GRID, training={"model": "linear", "epochs": 2})
    assert len(sweep.plan(epochs, data, store).to_do) == RUNS


def test_a_larger_grid_keeps_what_there_is(data, store):
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    larger = replace(GRID, trials=5)
    assert len(sweep.plan(larger, data, store).to_do) == RUNS // 4


def test_a_damaged_result_is_run_again(data, store):
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    name = next(iter(store))
    store.path(name).write_text("{")
    plan = sweep.plan(GRID, data, store)
    assert plan.to_do == [name] and plan.damaged == (store.path(name),)
    assert store.path(name).read_text() == "{"  # a plan changes nothing
    assert results(sweep.run(plan, store, work=constant)) == expected(data)
    assert [path.read_text() for path in store.folder.rglob("*.damaged")] == ["{"]


def test_the_estimate_comes_from_the_runs_there_are(data, store):
    seconds, origin = sweep.plan(GRID, data, store).seconds()
    assert "a guess" in origin and seconds == pytest.approx(RUNS * 400 * GUESSED_SECONDS)
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    larger = replace(GRID, trials=8)
    seconds, origin = sweep.plan(larger, data, store).seconds()
    assert origin == f"from {RUNS} runs in the store"
    assert seconds == pytest.approx(RUNS * 0.01)


@pytest.mark.parametrize("parts", [1, 3, 7, 100])
def test_shards_are_equal_parts_of_the_whole(data, store, parts):
    shards = [sweep.plan(GRID, data, store, (i + 1, parts)) for i in range(parts)]
    names = [name for shard in shards for name in shard.runs]
    assert sorted(names) == sorted(expected(data))
    sizes = [len(shard.runs) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_shards_run_apart_make_the_whole_table(data, store):
    for part in (2, 1, 3):
        plan = sweep.plan(GRID, data, store, (part, 3))
        assert len(sweep.run(plan, store, work=constant)) == RUNS // 3
    assert results(sweep.plan(GRID, data, store).done.values()) == expected(data)


# Several losses, and a search for the learning rate

SEARCH = replace(
    GRID,
    mechanisms={"clean": {}, "RR": {"epsilon": [0.5, 1.0]}},
    losses=("cross_entropy", "squared", "easy_llp"),
    learning_rates=(2.5e-4, 1e-3, 4e-3),
    rate_limits=(1e-5, 1.0),
    trials=2,
)
# The best of each loss lies in the middle, above the largest, and far below the least.
RATES = {
    "cross_entropy": [2.5e-4, 1e-3, 4e-3],
    "squared": [2.5e-4, 1e-3, 4e-3, 0.016, 0.064, 0.256],
    "easy_llp": [1.56e-5, 6.25e-5, 2.5e-4, 1e-3, 4e-3],
}


def searched(records):
    """The rates of every setting, each with all trials."""
    rates = {}
    for record in records:
        run = record.configuration
        setting = run["mechanism"].get("epsilon"), run["settings"]["loss"]
        rates.setdefault(setting, []).append(run["settings"]["learning_rate"])
    assert all(tried.count(rate) == 2 for tried in rates.values() for rate in tried)
    return {setting: sorted(set(tried)) for setting, tried in rates.items()}


FOUND = {(epsilon, loss): rates for epsilon in (0.5, 1.0) for loss, rates in RATES.items()}
FOUND[None, "cross_entropy"] = RATES["cross_entropy"]


def test_clean_labels_have_one_loss(data):
    runs = list(sweep.configurations(SEARCH, data))
    assert len(runs) == len(SEARCH) == (1 + 2 * 3) * 3 * 2
    assert {run["settings"]["loss"] for run in runs if run["mechanism"]["kind"] == "clean"} == {
        "cross_entropy"
    }


def test_a_search_goes_on_until_the_best_is_inside_or_at_the_limits(data, store):
    assert len(sweep.plan(SEARCH, data, store).runs) == len(SEARCH)
    records = sweep.complete(SEARCH, data, store, work=valley)
    assert searched(records) == FOUND
    assert sweep.plan(SEARCH, data, store).to_do == []
    # Once more: nothing is run, for this work would raise.
    assert len(sweep.complete(SEARCH, data, store, work=None)) == len(records)


@pytest.mark.parametrize("parts", [1, 3, 20])
def test_the_shards_of_a_search_make_the_whole(data, store, parts):
    for part in range(1, parts + 1):
        sweep.complete(SEARCH, data, store, (part, parts), work=valley)
    schedule = sweep.plan(SEARCH, data, store)
    assert schedule.to_do == [] and searched(schedule.done.values()) == FOUND


def test_a_further_rate_waits_for_every_trial(data, store):
    schedule = sweep.plan(SEARCH, data, store)
    last = next(n for n, run in schedule.runs.items() if run["settings"]["loss"] == "squared")
    some = {name: run for name, run in schedule.runs.items() if name != last}
    sweep.run(replace(schedule, runs=some), store, work=valley)
    again = sweep.plan(SEARCH, data, store)
    epsilon = schedule.runs[last]["mechanism"]["epsilon"]
    of_it = [
        run["settings"]["learning_rate"]
        for run in again.runs.values()
        if run["mechanism"].get("epsilon") == epsilon and run["settings"]["loss"] == "squared"
    ]
    assert set(of_it) == set(SEARCH.learning_rates) and last in again.to_do


def test_the_first_trial_and_the_middle_rate_come_first(data, store):
    order = []

    def noted(data, run):
        order.append((run["trial"], run["settings"]["learning_rate"]))
        return constant(data, run)

    sweep.run(sweep.plan(SEARCH, data, store), store, work=noted)
    assert [trial for trial, _ in order] == [0] * 21 + [1] * 21
    assert {rate for _, rate in order[:7]} == {rate for _, rate in order[21:28]} == {1e-3}


@pytest.mark.parametrize(
    ("losses", "rate"),
    [
        ({1e-3: 2.0, 1e-2: 1.0, 1e-1: 3.0}, None),
        ({1e-3: 2.0, 1e-2: 1.0}, 0.1),
        ({1e-3: 1.0, 1e-2: 1.0}, 1e-4),  # a tie takes the smaller
        ({1e-3: 2.0, 0.5: 1.0}, None),  # the next would lie beyond the limits
        ({1e-3: math.inf, 1e-2: math.inf}, 1e-4),
        ({1e-5: math.inf, 1e-4: math.inf}, None),
    ],
)
def test_the_next_rate(losses, rate):
    assert next_rate(losses, (1e-5, 1.0)) == rate


def test_a_run_without_a_loss_is_the_worst():
    for result in ({}, {"validation_loss": None}, {"validation_loss": math.nan}):
        assert runs.validation_loss(result) == math.inf
    assert runs.validation_loss({"validation_loss": -2.0}) == -2.0


def killable_search(folder):
    """A search in a process of its own, so that it can be killed."""
    tqdm.set_lock(threading.RLock())
    sweep.complete(SEARCH, sweep.load("higgs-like", SEARCH), Store(folder), work=slow_valley)


def test_a_search_that_is_killed_goes_on(data, store):
    fork = multiprocessing.get_context("fork")
    for pause in (0.3, 0.9):
        process = fork.Process(target=killable_search, args=(store.folder,))
        process.start()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert verify(store)[1] == []
    assert len(list(store)) > 0
    assert searched(sweep.complete(SEARCH, data, store, work=valley)) == FOUND


# What may go wrong


def test_a_failed_run_does_not_stop_the_others(data, store):
    with pytest.raises(sweep.SweepFailed, match=r"12 of 48 runs failed; .*out of memory") as raised:
        sweep.run(sweep.plan(GRID, data, store), store, work=failing)
    assert raised.value.status == 1
    assert verify(store) == (36, [])


def test_a_full_disk_stops_the_sweep_and_keeps_the_rest(data, store, monkeypatch):
    written, replace_file = [], os.replace

    def filling(source, target):
        if len(written) >= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(target)
        replace_file(source, target)

    monkeypatch.setattr(stores.os, "replace", filling)
    with pytest.raises(StoreError, match="No space left on device"):
        sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    monkeypatch.undo()
    assert verify(store) == (9, [])  # the tenth file is the store's own
    again = sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    assert results(again) == expected(data)


def test_a_workers_data_must_be_the_sweeps(data, store):
    wrong = replace(sweep.plan(GRID, data, store), data=replace(data, fingerprint="0" * 64))
    with pytest.raises(sweep.SweepFailed, match="this worker's higgs-like is not the sweep's"):
        sweep.run(wrong, store, work=constant)


def test_an_unreachable_scheduler_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "dask", functools.partial(sweep.dask, timeout=1))
    command = ["sweep", "--dataset", "higgs-like", "--scale", "smoke", "--store", str(tmp_path)]
    started = time.monotonic()
    status = cli.main([*command, "--engine", "dask", "--address", "tcp://127.0.0.1:1"])
    assert status == 2 and time.monotonic() - started < 30
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err
    assert list(Store(tmp_path)) == []


def killable(data, folder):
    """A sweep in a process of its own, so that it can be killed."""
    # A forked child shares tqdm's lock; killed while it holds it, it would block its parent.
    tqdm.set_lock(threading.RLock())
    store = Store(folder)
    sweep.run(sweep.plan(GRID, data, store), store, work=slow)


@pytest.mark.slow
def test_killed_ten_times_the_table_is_the_same(data, store):
    rng = random.Random(7)
    fork = multiprocessing.get_context("fork")
    interrupted = 0
    for _ in range(10):
        process = fork.Process(target=killable, args=(data, store.folder))
        process.start()
        time.sleep(rng.uniform(0.02, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        interrupted += process.exitcode == -signal.SIGKILL
        assert verify(store)[1] == []
    assert interrupted >= 3
    finished = sweep.run(sweep.plan(GRID, data, store), store, work=slow)
    assert verify(store) == (RUNS, [])
    assert results(finished) == expected(data)


def killable_training(folder):
    """A real sweep, in a session of its own: local processes that train a linear model."""
    os.setsid()
    data = sweep.load("higgs-like", GRID)
    store = Store(folder)
    with sweep.local(2) as engine:
        sweep.run(sweep.plan(GRID, data, store), store, engine=engine)


@pytest.mark.slow
def test_killed_trainings_leave_the_same_table_and_no_worker(data, store):
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=killable_training, args=(store.folder,))
    process.start()
    while len(list(store)) < 3 and process.is_alive():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert verify(store)[1] == [] and 3 <= len(list(store)) < RUNS
    while _members(process.pid):
        time.sleep(0.2)
    finished = sweep.run(sweep.plan(GRID, data, store), store)
    fresh = Store(store.folder.with_name("fresh"))
    unbroken = sweep.run(sweep.plan(GRID, data, fresh), fresh)
    assert [record.key for record in finished] == [record.key for record in unbroken]
    assert [record.result["curve"] for record in finished] == [
        record.result["curve"] for record in unbroken
    ]


def _members(session):
    """The processes of a session that are still at work."""
    import psutil

    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def test_a_long_training_goes_on_from_its_checkpoint(data, store, tmp_path, monkeypatch):
    todo = sweep.plan(replace(GRID, training={"model": "linear", "epochs": 3}), data, store)
    name = todo.to_do[0]
    configuration, folder = todo.runs[name], tmp_path / "checkpoints"
    ended = training._end_epoch

    def killed(run):
        ended(run)
        if run.state.epoch == 3:
            run.save()
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "_end_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        sweep.train_once(data, configuration, checkpoints=folder)
    assert [path.name for path in folder.iterdir()] == [f"{name}.pt"]
    old = folder / f".{name}.pt.elsewhere.1.2.partial"  # killed in mid-write, an hour ago
    old.touch()
    os.utime(old, (time.time() - 3700,) * 2)
    # Another sweep has this training in hand too, and is writing the same checkpoint.
    written = folder / f".{name}.pt.elsewhere.3.4.partial"
    written.touch()
    began = []
    monkeypatch.setattr(training, "_end_epoch", lambda run: (began.append(1), ended(run)))
    one = replace(todo, runs={name: configuration})
    (record,) = sweep.run(one, store, checkpoints=folder)
    assert len(began) == 1 and list(folder.iterdir()) == [written]
    monkeypatch.setattr(training, "_end_epoch", ended)
    assert record.result["curve"] == sweep.train_once(data, configuration)["curve"]


def test_two_sweeps_that_share_checkpoints(data, store, tmp_path, monkeypatch):
    """Neither takes away what the other one writes or reads."""
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr(training, "CHECK_EVERY", 1)
    grid = replace(GRID, training={"model": "linear", "epochs": 6})
    folder, failures = tmp_path / "checkpoints", []

    def go(place):
        try:
            sweep.run(sweep.plan(grid, data, place), place, checkpoints=folder)
        except Exception as error:
            failures.append(error)

    stores = [store, Store(store.folder.with_name("other"))]
    threads = [threading.Thread(target=go, args=(place,)) for place in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [verify(place) for place in stores] == [(RUNS, [])] * 2
    assert not list(folder.iterdir())


def test_one_local_worker_where_there_is_a_gpu(monkeypatch):
    assert sweep.default_workers() == CORES
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert sweep.default_workers() == 1


def test_two_sweeps_on_one_store(data, store):
    plans = [sweep.plan(GRID, data, store) for _ in range(2)]
    found = [None, None]

    def go(number):
        with ThreadPoolExecutor(2) as executor:
            engine = sweep.Engine(executor, 2)
            found[number] = sweep.run(plans[number], store, work=slow, engine=engine)

    threads = [threading.Thread(target=go, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results(found[0]) == results(found[1]) == expected(data)
    assert verify(store) == (RUNS, [])


def test_local_processes_divide_the_cores_and_read_what_they_are_sent(data, store):
    plan, values = sweep.plan(GRID, data, store), np.arange(1e5)
    fresh = Store(store.folder.with_name("fresh"))
    with sweep.local(2) as engine:
        records = sweep.run(plan, store, work=constant, engine=engine)
        others = sweep.run(plan, fresh, work=threads, values=values, engine=engine)
    assert results(records) == expected(data)
    alone = max(1, CORES // 2)
    assert len(others) == RUNS
    assert all(record.result == {"threads": alone, "sum": values.sum()} for record in others)


def test_an_error_ends_the_local_workers_at_once(data, store, monkeypatch):
    def full(record):
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "write", full)
    plan, started = sweep.plan(GRID, data, store), time.monotonic()
    with pytest.raises(StoreError, match="the disk is full"), sweep.local(2) as engine:
        sweep.run(plan, store, work=endless, engine=engine)
    assert time.monotonic() - started < 120


@pytest.mark.slow
def test_a_dask_worker_is_killed_in_mid_sweep(data, store):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        plan = sweep.plan(GRID, data, store)

        def kill_one():
            while len(list(store)) < 5:
                time.sleep(0.01)
            with distributed.Client(cluster) as client:
                victim = next(iter(client.run(os.getpid).values()))
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

        killed = []
        killer = threading.Thread(target=kill_one)
        killer.start()
        with sweep.dask(cluster.scheduler_address) as engine:
            records = sweep.run(plan, store, work=slow, engine=engine)
        killer.join()
    assert killed
    assert results(records) == expected(data)
    assert verify(store) == (RUNS, [])


@pytest.mark.slow
def test_a_run_that_kills_every_dask_worker_ends_the_sweep(data, store):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    patience = {"distributed.scheduler.allowed-failures": 0}
    with dask.config.set(patience), distributed.LocalCluster(**options, silence_logs=50) as cluster:
        died = pytest.raises(sweep.SweepFailed, match=r"a worker process died .* of 48, are safe")
        with sweep.dask(cluster.scheduler_address) as engine, died:
            sweep.run(sweep.plan(GRID, data, store), store, work=deadly, engine=engine)
    assert verify(store)[1] == []


def test_a_local_worker_that_dies_ends_the_sweep(data, store):
    died = pytest.raises(sweep.SweepFailed, match=r"a worker process died .* of 48, are safe")
    with died, sweep.local(2) as engine:
        sweep.run(sweep.plan(GRID, data, store), store, work=deadly, engine=engine)
    assert verify(store)[1] == []


# Advantages


@pytest.fixture(scope="module")
def thinned():
    """Clicks of which a quarter of the negatives are kept, as if they were no simulation."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((8000, 2)).astype(np.float32)
    eta = 1 / (1 + np.exp(3 - features[:, 0]))
    labels = (rng.random(8000) < eta).astype(np.uint8)
    kept = (labels == 1) | (rng.random(8000) < 0.25)
    arrays = Arrays(features[kept], labels[kept], None)
    part = Split(lambda: arrays, 0.25)
    made = Dataset(
        name="higgs",
        train=part,
        test=part,
        fingerprint="f" * 64,
        simulated=False,
        description="thinned",
        columns=("a", "b"),
        negatives_kept=0.25,
    )
    return made, eta


def test_advantages_are_those_before_thinning(thinned):
    data, eta = thinned
    grid = replace(GRID, eta={"epochs": 3, "learning_rate": 0.02})
    one = next(advantages.configurations(grid, data))
    assert one["estimand"] == "before thinning" and one["eta"]["source"] == "network"
    raw = advantages.estimated_eta(data, one["eta"], one["seed"])
    values = advantages.populations(data, raw, one["seed"])
    assert values[0].mean() == pytest.approx(data.train.labels.mean(), abs=0.02)
    assert values[1].mean() == pytest.approx(eta.mean(), abs=0.01)
    found = advantages.advantage_once(values, one, quality={"eta_auc": 0.7})
    # Clean labels: what a guess from eta gets wrong, in the data before thinning.
    assert found["additive"] == pytest.approx(np.minimum(eta, 1 - eta).mean(), abs=0.01)
    sampled = np.minimum(raw, 1 - raw).mean()
    assert found["additive_as_sampled"] == pytest.approx(sampled)
    assert found["additive"] < 0.6 * sampled
    assert found["estimand"] == "before thinning" and set(comparisons.MEASURES) <= set(found)


def test_without_thinning_there_is_one_population(data):
    one = next(advantages.configurations(GRID, data))
    assert one["estimand"] == "as sampled"
    assert np.array_equal(advantages.populations(data, data.train.eta, 1), [data.train.eta])


def test_eta_has_a_network_of_its_own_at_every_scale(thinned):
    data, _ = thinned
    for scale in SCALES:
        settings = next(advantages.configurations(scale_grid(scale), data))["eta"]["settings"]
        assert settings["epochs"] == ETA["epochs"] > 10
    changed = replace(scale_grid("smoke"), eta={"epochs": 3})
    settings = next(advantages.configurations(changed, data))["eta"]["settings"]
    assert settings["epochs"] == 3 and settings["batch_size"] == ETA["batch_size"]


def test_the_recipe_for_eta_is_in_the_key(thinned, store):
    data, _ = thinned
    keys = [
        set(advantages.plan(replace(GRID, eta={"epochs": epochs}), data, store).runs)
        for epochs in (3, 4)
    ]
    assert not keys[0] & keys[1]


def test_an_advantage_is_computed_without_the_data(data, store, monkeypatch):
    """Workers are sent the values of eta: to load the data would cost them time and memory."""

    def loaded(*source):
        raise AssertionError("an advantage loads no data")

    monkeypatch.setattr(runs, "_data", loaded)
    audits = advantages.plan(GRID, data, store)
    found = advantages.run(audits, store)
    assert len(found) == len(audits.runs) > 0


# The command, with real trainings


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A store filled by the command itself: real trainings of a linear model."""
    folder = tmp_path_factory.mktemp("swept")
    held = {
        "trials": 2,
        "train_rows": 300,
        "learning_rates": [0.01],
        "mechanisms": {"clean": {}, "RR": {"epsilon": [1]}, "LLP": {"bag_size": [4]}},
        "training": {"model": "linear", "epochs": 1},
    }
    (folder / "grid.yml").write_text(yaml.safe_dump(held))
    command = ["sweep", "--dataset", "higgs-like", "--grid", str(folder / "grid.yml")]
    command += ["--store", str(folder / "store"), "--workers", "1"]
    assert cli.main(command) == 0
    return folder, command


def test_the_command_prints_its_plan(swept, capsys):
    _, command = swept
    assert cli.main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "runs: 6, done: 6, to do: 0" in said and "advantages: 3, to do: 0" in said


def test_a_training_is_stored_with_all_that_made_it(swept):
    store = Store(swept[0] / "store")
    records = [store.read(name) for name in store]
    trained = [record for record in records if record.configuration["task"] == "train"]
    assert len(trained) == 6
    for record in trained:
        assert 0 < record.result["auc"] < 1 and record.result["log_loss"] > 0
        assert [point["epoch"] for point in record.result["curve"]] == [1]
        assert record.configuration["seed"] in (2023, 2024)
        assert {"python", "numpy", "torch", "labelaudit"} == set(record.made["versions"])
        assert record.made["device"].startswith("cuda" if torch.cuda.is_available() else "cpu")
        assert record.result["cpu_seconds"] > 0


def test_a_training_repeats_to_the_last_bit(swept):
    store = Store(swept[0] / "store")
    records = [store.read(name) for name in store]
    record = next(record for record in records if record.configuration["task"] == "train")
    again = sweep.train_once(
        sweep.load("higgs-like", replace(GRID, train_rows=300)), record.configuration
    )
    assert again["curve"] == record.result["curve"] and again["auc"] == record.result["auc"]


def test_a_training_has_known_numbers(swept):
    """Where this fails because training has changed, raise `SCHEMA`: stored results are stale."""
    store = Store(swept[0] / "store")
    records = [store.read(name) for name in store]
    found = {
        record.configuration["mechanism"]["kind"]: record.result["log_loss"]
        for record in records
        if record.configuration["task"] == "train" and record.configuration["seed"] == 2023
    }
    assert stores.SCHEMA == 1
    assert found == pytest.approx({"clean": 0.936355, "RR": 0.938370, "LLP": 0.948098}, rel=1e-4)


def test_advantages_are_exact_and_stored(swept):
    store = Store(swept[0] / "store")
    frame = comparisons.table(store.read(name) for name in store)
    data = sweep.load("higgs-like", replace(GRID, train_rows=300))
    eta = data.train.eta
    clean = frame[frame["kind"] == "clean"].iloc[0]
    assert clean["additive"] == pytest.approx(np.minimum(eta, 1 - eta).mean())
    assert clean["multiplicative"] == math.inf and clean["infinite_share"] == 1
    response = frame[frame["kind"] == "RR"].iloc[0]
    gain = np.maximum(np.minimum(eta, 1 - eta) - 1 / (1 + math.e), 0)
    assert response["additive"] == pytest.approx(gain.mean())
    assert response["multiplicative"] == pytest.approx(1) and response["infinite_share"] == 0
    assert set(frame["eta"]) == {"known"} and set(frame["estimand"]) == {"as sampled"}
    assert (frame["additive"] == frame["additive_as_sampled"]).all()
    assert frame["eta_auc"].iloc[0] == pytest.approx(roc_auc_score(data.train.labels, eta))


def test_infinite_fraction_against_enumeration():
    eta = np.random.default_rng(0).random((50, 3))
    eta[:10, 0], eta[5:15, 1] = 0.0, 1.0
    mechanism, revealed = LabelProportions(3), np.zeros_like(eta)
    for labels in itertools.product([0, 1], repeat=3):
        possible = np.where(labels, eta, 1 - eta).prod(axis=1) > 0
        found = posterior(eta[possible], mechanism, np.full(possible.sum(), sum(labels) / 3))
        certain = np.isin(found, (0.0, 1.0)) & ~np.isin(eta[possible], (0.0, 1.0))
        revealed[possible] += certain * np.where(labels, eta, 1 - eta).prod(axis=1)[possible, None]
    share = advantages.infinite_share(eta, mechanism)
    assert share == pytest.approx(revealed.mean())
    assert share == pytest.approx(1 - multiplicative_cdf(eta, mechanism, 1e300))
    assert advantages.infinite_share(eta, RandomizedResponse(1.0)) == 0


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_results_are_exported(swept, tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    store = ["--store", str(swept[0] / "store")]
    assert cli.main(["results", *store, "--export", str(path)]) == 0
    frame = pd.read_parquet(path) if suffix == "parquet" else pd.read_csv(path)
    assert len(frame) == 6
    wanted = {"auc", "log_loss", "validation_loss", "seed", "seconds", "additive", "multiplicative"}
    assert wanted <= set(frame.columns)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_full_disk_leaves_the_table_of_an_earlier_export(swept, tmp_path, capsys, suffix):
    path = tmp_path / f"table.{suffix}"
    path.write_text("earlier")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        status = cli.main(["results", "--store", str(swept[0] / "store"), "--export", str(path)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert status == 1
    assert str(path) in capsys.readouterr().err
    assert path.read_text() == "earlier"


def test_a_table_is_taken_into_a_fresh_store(data, store, tmp_path, capsys):
    """The last rates of a search are known only when its first results are in the store."""
    grid, held = tmp_path / "grid.yml", {**vars(SEARCH)}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in held.items()}
    grid.write_text(yaml.safe_dump(plain))
    records = sweep.complete(SEARCH, data, store, work=valley)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    command = ["results", "--grid", str(grid), "--store"]
    assert cli.main([*command, str(store.folder), "--export", str(first)]) == 0
    fresh = Store(tmp_path / "fresh")
    for count in (len(records), 0):  # the second time nothing is new
        assert cli.main([*command, str(fresh.folder), "--import", str(first)]) == 0
        said = capsys.readouterr().out
        assert f"higgs-like: {count} of the table's {len(records)} trainings are new" in said
    assert sweep.plan(SEARCH, data, fresh).to_do == []
    assert cli.main([*command, str(fresh.folder), "--export", str(second)]) == 0
    assert first.read_text() == second.read_text()
    taken = fresh.read(next(iter(fresh)))
    assert taken.made["table"].startswith("first.csv, sha256 ") and taken.result["curve"] == []


def test_only_the_rows_of_the_same_runs_are_taken(data, store, tmp_path):
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    frame = comparisons.table(store.read(name) for name in store)
    frame.loc[0, "fingerprint"], frame.loc[1, "seed"] = "0" * 12, 1
    frame.loc[2, "epochs"], frame.loc[3, "loss"] = 9, "squared"
    frame.loc[4, "learning_rate"] *= 1.001
    frame.to_csv(tmp_path / "table.csv", index=False)
    fresh = Store(tmp_path / "fresh")
    assert published.adopt(tmp_path / "table.csv", GRID, data, fresh) == RUNS - 5
    assert len(sweep.plan(GRID, data, fresh).to_do) == 5


def test_an_import_leaves_out_what_is_not_prepared(data, store, tmp_path, capsys, monkeypatch):
    sweep.run(sweep.plan(GRID, data, store), store, work=constant)
    frame = comparisons.table(store.read(name) for name in store)
    table, grid = tmp_path / "table.csv", tmp_path / "grid.yml"
    pd.concat([frame.assign(dataset="diabetes"), frame]).to_csv(table, index=False)
    grid.write_text("")
    monkeypatch.setattr(published, "read_grid", lambda path: GRID)
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "nothing"))
    assert published.adopt_all(table, grid, None, Store(tmp_path / "fresh")) == 0
    said = capsys.readouterr().out
    assert "diabetes: left out" in said and f"{RUNS} of the table's {RUNS} trainings" in said
    with pytest.raises(NotPrepared):
        published.adopt_all(table, grid, "diabetes", Store(tmp_path / "fresh"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read the table"),
        ("", "cannot read the table"),
        ("dataset,kind\n1,2\n", "is no table of results: it lacks bag_size"),
        ("twice", "has a training more than once"),
    ],
)
def test_a_bad_table_is_refused(text, said, tmp_path, capsys):
    path, grid = tmp_path / "table.csv", tmp_path / "grid.yml"
    grid.write_text("mechanisms: {clean: {}}")
    if text == "twice":
        columns = [*published.IDENTITY, *published.RESULT, "diverged"]
        text = f"{','.join(columns)}\n" + 2 * f"{','.join('1' for _ in columns)}\n"
    if text is not None:
        path.write_text(text)
    command = ["results", "--import", str(path), "--store", str(tmp_path / "store")]
    assert cli.main(command) == 2
    assert "--import goes with --grid FILE" in capsys.readouterr().err
    assert cli.main([*command, "--grid", str(grid)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_results_of_one_grid(swept, tmp_path, capsys):
    folder, _ = swept
    chosen = ["--dataset", "higgs-like", "--grid", str(folder / "grid.yml")]
    assert cli.main(["results", "--store", str(folder / "store"), *chosen]) == 0
    assert "9 results" in capsys.readouterr().out
    # Without a data set, those that the store has.
    assert cli.main(["results", "--store", str(folder / "store"), *chosen[2:]]) == 0
    assert "9 results" in capsys.readouterr().out


def test_results_of_data_that_there_are_none_of(swept, tmp_path, capsys):
    store = ["results", "--store", str(swept[0] / "store"), "--dataset"]
    with pytest.raises(SystemExit) as stop:
        cli.main([*store, "higs"])
    assert stop.value.code == 2 and "'higs'" in capsys.readouterr().err
    assert cli.main([*store, "fair", "--export", str(tmp_path / "table.csv")]) == 2
    assert "holds no trainings of fair to export" in capsys.readouterr().err


def test_a_dry_run_changes_nothing(swept, tmp_path, capsys):
    folder, command = swept
    store = Store(shutil.copytree(folder / "store", tmp_path / "store"))
    path = store.path(next(iter(store)))
    path.write_text("{")
    before = sorted(store.folder.rglob("*"))
    command = [*command, "--store", str(store.folder), "--dry-run"]
    assert cli.main(command) == 0
    assert f"damaged, to be set aside and run again: {path}" in capsys.readouterr().out
    assert sorted(store.folder.rglob("*")) == before and path.read_text() == "{"


def test_the_plan_says_where_batches_are_raised(tmp_path, capsys):
    (tmp_path / "grid.yml").write_text(
        "{train_rows: 300, mechanisms: {LLP: {bag_size: [4, 16]}}, training: {batch_size: 8}}"
    )
    command = ["sweep", "--dataset", "higgs-like", "--grid", str(tmp_path / "grid.yml")]
    assert cli.main([*command, "--store", str(tmp_path / "store"), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "batches of 8, larger where one must hold a larger bag: 16" in said
    assert "local workers" in said
    cluster = ["--engine", "dask", "--address", "tcp://127.0.0.1:1"]
    assert cli.main([*command, *cluster, "--store", str(tmp_path / "store"), "--dry-run"]) == 0
    assert "local workers" not in capsys.readouterr().out


def test_results_are_verified(swept, tmp_path, capsys):
    folder = shutil.copytree(swept[0] / "store", tmp_path / "store")
    assert cli.main(["results", "--store", str(folder), "--verify"]) == 0
    assert "9 results are sound, 0 are not" in capsys.readouterr().out
    store = Store(folder)
    path = store.path(next(iter(store)))
    path.write_text(path.read_text()[:-9])
    assert cli.main(["results", "--store", str(folder), "--verify"]) == 1
    heard = capsys.readouterr()
    assert "8 results are sound, 1 are not" in heard.out and str(path) in heard.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shard", "0/4"], "--shard must be I/N with I from 1 to N"),
        (["--shard", "5/4"], "--shard must be I/N"),
        (["--shard", "x"], "--shard must be I/N"),
        (["--engine", "dask"], "--engine dask and --address go together"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--scale", "smoke", "--grid", "g.yml"], "--scale and --grid exclude one another"),
    ],
)
def test_bad_options_are_refused(options, said, capsys, tmp_path):
    command = ["sweep", "--dataset", "higgs-like", "--store", str(tmp_path / "store")]
    assert cli.main([*command, *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_a_newer_store_ends_the_command(capsys, tmp_path):
    (tmp_path / "store.json").write_text('{"schema": 99}')
    command = ["sweep", "--dataset", "higgs-like", "--scale", "smoke", "--store", str(tmp_path)]
    assert cli.main(command) == 1
    assert "newer version of labelaudit (schema 99" in capsys.readouterr().err


def test_no_store_to_show(capsys, tmp_path):
    assert cli.main(["results", "--store", str(tmp_path / "none")]) == 1
    assert "there is no store at" in capsys.readouterr().err


def test_data_that_is_not_prepared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path))
    assert cli.main(["sweep", "--dataset", "higgs"]) == 1
    assert "is not prepared" in capsys.readouterr().err


# The scaling study


def test_the_scaling_study_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(runs.run, "__kwdefaults__", runs.run.__kwdefaults__ | {"work": constant})
    options = ["--store", str(tmp_path / "store"), "--export", str(tmp_path / "scaling.csv")]
    options += ["--trials", "2", "--losses", "squared", "easy_llp"]
    assert scaling.main(["--rows", "400", *options]) == 0
    first = pd.read_csv(tmp_path / "scaling.csv")
    # Clean labels have one loss, three mechanisms have two; three rates, two trials, two sets.
    assert len(first) == (1 + 3 * 2) * 3 * 2 * 2 and set(first["rows"]) == {400}
    assert set(first["eta"]) == {"known"} and first["worth"].notna().all()
    made = set(Store(tmp_path / "store"))
    assert scaling.main(["--rows", "400", *options]) == 0
    assert set(Store(tmp_path / "store")) == made


def test_a_size_is_added_to_a_table_in_place_of_its_older_rows(tmp_path):
    path = tmp_path / "scaling.csv"
    older = pd.DataFrame({"dataset": ["a", "a", "b"], "rows": [10, 1000, 10], "auc": [0.5] * 3})
    assert scaling.export(older, path) == 3
    newer = pd.DataFrame({"dataset": ["a", "a", "a"], "rows": [100, 10, 10], "auc": [0.7] * 3})
    assert scaling.export(newer, path) == 5
    written = pd.read_csv(path)
    assert written["rows"].tolist() == [10, 10, 10, 100, 1000]
    assert written["auc"].tolist() == [0.7, 0.7, 0.5, 0.7, 0.5]


def test_a_large_study_has_one_rate_and_few_passes():
    passes = {
        rows: scaling.study("kdd12-like", rows, 3, ["likelihood"]).training["epochs"]
        for rows in (10_000, 100_000, 1_000_000, 10_000_000)
    }
    assert list(passes.values()) == [12, 12, 3, 1]
    assert len(scaling.study("higgs-like", 10_000, 3, ["squared"]).learning_rates) == 3
    assert scaling.study("higgs-like", 1_000_000, 3, ["squared"]).learning_rates == (1e-3,)
