"""Randomized response: Lemma A.16, Theorem A.17 and its debiased form (lines 1341-1441, 1523-1533).

The flip probability is pi = 1/(1+e^epsilon). Exact checks take e^epsilon rational.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import sympy

from labelaudit.ledger.exact import (
    HALF,
    Channel,
    Labels,
    additive_advantage,
    best_deterministic_gain,
    expected_advantage,
    geometric_proportions,
    joint,
    randomized_response,
)
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "04_randomized_response"
ODDS = tuple(Fraction(2) ** j for j in range(0, 9, 2))  # e^epsilon
GRID = tuple(Fraction(j, 20) for j in range(21))


def one_coin(flip: Fraction) -> Channel:
    """A wrong mechanism: one coin flips all labels together."""

    def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
        flipped = tuple(1 - label for label in labels)
        return {labels: 1 - flip, flipped: flip}

    return channel


@statement(
    "LA.16",
    1342,
    "IEAdv(RR, x_i) and EAdv(RR) do not depend on the number of examples m",
    chapter=CHAPTER,
    mutants=[{"mechanism": one_coin}],
)
def any_number_of_examples(
    search: Search, mechanism: Callable[[Fraction], Channel] = randomized_response
) -> Finding:
    """Lemma A.16: brute force over all labels and all releases of up to four examples."""
    priors = (Fraction(1, 10), Fraction(2, 5), HALF, Fraction(9, 10))
    law = [(Fraction(1, 5), Fraction(1, 3)), (HALF, Fraction(2, 3))]
    tried, agree = 0, True
    for flip in (Fraction(0), Fraction(1, 10), Fraction(1, 3), HALF):
        channel = mechanism(flip)
        whole = expected_advantage(law, channel, 1)
        for size in range(2, search.pick(4, 5)):
            agree &= expected_advantage(law, channel, size) == whole
            for eta in priors:
                alone = additive_advantage((eta,), channel, 0)
                for other in priors:
                    data = (eta, *(other,) * (size - 1))
                    agree &= additive_advantage(data, channel, 0) == alone
                    tried += 1
    return Finding(
        "holds" if agree else "false",
        evidence=f"Equal as fractions in all {tried} cases, as is EAdv for eta in {{1/5, 1/2}}: "
        "the other noisy labels are independent of y_i given x. (The last line of the printed "
        "proof writes EAdv_1 where the individual advantage is meant.)",
        searched=f"m up to {search.pick(3, 4)}, four flip probabilities, priors in {{1/10, 2/5, "
        "1/2, 9/10}",
    )


@statement(
    "TA.17",
    1386,
    "IEAdv(RR) = (min{eta,1-eta}-pi) 1{eta in [pi,1-pi]}, attained by the printed adversary",
    chapter=CHAPTER,
    mutants=[{"flip_of": lambda odds: 1 / (2 + odds)}, {"one_sided": True}],
)
def advantage_formula(
    search: Search,
    flip_of: Callable[[Fraction], Fraction] = lambda odds: 1 / (1 + odds),
    one_sided: bool = False,
) -> Finding:
    """Theorem A.17 against every deterministic adversary; the formula uses pi = 1/(1+e^eps)."""
    odds_grid = [*ODDS, *(Fraction(exp(2.0**j)) for j in search.pick(range(-4, 3), range(-4, 6)))]
    tried, agree = 0, True
    for odds in odds_grid:
        channel, pi = randomized_response(flip_of(odds)), 1 / (1 + odds)
        for eta in (*GRID, pi, 1 - pi, pi / 2, Fraction(1, 10**4)):
            best = best_deterministic_gain((eta,), channel, 0)
            formula = (min(eta, 1 - eta) - pi) * (pi <= eta <= (1 if one_sided else 1 - pi))
            pairs: dict[Any, list[Fraction]] = dict(joint((eta,), channel, 0))
            guess = {(z,): 1 if eta > 1 - pi else 0 if eta < pi else z for z in (0, 1)}
            printed = sum((pair[guess[z]] for z, pair in pairs.items()), Fraction(0))
            agree &= best == formula and printed - max(eta, 1 - eta) == best
            tried += 1
    return Finding(
        "holds" if agree else "false",
        evidence=f"The best of all deterministic adversaries gains exactly the formula, and the "
        f"printed adversary attains it, as fractions in all {tried} cases, ties eta = pi included.",
        searched=f"e^epsilon in {{1, 4, 16, 64, 256}} and at epsilon = 2^-4..2^"
        f"{search.pick(2, 5)} (as float64 fractions); eta in twentieths, at pi, 1-pi, pi/2 "
        "and 1e-4",
    )


@statement(
    "TA.17-ratio",
    1417,
    "pi/(1-pi) < eta/(1-eta) if and only if eta > pi",
    chapter=CHAPTER,
    mutants=[{"inverted": True}],
)
def odds_order(search: Search, inverted: bool = False) -> Finding:
    """x/(1-x) is increasing: the difference of the odds has the sign of eta - pi."""
    eta, pi = sympy.symbols("eta pi")
    ratio = (1 - pi) / pi if inverted else pi / (1 - pi)
    identity = sympy.simplify(eta / (1 - eta) - ratio - (eta - pi) / ((1 - eta) * (1 - pi)))
    return Finding(
        "holds" if identity == 0 else "false",
        evidence="sympy: eta/(1-eta) - pi/(1-pi) = (eta-pi)/((1-eta)(1-pi)), with a denominator "
        "positive for 0 <= eta < 1 and pi <= 1/2. At eta = 1 the odds are infinite and 1 > pi.",
        searched="symbolic, all eta and pi in [0, 1)",
    )


@statement(
    "TA.17-info",
    1434,
    "outside G(pi) the noisy label 'gives no extra information' on y_1",
    chapter=CHAPTER,
    mutants=[{"flip": HALF}],
)
def still_informative(search: Search, flip: Fraction = Fraction(1, 4)) -> Finding:
    """It does not change the best guess, but it moves the posterior by e^epsilon in odds."""
    channel = randomized_response(Fraction(1, 4))
    for eta in (Fraction(j, 40) for j in range(10)):  # eta < pi = 1/4
        guesses = {pair[1] > pair[0] for pair in joint((eta,), channel, 0).values()}
        confirm(guesses == {False}, "outside G(pi) the best guess ignores the noisy label")
    prior = Fraction(1, 10)
    zero, one = joint((prior,), randomized_response(flip), 0)[(1,)]
    after = one / (zero + one)
    return Finding(
        "holds" if after == prior else "false",
        evidence=f"For eta = 1/10 and pi = 1/4, seeing the noisy label 1 moves the probability of "
        f"y = 1 from {prior} to {after}. The log-odds always move by plus or minus epsilon; only "
        "the best guess stays the same, as the rest of the sentence says.",
        searched="one exact case; the unchanged guess for eta = 0, 1/40, ..., 9/40",
        mended="Outside G(pi) the noisy label does not change the optimal guess, so the additive "
        "advantage is 0. The theorem is unaffected.",
    )


@statement(
    "C-RRdeb",
    1527,
    "E f(RR(y)) = ((e-1)/(e+1)) f(y) + (f(0)+f(1))/(e+1), and its inverse (e for e^epsilon)",
    chapter="09_learning",
    mutants=[{"wrong": 1}],
)
def debiasing(search: Search, wrong: int = 0) -> Finding:
    """The bias of randomized response on any function of the label, and its removal."""
    odds, zero, one = sympy.symbols("odds f0 f1", positive=True)
    pi = 1 / (1 + wrong + odds)
    left = []
    for mine, other in ((zero, one), (one, zero)):
        mean = (1 - pi) * mine + pi * other
        stated = (odds - 1) / (odds + 1) * mine + (zero + one) / (odds + 1)
        undone = (odds + 1) / (odds - 1) * mean - (zero + one) / (odds - 1)
        left += [sympy.simplify(mean - stated), sympy.simplify(undone - mine)]
    return Finding(
        "holds" if all(difference == 0 for difference in left) else "false",
        evidence="sympy: both identities hold for y = 0 and y = 1 with f(0), f(1) and e^epsilon "
        "left as symbols. The inverse needs epsilon > 0.",
        searched="symbolic",
    )


@statement(
    "C-advsame",
    1531,
    "debiasing the release has no effect on the advantage",
    chapter="09_learning",
    mutants=[{"after": lambda value: Fraction(round(value) > 0)}],
)
def advantage_unchanged(
    search: Search, after: Callable[[Fraction], Fraction] = lambda value: value
) -> Finding:
    """Debiasing is one-to-one on the releases, so the posteriors are the same."""

    def debiased(size: int, ratio: Fraction) -> Channel:
        release = geometric_proportions(size, ratio)
        excess = ratio / (1 - ratio) / size

        def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
            moved: dict[Hashable, Fraction] = {}
            for z, mass in release(labels).items():
                value = -excess if z == 0 else 1 + excess if z == 1 else Fraction(str(z))
                moved[after(value)] = moved.get(after(value), Fraction(0)) + mass
            return moved

        return channel

    tried, agree = 0, True
    rng = np.random.default_rng(1531)
    for size in range(1, search.pick(4, 6)):
        for ratio in (Fraction(1, 10), HALF, Fraction(9, 10)):
            for _ in range(search.pick(4, 20)):
                eta = tuple(Fraction(int(n), 20) for n in rng.integers(0, 21, size))
                plain = additive_advantage(eta, geometric_proportions(size, ratio), 0)
                agree &= additive_advantage(eta, debiased(size, ratio), 0) == plain
                tried += 1
    return Finding(
        "holds" if agree else "false",
        evidence=f"The advantage before and after is the same fraction in all {tried} cases, for "
        "randomized response (bag size 1) and LLP+Geom: debiasing is one-to-one when epsilon > 0. "
        "(An estimate of an f with f(0) = f(1) would reveal less, never more.)",
        searched=f"bag sizes 1 to {search.pick(3, 5)}, e^-epsilon in {{1/10, 1/2, 9/10}}, random "
        "priors in twentieths",
    )
