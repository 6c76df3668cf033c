"""Checks of input: each error names the offending value and what is allowed."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Draws, bags or releases: more would take years.
MAX_COUNT = 10**10


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """`value` as an int of at least `least`."""
    allowed = f"{name} must be a whole number of at least {least}"
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{allowed}, not {value!r}") from None
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{allowed}, not {value!r}")
    if number < least:
        raise ValueError(f"{allowed}, not {number}")
    return number


def count(value: Any, name: str, least: int = 1) -> int:
    """`value` as a whole number that a computer can count to."""
    number = whole_number(value, name, least)
    if number > MAX_COUNT:
        actual = f"{number}" if number < 2**64 else f"one of {number.bit_length()} bits"
        raise ValueError(f"{name} must be a whole number from {least} to {MAX_COUNT}, not {actual}")
    return number


def real_number(value: Any, name: str, low: float, high: float) -> float:
    """`value` as a float in [low, high]; NaN is invalid."""
    number: float | None
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must lie in [{low}, {high}] and fit a float, unlike a whole number of "
            f"{int(value).bit_length()} bits"
        ) from None
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, str | bytes | bool | np.bool_):
        raise TypeError(f"{name} must be a number in [{low}, {high}], not {value!r}")
    if not low <= number <= high:
        raise ValueError(f"{name} must lie in [{low}, {high}], not {number}")
    return number


def generator(rng: Any) -> np.random.Generator:
    """`rng` itself, if it is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator (numpy.random.default_rng(seed)), not {rng!r}"
        )
    return rng


def bag_size(mechanism: Any) -> int:
    """The mechanism's bag size; anything but an instance of a mechanism is invalid."""
    if isinstance(mechanism, type) or not hasattr(mechanism, "log_likelihood"):
        raise TypeError(
            f"mechanism must be a Mechanism such as LabelProportions(8), not {mechanism!r}"
        )
    for name in ("bag_size", "epsilon"):
        if not hasattr(mechanism, name):
            raise TypeError(f"mechanism {type(mechanism).__name__} must have an attribute {name}")
    return whole_number(mechanism.bag_size, "bag_size")


def prior(value: Any) -> None:
    """Require a distribution that can draw priors."""
    if isinstance(value, type) or not hasattr(value, "sample"):
        raise TypeError(f"prior must be a distribution such as priors.Beta(2, 30), not {value!r}")


def numbers(values: ArrayLike, name: str) -> Floats:
    """`values` as a float64 array of real numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers") from None
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must hold a number everywhere, but some entries are masked")
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must be an array of real numbers, not of type {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def _require_none(bad: NDArray[np.bool_], array: NDArray[Any], name: str, allowed: str) -> None:
    if np.count_nonzero(bad):  # quicker than any() for a few values
        index = tuple(int(number) for number in np.argwhere(bad)[0])
        raise ValueError(f"{name} must {allowed}, but {name}{list(index)} is {array[index]}")


def indices(values: ArrayLike, name: str, size: int, allowed: str) -> Ints:
    """`values` as whole numbers from 0 to `size` - 1."""
    array = numbers(values, name)
    valid = (array >= 0) & (array < size) & (array == np.floor(array))
    _require_none(~valid, array, name, f"{allowed}, 0 to {size - 1}")
    return array.astype(np.int64)


def probabilities(values: ArrayLike, name: str = "eta") -> Floats:
    """`values` as float64, each in [0, 1]."""
    array = numbers(values, name)
    # Two quick passes are enough for valid input; NaN fails both comparisons.
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        _require_none(~((array >= 0) & (array <= 1)), array, name, "lie in [0, 1]")
    return array


def bags(values: Floats, bag_size: int, name: str) -> Floats:
    """`values` with shape (n_bags, bag_size); bags of one may have one dimension only."""
    if values.ndim == 1 and bag_size == 1:
        return values[:, None]
    if values.ndim != 2 or values.shape[1] != bag_size:
        also = " or (n_bags,)" if bag_size == 1 else ""
        raise ValueError(
            f"{name} must have shape (n_bags, {bag_size}){also} for bag size {bag_size}, "
            f"not {values.shape}"
        )
    return values


def priors(eta: ArrayLike, bag_size: int) -> Floats:
    """`eta` as bags of probabilities, in the layout that the kernels are compiled for."""
    return kernel_ready(bags(probabilities(eta), bag_size, "eta"))


def kernel_ready(array: Floats) -> Floats:
    """`array` itself or a copy: contiguous, and writable, since numba compiles twice otherwise."""
    if array.flags.c_contiguous and array.flags.writeable:
        return array  # np.require takes longer to see this than the attack on a small bag
    return np.require(array, requirements=["C", "W"])


def label_bags(labels: ArrayLike, bag_size: int) -> NDArray[np.int64]:
    """`labels` as bags of 0 and 1."""
    array = numbers(labels, "labels")
    _require_none((array != 0) & (array != 1), array, "labels", "be 0 or 1")
    return bags(array, bag_size, "labels").astype(np.int64)


def releases(values: ArrayLike, shape: tuple[int, ...] = ()) -> Floats:
    """`values` as finite numbers: an array of the given shape for each bag."""
    array = numbers(values, "releases")
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        wanted = ", ".join(["n_bags", *map(str, shape)]) + ("" if shape else ",")
        raise ValueError(f"releases must have shape ({wanted}), not {array.shape}")
    _require_none(~np.isfinite(array), array, "releases", "be finite")
    return array


def one_release_each(priors: Floats, releases: NDArray[Any]) -> None:
    """Require as many releases as bags."""
    if len(releases) != len(priors):
        raise ValueError(
            f"there must be one release for each bag: {len(priors)} bags, {len(releases)} releases"
        )


def grid_counts(values: ArrayLike, scale: int, top: int, allowed: str) -> Floats:
    """Releases times `scale`, each within 1e-9 of a whole number from 0 to `top`, as that number.

    Clipped before it is multiplied, no release overflows.
    """
    array = releases(values)
    counts = np.rint(np.minimum(np.maximum(array, 0), top / scale) * scale)
    _require_none(np.abs(array - counts / scale) > 1e-9 / scale, array, "releases", allowed)
    return counts


def sizes(bag_size: ArrayLike, least: int = 1, name: str = "bag_size") -> Floats:
    """Whole numbers of at least `least`, as floats."""
    array = numbers(bag_size, name)
    bad = ~((array >= least) & (array == np.floor(array)) & np.isfinite(array))
    if bad.any():
        wrong = array[bad].flat[0]
        raise ValueError(f"{name} must be a whole number of at least {least}, not {wrong:g}")
    return array


def at_most(values: ArrayLike, name: str, most: float) -> Floats:
    """Numbers in [0, most]."""
    array = numbers(values, name)
    bad = ~((array >= 0) & (array <= most))
    if bad.any():
        raise ValueError(f"{name} must lie in [0, {most:g}], not {array[bad].flat[0]:g}")
    return array


def variances(mu: ArrayLike, name: str = "mu") -> Floats:
    """Values of eta (1 - eta), or means of them: numbers in [0, 1/4]."""
    return at_most(mu, name, 0.25)


def epsilons(epsilon: ArrayLike) -> Floats:
    """Numbers of at least 0, or infinity."""
    return at_most(epsilon, "epsilon", math.inf)


def members(eta: ArrayLike) -> Floats:
    """Priors of whole bags: (..., k)."""
    priors = probabilities(eta)
    if priors.ndim == 0 or priors.shape[-1] == 0:
        raise ValueError(f"eta must have shape (..., k) with k at least 1, not {priors.shape}")
    return priors
