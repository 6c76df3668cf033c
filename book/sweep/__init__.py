"""The sweep behind the curves of privacy and utility: every mechanism of a grid, trained.

`runs` compares a `grid` with the `store` and has what it lacks done by one of the `engines`.
`advantages` audits each mechanism, `comparisons` makes a table of the results.
"""

from book.sweep.runs import (
    Schedule,
    SweepFailed,
    complete,
    configurations,
    load,
    plan,
    run,
    train_once,
)
from labelaudit.engines import Engine, dask, default_workers, local

__all__ = ["Engine", "Schedule", "SweepFailed"]
__all__ += ["complete", "configurations", "dask", "default_workers", "load", "local", "plan", "run"]
__all__ += ["train_once"]
