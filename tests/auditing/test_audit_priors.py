"""Priors of any size: streamed totals against the same numbers in memory."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audit_cases import run

import labelaudit as la
from labelaudit import percentile
from labelaudit.auditing import Options, Target, priors
from labelaudit.auditing.priors import audit_priors

PLAN = Options(bag_sizes=[4], epsilons=[1.0], level=0.9)
MECHANISMS = {
    "RR": la.RandomizedResponse(1.0),
    "LLP": la.LabelProportions(4),
    "LLP+Geom": la.GeometricProportions(4, 1.0),
    "LLP+Lap": la.LaplaceProportions(4, 1.0),
}


def write(path, eta, bag_size=4, group=64):
    frame = pd.DataFrame({"eta": eta, "day": np.arange(eta.size) // bag_size})
    frame.to_parquet(path, row_group_size=group)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files of several row groups, bags across row groups and batches."""
    monkeypatch.setattr(priors, "ROWS", 50)
    monkeypatch.setattr(priors, "PART", 128)
    eta = np.random.default_rng(0).beta(2, 5, 1200)
    eta[:8] = [0, 1, 0, 1, 0.5, 0.5, 0, 0.2]
    for number in range(3):
        write(tmp_path / f"{number}.parquet", eta[400 * number : 400 * (number + 1)])
    return tmp_path, eta


def rows_of(path, options):
    """Given bags of the column day."""
    return list(audit_priors(path, "eta", options, bag="day").settings.itertuples())


def in_memory(eta, mechanism, level):
    bags = eta.reshape(-1, mechanism.bag_size)
    variance = bags * (1 - bags)
    return [
        la.additive_advantage(bags, mechanism).mean(),
        la.label_advantage(bags, mechanism).mean(),
        (la.worth(bags, mechanism) * variance).sum() / variance.sum(),
        1 - float(la.multiplicative_cdf(bags, mechanism, 1e9)) if mechanism.epsilon > 99 else 0.0,
        la.multiplicative_quantile(bags, mechanism, level),
    ]


def numbers(exposure):
    names = ("additive", "label_advantage", "worth", "revealed", "percentile")
    return [getattr(exposure, name) for name in names]


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 1.0])
def test_given_bags_equal_the_numbers_in_memory(folder, level):
    path, eta = folder
    report = audit_priors(path, "eta", Options(epsilons=[1.0], level=level), bag="day")
    assert report.rows == 1200 and report.at_stake == pytest.approx(np.minimum(eta, 1 - eta).mean())
    for exposure, mechanism in zip(report.settings.itertuples(), MECHANISMS.values(), strict=True):
        expected = in_memory(eta, mechanism, level)
        assert numbers(exposure) == pytest.approx(expected, rel=1e-12, abs=1e-12), exposure.title
        assert exposure.records == 1200
    assert report.settings["title"][1] == "LLP (given bags)"


def test_random_bags_are_those_of_the_blocks(folder):
    path, _ = folder
    report = audit_priors(path, "eta", PLAN)
    names = {"mechanisms": ("rr",), "bag_sizes": (4,), "epsilons": (1.0,)}
    task = priors.PriorsTask(**names, prior="eta", bag=None, seed=0)
    bags = []
    for index, part in enumerate(priors.parts_of(path, "eta", None)):
        for block, _ in task.blocks(part, index):
            bags.append(block[: block.size // 4 * 4])
    eta = np.concatenate(bags)
    expected = in_memory(eta, MECHANISMS["LLP+Lap"], 0.9)
    assert numbers(report.settings.iloc[3]) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert report.settings["records"][3] == eta.size <= report.rows == 1200


@pytest.mark.parametrize("stopped_after", [1, 4, 9])
def test_a_stopped_run_goes_on_and_gives_the_same(folder, stopped_after):
    path, _ = folder
    saved = path / "totals.npz"
    whole = audit_priors(path, "eta", PLAN)
    calls = []

    class Stopped(RuntimeError):
        pass

    def stop(line):
        calls.append(line)
        if len(calls) == stopped_after:
            raise Stopped

    with pytest.raises(Stopped):
        audit_priors(path, "eta", PLAN, saved=saved, progress=stop)
    assert saved.is_file()
    measured = []
    again = audit_priors(path, "eta", PLAN, saved=saved, progress=measured.append)
    assert again.settings.equals(whole.settings) and not saved.exists()
    total = len(priors.parts_of(path, "eta", None)) * whole.passes
    assert len(measured) == total - stopped_after


def stop_after_the_first(line):
    raise KeyboardInterrupt


@pytest.mark.parametrize("seed", range(8))
def test_damaged_totals_are_never_used(folder, seed):
    path, saved = folder[0], folder[0] / "totals.npz"
    whole = audit_priors(path, "eta", PLAN)
    with pytest.raises(KeyboardInterrupt):
        audit_priors(path, "eta", PLAN, saved=saved, progress=stop_after_the_first)
    content, rng = bytearray(saved.read_bytes()), np.random.default_rng(seed)
    if seed < 2:
        content = content[: rng.integers(len(content))]
    else:
        for index in rng.integers(len(content), size=20):
            content[index] ^= 1 << int(rng.integers(8))
    saved.write_bytes(content)
    assert audit_priors(path, "eta", PLAN, saved=saved).settings.equals(whole.settings)


def test_totals_of_a_file_that_was_written_again_are_not_used(tmp_path):
    """Its size and its time may be what they were."""
    path, saved = tmp_path / "priors.parquet", tmp_path / "totals.npz"
    first, second = np.full(400, 0.25), np.full(400, 0.35)
    write(path, first)
    before, whole = path.stat(), audit_priors(path, "eta", PLAN).settings
    with pytest.raises(KeyboardInterrupt):
        audit_priors(path, "eta", PLAN, saved=saved, progress=stop_after_the_first)
    write(path, second)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    again = audit_priors(path, "eta", PLAN, saved=saved)
    assert again.settings.equals(audit_priors(path, "eta", PLAN).settings)
    assert not again.settings.equals(whole)


def test_totals_of_another_run_are_not_used(folder):
    path, _ = folder
    saved = path / "totals.npz"

    with pytest.raises(KeyboardInterrupt):
        another = Options(bag_sizes=[2])
        audit_priors(path, "eta", another, saved=saved, progress=stop_after_the_first)
    again = audit_priors(path, "eta", PLAN, saved=saved)
    assert again.settings.equals(audit_priors(path, "eta", PLAN).settings)


def test_a_wrong_guess_is_noticed(tmp_path, monkeypatch):
    # The first rows say nothing about the others.
    eta = np.r_[np.full(256, 0.5), np.random.default_rng(1).uniform(0.001, 0.01, 4096)]
    write(tmp_path / "sorted.parquet", eta)
    monkeypatch.setattr(priors, "GUESSED", 256)
    report = audit_priors(tmp_path / "sorted.parquet", "eta", PLAN, bag="day")
    for exposure, mechanism in zip(report.settings.itertuples(), MECHANISMS.values(), strict=True):
        expected = in_memory(eta, mechanism, 0.9)
        assert numbers(exposure) == pytest.approx(expected, rel=1e-12, abs=1e-12), exposure.title


def test_an_extreme_guess_that_is_wrong_is_noticed(tmp_path, monkeypatch):
    # In bags of rare labels most releases are at an end; in the others few are.
    eta = np.r_[np.full(256, 0.001), np.random.default_rng(1).uniform(0.4, 0.6, 8192)]
    write(tmp_path / "sorted.parquet", eta, bag_size=8)
    monkeypatch.setattr(priors, "GUESSED", 256)
    plan = Options(epsilons=[1.0], level=0.7)
    report = audit_priors(tmp_path / "sorted.parquet", "eta", plan, bag="day")
    sizes = {"bag_size": 8, "epsilon": 1.0}
    mechanisms = [la.RandomizedResponse(1.0), la.LabelProportions(8)]
    mechanisms += [la.GeometricProportions(**sizes), la.LaplaceProportions(**sizes)]
    for exposure, mechanism in zip(report.settings.itertuples(), mechanisms, strict=True):
        guessed = percentile.guess(eta[:256].reshape(-1, mechanism.bag_size), mechanism, 0.7)
        assert guessed == {"extreme": True}
        expected = in_memory(eta, mechanism, 0.7)
        assert numbers(exposure) == pytest.approx(expected, rel=1e-12, abs=1e-12), exposure.title
    assert report.settings["percentile"][2] < 1 and report.passes > 1


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_members_at_the_ends_have_the_largest_shift(mechanism):
    eta = np.random.default_rng(3).beta(2, 5, (40, mechanism.bag_size))
    eta[::3, 0], eta[::5, -1] = 0, 1
    below = la.multiplicative_cdf(eta, mechanism, min(mechanism.epsilon, 1e9) * (1 - 1e-9))
    expected = eta.size * (1 - float(below))
    # Laplace noise has a little mass just below epsilon.
    assert percentile.mass_at_epsilon(eta, mechanism) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.7])
def test_a_percentile_where_the_distribution_has_kinks(tmp_path, level):
    # Two kinds of bags: the distribution of |I| under Laplace noise is not smooth.
    eta = np.tile([0.1, 0.1, 0.1, 0.1, 0.6, 0.1, 0.6, 0.9], 8)
    write(tmp_path / "kinds.parquet", eta)
    plan = Options(mechanisms=["laplace"], epsilons=[1.0], level=level)
    [exposure] = rows_of(tmp_path / "kinds.parquet", plan)
    expected = in_memory(eta, MECHANISMS["LLP+Lap"], level)[-1]
    assert exposure.percentile == pytest.approx(expected, abs=1e-12)


def test_bisection_ends_where_no_parabola_fits():
    # The distribution function of a percentile at 0.3, with a kink there.
    window, passes = percentile.around(0.9, 1e-6, 1.0), 0
    while "value" not in window:
        points = np.array(window["points"])
        excess = np.where(points < 0.3, points - 0.3, 50 * (points - 0.3))
        window, passes = percentile.interpolated(window, excess, 1.0), passes + 1
    assert window["value"] == pytest.approx(0.3, abs=1e-11) and passes < 60


def test_what_proves_labels_says_so_and_comes_last():
    found = {
        "epsilon": 1.0,
        "percentile": 1.0,
        "records": 10,
        "additive": 0.01,
        "label_advantage": 0.5,
    }
    settings = [
        ("LLP (bags of 8)", 0.6, 0.1, True),
        ("RR (epsilon 2)", 0.0, 0.3, True),
        ("RR (epsilon 1)", 0.0, 0.2, True),
        ("X", 0.0, 0.4, False),
    ]
    table = pd.DataFrame(settings, columns=["title", "revealed", "worth", "meets"]).assign(**found)
    report = priors.PriorsReport(
        name="a", rows=10**8, at_stake=0.1, target=Target(), level=0.98, settings=table, passes=2,
        seconds=60.0, workers=2, bag=None, made="",
    )  # fmt: skip
    assert "3 of 4 settings meet the target" in report.headline
    assert report.headline.endswith(
        "learner: RR (epsilon 2); LLP (bags of 8), but it proves 0.6 of all labels."
    )
    none = replace(report, settings=table[3:])
    assert none.headline.endswith(" 0 of 1 settings meet the target (" + str(report.target) + ").")
    assert "ten billion would take about 1.7 hours here" in report.larger
    assert "would need about 2 minutes" in report.larger


def test_bags_of_unequal_size(tmp_path):
    eta = np.random.default_rng(2).beta(2, 5, 50)
    sizes = np.array([1, 2, 3, 4, 40])
    frame = pd.DataFrame({"eta": eta, "day": np.repeat(list("abcde"), sizes)})
    frame.to_parquet(tmp_path / "days.parquet")
    [exposure] = rows_of(tmp_path / "days.parquet", Options(mechanisms=["llp"]))
    bags = np.split(eta, np.cumsum(sizes)[:-1])
    gains = [la.additive_advantage(bag[None], la.LabelProportions(bag.size)).sum() for bag in bags]
    assert exposure.additive == pytest.approx(sum(gains) / 50, abs=1e-12)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0.1, 1.5], "must lie in"),
        ([0.1, math.nan], "must lie in"),
        (["a", "b"], "."),
    ],
)
def test_what_is_no_prior_is_rejected(tmp_path, column, message):
    pd.DataFrame({"eta": column}).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=message):
        audit_priors(tmp_path / "bad.parquet", "eta", PLAN)


def test_a_damaged_part_is_one_line_and_nothing_is_lost(folder, tmp_path, capsys):
    """Its footer is whole, its data are not: that shows only when the part is read."""
    path, whole = folder[0], audit_priors(folder[0], "eta", PLAN)
    damaged, page = path / "1.parquet", tmp_path / "page.html"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:4] + b"\xff" * 600 + content[604:])
    asked = ["--prior", "eta", "--bag-sizes", 4, "--epsilons", 1, "--level", 0.9, "--workers", 1]
    assert run(path, *asked, "--output", page) == 2
    assert "1.parquet is damaged: " in capsys.readouterr().err.splitlines()[-1]
    damaged.write_bytes(content)
    assert run(path, *asked, "--output", page) in (0, 3)
    numbers = json.loads(page.with_suffix(".json").read_text())["exposures"]
    assert [each["additive"] for each in numbers] == whole.settings["additive"].tolist()


def test_unsorted_bags_and_missing_files_are_rejected(tmp_path):
    frame = pd.DataFrame({"eta": [0.1, 0.2, 0.3], "day": [2, 1, 2]})
    frame.to_parquet(tmp_path / "days.parquet")
    with pytest.raises(ValueError, match="sorted by the bag column 'day'"):
        audit_priors(tmp_path / "days.parquet", "eta", PLAN, bag="day")
    with pytest.raises(ValueError, match="no column 'p'; it has eta, day"):
        audit_priors(tmp_path / "days.parquet", "p", PLAN)
    frame[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        audit_priors(tmp_path / "empty.parquet", "eta", PLAN)
    frame.assign(day=[1, 1, None]).to_parquet(tmp_path / "gap.parquet")
    with pytest.raises(ValueError, match="the bag 'day' is missing"):
        audit_priors(tmp_path / "gap.parquet", "eta", PLAN, bag="day")
    frame.assign(day="all").to_parquet(tmp_path / "one.parquet")
    [exposure] = rows_of(tmp_path / "one.parquet", Options(mechanisms=["llp"]))
    expected = la.additive_advantage([[0.1, 0.2, 0.3]], la.LabelProportions(3)).mean()
    assert exposure.additive == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match=r"has 3 rows: too few for LLP \(bags of 4\)"):
        audit_priors(tmp_path / "days.parquet", "eta", PLAN)
    both = tmp_path / "both"
    both.mkdir()
    frame[:0].to_parquet(both / "0.parquet")
    frame.to_parquet(both / "1.parquet")
    assert audit_priors(both, "eta", Options(mechanisms=["rr"])).rows == 3
    with pytest.raises(ValueError, match="no parquet file at"):
        audit_priors(tmp_path / "none.parquet", "eta", PLAN)


def test_the_command_streams_priors_without_labels(folder, tmp_path, capsys):
    path, eta = folder
    page = tmp_path / "page.html"
    asked = ["--prior", "eta", "--bag", "day", "--epsilons", 1, "--workers", 1, "--output", page]
    assert run(path, *asked, "--target", "additive=0.05") == 0
    assert "ten billion" in capsys.readouterr().out
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert numbers["rows"] == 1200 and len(numbers["exposures"]) == 4
    expected = la.additive_advantage(eta.reshape(-1, 4), la.LabelProportions(4)).mean()
    assert numbers["exposures"][1]["additive"] == pytest.approx(expected, abs=1e-12)
    assert "An additive target alone can be met" in page.read_text()
    # No setting keeps a target of zero epsilon, and none is to be published.
    assert run(path, *asked, "--overwrite", "--target", "epsilon=0") == 3
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert not any(each["meets"] for each in numbers["exposures"])
    assert run(path, "--prior", "p", "--output", tmp_path / "other.html") == 2
    assert run(path, "--output", tmp_path / "other.html") == 2
    assert "--label COLUMN" in capsys.readouterr().err


def test_a_dask_cluster_gives_the_same(folder, tmp_path, capsys):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    path, _ = folder
    asked = ["--prior", "eta", "--bag-sizes", 4, "--epsilons", 1, "--level", 0.9, "--output"]
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        address = ["--address", cluster.scheduler_address]
        assert run(path, *asked, tmp_path / "cluster.html", *address) == 0
    numbers = json.loads((tmp_path / "cluster.json").read_text())
    expected = audit_priors(path, "eta", PLAN).settings["additive"].tolist()
    assert [each["additive"] for each in numbers["exposures"]] == expected
    assert run(path, *asked, tmp_path / "other.html", *address, "--workers", 2) == 2
    assert "a cluster has its own workers" in capsys.readouterr().err
    assert run(path, *asked, tmp_path / "other.html", *address, "--label", "day") == 2
    assert "--address is for priors without labels" in capsys.readouterr().err


@pytest.mark.slow
def test_processes_give_the_same(tmp_path):
    for number in range(5):
        write(tmp_path / f"{number}.parquet", np.random.default_rng(number).beta(2, 5, 4096))
    assert len(priors.parts_of(tmp_path, "eta", None)) == 5
    alone = audit_priors(tmp_path, "eta", PLAN)
    shared = audit_priors(tmp_path, "eta", PLAN, workers=2)
    assert shared.settings.equals(alone.settings) and (shared.workers, alone.workers) == (2, 1)
