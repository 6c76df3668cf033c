"""Simulated data sets in the shape of Higgs and KDD12, whose true eta is known.

Each draws the features first, from a distribution that does not depend on the label. It computes
eta from exactly these features, and draws the label with probability eta. So eta is P(y = 1 | x)
without any error, and its AUC is the best that any model can reach.

Rows come in blocks, each from its own random stream. So the first n rows do not depend on how many
rows are drawn, and any number of rows can be streamed in constant memory.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.datasets.columns import HIGGS, KDD12
from labelaudit.datasets.dataset import Arrays
from labelaudit.datasets.hashing import BUCKETS, bucket, mix

BLOCK_ROWS = 1 << 15
# Part of the fingerprint: raise it whenever the same seed would give other data.
VERSION = 1

# transverse momentum: its minimum, and the shape and scale of the gamma distribution above it
_MOMENTUM = {
    "lepton": (0.27, 1.66, 0.436),
    "missing": (0.0, 2.79, 0.357),
    "jet_1": (0.16, 3.02, 0.273),
    "jet_2": (0.19, 2.59, 0.310),
    "jet_3": (0.26, 2.27, 0.322),
    "jet_4": (0.36, 1.51, 0.412),
}
# b-tag of each jet: its maximum, and the probabilities of none, half and all of it
_BTAG = {
    "jet_1": (2.173076, 0.48, 0.12, 0.40),
    "jet_2": (2.214872, 0.49, 0.11, 0.40),
    "jet_3": (2.548224, 0.55, 0.11, 0.34),
    "jet_4": (3.101961, 0.64, 0.08, 0.28),
}
_HIGGS_SLOPE, _HIGGS_INTERCEPT = 1.423, -2.609

# Number of distinct values of each field, and the exponent of its bounded power law.
_POWER_LAW = {
    "ad_id": (70_000, 0.72),
    "query_id": (26_000_000, 0.88),
    "keyword_id": (90_000, 0.76),
    "user_id": (22_000_000, 0.20),
}
_KDD12_SLOPE, _KDD12_INTERCEPT = 0.702, -3.820
# How strongly each field moves the log-odds, in the order of KDD12.
_KDD12_EFFECT = np.array([0.5, 0.7, 0.9, 0.3, 1.0, 0.35, 0.5, 0.4, 0.4, 0.5, 0.4])


def _angles(rows: int, rng: np.random.Generator) -> Floats:
    # Angles are given in units of their standard deviation, so they end at sqrt(3).
    return rng.uniform(-np.sqrt(3), np.sqrt(3), rows)


def _momentum(particle: str, rows: int, rng: np.random.Generator) -> Floats:
    least, shape, scale = _MOMENTUM[particle]
    return least + rng.gamma(shape, scale, rows)


def _particle(name: str, rows: int, rng: np.random.Generator) -> list[Floats]:
    reach = 2.5 if name == "lepton" else 3.0
    polar = reach * np.tanh(1.2 / reach * rng.standard_normal(rows))
    return [_momentum(name, rows, rng), polar, _angles(rows, rng)]


def _mass_squared(first: list[Floats], second: list[Floats]) -> Floats:
    """The squared invariant mass of two particles without mass of their own."""
    turn = np.pi / np.sqrt(3)
    spread = np.cosh(first[1] - second[1]) - np.cos(turn * (first[2] - second[2]))
    return 2 * first[0] * second[0] * spread


def _masses(low: dict[str, list[Floats]]) -> list[Floats]:
    """The seven high-level features: masses of groups of particles.

    Each is concentrated around its centre, as a resonance is, and keeps a long upper tail.
    """
    jets = [low[f"jet_{number}"] for number in (1, 2, 3, 4)]
    lepton = low["lepton"]
    missing = [low["missing"][0], lepton[1], low["missing"][1]]
    pair = {(a, b): _mass_squared(jets[a], jets[b]) for a in range(4) for b in range(a + 1, 4)}
    w_leptonic = _mass_squared(lepton, missing)
    w_jets = pair[2, 3]
    top = pair[1, 2] + pair[1, 3] + w_jets
    lepton_side = w_leptonic + _mass_squared(jets[0], lepton) + _mass_squared(jets[0], missing)
    bottom = pair[0, 1]
    with_w = np.sum(list(pair.values()), axis=0)
    others = [_mass_squared(jet, lepton) for jet in jets[1:]]
    whole = with_w + lepton_side + np.sum(others, axis=0)
    groups = (w_jets, top, w_leptonic, lepton_side, bottom, with_w, whole)
    masses = []
    for squared, (mass, centre, slope, curvature) in zip(groups, _MASS_SHAPE, strict=True):
        # It rises with its square more slowly near the centre than far above it.
        distance = np.log(squared / centre)
        masses.append(mass * np.exp(slope * distance + curvature * np.maximum(distance, 0) ** 2))
    return masses


# for each group: the mass at the centre, the squared mass there, slope and curvature of its log
_MASS_SHAPE = (
    (0.896, 2.84, 0.15, 0.12),
    (0.951, 10.8, 0.13, 0.11),
    (0.990, 1.13, 0.01, 0.07),
    (0.917, 7.88, 0.26, 0.07),
    (0.874, 2.88, 0.29, 0.05),
    (0.948, 24.2, 0.25, 0.11),
    (0.871, 48.8, 0.25, 0.12),
)


def _bump(values: Floats, centre: float, width: float) -> Floats:
    return np.exp(-0.5 * ((values - centre) / width) ** 2)


def _higgs_score(features: NDArray[np.float32]) -> Floats:
    """How similar an event is to a signal.

    The score has windows in the masses, stronger with b-tags, and angles between particles. Little
    of it is linear, so that a linear model is much worse than a network, as with the real data.
    """
    column = {name: features[:, index].astype(np.float64) for index, name in enumerate(HIGGS)}
    tags = sum(column[f"jet_{jet}_btag"] > 0 for jet in (1, 2, 3, 4))
    turn = np.pi / np.sqrt(3)
    apart = np.cos(turn * (column["lepton_phi"] - column["missing_energy_phi"]))
    back_to_back = np.cos(turn * (column["jet_1_phi"] - column["jet_2_phi"]))
    same_side = np.tanh(column["jet_1_eta"] * column["jet_2_eta"])
    score = (1.0 + 0.6 * np.minimum(tags, 3)) * _bump(column["m_bb"], 0.85, 0.14)
    score += 1.3 * _bump(column["m_jj"], 0.90, 0.07)
    score += 1.5 * _bump(column["m_jlv"], 0.85, 0.12)
    score -= 0.7 * np.tanh(2.5 * (column["m_wwbb"] - 0.87))
    score += 0.3 * (tags - 1.8) + 0.4 * np.tanh(column["jet_1_pt"] - 1)
    score += 2.0 * apart * np.tanh(column["m_wbb"] - 0.95)
    score += 1.3 * back_to_back * same_side
    score += 1.0 * np.tanh(column["jet_3_eta"] * column["jet_4_eta"])
    return score


def _higgs_block(rows: int, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
    low = {"lepton": _particle("lepton", rows, rng)}
    low["missing"] = [_momentum("missing", rows, rng), _angles(rows, rng)]
    for jet, (top, none, half, _) in _BTAG.items():
        level = np.digitize(rng.random(rows), [none, none + half])
        low[jet] = [*_particle(jet, rows, rng), level * top / 2]
    columns = [values for particle in low.values() for values in particle] + _masses(low)
    features = np.column_stack(columns).astype(np.float32)
    return features, _HIGGS_INTERCEPT + _HIGGS_SLOPE * _higgs_score(features)


def _power_law(name: str, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ranks 0, 1, ...; the probability of rank r falls as (r + 1) ** -exponent."""
    values, exponent = _POWER_LAW[name]
    reach = (values + 1.0) ** (1 - exponent) - 1
    return ((1 + reach * rng.random(rows)) ** (1 / (1 - exponent))).astype(np.int64) - 1


def _kdd12_block(rows: int, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
    ad = _power_law("ad_id", rows, rng)
    # An ad belongs to one advertiser. Advertisers own few ads or very many; most have one address.
    advertiser = (15_000 ** (mix(ad) / 2.0**64) - 1).astype(np.int64)
    address = 3 * advertiser + (mix(ad + 1) % np.uint64(10) > 7)
    variant = (rng.random(rows) ** -0.45).astype(np.int64)
    depth = 1 + np.digitize(rng.random(rows), [0.277, 0.763])
    position = 1 + (rng.random(rows) ** 1.1 * depth).astype(np.int64)
    user = 1 + _power_law("user_id", rows, rng)
    user[rng.random(rows) < 0.24] = 0
    values = {
        "url_hash": address,
        "ad_id": ad,
        "advertiser_id": advertiser,
        "depth": depth,
        "position": position,
        "query_id": _power_law("query_id", rows, rng),
        "keyword_id": _power_law("keyword_id", rows, rng),
        "title_id": mix(ad * 1009 + variant) % np.uint64(4_000_000),
        "description_id": mix(ad * 1013 + variant // 2) % np.uint64(3_000_000),
        "user_id": user,
        "profile": np.where(user == 0, 0, 1 + mix(user) % np.uint64(18)),
    }
    columns = [bucket(index, values[name]) for index, name in enumerate(KDD12)]
    features = np.column_stack(columns)
    return features, _KDD12_INTERCEPT + _KDD12_SLOPE * _kdd12_score(features)


def _kdd12_score(features: NDArray[np.int32]) -> Floats:
    """A sum of one effect for each bucket; positions and depths have fixed effects.

    Effects belong to buckets, not to values, so that eta is a function of the features.
    """
    uniform = mix(features.astype(np.uint64) + np.uint64(1 << 40)) / 2.0**64
    effects = np.sqrt(12) * (uniform - 0.5)
    for name, order in (("position", (0.8, -0.2, -1.3)), ("depth", (0.3, 0.2, -0.6))):
        index = KDD12.index(name)
        for level, effect in enumerate(order, start=1):
            rows = features[:, index] == bucket(index, np.array([level]))[0]
            effects[rows, index] = effect
    return effects @ _KDD12_EFFECT


_BLOCKS: dict[str, Callable[[int, np.random.Generator], tuple[NDArray[Any], Floats]]] = {
    "higgs-like": _higgs_block,
    "kdd12-like": _kdd12_block,
}
COLUMNS = {"higgs-like": HIGGS, "kdd12-like": KDD12}
HASHED = {"higgs-like": None, "kdd12-like": BUCKETS}


def blocks(name: str, rows: int, seed: int = 0) -> Iterator[Arrays]:
    """The first `rows` rows of a stand-in, block by block.

    >>> block = next(blocks("kdd12-like", 1000))
    >>> block.features.shape, block.features.dtype.name, bool((block.eta < 1).all())
    ((1000, 11), 'int32', True)
    """
    if name not in _BLOCKS:
        raise ValueError(f"a stand-in is one of {sorted(_BLOCKS)}, not {name!r}")
    remaining = checks.whole_number(rows, "rows")
    seed = checks.whole_number(seed, "seed", least=0)
    number = 0
    while remaining > 0:
        rng = np.random.default_rng([VERSION, seed, number])
        # A block is always drawn whole, so that its first rows do not depend on how many are kept.
        features, log_odds = _BLOCKS[name](BLOCK_ROWS, rng)
        eta = 1 / (1 + np.exp(-log_odds))
        labels = (rng.random(BLOCK_ROWS) < eta).astype(np.uint8)
        yield Arrays(features[:remaining], labels[:remaining], eta[:remaining])
        remaining -= BLOCK_ROWS
        number += 1


def draw(name: str, rows: int, seed: int = 0) -> Arrays:
    """The same rows in three arrays."""
    features, labels, eta = zip(*blocks(name, rows, seed), strict=True)
    return Arrays(np.concatenate(features), np.concatenate(labels), np.concatenate(eta))
