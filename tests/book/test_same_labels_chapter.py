"""Chapter 15 at smoke scale: how soon labels fall, and what an audit of one release says."""

from functools import partial

import numpy as np
import smoke

import labelaudit as la
from book.chapters.real import published_eta

CHAPTER = "15_same_labels_next_week"
executed = partial(smoke.executed, CHAPTER)


def test_what_depends_on_the_draw_is_a_median_with_its_range():
    numbers = smoke.glued(executed())
    draws = executed().notebook.metadata["labelaudit"]["parameters"]["draws"]
    quoted = ["again-hurry-rare", "again-hurry-even", "again-prediction", "again-needed-large"]
    for name in quoted:
        assert f"of {draws} draws" in numbers[name], name
    needed = smoke.table(executed(), "needed.csv")["diabetes-32"]
    least, middle, largest = (f"{value:g}" for value in needed.quantile([0, 0.5, 1]))
    assert len(needed) == draws and least != largest
    text = f"{middle} releases in the median of {draws} draws, which need from {least} to {largest}"
    assert numbers["again-needed-large"] == text
    weeks = smoke.table(executed(), "weeks.csv").dropna(subset=["y low", "y high"])
    assert len(weeks) == 2 * 2 * 4  # measures, priors, releases
    assert (weeks["y low"] <= weeks["y"]).all() and (weeks["y"] <= weeks["y high"]).all()
    assert (weeks["y low"] < weeks["y high"]).any()


def test_a_release_that_meets_the_target_is_the_one_that_is_told():
    """By the mean of both advantages of the survey, against a tenth of what is guessed wrong."""
    survey = published_eta("diabetes")
    eta, labels = survey.estimates["boosting"], survey.labels
    limit = np.minimum(eta, 1 - eta).mean() / 10
    rng = np.random.default_rng(0)
    numbers = smoke.glued(executed())
    for size, verdict in ((8, "misses"), (32, "meets")):
        mechanism = la.LabelProportions(size)
        bags = rng.permutation(eta.size // size * size).reshape(-1, size)
        plug_in = la.additive_advantage(eta[bags], mechanism).mean()
        after = la.posterior(eta[bags], mechanism, labels[bags].mean(axis=1))
        right = ((after >= 0.5) == labels[bags]).mean()
        realised = right - ((eta[bags] >= 0.5) == labels[bags]).mean()
        assert (max(plug_in, realised) < limit) == (verdict == "meets")
        assert (min(plug_in, realised) > limit) == (verdict == "misses")
        assert numbers["again-verdict-large" if size == 32 else "again-verdict"] == verdict
    assert "in bags of 32 meets the target" in numbers["again-hurry-audit"]
