"""Lemma A.2, from the definition of the advantage to the sum that its proof leaves behind.

What the proof does with that sum is in `spread` (Lemma A.3) and `fourier` (Lemma A.4); the algebra
that joins the pieces is in `aggregation_algebra`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import e, pi
from typing import Any

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.tools import (
    BESSEL_CONSTANT,
    SMALL_LAWS,
    Smallest,
    bessel_constant_is_safe,
    bessel_spread,
    c_k,
    differences,
    small_bags,
    spread,
)
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"
LEMMA_CONSTANT = e**-1.5 + pi / 4 + pi / e


@statement(
    "LA.2-ck",
    688,
    "c_k = O~(sqrt(p(1-p)) + 1/sqrt(k))",
    chapter=CHAPTER,
    mutants=[{"power": 1.0}],
)
def size_of_c_k(search: Search, power: float = 0.5) -> Finding:
    """Lemma A.2: c_k against its order, with one logarithm as the hidden factor."""
    variances = np.concatenate([[0.0], np.geomspace(1e-15, 0.25, 200)])
    slack = Smallest()
    for k in np.geomspace(1, 1e18, search.pick(60, 600)):
        ratio = c_k(k, variances) / (np.sqrt(variances) + k**-power) / np.log(8 * k)
        slack.see(0.5 - ratio, [f"k = {k:.3g}, p(1-p) = {v:.3g}" for v in variances])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        "c_k <= (1/2) log(8k) (sqrt(p(1-p)) + 1/sqrt(k)): the factor 1/2 is never exceeded, with "
        f"slack {slack}.",
        "k from 1 to 1e18, p(1-p) = 0 and from 1e-15 to 1/4",
    )


def lemma_bound(k: Any, mu: Any, variance: Any, constant: float, power: float) -> Any:
    """The right side of Lemma A.2."""
    inner = np.sqrt(constant * np.sqrt(mu) / k**1.5)
    return k**power * np.sqrt(2 * c_k(k, variance)) * inner + mu / k


def known_advantages(search: Search) -> Iterator[tuple[str, int, float, float, float]]:
    """Laws whose advantage has a closed form: (place, k, mu, p(1-p), log EAdv of a bag of k+1)."""
    priors = np.geomspace(1e-4, 0.5, 60)
    for k in search.pick((1, 10, 1000), (1, 2, 5, 10, 100, 1000, 10_000, 100_000)):
        log_advantage = exact.log_independent_advantage(priors, k + 1)
        for p, value in zip(priors, log_advantage, strict=True):
            yield f"k = {k}, constant eta = {p:.4g}", k, p * (1 - p), p * (1 - p), value
    laws = product((0.0, 0.1), (0.5, 0.9), (0.01, 0.3, 0.5), search.pick((1, 20), (1, 5, 50, 200)))
    for low, high, weight, k in laws:
        mean = (1 - weight) * low + weight * high
        mu = (1 - weight) * low * (1 - low) + weight * high * (1 - high)
        advantage = exact.two_point_advantage(low, high, weight, k + 1)[2]
        place = f"k = {k}, eta = {low} or {high} (weight {weight})"
        if advantage > 1e-12:  # below that the difference of two sums is rounding
            yield place, k, mu, mean * (1 - mean), np.log(advantage)


@statement(
    "LA.2",
    692,
    "bag of k+1: EAdv <= k^(1/4) sqrt(2 c_k) sqrt(C sqrt(mu)/k^(3/2)) + mu/k, "
    "C = e^(-3/2) + pi/4 + pi/e",
    chapter=CHAPTER,
    mutants=[{"constant": LEMMA_CONSTANT / 100}, {"power": 0.0}],
)
def aggregation_lemma(
    search: Search, constant: float = LEMMA_CONSTANT, power: float = 0.25
) -> Finding:
    """Lemma A.2: exact advantages, and the Bessel bound that covers every law at once."""
    to_exact, to_bessel, bessel_to_exact = Smallest(), Smallest(), Smallest()
    for place, k, mu, variance, log_advantage in known_advantages(search):
        log_bessel = np.log(mu * bessel_spread(k, mu))
        bound = lemma_bound(k, mu, variance, constant, power)
        to_exact.see([np.log(bound) - log_advantage], [place])
        bessel_to_exact.see([log_bessel - log_advantage], [place])
    confirm(bessel_to_exact.value >= -1e-9, "EAdv <= 2 mu e^(-k mu) I0(k mu)")
    mus = np.geomspace(1e-12, 0.25, search.pick(200, 2000))
    for k in np.unique(np.round(np.geomspace(1, 1e9, search.pick(60, 600)))):
        bound = lemma_bound(k, mus, mus, constant, power)
        places = [f"k = {k:.0f}, mu = {mu:.4g}" for mu in mus]
        to_bessel.see(np.log(bound / (mus * bessel_spread(k, mus))), places)
    confirm(bessel_constant_is_safe(), "2 sqrt(v) e^(-v) I0(v) <= 0.93765")
    least = np.sqrt(2 * constant) * (np.log(8) / 3) ** 0.25
    return Finding(
        "holds" if min(to_exact.value, to_bessel.value) >= 0 else "false",
        f"log(bound / exact advantage) is smallest, {to_exact}. For every law EAdv <= "
        f"2 mu e^(-k mu) I0(k mu), and log(bound / that) is smallest, {to_bessel}. For all k: "
        f"c_k >= sqrt(mu log(8k)/3) makes the bound at least {least:.3f} sqrt(mu/k); the Bessel "
        f"form never exceeds {BESSEL_CONSTANT} sqrt(mu/k). So the lemma is true, though the "
        "printed proof does not show it: see LA.2-minab, LA.3-split, LA.3-tail and LA.4.",
        f"constant eta from 1e-4 to 1/2 with k up to {search.pick(1000, 100_000)} and two-point "
        "laws, in closed form; through the Bessel form every law with mu from 1e-12 to 1/4 and "
        "k up to 1e9",
    )


@statement(
    "LA.2-post",
    718,
    "P(y_{k+1}=1 | x, M) = eta_{k+1} P(Z_k = Sigma-1) / P(Z_{k+1} = Sigma)",
    chapter=CHAPTER,
    mutants=[{"shift": 0}],
)
def posterior_formula(search: Search, shift: int = 1) -> Finding:
    """Proof of Lemma A.2: Bayes' rule for the last example of the bag."""
    cases = 0
    for size in search.pick((1, 2, 3), (1, 2, 3, 4, 5)):
        for eta in small_bags(size, 4):
            whole, rest = exact.poisson_binomial(eta), exact.poisson_binomial(eta[:-1])
            chances = exact.posterior(eta, exact.label_proportions, size - 1)
            for count in range(size + 1):
                chance = chances.get(Fraction(count, size))
                if chance is None:
                    continue
                before = dict(enumerate(rest)).get(count - shift, Fraction(0))
                if chance != eta[-1] * before / whole[count]:
                    place = f"eta = {[str(value) for value in eta]}, Sigma = {count}"
                    return Finding("false", f"The posterior is {chance} at {place}.", "up to there")
                cases += 1
    return Finding(
        "holds",
        f"Equal as fractions in {cases} cases, each against the sum over all labellings.",
        f"bags of 1 to {size} with priors on the grid j/4, every count of positive probability",
    )


@statement(
    "LA.2-chain",
    745,
    "E|eta_{k+1} - P(y_{k+1}=1|x,M)| = mu_{k+1} sum_{s=0}^{k+1} |P(Z_k=s) - P(Z_k=s-1)|",
    chapter=CHAPTER,
    mutants=[{"dropped": 1}],
)
def mean_shift(search: Search, dropped: int = 0) -> Finding:
    """Proof of Lemma A.2: the expected move of the posterior, given the features."""
    cases = 0
    for size in search.pick((1, 2, 3), (1, 2, 3, 4, 5)):
        for eta in small_bags(size, 4):
            last = eta[-1]
            joint = exact.joint(eta, exact.label_proportions, size - 1).values()
            moved = sum((abs(last * (zero + one) - one) for zero, one in joint), Fraction(0))
            steps = differences(exact.poisson_binomial(eta[:-1]))
            steps = steps[: len(steps) - dropped]
            if moved != last * (1 - last) * sum(map(abs, steps)):
                place = f"eta = {[str(value) for value in eta]}"
                return Finding("false", f"The left side is {moved} at {place}.", "up to there")
            cases += 1
    return Finding(
        "holds",
        f"Equal as fractions for {cases} bags; where a count has probability 0 both sides add 0.",
        f"bags of 1 to {size} with priors on the grid j/4, all labellings",
    )


@statement(
    "eq-exp_factor",
    747,
    "E[mu_{k+1} S(x_1..x_k)] = E[mu_{k+1}] E[S] for S = sum_s |P(Z_k=s) - P(Z_k=s-1)|",
    chapter=CHAPTER,
    mutants=[{"tied": True}],
)
def factorisation(search: Search, tied: bool = False) -> Finding:
    """Equation (eq:exp_factor); the mutant lets the last example repeat the first."""
    worst = Smallest(Fraction(1))
    for (name, law), k in product(SMALL_LAWS.items(), search.pick((1, 2, 3), (1, 2, 3, 4, 5, 6))):
        left = sums = Fraction(0)
        for eta, chance in exact.bags(law, k + 1):
            total, last = spread(exact.poisson_binomial(eta[:-1])), eta[0] if tied else eta[-1]
            left += chance * last * (1 - last) * total
            sums += chance * total
        gap = abs(left - exact.mean_and_mu(law)[1] * sums)
        worst.see([-gap], [f"k = {k}, {name}"])
    return Finding(
        "holds" if worst.value == 0 else "false",
        "Equal as fractions for every law and k." if worst.value == 0 else f"They differ: {worst}.",
        f"{len(SMALL_LAWS)} finite laws for eta, k up to {k}, exact",
    )
