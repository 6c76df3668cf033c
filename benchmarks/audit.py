"""The audit command at two sizes, each with a time limit and a process of its own.

A table of 200,000 rows with 40 mixed columns, where eta is learned and refitted, and a million
ready-made priors with bags of up to 64 and five epsilons. No other tool does the same work.
Processor seconds are shown beside the clock, which also counts the time of other processes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
CORES = 2


def write_mixed(path: Path, rows: int = 200_000) -> None:
    """Thirty numbers, some of them missing at random, and ten categories; a label from both."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((rows, 30))
    frame = pd.DataFrame(numbers, columns=[f"number_{column}" for column in range(30)])
    score = numbers[:, :6].sum(axis=1) / 3
    for column in range(10):
        codes = rng.integers(0, 4 * (column + 1), rows)
        frame[f"kind_{column}"] = np.char.add("level ", codes.astype(str))
        score += 0.3 * (codes % 3 == 0)
    for column in range(5):
        frame.loc[rng.random(rows) < 0.1, f"number_{column}"] = np.nan
    frame["label"] = (rng.random(rows) < 1 / (1 + np.exp(2 - score))).astype(int)
    frame.to_csv(path, index=False)


def write_priors(path: Path, rows: int = 1_000_000) -> None:
    """Priors from Beta(2, 5) and labels drawn from them."""
    rng = np.random.default_rng(0)
    eta = rng.beta(2, 5, rows)
    labels = (rng.random(rows) < eta).astype(int)
    pd.DataFrame({"eta": eta, "label": labels}).to_csv(path, index=False)


def _row(what: str, path: Path, arguments: list[str], most: float) -> dict:
    call = "import sys; from labelaudit.cli import main; sys.exit(main())"
    page = path.with_suffix(".html")
    command = [sys.executable, "-c", call, "audit", str(path), "--label", "label"]
    # The limits are for this many cores, so that more threads must not help.
    threads = {"OMP_NUM_THREADS": str(CORES), "NUMBA_NUM_THREADS": str(CORES)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "--output", str(page), *arguments],
        check=True, cwd=ROOT, env=os.environ | threads, capture_output=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    met = seconds <= most
    print(
        f"{what:48} {seconds:6.0f} s by the clock, {processor:5.0f} s of processor time;"
        f" at most {most:.0f} s: {'met' if met else 'MISSED'}"
    )
    return {"what": what, "seconds": seconds, "processor": processor, "most": most, "met": met}


def run() -> list[dict]:
    """The whole table."""
    with tempfile.TemporaryDirectory() as name:
        mixed, priors = Path(name) / "mixed.csv", Path(name) / "priors.csv"
        write_mixed(mixed)
        write_priors(priors)
        sizes = ["--bag-sizes", *map(str, (2, 4, 8, 16, 32, 64))]
        epsilons = ["--epsilons", *map(str, (0.25, 0.5, 1, 2, 4))]
        million = ["--prior", "eta", *sizes, *epsilons]
        return [
            _row("a million priors, bags to 64, five epsilons", priors, million, 60),
            _row("200,000 rows, 40 mixed columns, eta refitted", mixed, [], 300),
        ]
