"""Measures of scores against labels, in numpy: what a training and an estimate of eta share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """The chance that a positive example scores above a negative one, ties counting half.

    nan where one of the classes is missing, or a score is.

    >>> auc([0, 1, 1, 0], [0.1, 0.7, 0.7, 0.7])
    0.75
    """
    positive = np.asarray(labels) == 1
    pairs = float(positive.sum()) * float((~positive).sum())
    if not pairs:
        return math.nan
    ranks = stats.rankdata(scores)
    least = positive.sum() * (positive.sum() + 1) / 2
    return float((ranks[positive].sum() - least) / pairs)


def log_loss(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean cross entropy of labels, from logits, with no probability cut off.

    >>> round(log_loss([1, 0], [0.0, -1000.0]), 6)  # half of log 2
    0.346574
    """
    values = np.asarray(scores, dtype=np.float64)
    signed = np.where(np.asarray(labels) == 1, values, -values)
    return float(-special.log_expit(signed).mean())
