"""The sweep behind the curves of privacy and utility: every mechanism of a `grid`, trained.

`runs` has what the `store` lacks done by an `engine`; `audits` computes each mechanism's advantage.
"""

from book.sweep.engine import dask, local
from book.sweep.runs import SweepFailed, complete, configurations, load, plan

__all__ = ["SweepFailed", "complete", "configurations", "dask", "load", "local", "plan"]
