"""Tests of the sweep: grids, the store, plans, engines, audits, the commands."""
