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
from labelaudit.learning import sweep
from labelaudit.learning.grid import ETA, Grid, mechanism
from labelaudit.learning.scores import auc
from labelaudit.learning.store import Record, Store, key
from labelaudit.mechanisms import LabelProportions, Mechanism

LEVEL = 0.98
# Raise it whenever the same configuration would give another advantage; trainings stay valid.
REVISION = 3
# What is estimated: the law of eta in the sample, or in the data it was thinned from.
SAMPLED, UNTHINNED = "as sampled", "before thinning"
# Random numbers for each purpose. A training with the same seed numbers its own from 0.
STREAMS = {"folds": 100, "rows": 101, "partitions": 102}


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
    if data.simulated:
        return {"source": "known"}
    settings = sweep.settings_of(grid, data, **{**ETA, **grid.eta})
    return {"source": "network", "folds": 5, "settings": settings}


def estimand(data: Dataset) -> str:
    """Which law of eta the advantages of a data set are about."""
    return SAMPLED if data.negatives_kept == 1.0 else UNTHINNED


def plan(grid: Grid, data: Dataset, store: Store) -> sweep.Plan:
    """Compare the mechanisms of a grid with the store."""
    own = grid.for_data(data.name)
    runs = {key(one, data.fingerprint): one for one in configurations(own, data)}
    return sweep.compare(runs, data, own.train_rows, store)


def run(
    todo: sweep.Plan,
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
    quality = {"eta_auc": auc(todo.data.train.labels, eta)}
    work = partial(advantage_once, laws=laws, quality=quality)
    return sweep.run(todo, store, work=work, engine=engine, progress=progress)


def estimated_eta(data: Dataset, recipe: dict[str, Any], seed: int) -> Floats:
    """eta of the training rows as they are: the true one, or the cross-fitted network's."""
    if recipe["source"] == "known":
        assert data.train.eta is not None
        return data.train.eta
    from labelaudit.learning.eta import Network, cross_fit
    from labelaudit.learning.training import Settings

    learner = Network(Settings(**recipe["settings"]))
    part, rng = data.train, _stream(seed, "folds")
    return cross_fit(part.features, part.labels, learner, folds=recipe["folds"], rng=rng).eta


def laws_of(data: Dataset, eta: Floats, seed: int) -> dict[str, Floats]:
    """The rows' eta for each estimand.

    Before thinning there were more negatives: estimates are corrected, and rows drawn again by
    their weight, as `eta.estimated_law` does.
    """
    laws = {SAMPLED: eta}
    if (weights := data.train.weights) is not None:
        chances = weights / weights.sum()
        laws[UNTHINNED] = _stream(seed, "rows").choice(data.correct_eta(eta), eta.size, p=chances)
    return laws


def advantage_once(
    data: Dataset,
    configuration: dict[str, Any],
    *,
    laws: Mapping[str, Floats],
    quality: Mapping[str, float],
) -> dict[str, Any]:
    """Both measures of one mechanism, with the share of labels revealed for certain.

    They are those of the configuration's estimand; beside them, as `additive_as_sampled` and so
    on, those of the sample as it is. `quality` says how good the estimate of eta is.
    """
    chosen = mechanism(configuration["mechanism"]) or LabelProportions(1)
    wanted = configuration["estimand"]
    measured = {
        name: _measured(eta, chosen, configuration["level"], configuration["seed"])
        for name, eta in laws.items()
    }
    both = ("additive", "multiplicative", "infinite_share", "eta_mean")
    beside = {f"{name}_as_sampled": measured[SAMPLED][name] for name in both}
    return {"estimand": wanted, **measured[wanted], **beside, **quality}


def _measured(eta: Floats, chosen: Mechanism, level: float, seed: int) -> dict[str, Any]:
    """The measures of one law. Clean labels are a bag of one without noise.

    The additive advantage is averaged over two random partitions into bags; the quantile is that
    of a third, examples weighted equally and releases by their probability.
    """
    rng = _stream(seed, "partitions")
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


def _stream(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAMS[name],)))


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
