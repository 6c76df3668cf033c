"""Priors of any size, without labels: exact averages and percentiles over parquet files.

Sums over bags add up, and so do the masses behind a percentile. So files are read in parts, here or
by the workers of a Dask cluster, and totals are saved after every part: a run that was stopped goes
on from there. Memory does not grow with the rows.
"""

import json
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from pyarrow import ArrowException, dataset

from labelaudit import percentile
from labelaudit.advantage import measured
from labelaudit.auditing.decisions import MAX_PROVEN
from labelaudit.auditing.eta import Progress
from labelaudit.auditing.options import BAG_SIZES, MECHANISMS, Options, Target
from labelaudit.auditing.report import SavedReport
from labelaudit.auditing.settings import Setting, settings_of
from labelaudit.auditing.words import sentence
from labelaudit.checks import Floats
from labelaudit.distribution import ROUNDING, multiplicative_cdf
from labelaudit.files import digest, write_atomically
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.mechanisms.custom import has_channel
from labelaudit.partitions import bags_by_size

# Rows that a process holds, rows of a part, and rows behind the first guess of a percentile.
ROWS, PART, GUESSED = 1 << 18, 1 << 22, 1 << 17
# An |I| above this counts as infinite.
HUGE = 1e6
# What is summed over members; "extreme" is the mass of |I| = epsilon.
SUMS = ("additive", "label_advantage", "explained", "variance", "extreme", "records")


class PriorsWorkerDied(RuntimeError):
    """Workers of a cluster died, several times on one part."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PriorsReport(SavedReport):
    """Every setting against the target, a row for each of `settings`, and what the run took."""

    name: str
    rows: int
    at_stake: float
    target: Target
    level: float
    settings: pd.DataFrame
    passes: int
    seconds: float
    workers: int
    bag: str | None
    template = "priors.html.j2"

    def to_dict(self) -> dict[str, Any]:
        """What the JSON file holds."""
        names = "name rows at_stake target level passes seconds workers bag made command headline"
        values = {name: getattr(self, name) for name in names.split()}
        return values | {"exposures": self.settings.to_dict("records")}

    @property
    def headline(self) -> str:
        """How many settings keep the target, and of each mechanism the one that is worth most."""
        met = self.settings[self.settings["meets"]].sort_values("worth", kind="stable")
        best = {row.title.partition(" (")[0]: row for row in met.itertuples()}
        return sentence("of_priors", self, len(met), list(best.values()), MAX_PROVEN)

    @property
    def larger(self) -> str:
        """What ten billion priors would take."""
        return sentence("more_priors", self)


@dataclass(frozen=True, kw_only=True)
class PriorsTask:
    """What a worker must know: names alone, since a mechanism may not travel."""

    mechanisms: tuple[str, ...]
    bag_sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    prior: str
    bag: str | None
    seed: int

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Given bags have any size, so that it is enough to name one."""
        sizes = self.bag_sizes[:1] if self.bag else self.bag_sizes
        return _settings(self.mechanisms, sizes, self.epsilons)

    def blocks(self, part: Any, index: int, rows: int = 0) -> Iterator[tuple[Floats, Any]]:
        """Checked priors, with their bags where these are given, else in random order."""
        columns = [self.prior, *([self.bag] if self.bag else [])]
        rng = np.random.default_rng([self.seed, 13, index])
        left = pd.DataFrame(columns=columns)
        for batch in part.to_batches(columns=columns, batch_size=rows or ROWS, use_threads=False):
            block = batch.to_pandas()
            values = np.asarray(block[self.prior], np.float64)
            wrong = values[~((values >= 0) & (values <= 1))]
            if wrong.size:
                raise ValueError(
                    f"{self.prior!r} of {part.path} must lie in [0, 1], not {wrong[0]}"
                )
            if self.bag is None:
                yield rng.permutation(values), None
                continue
            if block[self.bag].isna().any():
                raise ValueError(f"the bag {self.bag!r} is missing in some row of {part.path}")
            block = pd.concat([left, block], ignore_index=True) if len(left) else block
            if not block[self.bag].is_monotonic_increasing:
                raise ValueError(f"{part.path} must be sorted by the bag column {self.bag!r}")
            # The last bag may go on in the next batch.
            ended = (block[self.bag] != block[self.bag].iloc[-1]).to_numpy()
            yield block[self.prior].to_numpy(np.float64)[ended], block[self.bag][ended]
            left = block[~ended]
        if len(left):
            yield left[self.prior].to_numpy(np.float64), left[self.bag]

    def bags(
        self, setting: Setting, priors: Floats, bags: Any
    ) -> Iterator[tuple[Floats, Mechanism]]:
        """The block in bags, size by size, each with the mechanism of that size."""
        k = setting.mechanism.bag_size
        if bags is not None and "bag_size" in setting.kind.parameters:
            for size, rows in bags_by_size(np.bincount(pd.factorize(bags)[0])):
                yield priors[rows], setting.in_bags_of(size)
        elif priors.size >= k:
            yield priors[: priors.size // k * k].reshape(-1, k), setting.mechanism


@cache
def _settings(
    names: tuple[str, ...], sizes: tuple[int, ...], epsilons: tuple[float, ...]
) -> tuple[Setting, ...]:
    made = settings_of(names, sizes, epsilons)
    for setting in made:
        if not has_channel(setting.mechanism):
            raise ValueError(f"{setting.title} has no channel: its sums are not known")
    return made


def parts_of(source: Path, prior: str, bag: str | None) -> list[Any]:
    """The parts of a file or folder, as pieces of a dataset; with given bags a part is a file."""
    # Workers of a cluster have another working folder.
    source = source.resolve()
    files = sorted(source.rglob("*.parquet")) if source.is_dir() else [source]
    if not files or not files[0].is_file():
        raise ValueError(f"there is no parquet file {'in' if source.is_dir() else 'at'} {source}")
    parts = []
    for path in files:
        try:
            (file,) = dataset.dataset(path, format="parquet").get_fragments()
            groups, known = file.row_groups, file.physical_schema.names
        except (OSError, ArrowException) as error:
            raise ValueError(f"{path} is no parquet file: {str(error).splitlines()[0]}") from None
        for name in (prior, bag):
            if name is not None and name not in known:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(known)}")
        ids: list[int] = []
        for group in (group for group in groups if group.num_rows):
            ids.append(group.id)
            rows = sum(groups[number].num_rows for number in ids)
            if bag is None and rows >= PART:
                parts.append(file.subset(row_group_ids=ids))
                ids = []
        if ids:
            parts.append(file.subset(row_group_ids=ids))
    if not parts:
        raise ValueError(f"{source} has no rows")
    return parts


def measure(
    part: Any, index: int, task: PriorsTask, windows: list[percentile.Window], first: bool
) -> Floats:
    """The totals of a part: rows and stake, then for each setting sums and masses in its window."""
    totals = np.zeros((1 + len(windows), len(SUMS) + percentile.BINS + 2))
    try:
        for priors, bags in task.blocks(part, index):
            if first:
                totals[0, :2] += priors.size, np.minimum(priors, 1 - priors).sum()
            rows = zip(totals[1:], task.settings, windows, strict=True)
            for row, setting, window in rows:
                for eta, mechanism in task.bags(setting, priors, bags):
                    if first:
                        row[: len(SUMS)] += _sums(eta, mechanism)
                    row[len(SUMS) :] += percentile.masses(eta, mechanism, window)
    except (OSError, ArrowException) as error:
        raise ValueError(f"{part.path} is damaged: {str(error).splitlines()[0]}") from None
    return totals


def _sums(eta: Floats, mechanism: Mechanism) -> Floats:
    """`SUMS`; the extreme one is a lower bound where no closed form of it is known."""
    variance, extreme = eta * (1 - eta), 0.0
    if isinstance(mechanism, NoisyCount) and mechanism.epsilon > 0:
        extreme = percentile.mass_at_epsilon(eta, mechanism)
    elif math.isinf(mechanism.epsilon):
        extreme = eta.size * (1 - float(multiplicative_cdf(eta, mechanism, HUGE)))
    gains, labels, worths = measured(eta, mechanism, "additive", "conditional", "worth")
    explained = (worths * variance).sum()
    return np.array([gains.sum(), labels.sum(), explained, variance.sum(), extreme, eta.size])


@dataclass
class Totals:
    """What has been added up so far, kept in a file between parts."""

    key: str
    saved: Path | None
    windows: list[percentile.Window]
    passes: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        """Start at 0, or where a run with the same key was stopped."""
        self.values = np.zeros((1 + len(self.windows), len(SUMS) + percentile.BINS + 2))
        # A file that is damaged, or of another run, is as good as none.
        with suppress(OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            if self.saved is not None:
                with np.load(self.saved) as file:
                    before, values = json.loads(str(file["state"])), file["values"]
                if before["key"] == self.key:
                    self.values, self.windows = values, before["windows"]
                    self.passes, self.done = before["passes"], before["done"]

    @property
    def complete(self) -> bool:
        """Whether every percentile is known."""
        return self.passes > 0 and all("value" in window for window in self.windows)

    def add(self, part: Floats) -> None:
        """One more part, in the order of the parts, so that sums do not depend on who is first."""
        self.values += part
        self.done += 1
        self._save()

    def end_pass(self, settings: Iterable[Setting], level: float) -> None:
        """Narrow every window."""
        for index, (setting, row) in enumerate(zip(settings, self.values[1:], strict=True)):
            extreme, members = row[4:6]
            mechanism, window = setting.mechanism, self.windows[index]
            if not members or extreme > (1 - level) * members:
                self.windows[index] = {"value": mechanism.epsilon if members else math.nan}
            elif "value" not in window:
                masses = row[len(SUMS) :]
                self.windows[index] = percentile.narrow(window, masses, members, level, mechanism)
        self.passes, self.done = self.passes + 1, 0
        self.values[:, len(SUMS) :] = 0
        self._save()

    def _save(self) -> None:
        if self.saved is not None:
            names = ("key", "passes", "done", "windows")
            state = json.dumps({name: getattr(self, name) for name in names})
            values = self.values
            write_atomically(self.saved, lambda file: np.savez(file, state=state, values=values))


@contextmanager
def dask_client(address: str | None, workers: int | None) -> Iterator[tuple[Any, int]]:
    """A Dask client and how many parts it measures at once; none for this process alone."""
    if address is None and workers == 1:
        yield None, 1
        return
    from distributed import Client, KilledWorker, LocalCluster

    try:
        local: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1}
        local |= {"silence_logs": 50, "dashboard_address": None, "env": {"NUMBA_NUM_THREADS": "1"}}
        client: Any = Client(address or LocalCluster(**local), timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"no Dask scheduler answers at {address} ({error})") from None
    try:
        yield client, max(1, sum(client.nthreads().values()))
    except KilledWorker as error:
        raise PriorsWorkerDied(str(error)) from None
    finally:
        if address is None:
            client.cluster.close()
        client.close()


def _in_order(client: Any, at_once: int, calls: Iterable[tuple[Any, ...]]) -> Iterator[Floats]:
    """The totals of each part, in their order; a small number of parts is on the way."""
    waiting: deque[Any] = deque()
    for call in calls:
        if client is None:
            yield measure(*call)
            continue
        # `pure=False`, so that Dask does not reuse a result of an earlier run.
        waiting.append(client.submit(measure, *call, pure=False))
        if len(waiting) >= 2 * at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def audit_priors(
    source: str | Path,
    prior: str,
    options: Options,
    *,
    bag: str | None = None,
    workers: int | None = 1,
    address: str | None = None,
    saved: Path | None = None,
    progress: Progress = lambda line: None,
) -> PriorsReport:
    """Audit the priors of a parquet file, or of all files of a folder, taking them as true.

    Bags are drawn at random among neighbouring rows, 262,144 at a time, or given by a column:
    then every file is sorted by it, and no bag lies in two files. Parts are measured by local
    `workers` (None: one for each core), or by a Dask cluster. Totals are kept in `saved`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"p": [0.5] * 80}).to_parquet(f"{folder}/priors.parquet")
    ...     report = audit_priors(folder, "p", Options(mechanisms=["llp"], bag_sizes=[2]))
    >>> report.settings[["title", "additive", "revealed"]].values.tolist()
    [['LLP (bags of 2)', 0.25, 0.5]]
    """
    start, parts = time.monotonic(), parts_of(Path(source), prior, bag)
    names = tuple(options.mechanisms or MECHANISMS)
    task = PriorsTask(
        mechanisms=names, bag_sizes=tuple(options.bag_sizes or BAG_SIZES),
        epsilons=tuple(options.epsilons), prior=prior, bag=bag, seed=options.seed,
    )  # fmt: skip
    level = options.level - ROUNDING
    totals = Totals(digest([*_state(parts), repr(task), level]), saved, _guess(parts, task, level))
    with dask_client(address, workers) as (client, at_once):
        while not totals.complete:
            todo, first = range(totals.done, len(parts)), totals.passes == 0
            calls = ((parts[index], index, task, totals.windows, first) for index in todo)
            for part in _in_order(client, at_once, calls):
                totals.add(part)
                progress(f"pass {totals.passes + 1}: part {totals.done} of {len(parts)}")
            totals.end_pass(task.settings, level)
    if saved is not None:
        saved.unlink(missing_ok=True)
    rows, wrong = totals.values[0, :2].tolist()
    target = options.target_of(wrong / rows)
    return PriorsReport(
        name=Path(source).name,
        rows=int(rows),
        at_stake=wrong / rows,
        target=target,
        level=options.level,
        settings=_table(task, totals, target, f"{source} has {int(rows)} rows"),
        passes=totals.passes,
        seconds=time.monotonic() - start,
        workers=at_once,
        bag=bag,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _state(parts: list[Any]) -> list[Any]:
    """What changes when a file is written again: its size, its time, its metadata."""
    files = {part.path: part for part in parts}
    stats = [(path, Path(path).stat(), part) for path, part in files.items()]
    facts = [[path, s.st_size, s.st_mtime_ns, repr(p.metadata.to_dict())] for path, s, p in stats]
    # Totals of a version that summed something else are not used.
    return ["totals", [part.num_row_groups for part in parts], *facts]


def _guess(parts: list[Any], task: PriorsTask, level: float) -> list[percentile.Window]:
    """The first window of each setting, from some rows of the first part."""
    try:
        priors, bags = next(task.blocks(parts[0], 0, GUESSED))
    except (OSError, ArrowException) as error:
        raise ValueError(f"{parts[0].path} is damaged: {str(error).splitlines()[0]}") from None
    windows = []
    for setting in task.settings:
        nothing = np.empty((0, 1)), setting.mechanism
        windows.append(percentile.guess(*next(task.bags(setting, priors, bags), nothing), level))
    return windows


def _table(task: PriorsTask, totals: Totals, target: Target, where: str) -> pd.DataFrame:
    """A row for each setting: averages over all records and releases, and whether it meets."""
    titles = [setting.title for setting in task.settings]
    if task.bag is not None:
        titles = [title.replace(f"bags of {task.bag_sizes[0]}", "given bags") for title in titles]
    sums = pd.DataFrame(totals.values[1:, : len(SUMS)], columns=SUMS)
    if (sums["records"] == 0).any():
        raise ValueError(f"{where}: too few for {titles[int(sums['records'].argmin())]}")
    epsilons = pd.Series([setting.mechanism.epsilon for setting in task.settings])
    table = pd.DataFrame(
        {
            "title": titles,
            "epsilon": epsilons,
            "records": sums["records"].astype(int),
            "additive": sums["additive"] / sums["records"],
            "label_advantage": sums["label_advantage"] / sums["records"],
            "worth": (sums["explained"] / sums["variance"]).fillna(0.0),
            "revealed": (sums["extreme"] / sums["records"]).where(np.isinf(epsilons), 0.0),
            "percentile": [window["value"] for window in totals.windows],
        }
    )
    compared = {"additive": "additive", "multiplicative": "percentile", "epsilon": "epsilon"}
    return table.assign(meets=table[compared[target.kind]] <= target.value)
