"""A grid whose runs take no time, its data, and a store that the command has filled."""

import pytest
import yaml

from book import cli, sweep
from book.sweep.grid import Grid
from book.sweep.store import Store, key
from sweep.work import constant

pytest.importorskip("torch", reason="sweeps train with torch: in a clone: pip install '.[train]'")

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


@pytest.fixture(scope="session")
def data():
    return sweep.load("higgs-like", GRID)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """A folder with a grid and the store that the command has filled by training linear models."""
    folder = tmp_path_factory.mktemp("swept")
    entries = {
        "trials": 2,
        "train_rows": 300,
        "learning_rates": [0.01],
        "mechanisms": {"clean": {}, "RR": {"epsilon": [1]}, "LLP": {"bag_size": [4]}},
        "training": {"model": "linear", "epochs": 1},
    }
    (folder / "grid.yml").write_text(yaml.safe_dump(entries))
    command = ["sweep", "--dataset", "higgs-like", "--grid", str(folder / "grid.yml")]
    command += ["--store", str(folder / "store"), "--workers", "1"]
    assert cli.main(command) == 0
    return folder, command


def records(store):
    """All records; none may be damaged."""
    stored = [store.read(name) for name in store]
    assert None not in stored
    return stored


def found(store):
    """What a sweep found by key, times aside."""
    return {record.key: (record.configuration, record.result) for record in records(store)}


def expected(data, grid=GRID, work=constant):
    """What a sweep of the grid finds."""
    runs = sweep.configurations(grid, data)
    return {key(run, data.fingerprint): (run, work(data, run)) for run in runs}
