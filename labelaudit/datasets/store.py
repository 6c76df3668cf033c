"""Prepared sets on disk: memory-mapped arrays, and a manifest that names them.

A set is one folder. Its arrays lie in a subfolder with a name of its own, and `manifest.json`
says which. A new set becomes current when that one small file is replaced, which a file system
does in one step. So a process killed at any moment leaves the old set or the new one.

    higgs/manifest.json          {"format": 1, "arrays": "set-4f21...", "rows": ..., ...}
    higgs/set-4f21.../           features.npy, labels.npy, test_rows.npy
"""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.command_line import CommandError
from labelaudit.files import canonical, file_digest

FORMAT = 1


class DataError(CommandError):
    """A data set cannot be read or prepared; the message names the file and the reason."""

    status = 1


class NotPrepared(DataError):
    """The data set has not been prepared on this machine; the message says how to."""


def data_folder() -> Path:
    """Where prepared data live: `$LABELAUDIT_DATA`, or the user's cache folder."""
    if chosen := os.environ.get("LABELAUDIT_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "labelaudit"


def read_manifest(name: str) -> dict[str, Any] | None:
    """The manifest of the current set, or None where there is none."""
    path = data_folder() / name / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise DataError(f"{data_folder()} is not a folder to keep data in") from None
    except ValueError:
        manifest = None
    if isinstance(manifest, dict) and manifest.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {manifest.get('format')}, this version reads {FORMAT};"
            f" prepare {name} again"
        )
    if not _is_whole(name, manifest):
        raise DataError(f"{path} is damaged; prepare {name} again")
    return manifest


def _is_whole(name: str, manifest: Any) -> bool:
    """Whether a manifest has everything that loading and verifying need."""
    try:
        rows, columns, sums = (manifest[key] for key in ("rows", "columns", "sha256"))
        return bool(
            manifest["name"] == name
            and {"features.npy", "labels.npy"} <= sums.keys()
            and 0 < manifest["split"]["test_rows"] < rows
            and 0 <= manifest["positive_rate"] <= 1
            and 0 < manifest.get("negatives_kept", 1.0) <= 1
            and len(columns)
            and manifest["arrays"] == Path(manifest["arrays"]).name
            and manifest["source_file"]
            and manifest["source_sha256"]
        )
    except (KeyError, TypeError, AttributeError):
        return False


def open_array(name: str, manifest: Mapping[str, Any], array: str) -> NDArray[Any]:
    """An array of the current set, mapped into memory: "features", "labels" or "test_rows".

    Whatever can be checked without reading the features is; `verify` reads them.
    """
    path = data_folder() / name / manifest["arrays"] / f"{array}.npy"
    rows, columns = manifest["rows"], len(manifest["columns"])
    expected: tuple[Any, tuple[int, ...]] = {
        "features": (np.int32 if "buckets" in manifest else np.float32, (rows, columns)),
        "labels": (np.uint8, (rows,)),
        "test_rows": (np.int64, (manifest["split"]["test_rows"],)),
    }[array]
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if (mapped.dtype, mapped.shape) != expected or not mapped.flags.c_contiguous:
            raise ValueError(f"it has shape {mapped.shape} and type {mapped.dtype}")
        if path.stat().st_size != mapped.offset + mapped.nbytes:
            raise ValueError("it has the wrong size")
        if array == "labels" and mapped.max() > 1:
            raise ValueError(f"it has the label {mapped.max()}")
    except (OSError, ValueError, SyntaxError, TokenError) as error:
        raise DataError(f"{path} cannot be read ({error}); prepare {name} again") from None
    return mapped


def verify_files(name: str, manifest: Mapping[str, Any]) -> None:
    """Compare every file of the current set with its checksum."""
    for file, expected in manifest["sha256"].items():
        path = data_folder() / name / manifest["arrays"] / file
        if not path.is_file():
            raise DataError(f"{path} is missing; prepare {name} again")
        if (checksum := file_digest(path)) != expected:
            difference = f"sha256 {checksum[:12]}, expected {expected[:12]}"
            raise DataError(f"{path} is damaged ({difference}); prepare {name} again")


def verify(name: str) -> None:
    """Do so once per process and preparation; nothing where there is no prepared set.

    Higgs takes a few seconds: call it where what is computed will be kept.
    """
    manifest = read_manifest(name)
    if manifest is not None:
        path = data_folder() / name / "manifest.json"
        _verify_once(path, path.stat().st_mtime_ns, canonical(manifest))


@lru_cache
def _verify_once(path: Path, prepared: int, manifest: str) -> None:
    verify_files(path.parent.name, json.loads(manifest))
