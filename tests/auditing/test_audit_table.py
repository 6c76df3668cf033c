"""A user's own table: what is read, what is left out and noted, what is an error."""

import numpy as np
import pandas
import pytest

from labelaudit import auditing


def read_table(source, **columns):
    return auditing.read(source, auditing.Columns(**columns))


def frame(rows=600):
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "row": np.arange(rows),
            "age": rng.normal(40, 10, rows),
            "town": rng.choice(["Ur", "Uruk", "Kish"], rows),
            "sick": rng.integers(0, 2, rows),
        }
    )


def written(table, path):
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_mixed_columns(tmp_path, name):
    data = frame()
    table = read_table(written(data, tmp_path / name), label="sick")
    assert np.array_equal(table.labels, data["sick"]) and len(table) == 600
    assert [column.name for column in table.columns] == ["age", "town"]
    assert [column.categorical for column in table.columns] == [False, True]
    np.testing.assert_array_equal(table.features[:, 0], data["age"].to_numpy(np.float32))
    back = [table.columns[1].levels[int(code)] for code in table.features[:, 1]]
    assert back == data["town"].tolist()
    assert table.notes == ("row was left out: it numbers the rows",)
    assert table.ids[:2] == ("1", "2") and table.bags is None and table.prior is None


@pytest.mark.parametrize("first", [0, 1, 1000, -300])
def test_a_column_that_numbers_the_rows_is_no_feature_wherever_it_begins(first):
    data = frame()
    data["row"] += first
    table = read_table(data.sample(frac=1, random_state=0), label="sick")
    assert [column.name for column in table.columns] == ["age", "town"]
    # With a gap it may be a measurement.
    data.loc[0, "row"] -= 1
    assert "row" in [column.name for column in read_table(data, label="sick").columns]


def test_missing_values_are_kept_and_counted(tmp_path):
    data = frame()
    data.loc[:9, "age"] = np.nan
    data.loc[:4, "town"] = None
    data["sick"] = data["sick"].astype(object)
    data.loc[20:22, "sick"] = None
    table = read_table(written(data, tmp_path / "t.csv"), label="sick", identifier="row")
    assert len(table) == 597 and "20" not in table.ids and table.ids[20] == "23"
    assert np.isnan(table.features).sum(axis=0).tolist() == [10, 5]
    notes = "\n".join(table.notes)
    assert "3 rows without sick were left out" in notes
    assert "age: 10 values are missing" in notes and "stay so, as NaN" in notes
    assert "town: 5 missing values stay so, as NaN, and join no category" in notes


def test_many_categories_are_pooled_and_names_left_out(tmp_path):
    rng = np.random.default_rng(1)
    data = frame(3000)
    data["street"] = [f"street {number}" for number in rng.zipf(1.3, 3000) % 700]
    data["passport"] = [f"P{number}" for number in rng.permutation(3000)]
    path = written(data, tmp_path / "t.csv")
    table = read_table(path, label="sick")
    street = table.columns[-1]
    assert street.name == "street" and len(street.levels) == 255 and street.levels[-1] == "(other)"
    codes = table.features[:, -1]
    assert codes.max() == 254
    common = data["street"].value_counts().index[0]
    assert np.array_equal(codes == 0, data["street"] == common)
    assert any("categories the 254 most frequent are kept" in note for note in table.notes)
    assert any("passport was left out: its 3,000 distinct texts" in note for note in table.notes)
    with pytest.raises(ValueError, match="'passport' cannot be used: its 3,000 distinct texts"):
        read_table(path, label="sick", features=["age", "passport"])


def test_unequal_bags_and_a_ready_made_prior(tmp_path):
    data = frame(10)
    data["day"] = ["mon"] * 2 + ["tue"] * 5 + ["wed"] * 3
    data["eta"] = np.linspace(0, 1, 10)
    table = read_table(written(data, tmp_path / "t.parquet"), label="sick", prior="eta", bag="day")
    assert np.bincount(table.bags).tolist() == [2, 5, 3]
    assert np.array_equal(table.prior, data["eta"]) and table.features.shape == (10, 0)


@pytest.mark.parametrize(
    "values, positive, ones",
    [
        (["yes", "no", "no"], None, [1, 0, 0]),
        ([True, False, False], None, [1, 0, 0]),
        ([1.0, 0.0, 0.0], None, [1, 0, 0]),
        (["ill", "well", "well"], "ill", [1, 0, 0]),
        ([2, 1, 1], "1", [0, 1, 1]),
        ([2, 1, 1], 1, [0, 1, 1]),
        ([2.0, 1.0, 1.0], "1.0", [0, 1, 1]),
        ([True, False, False], False, [0, 1, 1]),
        ([0.5, 1.0, 1.0], 0.5, [1, 0, 0]),
    ],
)
def test_labels_of_many_spellings(tmp_path, values, positive, ones):
    path = tmp_path / "t.csv"
    pandas.DataFrame({"x": [1.5, 2, 9], "y": values}).to_csv(path, index=False)
    assert read_table(path, label="y", positive=positive).labels.tolist() == ones


def test_whole_numbers_stay_whole_beside_a_missing_one(tmp_path):
    """pandas turns them into floats, whose names would be 1.0 and 2.0."""
    data = pandas.DataFrame({"x": [1.5, 2, 9, 4], "y": [1, 2, 2, None], "day": [3, 3, 5, None]})
    for name in ("t.csv", "t.parquet"):
        path = written(data, tmp_path / name)
        for positive in ("2", 2, 2.0):
            table = read_table(path, label="y", bag="day", positive=positive)
            assert table.labels.tolist() == [0, 1, 1] and table.bags.tolist() == [0, 0, 1]
            assert table.classes == ("1", "2")


def test_features_that_are_no_list_are_refused_and_none_need_a_prior(tmp_path):
    data = frame(6).assign(sick=[0, 1] * 3, eta=0.5)
    path = written(data, tmp_path / "t.csv")
    with pytest.raises(TypeError, match=r"a list of columns, as in \['age'\]"):
        read_table(path, label="sick", features="age")
    with pytest.raises(ValueError, match="features is empty"):
        read_table(path, label="sick", features=[])
    assert read_table(path, label="sick", features=[], prior="eta").features.shape == (6, 0)


def test_dates_and_infinite_values(tmp_path):
    data = frame(5)
    data["sick"] = [0, 1, 0, 1, 1]
    data["when"] = pandas.date_range("2020-01-01", periods=5)
    data.loc[2, "age"] = np.inf
    table = read_table(written(data, tmp_path / "t.parquet"), label="sick")
    assert table.features[:, -1].tolist() == [0, 1, 2, 3, 4] and np.isnan(table.features[2, 0])
    assert any("infinite values are taken as missing" in note for note in table.notes)


@pytest.mark.filterwarnings("error")
def test_values_beyond_single_precision_are_missing(tmp_path):
    data = frame(5)
    data["sick"] = [0, 1, 0, 1, 1]
    data["age"] = [30.0, 1e300, 41.0, -1e39, 52.0]
    table = read_table(written(data, tmp_path / "t.parquet"), label="sick", features=["age"])
    assert np.isnan(table.features[:, 0]).tolist() == [False, True, False, True, False]
    assert "age: 2 values beyond 3.4e+38 are taken as missing" in table.notes


REFUSED = {
    "label": ({"label": None}, {}, "label must name the column with the sensitive label, not None"),
    "column": ({"label": "ill"}, {}, "has no column 'ill'; it has 'row', 'age'"),
    "feature": ({"features": ["height"]}, {}, "has no column 'height'"),
    "itself": ({"features": ["sick", "age"]}, {}, "cannot be a feature, a prior or a bag"),
    "bag": ({"bag": "sick"}, {}, "cannot be a feature, a prior or a bag"),
    "label prior": ({"prior": "sick"}, {}, "cannot be a feature, a prior or a bag"),
    "bag prior": ({"prior": "age", "bag": "age"}, {}, "the bag 'age' cannot be the prior"),
    "one": ({}, {"sick": [1] * 6}, "must have 2 to 20 values, not 1"),
    "prior of three": ({"prior": "age"}, {"sick": [0, 1, 2] * 2}, "3 classes takes no prior"),
    "words": ({}, {"sick": list("ababab")}, r"say which of them is positive, as in positive='b'"),
    "positive": ({"positive": "2"}, {}, "positive must be one of '0', '1', not '2'"),
    "absent": ({"features": ["age"]}, {"age": [None] * 6}, "every value is missing"),
    "constant": ({"features": ["age"]}, {"age": [3] * 6}, "it is constant"),
    "nothing": ({}, {"age": [3] * 6, "town": ["Ur"] * 6}, "no usable feature is left"),
    "prior": (
        {"prior": "age"},
        {"age": [0.5] * 5 + [1.5]},
        r"lie in \[0, 1\], not 1.5 as in row 6",
    ),
    "hole": ({"prior": "age"}, {"age": [0.5] * 5 + [None]}, "missing in row 6"),
    "text": ({"prior": "town"}, {}, "must hold numbers"),
    "no label": ({}, {"sick": [None] * 6}, "no row with a label"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tables_are_refused_in_one_line(tmp_path, case):
    options, changes, message = REFUSED[case]
    data = frame(6).assign(sick=[0, 1] * 3).assign(**changes)
    path = written(data, tmp_path / "t.csv")
    with pytest.raises(ValueError, match=message) as refusal:
        read_table(path, **{"label": "sick", **options})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"x,y\n", "has no rows"),
        ("t.csv", b"PAR1....PAR1", "is a parquet file, whatever its name says"),
        ("t.parquet", b"x,y\n1,0\n", "is not a parquet file"),
        ("t.parquet", b"PAR1 and nothing more", "cannot be read as parquet"),
        ("t.csv", b"x,y\n1,0\n1\n", "cannot be read as csv"),
        ("t.csv", "x,y\nMüller,0\n".encode("latin-1"), "is not UTF-8 text; save it again"),
        ("t.csv", "ä,y\n1,0\n".encode("latin-1"), "is not UTF-8 text; save it again"),
        ("t.csv", "x,y\n1,0\n".encode("utf-16"), "is not UTF-8 text; save it again"),
        ("t.xlsx", b"PK\x03\x04 and more", "is a spreadsheet or an archive; save the table as csv"),
        ("t.csv", b"x;y\n1;0\n", "columns separated by ';'; a comma is needed"),
        ("t.csv", b"x,x,y\n1,2,0\n", "more than one column of the name 'x'"),
    ],
)
def test_files_that_are_not_what_they_seem(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, label="y")


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_table(tmp_path / "nowhere.csv", label="y")
    with pytest.raises(ValueError, match="is a folder: name a csv or parquet file in it"):
        read_table(tmp_path, label="y")
