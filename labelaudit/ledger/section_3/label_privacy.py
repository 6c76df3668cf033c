"""Ledger rows for label-private mechanisms and the additive advantage (paper lines 373 to 388)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import e, exp

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF, Channel, Labels
from labelaudit.ledger.rows import Finding, Search, confirm, statement
from labelaudit.ledger.section_2 import flip_for, neighbours
from labelaudit.ledger.section_3.definitions import three_mechanisms

CHAPTER = "04_randomized_response"


def random_channel(size: int, outputs: int, rng: np.random.Generator) -> Channel:
    """A mechanism on `size` labels with random rational probabilities, all positive."""
    rows: dict[Labels, dict[Hashable, Fraction]] = {}
    for labels in product((0, 1), repeat=size):
        weights = [int(w) for w in rng.integers(1, 12, outputs)]
        rows[labels] = {z: Fraction(w, sum(weights)) for z, w in enumerate(weights)}

    def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
        return rows[labels]

    return channel


def odds_ceiling(channel: Channel, size: int) -> Fraction:
    """e^epsilon of a finite mechanism: its largest likelihood ratio between neighbours."""
    return max(channel(a)[z] / channel(b)[z] for a, b in neighbours(size) for z in channel(a))


def private_channels(search: Search, seed: int) -> Iterator[tuple[Channel, int, Fraction]]:
    """Random mechanisms, randomized response and LLP+Geom, each with its exact e^epsilon."""
    rng = np.random.default_rng(seed)
    for _ in range(search.pick(60, 600)):
        size = int(rng.integers(1, 4))
        channel = random_channel(size, int(rng.integers(2, 5)), rng)
        odds = odds_ceiling(channel, size)
        if odds > 1:
            yield channel, size, odds
    for odds in (Fraction(17, 16), Fraction(2), Fraction(8), Fraction(1000)):
        yield exact.randomized_response(flip_for(odds)), 2, odds
        yield exact.geometric_proportions(3, 1 / odds), 3, odds


def random_bag(size: int, rng: np.random.Generator) -> list[Fraction]:
    """Priors n/20 strictly between 0 and 1."""
    return [Fraction(int(n), 20) for n in rng.integers(1, 20, size)]


@statement(
    "S3-cited",
    374,
    r"every epsilon-label-DP PET has EAdv <= 1 - 2/(1+e^epsilon)",
    chapter=CHAPTER,
    mutants=[{"constant": Fraction(2, 5)}],
)
def cited_bound(search: Search, constant: Fraction = Fraction(1)) -> Finding:
    """The bound cited from earlier work, on random private mechanisms, in fractions."""
    rng = np.random.default_rng(374)
    largest, tried = Fraction(0), 0
    searched = "random mechanisms on 1 to 3 labels, RR and LLP+Geom, random priors and all 1/2"
    for channel, size, odds in private_channels(search, 3740):
        for eta in ([HALF] * size, random_bag(size, rng)):
            gains = [exact.additive_advantage(eta, channel, i) for i in range(size)]
            for prior, gain in zip(eta, gains, strict=True):
                sharp = max(Fraction(0), min(prior, 1 - prior) - flip_for(odds))
                confirm(gain <= sharp, "IEAdv <= (min{eta, 1-eta} - pi)^+")
            bound = constant * (1 - 2 / (1 + odds))
            largest, tried = max(largest, max(gains) / bound), tried + 1
    if largest > 1:
        return Finding("false", f"The ratio to {constant} times the bound is {largest}.", searched)
    return Finding(
        "holds",
        f"In {tried} cases the largest ratio of the advantage to the bound is {largest}, attained "
        "by RR at eta = 1/2. Half the bound is always enough for binary labels: "
        "IEAdv <= (min{eta, 1-eta} - pi)^+ <= (1/2) tanh(epsilon/2).",
        searched,
    )


@statement(
    "S3-p1",
    377,
    r"if P(y = 1) = 1 the advantage is zero for every PET",
    chapter=CHAPTER,
    mutants=[{"p": Fraction(9, 10)}],
)
def certain_labels(search: Search, p: Fraction = Fraction(1)) -> Finding:
    """The extreme example after the cited bound."""
    rng = np.random.default_rng(377)
    size = search.pick(3, 4)
    searched = f"LLP, RR, LLP+Geom and random mechanisms on 1 to {size} labels, P(y = 1) = {p}"
    for k in range(1, size + 1):
        channels = [*three_mechanisms(k).values(), random_channel(k, 3, rng)]
        gain = max(exact.additive_advantage([p] * k, channel, 0) for channel in channels)
        if gain != 0:
            return Finding("false", f"The advantage is {gain} for k = {k}.", searched)
    return Finding(
        "holds",
        "E eta = 1 forces eta = 1 almost surely, the uninformed guess is never wrong, and the "
        "advantage is exactly 0 in every case.",
        searched,
    )


@statement(
    "T3.5",
    381,
    r"IEAdv(RR) = (min{eta, 1-eta} - pi) 1{eta in [pi, 1-pi]}",
    chapter=CHAPTER,
    mutants=[{"flip_scale": HALF}, {"indicator": False}],
)
def response_advantage(
    search: Search, flip_scale: Fraction = Fraction(1), indicator: bool = True
) -> Finding:
    """Theorem 3.5, by trying all four maps from the noisy label to a guess."""
    steps = search.pick(40, 240)
    all_odds = [Fraction(1), *(Fraction(n, 4) for n in (5, 6, 8, 12, 40, 400)), Fraction(2**40)]
    searched = f"eta = 0, 1/{steps}, ..., 1 and eta = pi, 1-pi; e^epsilon from 1 to 2^40; fractions"
    for odds in all_odds:
        flip = flip_for(odds)
        for eta in [*(Fraction(n, steps) for n in range(steps + 1)), flip, 1 - flip]:
            inside = flip <= eta <= 1 - flip
            formula = (min(eta, 1 - eta) - flip) * (inside or not indicator)
            channel = exact.randomized_response(flip_scale * flip)
            truth = exact.best_deterministic_gain([eta], channel, 0)
            if truth != formula:
                text = f"eta = {eta}, pi = {flip}: IEAdv = {truth}, formula {formula}."
                return Finding("false", text, searched)
    return Finding("holds", "Equal as fractions in every case (slack 0).", searched)


@statement(
    "N-0.46",
    388,
    r"at epsilon = 1 the cited bound is 1 - 2/(1+epsilon), about 0.46",
    chapter=CHAPTER,
    mutants=[{"exponential": True}],
)
def worked_number(search: Search, exponential: bool = False) -> Finding:
    """The worked number: the formula printed beside it has epsilon where e^epsilon is meant."""
    mended = 1 - 2 / (1 + exp(1))
    confirm(abs(mended - 0.46) < 0.005, "1 - 2/(1+e) is about 0.46")
    printed = mended if exponential else 1 - 2 / (1 + 1)
    if abs(printed - 0.46) < 0.005:
        return Finding("holds", f"The value is {printed:.4f}.", "arithmetic")
    return Finding(
        "misprint",
        f"As printed the formula gives 1 - 2/(1+1) = {printed:.0f} at epsilon = 1; with e^epsilon "
        f"in the denominator it gives {mended:.4f}, the number quoted.",
        "arithmetic",
        f"1 - 2/(1 + e^epsilon), which is {mended:.4f} at epsilon = 1",
    )


@statement(
    "N-0.00095",
    388,
    r"on one data set the advantage of RR at epsilon = 1 is 0.00095",
    chapter=CHAPTER,
)
def worked_data_set(search: Search) -> Finding:
    """A measured number: it needs the priors of a trained network on an unnamed data set."""
    from scipy import integrate, stats

    flip = 1 / (1 + e)

    def advantage(a: float, b: float) -> float:
        density = stats.beta(a, b).pdf
        return float(
            integrate.quad(lambda x: (min(x, 1 - x) - flip) * density(x), flip, 1 - flip)[0]
        )

    uniform, skewed = advantage(1, 1), advantage(2, 30)
    confirm(min(abs(uniform - 0.00095), abs(skewed - 0.00095)) > 5e-4, "neither synthetic law")
    return Finding(
        "unchecked",
        "The data set is not named and its priors are not published. It is neither synthetic law: "
        f"Theorem 3.5 gives {uniform:.4f} for uniform eta and {skewed:.2g} for Beta(2, 30) at "
        "epsilon = 1, so presumably one of the two real data sets is meant. A check needs eta from "
        "the paper's network trained on that data in full (KDD12, most likely).",
        "the two synthetic laws, by quadrature",
    )
