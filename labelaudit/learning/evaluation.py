"""How good a model is: on test labels, and on the released labels of validation bags."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelaudit.checks import Floats
from labelaudit.learning.bags import Bags, Examples
from labelaudit.learning.losses import Loss
from labelaudit.learning.models import Network
from labelaudit.learning.scores import auc, log_loss

__all__ = ["auc", "finite", "log_loss", "logits", "measure", "validation_loss"]

# Examples in one forward pass.
TOGETHER = 8192


@torch.inference_mode()
def logits(model: Network, features: NDArray[Any]) -> Floats:
    """The model's logits for checked features, which need not fit on its device."""
    device = next(model.parameters()).device
    found = np.empty(len(features))
    for start in range(0, len(features), TOGETHER):
        block = torch.from_numpy(np.array(features[start : start + TOGETHER])).to(device)
        found[start : start + TOGETHER] = model(block).double().cpu().numpy()
    return found


@torch.inference_mode()
def validation_loss(model: Network, loss: Loss, validation: Bags | None, clamp: float) -> float:
    """The loss of released validation labels with logits clamped, which bounds it; nan of none."""
    if validation is None:
        return math.nan
    total = torch.zeros((), dtype=torch.float64, device=validation.targets.device)
    bags = torch.arange(len(validation), device=total.device)
    for chosen in bags.split(max(1, TOGETHER // validation.bag_size)):
        features, targets = validation.batch(chosen)
        total += len(chosen) * loss(model(features).clamp(-clamp, clamp), targets)
    return total.item() / len(validation)


def measure(model: Network, test: Examples | None) -> tuple[float, float]:
    """AUC and log loss on test labels; nan without any."""
    if test is None:
        return math.nan, math.nan
    scores = logits(model, test.features)
    return auc(test.labels, scores), log_loss(test.labels, scores)


def finite(model: Network) -> bool:
    """Whether every weight is a number."""
    checks: list[Tensor] = [weights.isfinite().all() for weights in model.parameters()]
    return bool(torch.stack(checks).all())
