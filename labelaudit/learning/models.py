"""The paper's two networks (appendix C), a small one for tables, and a linear one.

A model maps a batch of features to logits; the sigmoid belongs to the loss, where it can be taken
stably. The paper does not say how it initialises. Ours: weights of dense layers uniform with
variance 2 / (inputs + outputs) (Glorot), biases zero, embeddings uniform in [-0.05, 0.05].
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from labelaudit import checks

__all__ = ["Architecture", "Network", "Shape", "Standardise", "build"]

HIGGS_FEATURES = 28
KDD12_BUCKETS = 500_000
# Rows whose activations stay in a core's cache. Where the cache is small, wide layers are faster in
# such pieces than on a batch of thousands at once.
CACHED_ROWS = 512


class Architecture(NamedTuple):
    """Widths of the embedding (where features are hashed indices) and of the hidden layers.

    >>> MODELS["kdd12"]
    Architecture(embedding=50, hidden=(100, 50), standardise=False)
    """

    embedding: int
    hidden: tuple[int, ...]
    standardise: bool


MODELS = {
    "higgs": Architecture(0, (300, 300, 300, 300), standardise=False),
    "kdd12": Architecture(50, (100, 50), standardise=False),
    "small": Architecture(8, (32, 32), standardise=True),
    "linear": Architecture(1, (), standardise=True),
}


class Shape(NamedTuple):
    """What a model must know of the data: the columns, and the bound of hashed indices if any."""

    fields: int
    buckets: int | None = None


class Standardise(nn.Module):
    """Features minus their mean, divided by their standard deviation; unchanged before `fit`.

    >>> layer = Standardise(fields=1)
    >>> layer.fit([[1.0], [3.0]])
    >>> layer(torch.tensor([[1.0], [3.0], [4.0]])).flatten().tolist()
    [-1.0, 1.0, 2.0]
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, fields: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(fields))
        self.register_buffer("scale", torch.ones(fields))

    def fit(self, features: ArrayLike) -> None:
        """Take mean and deviation from training features; a constant column keeps its scale."""
        values = np.asarray(features)
        deviation = values.std(axis=0, dtype=np.float64)
        self.mean.copy_(torch.from_numpy(values.mean(axis=0, dtype=np.float64)))
        self.scale.copy_(torch.from_numpy(np.where(deviation > 0, deviation, 1.0)))

    def forward(self, features: Tensor) -> Tensor:
        """Standardised features."""
        return (features - self.mean) / self.scale


class Network(nn.Module):
    """Features (n, fields) to logits (n,): an input layer, then dense layers.

    `first` is an embedding summed over the row's indices, a `Standardise`, or nothing.

    >>> build("small", 2, seed=0)(torch.zeros(3, 2)).shape
    torch.Size([3])
    """

    def __init__(self, shape: Shape, first: nn.Module, inputs: int, hidden: Sequence[int]) -> None:
        """Layers of the given widths, their weights not yet set: see `initialise`."""
        super().__init__()
        self.shape = shape
        self.first = first
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.utils.skip_init(nn.Linear, inputs, width), nn.ReLU(inplace=True)]
            inputs = width
        self.dense = nn.Sequential(*layers, nn.utils.skip_init(nn.Linear, inputs, 1))

    def forward(self, features: Tensor) -> Tensor:
        """Logits."""
        inputs = self.first(features)
        if inputs.device.type != "cpu" or len(inputs) <= CACHED_ROWS:
            return self.dense(inputs).squeeze(1)
        return torch.cat([self.dense(rows) for rows in inputs.split(CACHED_ROWS)]).squeeze(1)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights from `generator`, and from no global state."""
        if isinstance(self.first, nn.EmbeddingBag):
            self.first.weight.uniform_(-0.05, 0.05, generator=generator)
        for layer in self.dense:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                nn.init.zeros_(layer.bias)


def build(name: str, data: Any, seed: int) -> Network:
    """The model called `name` for `data`, its weights drawn from `seed`.

    `data` is a `datasets.Dataset`, a `Shape`, or the number of measured features. "higgs" takes
    the 28 of Higgs and nothing else; "kdd12" takes hashed indices, whose embeddings it adds up.
    "small" and "linear" take either, measurements standardised once their first layer is fitted.

    >>> sum(weights.numel() for weights in build("higgs", 28, seed=0).parameters())
    279901
    >>> build("linear", Shape(fields=11, buckets=1000), seed=0).first
    EmbeddingBag(1000, 1, mode='sum')
    """
    shape, architecture = _shape(name, data), MODELS[name]
    generator = torch.Generator().manual_seed(checks.whole_number(seed, "seed", least=0))
    inputs = shape.fields
    first: nn.Module = Standardise(inputs) if architecture.standardise else nn.Identity()
    if shape.buckets is not None:
        inputs = architecture.embedding
        first = nn.utils.skip_init(nn.EmbeddingBag, shape.buckets, inputs, mode="sum")
    model = Network(shape, first, inputs, architecture.hidden)
    model.initialise(generator)
    return model


def _shape(name: str, data: Any) -> Shape:
    """The shape of `data`, if the model called `name` can take it."""
    if name not in MODELS:
        raise ValueError(f"a model is one of {', '.join(MODELS)}, not {name!r}")
    if hasattr(data, "columns") and hasattr(data, "buckets"):
        data = Shape(len(data.columns), data.buckets)
    fields, buckets = data if isinstance(data, Shape) else (data, None)
    fields = checks.whole_number(fields, "the number of features")
    if buckets is not None:
        buckets = checks.whole_number(buckets, "buckets")
    if name == "higgs" and (fields, buckets) != (HIGGS_FEATURES, None):
        actual = "hashed indices" if buckets is not None else f"{fields} features"
        raise ValueError(
            f'the "higgs" network takes {HIGGS_FEATURES} measured features, not {actual}:'
            ' use "small" or "linear"'
        )
    if name == "kdd12" and buckets is None:
        raise ValueError('the "kdd12" network takes hashed indices: give their number of buckets')
    return Shape(fields, buckets)
