"""Checks of the paper's preliminaries (lines 189 to 241 of its source)."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, inf

import sympy

from book.ledger import exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.exact import HALF, total

ODDS = (Fraction(3, 2), Fraction(2), Fraction(5))
"""Values of e^epsilon that keep every probability rational."""


def largest_event_ratio(channel: exact.Channel, size: int) -> Fraction | float:
    """max over neighbours and events B of P(B | labels) / P(B | neighbour), events enumerated."""
    ratios: list[Fraction | float] = []
    for labels, neighbour in exact.neighbours(size):
        pair = channel(labels), channel(neighbour)
        releases = sorted(set(pair[0]) | set(pair[1]), key=repr)
        for length in range(1, len(releases) + 1):
            for event in combinations(releases, length):
                above, below = (total(pmf.get(z, Fraction(0)) for z in event) for pmf in pair)
                if above:
                    ratios.append(above / below if below else inf)
    return max(ratios)


@check("D2.1", {"flip_scale": HALF})
def label_differential_privacy(quick: bool, flip_scale: Fraction = Fraction(1)) -> Cases:
    size = 2 if quick else 3
    for odds in ODDS:
        flip = flip_scale * exact.flip_for(odds)
        cases = [(exact.randomized_response(flip), m) for m in (1, 2)]
        cases += [(exact.geometric_proportions(k, 1 / odds), k) for k in range(1, size + 1)]
        for channel, m in cases:
            yield Case(largest_event_ratio(channel, m) == odds, size=size)
    for bag_size in (1, 2, 3):
        yield Case(largest_event_ratio(exact.label_proportions, bag_size) == inf, size=size)


@check("S2-RR", {"denominator": 2})
def flip_probability(quick: bool, denominator: int = 1) -> Cases:
    epsilon = sympy.Symbol("epsilon", positive=True)
    flip = 1 / (denominator + sympy.exp(epsilon))
    for odds, m in product(ODDS, (1, 2, 2 if quick else 3)):
        channel = exact.randomized_response(exact.flip_for(odds))
        confirm(exact.odds_ceiling(channel, m) == odds, "the likelihood ratio of RR is e^epsilon")
    yield Case(sympy.simplify((1 - flip) / flip - sympy.exp(epsilon)) == 0)


@check("S2-alpha", {"extra": 1})
def released_proportion(quick: bool, extra: int = 0) -> Cases:
    size = 4 if quick else 6
    for k in range(1, size + 1):
        eta = [Fraction(1, j + 2) for j in range(k)]
        mean = total(w * Fraction(sum(y), k + extra) for y, w in exact.labellings(eta))
        yield Case(mean == total(eta) / k, size=size)
        values = {next(iter(exact.label_proportions(y))) for y, _ in exact.labellings(eta)}
        confirm(values == {Fraction(s, k) for s in range(k + 1)}, "alpha takes k+1 values")


@check("S2-consist", {"bias": Fraction(1, 1000)})
def proportion_matching_consistent(quick: bool, bias: Fraction = Fraction(0)) -> Cases:
    low, high, scale = sympy.symbols("low high scale", positive=True)
    eta = (sympy.Rational(1, 5), sympy.Rational(3, 4))
    sizes = (1, 2) if quick else (1, 2, 3, 4)

    def risk(values: tuple[sympy.Expr, sympy.Expr], k: int, logarithmic: bool) -> sympy.Expr:
        result = sympy.Integer(0)
        for highs in range(k + 1):
            weight = sympy.Rational(comb(k, highs), 2**k)
            guess = (highs * values[1] + (k - highs) * values[0]) / k
            truth = (highs * eta[1] + (k - highs) * eta[0]) / k
            loss = guess**2 - 2 * guess * truth
            if logarithmic:
                loss = -truth * sympy.log(guess) - (1 - truth) * sympy.log(1 - guess)
            result += weight * loss
        return result

    line = (scale / 2, scale)  # h(x) = t(1+x)/2, a class without eta
    off = [sympy.solve(sympy.diff(risk(line, k, False), scale), scale)[0] for k in (1, 2)]
    confirm(off[0] != off[1], "a class without eta moves the minimiser")
    pairs = exact.binomial(2, Fraction(2, 5))
    confirm(pairs[0] < HALF and pairs[2] < HALF, "the median of alpha is 1/2 at eta = 2/5, k = 2")
    at_eta = {low: eta[0] + sympy.Rational(bias), high: eta[1]}
    for k, logarithmic in product(sizes, (False, True)):
        objective = risk((low, high), k, logarithmic)
        slope = [sympy.diff(objective, v).subs(at_eta) for v in (low, high)]
        hessian = sympy.hessian(objective, (low, high)).subs(at_eta)
        least = not any(slope) and hessian.is_positive_definite
        yield Case(least, single=off[0], pair=off[1], sizes=sizes)
