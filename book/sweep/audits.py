"""The advantage of an attacker under each mechanism of a sweep: computed once, stored like a run.

On simulated data eta is the true one. Elsewhere it is a network's, trained on clean labels and
cross-fitted. Given eta, both measures are exact over the mechanism's releases. Where negatives were
thinned a record holds two advantages: in the sample as it is, and before thinning. The book shows
the second.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from book.sweep import runs
from book.sweep.grid import ETA, Grid, mechanism
from book.sweep.store import Store
from labelaudit import priors
from labelaudit.advantage import worth
from labelaudit.checks import Floats
from labelaudit.datasets import Dataset
from labelaudit.distribution import multiplicative_quantile
from labelaudit.estimates import expected_advantage
from labelaudit.learning.calibration import auc
from labelaudit.mechanisms import LabelProportions, Mechanism

LEVEL = 0.98
# Raise it whenever the same configuration would give another advantage; trainings stay valid.
REVISION = 4


def configurations(grid: Grid, data: Dataset) -> Iterator[dict[str, Any]]:
    """What an advantage depends on: the mechanism, the source of eta, the random partitions."""
    grid = grid.for_data(data.name)
    # Checked for simulated data too, which need no network: a misspelt setting is never ignored.
    settings = runs.training_settings(data, "eta", **{**grid.training, **ETA, **grid.eta})
    network = {"source": "network", "folds": 5, "settings": settings}
    for description in grid.descriptions():
        yield {
            "task": "advantage",
            "dataset": data.name,
            "mechanism": description,
            "eta": {"source": "known"} if data.simulated else network,
            "estimand": "as sampled" if data.negatives_kept == 1.0 else "before thinning",
            "level": LEVEL,
            "seed": grid.seed,
            "revision": REVISION,
        }


def plan(grid: Grid, data: Dataset, store: Store) -> pd.DataFrame:
    """The audits of a grid with their state in the store."""
    return runs.compared(configurations(grid, data), data, store)


def complete(grid: Grid, data: Dataset, store: Store, **options: Any) -> pd.DataFrame:
    """Estimate eta if any advantage is missing, and compute those; the options of `runs.run`."""
    planned, first = plan(grid, data, store), next(configurations(grid, data))
    if planned["state"].ne("done").any():
        eta = estimated_eta(data, first["eta"], first["seed"])
        work = partial(advantage_once, quality={"eta_auc": auc(data.train.labels, eta)})
        values = populations(data, eta, first["seed"])
        runs.run(planned, data, store, work=work, source=values, **options)
    return planned


def estimated_eta(data: Dataset, recipe: dict[str, Any], seed: int) -> Floats:
    """eta of the training rows as they are: the true one, or the cross-fitted network's."""
    if recipe["source"] == "known":
        assert data.train.eta is not None
        return data.train.eta
    from labelaudit.learning.eta import cross_fit
    from labelaudit.learning.learners import NetworkLearner
    from labelaudit.learning.training import TrainingSettings, stream

    learner = NetworkLearner(TrainingSettings(**recipe["settings"]))
    part, rng = data.train, stream(seed, "folds")
    return cross_fit(part.features, part.labels, learner, folds=recipe["folds"], rng=rng).eta


def populations(data: Dataset, eta: Floats, seed: int) -> Floats:
    """The rows' eta in the sample as it is and, last, under the `estimand`: one row or two.

    Before thinning there were more negatives: estimates are corrected, rows drawn by weight.
    """
    from labelaudit.learning.training import stream

    if (weights := data.train.weights) is None:
        return eta[None]
    probabilities = weights / weights.sum()
    drawn = stream(seed, "rows").choice(data.correct_eta(eta), eta.size, p=probabilities)
    return np.stack([eta, drawn])


def advantage_once(
    values: Floats, configuration: dict[str, Any], *, quality: Mapping[str, float]
) -> dict[str, Any]:
    """Both measures of one mechanism, with the fraction of labels revealed for certain.

    `values` are the `populations`: the last is the configuration's estimand, the first the sample
    as it is, whose measures are named `additive_as_sampled` and so on.
    """
    chosen = mechanism(configuration["mechanism"]) or LabelProportions(1)
    level, seed = configuration["level"], configuration["seed"]
    measured = [_measured(eta, chosen, level, seed) for eta in values]
    both = ("additive", "multiplicative", "infinite_share", "eta_mean")
    beside = {f"{name}_as_sampled": measured[0][name] for name in both}
    return {"estimand": configuration["estimand"], **measured[-1], **beside, **quality}


def _measured(eta: Floats, chosen: Mechanism, level: float, seed: int) -> dict[str, Any]:
    """The measures of one population. Clean labels are a bag of one without noise.

    The additive advantage is averaged over two random partitions into bags; the quantile, the
    largest |I| and the `worth` are those of a third.
    """
    from labelaudit.learning.training import stream

    rng, prior = stream(seed, "partitions"), priors.Empirical(eta)
    additive = expected_advantage(prior, chosen, n_bags=2, rng=rng)
    bags = prior.partition(chosen.bag_size, rng)
    variance = bags * (1 - bags)
    return {
        "additive": additive.value,
        "additive_error": additive.standard_error,
        "sampling_error": additive.sampling_error,
        "multiplicative": multiplicative_quantile(bags, chosen, level),
        "maximum": multiplicative_quantile(bags, chosen, 1.0),
        "infinite_share": infinite_share(bags, chosen),
        "worth": float((variance * worth(bags, chosen)).sum() / variance.sum()),
        "bags": len(bags),
        "method": additive.method,
        "eta_mean": prior.mean,
    }


def infinite_share(eta: Floats, chosen: Mechanism) -> float:
    """The probability that a label is uncertain, and revealed by a release without noise.

    It is revealed where all uncertain members have equal labels; certain ones change nothing.
    """
    if math.isfinite(chosen.epsilon):
        return 0.0
    uncertain = (eta > 0) & (eta < 1)
    ones, zeros = np.where(uncertain, eta, 1.0), np.where(uncertain, 1 - eta, 1.0)
    equal = ones.prod(axis=1) + zeros.prod(axis=1)
    return float((equal[:, None] * uncertain).mean())
