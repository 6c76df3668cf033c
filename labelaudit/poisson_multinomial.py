"""The distribution of how many members of a bag are in each class, for more than two classes.

A bag of k people can be split into c classes in C(k + c - 1, k) ways. Tables have an entry for each
of them and bags along the last axis.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats

# Additions that a call may cost: about half a minute on one core.
MAX_STEPS = 5e9
# Entries of a table of counts, over the bags that are computed together.
TABLE_ENTRIES = 2_000_000
# Entries of the list of all counts, one number for each class.
LIST_ENTRIES = 1e7


class Splits:
    """The ways to split up to k people into classes, numbered so that tables stay short.

    Let t_j be how many are in the last j classes. The number of a split is the sum of
    C(t_j + j - 1, j) over j = 1..classes - 1 (the combinatorial number system). It does not
    depend on how many are in the first class, so the splits of m people are the first
    C(m + classes - 1, m) numbers: a table for m is the beginning of one for m + 1.
    """

    def __init__(self, n_bags: int, k: int, classes: int) -> None:
        _affordable(n_bags, k, classes)
        self.n_bags, self.k = n_bags, k
        self.sizes = [math.comb(m + classes - 1, m) for m in range(k + 1)]
        # choose[t, j] = C(t + j - 1, j): each column is the running sum of the one before.
        self.choose = np.zeros((k + 1, classes), dtype=np.int64)
        self.choose[1:, 0] = 1
        for j in range(1, classes):
            self.choose[:, j] = np.cumsum(self.choose[:, j - 1])
        listed = itertools.combinations_with_replacement(range(k), classes - 1)
        flat = np.fromiter(itertools.chain.from_iterable(listed), dtype=np.int64)
        tails = flat.reshape(-1, classes - 1)
        tails = tails[np.argsort(self._numbers(tails))]
        # One more in class a is one more among the last j classes, for every j >= classes - a.
        further = np.cumsum(self.choose[tails + 1, np.arange(classes - 1)][:, ::-1], axis=1)
        numbers = np.arange(len(tails))
        self.after = [numbers, *(numbers + further[:, a] for a in range(classes - 1))]

    def _numbers(self, tails: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of splits, from how many are in the last 1, 2, ... classes."""
        return self.choose[tails, np.arange(1, tails.shape[1] + 1)].sum(axis=1)

    def numbers(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of splits, from how many are in each class."""
        return self._numbers(np.cumsum(counts[:, :0:-1], axis=1))

    def chunks(self) -> Iterator[slice]:
        """Bags that are computed together."""
        step = max(1, TABLE_ENTRIES // self.sizes[-1])
        for start in range(0, self.n_bags, step):
            yield slice(start, start + step)

    def leave_one_out(self, priors: Floats) -> Iterator[tuple[int, Floats]]:
        """The distribution of the others' counts, (splits, n_bags), for each member in turn.

        Halving: to leave out one half of the members, add the other half to the table. Only sums
        of positive terms, and each member is added about log2(k) times.
        """
        pending = [(0, self.k, np.ones((1, len(priors))))]
        while pending:
            first, last, table = pending.pop()
            if last - first == 1:
                yield first, table
                continue
            middle = (first + last) // 2
            halves = [(middle, last, first, middle), (first, middle, middle, last)]
            for keep, end, start, stop in halves:
                added = self._with_members(table, self.k - last + first, priors[:, start:stop])
                pending.append((keep, end, added))

    def _with_members(self, table: Floats, people: int, priors: Floats) -> Floats:
        """The distribution of counts after more members join the first `people`."""
        for i in range(priors.shape[1]):
            added = np.zeros((self.sizes[people + i + 1], len(priors)))
            for a, after in enumerate(self.after):
                added[after[: len(table)]] += priors[:, i, a] * table
            table = added
        return table


def _affordable(n_bags: int, k: int, classes: int) -> None:
    """Raise an error if it would take too long, or too much memory."""
    logs = math.lgamma(k + classes) - math.lgamma(k + 1) - math.lgamma(classes)
    splits = math.exp(min(logs, 600))
    steps = n_bags * k * (math.ceil(math.log2(k)) + 1) * classes * splits
    if steps > MAX_STEPS or classes * splits > LIST_ENTRIES:
        raise ValueError(
            f"bags of {k} with {classes} classes, {n_bags} of them, would take about {steps:.1g} "
            f"steps over {splits:.1g} counts, and at most {MAX_STEPS:.0e} steps over "
            f"{LIST_ENTRIES / classes:.0e} counts are allowed: use fewer bags, smaller bags or "
            "fewer classes (merge rare ones)"
        )
