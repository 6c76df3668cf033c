"""Checks of Section 3: the measures, and the bounds for each mechanism (paper lines 242 to 435)."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, e, exp, inf, log
from operator import mul
from typing import Any

import numpy as np

from book.ledger import closed_forms, exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.closed_forms import log_independent_advantage
from book.ledger.exact import HALF, total
from labelaudit.bounds import BESSEL_CONSTANT, two_point_advantage
from labelaudit.bounds.paper import lemma_form

PRIORS = tuple(Fraction(n, 10) for n in (0, 1, 3, 5, 8, 10))


@check("S3-EAU", {"whole_vector": True})
def attack_utility(quick: bool, whole_vector: bool = False) -> Cases:
    bags = list(product(PRIORS[1:-1], repeat=2))
    for eta, channel in product(bags, list(exact.three_mechanisms(2).values())[:2]):
        outcomes = [(y, z, w * c) for y, w in exact.labellings(eta) for z, c in channel(y).items()]
        releases = sorted({z for _, z, _ in outcomes}, key=repr)
        for guesses in product(product((0, 1), repeat=2), repeat=len(releases)):
            guess = dict(zip(releases, guesses, strict=True))
            right = (w for y, z, w in outcomes for i in (0, 1) if guess[z][i] == y[i])
            probability, fraction = HALF * sum(right), Fraction(0)
            for y, z, w in outcomes:
                correct = sum(a == b for a, b in zip(guess[z], y, strict=True))
                fraction += w * ((correct == 2) if whole_vector else Fraction(correct, 2))
            yield Case(probability == fraction, bags=len(bags))


@check("S3-det", {"low": Fraction(1, 10)})
def determined_labels(quick: bool, low: Fraction = Fraction(0)) -> Cases:
    size = 3 if quick else 5
    for k in range(1, size + 1):
        bags = product((low, Fraction(1)), repeat=k)
        for eta, channel in product(bags, exact.three_mechanisms(k).values()):
            gains = [exact.additive_advantage(eta, channel, i) for i in range(k)]
            yield Case(not any(gains), size=size)


@check("S3-ratio", {"measure": "odds"})
def utility_ratios(quick: bool, measure: str = "utility") -> Cases:
    prior, flip = Fraction(1, 5), Fraction(1, 4)
    channel = exact.randomized_response(flip)
    odds = exact.shift_in_odds([prior], channel, 0)[(1,)]
    utility = 1 + exact.additive_advantage([prior], channel, 0) / (1 - prior)
    confirm(odds == (1 - flip) / flip == 3, "posterior odds over prior odds equal e^epsilon")
    yield Case(odds == (utility if measure == "utility" else odds), utility=utility, odds=odds)


@check("D3.1", {"uninformed": "always 1"})
def additive_definition(quick: bool, uninformed: str = "best") -> Cases:
    distribution = [(Fraction(1, 5), Fraction(2, 3)), (Fraction(3, 5), Fraction(1, 3))]
    size = 2 if quick else 3
    for k in range(1, size + 1):
        for channel in exact.three_mechanisms(k).values():
            mean = Fraction(0)
            for value, mass in distribution:
                gains = []
                for rest, weight in exact.bags(distribution, k - 1):
                    eta = (value, *rest)
                    best = exact.best_deterministic_gain(eta, channel, 0)
                    if uninformed == "always 1":
                        best += max(value, 1 - value) - value
                    yield Case(best == exact.additive_advantage(eta, channel, 0), size=size)
                    gains.append(weight * best)
                mean += mass * total(gains)  # IEAdv given the prior of the first example
            expected = exact.expected_advantage(distribution, channel, k)
            confirm(expected == mean, "EAdv = E[IEAdv(x_i)]")


@check("S3-m", {"pooled": True})
def independent_of_m(quick: bool, pooled: bool = False) -> Cases:
    distribution = [(Fraction(1, 5), Fraction(2, 3)), (HALF, Fraction(1, 3))]
    most = 2 if quick else 3
    rr = exact.randomized_response(Fraction(1, 3))
    single = exact.expected_advantage(distribution, rr, 1)
    for m in range(2, most + 1):
        channel = exact.label_proportions if pooled else rr
        many = exact.expected_advantage(distribution, channel, m)
        yield Case(many == single, single=single, most=most)
    for k in (1, 2):
        alone = exact.expected_advantage(distribution, exact.label_proportions, k)
        in_bags = exact.in_bags(exact.label_proportions, k)
        twice = exact.expected_advantage(distribution, in_bags, 2 * k)
        confirm(alone == twice, "a second bag leaves the advantage of LLP alone")


@check("S3-coincide", {"spread": Fraction(1, 10)})
def notions_coincide(quick: bool, spread: Fraction = Fraction(0)) -> Cases:
    size = 4 if quick else 6
    for k, p in product(range(1, size + 1), PRIORS[1:-1]):
        distribution = [(p - spread, HALF), (p + spread, HALF)] if spread else [(p, Fraction(1))]
        expected = exact.expected_advantage(distribution, exact.label_proportions, k)
        for value, _ in distribution:
            frozen = total(
                weight * exact.additive_advantage((value, *eta), exact.label_proportions, 0)
                for eta, weight in exact.bags(distribution, k - 1)
            )
            yield Case(frozen == expected, size=size)
        gains = {exact.additive_advantage([p] * k, exact.label_proportions, i) for i in range(k)}
        confirm(len(gains) == 1, "every example of the bag has the same advantage")


def bag_sizes(quick: bool) -> list[int]:
    """Bag sizes from 1 to 10^5; the full search takes every size to 5000."""
    large = [10_000, 30_000, 100_000]
    return [*range(1, 60), 100, 300, 1000, 3000, *large] if quick else [*range(1, 5001), *large]


def means(quick: bool) -> np.ndarray:
    """Values of p from 10^-4 to 1/2, dense at both ends."""
    count = 12 if quick else 25
    small = np.geomspace(1e-4, 0.3, count)
    return np.unique(np.concatenate([small, 0.5 - np.geomspace(1e-4, 0.2, count), [0.5]]))


@check("T3.2-eq", {"extra": 1})
def independent_equality(quick: bool, extra: int = 0) -> Cases:
    size, steps = (6, 10) if quick else (8, 24)
    for k, n in product(range(1, size + 1), range(steps + 1)):
        p, used = Fraction(n, steps), k + extra
        pmf = enumerate(exact.binomial(used, p))
        formula = min(p, 1 - p) - total(mass * Fraction(min(s, used - s), used) for s, mass in pmf)
        truth = exact.additive_advantage([p] * k, exact.label_proportions, 0)
        yield Case(truth == formula, size=size, steps=steps)
        confirm(truth == exact.independent_advantage(p, k), "the closed form agrees")


@check("T3.2-sqrt", {"constant": 0.9}, {"power": 0.52})
def independent_sqrt_bound(quick: bool, constant: float = 1.0, power: float = 0.5) -> Cases:
    p, top, late = means(quick), (-np.inf, 0.0, 0), -np.inf
    for k in bag_sizes(quick):
        ratio = np.exp(log_independent_advantage(p, k)) * k**power
        ratio /= constant * np.sqrt(p * (1 - p))
        top = max(top, (ratio.max(), p[ratio.argmax()], k))
        late = max(late, ratio.max()) if k >= 100 else late
    yield Case(top[0] <= 1 + 1e-9, top=top[0], at_p=top[1], at_k=top[2], late=late, means=len(p))


@check("T3.2-exp", {"rate": 2.5})
def independent_gap_bound(quick: bool, rate: float = 2.0) -> Cases:
    p = means(quick)
    p, least = p[p < 0.5], (np.inf, 0.0, 0)
    for k in bag_sizes(quick):
        rates = -log_independent_advantage(p, k) / ((0.5 - p) ** 2 * k)
        least = min(least, (rates.min(), p[rates.argmin()], k))
    yield Case(least[0] >= rate, least=least[0], at_p=least[1], at_k=least[2], means=len(p))


@check("S3-nonneg", {"concave": False})
def advantage_not_negative(quick: bool, concave: bool = True) -> Cases:
    size, steps = (10, 10) if quick else (30, 20)
    smallest = Fraction(1)
    for k, n in product(range(1, size + 1), range(steps + 1)):
        p = Fraction(n, steps)
        pmf = exact.binomial(k, p)
        confirm(sum(w * Fraction(s, k) for s, w in enumerate(pmf)) == p, "E alpha = p")
        pick = min if concave else max
        mean = sum(w * pick(Fraction(s, k), 1 - Fraction(s, k)) for s, w in enumerate(pmf))
        smallest = min(smallest, pick(p, 1 - p) - mean)
    yield Case(smallest >= 0, smallest=smallest, size=size, steps=steps)


@check("T3.3", {"second_power": 0.75}, {"mu_power": 1.0})
def general_bound(quick: bool, second_power: float = 1.0, mu_power: float = 0.25) -> Cases:
    """Theorem 3.3: true by a direct bound; the lemma cited for it gives mu^{1/4}/k^{3/4}."""
    worst, sharp, example = 0.0, 0.0, dict[str, Any]()
    for case in closed_forms.all_cases(quick):
        variance = case.p * (1 - case.p)
        gain = case.expected - 4 * case.standard_error
        first = case.mu**mu_power * variance**0.25 / case.bag_size**0.5
        ratio = gain / (first + case.mu**mu_power / case.bag_size**second_power)
        if ratio > worst:
            worst = ratio
            example = {"of": case.distribution, "bag_size": case.bag_size, "mu": case.mu}
        sharp = max(sharp, gain / np.sqrt(case.mu / (case.bag_size - 1)))
        confirm(gain <= 2 * case.mu * (1 + 1e-9), "EAdv <= 2 mu")
    confirm(sharp <= BESSEL_CONSTANT, "EAdv <= 0.93765 sqrt(mu/(k-1))")
    for k, variance, part in product((2, 10, 1e4, 1e12), np.geomspace(1e-16, 0.25, 30), (1e-9, 1)):
        mu = variance * part
        first = (mu * variance) ** 0.25 / k**0.5
        closing = 2 * mu if variance <= 1 / k else mu**0.25 / k**0.75
        confirm(closing <= 2 * first * (1 + 1e-9), "the two cases close the gap")
    confirm(worst <= BESSEL_CONSTANT * 2**0.5, "EAdv is at most a constant times the printed sum")

    def loss(k: float) -> float:  # the lemma's bound over the theorem's at p(1-p) = mu = k^-2
        printed = k**-1.5 + k ** (-0.5 - second_power)
        return lemma_form(k, k**-2.0, k**-2.0) / printed

    slope = float(np.log(loss(1e60) / loss(1e40)) / np.log(1e20))
    yield Case(slope < 0.1, worst=worst, slope=slope, **example)


@check("S3-open", {"high": 0.25})
def gap_dependent_extension(quick: bool, high: float = 0.5) -> Cases:
    sizes = (2, 10, 100, 400) if quick else (2, 3, 10, 30, 100, 200, 400)
    far = 100_000
    gains = [two_point_advantage(0.0, high, 0.5, k)[2] for k in sizes]
    below = [gain * 2 * (k + 1) for gain, k in zip(gains, sizes, strict=True)]
    for beta, weight in product((0.05, 0.2, 0.4, 0.45), (0.05, 0.5, 1.0)):
        for low, top in ((0.5 - beta, 0.5 + beta), (0.0, 0.5 - beta), (0.0, 0.5 + beta)):
            mu = (1 - weight) * low * (1 - low) + weight * top * (1 - top)
            for k in (2, 50) if quick else (2, 3, 10, 50, 200):
                gain = two_point_advantage(low, top, weight, k)[2]
                bound = np.exp(-3.84 * mu * beta**2 * (k - 1))
                confirm(gain <= bound, "EAdv <= exp(-3.84 mu beta^2 (k-1))")
    for beta, k in product((0.1, 0.4), (10, 100, 400 if quick else 1000)):
        rare = two_point_advantage(0.0, 0.5 - beta, 1 / k, k)[2]
        confirm(rare >= (0.5 - beta) / (e * k), "a rare uncertain label keeps EAdv of order 1/k")
    limit = 0.5 * closed_forms.half_or_nothing(0.5, far) * far**0.5
    yield Case(min(below) < 1, limit=limit, far=far, high=high, sizes=sizes)


@check("T3.4", {"constant": 0.5}, {"mu_power": 0.5})
def individual_bound(quick: bool, constant: float = 1.0, mu_power: float = 1.5) -> Cases:
    """Theorem 3.4: implied, without logarithms, by IEAdv <= 0.93765 mu_i / sqrt((k-1) mu)."""
    sharp = 0.0
    for case in closed_forms.all_cases(quick):
        k, mu, mu_i = case.bag_size, case.mu, case.eta * (1 - case.eta)
        if not mu_i > 0 or k < 2 / mu * np.log(1 / mu):
            continue
        variance = case.p * (1 - case.p)
        confirm(variance * k >= 1, "the condition on k makes p(1-p)k at least 1")
        bound = variance**0.25 * np.sqrt(mu / k + mu**-mu_power / k)
        bound += np.sqrt(mu / k**2 + mu**-mu_power / k**2)
        sharp = max(sharp, case.individual / mu_i * np.sqrt((k - 1) * mu))
        yield Case(ratio=float(case.individual / (constant * mu_i * bound)), sharp=sharp)
    confirm(sharp <= BESSEL_CONSTANT, "IEAdv <= 0.93765 mu_i / sqrt((k-1) mu)")


@check("S3-smallmu", {"spread": False})
def smaller_mu_smaller_advantage(quick: bool, spread: bool = True) -> Cases:
    skewed = [(Fraction(0), HALF), (HALF, HALF)] if spread else [(Fraction(1, 4), Fraction(1))]
    constant = [(Fraction(3, 10), Fraction(1))]
    sizes = range(2, 6 if quick else 9)
    skewed_gains, constant_gains = (
        [exact.expected_advantage(distribution, exact.label_proportions, k) for k in sizes]
        for distribution in (skewed, constant)
    )
    (p, mu), (p_flat, mu_flat) = exact.mean_and_mu(skewed), exact.mean_and_mu(constant)
    confirm(p < p_flat and mu < mu_flat, "the first distribution has smaller p and smaller mu")
    grid = [Fraction(n, 40) for n in range(21)]
    for k in range(1, 41):
        rising = [exact.independent_advantage(q, k) for q in grid]
        confirm(rising == sorted(rising), "for constant eta EAdv increases with p on [0, 1/2]")
    yield Case(
        not all(a > b for a, b in zip(skewed_gains, constant_gains, strict=True)), size=sizes[-1],
        p=p, mu=mu, gain=skewed_gains[0], p_flat=p_flat, mu_flat=mu_flat, flat=constant_gains[0],
    )  # fmt: skip


@check("S3-cond", {"constant": 0.93})
def conditional_bound(quick: bool, constant: float = 1.0) -> Cases:
    rng, n_bags, bags = np.random.default_rng(371), 400 if quick else 4000, []
    for k in (2, 3, 4, 8, 32) if quick else (2, 3, 4, 5, 6, 8, 16, 32, 64):
        shape = rng.choice([0.05, 0.3, 1.0, 5.0, 50.0], (n_bags, 1))
        bags.append(rng.beta(shape, shape * rng.choice([1.0, 1.0, 10.0], (n_bags, 1)), (n_bags, k)))
        bags[-1][0] = 0.5
    worst = (0.0, 0)
    for eta in [*bags, closed_forms.nearly_sharp_bag()[None]]:
        mu = eta * (1 - eta)
        form = mu[:, 0] / np.sqrt(np.maximum(mu[:, 1:].sum(axis=1), 1e-300))
        ratio = (closed_forms.bag_advantage(eta) - 1e-12) / (constant * np.maximum(form, 1e-300))
        worst = max(worst, (ratio.max(), eta.shape[1]))
    yield Case(worst[0] <= 1, worst=worst[0], size=worst[1], n_bags=n_bags)


@check("S3-cited", {"constant": Fraction(2, 5)})
def cited_bound(quick: bool, constant: Fraction = Fraction(1)) -> Cases:
    rng = np.random.default_rng(374)
    for channel, size, odds in exact.private_channels(quick, 3740):
        for eta in ([HALF] * size, exact.random_bag(size, rng)):
            gains = [exact.additive_advantage(eta, channel, i) for i in range(size)]
            for prior, gain in zip(eta, gains, strict=True):
                sharp = max(Fraction(0), min(prior, 1 - prior) - exact.flip_for(odds))
                confirm(gain <= sharp, "IEAdv <= (min{eta, 1-eta} - pi)^+")
            yield Case(ratio=max(gains) / (constant * (1 - 2 / (1 + odds))))


@check("S3-p1", {"p": Fraction(9, 10)})
def certain_labels(quick: bool, p: Fraction = Fraction(1)) -> Cases:
    rng = np.random.default_rng(377)
    size = 3 if quick else 4
    for k in range(1, size + 1):
        channels = [*exact.three_mechanisms(k).values(), exact.random_channel(k, 3, rng)]
        gains = [exact.additive_advantage([p] * k, channel, 0) for channel in channels]
        yield Case(not any(gains), size=size, p=p)


@check("T3.5", {"flip_scale": HALF}, {"indicator": False})
def response(quick: bool, flip_scale: Fraction = Fraction(1), indicator: bool = True) -> Cases:
    steps = 40 if quick else 240
    all_odds = [Fraction(1), *(Fraction(n, 4) for n in (5, 6, 8, 12, 40, 400)), Fraction(2**40)]
    for odds in all_odds:
        flip = exact.flip_for(odds)
        for eta in [*(Fraction(n, steps) for n in range(steps + 1)), flip, 1 - flip]:
            inside = flip <= eta <= 1 - flip
            formula = (min(eta, 1 - eta) - flip) * (inside or not indicator)
            channel = exact.randomized_response(flip_scale * flip)
            yield Case(exact.best_deterministic_gain([eta], channel, 0) == formula, steps=steps)


@check("N-0.46", {"exponential": True})
def worked_number(quick: bool, exponential: bool = False) -> Cases:
    corrected = 1 - 2 / (1 + exp(1))
    confirm(abs(corrected - 0.46) < 0.005, "1 - 2/(1+e) is about 0.46")
    printed = corrected if exponential else 1 - 2 / (1 + 1)
    yield Case(abs(printed - 0.46) < 0.005, printed=printed, corrected=corrected)


@check("N-0.00095")
def worked_data_set(quick: bool) -> Cases:
    from scipy import stats

    flip = 1 / (1 + e)
    uniform, skewed = (
        stats.beta(*shape).expect(lambda x: min(x, 1 - x) - flip, lb=flip, ub=1 - flip)
        for shape in ((1, 1), (2, 30))
    )
    apart = min(abs(value - 0.00095) for value in (uniform, skewed)) > 5e-4
    confirm(apart, "the number belongs to neither synthetic distribution")
    yield Case(False, uniform=uniform, skewed=skewed)


@check("D3.6", {"prior_weight": 0})
def multiplicative_definition(quick: bool, prior_weight: int = 1) -> Cases:
    """Definition 3.6 with three classes: null release, sign, and the chain rule, in odds."""

    def shift(a: int, b: int, prior: list[Fraction], weights: list[Fraction]) -> Fraction:
        """exp(I_{a,b}): posterior odds over prior odds."""
        after = [p * w / sum(map(mul, prior, weights)) for p, w in zip(prior, weights, strict=True)]
        return after[a] / after[b] / (prior[a] / prior[b]) ** prior_weight

    rng = np.random.default_rng(394)
    for _ in range(50 if quick else 500):
        prior, likelihood = ([Fraction(int(n)) for n in rng.integers(1, 9, 3)] for _ in range(2))
        yield Case(prior[0] == prior[1] or shift(0, 1, prior, [Fraction(1)] * 3) == 1)
        first, second = shift(0, 1, prior, likelihood), shift(1, 2, prior, likelihood)
        confirm(first * second == shift(0, 2, prior, likelihood), "I_ab + I_bc = I_ac")
        confirm(first * shift(1, 0, prior, likelihood) == 1, "I_ab = -I_ba")


@check("D3.6-Theta", {"upper": 1.9}, {"lower": 1.1})
def theta_of_log_ratio(quick: bool, lower: float = 1.0, upper: float = 2.0) -> Cases:
    count = 120 if quick else 400
    grid = np.unique([np.geomspace(1e-8, 0.4, count), 0.5 - np.geomspace(1e-4, 0.1, count)])
    prior, after = np.meshgrid(grid, grid)
    apart = prior != after
    ratio = np.log(after / prior)[apart]
    shift = (np.log(after / prior) + np.log1p(-prior) - np.log1p(-after))[apart]
    low, high = (shift / ratio).min(), (shift / ratio).max()
    inside = lower - 1e-9 <= low and high <= upper + 1e-9
    yield Case(inside, excess=low - 1, high=high, points=grid.size)


@check("D3.6-id", {"other": 1})
def likelihood_ratio_identity(quick: bool, other: int = 0) -> Cases:
    rng = np.random.default_rng(413)
    for k, _ in product((2, 3, 4), range(3 if quick else 20)):
        eta = exact.random_bag(k, rng)
        for channel in exact.three_mechanisms(k).values():
            fixed = [[*eta[:other], Fraction(y), *eta[other + 1 :]] for y in (0, 1)]
            marginal = [exact.joint(bag, channel, other) for bag in fixed]
            for z, shift in exact.shift_in_odds(eta, channel, 0).items():
                if shift not in (0, inf):
                    yield Case(sum(marginal[1][z]) / sum(marginal[0][z]) == shift)


EQUAL_BAGS: Sequence[exact.Bag] = ((Fraction(0), Fraction(1)), (HALF,), (Fraction(1, 25),) * 8)


@check("D3.6-small", {"bags": ((HALF,) * 8, (Fraction(2, 5),) * 10)})
def equal_labels(quick: bool, bags: Sequence[exact.Bag] = EQUAL_BAGS) -> Cases:
    rng = np.random.default_rng(415)
    for _ in range(20 if quick else 200):
        eta = exact.random_bag(int(rng.integers(1, 9)), rng)
        confirm(exact.equal_labels(eta) > 0, "priors inside (0, 1) give a positive probability")
    probabilities = [exact.equal_labels(eta) for eta in bags]
    small = all(0 < probability <= Fraction(1, 20) for probability in probabilities)
    certain, alone, skewed = probabilities[0], probabilities[1], probabilities[-1]
    yield Case(small, certain=certain, alone=alone, skewed=skewed)


@check("D3.6-eps", {"scale": Fraction(9, 10)})
def ceiling_at_epsilon(quick: bool, scale: Fraction = Fraction(1)) -> Cases:
    """The log ratio of label-private mechanisms, in odds so that nothing is rounded."""
    rng = np.random.default_rng(416)
    closest = Fraction(0)
    for channel, size, odds in exact.private_channels(quick, 4160):
        eta = exact.random_bag(size, rng)
        for i in range(size):
            shifts = exact.shift_in_odds(eta, channel, i).values()
            widest = max(max(s, 1 / s) for s in shifts)
            closest = max(closest, widest / odds)
            yield Case(widest <= scale * odds, closest=closest)
    for odds in (Fraction(17, 16), Fraction(3)):
        channel = exact.randomized_response(exact.flip_for(odds))
        shifts = exact.shift_in_odds([Fraction(1, 7), Fraction(2, 3)], channel, 0).values()
        confirm(all(s in (odds, 1 / odds) for s in shifts), "RR: |I| = epsilon for every release")


@check("D3.6-inf", {"noise": Fraction(1, 100)})
def equal_labels_reveal(quick: bool, noise: Fraction = Fraction(0)) -> Cases:
    rng = np.random.default_rng(417)
    for k, _ in product(range(1, 7), range(3 if quick else 20)):
        eta = exact.random_bag(k, rng)
        channel = exact.geometric_proportions(k, noise) if noise else exact.label_proportions
        for i in range(k):
            shifts = exact.shift_in_odds(eta, channel, i)
            yield Case((shifts[0], shifts[1]) == (0, inf))  # I is minus or plus infinity
            confirm(k == 1 or 0 < shifts[Fraction(1, k)] < inf, "a mixed bag leaves I finite")


def outside(p: float, k: int, shift: float) -> float:
    """P(|I| >= shift) for LLP with independent labels, where I(z) = logit z - logit p."""
    from scipy import special, stats

    low = np.floor(k * special.expit(special.logit(p) - shift) + 1e-9)
    high = np.ceil(k * special.expit(special.logit(p) + shift) - 1e-9)
    return float(stats.binom.cdf(low, k, p) + stats.binom.sf(high - 1, k, p))


def worst_failure(quick: bool, c1: float, c2: float, deltas: list[tuple[float, float]]) -> float:
    """Largest P(|I| >= c2 sqrt(L/(p(1-p)k)))/delta over the search, for pairs (delta, L)."""
    worst = 0.0
    for p in (1e-2, 0.2, 0.5) if quick else (1e-3, 1e-2, 0.05, 0.2, 0.35, 0.5):
        for (delta, log_term), factor in product(deltas, (1, 3) if quick else (1, 1.5, 4, 30)):
            k = ceil(factor * c1 * log_term / (p * (1 - p)))
            threshold = c2 * (log_term / (p * (1 - p) * k)) ** 0.5
            worst = max(worst, outside(p, k, threshold) / delta)
    return worst


@check("T3.7", {"bag_size": 2}, {"c2": 1.3})
def tail_of_multiplicative(quick: bool, bag_size: int = 1, c2: float = 3.02) -> Cases:
    """Theorem 3.7: for delta near 1 it fails with all constants; for delta <= 1/2 it holds."""
    deltas = (1e-6, 0.1, 0.5) if quick else (1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.5)
    worst = worst_failure(quick, 64, c2, [(delta, log(1 / delta)) for delta in deltas])
    confirm(worst <= 1, "c1 = 64, c2 = 3.02 work for delta <= 1/2")
    wider = worst_failure(quick, 32, 2.13, [(d, log(2 / d)) for d in (*deltas, 0.9, 0.999, 1.0)])
    confirm(wider <= 1, "c1 = 32, c2 = 2.13 work with ln(2/delta) for delta <= 1")
    infinite = exact.equal_labels([HALF] * bag_size)  # P(|I| infinite), above every threshold
    near_one = [exp(-bag_size / (4 * c1)) for c1 in (1.0, 32.0, 1e3, 1e6, 1e9)]  # k = bag_size fits
    yield Case(all(infinite <= delta for delta in near_one), worst=worst)


@check("T3.7-union", {"scale": 0.3})
def union_over_bags(quick: bool, scale: float = 1.0) -> Cases:
    """The remark after Theorem 3.7, through n(p^k + (1-p)^k), the expected bags of equal labels."""
    grid = np.concatenate([np.geomspace(1e-4, 0.45, 30 if quick else 300), [0.5]])
    rate = -np.log1p(-grid) / (grid * (1 - grid))
    counts = 10.0 ** np.arange(2, 10 if quick else 40)
    size = scale * np.log(counts)[:, None] / (grid * (1 - grid))
    expected = counts[:, None] * (np.exp(size * np.log1p(-grid)) + np.exp(size * np.log(grid)))
    confirm(rate.max() <= 4 * log(2) + 1e-9, "-ln(1-p) <= 4 ln(2) p(1-p)")
    falls = (np.diff(expected, axis=0) < 0).all() and expected.max() <= 2
    yield Case(falls, least=rate.min(), most=rate.max(), bags=counts[-1])


@check("S3.3-TPR", {"weighted": True})
def rates_of_the_bayes_test(quick: bool, weighted: bool = False) -> Cases:
    quarters = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(3, 4), Fraction(1, 4))]
    three = [(Fraction(1, 6), HALF), (Fraction(1, 3), Fraction(3, 8)), (HALF, Fraction(1, 8))]
    gaps = []  # each release has its probabilities for a positive and for a negative label
    for pairs, prior in product((quarters, three), (Fraction(1, 5), Fraction(2, 5), HALF)):
        guessed = [(a, b) for a, b in pairs if prior * a > (1 - prior) * b]
        true_rate, false_rate = total(a for a, _ in guessed), total(b for _, b in guessed)
        advantage = prior - total(min(prior * a, (1 - prior) * b) for a, b in pairs)
        ceiling = max(a / b for a, b in pairs)
        confirm(true_rate <= ceiling * false_rate, "TPR <= exp(max I) FPR")
        balance = prior * true_rate - (1 - prior) * false_rate
        confirm(advantage == balance, "additive advantage = eta TPR - (1-eta) FPR, eta <= 1/2")
        gaps.append((balance if weighted else true_rate - false_rate) - advantage)
    yield Case(not any(gaps), gap=max(gaps))
