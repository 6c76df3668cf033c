"""Adam for networks with an embedding: dense Adam's result at the cost of the rows in use.

Dense Adam moves every row of an embedding at every step, long after its last gradient. But what a
row does without gradients is known in advance. With moments m and v after step `last`, the next n
steps move its weights by

    -rate * m * sum_{j=1..n} w_j / (sqrt(v) s_j + epsilon),
    w_j = beta1^j / (1 - beta1^(last + j)),   s_j^2 = beta2^j / (1 - beta2^(last + j)),

and fade m by beta1^n and v by beta2^n. So a row is left alone until it is read, and then catches
up. The summand is smooth in j, so that two well-chosen points (Gauss's, for the weights beta1^j)
give the sum to single precision; only after the very first steps are the terms added one by one.
torch's SparseAdam is another algorithm: there a row's moments wait for its next gradient.
"""

import functools
import math
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor, nn

from labelaudit.kernels import embedding_adam as kernels
from labelaudit.kernels.embedding_adam import BETA1, BETA2, EARLY, EPSILON, REACH

__all__ = ["Adam", "RowAdam", "tables"]


class Adam:
    """Torch's fused Adam for dense parameters, `RowAdam` for embeddings: one step at a time.

    A training step is `before(indices)`, forward, backward, `step()`. After `finish()` every
    weight is where dense Adam would have it: call it before evaluating or saving the model. An
    embedding is an `nn.EmbeddingBag` that sums; its gradients no longer pass through autograd. On
    any device but the processor all parameters are dense: there a step over all rows is quick.

    >>> model = nn.Sequential(nn.EmbeddingBag(1000, 4, mode="sum"), nn.Linear(4, 1))
    >>> optimiser = Adam(model, learning_rate=0.01)
    >>> indices = torch.tensor([[3, 1, 4], [1, 5, 9]])
    >>> optimiser.before(indices)
    >>> model(indices).sum().backward()
    >>> optimiser.step()
    """

    def __init__(self, model: nn.Module, learning_rate: float) -> None:
        if not 0.0 < learning_rate < math.inf:
            raise ValueError(f"the learning rate must be positive and finite, not {learning_rate}")
        embeddings = [
            layer
            for layer in model.modules()
            if isinstance(layer, nn.EmbeddingBag) and layer.weight.device.type == "cpu"
        ]
        self.rows = [RowAdam(embedding, learning_rate) for embedding in embeddings]
        lazy = {id(embedding.weight) for embedding in embeddings}
        every = model.named_parameters(remove_duplicate=False)
        if len(users := [name for name, weights in every if id(weights) in lazy]) > len(lazy):
            raise ValueError(f"an embedding must not share its weight, unlike {', '.join(users)}")
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
        """Take the embedding's weight out of autograd: the sums it makes carry the gradient.

        The weight also moves in memory, so a `state_dict` taken before stays as it was.
        """
        if embedding.mode != "sum" or embedding.max_norm or embedding.padding_idx is not None:
            raise ValueError(f"only a plain embedding that sums can be lazy, not {embedding}")
        self.embedding, self.rate, self.count = embedding, rate, 0
        weight = embedding.weight.requires_grad_(False)
        weight.data = _in_large_pages(weight)
        self.moments = _in_large_pages(weight.new_zeros((len(weight), 2, weight.shape[1])))
        self.last = torch.zeros(len(weight), dtype=torch.int32)
        # The kernels work on the tensors' own storage.
        self.arrays = [tensor.detach().numpy() for tensor in (weight, self.moments, self.last)]
        self.slot = np.full(len(weight), -1, np.int32)
        self.group: Any = None
        self.sums: Tensor | None = None

    def before(self, indices: Tensor) -> None:
        """Catch up on the rows in `indices`, and watch for the sums that are made from them."""
        if indices.ndim != 2:
            raise ValueError(f"indices must have a row for each example, not {indices.ndim} axes")
        self.group, self.sums = self._group(indices), None
        self._catch_up(self.group[0])

        def watch(_: nn.Module, inputs: tuple[Tensor], sums: Tensor) -> None:
            handle.remove()
            if torch.is_grad_enabled() and torch.equal(inputs[0], indices):
                self.sums = sums.requires_grad_()

        handle = self.embedding.register_forward_hook(watch)

    def _group(self, indices: Tensor) -> tuple[np.ndarray, ...]:
        """The rows in `indices`, each once, and the examples that use them."""
        flat = indices.contiguous().view(-1).numpy()
        if flat.size and not 0 <= flat.min() <= flat.max() < len(self.slot):
            wrong = flat.min() if flat.min() < 0 else flat.max()
            raise IndexError(f"indices must lie in 0..{len(self.slot) - 1}, not {wrong}")
        rows, starts, where, examples = np.empty((4, flat.size + 1), np.int32)
        n_rows = kernels.group(flat, indices.shape[1], self.slot, rows, starts, where, examples)
        return rows[:n_rows], starts[: n_rows + 1], examples

    def _catch_up(self, rows: np.ndarray) -> None:
        _threaded(kernels.catch_up, *self.arrays, rows, self.count, self.rate, tables())

    def step(self) -> None:
        """Move the rows of the last forward pass by the gradient that their sums have received."""
        if self.sums is None or self.sums.grad is None:
            raise RuntimeError("no gradient: a step is before(indices), forward, backward, step()")
        self.count += 1
        gradient = self.sums.grad.contiguous().numpy()
        _threaded(kernels.update, *self.arrays, *self.group, gradient, self.count, self.rate)
        self.group = self.sums = None

    def finish(self) -> None:
        """Catch up on all rows."""
        self._catch_up(np.arange(len(self.slot), dtype=np.int32))

    def state(self) -> dict[str, Any]:
        """Moments, each row's last step, and the number of steps."""
        return {"moments": self.moments, "last": self.last, "count": self.count}

    def load_state(self, state: dict[str, Any]) -> None:
        """Copy what `state` gave."""
        self.moments.copy_(state["moments"])
        self.last.copy_(state["last"])
        self.count = int(state["count"])


def _in_large_pages(tensor: Tensor) -> Tensor:
    """A copy in memory of numpy's, which asks Linux for large pages: scattered rows come sooner."""
    return torch.from_numpy(tensor.detach().numpy().copy())


@functools.cache
def tables() -> tuple[np.ndarray, ...]:
    """What a gap of n steps needs, in double precision: pairs, power, half, correction, scale.

    Row n of `pairs` is (w, beta2^j, w', beta2^j') for the two points j and j' that stand for the
    gap: sum_{i=1..n} beta1^i h(i) is w h(j) + w' h(j'), exactly for cubic h. `power[j]` is beta1^j,
    `half[j]` is beta2^(j/2); `correction[t]` and `scale[t]` are Adam's 1 / (1 - beta1^t) and
    1 / sqrt(1 - beta2^t) while t is early.
    """
    gaps, steps = np.arange(REACH + 1.0), np.arange(1.0, EARLY + REACH)
    pairs = np.zeros((REACH + 1, 4))
    for n in range(1, REACH + 1):
        pairs[n] = _two_points(gaps[1 : n + 1], BETA1 ** gaps[1 : n + 1])
    pairs[:, 1::2] = BETA2 ** pairs[:, 1::2]
    correction, scale = 1 / (1 - BETA1**steps), 1 / np.sqrt(1 - BETA2**steps)
    # There is no step 0: no row that has moments was last touched then.
    correction, scale = np.insert(correction, 0, np.nan), np.insert(scale, 0, np.nan)
    return pairs, BETA1**gaps, BETA2 ** (gaps / 2), correction, scale


def _two_points(at: np.ndarray, weights: np.ndarray) -> tuple[float, float, float, float]:
    """Gauss's rule for a sum of weights: the two points whose first four moments are the sum's."""
    total = weights.sum()
    mean = weights @ at / total
    if len(at) == 1:
        return total, mean, 0.0, mean
    variance = weights @ (at - mean) ** 2 / total
    skew = weights @ (at - mean) ** 3 / total / variance / 2
    reach = math.sqrt(skew**2 + variance)
    left, right = skew - reach, skew + reach
    fraction = right / (right - left)
    return total * fraction, mean + left, total * (1 - fraction), mean + right


def _threaded(kernel: Any, *arguments: Any) -> None:
    """Run a kernel on no more threads than torch may use."""
    allowed = torch.get_num_threads()
    if allowed == 1:
        kernel.alone(*arguments)
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(before, allowed))
    try:
        kernel(*arguments)
    finally:
        numba.set_num_threads(before)
