"""Chapter 10 at smoke scale: its tables, and that its prose follows from them."""

import re
from functools import partial

import numpy as np
import pytest
import smoke

CHAPTER = "10_higgs"
executed = partial(smoke.executed, CHAPTER)
source = partial(smoke.text, CHAPTER)


def glued():
    return smoke.glued(executed())


def table(name):
    return smoke.table(executed(), name)


def test_warnings_are_those_of_the_table():
    rows = table("realised.csv")
    distance = (rows["realised"] - rows["plug-in"]).abs()
    # The table has four decimals, so rows on the border may fall on either side.
    clear = (distance - 2 * rows["error"]).abs() > 4e-4
    warned = rows["warning"] == "!"
    assert (warned == (distance > 2 * rows["error"]))[clear].all()
    raw = warned[rows["eta"].str.endswith("raw")]
    assert glued()["higgs-warnings-raw"] == f"{raw.sum()} of {len(raw)}"


def test_miscalibration_moves_the_two_advantages_in_opposite_ways():
    bent = table("bias.csv").query("case == 'slope' and mechanism == 'LLP'").sort_values("value")
    assert (bent["plug-in"].diff().dropna() < 0).all()
    assert (bent["quantile"].diff().dropna() > 0).all()
    true = bent.iloc[len(bent) // 2]
    assert true["value"] == pytest.approx(1)
    gap = abs(true["realised"] - true["plug-in"])
    assert gap < 4 * true["standard error of the difference"]


def test_the_overfitted_network_reports_far_too_little():
    rows = table("overfitted.csv").set_index(["eta", "mechanism"])["plug-in"]
    for mechanism in ("RR", "LLP", "LLP+Geom"):
        assert 2 * rows["by heart, raw", mechanism] < rows["by heart, calibrated", mechanism]
    ratio = rows["by heart, calibrated", "RR"] / rows["by heart, raw", "RR"]
    assert glued()["higgs-heart-factor"] == pytest.approx(ratio, rel=0.05)


def test_what_is_said_of_the_overfitted_network_follows_from_its_table():
    rows = table("overfitted.csv").query("eta == 'by heart, raw'").set_index("mechanism")
    marked = rows.index[rows["warning"] == "!"]
    words = dict(part.split(" under ") for part in glued()["higgs-heart-said"].split("; "))
    assert words.get("warns", "").split(", ") == (list(marked) or [""])
    silent = [name for name in rows.index if name not in marked]
    assert words.get("is silent", "").split(", ") == (silent or [""])


def test_the_worth_of_a_noisy_label_and_of_a_member_of_a_bag():
    """For a linear effect in balanced labels: 1/4 over the variance of a debiased label."""
    assert glued()["higgs-worth-rr"] == pytest.approx(0.25 * 4 * np.tanh(0.5) ** 2)
    assert glued()["higgs-worth-llp"] == 1 / 8


def test_figures_say_that_the_data_is_simulated():
    if glued()["higgs-shown"] != "simulated stand-in":
        pytest.skip("the real Higgs is prepared, so the page is not made from the stand-in")
    pictures = [
        output["data"]["image/svg+xml"]
        for cell in executed().notebook.cells
        for output in cell.get("outputs", [])
        if "image/svg+xml" in output.get("data", {})
    ]
    assert len(pictures) == len(re.findall(r"^  figure:$", source(), re.MULTILINE))
    assert all("simulated" in picture for picture in pictures)
