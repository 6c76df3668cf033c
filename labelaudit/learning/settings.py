"""How to train, each setting documented and checked where it is declared."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labelaudit import checks
from labelaudit.learning.models import KDD12_BUCKETS, MODELS

LOSSES = ("cross_entropy", "squared", "easy_llp")


@dataclass(frozen=True)
class Settings:
    """How to train. Of these the paper gives the models, the loss and the learning rates.

    >>> settings = Settings("kdd12", learning_rate=5e-4, epochs=2)
    >>> settings.buckets, settings.batch_size
    (500000, 1024)
    """

    model: str = "small"
    """One of `models.MODELS`: "higgs" and "kdd12" are the paper's, "small" and "linear" ours."""
    loss: str = "cross_entropy"
    """How a bag's predictions are held against its proportion: "cross_entropy" and "squared" match
    the mean prediction, "easy_llp" turns the proportion into a label for each member."""
    learning_rate: float = 1e-3
    """Adam's step; the paper searches eight from 1e-6 to 1e-2."""
    batch_size: int = 1024
    """The most examples in a batch. Batches hold whole bags, as evenly as can be."""
    epochs: int = 20
    """The most passes over the training bags."""
    patience: int | None = 3
    """Stop after so many epochs without a smaller validation loss, and return the weights of the
    best epoch; None trains all epochs and returns the last."""
    validation: float = 0.1
    """The share of bags held out from training; the same mechanism releases their labels."""
    clamp: float = 3.0
    """The largest logit, either way, that the validation loss sees."""
    buckets: int | None = None
    """The bound of hashed indices, 500,000 for "kdd12"; None where features are measurements."""

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, known in (("model", MODELS), ("loss", LOSSES)):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        for name in ("learning_rate", "clamp"):
            number = checks.real_number(getattr(self, name), name, 0, math.inf)
            if not 0 < number < math.inf:
                raise ValueError(f"{name} must be positive and finite, not {number}")
            object.__setattr__(self, name, number)
        if self.model == "kdd12" and self.buckets is None:
            object.__setattr__(self, "buckets", KDD12_BUCKETS)
        for name in ("batch_size", "epochs", "patience", "buckets"):
            value = getattr(self, name)
            if value is not None or name in ("batch_size", "epochs"):
                object.__setattr__(self, name, checks.whole_number(value, name))
        share = checks.real_number(self.validation, "validation", 0, 0.9)
        object.__setattr__(self, "validation", share)
        if share == 0 and self.patience is not None:
            raise ValueError("patience needs validation labels: with validation 0, set it to None")
