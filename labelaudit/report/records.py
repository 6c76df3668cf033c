"""Which records are the most exposed: by id, never their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.report.exposure import plug_in_advantage

# Priors at which the mean over bag-mates is computed, and the members of bags looked at for that.
FINEST, COARSEST = 101, 11
MOST_LOOKED_AT = 300_000
# Of so many times the records asked for the mean is computed at their own priors.
CANDIDATES = 5


def most_exposed(
    etas: Sequence[Floats], ids: Sequence[str], mechanism: Mechanism, count: int, seed: int
) -> list[dict[str, Any]]:
    """The records with the largest advantage, averaged over the refits and over their bag-mates.

    Among random mates a record's mean advantage is a function of its prior alone. It is computed
    on a grid first, then for the first few records at their own priors, each in the same bags as
    all others, so that no record leads by the luck of its bag. The value shown is from fresh bags.

    >>> import numpy as np
    >>> from labelaudit import RandomizedResponse
    >>> etas, ids = [np.array([0.1, 0.5, 0.7])], ["Ada", "Ben", "Cleo"]
    >>> found = most_exposed(etas, ids, RandomizedResponse(1.0), count=2, seed=0)
    >>> [(one["id"], round(one["advantage"], 4)) for one in found]
    [('Ben', 0.2311), ('Cleo', 0.0311)]
    """
    rng = np.random.default_rng([seed, 3])
    # A ready-made prior is the same in every refit.
    etas = etas if any(eta is not etas[0] for eta in etas) else etas[:1]
    rows = np.arange(len(ids))
    if mechanism.bag_size > 1:
        fine = int(np.clip(MOST_LOOKED_AT // (2 * mechanism.bag_size), COARSEST, FINEST))
        grid = np.linspace(0, 1, fine)
        curves = [np.interp(eta, grid, among(grid, eta, mechanism, rng)) for eta in etas]
        scores = np.mean(curves, axis=0)
        rows = first_of(scores, CANDIDATES * count)
    scores = np.mean([among(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    rows = rows[first_of(scores, count)]
    shown = np.mean([among(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    return [
        {"id": ids[row], "advantage": value}
        for row, value in zip(rows.tolist(), shown.tolist(), strict=True)
    ]


def first_of(scores: Floats, count: int) -> NDArray[np.int64]:
    """The places of the largest scores, the first of equal ones first.

    >>> first_of(np.array([0.1, 0.3, 0.3, 0.2]), 2).tolist()
    [1, 2]
    """
    return np.argsort(-scores, kind="stable")[:count]


def among(priors: Floats, eta: Floats, mechanism: Mechanism, rng: np.random.Generator) -> Floats:
    """The mean advantage of records with such priors, all in the same bags of random others."""
    k = mechanism.bag_size
    if k == 1:
        return plug_in_advantage(priors[:, None], mechanism, rng)[0][:, 0]
    n_bags = max(MOST_LOOKED_AT // (priors.size * k), 2)
    bags = np.repeat(rng.choice(eta, (n_bags, 1, k)), priors.size, axis=1)
    bags[:, :, 0] = priors
    gains = plug_in_advantage(bags.reshape(-1, k), mechanism, rng)[0][:, 0]
    return gains.reshape(n_bags, priors.size).mean(axis=0)
