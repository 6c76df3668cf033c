"""The contract between chapters and whoever runs them: what is refused, and in what words."""

import math

import pytest
import yaml
from book_fixture import CHAPTERS, COIN, HEADER, make_checkout
from commands import ROOT

from book.tools.chapters import find_chapter, load_chapters, read_parameters_cell
from book.tools.parameters import SCALES, ContractError, Parameter, parse_value

DECLARED = load_chapters(ROOT / "notebooks" / "chapters.yml")


@pytest.fixture(scope="module")
def coin(tmp_path_factory):
    root = make_checkout(tmp_path_factory.mktemp("contract"))
    return load_chapters(root / "notebooks" / "chapters.yml")["01_coin"]


def declared_coin(folder, declared, source):
    """The chapter of the coin under a declaration and a source of its own."""
    (folder / "chapters.yml").write_text(yaml.safe_dump(declared))
    (folder / "01_coin.md").write_text(source)
    return load_chapters(folder / "chapters.yml")["01_coin"]


@pytest.mark.parametrize("chapter", DECLARED)
def test_every_chapter_keeps_the_contract(chapter):
    assert DECLARED[chapter].values("paper").keys() == DECLARED[chapter].values("smoke").keys()


def test_the_same_name_means_the_same_thing_in_every_chapter():
    types = {}
    for chapter in DECLARED.values():
        for name, parameter in chapter.parameters.items():
            types.setdefault(name, set()).add(parameter.type)
    assert all(len(declared) == 1 for declared in types.values()), types


@pytest.mark.parametrize("source", sorted((ROOT / "notebooks").glob("*")))
def test_sources_hold_no_outputs_and_nothing_undeclared(source):
    if source.name == "chapters.yml" or source.name.startswith("."):
        return
    assert source.suffix == ".md", f"{source.name} is not a text notebook"
    assert source.stem in DECLARED


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bagsizes", [2], "did you mean bag_sizes?"),
        ("weather", 1, "its parameters are: bag_sizes, bias"),
        ("bag_sizes", 3, "3 is not a list; write it as [3]"),
        ("bag_sizes", [], "the list is empty"),
        ("bag_sizes", None, "no value given; write a list"),
        ("bag_sizes", [0], "0 is out of range; allowed: 1 to 64"),
        ("bag_sizes", [[2]], "[2] is not one whole number"),
        ("bias", "half", "'half' is not one number"),
        ("bias", True, "True is not one number"),
        ("bias", math.nan, "nan is not one number; allowed: 0 to 1"),
        ("bias", math.inf, "inf is out of range; allowed: 0 to 1"),
        ("bias", None, "no value given; allowed: 0 to 1"),
        ("law", "normal", "'normal' is not among: uniform, beta-2-30"),
        ("fail", 1, "1 is not true or false; allowed: true, false"),
        ("seed", {"a": 1}, "is not one whole number"),
        ("seed", 10**400, "seed: the number has too many digits; allowed: 0 to"),
        ("bias", -(10**400), "bias: the number has too many digits; allowed: 0 to 1"),
    ],
)
def test_a_bad_value_is_refused_in_one_line_that_names_it(coin, name, value, said):
    with pytest.raises(ContractError) as refusal:
        coin.resolve("laptop", {name: value})
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_good_values_are_made_canonical(coin):
    given = {"bag_sizes": [4.0, 16], "bias": 1, "fail": True, "law": "beta-2-30"}
    values = coin.resolve("smoke", given)
    assert values["bag_sizes"] == [4, 16]
    assert all(type(size) is int for size in values["bag_sizes"])
    assert type(values["bias"]) is float
    assert values["seed"] == 1, "what is not given comes from the scale"


def test_a_path_must_be_a_file_unless_it_is_empty(tmp_path):
    table = Parameter(name="table", type="path", meaning="a table", values={})
    (tmp_path / "table.csv").touch()
    assert table.check("") == ""
    assert table.check(str(tmp_path / "table.csv")) == str(tmp_path / "table.csv")
    with pytest.raises(ContractError, match=r"there is no file .*absent\.csv"):
        table.check(str(tmp_path / "absent.csv"))


@pytest.mark.parametrize(
    ("text", "value"),
    [("[4, 16]", [4, 16]), ("1e-3", 0.001), ("inf", math.inf), ("uniform", "uniform")],
)
def test_values_are_yaml_with_numbers_as_people_write_them(text, value):
    assert parse_value("x", text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [("[1, 2", "expected"), ("2026-99-99", "it cannot be read"), ("9" * 5000, "it cannot be read")],
)
def test_a_value_that_yaml_cannot_make_is_one_line(text, said):
    with pytest.raises(ContractError, match=f"seed is not valid YAML: {said}") as refusal:
        parse_value("seed", text)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bias = 0.5\n", "", "chapters.yml has 'bias', the parameters cell does not"),
        ("seed = 1\n", "seed = 1\nsize = 2\n", "the parameters cell has 'size'"),
        ("bias = 0.5", "bias = 1.25", "01_coin: bias: 1.25 is out of range; allowed: 0 to 1"),
        ("bias = 0.5", "bias = 1 / 2", "the parameter 'bias' is not a plain literal: 1 / 2"),
        ("bias = 0.5", "import math", "may hold only name = literal, not: import math"),
        ("bias = 0.5", "bias = 0.5\nbias = 0.5", "assigns the parameter 'bias' twice"),
        ("[parameters]", "[other]", "needs exactly one cell tagged parameters; it has 0"),
    ],
)
def test_a_cell_that_differs_from_its_declaration_is_refused(tmp_path, old, new, said):
    with pytest.raises(ContractError) as refusal:
        declared_coin(tmp_path, CHAPTERS, COIN.replace(old, new))
    assert said in str(refusal.value)


def test_the_cell_holds_the_values_of_laptop_scale(tmp_path):
    coin = declared_coin(tmp_path, CHAPTERS, COIN.replace("bag_sizes = [2, 4]", "bag_sizes = [7]"))
    assert [coin.values(scale)["bag_sizes"] for scale in SCALES] == [[2], [7], [2, 4, 8]]
    assert [coin.values(scale)["bias"] for scale in SCALES] == [0.5, 0.5, 0.5]


def test_a_chapter_that_is_not_written_is_refused(tmp_path):
    declared = {"01_coin": CHAPTERS["01_coin"], "02_plain": CHAPTERS["02_plain"]}
    assert declared_coin(tmp_path, declared, COIN), "the other chapter is not looked at"
    with pytest.raises(ContractError, match=r"02_plain is declared in chapters\.yml.* absent"):
        load_chapters(tmp_path / "chapters.yml")["02_plain"]


def test_annotated_defaults_are_seen(tmp_path):
    source = tmp_path / "chapter.md"
    cell = "```{code-cell} ipython3\n:tags: [parameters]\nbias: float = 0.5\n```\n"
    source.write_text(f"{HEADER}\n{cell}")
    assert read_parameters_cell(source) == {"bias": 0.5}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("type", "integers", "the type 'integers' is not one of"),
        ("paper", [0], "0 is out of range"),
        ("range", None, "needs a range"),
        ("meaning", None, "needs ['meaning', 'type']"),
        ("laptop", [2], "may have ['choices', 'paper', 'range', 'smoke']"),
        ("colour", "red", "may have ['choices', 'paper', 'range', 'smoke']"),
    ],
)
def test_an_incomplete_declaration_is_refused(tmp_path, key, value, said):
    declared = yaml.safe_load(yaml.safe_dump(CHAPTERS))
    entry = declared["01_coin"]["parameters"]["bag_sizes"]
    entry[key] = value
    if value is None:
        del entry[key]
    with pytest.raises(ContractError) as refusal:
        declared_coin(tmp_path, declared, COIN)
    assert said in str(refusal.value)


def test_a_chapter_is_found_by_its_number_and_a_misspelt_one_is_guessed(coin):
    chapters = {"01_coin": coin}
    assert find_chapter(chapters, "01") is find_chapter(chapters, "1") is coin
    with pytest.raises(ContractError, match="did you mean 01_coin"):
        find_chapter(chapters, "01_coins")
