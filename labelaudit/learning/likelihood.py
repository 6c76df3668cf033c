"""Maximum likelihood from any release: the loss is -log P(release | x), with no debiasing.

Its gradient in a logit is the prior minus the attacker's posterior (`kernels.score`), so one attack
on a batch is one gradient. For a discrete release the loss is bounded below by 0, so it cannot run
away as debiased losses do. With randomized response it is the forward correction of the literature
on label noise, with label proportions the likelihood of the count.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from labelaudit import checks
from labelaudit.attack import complete_logs, is_compiled
from labelaudit.checks import Floats
from labelaudit.mechanisms import LabelProportions, Mechanism

__all__ = ["Likelihood", "log_evidence"]

# The logarithm of the probability of a count that cannot occur: finite, so that gradients are.
NEVER = -1e30


class Likelihood:
    """The loss of logits (n,) given what `mechanism` released of bags of k; None releases labels.

    On a processor the compiled attack gives the gradients of the paper's mechanisms. On any other
    device, and for any other mechanism, torch's own operations do, and logits stay where they are.

    >>> loss = Likelihood(LabelProportions(2))
    >>> logits = torch.zeros(4, requires_grad=True)
    >>> value = loss(logits, loss.targets(np.array([0.0, 1.0])))
    >>> value.backward()
    >>> round(value.item(), 4), logits.grad.tolist()  # log 4
    (1.3863, [0.25, 0.25, -0.25, -0.25])
    """

    def __init__(self, mechanism: Mechanism | None, device: str | torch.device = "cpu") -> None:
        self.mechanism = LabelProportions(1) if mechanism is None else mechanism
        self.bag_size = checks.bag_size(self.mechanism)
        self.device = torch.device(device)
        self.is_compiled = self.device.type == "cpu" and is_compiled(self.mechanism)

    def targets(self, releases: Floats) -> Tensor:
        """What the loss needs of each release: a row of numbers.

        Position and log scale where the attack is compiled, else log P(release | count) of each
        count. A release that no count explains is an error.
        """
        if self.is_compiled and is_compiled(self.mechanism):
            positions = np.clip(self.mechanism.positions(releases), 0, self.bag_size)
            rows = np.column_stack([positions, self.mechanism.log_scale(releases)])
            impossible = np.isneginf(rows[:, 1])
        else:
            rows = complete_logs(self.mechanism, releases)
            impossible = np.isneginf(rows.max(axis=1))
        if impossible.any():
            bag = int(impossible.argmax())
            raise ValueError(
                f"{self.mechanism} cannot release {releases[bag]}, the release of bag {bag}"
            )
        # Apple's devices have no float64.
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        return torch.from_numpy(rows).to(self.device, kind)

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean of -log P(release) over bags, in single precision at least."""
        if not len(targets):
            raise ValueError("there must be at least one bag, not 0")
        if logits.ndim != 1 or len(logits) != len(targets) * self.bag_size:
            raise ValueError(
                f"{len(targets)} bags of {self.bag_size} need logits of shape "
                f"({len(targets) * self.bag_size},), not {tuple(logits.shape)}"
            )
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()  # numpy lacks bfloat16, and a whole number would round the loss
        if self.is_compiled:
            return _Compiled.apply(logits, targets, self.mechanism.epsilon)
        members = logits.view(len(targets), self.bag_size)
        return -log_evidence(members, targets).mean().to(logits.dtype)


class _Compiled(torch.autograd.Function):
    """The loss by the attack, whose posteriors are its gradient; there is no second derivative."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, epsilon: float) -> Tensor:
        from labelaudit.kernels.score import score

        value, gradient = score(logits.numpy(force=True), targets.numpy(), epsilon)
        ctx.gradient = torch.from_numpy(gradient)
        return logits.new_tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient * weight, None, None


def log_evidence(members: Tensor, logs: Tensor) -> Tensor:
    """Log P(release) of each bag on any device, from logits (n_bags, k) and `logs` (n_bags, k + 1).

    Halves of a bag are combined pairwise, so k members need log2(k) steps. The steps are in
    logarithms, so no logit is too large. Autograd's pass back through them is the backward half of
    a forward-backward pass: all its terms are positive.

    >>> logs = torch.tensor([[-torch.inf, 0.0, -torch.inf]])  # the count is 1
    >>> round(log_evidence(torch.zeros(1, 2), logs).exp().item(), 6)
    0.5
    """
    members = members.to(logs.dtype)
    nodes = torch.stack([functional.logsigmoid(-members), functional.logsigmoid(members)], dim=2)
    while nodes.shape[1] > 1:
        size = nodes.shape[2]
        if nodes.shape[1] % 2:  # one more node, whose count is 0
            nodes = functional.pad(nodes, (0, 0, 0, 1), value=NEVER)
            nodes[:, -1, 0] = 0
        left, right = nodes[:, ::2].flip(2), nodes[:, 1::2]
        windows = functional.pad(right, (size - 1, size - 1), value=NEVER).unfold(2, size, 1)
        nodes = (windows + left.unsqueeze(2)).logsumexp(dim=3)
    return (nodes[:, 0, : logs.shape[1]] + logs).logsumexp(dim=1)
