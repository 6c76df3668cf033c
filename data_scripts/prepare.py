"""From a published file to a prepared set: read, check, hash, write, split, publish."""

import argparse
import importlib
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from data_scripts.arrays import new_set, publish, swap_rows, write_header
from data_scripts.catalogue import CATALOGUE
from data_scripts.fetch import fetch, fetched
from data_scripts.reading import HashedFile, Layout, Rows, progress_bar
from labelaudit.command_line import Parser, exit_status
from labelaudit.datasets import how_to_prepare, store
from labelaudit.datasets.dataset import held_out
from labelaudit.datasets.hashing import DESCRIPTION
from labelaudit.datasets.store import DataError, NotPrepared, data_folder
from labelaudit.files import file_digest

SPLIT_SEED = 0
# With fewer, one part of the split would be empty.
MIN_ROWS = 3
ROWS_VERIFIED = 1 << 16

Say = Callable[[str], None]


def prepare(
    name: str,
    source: Path,
    *,
    sha256: str | None = None,
    click_rate: float | None = None,
    say: Say = print,
) -> dict[str, Any]:
    """Prepare a data set from a file and make it the current set; gives its manifest.

    If the file's checksum is known and differs, or if anything in the file is invalid, an error is
    raised and the current set stays. `click_rate` is the positive rate of the population that
    thinned data were drawn from.
    """
    started = time.perf_counter()
    if sha256 is not None:
        sha256 = sha256.strip().lower()
        if not re.fullmatch("[0-9a-f]{64}", sha256):
            raise DataError(f"a sha256 has 64 hexadecimal digits, unlike {sha256!r}")
    if click_rate is not None and not 0 < click_rate < 1:
        raise DataError(f"a click rate lies between 0 and 1, not at {click_rate}")
    layout: Layout = importlib.import_module(f"data_scripts.{name}").layout_of(source)
    with new_set(name, say) as folder:
        written = _write(layout, source, folder)
        expected = sha256 or _published_sha256(name, source)
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
            "split": _split(name, folder, written),
            **({"buckets": layout.buckets, "hash": DESCRIPTION} if layout.buckets else {}),
            **_thinning(name, layout, rate, click_rate),
        }
        manifest = publish(name, folder, facts)
    seconds = time.perf_counter() - started
    say(
        f"prepared {written.rows:,} rows of {CATALOGUE[name].title} in {seconds:.1f} s,"
        f" {shown_rate(manifest)}, in {data_folder() / name}"
    )
    say(_shown_split(name, manifest["split"]))
    return manifest


class Written(NamedTuple):
    """What a pass over the source has counted."""

    rows: int
    positives: int
    sha256: str
    strata: NDArray[np.int32] | None
    for_testing: NDArray[np.bool_] | None


def _write(layout: Layout, source: Path, folder: Path) -> Written:
    """Read the source once, block by block, and write its arrays in the same order."""
    count, positives, others = 0, 0, list[Rows]()
    with (
        progress_bar(source.name, source.stat().st_size) as bar,
        HashedFile(source, bar.update) as file,
        open(folder / "features.npy", "wb") as features,
        open(folder / "labels.npy", "wb") as labels,
    ):
        # The number of rows is known only at the end.
        write_header(features, layout.dtype, (0, len(layout.columns)))
        write_header(labels, np.uint8, (0,))
        with closing(layout.read(source, file)) as blocks:  # type: ignore[type-var]
            for rows in blocks:
                features.write(np.ascontiguousarray(rows.features, layout.dtype).data)
                labels.write(np.ascontiguousarray(rows.labels, np.uint8).data)
                count += len(rows.labels)
                positives += int(np.count_nonzero(rows.labels))
                others.append(rows._replace(features=rows.labels[:0], labels=rows.labels[:0]))
        if count < MIN_ROWS:
            raise DataError(f"{source} has {count} rows; at least {MIN_ROWS} are needed")
        if positives in (0, count):
            label = int(positives > 0)
            raise DataError(f"{source} has the label {label} in every row; both are needed")
        write_header(features, layout.dtype, (count, len(layout.columns)))
        write_header(labels, np.uint8, (count,))
        for array in (features, labels):
            array.flush()
            os.fsync(array.fileno())
        strata = [rows.strata for rows in others if rows.strata is not None]
        for_testing = [rows.for_testing for rows in others if rows.for_testing is not None]
        return Written(
            rows=count,
            positives=positives,
            sha256=file.checksum(),
            strata=np.concatenate(strata) if strata else None,
            for_testing=np.concatenate(for_testing) if for_testing else None,
        )


def shown_rate(manifest: dict[str, Any]) -> str:
    """The fraction of ones in a prepared set, and what it was before negatives were dropped."""
    rate = f"positive rate {manifest['positive_rate']:.4f}"
    if "negatives_kept" not in manifest:
        return rate
    return (
        f"{rate} (thinned: {manifest['negatives_kept']:.1%} of the negatives kept,"
        f" {manifest['population_positive_rate']:g} before)"
    )


def verify(name: str) -> dict[str, Any]:
    """Check the prepared set against its manifest, byte by byte and value by value."""
    manifest = store.read_manifest(name)
    if manifest is None:
        raise NotPrepared(how_to_prepare(name))
    again = f"prepare {name} again"
    store.verify_files(name, manifest)
    features, labels = (store.open_array(name, manifest, key) for key in ("features", "labels"))
    positives, buckets = 0, manifest.get("buckets")
    for start in range(0, len(labels), ROWS_VERIFIED):
        part = features[start : start + ROWS_VERIFIED]
        positives += int(np.count_nonzero(labels[start : start + ROWS_VERIFIED] == 1))
        sound = np.isfinite(part) if buckets is None else (part >= 0) & (part < buckets)
        if not sound.all():
            row = start + int(np.argmin(sound.all(axis=1)))
            raise DataError(f"row {row:,} has a feature out of range; {again}")
    if positives != round(manifest["positive_rate"] * manifest["rows"]):
        raise DataError(f"{positives:,} positive labels do not fit the manifest; {again}")
    return manifest


def _published_sha256(name: str, path: Path) -> str | None:
    """The published checksum, where the file's size says that it should be the published file."""
    for remote in CATALOGUE[name].files:
        if remote.size == path.stat().st_size and remote.checksum is not None:
            algorithm, _, checksum = remote.checksum.partition(":")
            return checksum if algorithm == "sha256" else None
    return None


def _thinning(
    name: str, layout: Layout, positive_rate: float, click_rate: float | None
) -> dict[str, float]:
    """The fraction of negatives that were kept, if they were dropped uniformly at random.

    A population with odds o of a positive shows odds o / r once only a fraction r of its negatives
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


def _split(name: str, folder: Path, written: Written) -> dict[str, Any]:
    """Bring the test rows to the front of the arrays.

    In the complete Higgs and KDD12 files they are the first 10,000, as in the paper. A table that
    says which of its rows these are (`uci_row`) has no others for testing. In any other part of a
    file, whose order may mean something, and in a set the paper does not use, they are drawn by
    seed, in proportion from each stratum. They are swapped with the rows at the front;
    `test_rows.npy` holds their indices in the source.
    """
    source, rows = CATALOGUE[name], written.rows
    if rows == source.rows and source.first_rows_for_testing:
        return {"test_rows": source.test_rows, "by": "order"}
    if written.for_testing is not None and written.for_testing.any():
        chosen = np.flatnonzero(written.for_testing)
        if len(chosen) == rows:
            raise DataError(f"all {rows:,} rows are for testing (uci_row below 10,000)")
        how: dict[str, Any] = {"test_rows": len(chosen), "by": "uci_row"}
    else:
        chosen = draw_test_rows(rows, held_out(rows, source.test_rows), written.strata)
        by = "seed" if written.strata is None else "seed, in proportion from each source"
        how = {"test_rows": len(chosen), "by": by, "seed": SPLIT_SEED}
    size = len(chosen)
    from_behind = chosen[chosen >= size]
    to_behind = np.setdiff1d(np.arange(size), chosen, assume_unique=True)
    for array in ("features", "labels"):
        swap_rows(folder / f"{array}.npy", to_behind, from_behind)
    test_rows = np.arange(size)
    test_rows[to_behind] = from_behind
    np.save(folder / "test_rows.npy", test_rows)
    return how


def _shown_split(name: str, split: dict[str, Any]) -> str:
    """Which rows are for testing, and what a reader must know of the other rows."""
    source, size = CATALOGUE[name], split["test_rows"]
    if split["by"] in ("order", "uci_row"):
        complete = "" if size == source.test_rows else f" of {source.test_rows:,}"
        return (
            f"test rows: the {size:,}{complete} that the paper tests on, none of them for training"
        )
    drawn = f"test rows: {size:,}, drawn by {split['by']}"
    if source.first_rows_for_testing:
        drawn += "; rows that the paper tests on may be among those for training"
    return f"{drawn}; {source.note}" if source.note else drawn


def draw_test_rows(
    rows: int, size: int, strata: NDArray[np.int32] | None = None
) -> NDArray[np.int64]:
    """Choose `size` of the rows 0 .. rows - 1, in order, the same at every call.

    >>> draw_test_rows(10, 5, np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], np.int32)).tolist()
    [1, 3, 4, 5, 7]
    """
    rng = np.random.default_rng(SPLIT_SEED)
    if strata is None:
        return np.sort(rng.choice(rows, size, replace=False, shuffle=False))
    counts = np.bincount(strata)
    proportional = size * counts / rows
    quota = np.floor(proportional).astype(int)
    # What rounding down left over goes to the strata that lost most by it.
    quota[np.argsort(quota - proportional, kind="stable")[: size - quota.sum()]] += 1
    # Sorted once, so that thousands of strata do not take thousands of passes.
    members = np.split(np.argsort(strata, kind="stable"), np.cumsum(counts)[:-1])
    picked = [
        rng.choice(rows_of, count, replace=False)
        for rows_of, count in zip(members, quota, strict=True)
    ]
    return np.sort(np.concatenate(picked))


def main(name: str, argv: Sequence[str] | None = None) -> int:
    """Run one script's command and give its exit status: 0, or 1 with one message."""
    source = CATALOGUE[name]
    parser = Parser(
        prog=name,
        description=f"Fetch, prepare and verify {source.title}.",
        epilog=f"Licence: {source.licence}. Cite: {source.citation}",
    )
    option = parser.add_argument
    steps = "fetch the published file; turn a file into arrays on disk; check those arrays"
    option("command", choices=["fetch", "prepare", "verify"], help=steps)
    option("--source", type=Path, metavar="FILE", help=f"a file at hand: {source.layouts}")
    option("--sha256", metavar="HEX", help="reject a source with another checksum")
    if name == "kdd12":
        rate = "the click rate before non-clicks were dropped (OpenML's table: 0.044)"
        option("--click-rate", type=float, metavar="RATE", help=rate)
    return exit_status(name, lambda: _run(name, parser.parse_args(argv)))


def _run(name: str, arguments: argparse.Namespace) -> int:
    if arguments.command == "fetch":
        if arguments.source is not None:
            raise DataError(f"fetch takes no --source; to use {arguments.source}, run prepare")
        print(f"{fetch(name)} is complete; next: python data_scripts/{name}.py prepare")
    elif arguments.command == "prepare":
        source = arguments.source or fetched(name)
        if source is None:
            raise NotPrepared(how_to_prepare(name))
        rate = getattr(arguments, "click_rate", None)
        prepare(name, source, sha256=arguments.sha256, click_rate=rate)
    else:
        manifest = verify(name)
        if arguments.source and file_digest(arguments.source) != manifest["source_sha256"]:
            raise DataError(f"the prepared set was not made from {arguments.source}")
        print(
            f"{name}: {manifest['rows']:,} rows are as they were prepared from"
            f" {manifest['source_file']}, {shown_rate(manifest)}"
        )
    return 0
