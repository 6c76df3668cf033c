"""Fair's survey on extramarital affairs (1978): the real data set that needs no download.

6,366 married women answered a magazine. The label is whether a woman had any affair. The file is
part of statsmodels. R. C. Fair, A Theory of Extramarital Affairs, Journal of
Political Economy 86 (1978), 45-61; in the public domain.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from labelaudit.datasets.dataset import Arrays, Dataset, Split, fingerprint, held_out
from labelaudit.datasets.store import DataError
from labelaudit.files import file_digest

# The file is sorted by label, so its rows are shuffled, always in the same way.
ORDER_SEED = 0


def load_fair(train_rows: int | None = None) -> Dataset:
    """Eight answers of each woman, and whether she reported an affair.

    >>> fair = load_fair()
    >>> len(fair.train) + len(fair.test), fair.columns[0]
    (6366, 'rate_marriage')
    """
    path = _file()
    with open(path, encoding="utf-8") as file:
        columns = tuple(name.strip('"\n ') for name in file.readline().split(","))

    @cache
    def all_rows() -> Arrays:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        table = table[np.random.default_rng(ORDER_SEED).permutation(len(table))]
        labels = (table[:, -1] > 0).astype(np.uint8)
        return Arrays(table[:, :-1].astype(np.float32), labels, None)

    def part(test: bool) -> Arrays:
        features, labels, _ = all_rows()
        size = held_out(len(labels))
        last = None if train_rows is None else size + train_rows
        rows = slice(size) if test else slice(size, last)
        return Arrays(features[rows], labels[rows], None)

    facts = {
        "name": "fair",
        "file": file_digest(path),
        "order": ORDER_SEED,
        "train_rows": train_rows,
    }
    return Dataset(
        name="fair",
        train=Split(lambda: part(test=False)),
        test=Split(lambda: part(test=True)),
        fingerprint=fingerprint(facts),
        simulated=False,
        description="Fair's survey of 6,366 women (1978), from statsmodels",
        columns=columns[:-1],
    )


def _file() -> Path:
    package = importlib.util.find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise DataError("the fair data are part of statsmodels: pip install statsmodels")
    return Path(package.submodule_search_locations[0]) / "datasets" / "fair" / "fair.csv"
