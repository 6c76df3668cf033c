"""The sweep behind the curves of privacy and utility: every mechanism of a grid, trained.

`grid` says which runs there are. `runs` compares them with the `store` and has those it lacks done
by one of the `engines`. `advantages` audits each mechanism. `comparisons` makes a table of the
results and compares settings, `imports` takes an exported table back into a store, and `command` is
all of it from a shell.
"""

from labelaudit.learning.sweep.engines import Engine, dask, default_workers, local
from labelaudit.learning.sweep.runs import (
    Schedule,
    SweepFailed,
    complete,
    configurations,
    load,
    plan,
    run,
    train_once,
)

__all__ = [
    "Engine",
    "Schedule",
    "SweepFailed",
    "complete",
    "configurations",
    "dask",
    "default_workers",
    "load",
    "local",
    "plan",
    "run",
    "train_once",
]
