"""Fair's survey on extramarital affairs (1978): the real data set that needs no download.

6,366 married women answered a magazine. The label is whether a woman had any affair. The file is
part of statsmodels. R. C. Fair, A Theory of Extramarital Affairs, Journal of
Political Economy 86 (1978), 45-61; in the public domain.
"""

import importlib.util
from pathlib import Path

import numpy as np

from labelaudit.datasets.dataset import Arrays, Dataset, fingerprint, held_out, split
from labelaudit.datasets.store import DataError
from labelaudit.files import file_digest

ROWS = 6_366
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

    def all_rows() -> Arrays:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        table = table[np.random.default_rng(ORDER_SEED).permutation(len(table))]
        labels = (table[:, -1] > 0).astype(np.uint8)
        return Arrays(table[:, :-1].astype(np.float32), labels, None)

    facts = {"name": "fair", "order": ORDER_SEED, "train_rows": train_rows}
    return Dataset(
        name="fair",
        **split(all_rows, held_out(ROWS), train_rows),
        fingerprint=fingerprint(facts | {"file": file_digest(path)}),
        simulated=False,
        description=f"Fair's survey of {ROWS:,} women (1978), from statsmodels",
        columns=columns[:-1],
    )


def _file() -> Path:
    package = importlib.util.find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise DataError(
            "the fair data are part of statsmodels, which is not installed: in a clone,"
            " pip install '.[train]'"
        )
    return Path(package.submodule_search_locations[0]) / "datasets" / "fair" / "fair.csv"
