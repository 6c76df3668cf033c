"""Priors of the real data sets, with no download: the estimates of eta that ship in `results/`.

`published_eta` reads them. `chapter_priors` gives the distributions of eta that a chapter's
parameter names: a real set's from its prepared rows if there are any, and else from these tables.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from book.chapters.held_out import held_out_eta
from book.chapters.simulated import named
from labelaudit.checks import Floats
from labelaudit.datasets import DataError, NotPrepared, load
from labelaudit.datasets.dataset import before_thinning
from labelaudit.learning.learners import Boosting
from labelaudit.priors import Empirical, Prior

# Real data sets as people write them.
REAL = {"higgs": "Higgs", "kdd12": "KDD12", "diabetes": "Diabetes"}
STAND_INS = {f"{name}-like": f"stand-in for {REAL[name]}" for name in ("higgs", "kdd12")}
RESULTS = Path(__file__).resolve().parents[2] / "results"


@dataclass(frozen=True)
class PublishedEta:
    """Estimates of eta for each test row of a real set, by name, and the labels if they ship.

    `facts` says what made the table: source, rows, versions, the temperature of each estimate.
    """

    estimates: Mapping[str, Floats]
    labels: NDArray[np.int64] | None
    facts: Mapping[str, Any]


def published_eta(name: str, folder: Path = RESULTS) -> PublishedEta:
    """The table `eta_NAME.csv.gz`: a line of facts, the names of the columns, a row per test row.

    >>> table = published_eta("higgs")
    >>> table.estimates["boosting"].shape, table.facts["test_rows"]
    ((10000,), 10000)
    """
    if name not in REAL:
        raise ValueError(f"a real data set is one of {', '.join(REAL)}, not {name!r}")
    path = folder / f"eta_{name}.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            facts = json.loads(file.readline().lstrip("# "))
            columns = file.readline().strip().split(",")
            values = np.loadtxt(file, delimiter=",", ndmin=2).T
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); it is part of a clone") from None
    table = dict(zip(columns, values, strict=True))
    labels = table.pop("label", None)
    return PublishedEta(table, None if labels is None else labels.astype(np.int64), facts)


def population_priors(
    eta: Floats, negatives_kept: float, rng: np.random.Generator, label: str = "empirical"
) -> Empirical:
    """The distribution of eta before negatives were thinned, from estimates on the thinned rows.

    Estimates are corrected, and rows drawn again with the expected weight of their label,
    eta + (1 - eta) / negatives_kept. Without thinning it is that of the rows.

    >>> population_priors(np.array([0.2, 0.4]), 1.0, np.random.default_rng(0)).values.tolist()
    [0.2, 0.4]
    """
    if negatives_kept == 1.0:
        return Empirical(eta, label)
    weights = eta + (1 - eta) / negatives_kept
    corrected = before_thinning(eta, negatives_kept)
    return Empirical(rng.choice(corrected, eta.size, p=weights / weights.sum()), label)


@dataclass(frozen=True)
class ChapterPriors:
    """Prior distributions by name, in the order given, and where each of them is from."""

    priors: dict[str, Prior]
    titles: dict[str, str]
    origins: dict[str, str]

    @property
    def panels(self) -> dict[str, str]:
        """The title of each panel: what it shows, and below it whether that is real."""
        return {name: f"{self.titles[name]}\n{self.origins[name]}" for name in self.priors}

    @property
    def caption(self) -> str:
        """The sources in one phrase, those of the same origin together."""
        by_origin: dict[str, list[str]] = {}
        for name, origin in self.origins.items():
            by_origin.setdefault(origin, []).append(self.titles[name])
        return "; ".join(f"{', '.join(titles)}: {origin}" for origin, titles in by_origin.items())


def chapter_priors(names: Iterable[str], *, train_rows: int, seed: int) -> ChapterPriors:
    """The distributions that a chapter's parameter names, each of them once.

    A real set's is that of its test rows' eta, estimated by boosted trees. A stand-in has its
    true eta, and `simulated.named` has the others.

    >>> chosen = chapter_priors(["beta-2-30", "higgs", "beta-2-30"], train_rows=500, seed=0)
    >>> chosen.caption
    'Beta(2, 30): simulated; Higgs: real rows'
    """
    chosen = ChapterPriors({}, {}, {})
    for name in dict.fromkeys(names):
        prior, title, origin = _chapter_prior(name, train_rows, np.random.default_rng(seed))
        chosen.priors[name], chosen.titles[name], chosen.origins[name] = prior, title, origin
    return chosen


def _chapter_prior(name: str, train_rows: int, rng: np.random.Generator) -> tuple[Prior, str, str]:
    if name in REAL:
        return real_priors(name, train_rows, rng), REAL[name], "real rows"
    if name in STAND_INS:
        return Empirical(load(name).test.eta, name), STAND_INS[name], "simulated"
    prior = named(name)
    return prior, prior.label, "simulated"


def real_priors(name: str, train_rows: int, rng: np.random.Generator) -> Empirical:
    """The distribution of eta in a real set, from its prepared rows if there are any."""
    try:
        data = load(name, train_rows=train_rows)
    except NotPrepared:
        table = published_eta(name)
        kept = table.facts["negatives_kept"]
        return population_priors(table.estimates["boosting"], kept, rng, REAL[name])
    estimate = held_out_eta(data, Boosting(), rng)
    return population_priors(estimate.eta, data.negatives_kept, rng, REAL[name])
