"""Where runs take place, and that nothing is lost whatever dies."""

import contextlib
import errno
import importlib
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from dataclasses import replace

import joblib
import numpy as np
import pytest
from tqdm import tqdm

from book import cli, sweep
from book.sweep import runs
from book.sweep.store import Store
from sweep.conftest import GRID, RUNS, expected, found, records
from sweep.test_plan import FOUND, SEARCH, searched
from sweep.work import constant, deadly, endless, failing, slow, threads, valley

torch = pytest.importorskip("torch")
training = importlib.import_module("labelaudit.learning.training")


def test_a_failed_run_does_not_stop_the_others(data, store):
    with pytest.raises(sweep.SweepFailed, match=r"12 of 48 runs failed; .*out of memory") as raised:
        sweep.complete(GRID, data, store, work=failing)
    assert raised.value.status == 1
    assert len(records(store)) == 36


def test_a_full_disk_stops_the_sweep_and_keeps_the_rest(data, store, monkeypatch):
    written, replace_file = [], os.replace

    def filling(source, target):
        if len(written) >= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(target)
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", filling)
    with pytest.raises(OSError, match="No space left on device"):
        sweep.complete(GRID, data, store, work=constant)
    monkeypatch.undo()
    assert len(records(store)) == 10
    sweep.complete(GRID, data, store, work=constant)
    assert found(store) == expected(data)


def test_a_workers_data_must_be_the_sweeps(data, store):
    with pytest.raises(sweep.SweepFailed, match="this worker's higgs-like is not the sweep's"):
        sweep.complete(GRID, replace(data, fingerprint="0" * 64), store, work=constant)


def test_local_processes_divide_the_cores_and_read_what_they_are_sent(data, store):
    values, engine = np.arange(1e6), sweep.local(2)
    sweep.complete(GRID, data, store, work=constant, engine=engine)
    assert found(store) == expected(data)
    other = Store(store.folder.with_name("other"))
    planned = sweep.plan(GRID, data, other)
    runs.run(planned, data, other, work=threads, source=values, engine=engine)
    alone = max(1, joblib.cpu_count() // 2)
    read = [record.result for record in records(other)]
    assert read == [{"threads": alone, "sum": values.sum()}] * RUNS


def test_one_local_worker_where_there_is_a_gpu(monkeypatch):
    assert sweep.local().args == (joblib.cpu_count(),)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert sweep.local().args == (1,)


def test_a_local_worker_that_dies_ends_the_sweep(data, store):
    with pytest.raises(sweep.SweepFailed, match=r"a worker process died .* are safe"):
        sweep.complete(GRID, data, store, work=deadly, engine=sweep.local(2))
    assert set(found(store)) <= set(expected(data))
    sweep.complete(GRID, data, store, work=constant, engine=sweep.local(2))
    assert found(store) == expected(data)


@pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
def test_an_error_or_an_interruption_ends_the_local_workers_at_once(
    data, store, monkeypatch, error, recwarn
):
    def stop(record):
        raise error

    monkeypatch.setattr(store, "write", stop)
    started = time.monotonic()
    with pytest.raises(type(error)):
        sweep.complete(GRID, data, store, work=endless, engine=sweep.local(2))
    assert time.monotonic() - started < 120
    assert not [warning for warning in recwarn if "joblib" in warning.filename]


def test_two_sweeps_on_one_store(data, store):
    failures = []

    def go():
        try:
            sweep.complete(GRID, data, store, work=slow)
        except Exception as error:
            failures.append(error)

    both = [threading.Thread(target=go) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert failures == [] and found(store) == expected(data)


def killable(grid, folder, work, workers):
    """A sweep in a process, and a session, of its own, so that it can be killed."""
    os.setsid()
    # A forked child shares tqdm's lock; killed while it holds it, it would block its parent.
    tqdm.set_lock(threading.RLock())
    data = sweep.load("higgs-like", grid)
    sweep.complete(grid, data, Store(folder), work=work, engine=sweep.local(workers))


def test_a_search_that_is_killed_goes_on(data, store):
    fork = multiprocessing.get_context("fork")
    for enough in (3, 20):
        process = fork.Process(target=killable, args=(SEARCH, store.folder, valley, 1))
        process.start()
        while len(list(store)) < enough and process.is_alive():
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert len(records(store)) >= 3
    sweep.complete(SEARCH, data, store, work=valley)
    assert searched(store) == FOUND


@pytest.mark.slow
def test_killed_ten_times_the_results_are_the_same(data, store):
    rng, fork = random.Random(7), multiprocessing.get_context("fork")
    interrupted = 0
    for _ in range(10):
        process = fork.Process(target=killable, args=(GRID, store.folder, slow, 1))
        process.start()
        time.sleep(rng.uniform(0.02, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        interrupted += process.exitcode == -signal.SIGKILL
        assert len(records(store)) <= RUNS
    assert interrupted >= 3
    sweep.complete(GRID, data, store, work=slow)
    assert found(store) == expected(data)


@pytest.mark.slow
def test_killed_trainings_leave_the_same_results_and_no_worker(data, store):
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=killable, args=(GRID, store.folder, runs.train_once, 2))
    process.start()
    while len(list(store)) < 3 and process.is_alive():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL and 3 <= len(records(store)) < RUNS
    started = time.monotonic()
    while _members(process.pid) and time.monotonic() - started < 60:
        time.sleep(0.2)
    assert _members(process.pid) == []
    fresh = Store(store.folder.with_name("fresh"))
    curves = []
    for place in (store, fresh):
        sweep.complete(GRID, data, place)
        curves.append({name: result["curve"] for name, (_, result) in found(place).items()})
    assert curves[0] == curves[1] and len(curves[0]) == RUNS


def _members(session):
    """The processes of a session that are still at work."""
    import psutil

    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process.name())
    return alive


def test_a_long_training_goes_on_from_its_checkpoint(data, store, tmp_path, monkeypatch):
    grid = replace(
        GRID,
        mechanisms={"RR": {"epsilon": [1]}},
        learning_rates=(1e-3,),
        trials=1,
        training={"model": "linear", "epochs": 3},
    )
    planned, folder = sweep.plan(grid, data, store), tmp_path / "checkpoints"
    configuration = json.loads(planned["configuration"].iloc[0])
    ended = training._end_epoch

    def killed(run):
        ended(run)
        if run.state.epoch == 3:
            run.save()
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "_end_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.train_once(data, configuration, checkpoints=folder)
    assert [path.name for path in folder.iterdir()] == [f"{planned.index[0]}.pt"]
    began = []
    monkeypatch.setattr(training, "_end_epoch", lambda run: (began.append(1), ended(run)))
    sweep.complete(grid, data, store, checkpoints=folder)
    assert len(began) == 1 and list(folder.iterdir()) == []
    monkeypatch.setattr(training, "_end_epoch", ended)
    (record,) = records(store)
    assert record.result["curve"] == runs.train_once(data, configuration)["curve"]


def test_two_sweeps_that_share_checkpoints(data, store, tmp_path, monkeypatch):
    """Neither takes away what the other one writes or reads."""
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr(training, "CHECK_EVERY", 1)
    grid = replace(GRID, training={"model": "linear", "epochs": 6})
    folder, failures = tmp_path / "checkpoints", []

    def go(place):
        try:
            sweep.complete(grid, data, place, checkpoints=folder)
        except Exception as error:
            failures.append(error)

    places = [store, Store(store.folder.with_name("other"))]
    both = [threading.Thread(target=go, args=(place,)) for place in places]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert not failures and not list(folder.iterdir())
    assert [len(records(place)) for place in places] == [RUNS] * 2


@pytest.mark.slow
def test_dask_workers_that_are_killed(data, store):
    """One worker is no loss; a run that kills every worker it is given to ends the sweep."""
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    killed = []
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
    ):

        def kill_one():
            while len(list(store)) < 5:
                time.sleep(0.01)
            with distributed.Client(cluster) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        with sweep.dask(cluster.scheduler_address) as engine:
            sweep.complete(GRID, data, store, work=slow, engine=engine)
            killer.join()
            assert killed and found(store) == expected(data)
            other = Store(store.folder.with_name("other"))
            values, planned = np.arange(1e6), sweep.plan(GRID, data, other)
            runs.run(planned, data, other, work=threads, source=values, engine=engine)
            assert {record.result["sum"] for record in records(other)} == {values.sum()}
            last = Store(store.folder.with_name("last"))
            with pytest.raises(sweep.SweepFailed, match=r"a worker process died .* are safe"):
                sweep.complete(GRID, data, last, work=deadly, engine=engine)
    assert set(found(last)) <= set(expected(data))


def test_an_unreachable_scheduler_is_an_error_before_any_work(capsys, tmp_path, monkeypatch):
    address, connect = "tcp://127.0.0.1:1", sweep.dask
    monkeypatch.setattr(sweep, "dask", lambda address: connect(address, timeout=1))
    command = ["sweep", "--dataset", "higgs-like", "--scale", "smoke", "--store", str(tmp_path)]
    started = time.monotonic()
    assert cli.main([*command, "--engine", "dask", "--address", address]) == 2
    assert time.monotonic() - started < 30
    assert f"no Dask scheduler answers at {address}" in capsys.readouterr().err
    assert list(Store(tmp_path)) == []
