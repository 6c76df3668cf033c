"""Whether true labels support an estimated eta: by its own attack, and by its Brier score."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.advantage import additive_advantage
from labelaudit.attack import bayes_guess
from labelaudit.checks import Floats
from labelaudit.learning.calibration import scores_and_labels
from labelaudit.mechanisms import Mechanism
from labelaudit.partitions import Average, Estimate, partition


def calibration_ratio(eta: ArrayLike, labels: ArrayLike) -> float:
    """Spiegelhalter's statistic: the Brier score less its mean if eta were true, over its spread.

    Standard normal for a true eta, large and positive where scores are overconfident, negative
    where they are underconfident. The scores must not have been fitted to these labels in any way:
    in a cross-fitted and calibrated eta each label has helped to scale another fold, which pulls
    the ratio to 0. Ask it of `CrossFitted.raw`, or of rows kept out of the rotation.

    >>> calibration_ratio([0.9] * 100, [1] * 50 + [0] * 50).__round__(1)
    13.3
    """
    scores, truth = scores_and_labels(eta, labels)
    excess = float(np.sum((truth - scores) * (1 - 2 * scores)))
    spread = math.sqrt(np.sum((1 - 2 * scores) ** 2 * scores * (1 - scores)))
    return _ratio(excess, spread)


def _ratio(value: float, error: float) -> float:
    """A value in standard errors: 0 for a value of 0, infinite where there is no error."""
    if value == 0:
        return 0.0
    return value / error if error > 0 else math.copysign(math.inf, value)


@dataclass(frozen=True)
class Comparison:
    """The advantage computed from eta, that of the attack on true labels, and their difference.

    `difference` is realised minus plug-in. Both use the same bags and scores, so its standard
    error is smaller than either's.
    """

    plug_in: Estimate
    realised: Estimate
    difference: Estimate

    @property
    def ratio(self) -> float:
        """The difference in standard errors; 0 where the two agree exactly."""
        return _ratio(self.difference.value, self.difference.standard_error)

    @property
    def warning(self) -> bool:
        """Whether plug-in and realised advantage differ by more than two standard errors."""
        return abs(self.ratio) > 2


def compare(
    eta: ArrayLike,
    labels: ArrayLike,
    mechanism: Mechanism,
    *,
    partitions: int = 20,
    weights: ArrayLike | None = None,
    rng: np.random.Generator,
) -> Comparison:
    """Plug-in and realised additive advantage over random partitions into bags.

    The plug-in is the mean of `additive_advantage` at `eta`. The realised advantage is the gain in
    accuracy of the same attacker, who believes `eta`, on true labels that `eta` was not fitted to.
    For a calibrated `eta` they agree up to sampling error. Agreement alone does not show
    calibration: read `reliability` too. With `weights` (those of a thinned sample, beside its
    corrected eta) bags are drawn with replacement in proportion to them.

    >>> from labelaudit import RandomizedResponse
    >>> labels = np.tile([0, 1], 500)
    >>> honest = compare(np.full(1000, 0.5), labels, RandomizedResponse(1.0),
    ...                  rng=np.random.default_rng(0))
    >>> honest.plug_in.value.__round__(3), honest.warning
    (0.231, False)
    >>> compare(np.full(1000, 0.9), labels, RandomizedResponse(3.0),
    ...         rng=np.random.default_rng(0)).warning
    True
    """
    scores, truth = scores_and_labels(eta, labels)
    k = checks.bag_size(mechanism)
    rounds = checks.whole_number(partitions, "partitions", least=2)
    checks.generator(rng)
    if scores.size < 2 * k:
        raise ValueError(f"two bags of {k} need at least {2 * k} examples, not {scores.size}")
    probabilities = _probabilities_of(weights, scores.size)
    plug_in, realised, difference = (Average(k, scores.size, probabilities) for _ in range(3))
    for _ in range(rounds):
        members = _drawn_bags(scores.size, k, probabilities, rng)
        priors, held = scores[members], truth[members]
        expected = additive_advantage(priors, mechanism).mean(axis=1)
        guessed = bayes_guess(priors, mechanism, mechanism.release(held, rng)) == held
        gained = (guessed.astype(float) - ((priors >= 0.5) == held)).mean(axis=1)
        plug_in.add(members, expected)
        realised.add(members, gained)
        difference.add(members, gained - expected)
    computed, gap = plug_in.estimate(), difference.estimate()
    # Gains so rare that none occurs show no variance. But an advantage p changes a fraction of at
    # least p of the guesses.
    least = math.sqrt(computed.value / (computed.n * k))
    gap = replace(gap, standard_error=max(gap.standard_error, least))
    return Comparison(computed, realised.estimate(), gap)


def _probabilities_of(weights: ArrayLike | None, size: int) -> Floats | None:
    """Weights as the probability that each example is drawn; None where all are equal."""
    if weights is None:
        return None
    values = checks.numbers(weights, "weights")
    if values.shape != (size,):
        raise ValueError(f"weights must have shape ({size},), not {values.shape}")
    invalid = values[~(np.isfinite(values) & (values >= 0))]
    if invalid.size or values.sum() == 0:
        what = f"{invalid[0]}" if invalid.size else "only zeros"
        raise ValueError(f"weights must be finite, at least 0, and not all 0, not {what}")
    return values / values.sum()


def _drawn_bags(
    size: int, bag_size: int, probabilities: Floats | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The members of each bag: a random partition, or draws with these probabilities."""
    if probabilities is None:
        return partition(size, bag_size, rng)
    return rng.choice(size, (size // bag_size, bag_size), p=probabilities)
