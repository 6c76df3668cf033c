"""Lemma A.1 and the proof of Theorem 3.2: the optimal attacker, and labels without features."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
from scipy import special

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.tools import Smallest, small_bags
from labelaudit.ledger.exact import HALF, Bag, Channel, Labels
from labelaudit.ledger.rows import Finding, Search, confirm, statement

ROUNDING = 1e-9


def first_label(labels: Labels) -> dict[Any, Fraction]:
    """A mechanism that reveals the first label and nothing else."""
    return {labels[0]: Fraction(1)}


def threshold_gain(eta: Bag, channel: Channel, index: int, threshold: Fraction) -> Fraction:
    """What the attacker gains who guesses 1 when the posterior is at least `threshold`."""
    pairs = exact.joint(eta, channel, index).values()
    success = sum((pair[pair[1] >= threshold * sum(pair)] for pair in pairs), Fraction(0))
    return success - max(eta[index], 1 - eta[index])


@statement(
    "LA.1",
    544,
    "f1i - f2i = min{eta_i, 1-eta_i} - E min_b P(y_i=b|x,M); thresholding at 1/2 is optimal",
    chapter="02_additive_advantage",
    mutants=[{"threshold": Fraction(2, 3)}],
)
def optimal_attacker(search: Search, threshold: Fraction = HALF) -> Finding:
    """Lemma A.1: try every map from releases to guesses against the formula and the threshold."""
    flip = Fraction(1, 4)
    worst, cases = Smallest(Fraction(1)), 0
    for size in search.pick((1, 2), (1, 2, 3)):
        channels: dict[str, Channel] = {
            "label proportions": exact.label_proportions,
            "randomized response": exact.randomized_response(flip),
            "LLP+Geom": exact.geometric_proportions(size, flip),
            "the first label": first_label,
        }
        for eta, (name, channel) in product(small_bags(size, 6), channels.items()):
            for index in range(size):
                best = exact.best_deterministic_gain(eta, channel, index)
                formula = exact.additive_advantage(eta, channel, index)
                gain = threshold_gain(eta, channel, index, threshold)
                off = max(abs(best - formula), abs(best - gain))
                worst.see([-off], [f"eta = {[str(e) for e in eta]}, i = {index + 1}, {name}"])
                cases += 1
    searched = f"{cases} exact cases: priors on the grid j/6, bags of up to {size}, four mechanisms"
    if worst.value < 0:
        return Finding("false", f"The best attacker gains {-worst.value} more, {worst}.", searched)
    return Finding(
        "holds",
        f"In all {cases} cases the best of all maps from releases to guesses gains exactly what "
        "the formula says, and the threshold attacker reaches it. For a randomized mechanism the "
        "expectation runs over its coins too, which the display leaves to the reader.",
        searched,
    )


def best_joint_success(eta: Bag, channel: Channel) -> Fraction:
    """The largest expected fraction of right guesses over all maps from releases to labellings."""
    size, tables = len(eta), [exact.joint(eta, channel, i) for i in range(len(eta))]
    best = Fraction(0)
    for answers in product(product((0, 1), repeat=size), repeat=len(tables[0])):
        right = Fraction(0)
        for z, guess in zip(tables[0], answers, strict=True):
            right += sum((tables[i][z][guess[i]] for i in range(size)), Fraction(0))
        best = max(best, right / size)
    return best


@statement(
    "e-advf1f2",
    600,
    "EAdv(LLP) = E[f1i - f2i] for every i",
    chapter="02_additive_advantage",
    mutants=[{"mechanism": first_label}],
)
def advantage_per_example(search: Search, mechanism: Channel = exact.label_proportions) -> Finding:
    """Equation (e:advf1f2): the definition of EAdv against each example's own gap."""
    law = [(Fraction(1, 5), Fraction(2, 3)), (Fraction(1, 2), Fraction(1, 3))]
    blind = sum((w * max(v, 1 - v) for v, w in law), Fraction(0))
    off = Smallest(Fraction(1))
    for size in search.pick((1, 2), (1, 2, 3)):
        informed = (w * best_joint_success(eta, mechanism) for eta, w in exact.bags(law, size))
        defined = sum(informed, Fraction(0)) - blind
        for i in range(size):
            gap = exact.expected_advantage(law, mechanism, size, i)
            off.see([-abs(defined - gap)], [f"bag size {size}, i = {i + 1}"])
    pairs = exact.in_bags(mechanism, 2)
    one_bag = exact.expected_advantage(law, mechanism, 2)
    for i in range(4):
        gap = exact.expected_advantage(law, pairs, 4, i)
        off.see([-abs(gap - one_bag)], [f"m = 4 in bags of 2, i = {i + 1}"])
    searched = f"eta = 1/5 or 1/2, bags of up to {size}, m = 4 in two bags; every attacker, exact"
    if off.value < 0:
        return Finding("false", f"The two sides differ by {-off.value}: {off}.", searched)
    return Finding(
        "holds",
        f"Equal as fractions for every i, both in one bag and in two. Symmetry of the mechanism is "
        f"what makes all i alike (the value for bags of 2 is {one_bag}).",
        searched,
    )


@statement(
    "T3.2-post",
    625,
    "P(y_i = 1 | Sigma) = alpha when labels are independent of features",
    chapter="03_label_aggregation",
    mutants=[{"tilt": Fraction(1, 10)}],
)
def posterior_is_proportion(search: Search, tilt: Fraction = Fraction(0)) -> Finding:
    """Proof of Theorem 3.2: equal priors make the posterior the released proportion."""
    sizes = range(1, search.pick(6, 9))
    for size, j in product(sizes, range(1, 10)):
        p = Fraction(j, 12)
        eta = [p + tilt, *[p] * (size - 1)]
        for alpha, chance in exact.posterior(eta, exact.label_proportions, 0).items():
            if chance != alpha:
                place = f"eta = {[str(e) for e in eta]}, alpha = {alpha}"
                return Finding("false", f"The posterior is {chance} at {place}.", "stopped there")
    return Finding(
        "holds",
        "The posterior of every example equals alpha as a fraction, whatever p in (0, 1).",
        f"bags of 1 to {max(sizes)}, p = 1/12, ..., 9/12, all labellings, exact",
    )


@statement(
    "e-mindiff",
    632,
    "min{a, 1-a} - min{b, 1-b} <= |a - b| on [0, 1]",
    chapter="03_label_aggregation",
    mutants=[{"constant": Fraction(9, 10)}],
)
def lipschitz(search: Search, constant: Fraction = Fraction(1)) -> Finding:
    """Equation (e:mindiff): the least error of a guess is 1-Lipschitz in the posterior."""
    steps = search.pick(60, 240)
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    slack = Smallest()
    for a in grid:
        gaps = [constant * abs(a - b) - min(a, 1 - a) + min(b, 1 - b) for b in grid]
        slack.see(gaps, [f"a = {a}, b = {b}" for b in grid])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}; equality when both points lie on "
        "one side of 1/2 and a is the nearer to it.",
        f"all a, b on the grid j/{steps}, exact",
    )


def log_mean_deviation(p: Any, k: int) -> Any:
    """log E|alpha - p| by De Moivre: E|Z - kp| = 2 v C(k, v) p^v (1-p)^(k-v+1), v = [kp] + 1."""
    v = np.floor(k * p) + 1
    log_choose = special.gammaln(k + 1) - special.gammaln(v + 1) - special.gammaln(k - v + 1)
    return np.log(2 * v / k) + log_choose + v * np.log(p) + (k - v + 1) * np.log1p(-p)


@statement(
    "T3.2-chain",
    643,
    "EAdv <= E|alpha - p| <= sqrt(p(1-p)/k)",
    chapter="03_label_aggregation",
    mutants=[{"constant": 0.99}],
)
def absolute_deviation(search: Search, constant: float = 1.0) -> Finding:
    """Proof of Theorem 3.2: first (e:mindiff), then Jensen."""
    slack = Smallest()
    for k, j in product(range(1, search.pick(9, 31)), range(1, 20)):
        p = Fraction(j, 20)
        pmf = exact.binomial(k, p)
        deviation = sum((mass * abs(Fraction(s, k) - p) for s, mass in enumerate(pmf)), Fraction(0))
        square = Fraction(constant) ** 2 * p * (1 - p) / k
        first = deviation - exact.independent_advantage_fraction(p, k)
        slack.see(
            [first, square - deviation**2],
            [f"k = {k}, p = {p}, {n} step" for n in ("first", "second")],
        )
    grid = np.concatenate([np.geomspace(1e-4, 0.5, 200), [0.3, 0.45, 0.499]])
    for k in search.pick((100, 10_000), (50, 100, 1000, 10_000, 100_000, 1_000_000)):
        deviation = np.exp(log_mean_deviation(grid, k))
        first = 1 - np.exp(exact.log_independent_advantage(grid, k)) / deviation
        second = constant * np.sqrt(grid * (1 - grid) / k) / deviation - 1
        slack.see(np.minimum(first, second) + ROUNDING, [f"k = {k}, p = {p:.4g}" for p in grid])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}. The first step is an equality at p = 1/2 for every k, "
        "both are at k = 1, p = 1/2.",
        f"exact for k < {search.pick(9, 31)}, p = j/20; closed forms for k up to {k}, p >= 1e-4",
    )


@statement(
    "T3.2-step",
    650,
    "min{a, 1-a} = a - (2a-1) 1{a > 1/2} >= a - 1{a > 1/2}",
    chapter="03_label_aggregation",
    mutants=[{"slope": 3}, {"weight": Fraction(9, 10)}],
)
def split_at_half(search: Search, slope: int = 2, weight: Fraction = Fraction(1)) -> Finding:
    """Proof of Theorem 3.2, the case with a gap: rewrite the minimum, then use 2a - 1 <= 1."""
    steps = search.pick(100, 5000)
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    identity = [-abs(min(a, 1 - a) - a + (slope * a - 1) * (a > HALF)) for a in grid]
    bound = [min(a, 1 - a) - a + weight * (a > HALF) for a in grid]
    slack = Smallest()
    slack.see(identity, [f"a = {a} in the identity" for a in grid])
    slack.see(bound, [f"a = {a} in the inequality" for a in grid])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}; the inequality is tight for a <= 1/2 and at a = 1.",
        f"a = j/{steps}, exact; both sides are linear on either side of 1/2",
    )


def log_majority(p: Any, k: int) -> Any:
    """log P(alpha > 1/2); terms further than 20 standard deviations out are dropped."""
    p = np.asarray(p, dtype=float)[..., None]
    first = k // 2 + 1
    count = np.arange(first, min(k, first + int(10 * k**0.5) + 40) + 1)
    log_choose = (
        special.gammaln(k + 1) - special.gammaln(count + 1) - special.gammaln(k - count + 1)
    )
    return special.logsumexp(
        log_choose + special.xlogy(count, p) + special.xlog1py(k - count, -p), axis=-1
    )


@statement(
    "T3.2-tail",
    660,
    "EAdv <= P(alpha > 1/2) for p < 1/2",
    chapter="03_label_aggregation",
    mutants=[{"constant": 0.9}],
)
def advantage_by_majority(search: Search, constant: float = 1.0) -> Finding:
    """Proof of Theorem 3.2, the case with a gap: a wrong majority is needed to gain anything."""
    slack = Smallest()
    for k, j in product(range(1, search.pick(9, 31)), range(1, 10)):
        p = Fraction(j, 20)
        tail = sum(exact.binomial(k, p)[k // 2 + 1 :], Fraction(0))
        gap = Fraction(constant) * tail - exact.independent_advantage_fraction(p, k)
        slack.see([gap / tail], [f"k = {k}, p = {p}, as a share of the tail"])
    grid = np.geomspace(1e-4, 0.4999, 200)
    for k in search.pick((100, 10_000), (50, 100, 1000, 10_000, 100_000, 1_000_000)):
        ratio = np.exp(exact.log_independent_advantage(grid, k) - log_majority(grid, k))
        slack.see(constant - ratio, [f"k = {k}, p = {p:.4g}" for p in grid])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}; equality at k = 1. For p > 1/2 read P(alpha < 1/2).",
        f"exact for k < {search.pick(9, 31)}, p = j/20 < 1/2; k up to {k}, 1e-4 <= p < 1/2",
    )


@statement(
    "T3.2-Bern",
    663,
    "P(alpha > 1/2) <= exp(-k(1/2-p)^2 / (2p(1-p) + (1-2p)/3)) = exp(-Omega(k beta^2))",
    chapter="03_label_aggregation",
    mutants=[{"exponent": 2.0}],
)
def majority_tail(search: Search, exponent: float = 1.0) -> Finding:
    """Proof of Theorem 3.2: Bernstein's inequality, and the rate it leaves."""
    grid = np.concatenate([np.geomspace(1e-6, 0.4999, 400), 0.5 - np.geomspace(1e-4, 0.4, 200)])
    quick, full = np.geomspace(1, 1e4, 12), np.geomspace(1, 1e6, 40)
    sizes = sorted({round(k) for k in search.pick(quick, full)})
    slack = Smallest()
    for k in sizes:
        rate = k * (0.5 - grid) ** 2 / (2 * grid * (1 - grid) + (1 - 2 * grid) / 3)
        slack.see(-exponent * rate - log_majority(grid, k), [f"k={k}, p={p:.4g}" for p in grid])
    for j in range(51):
        p = Fraction(j, 100)
        denominator = 2 * p * (1 - p) + (1 - 2 * p) / 3
        confirm(Fraction(5, 9) - denominator == 2 * (p - Fraction(1, 3)) ** 2, "denominator <= 5/9")
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The bound is at least {exp(min(slack.value, 50)):.4g} times the tail, with the smallest "
        f"log ratio {slack}. The denominator is 5/9 - 2(p-1/3)^2 <= 5/9, so the exponent is at "
        "least (9/5) k beta^2.",
        f"{len(sizes)} values of k from 1 to {sizes[-1]}, 600 values of p from 1e-6 to 1/2",
    )
