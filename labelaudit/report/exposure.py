"""The attack, setting by setting: what eta promises, what the true labels show, and for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from labelaudit.advantage import additive_advantage, multiplicative_advantage
from labelaudit.attack import posterior
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.report.beliefs import Beliefs, Say
from labelaudit.report.intervals import Interval, Share, over_bags, over_refits, over_rounds
from labelaudit.report.plan import Plan
from labelaudit.report.settings import Setting, refuse_more_than

Labels = NDArray[np.uint8]
# Records that one refit attacks; the standard errors of so many are far below any target. A small
# table is attacked several times over in each refit, in other bags and with fresh noise.
MOST_RECORDS = 250_000
MOST_ROUNDS = 10
# Groups of bags that give the error of a percentile.
GROUPS = 8
# A label counts as known where the attacker gives it at least this probability.
SURE = 0.95


@dataclass(frozen=True)
class ByLabel:
    """What the release does to the records with one true label.

    `gain` is the attacker's gain in accuracy on them; the shares are those whose true label the
    attacker is at least 95% sure of, before and after.
    """

    label: int
    gain: Interval
    sure_before: Interval
    sure_after: Interval


@dataclass(frozen=True)
class Exposure:
    """What one setting gives away, with intervals by bag that include refitting eta.

    `difference` is realised minus plug-in, from the same bags. `percentile` is that of |I| over
    the records, `revealed` the share of them whose label the release proves.
    """

    setting: Setting
    epsilon: float
    bag_size: int
    plug_in: Interval
    realised: Interval
    difference: Interval
    percentile: Interval
    revealed: Interval
    by_label: tuple[ByLabel, ...]
    method: str

    @property
    def title(self) -> str:
        """The setting in short."""
        return self.setting.title

    @property
    def guarantee(self) -> float:
        """Epsilon where it is known; none where it is only declared."""
        return self.epsilon if self.setting.checked else math.inf

    @property
    def contradicted(self) -> bool:
        """Whether plug-in and realised advantage differ by more than two standard errors."""
        error = self.difference.standard_error
        return bool(abs(self.difference.value) > 2 * error)


@dataclass
class _Refits:
    """The numbers of one setting, gathered refit by refit."""

    numbers: dict[str, list[Share]] = field(default_factory=dict)

    def add(self, name: str, share: Share) -> None:
        self.numbers.setdefault(name, []).append(share)

    def __getitem__(self, name: str) -> Interval:
        return over_refits(self.numbers[name])


def expose(
    labels: Labels, beliefs: Beliefs, plan: Plan, say: Say = lambda line: None
) -> tuple[Exposure, ...]:
    """Attack every setting in every refit: new bags, a fresh release, the refit's own eta."""
    found: dict[Setting, _Refits] = {setting: _Refits() for setting in plan.settings}
    streams = np.random.SeedSequence([plan.seed, 2]).spawn(len(beliefs.etas))
    for number, (eta, stream) in enumerate(zip(beliefs.etas, streams, strict=True), 1):
        rng = np.random.default_rng(stream)
        say(f"attack: refit {number} of {len(streams)}, {len(plan.settings)} settings")
        for bag_size in sorted({setting.mechanism.bag_size for setting in plan.settings}):
            here = [one for one in plan.settings if one.mechanism.bag_size == bag_size]
            rounds: dict[Setting, list[dict[str, Share]]] = {setting: [] for setting in here}
            for _ in range(rounds_for(labels.size)):
                bags = random_bags(labels.size, bag_size, rng)
                priors, truth = eta[bags], labels[bags]
                for setting in here:
                    rounds[setting].append(
                        attack_once(priors, truth, setting.mechanism, plan.level, rng)
                    )
            for setting in here:
                for name in rounds[setting][0]:
                    found[setting].add(name, over_rounds([one[name] for one in rounds[setting]]))
    return tuple(_exposure(setting, refits) for setting, refits in found.items())


def rounds_for(rows: int) -> int:
    """How often a refit attacks a table of so many rows."""
    return min(max(MOST_RECORDS // rows, 1), MOST_ROUNDS)


def random_bags(rows: int, bag_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers of random bags, at most `MOST_RECORDS` of them: (n_bags, bag_size)."""
    n_bags = min(rows, max(MOST_RECORDS, 10 * bag_size)) // bag_size
    return rng.permutation(rows)[: n_bags * bag_size].reshape(n_bags, bag_size)


def plug_in_advantage(
    eta: Floats, mechanism: Mechanism, rng: np.random.Generator
) -> tuple[Floats, str]:
    """Additive advantage of each example, exact where the law of the release is known."""
    try:
        return additive_advantage(eta, mechanism), "exact over releases"
    except (TypeError, ValueError):
        drawn = mechanism.release((rng.random(eta.shape) < eta).astype(np.int64), rng)
        after = posterior(eta, mechanism, drawn)
        return np.maximum(after, 1 - after) - np.maximum(eta, 1 - eta), "by sampled releases"


@dataclass(frozen=True)
class Attacked:
    """One release of the true labels: what was promised for each bag, and what came of it."""

    promised: Floats
    shifts: Floats
    after: Floats
    gain: NDArray[np.int8]


def attack(eta: Floats, labels: Labels, mechanism: Mechanism, rng: np.random.Generator) -> Attacked:
    """Release the labels and guess them, with the release and without."""
    promised = plug_in_advantage(eta, mechanism, rng)[0].sum(axis=1)
    shifts = multiplicative_advantage(eta, mechanism, mechanism.release(labels, rng))
    name, most = type(mechanism).__name__, float(np.abs(shifts).max())
    refuse_more_than(mechanism.epsilon, most, name, "the attack")
    after = moved(eta, shifts)
    gain = ((after >= 0.5) == labels).astype(np.int8) - ((eta >= 0.5) == labels)
    return Attacked(promised, shifts, after, gain)


def attack_once(
    eta: Floats, labels: Labels, mechanism: Mechanism, level: float, rng: np.random.Generator
) -> dict[str, Share]:
    """Every number of one refit, as a ratio of sums over bags."""
    attacked = attack(eta, labels, mechanism, rng)
    promised, shifts, after, gain = (
        attacked.promised, attacked.shifts, attacked.after, attacked.gain,
    )  # fmt: skip
    gained = gain.sum(axis=1, dtype=np.float64)
    sizes = np.full(len(eta), float(mechanism.bag_size))
    found = {
        "plug_in": over_bags(promised, sizes),
        "realised": over_bags(gained, sizes, unseen=1.0),
        "difference": over_bags(gained - promised, sizes, unseen=1.0),
        "percentile": percentile_of(np.abs(shifts), level),
        "revealed": over_bags(np.isinf(shifts).sum(axis=1, dtype=np.float64), sizes),
    }
    for label in (0, 1):
        these = labels == label
        number = these.sum(axis=1, dtype=np.float64)
        belief_before, belief_after = (eta, after) if label else (1 - eta, 1 - after)
        for name, values, unseen in (
            (f"gain {label}", gain * these, 1.0),
            (f"before {label}", (belief_before >= SURE) & these, 0.0),
            (f"after {label}", (belief_after >= SURE) & these, 1.0),
        ):
            found[name] = over_bags(values.sum(axis=1, dtype=np.float64), number, unseen)
    return found


def moved(eta: Floats, shifts: Floats) -> Floats:
    """The posterior of a prior whose log-odds move by `shifts`; a certain prior stays.

    >>> moved(np.array([0.5, 0.0, 0.3]), np.array([0.0, 0.0, np.inf])).tolist()
    [0.5, 0.0, 1.0]
    """
    return np.asarray(expit(logit(eta) + shifts))


def percentile_of(shifts: Floats, level: float) -> Share:
    """The percentile of |I| over the records of a release; its error from groups of bags."""
    value = float(np.quantile(shifts, level, method="inverted_cdf"))
    parts = np.array_split(shifts, min(GROUPS, len(shifts)))
    found = [np.quantile(part, level, method="inverted_cdf") for part in parts]
    if not np.isfinite(found).all():
        return Share(value, math.inf, float(min(found)))
    return Share(value, float(np.std(found, ddof=1)) / math.sqrt(len(parts)))


def _exposure(setting: Setting, refits: _Refits) -> Exposure:
    mechanism = setting.mechanism
    level = refits["percentile"]
    # Neither below 0 nor, where epsilon is known, above it: no shift was, but a normal end may be.
    ends = np.clip([level.low, level.high], 0, mechanism.epsilon if setting.checked else None)
    tiny = np.full((1, mechanism.bag_size), 0.5)
    return Exposure(
        setting=setting,
        epsilon=mechanism.epsilon,
        bag_size=mechanism.bag_size,
        by_label=tuple(
            ByLabel(label, *(refits[f"{name} {label}"] for name in ("gain", "before", "after")))
            for label in (0, 1)
        ),
        method=plug_in_advantage(tiny, mechanism, np.random.default_rng(0))[1],
        percentile=replace(level, low=float(ends[0]), high=float(ends[1])),
        **{name: refits[name] for name in ("plug_in", "realised", "difference", "revealed")},
    )


def most_exposed(
    eta: Sequence[Floats], ids: Sequence[str], mechanism: Mechanism, count: int, seed: int
) -> list[dict[str, Any]]:
    """The records with the largest advantage, averaged over the refits and a bag in each: ids only.

    Where the records do not fill their last bag, those left over sit that refit out.
    """
    rng = np.random.default_rng([seed, 3])
    total, seen = np.zeros(len(ids)), np.zeros(len(ids))
    for priors in eta:
        n_bags = priors.size // mechanism.bag_size
        rows = rng.permutation(priors.size)[: n_bags * mechanism.bag_size]
        bags = rows.reshape(n_bags, mechanism.bag_size)
        total[rows] += plug_in_advantage(priors[bags], mechanism, rng)[0].ravel()
        seen[rows] += 1
    mean = np.divide(total, seen, out=np.zeros_like(total), where=seen > 0)
    first = np.argsort(-mean, kind="stable")[:count]
    return [{"id": ids[row], "advantage": float(mean[row])} for row in first]
