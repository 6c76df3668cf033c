"""Ledger rows for the paper's preliminaries (its lines 189 to 241)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import comb

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF, Channel, Labels
from labelaudit.ledger.rows import Finding, Search, confirm, statement

RATIOS = (Fraction(3, 2), Fraction(2), Fraction(5))
"""Values of e^epsilon that keep every probability rational."""


def flip_for(odds: Fraction) -> Fraction:
    """The flip probability 1/(1 + e^epsilon) of randomized response."""
    return 1 / (1 + odds)


def neighbours(size: int) -> Iterator[tuple[Labels, Labels]]:
    """Every ordered pair of labellings that differ in one label."""
    for labels in product((0, 1), repeat=size):
        for i in range(size):
            yield labels, (*labels[:i], 1 - labels[i], *labels[i + 1 :])


def largest_event_ratio(channel: Channel, size: int) -> Fraction:
    """max over neighbours and events B of P(B | labels) / P(B | neighbour), events enumerated."""
    largest = Fraction(0)
    for here, there in neighbours(size):
        first, second = channel(here), channel(there)
        releases = sorted(set(first) | set(second), key=repr)
        for length in range(1, len(releases) + 1):
            for event in combinations(releases, length):
                above = sum((first.get(z, Fraction(0)) for z in event), Fraction(0))
                below = sum((second.get(z, Fraction(0)) for z in event), Fraction(0))
                if below == 0 < above:
                    raise ZeroDivisionError("an event of probability zero under a neighbour")
                largest = max(largest, above / below) if above else largest
    return largest


@statement(
    "D2.1",
    208,
    r"epsilon-label-DP: P(A(S) in B) <= e^epsilon P(A(S') in B) for every event B",
    chapter="01_setting",
    mutants=[{"flip_scale": HALF}],
)
def label_differential_privacy(search: Search, flip_scale: Fraction = Fraction(1)) -> Finding:
    """Definition 2.1 on every event, not only single releases, for three mechanisms."""
    size = search.pick(2, 3)
    searched = (
        f"every event and every pair of neighbours, RR on 1 and 2 labels, LLP+Geom on bags of 1 "
        f"to {size}, LLP on bags of 1 to 3, e^epsilon in 3/2, 2, 5"
    )
    for odds in RATIOS:
        cases = [(exact.randomized_response(flip_scale * flip_for(odds)), m) for m in (1, 2)]
        cases += [(exact.geometric_proportions(k, 1 / odds), k) for k in range(1, size + 1)]
        for channel, m in cases:
            ratio = largest_event_ratio(channel, m)
            if ratio != odds:
                text = f"The largest ratio over events is {ratio}, not e^epsilon = {odds}."
                return Finding("false", text, searched)
    for bag_size in (1, 2, 3):
        try:
            largest_event_ratio(exact.label_proportions, bag_size)
            return Finding("false", "LLP came out differentially private.", searched)
        except ZeroDivisionError:
            continue
    return Finding(
        "holds",
        "A definition that behaves as it should: over all events B the largest ratio equals "
        "e^epsilon exactly for randomized response and for LLP+Geom (slack 0), and LLP meets it "
        "for no finite epsilon, since some release has probability 0 under a neighbour.",
        searched,
    )


@statement(
    "S2-RR",
    216,
    r"RR with flip probability pi = 1/(1+e^epsilon) is epsilon-label-DP",
    chapter="01_setting",
    mutants=[{"denominator": 2}],
)
def flip_probability(search: Search, denominator: int = 1) -> Finding:
    """Section 2: (1 - pi)/pi = e^epsilon, so neighbouring likelihoods differ by that factor."""
    import sympy

    epsilon = sympy.Symbol("epsilon", positive=True)
    flip = 1 / (denominator + sympy.exp(epsilon))
    excess = sympy.simplify((1 - flip) / flip - sympy.exp(epsilon))
    searched = "all epsilon, symbolically; every pair of neighbours for up to three labels"
    if excess != 0:
        return Finding("false", f"(1-pi)/pi exceeds e^epsilon by {excess}.", searched)
    for odds, m in product(RATIOS, (1, 2, search.pick(2, 3))):
        channel = exact.randomized_response(flip_for(odds))
        worst = max(channel(a)[z] / channel(b)[z] for a, b in neighbours(m) for z in channel(a))
        confirm(worst == odds, "the largest likelihood ratio of RR is e^epsilon")
    return Finding(
        "holds",
        "(1-pi)/pi = e^epsilon identically, and flips are independent, so changing one label "
        "multiplies the probability of any release by at most e^epsilon; the factor is attained "
        "(slack 0).",
        searched,
    )


@statement(
    "S2-alpha",
    226,
    r"LLP releases alpha_i = (1/k) sum_j y_ij for each bag",
    chapter="01_setting",
    mutants=[{"extra": 1}],
)
def released_proportion(search: Search, extra: int = 0) -> Finding:
    """Section 2: the release is a proportion, unbiased, and blind to the order inside a bag."""
    size = search.pick(4, 6)
    searched = f"all labellings of bags of 1 to {size}, priors 1/(j+2) for j = 0, 1, ..."
    for k in range(1, size + 1):
        eta = [Fraction(1, j + 2) for j in range(k)]
        mean = sum((w * Fraction(sum(y), k + extra) for y, w in exact.labellings(eta)), Fraction(0))
        if mean != sum(eta, Fraction(0)) / k:
            return Finding("false", f"E[alpha] = {mean} for k = {k} is not mean(eta).", searched)
        classes = {next(iter(exact.label_proportions(y))) for y, _ in exact.labellings(eta)}
        confirm(classes == {Fraction(s, k) for s in range(k + 1)}, "alpha takes k+1 values")
    return Finding(
        "holds",
        "alpha takes exactly the k+1 values 0, 1/k, ..., 1, E[alpha | x] is the mean of eta over "
        "the bag, and each value s/k is shared by C(k, s) labellings, so only the count is seen.",
        searched,
    )


@statement(
    "S2-consist",
    237,
    r"PropMatch is consistent: its population minimiser minimises the event-level loss "
    r"(mild conditions)",
    chapter="09_learning",
    mutants=[{"contains_eta": False}],
)
def proportion_matching_consistent(search: Search, contains_eta: bool = True) -> Finding:
    """Section 2, with the conditions the appendix names: a proper loss and eta in the class."""
    import sympy

    low, high, scale = sympy.symbols("low high scale", positive=True)
    eta = (sympy.Rational(1, 5), sympy.Rational(3, 4))
    sizes = search.pick((1, 2), (1, 2, 3, 4))
    searched = (
        f"two feature values of probability 1/2 with eta = 1/5 and 3/4, bags of {sizes}, "
        "squared and logarithmic loss, all functions of the feature"
    )

    def risk(values: tuple[sympy.Expr, sympy.Expr], k: int, logarithmic: bool) -> sympy.Expr:
        total = sympy.Integer(0)
        for highs in range(k + 1):
            weight = sympy.Rational(comb(k, highs), 2**k)
            guess = (highs * values[1] + (k - highs) * values[0]) / k
            truth = (highs * eta[1] + (k - highs) * eta[0]) / k
            loss = (
                -truth * sympy.log(guess) - (1 - truth) * sympy.log(1 - guess)
                if logarithmic
                else guess**2 - 2 * guess * truth
            )
            total += weight * loss
        return total

    line = (scale / 2, scale)
    off = [sympy.solve(sympy.diff(risk(line, k, False), scale), scale)[0] for k in (1, 2)]
    limits = (
        "on the line h(x) = t(1+x)/2, x in {0, 1}, which misses eta, the squared-loss minimiser "
        f"is t = {off[0]} for single labels and t = {off[1]} for bags of 2"
    )
    confirm(off[0] != off[1], "a class without eta moves the minimiser")
    if not contains_eta:
        return Finding("false", f"Not in general: {limits}.", searched)
    pairs = exact.binomial(2, Fraction(2, 5))
    confirm(pairs[0] < HALF and pairs[2] < HALF, "the median of alpha is 1/2 at eta = 2/5, k = 2")
    at_eta = {low: eta[0], high: eta[1]}
    for k, logarithmic in product(sizes, (False, True)):
        objective = risk((low, high), k, logarithmic)
        slope = [sympy.diff(objective, v).subs(at_eta) for v in (low, high)]
        hessian = sympy.hessian(objective, (low, high)).subs(at_eta)
        if any(slope) or not hessian.is_positive_definite:
            return Finding("false", f"h = eta is not the minimiser for k = {k}.", searched)
    return Finding(
        "holds",
        "With a proper loss and a class that contains eta (the conditions the appendix names), "
        "h = eta has zero gradient and positive definite Hessian in the proportion matching risk, "
        "a convex function of h, for every bag size tried, and it is the event-level minimiser. "
        f"Neither condition can go: {limits}; with the absolute loss and eta = 2/5 the best "
        "constant is 1/2 for bags of 2 and 0 for single labels.",
        searched,
    )
