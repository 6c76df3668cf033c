"""The result store: found by what made it, complete or absent, safe for many writers."""

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from book.sweep.store import SCHEMA, Record, Store, key
from labelaudit.files import write_atomically
from sweep.conftest import records


def record(seed=0, **result):
    configuration = {"task": "train", "seed": seed}
    result = {"auc": 0.5, **result}
    return Record(configuration=configuration, data="data-1", result=result, made={"by": "test"})


def test_a_file_is_whole_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """What Python still holds back would be missing after a power cut."""
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    write_atomically(tmp_path / "a.txt", "four")
    write_atomically(tmp_path / "b.bin", lambda file: file.write(b"by a function"))
    assert sizes == [4, 13]


def test_a_record_comes_back_as_it_was(store):
    written = record(infinite=float("inf"), curve=[{"epoch": 1, "auc": 0.51}])
    name = store.write(written)
    assert store.read(name) == written
    assert list(store) == [name] and name in store


def test_nothing_is_created_by_looking(store):
    assert store.read("ab" * 32) is None
    assert list(store) == []
    assert not store.folder.exists()


def test_a_changed_configuration_schema_or_data_has_another_name():
    names = {
        key({"a": 1}, "data"),
        key({"a": 2}, "data"),
        key({"a": 1.0}, "data"),
        key({"a": 1}, "other"),
        key({"a": 1}, "data", SCHEMA + 1),
    }
    assert len(names) == 5
    assert key({"a": 1, "b": 2}, "data") == key({"b": 2, "a": 1}, "data")


def test_an_earlier_result_stays(store):
    name = store.write(record(auc=0.6))
    store.write(record(auc=0.7))
    assert store.read(name).result["auc"] == 0.6


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"0.5", b"0.9"),
        lambda content: b"",
        lambda content: b"[]",
        lambda content: json.dumps({"schema": 1}).encode(),
        lambda content: b"\xff\xfe\x00",
    ],
)
def test_a_damaged_file_is_no_result_and_is_set_aside(store, damage):
    name = store.write(record())
    path = store.path(name)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    assert store.read(name) is None and name in store
    store.set_aside(name)
    assert name not in store
    assert [path.read_bytes() for path in store.folder.rglob("*.damaged")] == [damaged]


def test_a_result_under_a_wrong_name(store):
    name, other = store.write(record(1)), store.write(record(2))
    shutil.copy(store.path(name), store.path(other))
    assert store.read(other) is None


def test_one_damaged_file_never_replaces_another(store):
    name = store.write(record())
    for text in ("half", "other half"):
        store.path(name).write_text(text)
        store.set_aside(name)
        store.write(record())
    aside = [path.read_text() for path in store.folder.rglob("*.damaged")]
    assert sorted(aside) == ["half", "other half"] and len(records(store)) == 1


def test_what_another_sweep_has_run_again_or_set_aside_stays(store):
    name = store.write(record())
    store.set_aside(name)
    assert store.read(name) == record()
    store.path(name).unlink()
    store.set_aside(name)
    assert name not in store


def test_results_of_another_schema_are_never_found(store):
    for schema in (SCHEMA - 1, SCHEMA + 1):
        store.write(replace(record(), schema=schema))
    assert store.read(record().key) is None and len(records(store)) == 2


def test_stores_merge_by_copying(store, tmp_path):
    other = Store(tmp_path / "other")
    names = {store.write(record(1)), other.write(record(1)), other.write(record(2))}
    shutil.copytree(other.folder, store.folder, dirs_exist_ok=True)
    assert set(store) == names and len(records(store)) == 2


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_loses_nothing(store, monkeypatch, step):
    name = store.write(record(1))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left on device"):
        store.write(record(2))
    monkeypatch.undo()
    assert [record.key for record in records(store)] == [name]
    assert not [path for path in store.folder.rglob(".*") if path.is_file()]


def test_what_a_killed_writer_leaves_is_no_result(store):
    name = store.write(record())
    path = store.path(name)
    path.with_name(f".{path.name}.host.1.2.json").write_text('{"half":')
    assert list(store) == [name]


def test_many_writers_of_the_same_results(store):
    def write_all(_):
        for seed in range(30):
            store.write(record(seed))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_all, range(8)))
    assert len(records(store)) == 30
