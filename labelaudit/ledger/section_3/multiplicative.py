"""Ledger rows for the multiplicative advantage and what it is (paper lines 390 to 417)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf
from operator import mul

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF, Bag, Channel
from labelaudit.ledger.rows import Finding, Search, confirm, statement
from labelaudit.ledger.section_2 import flip_for
from labelaudit.ledger.section_3.definitions import three_mechanisms
from labelaudit.ledger.section_3.label_privacy import private_channels, random_bag

CHAPTER = "05_multiplicative_advantage"


@statement(
    "D3.6",
    394,
    r"I_{a,b} = posterior log odds of a against b minus prior log odds",
    chapter=CHAPTER,
    mutants=[{"prior_weight": 0}],
)
def multiplicative_definition(search: Search, prior_weight: int = 1) -> Finding:
    """Definition 3.6 with three classes: null release, sign, and the chain rule, in odds."""
    rng = np.random.default_rng(394)
    searched = f"{search.pick(50, 500)} random three-class priors and mechanisms, in fractions"
    for _ in range(search.pick(50, 500)):
        prior = [Fraction(int(n)) for n in rng.integers(1, 9, 3)]
        likelihood = [Fraction(int(n)) for n in rng.integers(1, 9, 3)]

        def shift(a: int, b: int, given: list[Fraction], weigh: list[Fraction]) -> Fraction:
            """exp(I_{a,b}): posterior odds over prior odds."""
            after = [g * w / sum(map(mul, given, weigh)) for g, w in zip(given, weigh, strict=True)]
            return after[a] / after[b] / (given[a] / given[b]) ** prior_weight

        if shift(0, 1, prior, [Fraction(1)] * 3) != 1 and prior[0] != prior[1]:
            return Finding("false", "A release that says nothing has I different from 0.", searched)
        one, two = shift(0, 1, prior, likelihood), shift(1, 2, prior, likelihood)
        confirm(one * two == shift(0, 2, prior, likelihood), "I_ab + I_bc = I_ac")
        confirm(one * shift(1, 0, prior, likelihood) == 1, "I_ab = -I_ba")
    return Finding(
        "holds",
        "A definition that behaves as it should: I is 0 when the release says nothing, "
        "I_ab = -I_ba and I_ab + I_bc = I_ac, exactly. Both prior probabilities must be positive: "
        "at eta in {0, 1} the difference is infinity minus infinity, and the book takes I = 0.",
        searched,
    )


@statement(
    "D3.6-Theta",
    410,
    r"eta and the posterior both below 1/2: I = Theta(log(posterior/eta))",
    chapter=CHAPTER,
    mutants=[{"upper": 1.9}, {"lower": 1.1}],
)
def theta_of_log_ratio(search: Search, lower: float = 1.0, upper: float = 2.0) -> Finding:
    """The remark after Definition 3.6, with its constants 1 and 2."""
    count = search.pick(120, 400)
    grid = np.unique(
        np.concatenate([np.geomspace(1e-8, 0.4, count), 0.5 - np.geomspace(1e-4, 0.1, count)])
    )
    prior, after = np.meshgrid(grid, grid)
    apart = prior != after
    ratio = np.log(after / prior)[apart]
    shift = (np.log(after / prior) + np.log1p(-prior) - np.log1p(-after))[apart]
    quotient = shift / ratio
    searched = f"{grid.size} x {grid.size} pairs from 1e-8 to 0.4999"
    low, high = float(quotient.min()), float(quotient.max())
    if low < lower - 1e-9 or high > upper + 1e-9:
        return Finding("false", f"I / log(posterior/eta) runs from {low} to {high}.", searched)
    return Finding(
        "holds",
        f"I / log(posterior/eta) lies in [{low:.6f}, {high:.6f}], always within [1, 2] and of the "
        "same sign: -log(1-x) grows at x/(1-x) <= 1 times the rate of log(x) on (0, 1/2]. The 2 is "
        "approached as both tend to 1/2.",
        searched,
    )


def shift_in_odds(eta: Bag, channel: Channel, index: int) -> dict[object, Fraction | None]:
    """exp(I(z)) from the definition; None where it is infinite or zero."""
    prior = eta[index]
    return {
        z: None if after in (0, 1) else after / (1 - after) / (prior / (1 - prior))
        for z, after in exact.posterior(eta, channel, index).items()
    }


@statement(
    "D3.6-id",
    413,
    r"I_{a,b} = log P(z | y_i = a, x) / P(z | y_i = b, x)",
    chapter=CHAPTER,
    mutants=[{"other": 1}],
)
def likelihood_ratio_identity(search: Search, other: int = 0) -> Finding:
    """The identity after Definition 3.6, for every release of three mechanisms."""
    rng = np.random.default_rng(413)
    tried = 0
    searched = "random bags of 2 to 4, every release; LLP, RR and LLP+Geom at e^epsilon = 2"
    for k, _ in product((2, 3, 4), range(search.pick(3, 20))):
        eta = random_bag(k, rng)
        for name, channel in three_mechanisms(k).items():
            fixed = [[*eta[:other], Fraction(y), *eta[other + 1 :]] for y in (0, 1)]
            marginal = [exact.joint(bag, channel, other) for bag in fixed]
            for z, shift in shift_in_odds(eta, channel, 0).items():
                if shift is None:
                    continue
                tried += 1
                ratio = sum(marginal[1][z]) / sum(marginal[0][z])
                if ratio != shift:
                    text = f"{name}: exp(I) = {shift} but the likelihood ratio is {ratio}."
                    return Finding("false", text, searched)
    return Finding(
        "holds",
        f"Equal as fractions for {tried} releases: it is Bayes' rule, given that "
        "P(y_i = a | x) = eta(x_i, a) by independence.",
        searched,
    )


@statement(
    "D3.6-small",
    415,
    r"LLP: the chance of a bag of equal labels is small, and never zero",
    chapter=CHAPTER,
    mutants=[{"bags": ((HALF,) * 8, (Fraction(2, 5),) * 10)}],
)
def chance_of_equal_labels(
    search: Search,
    bags: tuple[tuple[Fraction, ...], ...] = (
        (Fraction(0), Fraction(1)),
        (HALF,),
        (Fraction(1, 25),) * 8,
    ),
) -> Finding:
    """'Always' fails for known labels of both kinds; 'small' fails for small or skewed bags."""
    chances = []
    for eta in bags:
        law = exact.poisson_binomial(eta)
        chances.append(law[0] + law[-1])
    searched = "bags (0, 1), (1/2) and eight examples with eta = 1/25, exactly"
    if all(0 < chance <= Fraction(1, 20) for chance in chances):
        text = f"The chances are {[float(c) for c in chances]}."
        return Finding("holds", text, searched)
    rng = np.random.default_rng(415)
    for _ in range(search.pick(20, 200)):
        eta = tuple(random_bag(int(rng.integers(1, 9)), rng))
        law = exact.poisson_binomial(eta)
        confirm(law[0] + law[-1] > 0, "priors inside (0, 1) give a positive chance")
    return Finding(
        "false",
        f"The chance is prod(eta) + prod(1-eta). It is {chances[0]} for the bag (0, 1), so not "
        f"'always'; {chances[1]} for a bag of one and {float(chances[2]):.2f} for eight examples "
        "with eta = 1/25, so not 'small'. The paper's remarks on skewed data say as much.",
        searched,
        "If 0 < eta < 1 there is always a positive chance, prod(eta) + prod(1-eta); it is small "
        "only for large bags of uncertain labels.",
    )


@statement(
    "D3.6-eps",
    416,
    r"|I| <= epsilon for epsilon-label-DP mechanisms (RR: equal to epsilon)",
    chapter=CHAPTER,
    mutants=[{"scale": Fraction(9, 10)}],
)
def ceiling_at_epsilon(search: Search, scale: Fraction = Fraction(1)) -> Finding:
    """The log ratio of label-private mechanisms, in odds so that nothing is rounded."""
    rng = np.random.default_rng(416)
    closest, tried = Fraction(0), 0
    searched = "random mechanisms on 1 to 3 labels, RR and LLP+Geom, random priors, every release"
    for channel, size, odds in private_channels(search, 4160):
        eta = random_bag(size, rng)
        for i in range(size):
            shifts = shift_in_odds(eta, channel, i).values()
            widest = max(max(s, 1 / s) for s in shifts if s is not None)
            closest, tried = max(closest, widest / odds), tried + 1
            if widest > scale * odds:
                text = f"exp|I| = {widest} exceeds {scale} e^epsilon = {scale * odds}."
                return Finding("false", text, searched)
    for odds in (Fraction(17, 16), Fraction(3)):
        channel = exact.randomized_response(flip_for(odds))
        shifts = shift_in_odds([Fraction(1, 7), Fraction(2, 3)], channel, 0).values()
        confirm(all(s in (odds, 1 / odds) for s in shifts), "RR: |I| = epsilon for every release")
    return Finding(
        "holds",
        f"exp|I| <= e^epsilon in all {tried} cases (largest ratio {closest}), and exp|I| = "
        "e^epsilon exactly for every release of RR. Averaging over the other labels cannot raise "
        "a ratio that holds for each of them.",
        searched,
    )


@statement(
    "D3.6-inf",
    417,
    r"LLP: a bag of equal labels makes |I| infinite",
    chapter=CHAPTER,
    mutants=[{"noise": Fraction(1, 100)}],
)
def equal_labels_reveal(search: Search, noise: Fraction = Fraction(0)) -> Finding:
    """Every label of an all-0 or all-1 bag is known to the attacker."""
    rng = np.random.default_rng(417)
    searched = "random bags of 1 to 6 with priors inside (0, 1), every example"
    for k, _ in product(range(1, 7), range(search.pick(3, 20))):
        eta = random_bag(k, rng)
        channel = exact.geometric_proportions(k, noise) if noise else exact.label_proportions
        for i in range(k):
            shifts = exact.multiplicative_advantage(eta, channel, i)
            if (shifts[Fraction(0)], shifts[Fraction(1)]) != (-inf, inf):
                return Finding("false", f"A bag of equal labels has I = {shifts}.", searched)
            confirm(k == 1 or abs(shifts[Fraction(1, k)]) < inf, "a mixed bag leaves I finite")
    return Finding(
        "holds",
        "I = -inf at z = 0 and +inf at z = 1 for every example of every bag tried, and finite at "
        "every mixed release tried. The prior must lie inside (0, 1); otherwise nothing is left "
        "to reveal.",
        searched,
    )
