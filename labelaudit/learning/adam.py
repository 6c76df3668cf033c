"""Adam for networks with an embedding: dense Adam's result at the cost of the rows in use.

Dense Adam moves every row of an embedding at every step: a row's moments fade, and still move its
weights, long after its last gradient. But what a row does without gradients is known in advance.
With moments m and v after step `last`, the next n steps move its weights by

    -rate * m * sum_{j=1..n} w_j / (sqrt(v) s_j + epsilon),
    w_j = beta1^j / (1 - beta1^(last + j)),   s_j^2 = beta2^j / (1 - beta2^(last + j)),

and fade m by beta1^n and v by beta2^n. So a row is left alone until it is read, and then catches
up. The sum has its weight on the first few dozen j, where the summand is smooth in j, so that two
well-chosen points (Gauss's, for the weights beta1^j) give it to single precision. Only after the
very first steps, where s_j still changes fast, are the terms added up one by one.

torch's SparseAdam is another algorithm: there a row's moments wait for its next gradient.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from labelaudit.kernels.embedding_adam import BETA1, BETA2, EPSILON
from labelaudit.learning.adam_rows import Compiled, InTorch

__all__ = ["Adam", "RowAdam"]


class Adam:
    """Torch's fused Adam for dense parameters, `RowAdam` for embeddings: one step at a time.

    A training step is `before(indices)`, forward, backward, `step()`. After `finish()` every
    weight is where dense Adam would have it: call it before evaluating or saving the model. An
    embedding is an `nn.EmbeddingBag` that sums; its gradients no longer pass through autograd.

    >>> model = nn.Sequential(nn.EmbeddingBag(1000, 4, mode="sum"), nn.Linear(4, 1))
    >>> optimiser = Adam(model, learning_rate=0.01)
    >>> indices = torch.tensor([[3, 1, 4], [1, 5, 9]])
    >>> optimiser.before(indices)
    >>> model(indices).sum().backward()
    >>> optimiser.step()
    """

    def __init__(self, model: nn.Module, learning_rate: float) -> None:
        """For the parameters of `model`; the rate stays the same throughout."""
        if not 0.0 < learning_rate < math.inf:
            raise ValueError(f"the learning rate must be positive and finite, not {learning_rate}")
        embeddings = [layer for layer in model.modules() if isinstance(layer, nn.EmbeddingBag)]
        self.rows = [RowAdam(embedding, learning_rate) for embedding in embeddings]
        lazy = {id(embedding.weight) for embedding in embeddings}
        dense = [weights for weights in model.parameters() if id(weights) not in lazy]
        self.dense = torch.optim.Adam(
            dense, lr=learning_rate, betas=(BETA1, BETA2), eps=EPSILON, fused=True
        )

    def before(self, indices: Tensor) -> None:
        """Bring the rows that a forward pass on `indices` will read up to date."""
        for rows in self.rows:
            rows.before(indices)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self.dense.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        self.dense.step()
        for rows in self.rows:
            rows.step()

    def finish(self) -> None:
        """Bring every row up to date."""
        for rows in self.rows:
            rows.finish()

    def state_dict(self) -> dict[str, Any]:
        """All that a restored optimiser needs; tensors are shared, not copied."""
        return {"dense": self.dense.state_dict(), "rows": [rows.state() for rows in self.rows]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict` of an optimiser of the same model, whose weights are restored."""
        if len(state["rows"]) != len(self.rows):
            raise ValueError(
                f"the state has {len(state['rows'])} embeddings, the model {len(self.rows)}"
            )
        self.dense.load_state_dict(state["dense"])
        for rows, saved in zip(self.rows, state["rows"], strict=True):
            rows.load_state(saved)


class RowAdam:
    """Adam on the rows of one embedding; `last` is the step at which a row was last up to date."""

    def __init__(self, embedding: nn.EmbeddingBag, rate: float) -> None:
        """Take the embedding's weight out of autograd: the sums it makes carry the gradient."""
        if embedding.mode != "sum" or embedding.max_norm or embedding.padding_idx is not None:
            raise ValueError(f"only a plain embedding that sums can be lazy, not {embedding}")
        self.embedding, self.rate, self.count = embedding, rate, 0
        self.weight = embedding.weight.requires_grad_(False)
        self.moments = self.weight.new_zeros((len(self.weight), 2, self.weight.shape[1]))
        self.last = torch.zeros(len(self.weight), dtype=torch.int32, device=self.weight.device)
        engine = Compiled if self.weight.device.type == "cpu" else InTorch
        self.engine = engine(self.weight, self.moments, self.last)
        self.group: Any = None
        self.sums: Tensor | None = None

    def before(self, indices: Tensor) -> None:
        """Catch up on the rows in `indices`, and watch for the sums that are made from them."""
        if indices.ndim != 2:
            raise ValueError(f"indices must have a row for each example, not {indices.ndim} axes")
        self.group, self.sums = self.engine.group(indices), None
        self.engine.catch_up(self.group, self.count, self.rate)

        def watch(_: nn.Module, inputs: tuple[Tensor], sums: Tensor) -> None:
            handle.remove()
            if torch.is_grad_enabled() and torch.equal(inputs[0], indices):
                self.sums = sums.requires_grad_()

        handle = self.embedding.register_forward_hook(watch)

    def step(self) -> None:
        """Move the rows of the last forward pass by the gradient that their sums have received."""
        if self.sums is None or self.sums.grad is None:
            raise RuntimeError("no gradient: a step is before(indices), forward, backward, step()")
        self.count += 1
        self.engine.update(self.group, self.sums.grad, self.count, self.rate)
        self.group = self.sums = None

    def finish(self) -> None:
        """Catch up on all rows."""
        self.engine.catch_up(None, self.count, self.rate)

    def state(self) -> dict[str, Any]:
        """Moments, each row's last step, and the number of steps."""
        return {"moments": self.moments, "last": self.last, "count": self.count}

    def load_state(self, state: dict[str, Any]) -> None:
        """Copy what `state` gave."""
        self.moments.copy_(state["moments"])
        self.last.copy_(state["last"])
        self.count = int(state["count"])
