"""Files in every layout of Higgs and KDD12, and what is prepared from them."""

import os
from pathlib import Path

import numpy as np
import pytest

from data_scripts.prepare import prepare
from labelaudit import datasets
from labelaudit.datasets import standins, store

ROWS = 300


def samples(name):
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LABELAUDIT_SAMPLES", beside))
    if not (folder / name).is_file():
        pytest.skip(f"no real sample {name}: set LABELAUDIT_SAMPLES to the folder that has it")
    return folder / name


def quiet(name, path, **options):
    return prepare(name, path, say=lambda message: None, **options)


def in_source_order(name):
    """Features and labels of the current set, the split undone."""
    data = datasets.load(name)
    features = np.concatenate([data.test.features, data.train.features])
    labels = np.concatenate([data.test.labels, data.train.labels])
    test_rows = store.open_array(name, data.facts, "test_rows")
    displaced = np.setdiff1d(np.arange(len(test_rows)), test_rows)
    order = np.arange(len(labels))
    order[: len(test_rows)] = test_rows
    order[np.sort(test_rows[test_rows >= len(test_rows)])] = displaced
    back = np.argsort(order)
    return features[back], labels[back]


def higgs_rows(rows=ROWS, seed=0):
    features, labels, _ = standins.draw("higgs-like", rows, seed)
    return features, labels


def higgs_csv(features, labels, form="%.18e"):
    lines = (
        ",".join([form % label, *(form % value for value in row)])
        for label, row in zip(labels.astype(float), features, strict=True)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def kdd12_rows(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.integers(1, 54_686_453, (rows, 11)), axis=1)
    return indices, (rng.random(rows) < 0.2).astype(np.uint8)


def libsvm(indices, labels, value="1"):
    lines = (
        f"{label} " + " ".join(f"{index}:{value}" for index in row)
        for label, row in zip(labels, indices, strict=True)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def track2(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, (rows, 10), dtype=np.uint64)
    clicks = rng.integers(0, 3, rows)
    lines = (
        "\t".join([str(click), "7", *map(str, row)])
        for click, row in zip(clicks, values, strict=True)
    )
    return values, clicks, "".join(f"{line}\n" for line in lines).encode()
