"""How the experiments were run: data, debiased randomized response, grids (lines 1488 to 1578).

Three of these rows are read, with a little arithmetic: what was run cannot be told from the text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

import numpy as np
import sympy

from labelaudit.ledger.exact import (
    HALF,
    Channel,
    Labels,
    additive_advantage,
    geometric_proportions,
)
from labelaudit.ledger.rows import Finding, Search, statement

PRIVACY_UTILITY = "12_privacy_utility"
PRINTED_RATES = ("1e-6", "5e-6", "1e-5", "1e-4", "5e-4", "1e-3", "5e-3", "1e-2")


@statement(
    "C-data",
    1490,
    "sizes of the data sets, training times, and a largest standard error of 0.0076",
    chapter="10_higgs",
)
def reported_sizes(search: Search) -> Finding:
    """The sizes agree with the public descriptions; the rest needs the authors' runs."""
    settings = 10 + 10 + 100 + 100  # RR, LLP, LLP+Lap, LLP+Geom
    runs = settings * len(PRINTED_RATES) * 10
    return Finding(
        "unchecked",
        evidence="The printed sizes agree with the public descriptions (Higgs: 11,000,000 rows, 28 "
        "features; KDD12: 54,686,452 one-hot columns, 11 ones a row); the number of KDD12 rows and "
        f"its test split are not stated. The printed grids make {runs:,} runs for each data set: "
        f"{runs // 6:,} hours for Higgs at 10 minutes each and {runs * 20:,} for KDD12 at 20 hours "
        "each. No part of the text contradicts another. To check the times and the standard error "
        "one needs both full data sets, those GPU hours and the authors' logs.",
        searched="read closely: the text, and the arithmetic of its grids",
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


@statement(
    "C-lr",
    1572,
    "learning rates {1e-6, 5e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2}",
    chapter=PRIVACY_UTILITY,
    mutants=[{"rates": (*PRINTED_RATES, "5e-5")}],
)
def learning_rates(search: Search, rates: tuple[str, ...] = PRINTED_RATES) -> Finding:
    """The 1-5 pattern from 1e-6 to 1e-2 has nine values; the printed list has eight."""
    pattern = {f"{digit}e-{power}" for power in range(2, 7) for digit in (1, 5)} - {"5e-2"}
    missing = sorted(pattern - set(rates))
    return Finding(
        "misprint" if missing else "holds",
        evidence=f"Every other decade has both 1 and 5 times a power of ten; the list lacks "
        f"{', '.join(missing)} and reads as if it had lost it. Only the authors' configuration can "
        "say whether it was run; no statement depends on it.",
        searched="read closely: the printed list against the pattern it follows",
        mended="{1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2}.",
    )


@statement(
    "C-refs",
    1578,
    "the optimal attacker for RR and LLP is in Lemma A.1 and Theorem A.17, 'respectively'",
    chapter=PRIVACY_UTILITY,
)
def swapped_references(search: Search) -> Finding:
    """Theorem A.17 is about randomized response; Lemma A.1 serves any mechanism, so LLP."""
    return Finding(
        "misprint",
        evidence="Theorem A.17 gives the optimal attacker of randomized response; Lemma A.1 gives "
        "that of any mechanism and is what LLP uses. The two references are swapped.",
        searched="read closely: the sentence and the two statements it refers to",
        mended="for RR as well as for LLP, in Theorem A.17 and Lemma A.1, respectively.",
    )
