"""How much each mechanism of a sweep tells an attacker: computed once, and stored like a run.

eta is the true one where the data are simulated. Elsewhere it is a network's, trained on clean
labels and cross-fitted: each row's eta comes from a network and a calibration that never saw its
label. Given eta, both measures are exact over the mechanism's releases.

Where negatives were thinned there are two things to estimate, and a record holds both: the
advantage in the sample as it is, and that in the data before thinning, which is the one to show.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from labelaudit import priors
from labelaudit.checks import Floats
from labelaudit.datasets import Dataset
from labelaudit.distribution import multiplicative_quantile
from labelaudit.estimates import expected_advantage
from labelaudit.learning.scores import auc
from labelaudit.learning.streams import stream
from labelaudit.learning.sweep import dispatch, plans
from labelaudit.learning.sweep.grid import ETA, Grid, mechanism
from labelaudit.learning.sweep.store import Record, Store, key
from labelaudit.mechanisms import LabelProportions, Mechanism

LEVEL = 0.98
# Raise it whenever the same configuration would give another advantage; trainings stay valid.
REVISION = 3
# What is estimated: the law of eta in the sample, or in the data it was thinned from.
SAMPLED, UNTHINNED = "as sampled", "before thinning"


def configurations(grid: Grid, data: Dataset) -> Iterator[dict[str, Any]]:
    """What an advantage depends on: the mechanism, the source of eta, the random partitions."""
    for described in grid.each():
        yield {
            "task": "advantage",
            "dataset": data.name,
            "mechanism": described,
            "eta": _recipe(grid, data),
            "estimand": estimand(data),
            "level": LEVEL,
            "seed": grid.seed,
            "revision": REVISION,
        }


def _recipe(grid: Grid, data: Dataset) -> dict[str, Any]:
    # Checked for simulated data too, which need no network: a misspelt setting is never ignored.
    settings = plans.settings_of(grid, data, "eta", **{**ETA, **grid.eta})
    if data.simulated:
        return {"source": "known"}
    return {"source": "network", "folds": 5, "settings": settings}


def estimand(data: Dataset) -> str:
    """Which law of eta the advantages of a data set are about."""
    return SAMPLED if data.negatives_kept == 1.0 else UNTHINNED


def plan(grid: Grid, data: Dataset, store: Store) -> plans.Plan:
    """Compare the mechanisms of a grid with the store."""
    own = grid.for_data(data.name)
    runs = {key(one, data.fingerprint): one for one in configurations(own, data)}
    return plans.compare(runs, data, own.train_rows, store)


def run(
    todo: plans.Plan,
    store: Store,
    *,
    engine: contextlib.AbstractContextManager[Any] | None = None,
    progress: bool = False,
) -> list[Record]:
    """Estimate eta if any advantage is missing, and compute those that are."""
    if not todo.to_do:
        return list(todo.done.values())
    recipe = todo.runs[todo.to_do[0]]
    eta = estimated_eta(todo.data, recipe["eta"], recipe["seed"])
    laws = laws_of(todo.data, eta, recipe["seed"])
    work = partial(advantage_once, quality={"eta_auc": auc(todo.data.train.labels, eta)})
    return dispatch.run(todo, store, work=work, given=laws, engine=engine, progress=progress)


def estimated_eta(data: Dataset, recipe: dict[str, Any], seed: int) -> Floats:
    """eta of the training rows as they are: the true one, or the cross-fitted network's."""
    if recipe["source"] == "known":
        assert data.train.eta is not None
        return data.train.eta
    from labelaudit.learning.eta import cross_fit
    from labelaudit.learning.learners import Network
    from labelaudit.learning.training import Settings

    learner = Network(Settings(**recipe["settings"]))
    part, rng = data.train, stream(seed, "folds")
    return cross_fit(part.features, part.labels, learner, folds=recipe["folds"], rng=rng).eta


def laws_of(data: Dataset, eta: Floats, seed: int) -> Floats:
    """The rows' eta in the sample as it is and, last, under the `estimand`: one law or two.

    Before thinning there were more negatives: estimates are corrected, and rows drawn again by
    their weight, as `eta.estimated_law` does.
    """
    if (weights := data.train.weights) is None:
        return eta[None]
    chances = weights / weights.sum()
    drawn = stream(seed, "rows").choice(data.correct_eta(eta), eta.size, p=chances)
    return np.stack([eta, drawn])


def advantage_once(
    laws: Floats, configuration: dict[str, Any], *, quality: Mapping[str, float]
) -> dict[str, Any]:
    """Both measures of one mechanism, with the share of labels revealed for certain.

    They are those of the configuration's estimand, the last of the laws; beside them, as
    `additive_as_sampled` and so on, those of the first, the sample as it is. `quality` says how
    good the estimate of eta is.
    """
    chosen = mechanism(configuration["mechanism"]) or LabelProportions(1)
    measured = [
        _measured(eta, chosen, configuration["level"], configuration["seed"]) for eta in laws
    ]
    both = ("additive", "multiplicative", "infinite_share", "eta_mean")
    beside = {f"{name}_as_sampled": measured[0][name] for name in both}
    return {"estimand": configuration["estimand"], **measured[-1], **beside, **quality}


def _measured(eta: Floats, chosen: Mechanism, level: float, seed: int) -> dict[str, Any]:
    """The measures of one law. Clean labels are a bag of one without noise.

    The additive advantage is averaged over two random partitions into bags; the quantile is that
    of a third, examples weighted equally and releases by their probability.
    """
    rng = stream(seed, "partitions")
    law = priors.Empirical(eta)
    additive = expected_advantage(law, chosen, n_bags=2, rng=rng)
    bags = law.partition(chosen.bag_size, rng)
    return {
        "additive": additive.value,
        "additive_error": additive.standard_error,
        "sampling_error": additive.sampling_error,
        "multiplicative": multiplicative_quantile(bags, chosen, level),
        "infinite_share": infinite_share(bags, chosen),
        "bags": len(bags),
        "method": additive.method,
        "eta_mean": law.mean,
    }


def infinite_share(eta: Floats, chosen: Mechanism) -> float:
    """The chance that a label is in doubt, and revealed for certain by a release without noise.

    That is so where all members in doubt have equal labels; certain ones change nothing.

    >>> round(infinite_share(np.array([[0.5, 0.5], [0.1, 0.2]]), LabelProportions(2)), 9)
    0.62
    """
    if math.isfinite(chosen.epsilon):
        return 0.0
    doubtful = (eta > 0) & (eta < 1)
    ones, zeros = np.where(doubtful, eta, 1.0), np.where(doubtful, 1 - eta, 1.0)
    equal = ones.prod(axis=1) + zeros.prod(axis=1)
    return float((equal[:, None] * doubtful).mean())
