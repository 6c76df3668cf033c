"""The data scripts: what they refuse before and while reading, and what they say."""

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from data_scripts import arrays, reading
from data_scripts.catalogue import CATALOGUE
from data_scripts.prepare import draw_test_rows, main, prepare
from labelaudit import datasets
from labelaudit.datasets import store
from labelaudit.datasets.columns import HIGGS as HIGGS_COLUMNS
from labelaudit.datasets.columns import TRACK2
from labelaudit.files import file_digest

ROW = b"1" + b",1" * 28 + b"\n"
CLICKS = b"1" + b" 5:1" * 11 + b"\n"
# Of either label at least one row is needed.
ZERO, NO_CLICK = b"0" + ROW[1:], b"0" + CLICKS[1:]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


@pytest.fixture
def source(tmp_path):
    """Write a file and give its path."""

    def write(content):
        path = tmp_path / "source"
        path.write_bytes(content)
        return path

    return write


def refused(name, *arguments, capsys):
    """What a script says when it says no, in one line."""
    assert main(name, ["prepare", *map(str, arguments)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and not (store.data_folder() / name / "manifest.json").exists()
    return printed


@pytest.mark.parametrize("rate", ["0", "1", "-0.1", "1.5", "nan"])
def test_impossible_click_rate_is_refused_before_reading(tmp_path, capsys, rate):
    printed = refused(
        "kdd12", "--source", tmp_path / "nowhere", f"--click-rate={rate}", capsys=capsys
    )
    assert "a click rate lies between 0 and 1" in printed


@pytest.mark.parametrize("checksum", ["", "abc", "g" * 64, "0" * 63])
def test_what_is_no_checksum_is_refused_before_reading(tmp_path, capsys, checksum):
    options = ("--source", tmp_path / "nowhere", "--sha256", checksum)
    assert "a sha256 has 64 hexadecimal digits" in refused("higgs", *options, capsys=capsys)


def test_checksum_may_be_in_capitals(source):
    path = source(ROW * 8 + ZERO)
    prepare("higgs", path, sha256=file_digest(path).upper(), say=lambda message: None)
    assert len(datasets.load("higgs").train) == 6


HINTS = {
    "header": (
        "higgs",
        b"label,lepton pT\n" + ROW * 9,
        "line 1: column 1: not a number: 'label'",
    ),
    "quoted": ("higgs", b'"label","x"\n' + ROW * 9, "(a header?)"),
    "track2": ("kdd12", b"click\timpression\turl\n", "column 1: not a number: 'click' (a header?)"),
    "empty": ("higgs", ROW * 4 + b"\n" + ROW, "line 5: column 1: not a number: ''"),
    "blank": ("kdd12", CLICKS * 4 + b" \r\n", "line 5: ' \\r' does not begin a row"),
    "byte order mark": ("higgs", b"\xef\xbb\xbf" + ROW * 9, r"column 1: not a number: '\ufeff1'"),
    "label": ("higgs", ROW * 4 + b"2" + ROW[1:], "line 5: the label is not 0 or 1"),
    "cell": ("higgs", ROW + b"1,one" + ROW[3:], "line 2: column 2: not a number: 'one'"),
    "semicolons": (
        "higgs",
        ROW.replace(b",", b";"),
        "column 1: not a number: '1;1;1;1;1;1;1;1;1;1;'",
    ),
    "index": (
        "kdd12",
        CLICKS + b"1 x:1" + CLICKS[5:],
        "line 2: '1 x:1 5:1 5:1",
    ),
    "tab": (
        "kdd12",
        CLICKS + b"1 \x0b\n",
        r"line 2: '1 \x0b' does not begin a row",
    ),
    "one label": ("higgs", ROW * 9, "has the label 1 in every row; both are needed"),
    "no click": ("kdd12", NO_CLICK * 9, "has the label 0 in every row; both are needed"),
    "two rows": ("higgs", ROW * 2, "has 2 rows; at least 3 are needed"),
}


@pytest.mark.parametrize("case", HINTS)
def test_refusal_hints_at_the_cause(source, capsys, case):
    name, content, message = HINTS[case]
    printed = refused(name, "--source", source(content), capsys=capsys)
    assert message in printed
    assert ("(a header?)" in printed) == (case in ("header", "quoted", "track2"))


def test_three_rows_are_enough(source):
    prepare("higgs", source(ROW * 2 + ZERO), say=lambda message: None)
    data = datasets.load("higgs")
    assert len(data.train) == 2 and len(data.test) == 1


def test_thinning_is_said_beside_the_rate(tmp_path, capsys):
    columns = {name: np.arange(100) for name in TRACK2}
    path = tmp_path / "small.parquet"
    parquet.write_table(pyarrow.table({"click": np.arange(100) % 5 == 0, **columns}), path)
    arguments = ["--source", str(path), "--click-rate", "0.1"]
    for step in ("prepare", "verify"):
        assert main("kdd12", [step, *arguments]) == 0
        printed = capsys.readouterr().out
        # Odds of 1/4 came from odds of 1/9 by keeping 4/9 of the negatives.
        assert "rate 0.2000 (thinned: 44.4% of the negatives kept, 0.1 before)" in printed


def test_nothing_is_said_of_thinning_where_there_was_none(source, capsys):
    assert main("kdd12", ["prepare", "--source", str(source(CLICKS * 8 + NO_CLICK))]) == 0
    assert "thinned" not in capsys.readouterr().out


def test_more_sources_than_fit_16_bits(tmp_path):
    rows = 33_000
    columns = dict.fromkeys(HIGGS_COLUMNS, np.ones(rows, np.float32))
    columns["label"] = np.arange(rows) % 2
    sources = [f"detector {number}" for number in range(rows)]
    parquet.write_table(pyarrow.table({**columns, "source": sources}), tmp_path / "h.parquet")
    manifest = prepare("higgs", tmp_path / "h.parquet", say=lambda message: None)
    assert manifest["rows"] == rows and manifest["split"]["test_rows"] == 10_000


def test_strata_are_drawn_as_one_by_one():
    """Against the plainest way: a pass over all rows for each stratum."""
    strata = np.random.default_rng(3).integers(0, 7, 700).astype(np.int32)
    loaded = strata[draw_test_rows(700, 70, strata)]
    expected = 70 * np.bincount(strata) / 700
    assert np.abs(np.bincount(loaded, minlength=7) - expected).max() < 1
    rng = np.random.default_rng(0)
    counts = np.bincount(loaded, minlength=7)
    slow = [rng.choice(np.flatnonzero(strata == s), counts[s], replace=False) for s in range(7)]
    assert np.array_equal(draw_test_rows(700, 70, strata), np.sort(np.concatenate(slow)))


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_rows_change_places(tmp_path, monkeypatch, shape):
    monkeypatch.setattr(arrays, "ROWS_MAPPED", 2)
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    some, others = np.array([0, 3, 7]), np.array([49, 12, 20])
    path = tmp_path / "rows.npy"
    np.save(path, values)
    arrays.swap_rows(path, some, others)
    values[some], values[others] = values[others], values[some]
    assert np.array_equal(np.load(path), values)


def test_fingerprint_follows_the_rows_in_use(source):
    prepare("higgs", source(ROW * 29 + ZERO), say=lambda message: None)
    whole = datasets.load("higgs").fingerprint
    assert datasets.load("higgs", train_rows=5).fingerprint != whole
    assert datasets.load("higgs", train_rows=5, seed=1).fingerprint == (
        datasets.load("higgs", train_rows=5).fingerprint
    )
    assert datasets.load("higgs", train_rows=20).fingerprint == whole
    assert datasets.load("higgs", train_rows=99).fingerprint == whole


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_cleared_even_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(OSError), reading.progress_bar("file", 10) as bar:
        bar.update(5)
        bar.refresh()
        raise OSError
    shown = sys.stderr.getvalue()
    assert "file:  50%" in shown and re.search(r"\r +\r$", shown)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with reading.progress_bar("file", 10) as bar:
        bar.update(5)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("name", CATALOGUE)
def test_script_runs_from_any_folder(tmp_path, name):
    script = Path(__file__).resolve().parents[2] / "data_scripts" / f"{name}.py"
    command = [sys.executable, "-I", str(script), "verify"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{name}: ") and f"make data-{name} SOURCE=FILE" in done.stderr


UNUSUAL = {
    "signs": ("higgs", b"+1," + ROW[2:], ROW),
    "tiny": ("higgs", b"1,1e-50" + ROW[3:], b"1,0" + ROW[3:]),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_rows_are_read_as_plain_ones(source, case):
    """The fast readers give up on them, and the slow ones give the same values."""
    name, unusual, plain = UNUSUAL[case]
    last = ZERO if name == "higgs" else NO_CLICK
    rows = []
    for text in (unusual, plain):
        prepare(name, source(text * 8 + last), say=lambda message: None)
        data = datasets.load(name)
        rows.append(np.concatenate([data.test.features, data.train.features]).tobytes())
    assert rows[0] == rows[1]
