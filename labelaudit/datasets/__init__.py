"""The data sets of the book: Higgs, KDD12, diabetes, stand-ins, Fair's survey.

>>> data = load("higgs-like")
>>> data.simulated, data.columns[:2]
(True, ('lepton_pT', 'lepton_eta'))
>>> data.train.features.shape, data.test.features.shape
((60000, 28), (10000, 28))
"""

from pathlib import Path

import yaml

from labelaudit import checks
from labelaudit._deprecated import deprecated
from labelaudit.datasets import standins
from labelaudit.datasets.dataset import TEST_ROWS, Arrays, Dataset, Split, fingerprint, split
from labelaudit.datasets.fair import load_fair
from labelaudit.datasets.store import (
    DataError,
    NotPrepared,
    open_array,
    read_manifest,
    verify,
)

__all__ = ["NAMES", "DataError", "Dataset", "NotPrepared", "Split"]
__all__ += ["load", "load_or_standin", "verify"]

__getattr__ = deprecated(
    "labelaudit.datasets",
    {
        "Column": "labelaudit.auditing:Feature",
        "Table": "labelaudit.auditing:Table",
        "read_table": "labelaudit.report:read_table",
    },
)

# Where each real set comes from.
CATALOGUE = yaml.safe_load(Path(__file__).with_name("catalogue.yml").read_text(encoding="utf-8"))
NAMES = (*CATALOGUE, *standins.COLUMNS, "fair")
SIMULATED_ROWS = 60_000


def load(name: str, *, train_rows: int | None = None, seed: int = 0) -> Dataset:
    """A data set by name. Its arrays are read or simulated when they are first used.

    `train_rows` is the number of training rows to simulate (by default 60,000) or, for real data,
    the largest number to use. `seed` is the seed of the simulation. `higgs`, `kdd12` and
    `diabetes` raise `NotPrepared` until they have been prepared.

    >>> fair = load("fair")
    >>> len(fair.train), len(fair.test), fair.simulated
    (4244, 2122, False)
    >>> load("kdd12-like", train_rows=100, seed=1).train.labels.shape
    (100,)
    """
    if name not in NAMES:
        raise ValueError(f"a data set is one of {', '.join(NAMES)}, not {name!r}")
    if train_rows is not None:
        train_rows = checks.whole_number(train_rows, "train_rows")
    if name == "fair":
        return load_fair(train_rows)
    if name in CATALOGUE:
        return _prepared(name, train_rows)
    seed = checks.whole_number(seed, "seed", least=0)
    return _simulated(name, train_rows or SIMULATED_ROWS, seed)


def load_or_standin(name: str, *, train_rows: int | None = None, seed: int = 0) -> Dataset:
    """The real data set where it has been prepared, otherwise its simulated stand-in.

    >>> load_or_standin("higgs", train_rows=100).name in ("higgs", "higgs-like")
    True
    """
    try:
        return load(name, train_rows=train_rows, seed=seed)
    except NotPrepared:
        if f"{name}-like" not in NAMES:
            raise
        return load(f"{name}-like", train_rows=train_rows, seed=seed)


def _simulated(name: str, train_rows: int, seed: int) -> Dataset:
    rows = TEST_ROWS + train_rows
    facts = {"name": name, "version": standins.VERSION, "rows": rows, "seed": seed}
    return Dataset(
        name=name,
        **split(lambda: standins.draw(name, rows, seed), TEST_ROWS),
        fingerprint=fingerprint(facts),
        simulated=True,
        description=f"simulated in the shape of {CATALOGUE[name.removesuffix('-like')]['title']}",
        columns=standins.COLUMNS[name],
        buckets=standins.HASHED[name],
        facts=facts,
    )


def _prepared(name: str, train_rows: int | None) -> Dataset:
    manifest = read_manifest(name)
    if manifest is None:
        raise NotPrepared(how_to_prepare(name))
    test_rows = manifest["split"]["test_rows"]
    negatives_kept = manifest.get("negatives_kept", 1.0)
    used = manifest["rows"] - test_rows
    if train_rows is not None:
        used = min(train_rows, used)

    def all_rows() -> Arrays:
        features, labels = (open_array(name, manifest, key) for key in ("features", "labels"))
        return Arrays(features, labels, None)

    source, rows = CATALOGUE[name], manifest["rows"]
    number = "all" if rows == source["rows"] else f"{rows:,} of"
    # Two preparations of one file may differ in these.
    reproducible = {key: manifest[key] for key in manifest.keys() - {"arrays", "source_file"}}
    return Dataset(
        name=name,
        **split(all_rows, test_rows, used, negatives_kept),
        fingerprint=fingerprint(reproducible | {"train_rows": used}),
        simulated=False,
        description=f"{source['title']}, {number} {source['rows']:,} rows",
        columns=tuple(manifest["columns"]),
        buckets=manifest.get("buckets"),
        negatives_kept=negatives_kept,
        facts=manifest,
    )


def how_to_prepare(name: str) -> str:
    """Which command prepares a data set, and where to get its file."""
    source = CATALOGUE[name]
    return (
        f"{source['title']} is not prepared. If you have its file ({source['layouts']}):"
        f" make data-{name} SOURCE=FILE. The file is published at {source['home']};"
        f" make data-{name} fetches it"
    )
