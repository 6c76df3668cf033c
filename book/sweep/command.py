"""`labelbook sweep` and `labelbook results`."""

import argparse
import contextlib
import re
import sys
from pathlib import Path
from typing import Any

from labelaudit import datasets
from labelaudit.command_line import CommandError, counted
from labelaudit.datasets.store import data_folder

FOLDER: dict[str, Any] = {"type": Path, "metavar": "FOLDER"}
FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}
STORE = {"help": "where results are kept (default: in the data folder)", **FOLDER}
WORKERS = """local processes (default: cores, or 1 where there is a GPU; for several GPUs, start a
shard for each with its own CUDA_VISIBLE_DEVICES)"""
EPILOG = """On a Slurm array: labelbook sweep ... --shard $SLURM_ARRAY_TASK_ID/16 with --array=1-16.
On Dask: --engine dask --address tcp://HOST:8786, workers started with --nthreads 1 and
OMP_NUM_THREADS=1."""


def add_parser(subparsers: Any) -> None:
    """Both commands."""
    about = """Train with every mechanism, learning rate and trial of a grid, and compute each
    mechanism's advantage. Results are kept as they come: the same command continues where a sweep
    was stopped."""
    short = "train every mechanism of a grid and keep the results"
    sweep = subparsers.add_parser("sweep", help=short, description=about, epilog=EPILOG)
    option = sweep.add_argument
    option("--dataset", required=True, choices=datasets.NAMES)
    scales = ("smoke", "laptop", "paper")
    option("--scale", choices=scales, help="a grid of the book (default: laptop)")
    option("--grid", help="a grid of your own, as YAML", **FILE)
    option("--store", **STORE)
    option("--engine", choices=["local", "dask"], default="local")
    option("--address", metavar="URL", help="of the Dask scheduler")
    option("--workers", type=int, metavar="N", help=WORKERS)
    option(
        "--checkpoints", help="where interrupted trainings continue; all workers read it", **FOLDER
    )
    option("--shard", metavar="I/N", default="1/1", help="only the I-th of N equal parts")
    option("--dry-run", action="store_true", help="print the plan and stop")
    sweep.set_defaults(run=run_sweep)
    short = "list, export, import or verify the results of sweeps"
    about = """Without an option, count the results. Two stores are merged by copying one into the
    other."""
    results = subparsers.add_parser("results", help=short, description=about)
    option = results.add_argument
    option("--store", **STORE)
    option("--export", help="a table, .csv, .csv.gz or .parquet", **FILE)
    option("--dataset", choices=datasets.NAMES, help="only the results of one data set")
    option("--grid", help="only the runs of this grid", **FILE)
    option("--verify", action="store_true", help="check every file")
    taken = "take the grid's trainings from an exported table, so that a sweep does not repeat them"
    option("--import", dest="table", help=taken, **FILE)
    results.set_defaults(run=run_results)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Print the plan, then run it."""
    from book import sweep
    from book.sweep import audits
    from book.sweep.grid import read_grid
    from book.sweep.scales import scale_grid
    from book.sweep.store import Store

    shard = _shard(arguments.shard)
    if (arguments.engine == "dask") != (arguments.address is not None):
        raise CommandError("--engine dask and --address go together: --address tcp://HOST:8786")
    if arguments.workers is not None and arguments.workers < 1:
        raise CommandError(f"--workers must be at least 1, not {arguments.workers}")
    if arguments.grid is not None and arguments.scale is not None:
        raise CommandError("--scale and --grid exclude one another: a scale is a grid")
    grid = read_grid(arguments.grid) if arguments.grid else scale_grid(arguments.scale or "laptop")
    data = sweep.load(arguments.dataset, grid)
    store = Store(arguments.store or data_folder() / "results")
    runs, audited = sweep.plan(grid, data, store, shard), audits.plan(grid, data, store)
    print(f"{data.name}: {data.description}, fingerprint {data.fingerprint[:12]}")
    print(f"store: {store.folder}")
    for what, planned in (("runs", runs), ("advantages", audited)):
        done = (planned["state"] == "done").sum()
        print(f"{what}: {len(planned):,}, done: {done:,}, to do: {len(planned) - done:,}")
        for name in planned.index[planned["state"] == "damaged"]:
            print(f"damaged, to be set aside and run again: {store.path(name)}")
    if (to_do := (runs["state"] != "done").sum()) and (known := runs["cpu_seconds"].count()):
        hours = runs["cpu_seconds"].mean() * to_do / 3600
        print(f"estimated time: {hours:.2g} hours of CPU (from {known:,} runs in the store)")
    if grid.for_data(data.name).rate_limits and to_do:
        print("the search plans further learning rates as the results come")
    if arguments.dry_run:
        return 0
    sys.stdout.flush()
    store.folder.mkdir(parents=True, exist_ok=True)  # an error here comes before any work
    local = contextlib.nullcontext(sweep.local(arguments.workers))
    with sweep.dask(arguments.address) if arguments.address else local as engine:
        # Advantages first: then a table of half the trainings is complete in its rows. They are
        # few and quick; the first shard computes them for all.
        if shard[0] == 1:
            audits.complete(grid, data, store, engine=engine, progress=True)
        options = {"engine": engine, "progress": True, "checkpoints": arguments.checkpoints}
        runs = sweep.complete(grid, data, store, shard=shard, **options)
    print(f"all {len(runs):,} results are in {store.folder}")
    return 0


def run_results(arguments: argparse.Namespace) -> int:
    """Count, export, import or verify."""
    from book import sweep
    from book.sweep import audits, results
    from book.sweep.grid import read_grid
    from book.sweep.store import SCHEMA, Store

    store = Store(arguments.store or data_folder() / "results")
    grid = read_grid(arguments.grid) if arguments.grid else None
    if arguments.table is not None:
        if grid is None or arguments.export is not None or arguments.verify:
            raise CommandError("--import goes with --grid FILE, and neither --export nor --verify")
        in_table = results.read_table(arguments.table)["dataset"].value_counts().sort_index()
        for name, count in in_table.items():
            if arguments.dataset in (None, name):
                try:
                    new = results.adopt(arguments.table, grid, sweep.load(name, grid), store)
                    print(f"{name}: {new:,} of the table's {count:,} trainings are new")
                except datasets.NotPrepared as error:
                    print(f"{name}: left out. {error}", file=sys.stderr)
        return 0
    if not store.folder.is_dir():
        raise CommandError(f"there is no store at {store.folder}; labelbook sweep makes one")
    stored = {name: store.read(name) for name in store}
    damaged = [store.path(name) for name, record in stored.items() if record is None]
    for path in damaged:
        print(f"{path} is damaged; the next sweep runs it again", file=sys.stderr)
    if arguments.verify:
        print(f"{len(stored) - len(damaged):,} results are sound, {len(damaged):,} are not")
        return 1 if damaged else 0
    records = [record for record in stored.values() if record and record.schema == SCHEMA]
    names = {record.configuration["dataset"] for record in records}
    if arguments.dataset is not None:
        names &= {arguments.dataset}
    records = [record for record in records if record.configuration["dataset"] in names]
    if grid is not None:
        keys = set[str]()
        for name in sorted(names):
            data = sweep.load(name, grid)
            runs, audited = sweep.plan(grid, data, store), audits.plan(grid, data, store)
            done = (runs["state"] == "done").sum()
            print(f"{name}: {done:,} of {len(runs):,} runs that are planned so far")
            keys |= {*runs.index, *audited.index}
        records = [record for record in records if record.key in keys]
    if arguments.export is None:
        print(counted(len(records), "result"))
        return 0
    if not arguments.export.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise CommandError(f"--export must end in .csv, .csv.gz or .parquet: {arguments.export}")
    try:
        frame = results.results_frame(records)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if frame.empty:
        raise CommandError(f"{store.folder} holds no such trainings to export")
    results.write_table(frame, arguments.export)
    print(f"{counted(len(frame), 'row')} written to {arguments.export}")
    return 0


def _shard(text: str) -> tuple[int, int]:
    """The part and the number of parts.

    >>> _shard("3/16")
    (3, 16)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise CommandError(f"--shard must be I/N with I from 1 to N, such as 3/16, not {text!r}")
    return part, parts
