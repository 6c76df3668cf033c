"""`labelbook sweep` and `labelbook results`."""

import argparse
import io
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from book.sweep.grid import Grid, read_grid
from book.sweep.store import Record, Store, StoreError, verify
from labelaudit import datasets
from labelaudit.command_line import CommandError, counted
from labelaudit.datasets.store import data_folder
from labelaudit.files import write_atomically

# The scales of the book.
SCALES = ("smoke", "laptop", "paper")
FOLDER: dict[str, Any] = {"type": Path, "metavar": "FOLDER"}
FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}
WORKERS = """local processes (default: cores, or 1 where there is a GPU; for several GPUs, start a
shard for each with its own CUDA_VISIBLE_DEVICES)"""
CHECKPOINTS = "a folder that all workers can read, from which interrupted trainings continue"


def add_parser(subparsers: Any) -> None:
    """Both commands."""
    sweep = subparsers.add_parser(
        "sweep",
        help="train every mechanism of a grid and keep the results",
        description="Train with every mechanism, learning rate and trial of a grid, and compute"
        " each mechanism's advantage. Results are kept as they come: the same command continues"
        " where a sweep was stopped.",
        epilog="On a Slurm array: labelbook sweep ... --shard $SLURM_ARRAY_TASK_ID/16 with"
        " --array=1-16. On Dask: --engine dask --address tcp://HOST:8786, workers started with"
        " --nthreads 1 and OMP_NUM_THREADS=1.",
    )
    option = sweep.add_argument
    option("--dataset", required=True, choices=datasets.NAMES)
    option("--scale", choices=SCALES, help="a grid of the book (default: laptop)")
    option("--grid", help="a grid of your own, as YAML", **FILE)
    option("--store", help="where results are kept (default: in the data folder)", **FOLDER)
    option("--engine", choices=["local", "dask"], default="local")
    option("--address", metavar="URL", help="of the Dask scheduler")
    option("--workers", type=int, metavar="N", help=WORKERS)
    option("--checkpoints", help=CHECKPOINTS, **FOLDER)
    option("--shard", metavar="I/N", help="only the I-th of N equal parts, I from 1")
    option("--dry-run", action="store_true", help="print the plan and stop")
    sweep.set_defaults(run=run_sweep)
    results = subparsers.add_parser(
        "results",
        help="list, export, import or verify the results of sweeps",
        description="Without an option, count the results. Two stores are merged by copying one"
        " into the other.",
    )
    option = results.add_argument
    option("--store", help="where results are kept (default: in the data folder)", **FOLDER)
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
    from book.sweep import advantages

    shard, grid = _shard(arguments.shard), _grid(arguments)
    data = sweep.load(arguments.dataset, grid)
    store = Store(arguments.store or data_folder() / "results")
    schedule = sweep.plan(grid, data, store, shard)
    # Advantages are few and quick; the first shard computes them for all.
    audits = advantages.plan(grid, data, store) if shard[0] == 1 else None
    workers = arguments.workers or sweep.default_workers()
    _print_plan(schedule, audits, workers if arguments.engine == "local" else None, store)
    if grid.for_data(data.name).rate_limits and schedule.to_do:
        print("the search plans further learning rates as the results come")
    if arguments.dry_run:
        return 0
    store.claim()
    missing = audits.to_do if audits is not None else []
    if schedule.to_do or missing:
        dask = arguments.engine == "dask"
        with sweep.dask(arguments.address) if dask else sweep.local(workers) as engine:
            options: dict[str, Any] = {"engine": engine, "progress": True}
            # Advantages first: then a table of half the trainings is complete in its rows.
            if audits is not None and missing:
                folds = audits.runs[missing[0]]["eta"].get("folds")
                if folds is not None:
                    print(f"estimating eta: {folds} networks, one by one", file=sys.stderr)
                print("computing advantages", file=sys.stderr)
                advantages.run(audits, store, **options)
            options["checkpoints"] = arguments.checkpoints
            sweep.complete(grid, data, store, shard, **options)
    print(f"all {len(sweep.plan(grid, data, store, shard).runs):,} results are in {store.folder}")
    return 0


def _print_plan(schedule: Any, audits: Any, workers: int | None, store: Store) -> None:
    seconds, origin = schedule.seconds()
    data, to_do = schedule.data, len(schedule.to_do)
    print(f"{data.name}: {data.description}, fingerprint {data.fingerprint[:12]}")
    print(f"store: {store.folder}")
    print(f"runs: {len(schedule.runs):,}, done: {len(schedule.done):,}, to do: {to_do:,}")
    for path in schedule.damaged + (audits.damaged if audits else ()):
        print(f"damaged, to be set aside and run again: {path}")
    sizes = sorted({run["settings"]["batch_size"] for run in schedule.runs.values()})
    if len(sizes) > 1:
        raised = ", ".join(map(str, sizes[1:]))
        print(f"batches of {sizes[0]}, larger where one must hold a larger bag: {raised}")
    if audits is not None:
        print(f"advantages: {len(audits.runs):,}, to do: {len(audits.to_do):,}")
    if to_do:
        on = f", {_duration(seconds / workers)} on {workers} local workers" if workers else ""
        print(f"estimated time: {_duration(seconds)} of CPU{on} ({origin})", flush=True)


def _duration(seconds: float) -> str:
    """A duration in two digits, which is all that an estimate is good for.

    >>> _duration(42), _duration(600), _duration(86400)
    ('42 s', '10 min', '24 h')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:{'.2g' if seconds < 99 * size else ',.0f'}} {unit}"
    return f"{seconds:.2g} s"


def run_results(arguments: argparse.Namespace) -> int:
    """Count, export, import or verify."""
    store = Store(arguments.store or data_folder() / "results")
    if arguments.table is not None:
        if arguments.grid is None or arguments.export is not None or arguments.verify:
            raise CommandError("--import goes with --grid FILE, and neither --export nor --verify")
        from book.sweep.published import adopt_all

        return adopt_all(arguments.table, arguments.grid, arguments.dataset, store)
    if not store.folder.is_dir():
        raise StoreError(f"there is no store at {store.folder}; labelbook sweep makes one")
    if arguments.verify:
        sound, wrong = verify(store)
        print(f"{sound:,} results are sound, {len(wrong):,} are not")
        for line in wrong:
            print(line, file=sys.stderr)
        return 1 if wrong else 0
    from book.sweep.comparisons import table

    records = _records(store, arguments)
    if arguments.export is None:
        runs = [record.configuration for record in records]
        counts = Counter((run["dataset"], run["task"], run["mechanism"]["kind"]) for run in runs)
        for (dataset, task, kind), count in sorted(counts.items()):
            print(f"{dataset:12} {task:10} {kind:9} {count:7,}")
        print(counted(len(records), "result"))
        return 0
    name = arguments.export.name
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise CommandError(f"--export must end in .csv, .csv.gz or .parquet, not {name!r}")
    try:
        frame = table(records)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if frame.empty:
        asked = f" of {arguments.dataset}" if arguments.dataset else ""
        asked += f" in the grid {arguments.grid}" if arguments.grid else ""
        raise CommandError(f"{store.folder} holds no trainings{asked} to export")
    content = io.BytesIO()
    if name.endswith(".parquet"):
        frame.to_parquet(content, index=False)
    else:  # without the time in its header, a packed table has the same bytes each time
        packed = {"method": "gzip", "mtime": 0} if name.endswith(".gz") else None
        frame.to_csv(content, index=False, float_format="%.7g", compression=packed)
    write_atomically(arguments.export, content.getvalue())
    print(f"{counted(len(frame), 'row')} written to {arguments.export}")
    return 0


def _records(store: Store, arguments: argparse.Namespace) -> list[Record]:
    """The sound results of the data set and of the grid that are asked for."""
    records = []
    for name in store:
        try:
            record = store.read(name)
        except StoreError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if record is not None and arguments.dataset in (None, record.configuration["dataset"]):
            records.append(record)
    if arguments.grid is None:
        return records
    from book import sweep
    from book.sweep import advantages

    grid, keys = read_grid(arguments.grid), set[str]()
    for name in {record.configuration["dataset"] for record in records}:
        data = sweep.load(name, grid)
        for plan in (sweep.plan, advantages.plan):
            keys |= set(plan(grid, data, store).runs)
    return [record for record in records if record.key in keys]


def _grid(arguments: argparse.Namespace) -> Grid:
    """The grid of a sweep, the other options having been checked."""
    if (arguments.engine == "dask") != (arguments.address is not None):
        raise CommandError("--engine dask and --address go together: --address tcp://HOST:8786")
    if arguments.workers is not None and arguments.workers < 1:
        raise CommandError(f"--workers must be at least 1, not {arguments.workers}")
    if arguments.grid is None:
        from book.sweep.scales import scale_grid

        return scale_grid(arguments.scale or "laptop")
    if arguments.scale is not None:
        raise CommandError("--scale and --grid exclude one another: a scale is a grid")
    return read_grid(arguments.grid)


def _shard(text: str | None) -> tuple[int, int]:
    """The part and the number of parts.

    >>> _shard("3/16"), _shard(None)
    ((3, 16), (1, 1))
    """
    if text is None:
        return 1, 1
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise CommandError(f"--shard must be I/N with I from 1 to N, such as 3/16, not {text!r}")
    return part, parts
