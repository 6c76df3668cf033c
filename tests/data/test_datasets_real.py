"""The paper's test rows of Higgs wherever a table names them, and the diabetes survey."""

import gzip

import numpy as np
import pandas as pd
import pyarrow
import pytest
from data_files import higgs_rows, in_source_order, quiet, samples
from pyarrow import parquet

from data_scripts.prepare import draw_test_rows, main, prepare, verify
from labelaudit import datasets
from labelaudit.datasets import store
from labelaudit.datasets.columns import DIABETES as FEATURES
from labelaudit.datasets.columns import HIGGS as HIGGS_COLUMNS
from labelaudit.datasets.store import DataError

HIGGS = "higgs_uci_real_57692.parquet"
DIABETES = "brfss2015_diabetes_253680.parquet"
OLDER_HIGGS = "higgs_uci_real_subset.parquet"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


def higgs_table(path, uci_row, rows=40, **columns):
    features, labels = higgs_rows(rows)
    table = dict(zip(HIGGS_COLUMNS, features.T, strict=True))
    parquet.write_table(
        pyarrow.table({"label": labels, **table, "uci_row": uci_row, **columns}), path
    )
    return features, labels


def rounded(features):
    """Rows to compare by; copies of one row may differ in the last digit of a number."""
    return [row.tobytes() for row in np.round(np.array(features, np.float64), 5) + 0.0]


def survey(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, 30, rows) for name in FEATURES})
    return table, (rng.random(rows) < 0.3).astype(int)


def test_rows_that_the_paper_tests_on_are_never_for_training(tmp_path):
    """They stand anywhere in the table, beside rows of unknown position and of later ones."""
    uci_row = np.full(40, -1)
    uci_row[[3, 17, 18, 39]] = [9999, 0, 12, 500]
    uci_row[5] = 10_000
    features, labels = higgs_table(tmp_path / "h.parquet", uci_row, source=["a"] * 20 + ["b"] * 20)
    manifest = quiet("higgs", tmp_path / "h.parquet")
    assert manifest["split"] == {"test_rows": 4, "by": "uci_row"}
    data = datasets.load("higgs")
    tested = np.array(store.open_array("higgs", manifest, "test_rows"))
    assert set(tested) == {3, 17, 18, 39}
    assert np.array_equal(data.test.features, features[tested])
    assert np.array_equal(data.test.labels, labels[tested])
    loaded, loaded_labels = in_source_order("higgs")
    assert np.array_equal(loaded, features) and np.array_equal(loaded_labels, labels)
    assert verify("higgs") == manifest


def test_table_of_test_rows_alone_is_rejected(tmp_path, capsys):
    higgs_table(tmp_path / "h.parquet", np.arange(40))
    assert main("higgs", ["prepare", "--source", str(tmp_path / "h.parquet")]) == 1
    assert "all 40 rows are for testing" in capsys.readouterr().err


def test_table_without_test_rows_is_split_by_seed_and_says_so(tmp_path, capsys):
    higgs_table(tmp_path / "h.parquet", np.full(40, -1))
    assert main("higgs", ["prepare", "--source", str(tmp_path / "h.parquet")]) == 0
    assert datasets.load("higgs").facts["split"] == {"test_rows": 13, "by": "seed", "seed": 0}
    assert "that the paper tests on may be among those for training" in capsys.readouterr().out


@pytest.mark.parametrize(
    "uci_row, message",
    [([None] * 40, "row 1: column uci_row is missing"), (["7"] * 40, "not whole numbers")],
)
def test_bad_positions_are_rejected(tmp_path, uci_row, message):
    higgs_table(tmp_path / "h.parquet", uci_row)
    with pytest.raises(DataError, match=message):
        quiet("higgs", tmp_path / "h.parquet")
    higgs_table(tmp_path / "h.parquet", np.full(40, 0.5))
    with pytest.raises(DataError, match="uci_row holds double, not whole numbers"):
        quiet("higgs", tmp_path / "h.parquet")


def test_real_higgs_keeps_the_papers_test_set():
    manifest = quiet("higgs", samples(HIGGS))
    data = datasets.load("higgs")
    assert manifest["split"] == {"test_rows": 10_000, "by": "uci_row"}
    assert len(data.train) == 47_692 and len(data.test) == 10_000
    table = parquet.read_table(samples(HIGGS)).to_pandas()
    first = table[(table["uci_row"] >= 0) & (table["uci_row"] < 10_000)].sort_values("uci_row")
    columns = list(HIGGS_COLUMNS)
    assert np.array_equal(data.test.features, first[columns].to_numpy(np.float32))
    assert np.array_equal(data.test.labels, first["label"])
    trained = set(rounded(data.train.features))
    assert len(trained) == len(data.train) and trained.isdisjoint(rounded(data.test.features))


def test_older_sample_holds_rows_of_the_papers_test_set_and_the_script_says_so():
    printed = []
    prepare("higgs", samples(OLDER_HIGGS), say=printed.append)
    assert "rows that the paper tests on may be among those for training" in printed[-1]
    quiet("higgs", samples(HIGGS))
    tested = set(rounded(datasets.load("higgs").test.features))
    quiet("higgs", samples(OLDER_HIGGS))
    older = datasets.load("higgs")
    rows = rounded(np.concatenate([older.train.features, older.test.features]))
    assert sum(row in tested for row in rows) == 3_642


def test_real_diabetes_survey():
    printed = []
    manifest = prepare("diabetes", samples(DIABETES), say=printed.append)
    assert manifest["split"] == {"test_rows": 50_000, "by": "seed", "seed": 0}
    assert "24,206 rows of the complete file repeat another" in printed[-1]
    data = datasets.load("diabetes")
    assert (len(data.train), len(data.test)) == (203_680, 50_000) and data.columns == FEATURES
    assert round(manifest["positive_rate"], 4) == 0.1393 and not data.simulated
    assert abs(data.train.labels.mean() - data.test.labels.mean()) < 0.005
    table = parquet.read_table(samples(DIABETES)).to_pandas()
    assert table.duplicated().sum() == 24_206
    tested = draw_test_rows(253_680, 50_000)
    assert set(np.array(store.open_array("diabetes", manifest, "test_rows"))) == set(tested)
    loaded, labels = in_source_order("diabetes")
    assert np.array_equal(loaded, table[list(FEATURES)].to_numpy(np.float32))
    assert np.array_equal(labels, table["label"]) and verify("diabetes") == manifest


FORMS = {
    "UCI": lambda table, label: table.assign(Diabetes_binary=label).reset_index(names="ID"),
    "floats": lambda table, label: table.assign(Diabetes_binary=label).astype(float),
    "label first": lambda table, label: pd.DataFrame({"label": label}).join(table),
    "reversed": lambda table, label: table.assign(Diabetes_binary=label).iloc[:, ::-1],
    "two kinds": lambda table, label: table.assign(Diabetes_012=label * (1 + table["Sex"] % 2)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_every_layout_of_the_survey_gives_the_same(tmp_path, form, suffix):
    table, labels = survey()
    written = FORMS[form](table, labels)
    path = tmp_path / f"survey{suffix}"
    if suffix == ".parquet":
        written.to_parquet(path)
    else:
        written.to_csv(path, index=False)
    quiet("diabetes", path)
    loaded, loaded_labels = in_source_order("diabetes")
    assert np.array_equal(loaded, table.to_numpy(np.float32))
    assert np.array_equal(loaded_labels, labels)


def test_unusual_lines_are_read(tmp_path):
    """Carriage returns, a quoted header, a byte order mark, signs."""
    table, labels = survey()
    text = table.assign(Diabetes_binary=labels).to_csv(index=False)
    header, _, rows = text.partition("\n")
    quoted = ",".join(f'"{name}"' for name in header.split(","))
    content = f"\ufeff{quoted}\n{rows}".replace("\n", "\r\n").encode()
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(content.replace(b",1\r", b",+1\r")))
    quiet("diabetes", tmp_path / "d.csv.gz")
    loaded, loaded_labels = in_source_order("diabetes")
    assert np.array_equal(loaded, table.to_numpy(np.float32))
    assert np.array_equal(loaded_labels, labels)


def _row(label="0", value="1"):
    return ",".join([label, value, *["1"] * (len(FEATURES) - 1)]) + "\n"


HEADER = ",".join(["label", *FEATURES]) + "\n"
BAD = {
    "no header": (_row(), "has no column Diabetes_binary, Diabetes_012, label; it begins with '0'"),
    "no feature": (HEADER.replace(",BMI", "") + _row(), "has no column BMI"),
    "twice": (HEADER.replace("\n", ",BMI\n") + _row(), "has two columns 'BMI'"),
    "header alone": (HEADER, "has 0 rows; at least 3 are needed"),
    "label": (HEADER + _row() * 3 + _row("2"), "line 5: the label is not 0 or 1"),
    "kinds": (
        HEADER.replace("label", "Diabetes_012") + _row("3"),
        "line 2: the label is not 0, 1 or 2",
    ),
    "feature": (HEADER + _row() + _row("1", "nan"), "line 3: column 2: not a number: 'nan'"),
    "hole": (HEADER + _row("1", ""), "line 2: column 2: not a number"),
    "few": (HEADER + "0,1\n", "line 2: Expected 22 columns, got 2"),
    "many": (HEADER + _row("0", "1,1"), "Expected 22 columns, got 23"),
    "one label": (HEADER + _row() * 4, "has the label 0 in every row"),
    "cut": (HEADER + _row() * 4 + "0,1", "its last line has no end"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_survey_is_rejected_with_the_reason(tmp_path, capsys, case):
    content, message = BAD[case]
    path = tmp_path / "survey.csv"
    path.write_text(content)
    assert main("diabetes", ["prepare", "--source", str(path)]) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1 and "Traceback" not in printed


def test_damaged_survey_table_is_rejected(tmp_path):
    table, labels = survey()
    path = tmp_path / "survey.parquet"
    table.assign(label=labels).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cut short or damaged"):
        quiet("diabetes", path)


def test_survey_has_no_stand_in():
    with pytest.raises(datasets.NotPrepared, match="make data-diabetes SOURCE=FILE"):
        datasets.load_or_standin("diabetes")
