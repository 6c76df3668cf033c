"""One training run: what it works with, where it stands, and how it goes on after a kill."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelaudit import checks
from labelaudit.learning import adam, bags, checkpoints, losses
from labelaudit.learning.models import Network, Shape, Standardise, build
from labelaudit.learning.settings import Settings
from labelaudit.learning.streams import stream
from labelaudit.mechanisms import Mechanism

# Seconds between two checkpoints within an epoch.
CHECKPOINT_EVERY = 300.0


@dataclass
class State:
    """Where a run stands: after `batch` batches of epoch `epoch`."""

    epoch: int = 1
    batch: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    best_loss: float = math.nan
    best_weights: dict[str, Tensor] | None = None
    curve: list[dict[str, float]] = field(default_factory=list)
    diverged: str | None = None

    def finished(self, settings: Settings) -> bool:
        """Whether nothing is left to do."""
        waited = len(self.curve) - self.best_epoch
        impatient = settings.patience is not None and waited >= settings.patience
        return self.diverged is not None or self.epoch > settings.epochs or impatient


class Run:
    """All that one run works with, every input checked before anything is trained."""

    def __init__(
        self,
        split: Any,
        mechanism: Mechanism | None,
        settings: Settings,
        seed: int,
        test: Any,
        device: str,
        checkpoint: str | Path | None,
    ) -> None:
        """As for `train`."""
        if not isinstance(settings, Settings):
            raise TypeError(f"settings must be Settings(...), not {settings!r}")
        self.settings, self.seed = settings, checks.whole_number(seed, "seed", least=0)
        self.bag_size = 1 if mechanism is None else checks.bag_size(mechanism)
        if self.bag_size > settings.batch_size:
            raise ValueError(
                f"batch_size must hold a whole bag of {self.bag_size}, not {settings.batch_size}"
            )
        self.device = _device(device)
        data = bags.examples(split, settings.buckets, "the training split")
        self.test = None if test is None else _test_examples(test, settings.buckets, data)
        self.model = _model(settings, data, seed).to(self.device)
        self.optimiser = adam.Adam(self.model, settings.learning_rate)
        self.training, self.validation = bags.draw(
            data,
            mechanism,
            settings.validation,
            self.device,
            bags_rng=stream(seed, "bags"),
            noise_rng=stream(seed, "noise"),
        )
        self.dropped = len(data) % self.bag_size
        self.loss = _loss(settings.loss, self.training.targets)
        self.n_batches = math.ceil(len(self.training) / (settings.batch_size // self.bag_size))
        self.values = torch.zeros(self.n_batches, device=self.device)
        self.state = State()
        self.checkpoint = None if checkpoint is None else checkpoints.place(checkpoint)
        self.identity: dict[str, Any] = {}
        # Reading all data once more is worth it only if there is something to go on from.
        if self.checkpoint is not None:
            self.identity = {
                "settings": asdict(settings),
                "mechanism": repr(mechanism),
                "seed": self.seed,
                "training data": data.digest(),
                "test data": None if self.test is None else self.test.digest(),
            }
        self.started = self.saved = time.perf_counter()

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        if self.checkpoint is None:
            return
        found = checkpoints.load(self.checkpoint, self.identity, self.device)
        if found is not None:
            self.model.load_state_dict(found["model"])
            self.optimiser.load_state_dict(found["optimiser"])
            self.values.copy_(found["values"])
            self.state = State(**found["state"])
            self.started -= self.state.seconds

    def save(self) -> None:
        """Note the time, and write the checkpoint if one is wanted.

        Within an epoch the optimiser is saved as it is, rows of embeddings not brought up to date:
        to do so early would round differently from the unbroken run.
        """
        self.saved = time.perf_counter()
        self.state.seconds = self.saved - self.started
        if self.checkpoint is not None:
            everything = {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "values": self.values,
                "state": vars(self.state),
            }
            checkpoints.save(self.checkpoint, self.identity, everything)

    def save_if_due(self) -> None:
        """Save once `CHECKPOINT_EVERY` seconds have passed since the last time."""
        if self.checkpoint is not None and time.perf_counter() - self.saved > CHECKPOINT_EVERY:
            self.save()


def _test_examples(test: Any, buckets: int | None, training: bags.Examples) -> bags.Examples:
    found = bags.examples(test, buckets, "the test split")
    here, there = found.features.shape[1], training.features.shape[1]
    if here != there:
        raise ValueError(f"the test split has {here} features, the training split {there}")
    return found


def _model(settings: Settings, data: bags.Examples, seed: int) -> Network:
    """The network before its first step; measurements are standardised by at most 200,000 rows."""
    shape = Shape(data.features.shape[1], settings.buckets)
    model = build(settings.model, shape, int(stream(seed, "initialisation").integers(2**63)))
    if isinstance(model.first, Standardise):
        model.first.fit(data.features[:: max(1, len(data) // 100_000)])
    return model


def _loss(name: str, targets: Tensor) -> losses.Loss:
    if name == "easy_llp":
        return partial(losses.easy_llp, prior=targets.double().mean().item())
    return losses.matching_squared if name == "squared" else losses.matching_cross_entropy


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be auto, cpu or cuda where there is one: {error}") from None
    return device
