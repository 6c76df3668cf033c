"""Ledger rows for the attack utilities and the additive advantage (paper lines 242 to 311)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from itertools import product

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF, Channel, Labels
from labelaudit.ledger.rows import Finding, Search, confirm, statement

PRIORS = tuple(Fraction(n, 10) for n in (0, 1, 3, 5, 8, 10))


def three_mechanisms(bag_size: int) -> dict[str, Channel]:
    """LLP, randomized response and LLP+Geom at e^epsilon = 2 on one bag."""
    return {
        "LLP": exact.label_proportions,
        "RR": exact.randomized_response(Fraction(1, 3)),
        "LLP+Geom": exact.geometric_proportions(bag_size, HALF),
    }


@statement(
    "S3-EAU",
    258,
    r"EAU = P(A(x, M)_i = y_i), i uniform, equals the expected fraction of correct labels",
    chapter="02_additive_advantage",
    mutants=[{"whole_vector": True}],
)
def attack_utility(search: Search, whole_vector: bool = False) -> Finding:
    """Section 3: the two readings of the expected attack utility, for every adversary."""
    bags = list(product(PRIORS[1:-1], repeat=2))
    searched = f"every deterministic adversary on two examples, LLP and RR, {len(bags)} bags"
    tried = 0
    for eta in bags:
        for channel in list(three_mechanisms(2).values())[:2]:
            outcomes = [
                (y, z, w * c) for y, w in exact.labellings(eta) for z, c in channel(y).items()
            ]
            releases = sorted({z for _, z, _ in outcomes}, key=repr)
            for guesses in product(product((0, 1), repeat=2), repeat=len(releases)):
                adversary: Mapping[Hashable, Labels] = dict(zip(releases, guesses, strict=True))
                tried += 1
                chance = sum(
                    (HALF * w for y, z, w in outcomes for i in (0, 1) if adversary[z][i] == y[i]),
                    Fraction(0),
                )
                fraction = sum(
                    (
                        w * Fraction(sum(a == b for a, b in zip(adversary[z], y, strict=True)), 2)
                        if not whole_vector
                        else w * (adversary[z] == y)
                        for y, z, w in outcomes
                    ),
                    Fraction(0),
                )
                if chance != fraction:
                    text = f"P(correct) = {chance} but the other reading gives {fraction}."
                    return Finding("false", text, searched)
    return Finding("holds", f"Equal as fractions for all {tried} adversaries (slack 0).", searched)


@statement(
    "S3-det",
    267,
    r"if labels are determined by features, the advantage of every PET is 0",
    chapter="02_additive_advantage",
    mutants=[{"low": Fraction(1, 10)}],
)
def determined_labels(search: Search, low: Fraction = Fraction(0)) -> Finding:
    """Section 3: nothing can be learned about a label that is already known."""
    size = search.pick(3, 5)
    searched = f"every bag of 1 to {size} with eta in {{0, 1}}; LLP, RR and LLP+Geom"
    for k in range(1, size + 1):
        for eta in product((low, Fraction(1)), repeat=k):
            for name, channel in three_mechanisms(k).items():
                gain = max(exact.additive_advantage(eta, channel, i) for i in range(k))
                if gain != 0:
                    text = f"{name} has advantage {gain} on the bag {tuple(map(str, eta))}."
                    return Finding("false", text, searched)
    return Finding(
        "holds",
        "The uninformed attacker already errs with probability min{eta, 1-eta} = 0, so the "
        "difference is exactly 0 in every case.",
        searched,
    )


@statement(
    "S3-ratio",
    289,
    r"the multiplicative version is based on utility ratios",
    chapter="05_multiplicative_advantage",
    mutants=[{"measure": "odds"}],
)
def utility_ratios(search: Search, measure: str = "utility") -> Finding:
    """Section 3 announces utility ratios; Definition 3.6 takes ratios of odds."""
    prior, flip = Fraction(1, 5), Fraction(1, 4)
    channel = exact.randomized_response(flip)
    after = exact.posterior([prior], channel, 0)[(1,)]
    odds = (after / (1 - after)) / (prior / (1 - prior))
    before = 1 - prior
    utility = (before + exact.additive_advantage([prior], channel, 0)) / before
    confirm(odds == (1 - flip) / flip == 3, "posterior odds over prior odds equal e^epsilon")
    announced = utility if measure == "utility" else odds
    searched = "read closely; RR at e^epsilon = 3 and eta = 1/5, exactly"
    if announced == odds:
        return Finding("holds", f"The announced ratio is {odds} = exp(I).", searched)
    return Finding(
        "misprint",
        "Section 3.2 defines I as posterior log odds minus prior log odds, so exp(I) is a ratio of "
        f"odds. The ratio of attack utilities is something else: for RR with pi = 1/4 and "
        f"eta = 1/5 it is {utility} (the noisy label never changes the guess) while exp|I| = "
        f"{odds}.",
        searched,
        "based on ratios of odds",
    )


@statement(
    "D3.1",
    290,
    r"EAdv and IEAdv: best informed minus best uninformed utility",
    chapter="02_additive_advantage",
    mutants=[{"uninformed": "always 1"}],
)
def additive_definition(search: Search, uninformed: str = "best") -> Finding:
    """Definition 3.1: the supremum by brute force against the Bayes formula, and IEAdv to EAdv."""
    law = [(Fraction(1, 5), Fraction(2, 3)), (Fraction(3, 5), Fraction(1, 3))]
    size = search.pick(2, 3)
    searched = (
        f"every deterministic adversary, bags of 1 to {size} with eta in {{1/5, 3/5}} "
        "(weights 2/3, 1/3), LLP, RR and LLP+Geom"
    )
    for k in range(1, size + 1):
        for name, channel in three_mechanisms(k).items():
            gains = []
            for eta, weight in exact.bags(law, k):
                best = exact.best_deterministic_gain(eta, channel, 0)
                if uninformed == "always 1":
                    best += max(eta[0], 1 - eta[0]) - eta[0]
                if best != exact.additive_advantage(eta, channel, 0):
                    text = f"{name}, k = {k}: the best adversary gains {best}."
                    return Finding("false", text, searched)
                gains.append((eta[0], weight, best))
            frozen = {
                v: sum((w * g for e, w, g in gains if e == v), Fraction(0)) / share
                for v, share in law
            }
            total = exact.expected_advantage(law, channel, k)
            confirm(total == sum(share * frozen[v] for v, share in law), "EAdv = E[IEAdv(x_i)]")
    return Finding(
        "holds",
        "The supremum over adversaries is attained by the Bayes guess and equals "
        "min{eta_i, 1-eta_i} - E min_b P(y_i = b | x, z) in every case; averaging IEAdv over x_i "
        "gives EAdv exactly for these mechanisms, which treat all examples alike.",
        searched,
    )


@statement(
    "S3-m",
    303,
    r"EAdv(RR) does not depend on m; EAdv(LLP) depends on k only",
    chapter="02_additive_advantage",
    mutants=[{"pooled": True}],
)
def independent_of_m(search: Search, pooled: bool = False) -> Finding:
    """Section 3: adding further bags (or labels, for RR) changes nobody's advantage."""
    law = [(Fraction(1, 5), Fraction(2, 3)), (HALF, Fraction(1, 3))]
    most = search.pick(2, 3)
    rr = exact.randomized_response(Fraction(1, 3))
    searched = f"two-point law, RR with m = 1 to {most}, LLP with k = 1, 2 and m = k, 2k"
    single = exact.expected_advantage(law, rr, 1)
    for m in range(2, most + 1):
        channel = exact.label_proportions if pooled else rr
        if exact.expected_advantage(law, channel, m) != single:
            return Finding("false", f"The advantage changes from m = 1 to m = {m}.", searched)
    for k in (1, 2):
        alone = exact.expected_advantage(law, exact.label_proportions, k)
        twice = exact.expected_advantage(law, exact.in_bags(exact.label_proportions, k), 2 * k)
        confirm(alone == twice, "a second bag leaves the advantage of LLP alone")
    return Finding(
        "holds",
        f"Exact equality in every case (RR: EAdv = {single} for m = 1 to {most}): given the "
        "features, labels outside an example's own bag are independent of it and of its release.",
        searched,
    )


@statement(
    "S3-coincide",
    309,
    r"labels independent of features: the notions of advantage coincide",
    chapter="02_additive_advantage",
    mutants=[{"spread": Fraction(1, 10)}],
)
def notions_coincide(search: Search, spread: Fraction = Fraction(0)) -> Finding:
    """Section 3.1: with eta constant, IEAdv(x_i) is the same for every x_i and equals EAdv."""
    size = search.pick(4, 6)
    searched = f"LLP, eta = 1/10, 3/10, 1/2, 4/5, bags of 1 to {size}, every example of the bag"
    for k, p in product(range(1, size + 1), PRIORS[1:-1]):
        law = [(p - spread, HALF), (p + spread, HALF)] if spread else [(p, Fraction(1))]
        total = exact.expected_advantage(law, exact.label_proportions, k)
        for value, _ in law:
            rest = exact.bags(law, k - 1)
            frozen = sum(
                (
                    w * exact.additive_advantage((value, *eta), exact.label_proportions, 0)
                    for eta, w in rest
                ),
                Fraction(0),
            )
            if frozen != total:
                text = f"IEAdv at eta = {value} is {frozen} but EAdv = {total} for k = {k}."
                return Finding("false", text, searched)
        bag = [p] * k
        gains = {exact.additive_advantage(bag, exact.label_proportions, i) for i in range(k)}
        confirm(len(gains) == 1, "every example of the bag has the same advantage")
    return Finding(
        "holds",
        "IEAdv(x_i) = EAdv exactly for every example, and f_1 - f_2 is the same number for every "
        "feature vector, so its tail is a step. The sentence is about LLP, which treats the "
        "examples of a bag alike; a mechanism that does not (release y_1, hide y_2) still has "
        "different individual advantages.",
        searched,
    )
