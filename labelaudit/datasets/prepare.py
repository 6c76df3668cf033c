"""From a published file to a prepared set: read, check, hash, write, split, publish."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelaudit.datasets import store
from labelaudit.datasets.catalogue import CATALOGUE
from labelaudit.datasets.dataset import TEST_ROWS, held_out
from labelaudit.datasets.hashing import BUCKETS
from labelaudit.datasets.layouts import PARQUET_ROWS, Layout, find_layout
from labelaudit.datasets.reading import HashedFile, progress
from labelaudit.datasets.store import ArrayWriter, DataError

SPLIT_SEED = 0
# With fewer, one part of the split would be empty.
LEAST_ROWS = 3
HASH = "splitmix64 finaliser of value + (field + 1) * 0x9E3779B97F4A7C15, upper half scaled"

Say = Callable[[str], None]


def prepare(
    name: str,
    source: Path,
    *,
    sha256: str | None = None,
    click_rate: float | None = None,
    say: Say = print,
) -> dict[str, Any]:
    """Prepare a data set from a file at hand and make it the current one; gives its manifest.

    The file is refused, and the last good set stays, if a checksum is known and differs or if
    anything in it is not as it should be. `click_rate` is the positive rate of the population
    that thinned data were drawn from.
    """
    started = time.perf_counter()
    if sha256 is not None:
        sha256 = sha256.strip().lower()
        if not re.fullmatch("[0-9a-f]{64}", sha256):
            raise DataError(f"a sha256 has 64 hexadecimal digits, unlike {sha256!r}")
    if click_rate is not None and not 0 < click_rate < 1:
        raise DataError(f"a click rate lies between 0 and 1, not at {click_rate}")
    layout = find_layout(name, source)
    with store.new_set(name, say) as folder:
        written = _write(layout, source, folder)
        expected = sha256 or _known_sha256(name, source)
        if expected is not None and written.sha256 != expected:
            raise DataError(
                f"{source} has the wrong checksum: sha256 {written.sha256}, expected {expected}"
            )
        rate = written.positives / written.rows
        facts = {
            "rows": written.rows,
            "columns": list(layout.columns),
            "positive_rate": rate,
            "layout": layout.name,
            "source_file": source.name,
            "source_bytes": source.stat().st_size,
            "source_sha256": written.sha256,
            "split": _split(name, folder, written.rows, written.strata),
            **({"buckets": BUCKETS, "hash": HASH} if name == "kdd12" else {}),
            **_thinning(name, layout, rate, click_rate),
        }
        manifest = store.publish(name, folder, facts)
    seconds = time.perf_counter() - started
    say(
        f"prepared {written.rows:,} rows of {CATALOGUE[name].title} in {seconds:.1f} s,"
        f" {shown_rate(manifest)}, in {store.data_folder() / name}"
    )
    return manifest


class Written(NamedTuple):
    """What a pass over the source has found."""

    rows: int
    positives: int
    sha256: str
    strata: NDArray[np.int32] | None


def _write(layout: Layout, source: Path, folder: Path) -> Written:
    """Read the source once, block by block, and write its arrays in the same order."""
    positives, strata = 0, []
    with (
        progress(source.name, source.stat().st_size) as tell,
        HashedFile(source, tell) as file,
        ArrayWriter(folder / "features.npy", layout.dtype, len(layout.columns)) as features,
        ArrayWriter(folder / "labels.npy", np.uint8, None) as labels,
    ):
        for rows in layout.read(source, file):
            features.append(rows.features)
            labels.append(rows.labels)
            positives += int(np.count_nonzero(rows.labels))
            if rows.strata is not None:
                strata.append(rows.strata)
        if features.rows < LEAST_ROWS:
            raise DataError(f"{source} has {features.rows} rows; at least {LEAST_ROWS} are needed")
        if positives in (0, labels.rows):
            raise DataError(
                f"{source} has the label {int(positives > 0)} in every row; both 0 and 1 are needed"
            )
        features.finish()
        labels.finish()
        together = np.concatenate(strata) if strata else None
        return Written(features.rows, positives, file.sha256(), together)


def shown_rate(manifest: dict[str, Any]) -> str:
    """The share of ones in a prepared set and, where negatives were dropped, what it was before."""
    rate = f"positive rate {manifest['positive_rate']:.4f}"
    if "negatives_kept" not in manifest:
        return rate
    return (
        f"{rate} (thinned: {manifest['negatives_kept']:.1%} of the negatives kept,"
        f" {manifest['population_positive_rate']:g} before)"
    )


def verify(name: str) -> dict[str, Any]:
    """Check the prepared set against its manifest, byte by byte and value by value."""
    from labelaudit.datasets import NotPrepared, how_to_prepare

    manifest = store.read_manifest(name)
    if manifest is None:
        raise NotPrepared(how_to_prepare(name))
    store.check_arrays(name, manifest)
    features, labels = (store.open_array(name, manifest, key) for key in ("features", "labels"))
    shape = (manifest["rows"], len(manifest["columns"]))
    if features.shape != shape or labels.shape != shape[:1]:
        raise DataError(
            f"the manifest promises {shape}, the arrays have {features.shape}; prepare {name} again"
        )
    positives = 0
    for start in range(0, len(labels), PARQUET_ROWS):
        part = features[start : start + PARQUET_ROWS]
        positives += int(np.count_nonzero(labels[start : start + PARQUET_ROWS] == 1))
        sound = (part >= 0) & (part < BUCKETS) if name == "kdd12" else np.isfinite(part)
        if not sound.all():
            raise DataError(f"an impossible feature in rows from {start}; prepare {name} again")
    if positives != round(manifest["positive_rate"] * manifest["rows"]):
        raise DataError(
            f"{positives:,} positive labels do not fit the manifest; prepare {name} again"
        )
    return manifest


def _known_sha256(name: str, path: Path) -> str | None:
    """The published checksum, where the file's size says that it should be the published file."""
    for remote in CATALOGUE[name].files:
        if remote.size == path.stat().st_size and remote.checksum is not None:
            algorithm, _, digest = remote.checksum.partition(":")
            return digest if algorithm == "sha256" else None
    return None


def _thinning(
    name: str, layout: Layout, positive_rate: float, click_rate: float | None
) -> dict[str, float]:
    """The share of negatives that were kept, if they were dropped uniformly at random.

    A population with odds o of a positive shows odds o / r once only a share r of its negatives
    is kept.
    """
    if not layout.thinned and click_rate is None:
        return {}
    population = CATALOGUE[name].positive_rate if click_rate is None else click_rate
    if not 0 < population <= positive_rate < 1:
        raise DataError(
            f"a positive rate of {positive_rate:.4f} cannot come from a population with"
            f" {population} by dropping negatives; name the right one with --click-rate"
        )
    kept = population / (1 - population) * (1 - positive_rate) / positive_rate
    return {"negatives_kept": kept, "population_positive_rate": population}


def _split(name: str, folder: Path, rows: int, strata: NDArray[np.int32] | None) -> dict[str, Any]:
    """Bring the test rows to the front of the arrays.

    Of the complete file they are the first 10,000, as in the paper. Of a part of it, whose order
    may mean something, they are drawn by seed, in proportion from each stratum, and change places
    with the rows at the front. `test_rows.npy` names the rows of the source they were.
    """
    size = held_out(rows)
    if rows == CATALOGUE[name].rows:
        return {"test_rows": TEST_ROWS, "by": "order"}
    chosen = draw_test_rows(rows, size, strata)
    from_behind = chosen[chosen >= size]
    to_behind = np.setdiff1d(np.arange(size), chosen, assume_unique=True)
    for array in ("features", "labels"):
        store.swap_rows(folder / f"{array}.npy", to_behind, from_behind)
    test_rows = np.arange(size)
    test_rows[to_behind] = from_behind
    np.save(folder / "test_rows.npy", test_rows)
    by = "seed" if strata is None else "seed, in proportion from each source"
    return {"test_rows": size, "by": by, "seed": SPLIT_SEED}


def draw_test_rows(
    rows: int, size: int, strata: NDArray[np.int32] | None = None
) -> NDArray[np.int64]:
    """`size` of the rows 0 .. rows - 1, in order, the same at every call.

    >>> draw_test_rows(10, 5, np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], np.int32)).tolist()
    [1, 3, 4, 5, 7]
    """
    rng = np.random.default_rng(SPLIT_SEED)
    if strata is None:
        return np.sort(rng.choice(rows, size, replace=False, shuffle=False))
    counts = np.bincount(strata)
    shares = size * counts / rows
    quota = np.floor(shares).astype(int)
    # What rounding down left over goes to the strata that lost most by it.
    quota[np.argsort(quota - shares, kind="stable")[: size - quota.sum()]] += 1
    # Sorted once, so that thousands of strata do not take thousands of passes.
    members = np.split(np.argsort(strata, kind="stable"), np.cumsum(counts)[:-1])
    picked = [
        rng.choice(rows_of, count, replace=False)
        for rows_of, count in zip(members, quota, strict=True)
    ]
    return np.sort(np.concatenate(picked))
