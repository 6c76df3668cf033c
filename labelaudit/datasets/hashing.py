"""The hash that turns a categorical value into one of a fixed number of buckets.

The paper reduces KDD12's 54,686,452 columns to 500,000 "by hashing feature indices" and names no
hash. This module fixes one, so that a prepared set is the same on every machine: the finaliser of
splitmix64 applied to `value + (field + 1) * GOLDEN`, all modulo 2^64, and the upper 32 bits of the
result scaled to the number of buckets.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BUCKETS = 500_000
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
# Part of the manifest of a prepared set, and so of its fingerprint.
DESCRIPTION = "splitmix64 finaliser of value + (field + 1) * 0x9E3779B97F4A7C15, upper half scaled"


def mix(values: ArrayLike) -> NDArray[np.uint64]:
    """The splitmix64 finaliser: a bijection of 64-bit words whose every output bit is well mixed.

    >>> [hex(word) for word in mix([1, 2])]
    ['0x5692161d100b05e5', '0xdbd238973a2b148a']
    """
    word = np.array(values, dtype=np.uint64)
    word ^= word >> np.uint64(30)
    word *= np.uint64(FIRST)
    word ^= word >> np.uint64(27)
    word *= np.uint64(SECOND)
    word ^= word >> np.uint64(31)
    return word


def bucket(field: int, values: NDArray[Any]) -> NDArray[np.int32]:
    """The bucket of each value of a field.

    LIBSVM and FFM text number all (field, value) pairs in one sequence; such an index is
    hashed as a value of field 0.

    >>> bucket(3, np.array([17, 17, 18])).tolist()
    [111948, 111948, 351709]
    """
    shift = np.uint64((field + 1) * GOLDEN & 0xFFFF_FFFF_FFFF_FFFF)
    upper = mix(np.asarray(values).astype(np.uint64, copy=False) + shift) >> np.uint64(32)
    return ((upper * np.uint64(BUCKETS)) >> np.uint64(32)).astype(np.int32)
