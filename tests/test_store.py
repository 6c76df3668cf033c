"""The result store: found by what made it, complete or absent, safe for many writers."""

import dataclasses
import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from book.sweep import store as stores
from book.sweep.store import (
    SCHEMA,
    Damaged,
    Record,
    Store,
    StoreError,
    key,
    verify,
)
from labelaudit.files import write_atomically


def record(seed=0, **result):
    return Record({"task": "train", "seed": seed}, "data-1", {"auc": 0.5, **result}, {"by": "test"})


def test_a_file_is_whole_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """What Python still holds back would be missing after a power cut."""
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    write_atomically(tmp_path / "a.txt", "four")
    write_atomically(tmp_path / "b.bin", lambda file: file.write(b"by a function"))
    assert sizes == [4, 13]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_record_comes_back_as_it_was(store):
    written = record(infinite=float("inf"), curve=[{"epoch": 1, "auc": 0.51}])
    name = store.write(written)
    assert store.read(name) == written
    assert list(store) == [name] and name in store
    assert verify(store) == (1, [])


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
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.5", "0.9"),
        lambda text: "",
        lambda text: "[]",
        lambda text: json.dumps({"schema": 1}),
    ],
)
def test_damage_is_noticed(store, damage):
    name = store.write(record())
    path = store.path(name)
    path.write_text(damage(path.read_text()))
    with pytest.raises(Damaged, match=name):
        store.read(name)
    sound, wrong = verify(store)
    assert sound == 0 and len(wrong) == 1 and str(path) in wrong[0]


def test_bytes_that_are_no_text(store):
    name = store.write(record())
    store.path(name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Damaged, match="not text"):
        store.read(name)


def test_a_result_under_a_wrong_name(store):
    name, other = store.write(record(1)), store.write(record(2))
    shutil.copy(store.path(name), store.path(other))
    with pytest.raises(Damaged, match=f"holds the result {name[:12]}"):
        store.read(other)


def test_a_damaged_file_is_set_aside_not_lost(store):
    name = store.write(record())
    store.path(name).write_text("half")
    assert store.set_aside(name).read_text() == "half"
    assert name not in store and verify(store) == (0, [])


def test_one_damaged_file_never_replaces_another(store):
    name = store.write(record())
    for text in ("half", "other half"):
        store.path(name).write_text(text)
        store.set_aside(name)
        store.write(record())
    kept = [path.read_text() for path in store.folder.rglob("*.damaged")]
    assert sorted(kept) == ["half", "other half"] and verify(store) == (1, [])


def test_what_another_sweep_has_run_again_stays(store):
    name = store.write(record())
    assert store.set_aside(name) is None and name in store
    store.path(name).unlink()
    assert store.set_aside(name) is None


def test_a_damaged_file_that_vanishes_meanwhile(store, monkeypatch):
    name = store.write(record())
    store.path(name).write_text("half")

    def quicker(source, target):
        os.remove(source)
        raise FileNotFoundError(source)

    monkeypatch.setattr(stores.os, "replace", quicker)
    assert store.set_aside(name) is None


def test_a_newer_store_is_refused(store):
    store.write(record())
    (store.folder / "store.json").write_text(json.dumps({"schema": SCHEMA + 1}))
    with pytest.raises(StoreError, match=f"newer version.*schema {SCHEMA + 1}"):
        Store(store.folder)


def test_a_newer_result_among_ours_is_refused(store):
    newer = dataclasses.replace(record(), schema=SCHEMA + 1)
    name = store.write(newer)
    with pytest.raises(StoreError, match="newer version"):
        store.read(name)
    assert "newer version" in verify(store)[1][0]


def test_an_older_result_is_never_found(store):
    old = dataclasses.replace(record(), schema=SCHEMA - 1)
    store.write(old)
    assert store.read(record().key) is None
    assert verify(store) == (1, [])


def test_a_damaged_marker_is_named(store):
    store.write(record())
    (store.folder / "store.json").write_text("{")
    with pytest.raises(StoreError, match="damaged; remove it"):
        Store(store.folder)


def test_stores_merge_by_copying(store, tmp_path):
    other = Store(tmp_path / "other")
    names = {store.write(record(1)), other.write(record(1)), other.write(record(2))}
    shutil.copytree(other.folder, store.folder, dirs_exist_ok=True)
    assert set(store) == names and verify(store) == (2, [])


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_loses_nothing(store, monkeypatch, step):
    kept = store.write(record(1))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stores.os, step, full)
    with pytest.raises(StoreError, match=r"No space left on device.*is safe"):
        store.write(record(2))
    monkeypatch.undo()
    assert verify(store) == (1, []) and list(store) == [kept]
    assert not [path for path in store.folder.rglob(".*") if path.is_file()]


def test_what_a_killed_writer_leaves_is_no_result(store):
    name = store.write(record())
    path = store.path(name)
    path.with_name(f".{path.name}.host.1.2").write_text('{"half":')
    assert list(store) == [name] and verify(store) == (1, [])


def test_many_writers_of_the_same_results(store):
    def write_all(_):
        for seed in range(30):
            store.write(record(seed))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_all, range(8)))
    assert verify(store) == (30, [])


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    nowhere = Store(tmp_path / "file" / "store")
    assert nowhere.read(record().key) is None and list(nowhere) == []
    for attempt in (nowhere.claim, lambda: nowhere.write(record())):
        with pytest.raises(StoreError, match=r"cannot write to .*store \(Not a directory\)"):
            attempt()
    assert os.listdir(tmp_path) == ["file"]
