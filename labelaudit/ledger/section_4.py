"""Ledger rows for the checkable sentences of the experimental section (paper lines 437 to 491)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement
from labelaudit.ledger.section_2 import flip_for
from labelaudit.ledger.section_3.label_privacy import random_bag
from labelaudit.ledger.section_3.multiplicative import shift_in_odds


def debiased(size: int, ratio: Fraction) -> list[Fraction]:
    """The clipped count with its two ends moved out by e^-epsilon/(1 - e^-epsilon)."""
    step = ratio / (1 - ratio)
    inner = [Fraction(z) for z in range(1, size)]
    return [-step, *inner, size + step]


def squared_errors(size: int, ratio: Fraction, values: list[Fraction]) -> list[Fraction]:
    """Mean squared error of a postprocessed clipped count, at each true count."""
    rows = exact.geometric_count(size, ratio)
    return [
        sum((mass * (v - s) ** 2 for mass, v in zip(row, values, strict=True)), Fraction(0))
        for s, row in enumerate(rows)
    ]


def unbiased_values(size: int, ratio: Fraction) -> list[Fraction] | None:
    """The only unbiased postprocessing of LLP+Geom, by solving for it; None if not unique."""
    import sympy

    rows = exact.geometric_count(size, ratio)
    matrix = sympy.Matrix([[sympy.Rational(v.numerator, v.denominator) for v in r] for r in rows])
    if matrix.det() == 0:
        return None
    solution = matrix.LUsolve(sympy.Matrix(range(size + 1)))
    return [Fraction(int(v.p), int(v.q)) for v in solution]


@statement(
    "S4-optpp",
    442,
    r"removing the bias of clipping gives the least squared error",
    chapter="09_learning",
    mutants=[{"unbiased_only": True}],
)
def optimal_postprocessing(search: Search, unbiased_only: bool = False) -> Finding:
    """Section 4: the debiased count has a larger squared error than the clipped one, everywhere."""
    size = search.pick(6, 12)
    ratios = (Fraction(1, 10), Fraction(1, 3), HALF, Fraction(9, 10))
    searched = f"bags of 1 to {size}, every true count, e^-epsilon in 1/10, 1/3, 1/2, 9/10; exact"
    beaten = 0
    for k, ratio in product(range(1, size + 1), ratios):
        fair = debiased(k, ratio)
        if k <= 5:
            confirm(unbiased_values(k, ratio) == fair, "debiasing is the only unbiased map")
        rival = fair if unbiased_only else [Fraction(z) for z in range(k + 1)]
        ours, theirs = squared_errors(k, ratio, fair), squared_errors(k, ratio, rival)
        beaten += all(a > b for a, b in zip(ours, theirs, strict=True))
    if beaten < size * len(ratios):
        return Finding("holds", "No rival has a smaller squared error.", searched)
    rival_one = squared_errors(1, HALF, [Fraction(0), Fraction(1)])[0]
    fair_one = squared_errors(1, HALF, debiased(1, HALF))[0]
    bayes_one = squared_errors(1, HALF, [Fraction(1, 3), Fraction(2, 3)])[0]
    confirm(bayes_one < rival_one < fair_one, "posterior mean < clipped < debiased at k = 1")
    return Finding(
        "false",
        "Correcting the bias increases the squared error at every true count, in every case: it "
        "moves the estimates outside [0, 1], where no truth lies. Smallest case: one label, "
        f"e^epsilon = 2. Clipped output: squared error {rival_one}; debiased (values -1 and 2): "
        f"{fair_one}; posterior mean under a uniform prior (1/3 and 2/3): {bayes_one}.",
        searched,
        "Correcting the clipping bias gives the only unbiased postprocessing, which is what the "
        "gradients need. For least squared error under a prior take the posterior mean.",
    )


@statement(
    "S4-spindle",
    466,
    r"a spindle boundary is a set of equal |I|; RR lies on it; LLP's edge points have |I| infinite",
    chapter="07_scatter_plots",
    mutants=[{"flip_scale": HALF}],
)
def spindle_boundary(search: Search, flip_scale: Fraction = Fraction(1)) -> Finding:
    """Section 4: the scatter plots' geometry, with exp|I| kept as a fraction."""
    rng = np.random.default_rng(466)
    searched = "RR for 19 priors and three epsilon; LLP and LLP+Geom on random bags of 1 to 5"
    for odds, n in product((Fraction(3, 2), Fraction(2), Fraction(8)), range(1, 20)):
        channel = exact.randomized_response(flip_scale * flip_for(odds))
        shifts = set(shift_in_odds([Fraction(n, 20)], channel, 0).values())
        if shifts != {odds, 1 / odds}:
            return Finding("false", f"RR has exp(I) = {shifts}, e^epsilon = {odds}.", searched)
    for k, _ in product(range(1, 6), range(search.pick(3, 20))):
        eta = random_bag(k, rng)
        for z, after in exact.posterior(eta, exact.label_proportions, 0).items():
            shift = exact.multiplicative_advantage(eta, exact.label_proportions, 0)[z]
            confirm((after in (0, 1)) == (abs(shift) == np.inf), "edge if and only if infinite")
            confirm((after in (0, 1)) == (z in (0, 1)), "edge if and only if the labels are equal")
        noisy = shift_in_odds(eta, exact.geometric_proportions(k, HALF), 0).values()
        confirm(all(s is not None and HALF <= s <= 2 for s in noisy), "LLP+Geom stays inside")
    return Finding(
        "holds",
        "The two arcs posterior odds = e^(+-epsilon) prior odds are the points with |I| = epsilon; "
        "every RR point lies on one (slack 0). LLP points lie on the top or bottom edge exactly "
        "when the bag's labels are equal, and there |I| is infinite; noisy mechanisms never reach "
        "an edge.",
        searched,
    )


@statement(
    "S4-bottom",
    466,
    r"the text on the figure's bottom row names it LLP+Lap",
    chapter="07_scatter_plots",
)
def bottom_row(search: Search) -> Finding:
    """The figure's rows are LLP, RR and LLP+Geom."""
    return Finding(
        "misprint",
        "The figure's caption lists LLP, RR and LLP+Geom, the text puts RR in the middle row, and "
        "the paragraph before says that LLP+Lap is shown in the appendix. The bottom row is "
        "LLP+Geom; what is said of it (inside the spindles, never on the edges) is true of both.",
        "read closely",
        "LLP+Geom (bottom row)",
    )


PAPER_BAGS = tuple(2**j for j in range(10))


@statement(
    "S4-98",
    483,
    r"the 98th percentile of |I| rules out the infinite cases of LLP",
    chapter="12_privacy_utility",
    mutants=[{"bag_sizes": (256, 512)}],
)
def ninety_eighth_percentile(search: Search, bag_sizes: tuple[int, ...] = PAPER_BAGS) -> Finding:
    """The caption of the trade-off figure: true only when bags are large enough for their p."""
    tail = Fraction(2, 100)
    means = {"1/2": HALF, "53/100": Fraction(53, 100), "1/25": Fraction(1, 25)}

    def infinite(p: Fraction, k: int) -> bool:
        return bool(p**k + (1 - p) ** k > tail)

    failing = {name: [k for k in bag_sizes if infinite(p, k)] for name, p in means.items()}
    first = {
        name: next(k for k in range(1, 999) if not infinite(p, k)) for name, p in means.items()
    }
    for p, k in product(means.values(), search.pick((1, 2, 4), (1, 2, 3, 4, 6, 8))):
        law = [(p / 2, HALF), (3 * p / 2, HALF)] if p < HALF else [(p, Fraction(1))]
        chance = sum(
            (
                w * (m[0] + m[-1])
                for e, w in exact.bags(law, k)
                for m in [exact.poisson_binomial(e)]
            ),
            Fraction(0),
        )
        confirm(chance == p**k + (1 - p) ** k, "P(equal labels) = p^k + (1-p)^k whatever the law")
    searched = f"bags of {bag_sizes}, p = 1/2, 53/100 (near Higgs), 1/25 (skewed); exact"
    if not any(failing.values()):
        return Finding("holds", "The 98th percentile is finite throughout.", searched)
    return Finding(
        "false",
        "The percentile is infinite whenever more than 2% of bags have equal labels, and that "
        "probability is p^k + (1-p)^k for independent draws, whatever the law of eta. At k = 1 it "
        "is 1; at k = 2, p = 1/2 it is 1/2. Of the paper's bag sizes it stays infinite for "
        f"{failing['1/2']} at p = 1/2 and for {failing['1/25']} at p = 1/25.",
        searched,
        "It rules them out when p^k + (1-p)^k <= 0.02: bags of at least "
        + ", ".join(f"{k} at p = {name}" for name, k in first.items())
        + ".",
    )


@statement(
    "S4-nest",
    489,
    r"a point inside a spindle lies on the boundary of a smaller one",
    chapter="07_scatter_plots",
    mutants=[{"measure": "probability"}],
)
def nested_spindles(search: Search, measure: str = "odds") -> Finding:
    """Section 4: through each interior point passes exactly one spindle, and they are nested."""
    import sympy

    prior, after, factor = sympy.symbols("u v r", positive=True)
    boundary = prior * factor / (1 - prior + prior * factor)
    own = after / prior if measure == "probability" else after * (1 - prior) / ((1 - after) * prior)
    searched = "all points of the open square, symbolically"
    if sympy.simplify(boundary.subs(factor, own) - after) != 0:
        return Finding("false", "The point is not on the spindle of its own measure.", searched)
    slope = sympy.simplify(sympy.diff(boundary, factor) * (1 - prior + prior * factor) ** 2)
    confirm(sympy.expand(slope - prior * (1 - prior)) == 0, "the arcs move outwards with r")
    return Finding(
        "holds",
        "The arc v = u r/(1-u+u r) passes through (u, v) for exactly one r, the ratio of posterior "
        "to prior odds, and dv/dr = u(1-u)/(1-u+u r)^2 > 0, so spindles with smaller |ln r| are "
        "nested inside; the diagonal is the spindle of size 0.",
        searched,
    )


@statement(
    "S4-RRcdf",
    491,
    r"the CDF of |I| for RR is a step at epsilon; for LLP+Geom |I| <= epsilon",
    chapter="08_advantage_distributions",
    mutants=[{"bag_size": 2}],
)
def response_step(search: Search, bag_size: int = 1) -> Finding:
    """Section 4: RR puts all its mass at |I| = epsilon; LLP+Geom spreads below it."""
    rng = np.random.default_rng(491)
    odds = Fraction(5, 2)
    searched = "random bags, e^epsilon = 5/2 (fractions), LLP+Geom on bags of 1 to 5"
    for _ in range(search.pick(10, 60)):
        eta = random_bag(bag_size, rng)
        channel = exact.geometric_proportions(bag_size, 1 / odds)
        if bag_size == 1:
            response = exact.posterior(eta, exact.randomized_response(flip_for(odds)), 0)
            same = exact.posterior(eta, channel, 0)[Fraction(0)] == response[(0,)]
            confirm(same, "LLP+Geom with bags of one is RR")
        values = {max(s, 1 / s) for s in shift_in_odds(eta, channel, 0).values() if s}
        if values != {odds}:
            return Finding("false", f"exp|I| takes the values {sorted(values)}.", searched)
    widest = Fraction(0)
    for k, _ in product(range(1, 6), range(search.pick(2, 10))):
        eta = random_bag(k, rng)
        shifts = shift_in_odds(eta, exact.geometric_proportions(k, 1 / odds), 0).values()
        widest = max(widest, *(max(s, 1 / s) for s in shifts if s))
    confirm(widest <= odds, "LLP+Geom: |I| <= epsilon")
    return Finding(
        "holds",
        "Every release of RR has |I| = epsilon exactly, so the CDF is one vertical step (at 1 when "
        "epsilon = 1); for LLP+Geom the largest exp|I| seen is "
        f"{widest} = e^epsilon, never above it.",
        searched,
    )
