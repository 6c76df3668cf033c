"""Random numbers for each purpose, all from one seed and none shared between two purposes."""

from __future__ import annotations

import numpy as np

# Every stored result was made with these numbers: a purpose may be added, no number changed.
STREAMS = {
    **{"initialisation": 0, "bags": 1, "noise": 2, "shuffling": 3},  # of a training
    **{"folds": 100, "rows": 101, "partitions": 102},  # of a sweep's advantages
}


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The random numbers for one purpose; with a `key`, such as the epoch, a stream for each.

    >>> stream(7, "bags").random() == stream(7, "noise").random()
    False
    """
    spawned = np.random.SeedSequence(seed, spawn_key=(STREAMS[purpose], *key))
    return np.random.default_rng(spawned)
