"""The benchmarks take minutes and run by hand: here only that what they use is still there."""

import importlib

import pytest

from benchmarks.__main__ import SUITES


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_finds_what_it_measures(suite):
    assert callable(importlib.import_module(f"benchmarks.{suite}").run)
