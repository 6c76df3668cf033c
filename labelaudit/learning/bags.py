"""Training data as a mechanism releases them: random bags, and what a loss learns from."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.partitions import partition

# Rows read together where a whole array might not fit in memory a second time.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Examples:
    """Features (n, fields), float32 or int32 indices, and labels (n,) of 0 and 1: all checked."""

    features: NDArray[Any]
    labels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def digest(self) -> str:
        """The sha256 of all labels and all features, which tells other data apart."""
        content = hashlib.sha256(repr((self.features.shape, self.features.dtype.str)).encode())
        content.update(self.labels.tobytes())
        for start in range(0, len(self), BLOCK):
            content.update(self.features[start : start + BLOCK].tobytes())
        return content.hexdigest()


def examples(split: Any, buckets: int | None, name: str = "split") -> Examples:
    """The features and labels of a split; those that no model could use are an error."""
    rows = features(split.features, buckets, f"the features of {name}")
    labels = checks.label_bags(split.labels, 1).ravel().astype(np.uint8)
    if len(labels) != len(rows):
        raise ValueError(f"{name} has {len(rows)} rows of features but {len(labels)} labels")
    if not len(labels):
        raise ValueError(f"{name} must hold at least one example")
    return Examples(rows, labels)


def features(values: Any, buckets: int | None, name: str = "features") -> NDArray[Any]:
    """Features as a model takes them: finite float32, or int32 indices below `buckets`."""
    rows = np.asanyarray(values)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n, fields), not {rows.shape}")
    if rows.dtype.kind not in ("f" if buckets is None else "iu"):
        wanted = "floats" if buckets is None else "whole numbers"
        hint = ": set buckets if they are hashed indices" if rows.dtype.kind in "iu" else ""
        raise TypeError(f"{name} must be {wanted}, not {rows.dtype}{hint}")
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        if buckets is None:
            good, allowed = np.isfinite(block), "be finite"
        else:
            good, allowed = (block >= 0) & (block < buckets), f"lie in 0..{buckets - 1}"
        if not good.all():
            row, column = (int(index) for index in np.argwhere(~good)[0])
            raise ValueError(
                f"{name} must {allowed}, but [{start + row}, {column}] is {block[row, column]}"
            )
    return rows.astype(np.float32 if buckets is None else np.int32, copy=False)


class Bags:
    """Whole bags on a device, and their targets; a batch is taken by the indices of its bags."""

    def __init__(
        self, rows: NDArray[Any], members: NDArray[np.int64], targets: Tensor, device: torch.device
    ) -> None:
        """`members` (n_bags, bag_size) are row indices; rows go to the device if they fit."""
        self.rows, self.members, self.targets = rows, members, targets.to(device)
        self.bag_size, self.fields, self.device = members.shape[1], rows.shape[1], device
        self.resident: Tensor | None = None
        if _fits(members.size * self.fields * rows.itemsize, device):
            ordered = torch.from_numpy(rows.take(members.ravel(), axis=0))
            self.resident = ordered.view(len(members), -1).to(device)

    def __len__(self) -> int:
        return len(self.members)

    def batch(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Features (n, fields), bag after bag, and targets (n_bags,)."""
        if self.resident is not None:
            taken = self.resident.index_select(0, chosen)
        else:
            members = self.members[chosen.cpu().numpy()].ravel()
            taken = torch.from_numpy(self.rows.take(members, axis=0)).to(self.device)
        return taken.view(-1, self.fields), self.targets.index_select(0, chosen)


def draw(
    data: Examples,
    mechanism: Mechanism | None,
    validation: float,
    device: torch.device,
    bags_rng: np.random.Generator,
    noise_rng: np.random.Generator,
    encode: Callable[[Floats], Tensor],
) -> tuple[Bags, Bags | None]:
    """Bags for training and for validation, drawn at random, with the targets to learn from.

    Examples left over from whole bags are dropped. The mechanism releases both parts; without a
    mechanism, a bag is an example and its release the label. `encode` turns releases into targets.
    """
    bag_size = 1 if mechanism is None else mechanism.bag_size
    n_bags = len(data) // bag_size
    held_out = max(1, int(n_bags * validation)) if validation else 0
    if n_bags <= held_out:
        raise ValueError(
            f"{len(data)} examples make {n_bags} whole bags of {bag_size}: too few to train on"
            + (" and to hold some out for validation" if held_out else "")
        )
    members = partition(len(data), bag_size, bags_rng)
    labels = data.labels[members]
    if mechanism is None:
        targets = encode(labels[:, 0].astype(np.float64))
    else:
        targets = encode(mechanism.release(labels, noise_rng))

    def part(chosen: slice) -> Bags:
        return Bags(data.features, members[chosen], targets[chosen], device)

    training = part(slice(held_out, None))
    return training, part(slice(held_out)) if held_out else None


def debiased(releases: Floats, mechanism: Mechanism | None) -> Tensor:
    """Unbiased estimates of the bags' proportions: the targets of every loss but the likelihood."""
    proportions = releases if mechanism is None else mechanism.debias(releases)
    return torch.from_numpy(proportions.astype(np.float32))


def _fits(size: int, device: torch.device) -> bool:
    """Whether that many bytes take up at most half of the memory that is free on the device."""
    if device.type == "cuda":
        return size <= torch.cuda.mem_get_info(device)[0] / 2
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return True
    return size <= free / 2
