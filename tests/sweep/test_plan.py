"""Plans: what is done, what is left, shards, the search for a learning rate."""

from dataclasses import replace

import numpy as np
import pytest

from book import sweep
from book.sweep import runs
from sweep.conftest import GRID, RUNS, expected, found
from sweep.work import constant, failing, valley

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
FOUND = {(epsilon, loss): rates for epsilon in (0.5, 1.0) for loss, rates in RATES.items()}
FOUND[None, "cross_entropy"] = RATES["cross_entropy"]


def to_do(planned):
    return list(planned.index[planned["state"] != "done"])


def test_everything_is_done_once(data, store):
    sweep.complete(GRID, data, store, work=constant)
    assert found(store) == expected(data)
    # A hit is never run: this work would fail.
    again = sweep.complete(GRID, data, store, work=failing)
    assert to_do(again) == [] and len(again) == RUNS


def test_a_change_is_never_a_hit(data, store):
    sweep.complete(GRID, data, store, work=constant)
    more_rows = replace(GRID, train_rows=401)
    epochs = replace(GRID, training={"model": "linear", "epochs": 2})
    assert len(to_do(sweep.plan(more_rows, sweep.load("higgs-like", more_rows), store))) == RUNS
    assert len(to_do(sweep.plan(replace(GRID, seed=1), data, store))) == RUNS
    assert len(to_do(sweep.plan(epochs, data, store))) == RUNS
    # A larger grid keeps what there is.
    assert len(to_do(sweep.plan(replace(GRID, trials=5), data, store))) == RUNS // 4


def test_a_damaged_result_is_run_again(data, store):
    sweep.complete(GRID, data, store, work=constant)
    name = next(iter(store))
    store.path(name).write_text("{")
    planned = sweep.plan(GRID, data, store)
    assert to_do(planned) == [name] and planned.at[name, "state"] == "damaged"
    assert store.path(name).read_text() == "{"  # a plan changes nothing
    sweep.complete(GRID, data, store, work=constant)
    assert found(store) == expected(data)
    assert [path.read_text() for path in store.folder.rglob("*.damaged")] == ["{"]


@pytest.mark.parametrize("parts", [1, 3, 7, 100])
def test_shards_are_equal_parts_of_the_whole(data, store, parts):
    shards = [sweep.plan(GRID, data, store, (part + 1, parts)) for part in range(parts)]
    assert sorted(name for shard in shards for name in shard.index) == sorted(expected(data))
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_shards_run_apart_make_the_whole_table(data, store):
    for part in (2, 1, 3):
        assert len(sweep.complete(GRID, data, store, shard=(part, 3), work=constant)) == RUNS // 3
    assert found(store) == expected(data)


def searched(store):
    """The rates of every setting, each with all trials."""
    rates = {}
    for run, _ in found(store).values():
        setting = run["mechanism"].get("epsilon"), run["settings"]["loss"]
        rates.setdefault(setting, []).append(run["settings"]["learning_rate"])
    assert all(tried.count(rate) == 2 for tried in rates.values() for rate in tried)
    return {setting: sorted(set(tried)) for setting, tried in rates.items()}


@pytest.mark.parametrize("parts", [1, 3, 20])
def test_a_search_goes_on_until_the_best_is_inside_or_at_the_limits(data, store, parts):
    assert len(sweep.plan(SEARCH, data, store)) == len(SEARCH)
    for part in range(1, parts + 1):
        sweep.complete(SEARCH, data, store, shard=(part, parts), work=valley)
    assert searched(store) == FOUND
    # Once more: nothing is run, for this work would fail.
    assert len(sweep.complete(SEARCH, data, store, work=failing)) == len(list(store))


def test_a_further_rate_waits_for_every_trial(data, store):
    planned = sweep.plan(SEARCH, data, store)
    last = planned.index[planned["setting"].str.contains("squared")][0]
    some = planned.drop(last)
    source = ("higgs-like", SEARCH.train_rows, data.fingerprint)
    runs.run(some, data, store, work=valley, source=source)
    again = sweep.plan(SEARCH, data, store)
    of_it = again[again["setting"] == planned.at[last, "setting"]]
    assert set(of_it["learning_rate"]) == set(SEARCH.learning_rates) and last in to_do(of_it)
    assert len(again) > len(planned)  # others go on


def test_the_first_trial_and_the_middle_rate_come_first(data, store):
    order = []

    def noted(data, run):
        order.append((run["trial"], run["settings"]["learning_rate"]))
        return constant(data, run)

    sweep.complete(replace(SEARCH, rate_limits=None), data, store, work=noted)
    assert [trial for trial, _ in order] == [0] * 21 + [1] * 21
    assert {rate for _, rate in order[:7]} == {rate for _, rate in order[21:28]} == {1e-3}


@pytest.mark.parametrize("loss", [{}, {"validation_loss": None}, {"validation_loss": np.nan}])
def test_a_run_without_a_loss_is_the_worst(data, store, loss):
    def lost(data, run):
        result = constant(data, run)
        del result["validation_loss"]
        return result | loss

    assert (sweep.complete(GRID, data, store, work=lost)["loss"] == np.inf).all()
