"""A mechanism of the user's own: read from a file, and tested before anything is trained."""

import inspect
import math
import runpy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from labelaudit.attack import posterior
from labelaudit.checks import Floats, Ints
from labelaudit.mechanisms import KINDS, CountChannel, Kind, Mechanism, NoisyCount
from labelaudit.mechanisms.count_channels import COUNT_CHANNELS, count_channel_kind

# The kinds that an audit makes from a bag size and an epsilon, by their names in a plan.
PARAMETERS = ("bag_size", "epsilon")
OPTIONS = {
    kind.option: kind
    for kind in KINDS.values()
    if kind.parameters and set(kind.parameters) <= set(PARAMETERS)
}
# What a log ratio may exceed epsilon by, for rounding.
ROUNDING = 1e-6
# Releases of each count before an audit, the most counts, the most labels.
TRIALS, MAX_COUNTS, MAX_LABELS = 20, 65, 1_000_000
# A comparison of frequencies with a channel takes more releases of each count. An honest mechanism
# is rejected with this probability; the draws are fixed, so that it is rejected always or never.
MIN_COMPARED, MAX_COMPARED = 100, 400
FALSE_ALARM = 1e-6
# Frequencies are compared where at least this many releases are expected.
MIN_EXPECTED = 5
# Random projections that tell two columns of a channel apart.
PROJECTIONS = 6


class CustomMechanismError(ValueError):
    """A mechanism of the user's own is invalid, or failed during the audit."""


def check_name(name: str) -> None:
    """Reject what names no mechanism and no file; the file is not opened.

    >>> check_name("rounded=5")
    """
    option, _, number = name.partition("=")
    if name in OPTIONS or option in COUNT_CHANNELS:
        # With commas it is a prior of several classes.
        if name not in OPTIONS and "," not in number:
            count_channel_kind(name)
        return
    path = _file_of(name)[0]
    if path.suffix not in (".py", ".csv"):
        known = ", ".join([*OPTIONS, *(f"{option}=NUMBER" for option in COUNT_CHANNELS)])
        raise ValueError(f"a mechanism is one of {known}, a .py or a .csv file, not {name!r}")
    if not path.is_file():
        raise ValueError(f"there is no file {path} to read a mechanism from")


def kind_named(name: str) -> Kind:
    """One of the paper's four kinds, one in use such as rounded=5, or the mechanism in a file.

    A file is `mine.py`, `mine.py:Name` or `channel.csv`. A channel has one row for each count 0..k
    and one column for each release, without a header. A Python file runs here.
    """
    check_name(name)
    if name in OPTIONS:
        return OPTIONS[name]
    if name.partition("=")[0] in COUNT_CHANNELS:
        return count_channel_kind(name)
    path, wanted = _file_of(name)
    make: Any
    if path.suffix == ".csv":
        channel = _read_channel(path)
        title, short, make = f"the channel of {path.name}", path.stem, lambda: channel
    else:
        make = _read_class(path, wanted)
        title, short = f"{make.__name__} of {path.name}", make.__name__
    parameters = _parameters(make, short)
    return replace(
        KINDS["channel"], name=short, title=title, option=name, make=make, parameters=parameters,
        own=True,
    )  # fmt: skip


def _file_of(name: str) -> tuple[Path, str]:
    """The file of a mechanism, and the class in it that is named."""
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    return Path(file), wanted


def construct(kind: Kind, values: dict[str, Any]) -> Mechanism:
    """A mechanism with these parameter values; a one-line error where the user's own fails."""
    if not kind.own:
        return kind.make(**values)
    shown = ", ".join(f"{name}={value:g}" for name, value in values.items())
    with naming_user_errors(f"{kind.name}({shown}) cannot be made"):
        return kind.make(**values)


def _parameters(make: Any, name: str) -> tuple[str, ...]:
    """The names of the arguments without a default."""
    arguments = inspect.signature(make).parameters.values()
    needed = [each.name for each in arguments if each.default is inspect.Parameter.empty]
    unknown = sorted(set(needed) - set(PARAMETERS))
    if unknown:
        raise ValueError(
            f"{name} is made from {', '.join(needed)}; an audit can give bag_size and"
            f" epsilon alone: give {unknown[0]} a default"
        )
    return tuple(needed)


def _read_channel(path: Path) -> CountChannel:
    try:
        matrix = np.loadtxt(path, delimiter=",", ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is no matrix of numbers with commas between them and no header: {error}"
        ) from None
    try:
        return CountChannel(matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_class(path: Path, wanted: str) -> type[Mechanism]:
    # Two files may have the same stem.
    name = str(path.resolve())
    with naming_user_errors(f"{path} cannot be run"):
        defined = runpy.run_path(str(path), run_name=name)
    classes = {
        each: value
        for each, value in defined.items()
        if isinstance(value, type) and issubclass(value, Mechanism) and value.__module__ == name
    }
    names = ", ".join(classes) or "none"
    if wanted and wanted not in classes:
        raise ValueError(f"{path} has no class {wanted} that is a labelaudit.Mechanism: {names}")
    if not wanted and len(classes) != 1:
        raise ValueError(
            f"{path} must hold one class that is a labelaudit.Mechanism, not {len(classes)}"
            f" ({names}); with several, say which: {path.name}:Name"
        )
    return classes[wanted] if wanted else next(iter(classes.values()))


def has_channel(mechanism: Mechanism) -> bool:
    """Whether an advantage can be summed over all releases: noise on the count, or a channel.

    >>> from labelaudit import LaplaceProportions, Repeated
    >>> mechanism = LaplaceProportions(2, 1.0)
    >>> has_channel(mechanism), has_channel(Repeated(mechanism, 2))
    (True, False)
    """
    if isinstance(mechanism, NoisyCount) or mechanism.epsilon == 0:
        return True
    if not isinstance(mechanism, Mechanism):
        # A mechanism of several classes, whose releases can be listed.
        return True
    try:
        mechanism.channel()
    except (TypeError, ValueError):
        # That is how `channel` reports that there is no matrix, or that it would be too large.
        return False
    return True


def check_custom(mechanism: Mechanism, name: str) -> bool:
    """Reject what cannot be audited; say whether epsilon is known from the mechanism's channel."""
    _try_release(mechanism, name)
    channel = _channel_of(mechanism, name)
    if channel is None:
        return False
    check_epsilon(mechanism.epsilon, channel.epsilon, name, "its channel")
    with naming_user_errors(f"{name} cannot be audited"):
        _compare(mechanism, channel, name)
    return True


@contextmanager
def naming_user_errors(start: str, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Whatever the user's code raises becomes an error of one line."""
    try:
        yield
    except CustomMechanismError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{start}: {type(error).__name__}: {error}") from error


def check_epsilon(epsilon: float, largest: float, name: str, where: str) -> None:
    """Reject a mechanism with a log ratio above the epsilon that it declares.

    >>> check_epsilon(0.5, 2.0, "Mine", "its channel")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    labelaudit.mechanisms.custom.CustomMechanismError: Mine declares epsilon 0.5, but ... shows 2
    """
    if largest > epsilon * (1 + ROUNDING) + ROUNDING:
        shown = "none" if math.isinf(largest) else f"{largest:.4g}"
        raise CustomMechanismError(
            f"{name} declares epsilon {epsilon:g}, but {where} shows {shown}"
        )


def _try_release(mechanism: Mechanism, name: str) -> None:
    """Release bags of every count and attack two, so that a mistake shows before any training."""
    rng = np.random.default_rng(0)
    with naming_user_errors(f"{name} cannot be audited"):
        size = mechanism.bag_size
        counts = np.unique(np.linspace(0, size, min(size + 1, MAX_COUNTS)).round())
        times = max(1, min(TRIALS, MAX_LABELS // (counts.size * size)))
        labels = np.arange(size) < np.repeat(counts, times)[:, None]
        releases = np.asarray(mechanism.release(labels.astype(np.int64), rng))
        after: Any = posterior(np.full((2, size), 0.5), mechanism, releases[[0, -1]])
        logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
        epsilon = float(mechanism.epsilon)
    if not np.isfinite(after).all():
        raise ValueError(f"{name} cannot be audited: its posterior is not a number")
    if not epsilon >= 0:
        raise ValueError(f"{name} cannot be audited: its epsilon is {epsilon:g}, not 0 or more")
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(logs, axis=1))
    # The ratio of two counts that a release both rules out is not a number, and says nothing.
    check_epsilon(epsilon, float(np.nanmax(steps, initial=0.0)), name, "its likelihood")


def _channel_of(mechanism: Mechanism, name: str) -> CountChannel | None:
    """The channel; None where a TypeError says that there is no matrix."""
    channel: Any = None
    with naming_user_errors(f"{name} cannot be audited: its channel"), suppress(TypeError):
        channel = mechanism.channel()
    if channel is None:
        return None
    if not isinstance(channel, CountChannel):
        raise ValueError(
            f"{name} cannot be audited: its channel must be a CountChannel, not"
            f" {type(channel).__name__}"
        )
    if channel.bag_size != mechanism.bag_size:
        raise ValueError(
            f"{name} has bags of {mechanism.bag_size}, but its channel is one for bags of"
            f" {channel.bag_size}"
        )
    return channel


def _compare(mechanism: Mechanism, channel: CountChannel, name: str) -> None:
    """Reject a mechanism that does not release what its channel says.

    The values of releases need not be column indices. A release belongs to the columns that are
    proportional to its likelihood, since the attacker reads nothing else in it. Bags of every count
    are released, with the ones first and with the ones last. The frequency of each group of columns
    must fit the channel, and which release of a group occurs must not depend on the bag.
    """
    size = mechanism.bag_size
    number = min(size + 1, MAX_COUNTS, MAX_LABELS // (2 * MIN_COMPARED * size))
    counts = np.unique(np.linspace(0, size, max(number, 2)).round()).astype(np.int64)
    times = min(max(MAX_LABELS // (2 * counts.size * size), MIN_EXPECTED), MAX_COMPARED)
    ones = np.arange(size) < counts[:, None]
    bags = np.concatenate([ones, ones[:, ::-1]]).astype(np.int64)
    drawn = mechanism.release(np.repeat(bags, times, axis=0), np.random.default_rng(1))
    releases, index = np.unique(np.asarray(drawn), axis=0, return_inverse=True)
    table = np.zeros((len(bags), len(releases)))
    np.add.at(table, (np.repeat(np.arange(len(bags)), times), index.ravel()), 1)

    groups, distribution = _column_groups(mechanism, channel, releases, name)
    expected = times * np.concatenate([distribution[counts], distribution[counts]])
    observed = np.zeros_like(expected)
    np.add.at(observed.T, groups, table.T)
    bag, group = np.unravel_index(np.argmax(np.abs(observed - expected)), observed.shape)
    if (observed[expected == 0] > 0).any() or _p_value(observed, expected) < FALSE_ALARM:
        raise CustomMechanismError(
            f"{name} does not release what its channel says: for {bags[bag].sum()} ones of {size}"
            f" {observed[bag, group]:.0f} of {times} releases were of a kind that the channel"
            f" expects {expected[bag, group]:.0f} times"
        )
    for group in np.unique(groups):
        members = table[:, groups == group]
        members = members[members.sum(axis=1) > 0]
        fractions = members.sum(axis=0) / members.sum()
        if _p_value(members, members.sum(axis=1, keepdims=True) * fractions) < FALSE_ALARM:
            raise CustomMechanismError(
                f"{name} releases more than its likelihood tells: it gives releases such as"
                f" {np.ravel(releases[groups == group])[0]:g} the likelihood of others, but they"
                " come with other labels"
            )


def _column_groups(
    mechanism: Mechanism, channel: CountChannel, releases: Floats, name: str
) -> tuple[Ints, Floats]:
    """The group of proportional columns of each release, and P(group | count)."""
    logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    possible = channel.matrix[:, channel.matrix.max(axis=0) > 0]
    columns = (possible / possible.max(axis=0)).T
    # Several random means over the counts tell columns apart that are not proportional.
    weights = np.random.default_rng(2).random((channel.bag_size + 1, PROJECTIONS))
    weights /= weights.sum(axis=0)
    tree = KDTree(columns @ weights)
    pairs = tree.query_pairs(ROUNDING, p=math.inf, output_type="ndarray")
    joined = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(columns), len(columns)))
    number, group_of = connected_components(joined, directed=False)
    distance, nearest = tree.query(likelihoods @ weights, p=math.inf)
    far = distance > ROUNDING
    if far.any():
        raise CustomMechanismError(
            f"{name} can release {np.ravel(releases[far])[0]:g}, whose likelihood is that of no"
            " column of its channel"
        )
    distribution = np.zeros((channel.bag_size + 1, number))
    np.add.at(distribution.T, group_of, possible.T)
    return group_of[nearest], distribution


def _p_value(observed: Floats, expected: Floats) -> float:
    """Pearson's chi-square test, row by row; cells with a small expectation are added up."""
    small = expected < MIN_EXPECTED
    rests = [np.where(small, table, 0).sum(axis=1, keepdims=True) for table in (observed, expected)]
    cells = np.hstack([np.where(small, 0, expected), rests[1]])
    used = cells >= MIN_EXPECTED
    fractions = cells / expected.sum(axis=1, keepdims=True)
    # The expected value of the sum: the cells of a row less 1 where all of them are used.
    freedom = (1 - fractions)[used].sum()
    differences = np.hstack([observed, rests[0]]) - cells
    total = (differences[used] ** 2 / cells[used]).sum()
    return float(stats.chi2.sf(total, freedom)) if freedom > ROUNDING else 1.0
