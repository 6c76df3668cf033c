"""Randomized response: Lemma A.16, Theorem A.17 and its proof (paper lines 1341 to 1441).

The flip probability is pi = 1/(1+e^epsilon). Exact checks take e^epsilon rational.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from math import exp
from typing import Any

import sympy

from labelaudit.ledger.exact import (
    HALF,
    Channel,
    Labels,
    additive_advantage,
    best_deterministic_gain,
    expected_advantage,
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
