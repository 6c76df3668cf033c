"""The audit command at several sizes, each with a time limit and a process of its own.

A table of 100,000 rows with 40 mixed columns, where eta is learned and refitted; a million
ready-made priors with labels; a hundred million priors without labels, streamed. No other tool does
the same work. Processor seconds are shown beside the clock, which also counts the time of other
processes.
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

from labelaudit.auditing.command import NOT_RECOMMENDED, RECOMMENDED

ROOT = Path(__file__).resolve().parent.parent
CORES = 2
MEGABYTES = 1000


def write_mixed(path: Path, rows: int = 100_000) -> None:
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


def write_stream(folder: Path, rows: int = 100_000_000) -> None:
    """Priors from Beta(2, 30) in ten parquet files."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(10):
        frame = pd.DataFrame({"eta": rng.beta(2, 30, rows // 10)})
        frame.to_parquet(folder / f"{number}.parquet")


# The command, and the most memory that it and, of its own children, the largest have held.
CALL = """
import resource
import sys
from benchmarks.tools import peak_bytes
from labelaudit.cli import main
status = main()
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(peak_bytes(), children, file=sys.stderr)
sys.exit(status)
"""


def _row(what: str, path: Path, arguments: list[str], most: float) -> dict:
    page = path.with_suffix(".html")
    command = [sys.executable, "-c", CALL, "audit", str(path)]
    # The limits are for this many cores, so that more threads must not help.
    threads = {"OMP_NUM_THREADS": str(CORES), "NUMBA_NUM_THREADS": str(CORES)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [*command, "--output", str(page), *arguments],
        cwd=ROOT, env=os.environ | threads, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (RECOMMENDED, NOT_RECOMMENDED):
        raise RuntimeError(f"{what}: exit status {done.returncode}: {done.stderr}")
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak, worker = (int(text) / 1e6 for text in done.stderr.split()[-2:])
    met = seconds <= most and max(peak, worker) <= MEGABYTES
    each = f" and {worker:.0f} in a worker" if worker else ""
    print(
        f"{what:48} {seconds:6.0f} s by the clock, {processor:5.0f} s of processor time, {peak:.0f}"
        f" MB{each}; at most {most:.0f} s, {MEGABYTES} MB: {'met' if met else 'MISSED'}"
    )
    row = {"what": what, "seconds": seconds, "processor": processor, "megabytes": peak}
    row |= {"worker_megabytes": worker, "most_megabytes": MEGABYTES}
    return row | {"most": most, "met": met}


def run() -> list[dict]:
    """The whole table."""
    with tempfile.TemporaryDirectory() as name:
        stream, priors = Path(name) / "stream", Path(name) / "priors.csv"
        write_stream(stream)
        eight = ["--prior", "eta", "--bag-sizes", "8", "--epsilons", "1", "--workers", str(CORES)]
        rows = [_row("a hundred million priors streamed", stream, eight, 60)]
        write_priors(priors)
        labelled = ["--label", "label"]
        rows.append(_row("a million priors", priors, [*labelled, "--prior", "eta"], 20))
        mixed = Path(name) / "mixed.csv"
        write_mixed(mixed)
        return [*rows, _row("100,000 rows, 40 mixed columns, eta refitted", mixed, labelled, 90)]
