"""Priors of any size: exact averages and percentiles over parquet files, in constant memory.

Sums over bags add up, and so do the masses behind a percentile. So files are read in parts, by
several processes, and totals are saved after every part: a run that was stopped goes on from there.
A percentile is guessed from some rows and found in windows around the guess.
"""

import hashlib
import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy.interpolate import lagrange

from labelaudit.advantage import measured
from labelaudit.auditing.decisions import MOST_PROVEN, meets_by_priors
from labelaudit.auditing.eta import Progress
from labelaudit.auditing.page import SavedReport, made_at, plain
from labelaudit.auditing.plan import AuditPlan, Setting, Target, settings_of
from labelaudit.auditing.words import sentence
from labelaudit.checks import Floats
from labelaudit.distribution import (
    ROUNDING,
    multiplicative_cdf,
    multiplicative_quantile,
    size_masses,
)
from labelaudit.files import digest, write_atomically
from labelaudit.kernels.distribution import BINS, RADIX
from labelaudit.learning.sweep.engines import Engine
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.mechanisms.custom import has_channel
from labelaudit.partitions import bags_by_size

# Rows that a process holds, rows of a part, and rows behind the first guess of a percentile.
ROWS, PART, GUESSED = 1 << 18, 1 << 22, 1 << 17
# A first window reaches 2^-10 to both sides of a guess; a last one has bins of 5e-13.
NEAR, FIRST, LAST = 42, 27, 11
# Laplace noise, as fractions of epsilon: the first two windows, and what is exact.
WIDTHS, EXACT = (4e-3, 1e-6), 1e-11
# An |I| above this counts as infinite.
HUGE = 1e6
WHOLE = {"base": int(np.float64(1).view(np.int64)), "shift": 3 * RADIX}
# A part: a file, and the first and last of its row groups.
Part = tuple[str, int, int]
Window = dict[str, Any]


@dataclass(frozen=True)
class PriorsExposure:
    """What a setting gives away by the priors, averaged over all records and releases."""

    title: str
    epsilon: float
    records: int
    additive: float
    label_advantage: float
    worth: float
    revealed: float
    percentile: float
    meets: bool


@dataclass(frozen=True)
class PriorsReport(SavedReport):
    """Every setting against the target, and what the run took."""

    name: str
    rows: int
    at_stake: float
    target: Target
    level: float
    exposures: tuple[PriorsExposure, ...]
    passes: int
    seconds: float
    workers: int
    bag: str | None = None
    made: str = ""
    command: str = ""
    template = "priors.html.j2"

    @property
    def values(self) -> dict[str, Any]:
        """What the JSON file holds."""
        return plain(self) | {"headline": self.headline}

    @property
    def headline(self) -> str:
        """How many settings keep the target, and of each mechanism the one that is worth most."""
        met = sorted((each for each in self.exposures if each.meets), key=lambda each: each.worth)
        best = {each.title.partition(" (")[0]: each for each in met}
        return sentence("of_priors", self, len(met), list(best.values()), MOST_PROVEN)

    @property
    def larger(self) -> str:
        """What ten billion priors would take."""
        return sentence("more_priors", self)


@dataclass(frozen=True)
class _Work:
    """What a process must know about the run: names alone, since a mechanism may not travel."""

    names: tuple[tuple[str, ...], tuple[int, ...], tuple[float, ...]]
    prior: str
    bag: str | None
    seed: int

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Given bags have any size, so that it is enough to name one."""
        mechanisms, sizes, epsilons = self.names
        made = settings_of(mechanisms, sizes[:1] if self.bag else sizes, epsilons)
        for setting in made:
            if not has_channel(setting.mechanism):
                raise ValueError(f"{setting.title} has no channel: its sums are not known")
        return made

    def blocks(self, part: Part, index: int, rows: int = ROWS) -> Iterator[tuple[Floats, Any]]:
        """Checked priors, with their bags where these are given, else in random order."""
        import pyarrow.parquet as parquet

        path, first, last = part
        names = [self.prior, *([self.bag] if self.bag else [])]
        rng = np.random.default_rng([self.seed, 13, index])
        kept: tuple[Floats, Any] = np.empty(0), None
        groups = list(range(first, last))
        for batch in parquet.ParquetFile(path).iter_batches(rows, groups, names):
            values = np.asarray(batch.column(0).to_numpy(zero_copy_only=False), np.float64)
            wrong = values[~((values >= 0) & (values <= 1))]
            if wrong.size:
                raise ValueError(f"{self.prior!r} of {path} must lie in [0, 1], not {wrong[0]}")
            if self.bag is None:
                yield rng.permutation(values), None
                continue
            if batch.column(1).null_count:
                raise ValueError(f"the bag {self.bag!r} is missing in some row of {path}")
            bags = batch.column(1).to_numpy(zero_copy_only=False)
            if kept[1] is not None:
                values, bags = np.r_[kept[0], values], np.concatenate([kept[1], bags])
            if (bags[1:] < bags[:-1]).any():
                raise ValueError(f"{path} must be sorted by the bag column {self.bag!r}")
            # The last bag may go on in the next batch.
            end = int(np.searchsorted(bags, bags[-1]))
            yield values[:end], bags[:end]
            kept = values[end:], bags[end:]
        if kept[1] is not None:
            yield kept

    def bags(
        self, setting: Setting, priors: Floats, bags: Any
    ) -> Iterator[tuple[Floats, Mechanism]]:
        """The block in bags, size by size, each with the mechanism of that size."""
        k = setting.mechanism.bag_size
        if bags is None or "bag_size" not in setting.kind.parameters:
            yield priors[: priors.size // k * k].reshape(-1, k), setting.mechanism
            return
        starts = np.flatnonzero(np.r_[True, bags[1:] != bags[:-1]])[: bags.size]
        for size, rows in bags_by_size(np.diff(np.r_[starts, bags.size])):
            yield priors[rows], setting.in_bags_of(size)


def measure(
    part: Part, index: int, work: _Work, windows: list[Window], first: bool
) -> tuple[Floats, Floats, Floats]:
    """The totals of a part: rows and stake, sums of each setting, masses in its window."""
    settings = work.settings
    totals, sums = np.zeros(2), np.zeros((len(settings), 6))
    masses = np.zeros((len(settings), BINS + 2))
    for priors, bags in work.blocks(part, index):
        totals += priors.size, np.minimum(priors, 1 - priors).sum()
        for row, (setting, window) in enumerate(zip(settings, windows, strict=True)):
            for eta, mechanism in work.bags(setting, priors, bags):
                if first and eta.size:
                    sums[row] += _sums(eta, mechanism)
                if eta.size and not {"value", "extreme"} & window.keys():
                    masses[row] += _masses(eta, mechanism, window)
    return totals, sums, masses


def _sums(eta: Floats, mechanism: Mechanism) -> Floats:
    """Sums over members: gain, label advantage, explained variance, variance, at epsilon, number.

    "At epsilon" is the mass of |I| = epsilon: a lower bound where no closed form of it is known.
    """
    variance = eta * (1 - eta)
    if isinstance(mechanism, NoisyCount) and mechanism.epsilon > 0:
        extreme = _at_the_ends(eta, mechanism)
    else:
        certain = np.isinf(mechanism.epsilon)
        extreme = eta.size * (1 - float(multiplicative_cdf(eta, mechanism, HUGE))) if certain else 0
    gains, labels, worths = measured(eta, mechanism, "additive", "conditional", "worth")
    explained = (worths * variance).sum()
    return np.array([gains.sum(), labels.sum(), explained, variance.sum(), extreme, eta.size])


def _at_the_ends(eta: Floats, mechanism: NoisyCount) -> float:
    """The members with |I| = epsilon: those of bags whose noisy count is at or beyond an end.

    With q = e^(-epsilon), geometric noise reaches count 0 from s with probability q^s / (1 + q),
    Laplace noise with q^s / 2. The mean of q^s is a product over members; a label that is known
    neither moves nor shifts the ends.
    """
    q = math.exp(-mechanism.epsilon)
    known = (eta == 0) | (eta == 1)
    ends = sum(np.where(known, 1.0, side + (1 - side) * q).prod(axis=1) for side in (eta, 1 - eta))
    unknown = eta.shape[1] - known.sum(axis=1)
    return float((ends * unknown).sum()) / (2 if mechanism.continuous else 1 + q)


def _masses(eta: Floats, mechanism: Mechanism, window: Window) -> Floats:
    if "points" not in window:
        return size_masses(eta, mechanism, window["base"], window["shift"])
    below = eta.size * multiplicative_cdf(eta, mechanism, window["points"])
    return np.pad(below, (0, BINS + 2 - below.size))


def guess(eta: Floats, mechanism: Mechanism, level: float) -> Window:
    """The first window of a percentile, from some bags.

    None is needed where it is 0; where it is as large as can be, the first sums decide.
    """
    if mechanism.epsilon == 0 or level <= 0:
        return {"value": 0.0}
    value = multiplicative_quantile(eta, mechanism, level) if eta.size else 0.0
    if value >= mechanism.epsilon * (1 - ROUNDING):
        return {"extreme": True}
    if isinstance(mechanism, NoisyCount) and mechanism.continuous:
        return _around(value, WIDTHS[0], mechanism.epsilon)
    bits = int(np.exp(min(value, 700.0)).view(np.int64)) - (1 << NEAR)
    return {"base": max(bits, WHOLE["base"]), "shift": FIRST}


def _around(
    value: float, width: float, epsilon: float, low: float = 0.0, high: float = math.inf
) -> Window:
    ends = np.array([value - width * epsilon, value, value + width * epsilon])
    points = np.clip(ends, 0.0, epsilon * (1 - ROUNDING)).tolist()
    return {"points": points, "width": width, "low": low, "high": min(high, epsilon)}


def narrowed(
    window: Window, masses: Floats, members: float, level: float, mechanism: Mechanism
) -> Window:
    """The next window after a pass, or the value of the percentile."""
    epsilon = mechanism.epsilon
    if "extreme" in window:
        continuous = isinstance(mechanism, NoisyCount) and mechanism.continuous
        return _around(epsilon, WIDTHS[0], epsilon) if continuous else WHOLE
    if "points" in window:
        return _interpolated(window, masses[:3] / members - level, epsilon)
    reached = np.cumsum(masses) / members >= level
    index = int(np.argmax(reached)) if reached.any() else BINS + 1
    if index in (0, BINS + 1) and window["shift"] < 3 * RADIX:
        # The guess was wrong: search the whole range.
        return WHOLE
    base = window["base"] + (max(index - 1, 0) << window["shift"])
    if window["shift"] <= LAST:
        size = np.int64(base).view(np.float64)
        return {"value": min(float(np.log(size)), epsilon)}
    return {"base": base, "shift": max(window["shift"] - RADIX, 0)}


def _interpolated(window: Window, excess: Floats, epsilon: float) -> Window:
    """For Laplace noise, whose distribution has no jumps: a parabola through three points.

    Where the points miss the percentile, what is known to hold it is divided into four.
    """
    points, width = np.array(window["points"]), window["width"]
    if excess[-1] < 0 and points[-1] >= epsilon * (1 - ROUNDING):
        return {"value": epsilon}
    if excess[0] >= 0 and points[0] == 0:
        return {"value": 0.0}
    low = float(max([window["low"], *points[excess < 0]]))
    high = float(min([window["high"], *points[excess >= 0]]))
    if high - low <= EXACT * epsilon / 100:
        return {"value": high}
    if not excess[0] < 0 <= excess[-1]:
        return _around((low + high) / 2, (high - low) / epsilon / 4, epsilon, low, high)
    curved = straight = float(np.interp(0.0, excess, points))
    if (np.diff(excess) > 0).all():
        curved = float(np.clip(lagrange(excess, points)(0.0), low, high))
    apart = abs(curved - straight) / epsilon
    if apart <= EXACT:
        return {"value": curved}
    width = min(max(WIDTHS[1], 3 * apart * width), width / 10)
    return _around(curved, width, epsilon, low, high)


def parts_of(source: Path, prior: str, bag: str | None) -> list[Part]:
    """The parts of a file or folder; with given bags a part is a file."""
    import pyarrow.parquet as parquet

    # Workers of a cluster have another working folder.
    source = source.resolve()
    files = sorted(source.rglob("*.parquet")) if source.is_dir() else [source]
    if not files or not files[0].is_file():
        raise ValueError(f"there is no parquet file {'in' if source.is_dir() else 'at'} {source}")
    parts = []
    for path in files:
        try:
            metadata = parquet.ParquetFile(path).metadata
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is no parquet file: {error}") from None
        known = metadata.schema.to_arrow_schema().names
        for name in (prior, bag):
            if name is not None and name not in known:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(known)}")
        first = rows = 0
        for group in range(metadata.num_row_groups):
            rows += metadata.row_group(group).num_rows
            last = group + 1 == metadata.num_row_groups
            if rows and (last or (rows >= PART and bag is None)):
                parts.append((str(path), first, group + 1))
                first, rows = group + 1, 0
    if not sum(parquet.ParquetFile(path).metadata.num_rows for path in files):
        raise ValueError(f"{source} has no rows")
    return parts


def _state(path: Path) -> list[Any]:
    """What changes when a parquet file is written again: its size, its time, its footer."""
    state = path.stat()
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        footer = hashlib.sha256(file.read(length)).hexdigest()
    return [state.st_size, state.st_mtime_ns, footer]


class _Totals:
    """What has been added up so far, kept in a file between parts."""

    def __init__(self, key: str, saved: Path | None, windows: list[Window]) -> None:
        self.key, self.saved, self.windows = key, saved, windows
        self.passes, self.done = 0, 0
        self.rows, self.sums = np.zeros(2), np.zeros((len(windows), 6))
        self.masses = np.zeros((len(windows), BINS + 2))
        # A file that is damaged, or of another run, is as good as none.
        if saved is not None and saved.is_file():
            with suppress(OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
                self._resume(saved)

    def _resume(self, saved: Path) -> None:
        with np.load(saved) as file:
            before = json.loads(str(file["state"]))
            rows, sums, masses = (file[name] for name in ("rows", "sums", "masses"))
        if before["key"] == self.key:
            self.passes, self.done = before["passes"], before["done"]
            self.windows, self.rows, self.sums, self.masses = before["windows"], rows, sums, masses

    def add(self, totals: tuple[Floats, Floats, Floats]) -> None:
        """One more part, in the order of the parts, so that sums do not depend on who is first."""
        if self.passes == 0:
            self.rows += totals[0]
            self.sums += totals[1]
        self.masses += totals[2]
        self.done += 1
        self._save()

    def end_pass(self, settings: tuple[Setting, ...], level: float) -> None:
        """Narrow every window."""
        for row, setting in enumerate(settings):
            extreme, members = self.sums[row, 4:]
            window, mechanism = self.windows[row], setting.mechanism
            if not members or extreme > (1 - level) * members:
                self.windows[row] = {"value": mechanism.epsilon if members else np.nan}
            elif "value" not in window:
                self.windows[row] = narrowed(window, self.masses[row], members, level, mechanism)
        self.passes, self.done = self.passes + 1, 0
        self.masses[:] = 0
        self._save()

    def _save(self) -> None:
        if self.saved is not None:
            names = ("key", "passes", "done", "windows")
            state = json.dumps({name: getattr(self, name) for name in names})
            arrays: dict[str, Any] = {"rows": self.rows, "sums": self.sums, "masses": self.masses}
            write_atomically(self.saved, lambda file: np.savez(file, state=state, **arrays))


def stream_priors(
    source: str | Path,
    prior: str,
    plan: AuditPlan,
    *,
    bag: str | None = None,
    engine: Engine | None = None,
    saved: Path | None = None,
    progress: Progress = lambda line: None,
) -> PriorsReport:
    """Audit the priors of a parquet file, or of all files of a folder, taking them as true.

    Bags are drawn at random among neighbouring rows, 262,144 at a time, or given by a column:
    then every file is sorted by it, and no bag lies in two files. Totals are kept in `saved`.

    >>> import tempfile, pandas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pandas.DataFrame({"p": [0.5] * 80}).to_parquet(f"{folder}/priors.parquet")
    ...     plan = AuditPlan(mechanisms=["llp"], bag_sizes=[2])
    ...     report = stream_priors(folder, "p", plan)
    >>> [(each.title, each.additive, each.revealed) for each in report.exposures]
    [('LLP (bags of 2)', 0.25, 0.5)]
    """
    start, engine = time.monotonic(), engine or Engine()
    parts = parts_of(Path(source), prior, bag)
    names = (tuple(plan.mechanisms), tuple(plan.bag_sizes), tuple(plan.epsilons))
    work = _Work(names, prior, bag, plan.seed)
    settings, level = work.settings, plan.level - ROUNDING
    priors, bags = next(work.blocks(parts[0], 0, GUESSED))
    windows = []
    for setting in settings:
        nothing = np.empty((0, 1)), setting.mechanism
        windows.append(guess(*next(work.bags(setting, priors, bags), nothing), level))
    states = [_state(Path(path)) for path in dict.fromkeys(path for path, _, _ in parts)]
    # Totals of a version that summed something else are not used.
    key = digest(["extreme", parts, states, repr(work), level])
    totals = _Totals(key, saved, windows)
    while not all("value" in window for window in totals.windows) or totals.passes == 0:
        begun, before = time.monotonic(), totals.done
        waiting: deque[Any] = deque()
        todo = iter(range(totals.done, len(parts)))
        while totals.done < len(parts):
            while len(waiting) < 2 * engine.workers and (index := next(todo, None)) is not None:
                call = (parts[index], index, work, totals.windows, totals.passes == 0)
                waiting.append(engine.executor.submit(measure, *call))
            totals.add(waiting.popleft().result())
            each = (time.monotonic() - begun) / (totals.done - before)
            progress(
                f"pass {totals.passes + 1}: part {totals.done} of {len(parts)}, about"
                f" {each * (len(parts) - totals.done):.0f} s left in this pass"
            )
        totals.end_pass(settings, level)
    if saved is not None:
        saved.unlink(missing_ok=True)
    rows, stake = int(totals.rows[0]), float(totals.rows[1] / totals.rows[0])
    target = plan.target_of(stake)
    exposures = []
    for setting, sums, window in zip(settings, totals.sums, totals.windows, strict=True):
        additive, label, explained, variance, extreme, members = sums.tolist()
        epsilon = setting.mechanism.epsilon
        title = setting.title
        if bag is not None:
            title = title.replace(f"bags of {plan.bag_sizes[0]}", "given bags")
        if not members:
            raise ValueError(f"{source} has {rows} rows: too few for {title}")
        revealed = extreme / members if np.isinf(epsilon) else 0.0
        exposures.append(
            PriorsExposure(
                *(title, epsilon, int(members), additive / members, label / members),
                *(explained / variance if variance else 0.0, revealed, window["value"]),
                meets=meets_by_priors(target, additive / members, window["value"], epsilon),
            )
        )
    spent = time.monotonic() - start
    return PriorsReport(
        *(Path(source).name, rows, stake, target, plan.level, tuple(exposures)),
        *(totals.passes, spent, engine.workers, bag, made_at()),
    )
