"""`labelbook sweep` and `labelbook results`, with real trainings; the scaling study."""

import functools
import resource
import shutil
from dataclasses import replace

import pandas as pd
import pytest
import yaml

from book import cli, sweep
from book.sweep import results, runs, scaling
from book.sweep import store as stores
from book.sweep.store import Store
from sweep.conftest import GRID, RUNS, records
from sweep.test_plan import SEARCH
from sweep.work import constant, valley

torch = pytest.importorskip("torch")


def trainings(folder):
    every = records(Store(folder / "store"))
    return [record for record in every if record.configuration["task"] == "train"]


def test_the_command_prints_its_plan(swept, capsys):
    assert cli.main([*swept[1], "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "runs: 6, done: 6, to do: 0" in printed
    assert "advantages: 3, done: 3, to do: 0" in printed


def test_a_dry_run_changes_nothing(swept, tmp_path, capsys):
    folder, command = swept
    store = Store(shutil.copytree(folder / "store", tmp_path / "store"))
    path = store.path(trainings(folder)[0].key)
    path.write_text("{")
    before = sorted(store.folder.rglob("*"))
    assert cli.main([*command, "--store", str(store.folder), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert f"damaged, to be set aside and run again: {path}" in printed
    assert "hours of CPU (from 5 runs in the store)" in printed
    assert sorted(store.folder.rglob("*")) == before and path.read_text() == "{"


def test_a_training_is_stored_with_all_that_made_it(swept):
    assert len(trainings(swept[0])) == 6
    for record in trainings(swept[0]):
        assert 0 < record.result["auc"] < 1 and record.result["log_loss"] > 0
        assert [point["epoch"] for point in record.result["curve"]] == [1]
        assert record.configuration["seed"] in (2023, 2024)
        assert {"python", "numpy", "torch", "labelaudit"} == set(record.made["versions"])
        assert record.made["device"].startswith("cuda" if torch.cuda.is_available() else "cpu")
        assert record.result["cpu_seconds"] > 0


def test_a_training_repeats_to_the_last_bit(swept):
    record = trainings(swept[0])[0]
    data = sweep.load("higgs-like", replace(GRID, train_rows=300))
    again = runs.train_once(data, record.configuration)
    assert again["curve"] == record.result["curve"] and again["auc"] == record.result["auc"]


def test_a_training_has_known_numbers(swept):
    """Where this fails because training has changed, raise `SCHEMA`: stored results are stale."""
    losses = {
        record.configuration["mechanism"]["kind"]: record.result["log_loss"]
        for record in trainings(swept[0])
        if record.configuration["seed"] == 2023
    }
    assert stores.SCHEMA == 1
    assert losses == pytest.approx({"clean": 0.936355, "RR": 0.938370, "LLP": 0.948098}, rel=1e-4)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_results_are_exported(swept, tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    assert cli.main(["results", "--store", str(swept[0] / "store"), "--export", str(path)]) == 0
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
    grid, entries = tmp_path / "grid.yml", vars(SEARCH)
    plain = {name: list(v) if isinstance(v, tuple) else v for name, v in entries.items()}
    grid.write_text(yaml.safe_dump(plain))
    count = len(sweep.complete(SEARCH, data, store, work=valley))
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    command = ["results", "--grid", str(grid), "--store"]
    assert cli.main([*command, str(store.folder), "--export", str(first)]) == 0
    fresh = Store(tmp_path / "fresh")
    for new in (count, 0):  # the second time nothing is new
        assert cli.main([*command, str(fresh.folder), "--import", str(first)]) == 0
        assert f"{new} of the table's {count} trainings are new" in capsys.readouterr().out
    assert list(fresh) == list(store)
    assert (sweep.plan(SEARCH, data, fresh)["state"] == "done").all()
    assert cli.main([*command, str(fresh.folder), "--export", str(second)]) == 0
    assert first.read_text() == second.read_text()
    taken = records(fresh)[0]
    assert taken.made["table"].startswith("first.csv, sha256 ") and taken.result["curve"] == []


def test_only_the_rows_of_the_same_runs_are_hits(data, store, tmp_path):
    sweep.complete(GRID, data, store, work=constant)
    frame = results.results_frame(records(store))
    frame.loc[0, "fingerprint"], frame.loc[1, "seed"] = "0" * 12, 1
    frame.loc[2, "epochs"], frame.loc[3, "loss"] = 9, "squared"
    frame.loc[4, "learning_rate"] *= 1.001
    frame.to_csv(tmp_path / "table.csv", index=False)
    fresh = Store(tmp_path / "fresh")
    assert results.adopt(tmp_path / "table.csv", GRID, data, fresh) == RUNS - 1
    assert (sweep.plan(GRID, data, fresh)["state"] == "missing").sum() == 5


def test_an_import_leaves_out_what_is_not_prepared(swept, tmp_path, capsys, monkeypatch):
    frame = results.results_frame(records(Store(swept[0] / "store")))
    table = tmp_path / "table.csv"
    pd.concat([frame.assign(dataset="diabetes"), frame]).to_csv(table, index=False)
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "nothing"))
    command = ["results", "--import", str(table), "--grid", str(swept[0] / "grid.yml")]
    assert cli.main([*command, "--store", str(tmp_path / "fresh")]) == 0
    printed = capsys.readouterr()
    assert "diabetes: left out" in printed.err and "6 of the table's 6 trainings" in printed.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read the table"),
        ("", "cannot read the table"),
        ("dataset,kind\n1,2\n", "is no table of results: it lacks bag_size"),
        ("twice", "has a training more than once"),
    ],
)
def test_a_bad_table_is_rejected(text, said, tmp_path, capsys):
    path, grid = tmp_path / "table.csv", tmp_path / "grid.yml"
    grid.write_text("mechanisms: {clean: {}}")
    if text == "twice":
        row = ",".join("1" for _ in results.COLUMNS)
        text = f"{','.join(results.COLUMNS)}\n{row}\n{row}\n"
    if text is not None:
        path.write_text(text)
    command = ["results", "--import", str(path), "--store", str(tmp_path / "store")]
    assert cli.main(command) == 2
    assert "--import goes with --grid FILE" in capsys.readouterr().err
    assert cli.main([*command, "--grid", str(grid)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_results_of_one_grid_and_one_data_set(swept, tmp_path, capsys):
    store, grid = ["--store", str(swept[0] / "store")], ["--grid", str(swept[0] / "grid.yml")]
    for chosen in (grid, [*grid, "--dataset", "higgs-like"]):
        assert cli.main(["results", *store, *chosen]) == 0
        printed = capsys.readouterr().out
        assert "higgs-like: 6 of 6 runs" in printed and "9 results" in printed
    with pytest.raises(SystemExit) as stop:
        cli.main(["results", *store, "--dataset", "higs"])
    assert stop.value.code == 2 and "'higs'" in capsys.readouterr().err
    export = ["--dataset", "fair", "--export", str(tmp_path / "table.csv")]
    assert cli.main(["results", *store, *export]) == 2
    assert "holds no such trainings to export" in capsys.readouterr().err


def test_results_are_verified(swept, tmp_path, capsys):
    folder = shutil.copytree(swept[0] / "store", tmp_path / "store")
    assert cli.main(["results", "--store", str(folder), "--verify"]) == 0
    assert "9 results are sound, 0 are not" in capsys.readouterr().out
    store = Store(folder)
    path = store.path(next(iter(store)))
    path.write_text(path.read_text()[:-9])
    assert cli.main(["results", "--store", str(folder), "--verify"]) == 1
    printed = capsys.readouterr()
    assert "8 results are sound, 1 are not" in printed.out and str(path) in printed.err


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
def test_bad_options_are_rejected(options, said, capsys, tmp_path):
    command = ["sweep", "--dataset", "higgs-like", "--store", str(tmp_path / "store")]
    assert cli.main([*command, *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_a_store_that_cannot_be_written_is_an_error_before_any_work(swept, capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert cli.main([*swept[1], "--store", str(tmp_path / "file" / "store")]) == 1
    assert "Not a directory" in capsys.readouterr().err
    assert cli.main(["results", "--store", str(tmp_path / "none")]) == 2
    assert "there is no store at" in capsys.readouterr().err


def test_data_that_is_not_prepared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path))
    assert cli.main(["sweep", "--dataset", "higgs"]) == 1
    assert "is not prepared" in capsys.readouterr().err


def test_the_scaling_study_goes_on_where_it_was(tmp_path, monkeypatch):
    quick = functools.partial(sweep.complete, work=constant)
    monkeypatch.setattr(scaling.sweep, "complete", quick)
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
    scaling.export(older, path)
    newer = pd.DataFrame({"dataset": ["a", "a", "a"], "rows": [100, 10, 10], "auc": [0.7] * 3})
    scaling.export(newer, path)
    written = pd.read_csv(path)
    assert written["rows"].tolist() == [10, 10, 10, 100, 1000]
    assert written["auc"].tolist() == [0.7, 0.7, 0.5, 0.7, 0.5]


def test_a_large_study_has_one_rate_and_few_passes():
    sizes = (10_000, 100_000, 1_000_000, 10_000_000)
    grids = [scaling.study("kdd12-like", rows, 3, ["likelihood"]) for rows in sizes]
    assert [grid.training["epochs"] for grid in grids] == [12, 12, 3, 1]
    assert [len(grid.learning_rates) for grid in grids] == [3, 1, 1, 1]
    assert grids[-1].learning_rates == (1e-3,)
