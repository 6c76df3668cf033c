"""What a change must reproduce: see `goldens.py`; statements of the ledger are in `test_ledger`."""

import math

import goldens
import pytest
from golden_audits import CASES
from smoke import DECLARED

from book.tools import kernel
from labelaudit.learning import products


def check(kind, name):
    """Compare a golden, where that is possible on this machine."""
    if reason := goldens.compared(kind, name):
        pytest.skip(reason)
    found = goldens.measured(kind, name)
    if kind == "pages" and found["data"] != goldens.load(kind)[name]["data"]:
        pytest.skip("this machine has other data sets than the one that wrote the goldens")
    assert goldens.differences(kind, name, found) == []


@pytest.mark.parametrize("kind", goldens.KINDS)
def test_every_golden_is_kept(kind):
    assert goldens.load(kind).keys() - {"machine"} == set(goldens.names(kind))


def test_goldens_are_trained_with_torchs_own_products_also_in_kernels():
    assert products.PRODUCTS == kernel.SETTINGS[-1] == "highest"


@pytest.mark.parametrize("name", CASES)
def test_audits_are_as_they_were(name):
    check("audits", name)


@pytest.mark.parametrize("chapter", DECLARED)
def test_pages_say_what_they_said(chapter):
    check("pages", chapter)


@pytest.mark.parametrize("chapter", goldens.TABLES_OF)
def test_tables_are_as_they_were(chapter):
    check("tables", chapter)


def test_sweeps_store_what_they_stored():
    kept = goldens.load("sweep").keys() - {"machine"}
    assert len(kept) == 72
    for key in sorted(kept):
        check("sweep", key)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"auc": 0.8}, "auc: 0.8 instead of 0.7"),
        ({"verdict": "misses"}, "verdict: 'misses' instead of 'meets'"),
        ({"sizes": [2, 4]}, "sizes: 2 entries instead of 3"),
        ({"low": math.inf}, "low: inf instead of 0.25"),
        ({"text": "0.1235 of 2"}, "text: '0.1235 of 2' instead of '0.1234 of 1'"),
        ({"count": 3.0}, "count: 3.0 instead of 3"),
        ({"auc": None}, "auc: None instead of 0.7"),
    ],
)
@pytest.mark.parametrize("written_by", ["this machine", "another"])
def test_a_difference_is_named(changed, line, written_by, monkeypatch):
    kept = {"auc": 0.7, "verdict": "meets", "sizes": [2, 4, 8], "low": 0.25, "text": "0.1234 of 1"}
    kept |= {"count": 3}
    machine = goldens.machine() if written_by == "this machine" else "another"
    monkeypatch.setattr(goldens, "load", lambda kind: {"machine": machine, "case": kept})
    assert goldens.differences("audits", "case", kept | {"more": 1}) == []
    assert goldens.differences("audits", "case", kept | changed) == [f"case, {line}"]
    missing = {name: value for name, value in kept.items() if name != "auc"}
    assert goldens.differences("audits", "case", missing) == ["case: auc is missing"]
    last_digit = kept | {"auc": math.nextafter(0.7, 1)}
    assert bool(goldens.differences("audits", "case", last_digit)) == (written_by != "another")
