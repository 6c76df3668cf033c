"""Grids: what they consist of, and what is rejected before anything runs."""

import math
from dataclasses import replace

import pytest
import yaml
from conftest import ROOT

from book import sweep
from book.sweep import audits
from book.sweep.grid import Grid, mechanism, next_rate, read_grid
from book.sweep.scales import scale_grid
from book.tools.chapters import load_chapters
from labelaudit import LabelProportions, RandomizedResponse
from labelaudit.command_line import CommandError
from sweep.conftest import GRID, RUNS

SCALES = ("smoke", "laptop", "paper")


def test_the_paper_grid_is_the_papers():
    paper = scale_grid("paper")
    assert len(paper) == 17_600 + 80  # and clean labels, whose AUC the paper mentions
    kinds = [described["kind"] for described in paper.descriptions()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        **{"clean": 1, "RR": 10, "LLP": 10, "LLP+Lap": 100, "LLP+Geom": 100}
    }


def test_the_published_grid_has_two_learners_for_each_of_65_mechanisms():
    grid = read_grid(ROOT / "results" / "published.yml")
    for name in ("higgs", "kdd12", "diabetes"):
        own = grid.for_data(name)
        assert len(own.descriptions()) == 1 + 65
        assert own.losses == ("cross_entropy", "likelihood")
        assert own.trials == 3 and len(own.learning_rates) == 3 and own.rate_limits
        assert len(own) == 3 * 3 * (1 + 2 * 65)


def test_scales_are_those_of_the_chapter():
    chapter = load_chapters(ROOT / "notebooks" / "chapters.yml")["12_privacy_utility"]
    for scale in SCALES:
        grid, values = scale_grid(scale), chapter.values(scale)
        pairs = {"bag_size": values["pair_bag_sizes"], "epsilon": values["pair_epsilons"]}
        assert grid.mechanisms["RR"] == {"epsilon": values["epsilons"]}
        assert grid.mechanisms["LLP"] == {"bag_size": values["bag_sizes"]}
        assert grid.mechanisms["LLP+Lap"] == grid.mechanisms["LLP+Geom"] == pairs
        assert grid.learning_rates == tuple(values["learning_rates"])
        assert grid.losses == tuple(values["losses"])
        assert (grid.trials, grid.seed) == (values["trials"], values["seed"])
        assert grid.training == {name: values[name] for name in ("epochs", "batch_size")}
        assert grid.train_rows == (None if scale == "paper" else values["train_rows"])


def test_a_description_makes_its_mechanism():
    assert mechanism({"kind": "RR", "epsilon": 1.0}) == RandomizedResponse(1.0)
    assert mechanism({"kind": "LLP", "bag_size": 3}) == LabelProportions(3)
    assert mechanism({"kind": "clean"}) is None


def test_repeated_mechanisms_run_once():
    grid = replace(GRID, mechanisms={"RR": {"epsilon": [1, 1.0, "1e0"]}})
    assert grid.descriptions() == [{"kind": "RR", "epsilon": 1.0}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mechanisms: {RX: {epsilon: [1]}}", "mechanisms: 'RX' is unknown; there are LLP, "),
        ("mechanisms: {RR: {epsilon: [-1]}}", r"epsilon must lie in \[0, inf\], not -1"),
        ("mechanisms: {RR: {epsilon: [0]}}", "RR: at epsilon 0 there is nothing to learn"),
        ("mechanisms: {RR: {epsilon: [high]}}", "epsilon must be a number.*'high'"),
        ("mechanisms: {LLP: {bag_size: [2.5]}}", "bag_size must be a whole number.*2.5"),
        ("mechanisms: {LLP: {epsilon: [1]}}", "LLP takes a list of each of .*bag_size"),
        ("mechanisms: {RR: {epsilon: 1}}", "RR epsilon must be a list, not 1"),
        ("mechanisms: {}", "mechanisms names none"),
        ("mechanisms: [RR]", r"mechanisms must be a mapping of names to values, not \['RR'\]"),
        ("learning_rates: [0]", "learning_rates must lie in"),
        ("learning_rates: []", "learning_rates must be a list"),
        ("trials: 0", "trials must be a whole number of at least 1, not 0"),
        ("trails: 3", "'trails' is unknown; there are datasets, eta, learning_rates"),
        ("datasets: {higs: {trials: 3}}", "datasets: 'higs' is unknown; there are diabetes, "),
        ("datasets: {higgs: {rows: 3}}", "unexpected keyword argument 'rows'"),
        ("datasets: {higgs: {training: 5}}", "not a mapping"),
        ("training: 5", "training must be a mapping of names to values, not 5"),
        ("losses: squared", "losses must be a list, not 'squared'"),
        ("{losses: [squared], training: {loss: squared}}", "loss in training would be ignored"),
        ("training: {learning_rate: 1}", "learning_rate in training would be ignored"),
        ("rate_limits: [0.001]", "the least and the largest rate of a search"),
        ("rate_limits: [0.002, 0.1]", "the least and the largest rate of a search"),
        ("{rate_limits: [0.0001, 1], learning_rates: [0.001]}", "around two or more"),
        ("rate_limits: [.nan, 1]", "rate_limits must lie in"),
        ("- 1", "must be a mapping"),
        ("a: [", "cannot read the grid .* line 1, column 5"),
    ],
)
def test_a_bad_grid_is_rejected(tmp_path, text, said):
    (tmp_path / "grid.yml").write_text(text)
    with pytest.raises(CommandError, match=said) as rejected:
        read_grid(tmp_path / "grid.yml")
    assert "\n" not in str(rejected.value) and rejected.value.status == 2


def test_a_grid_that_is_not_there(tmp_path):
    with pytest.raises(CommandError, match="cannot read the grid"):
        read_grid(tmp_path / "none.yml")


def test_a_grid_file_and_one_data_set_of_it(tmp_path):
    entries = {
        "trials": 2,
        "mechanisms": {"RR": {"epsilon": [1]}},
        "learning_rates": ["1e-4"],
        "training": {"epochs": 3, "batch_size": 64},
        "datasets": {"kdd12": {"training": {"epochs": 1}, "trials": 5}},
    }
    (tmp_path / "grid.yml").write_text(yaml.safe_dump(entries))
    grid = read_grid(tmp_path / "grid.yml")
    assert grid.learning_rates == (1e-4,)
    assert grid.for_data("higgs").training == {"epochs": 3, "batch_size": 64}
    own = grid.for_data("kdd12")
    assert own.training == {"epochs": 1, "batch_size": 64} and own.trials == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"training": {"model": "linear", "epoch": 1}}, "training cannot be run: .*'epoch'"),
        ({"training": {"model": "none"}}, "model must be one of"),
        ({"losses": ["likely"]}, "loss must be one of .*, not 'likely'"),
        ({"mechanisms": {"LLP": {"bag_size": [201]}}}, "bag_size 201 leaves too few bags"),
    ],
)
def test_what_cannot_be_trained_is_rejected_before_anything_runs(data, store, change, said):
    with pytest.raises(CommandError, match=said):
        sweep.plan(replace(GRID, **change), data, store)
    assert not store.folder.exists()


@pytest.mark.parametrize(
    ("eta", "said"),
    [({"epoch": 3}, "eta cannot be run: .*'epoch'"), ({"epochs": "many"}, "eta .* whole number")],
)
def test_a_bad_network_for_eta_is_rejected_even_where_none_is_needed(data, store, eta, said):
    assert data.simulated
    with pytest.raises(CommandError, match=said):
        audits.plan(replace(GRID, eta=eta), data, store)


def test_trials_share_their_seed(data):
    runs = list(sweep.configurations(GRID, data))
    assert len(runs) == len(GRID) == RUNS
    assert {(run["trial"], run["seed"]) for run in runs} == {(t, 2023 + t) for t in range(4)}


def test_clean_labels_have_one_loss(data):
    grid = replace(GRID, losses=("cross_entropy", "squared"))
    runs = list(sweep.configurations(grid, data))
    assert len(runs) == len(grid) == (1 + 5 * 2) * 2 * 4
    clean = [run for run in runs if run["mechanism"]["kind"] == "clean"]
    assert {run["settings"]["loss"] for run in clean} == {"cross_entropy"}


def test_a_batch_holds_a_bag(data):
    small = replace(GRID, training={"model": "linear", "batch_size": 2})
    runs = list(sweep.configurations(small, data))
    sizes = {run["mechanism"].get("bag_size", 1): run["settings"]["batch_size"] for run in runs}
    assert sizes == {1: 2, 2: 2, 4: 4}


@pytest.mark.parametrize(
    ("losses", "rate"),
    [
        ({1e-3: 2.0, 1e-2: 1.0, 1e-1: 3.0}, None),
        ({1e-3: 2.0, 1e-2: 1.0}, 0.1),
        ({1e-3: 1.0, 1e-2: 1.0}, 1e-4),  # a tie takes the smaller
        ({1e-3: 2.0, 0.5: 1.0}, None),  # the next would lie beyond the limits
        ({1e-3: math.inf, 1e-2: math.inf}, 1e-4),
        ({1e-5: math.inf, 1e-4: math.inf}, None),
    ],
)
def test_the_next_rate(losses, rate):
    assert next_rate(losses, (1e-5, 1.0)) == rate


def test_a_grid_needs_names_for_its_entries():
    with pytest.raises(TypeError):
        Grid({"RR": {"epsilon": [1]}})
