"""Preparing Higgs and KDD12: every layout, every kind of damage, a kill at any moment."""

import bz2
import contextlib
import errno
import gzip
import json
import lzma
import os
import random
import re
import signal
import time

import numpy as np
import pyarrow
import pytest
from data_files import (
    ROWS,
    higgs_csv,
    higgs_rows,
    in_source_order,
    kdd12_rows,
    libsvm,
    quiet,
    samples,
    track2,
)
from pyarrow import parquet

from book import sweep
from book.sweep.grid import Grid
from data_scripts import arrays, catalogue, reading, results
from data_scripts.prepare import draw_test_rows, main, prepare, verify
from labelaudit import datasets
from labelaudit.datasets import store
from labelaudit.datasets.columns import HIGGS as HIGGS_COLUMNS
from labelaudit.datasets.hashing import BUCKETS, bucket
from labelaudit.datasets.store import DataError
from labelaudit.files import file_digest

GRID = Grid(mechanisms={"RR": {"epsilon": [1]}}, learning_rates=(1e-3,))
COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


@pytest.fixture
def no_waiting(monkeypatch):
    """Leave out waiting for the disk, in a test that prepares hundreds of sets."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.parametrize("form", ["%.18e", "%.9g"])
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_higgs_text_round_trip(tmp_path, suffix, form):
    features, labels = higgs_rows()
    path = tmp_path / f"HIGGS.csv{suffix}"
    path.write_bytes(COMPRESSIONS[suffix](higgs_csv(features, labels, form)))
    manifest = quiet("higgs", path)
    loaded, loaded_labels = in_source_order("higgs")
    assert loaded.tobytes() == features.tobytes() and loaded_labels.tobytes() == labels.tobytes()
    assert manifest["rows"] == ROWS and manifest["positive_rate"] == labels.mean()
    assert manifest["source_sha256"] == file_digest(path)
    assert verify("higgs") == manifest


@pytest.mark.parametrize("value", ["1", "0.301511"])
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_libsvm_round_trip(tmp_path, suffix, value):
    indices, labels = kdd12_rows()
    path = tmp_path / f"kdd12{suffix}"
    path.write_bytes(COMPRESSIONS[suffix](libsvm(indices, labels, value)))
    assert quiet("kdd12", path)["layout"] == "libsvm"
    loaded, loaded_labels = in_source_order("kdd12")
    assert np.array_equal(loaded, bucket(0, indices)) and np.array_equal(loaded_labels, labels)
    assert datasets.load("kdd12").buckets == BUCKETS and loaded.dtype == np.int32


def test_ffm_gives_the_same_as_libsvm(tmp_path):
    indices, labels = kdd12_rows()
    text = libsvm(indices, labels).decode()
    count = iter(range(len(text)))
    ffm = re.sub(r" (\d+):", lambda match: f" {next(count) % 11}:{match[1]}:", text)
    (tmp_path / "ffm").write_text(ffm.replace("\n", " \r\n"))
    assert quiet("kdd12", tmp_path / "ffm")["layout"] == "ffm"
    loaded, loaded_labels = in_source_order("kdd12")
    assert np.array_equal(loaded, bucket(0, indices)) and np.array_equal(loaded_labels, labels)


def test_track2_round_trip(tmp_path):
    values, clicks, text = track2()
    (tmp_path / "training.txt").write_bytes(text)
    manifest = quiet("kdd12", tmp_path / "training.txt")
    assert manifest["layout"] == "track2" and manifest["columns"][0] == "url_hash"
    loaded, labels = in_source_order("kdd12")
    expected = np.column_stack([bucket(field, values[:, field]) for field in range(10)])
    assert np.array_equal(loaded, expected) and np.array_equal(labels, clicks > 0)


def test_blocks_do_not_show(tmp_path, monkeypatch):
    """Lines that cross the ends of blocks, every block ending somewhere else in its line."""
    monkeypatch.setattr(reading, "BLOCK_BYTES", (1 << 16) + 11)
    indices, labels = kdd12_rows(5000)
    (tmp_path / "kdd12").write_bytes(libsvm(indices, labels))
    quiet("kdd12", tmp_path / "kdd12")
    loaded, loaded_labels = in_source_order("kdd12")
    assert np.array_equal(loaded, bucket(0, indices)) and np.array_equal(loaded_labels, labels)


@pytest.mark.parametrize("file", ["higgs_uci_real_subset.csv.gz", "higgs_uci_real_subset.parquet"])
def test_real_higgs_sample(file):
    manifest = quiet("higgs", samples(file))
    data = datasets.load("higgs")
    assert manifest["rows"] == 51_233 and len(data.test) == 10_000 and len(data.train) == 41_233
    assert round(manifest["positive_rate"], 4) == 0.5297 and not data.simulated
    assert data.train.features.shape == (41_233, 28) and data.train.features.dtype == np.float32
    assert verify("higgs") == manifest
    table = parquet.read_table(samples("higgs_uci_real_subset.parquet")).to_pandas()
    loaded, labels = in_source_order("higgs")
    assert np.array_equal(loaded, table[list(HIGGS_COLUMNS)].to_numpy(np.float32))
    assert np.array_equal(labels, table["label"])
    if file.endswith("parquet"):
        test_rows = np.array(store.open_array("higgs", manifest, "test_rows"))
        proportions = table["source"].value_counts(normalize=True)
        tested = table["source"].iloc[test_rows].value_counts(normalize=True)
        assert (proportions - tested).abs().max() < 1e-4


def test_real_kdd12_sample():
    path = samples("kdd12_track2_click_prediction_small.parquet")
    manifest = quiet("kdd12", path)
    data = datasets.load("kdd12")
    assert manifest["rows"] == 39_948 and data.train.features.shape == (29_948, 10)
    assert round(manifest["positive_rate"], 3) == 0.168
    loaded, labels = in_source_order("kdd12")
    table = parquet.read_table(path).to_pandas()
    assert np.array_equal(loaded[:, 1], bucket(1, table["ad_id"].to_numpy()))
    assert np.array_equal(labels, table["click"] > 0) and verify("kdd12") == manifest
    # Weights and the correction of eta both lead back to the click rate of the full data.
    rate = np.average(labels, weights=np.where(labels, 1, 1 / data.negatives_kept))
    assert rate == pytest.approx(0.044)
    assert data.correct_eta(manifest["positive_rate"]) == pytest.approx(0.044)


def test_partial_split_is_random_but_fixed():
    strata = np.repeat([0, 1, 2], [100, 50, 850]).astype(np.int32)
    rows = draw_test_rows(1000, 100, strata)
    assert np.array_equal(rows, draw_test_rows(1000, 100, strata))
    assert np.bincount(strata[rows]).tolist() == [10, 5, 85]
    assert len(np.unique(draw_test_rows(1000, 333))) == 333


def test_complete_file_keeps_the_papers_split(tmp_path, monkeypatch):
    features, labels = higgs_rows(10_050)
    (tmp_path / "HIGGS.csv").write_bytes(higgs_csv(features, labels, "%.9g"))
    source = catalogue.CATALOGUE["higgs"]
    complete = {"higgs": type(source)(**{**vars(source), "rows": 10_050})}
    monkeypatch.setattr("data_scripts.prepare.CATALOGUE", complete)
    assert quiet("higgs", tmp_path / "HIGGS.csv")["split"] == {"test_rows": 10_000, "by": "order"}
    data = datasets.load("higgs")
    assert np.array_equal(data.test.features, features[:10_000])
    assert np.array_equal(data.train.labels, labels[10_000:])


NOT_SPARSE = "does not begin a row: a label of 0 or 1, then 11 features"
BAD = {
    "empty": ("higgs", b"", "is empty"),
    "label": ("higgs", b"2," + b",".join([b"1"] * 28) + b"\n", "line 1: the label is not 0 or 1"),
    "few": ("higgs", b"1," + b",".join([b"1"] * 27) + b"\n", "line 1: Expected 29 columns, got 28"),
    "many": ("higgs", b"1," + b",".join([b"1"] * 29) + b"\n", "Expected 29 columns, got 30"),
    "nan": ("higgs", b"1,nan" + b",1" * 27 + b"\n", "column 2: not a number: 'nan'"),
    "infinite": ("higgs", b"1,1,-inf" + b",1" * 26 + b"\n", "column 3: not a number"),
    "overflow": ("higgs", b"1,1,1e39" + b",1" * 26 + b"\n", "feature 2: NaN or infinite"),
    "word": ("higgs", b"1,one" + b",1" * 27 + b"\n", "column 2: not a number"),
    "hole": ("higgs", b"1,,1" + b",1" * 26 + b"\n", "column 2: not a number"),
    "blank line": ("higgs", b"\n", "line 1"),
    "no end": ("higgs", b"1" + b",1" * 28, "its last line has no end"),
    "zip": ("higgs", b"PK\x03\x04....", "zip archive"),
    "not text": ("kdd12", b"\x00" * (1 << 23), "no line end"),
    "class": ("kdd12", b"-1" + b" 5:1" * 11 + b"\n", NOT_SPARSE),
    "ten": ("kdd12", b"1" + b" 5:1" * 10 + b"\n", NOT_SPARSE),
    "twelve": ("kdd12", b"1" + b" 5:1" * 12 + b"\n", NOT_SPARSE),
    "index 0": ("kdd12", b"1" + b" 0:1" * 11 + b"\n", NOT_SPARSE),
    "index": ("kdd12", b"1" + b" 54686453:1" * 11 + b"\n", NOT_SPARSE),
    "value": ("kdd12", b"1" + b" 5:0" * 11 + b"\n", NOT_SPARSE),
    "garbage": ("kdd12", b"1" + b" 5:1x" * 11 + b"\n", NOT_SPARSE),
    "64 bits": ("kdd12", b"1\t1" + b"\t18446744073709551616" * 10 + b"\n", "column 3: not a num"),
    "columns": ("kdd12", b"1\t1" + b"\t5" * 9 + b"\n", "Expected 12 columns, got 11"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_the_last_good_set_stays(tmp_path, case, capsys):
    name, content, message = BAD[case]
    good, bad = tmp_path / "good", tmp_path / "bad"
    rows = higgs_csv(*higgs_rows()) if name == "higgs" else libsvm(*kdd12_rows())
    good.write_bytes(rows)
    before = quiet(name, good)
    bad.write_bytes(content)
    assert main(name, ["prepare", "--source", str(bad)]) == 1
    printed = capsys.readouterr().err
    assert message in printed and str(bad) in printed and printed.count("\n") == 1
    assert verify(name) == before


def test_refusal_names_the_line(tmp_path):
    lines = higgs_csv(*higgs_rows(9000)).splitlines(keepends=True)
    lines[8765] = lines[8765].replace(b",", b";", 3)
    (tmp_path / "h").write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=r"line 8,766: column 1: not a number"):
        quiet("higgs", tmp_path / "h")


def test_wrong_checksum_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "HIGGS.csv"
    path.write_bytes(higgs_csv(*higgs_rows()))
    with pytest.raises(DataError, match="wrong checksum"):
        quiet("higgs", path, sha256="0" * 64)
    remote = catalogue.RemoteFile("HIGGS.csv", (), path.stat().st_size, "sha256:" + "1" * 64)
    source = catalogue.CATALOGUE["higgs"]
    published = {"higgs": type(source)(**{**vars(source), "files": (remote,)})}
    monkeypatch.setattr("data_scripts.prepare.CATALOGUE", published)
    with pytest.raises(DataError, match="wrong checksum"):
        quiet("higgs", path)


@pytest.mark.parametrize("damage", ["feature", "column", "label", "text", "null"])
def test_bad_parquet_is_refused(tmp_path, damage):
    features, labels = higgs_rows()
    table = dict(zip(HIGGS_COLUMNS, features.T.astype(float), strict=True))
    table["label"] = labels.astype(np.int64)
    if damage == "feature":
        table["m_bb"][7] = np.inf
    elif damage == "column":
        del table["m_bb"]
    elif damage == "label":
        table["label"][7] = 3
    elif damage == "text":
        table["m_bb"] = [str(value) for value in table["m_bb"]]
    else:
        table["m_bb"] = [None, *table["m_bb"][1:]]
    parquet.write_table(pyarrow.table(table), tmp_path / "h.parquet")
    with pytest.raises(DataError, match=r"m_bb|row 8: |row 1: "):
        quiet("higgs", tmp_path / "h.parquet")


def test_damage_to_prepared_arrays_is_found(tmp_path):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest = quiet("higgs", tmp_path / "h")
    array = store.data_folder() / "higgs" / manifest["arrays"] / "features.npy"
    content = bytearray(array.read_bytes())
    content[5000] ^= 1
    array.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        verify("higgs")
    array.write_bytes(content[:4000])
    with pytest.raises(DataError, match="prepare higgs again"):
        _ = datasets.load("higgs").train.features


def test_a_full_disk_is_named_and_the_last_good_set_stays(tmp_path, monkeypatch):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest = quiet("higgs", tmp_path / "h")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(DataError) as refusal:
        patch.setattr(os, "fsync", full)
        quiet("higgs", tmp_path / "h")
    place = f"{store.data_folder() / 'higgs'}/set-"
    assert str(refusal.value).startswith(place) and "No space left on device" in str(refusal.value)
    assert verify("higgs") == manifest


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("file", ["features.npy", "labels.npy"])
def test_no_bit_of_a_prepared_array_changes_unnoticed(tmp_path, file, seed):
    """Half of the damages hit the header. Before results are kept, every one is seen."""
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest, rng = quiet("higgs", tmp_path / "h"), np.random.default_rng(seed)
    sound = datasets.load("higgs").train
    array = store.data_folder() / "higgs" / manifest["arrays"] / file
    content = bytearray(array.read_bytes())
    first, last = (0, 128) if seed % 2 else (128, len(content))
    content[rng.integers(first, last)] ^= 1 << int(rng.integers(8))
    array.write_bytes(content)
    with contextlib.suppress(DataError):
        loaded = datasets.load("higgs").train
        assert loaded.features.shape == sound.features.shape
        assert loaded.features.dtype == sound.features.dtype
        assert set(np.unique(loaded.labels)) == {0, 1}
    with pytest.raises(DataError, match=f"{file} is damaged.*prepare higgs again"):
        sweep.load("higgs", Grid(mechanisms={"RR": {"epsilon": [1]}}, learning_rates=(1e-3,)))
    quiet("higgs", tmp_path / "h")
    assert sweep.load(
        "higgs", Grid(mechanisms={"RR": {"epsilon": [1]}}, learning_rates=(1e-3,))
    ).train.labels.any()


@pytest.mark.parametrize("step", ["eta", "chapters"])
def test_no_table_of_results_is_made_from_a_damaged_array(tmp_path, capsys, step):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest = quiet("higgs", tmp_path / "h")
    array = store.data_folder() / "higgs" / manifest["arrays"] / "features.npy"
    content = bytearray(array.read_bytes())
    content[-1] ^= 1
    array.write_bytes(content)
    assert results.main([step, "higgs", "--folder", str(tmp_path / "tables")]) == 1
    assert "features.npy is damaged" in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("change", [lambda content: content[:-28], lambda content: content + b"\0"])
def test_a_prepared_array_of_another_size_is_not_loaded(tmp_path, change):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest = quiet("higgs", tmp_path / "h")
    array = store.data_folder() / "higgs" / manifest["arrays"] / "features.npy"
    array.write_bytes(change(array.read_bytes()))
    with pytest.raises(DataError, match=r"features\.npy cannot be read.*prepare higgs again"):
        _ = datasets.load("higgs").train.features


def test_a_set_is_read_once_in_a_process_to_be_verified(tmp_path, monkeypatch):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    quiet("higgs", tmp_path / "h")
    read = []

    def counted(path):
        read.append(path.name)
        return file_digest(path)

    monkeypatch.setattr(store, "file_digest", counted)
    for _ in range(3):
        datasets.verify("higgs")
    assert sorted(read) == ["features.npy", "labels.npy", "test_rows.npy"]
    quiet("higgs", tmp_path / "h")
    datasets.verify("higgs")
    assert len(read) > 3, "a new preparation is verified too"


MANIFESTS = {
    "no dictionary": lambda manifest: [],
    "nothing": lambda manifest: None,
    "no rows": lambda manifest: {**manifest, "rows": None},
    "all for testing": lambda manifest: {**manifest, "rows": manifest["split"]["test_rows"]},
    "no split": lambda manifest: {key: manifest[key] for key in manifest.keys() - {"split"}},
    "no arrays": lambda manifest: {key: manifest[key] for key in manifest.keys() - {"arrays"}},
    "no checksums": lambda manifest: {**manifest, "sha256": {}},
    "other data": lambda manifest: {**manifest, "name": "kdd12"},
    "other folder": lambda manifest: {**manifest, "arrays": "../kdd12/set-1"},
}


@pytest.mark.parametrize("case", [*MANIFESTS, "no text"])
def test_damage_to_the_manifest_is_found(tmp_path, capsys, case):
    (tmp_path / "h").write_bytes(higgs_csv(*higgs_rows()))
    manifest = quiet("higgs", tmp_path / "h")
    path = store.data_folder() / "higgs" / "manifest.json"
    text = b"\xff\xfe" if case == "no text" else json.dumps(MANIFESTS[case](manifest)).encode()
    path.write_bytes(text)
    assert main("higgs", ["verify"]) == 1
    assert capsys.readouterr().err == f"higgs: {path} is damaged; prepare higgs again\n"
    with pytest.raises(DataError, match="is damaged"):
        datasets.load("higgs")
    quiet("higgs", tmp_path / "h")
    assert datasets.load("higgs").facts["rows"] == ROWS


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "file"))
    with pytest.raises(DataError, match="file is not a folder"):
        datasets.load_or_standin("higgs")


NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def slow_higgs(text):
    """Rows of a csv by the plainest means; None where it should be refused."""
    features, labels = [], []
    if text.count(b"\n") < 3 or not text.endswith(b"\n"):
        return None
    for line in text[:-1].split(b"\n"):
        fields = line.removesuffix(b"\r").split(b",")
        if len(fields) != 29 or not all(map(NUMBER.fullmatch, fields)):
            return None
        label, *row = map(float, fields)
        row = np.array(row).astype(np.float32)
        if label not in (0, 1) or not np.isfinite(row).all():
            return None
        features.append(row)
        labels.append(label)
    return np.array(features), np.array(labels)


def slow_libsvm(text):
    features, labels = [], []
    if text.count(b"\n") < 3 or not text.endswith(b"\n"):
        return None
    for line in text[:-1].split(b"\n"):
        match = re.fullmatch(rb"([01])((?:[ \t]+[^ \t\r]+){11})[ \t]*\r?", line)
        if match is None:
            return None
        words = re.findall(rb"[^ \t]+", match[2])
        tokens = [re.fullmatch(rb"(\d{1,19}):(.*)", word) for word in words]
        if not all(token and NUMBER.fullmatch(token[2]) for token in tokens):
            return None
        indices = [int(token[1]) for token in tokens]
        values = [float(token[2]) for token in tokens]
        if not all(1 <= index <= 54_686_452 for index in indices) or 0 in values:
            return None
        if not np.isfinite(np.array(values).astype(np.float32)).all():
            return None
        features.append(bucket(0, np.array(indices)))
        labels.append(int(match[1]))
    return np.array(features), np.array(labels)


def damaged(content, rng):
    """The content after one accident."""
    accident = rng.choice(["cut", "flip", "drop", "double", "swap"])
    at = rng.randrange(len(content))
    if accident == "cut":
        return content[:at]
    if accident == "flip":
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    span = rng.randrange(1, 40)
    if accident == "drop":
        return content[:at] + content[at + span :]
    if accident == "double":
        return content[: at + span] + content[at:]
    return content[:at] + content[at + span : at + 2 * span] + content[at : at + span]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", ["higgs", "kdd12"])
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_fuzz_never_loads_wrongly(tmp_path, no_waiting, name, suffix):
    """A damaged file is read as the slow reference reads it, or refused; the old set stays."""
    rng = random.Random(f"{name}{suffix}")
    text = higgs_csv(*higgs_rows(12), "%.9g") if name == "higgs" else libsvm(*kdd12_rows(12))
    slow = slow_higgs if name == "higgs" else slow_libsvm
    path, good = tmp_path / "damaged", tmp_path / "good"
    good.write_bytes(text)
    current = quiet(name, good)
    refused = 0
    for _ in range(60):
        # Whatever comes out of a damaged archive must be what was put in.
        content = damaged(COMPRESSIONS[suffix](text), rng)
        expected = slow(text if suffix else content)
        path.write_bytes(content)
        try:
            current = quiet(name, path)
        except DataError:
            refused += 1
            assert verify(name) == current
            assert suffix or expected is None
        else:
            features, labels = in_source_order(name)
            np.testing.assert_allclose(features, expected[0], rtol=1e-7)
            assert np.array_equal(labels, expected[1])
    assert refused > 20


def test_fuzz_of_parquet_never_crashes(tmp_path, no_waiting):
    rng = random.Random(0)
    features, labels = higgs_rows(50)
    table = dict(zip(HIGGS_COLUMNS, features.T, strict=True))
    good, path = tmp_path / "good", tmp_path / "damaged"
    parquet.write_table(pyarrow.table({"label": labels, **table}), good, write_page_checksum=True)
    current = quiet("higgs", good)
    expected = in_source_order("higgs")
    content = good.read_bytes()
    refused = 0
    for _ in range(100):
        path.write_bytes(damaged(content, rng))
        try:
            current = quiet("higgs", path)
        except DataError:
            refused += 1
            assert verify("higgs") == current
        else:
            loaded = in_source_order("higgs")
            assert all(np.array_equal(*pair) for pair in zip(loaded, expected, strict=True))
    assert refused > 50


@pytest.mark.slow
def test_kill_at_any_moment_leaves_a_whole_set(tmp_path):
    """kill -9, twenty times: afterwards the old set or the new one is there, and it is whole."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(libsvm(*kdd12_rows(20_000, seed=1)))
    second.write_bytes(libsvm(*kdd12_rows(20_000, seed=2)))
    # The first preparation loads the compiled parser, which the timing leaves out.
    quiet("kdd12", first)
    started = time.perf_counter()
    sums = {quiet("kdd12", path)["source_sha256"] for path in (first, second)}
    once = (time.perf_counter() - started) / 2
    rng = random.Random(0)
    loaded = set()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    quiet("kdd12", first)
                    quiet("kdd12", second)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, 4 * once))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        loaded.add(verify("kdd12")["source_sha256"])
        assert len(datasets.load("kdd12").train) == 13_334
    assert loaded <= sums
    quiet("kdd12", first)
    folders = list((store.data_folder() / "kdd12").glob("set-*"))
    assert len(folders) == 1, "what the killed runs left behind is cleared away"


def test_two_at_once_do_not_meet(tmp_path):
    (tmp_path / "k").write_bytes(libsvm(*kdd12_rows()))
    with (
        arrays.new_set("kdd12", lambda message: None),
        pytest.raises(DataError, match="another process is preparing"),
    ):
        quiet("kdd12", tmp_path / "k")


def test_unfinished_preparation_is_announced(tmp_path):
    (tmp_path / "k").write_bytes(libsvm(*kdd12_rows()))
    left = store.data_folder() / "kdd12" / "set-left"
    left.mkdir(parents=True)
    printed = []
    prepare("kdd12", tmp_path / "k", say=printed.append)
    assert "did not finish; starting afresh" in printed[0] and not left.exists()
