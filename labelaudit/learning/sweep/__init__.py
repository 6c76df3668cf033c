"""The sweep behind the curves of privacy and utility: every mechanism of a grid, trained.

`grid` says which runs there are, `plans` holds them against the `store`, `dispatch` has them done
by one of the `engines`, and `advantages` audits each mechanism. `selection` makes a table of the
results, `comparisons` and `tradeoff` read it, and `command` is all of it from a shell.
"""

from labelaudit.learning.sweep.dispatch import SweepFailed, run, train_once
from labelaudit.learning.sweep.engines import dask, default_workers, local
from labelaudit.learning.sweep.plans import Plan, configurations, load, plan

__all__ = [
    "Plan",
    "SweepFailed",
    "configurations",
    "dask",
    "default_workers",
    "load",
    "local",
    "plan",
    "run",
    "train_once",
]
