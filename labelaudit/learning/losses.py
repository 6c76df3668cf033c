"""Losses of a bag's released label proportion, from the logits of its members.

Two shapes everywhere. Binary: logits (n,) and targets (n_bags,), the proportion of positive labels
of each bag. With c classes: logits (n, c) and targets (n_bags, c). Bags are consecutive examples.

Targets are unbiased estimates of the true proportions, what `mechanism.debias` gives, and may lie
outside [0, 1]. Every loss of this module has a gradient that is affine in the target (appendix D),
so gradients at such a target are unbiased too (theorem D.2). Clipping the target would undo that,
and so would a floor under the loss, which is unbounded below for a target outside [0, 1].
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "bag_size",
    "centred_llp",
    "cross_entropy",
    "easy_llp",
    "matching_cross_entropy",
    "matching_squared",
]

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy of labelled examples: -t log p - (1 - t) log(1 - p), averaged.

    With clean labels the usual loss. With t = `RandomizedResponse(epsilon).debias(release)` the
    paper's debiased loss (appendix C): cross entropy is affine in the label, hence
    (e^epsilon + 1) / (e^epsilon - 1) f(RR) - (f(0) + f(1)) / (e^epsilon - 1) is f at the debiased
    label.

    >>> cross_entropy(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -0.5])).item()  # log 2
    0.6931471824645996
    """
    if bag_size(logits, targets) != 1:
        raise ValueError(
            f"cross_entropy needs a target for each example, not {len(targets)} for {len(logits)}"
        )
    if logits.ndim == 1:
        return functional.binary_cross_entropy_with_logits(logits, targets)
    return -(targets * functional.log_softmax(logits, dim=1)).sum(dim=1).mean()


def matching_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Proportion matching (section 2): cross entropy of each bag's mean prediction, averaged.

    The logarithm of the mean is taken from the members' log probabilities, so that a bag of sure
    predictions costs a finite amount and has a finite gradient.

    >>> logits = torch.tensor([200.0, 200.0, -200.0, 200.0])
    >>> matching_cross_entropy(logits, torch.tensor([0.0, 0.5])).item()  # (200 + log 2) / 2
    100.34657287597656
    """
    k = bag_size(logits, targets)
    if k == 1:
        return cross_entropy(logits, targets)
    if logits.ndim == 1:
        members = logits.view(-1, k)
        positive = functional.logsigmoid(members).logsumexp(dim=1)
        negative = functional.logsigmoid(-members).logsumexp(dim=1)
        return math.log(k) - (targets * positive + (1 - targets) * negative).mean()
    log_mean = functional.log_softmax(logits, dim=1).view(len(targets), k, -1).logsumexp(dim=1)
    return -(targets * (log_mean - math.log(k))).sum(dim=1).mean()


def matching_squared(logits: Tensor, targets: Tensor) -> Tensor:
    """Proportion matching with the squared error: (mean prediction - t)^2, averaged over bags.

    With c classes the squares are summed over the classes.

    >>> matching_squared(torch.zeros(4), torch.tensor([0.5, 1.5])).item()
    0.5
    """
    k = bag_size(logits, targets)
    if logits.ndim == 1:
        return (torch.sigmoid(logits).view(-1, k).mean(dim=1) - targets).square().mean()
    mean = torch.softmax(logits, dim=1).view(len(targets), k, -1).mean(dim=1)
    return (mean - targets).square().sum(dim=1).mean()


def easy_llp(logits: Tensor, targets: Tensor, prior: float | Tensor) -> Tensor:
    """EasyLLP: each member's cross entropy at the label k (t - prior) + prior, averaged.

    `prior` is the fraction of positive labels overall (of each class, where there are c). If the
    members of a bag are drawn independently, E[t | one member] = (eta + (k - 1) prior) / k. So the
    label is right on average, and so is the event-level loss, whatever the model.

    >>> easy_llp(torch.zeros(2), torch.tensor([1.0]), prior=0.5).item()
    0.6931471824645996
    """
    k = bag_size(logits, targets)
    labels = k * (targets - prior) + prior
    return cross_entropy(logits, labels.repeat_interleave(k, dim=0))


def centred_llp(logits: Tensor, targets: Tensor, prior: float | Tensor) -> Tensor:
    """EasyLLP with targets centred by the batch: the label prior + k b / (b - 1) (t - mean of t).

    Both estimate E[y D], where D = loss(1) - loss(0), without bias: EasyLLP by the mean of
    k (t - prior) D, whose variance grows with k; this by prior times the mean of D plus k times the
    covariance of t and a bag's mean of D over the b bags of a batch, whose variance does not. A
    single bag is treated as by EasyLLP. Applebaum et al. (arXiv 2509.15145) and Busa-Fekete et al.
    (arXiv 2505.05355) publish estimators of low variance; this one is derived here, not taken from
    them: their formulas were not at hand.

    >>> centred_llp(torch.zeros(4), torch.tensor([1.0, 0.0]), prior=0.5).item()
    0.6931471824645996
    """
    k, bags = bag_size(logits, targets), len(targets)
    if bags == 1:
        return easy_llp(logits, targets, prior)
    labels = prior + k * bags / (bags - 1) * (targets - targets.mean(dim=0))
    return cross_entropy(logits, labels.repeat_interleave(k, dim=0))


def bag_size(logits: Tensor, targets: Tensor) -> int:
    """How many examples each bag holds, the shapes having been checked.

    >>> bag_size(torch.zeros(6), torch.zeros(2))
    3
    """
    if logits.ndim not in (1, 2) or targets.shape[1:] != logits.shape[1:]:
        raise ValueError(
            "logits must have shape (n,) and targets (n_bags,), or (n, c) and (n_bags, c), not "
            f"{tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    examples, bags = len(logits), len(targets)
    if bags == 0 or examples == 0 or examples % bags:
        raise ValueError(
            f"every bag must hold the same number of examples, at least 1, but there are {examples}"
            f" examples for {bags} bags"
        )
    return examples // bags
