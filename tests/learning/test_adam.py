"""The lazy Adam of embedding rows against dense Adam in double precision on the same gradients."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
from torch import nn  # noqa: E402

from labelaudit.learning import adam  # noqa: E402

N_ROWS, DIMENSION, FIELDS, BATCH = 100, 6, 3, 8
RATE = 1e-2


def _embedding(seed: int = 0) -> nn.EmbeddingBag:
    embedding = nn.EmbeddingBag(N_ROWS, DIMENSION, mode="sum")
    with torch.no_grad():
        embedding.weight.uniform_(-0.05, 0.05, generator=torch.Generator().manual_seed(seed))
    return embedding


def _stream(steps: int, seed: int = 1):
    """Skewed indices, so that gaps have every length, and gradients from 1e-9 to 1."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        indices = np.minimum(rng.zipf(1.3, (BATCH, FIELDS)) - 1, N_ROWS // 2 - 1)
        scale = 10.0 ** rng.uniform(-9, 0, (BATCH, 1))
        gradient = rng.standard_normal((BATCH, DIMENSION)) * scale
        yield torch.from_numpy(indices), torch.from_numpy(gradient)


def _step(optimiser, embedding, indices, gradient) -> None:
    """One step whose gradient does not depend on the weights."""
    optimiser.before(indices)
    embedding(indices).backward(gradient.float())
    optimiser.step()


def _dense(stream, count: int = 0, moments=None, weight=None) -> np.ndarray:
    """Textbook Adam on every row, in double precision."""
    weight = (_embedding().weight if weight is None else weight).detach().double().numpy().copy()
    first, second = moments or (np.zeros_like(weight), np.zeros_like(weight))
    for step, (indices, gradient) in enumerate(stream, start=count + 1):
        total = np.zeros_like(weight)
        for field in indices.numpy().T:
            np.add.at(total, field, gradient.float().double().numpy())
        first = 0.9 * first + 0.1 * total
        second = 0.999 * second + 0.001 * total**2
        root = np.sqrt(second / (1 - 0.999**step))
        weight -= RATE * first / (1 - 0.9**step) / (root + 1e-8)
    return weight


def _lazy(embedding) -> adam.Adam:
    return adam.Adam(nn.Sequential(embedding, nn.Linear(DIMENSION, 1)), RATE)


def _error(embedding, weight: np.ndarray) -> float:
    return float(np.abs(embedding.weight.detach().numpy() - weight).max())


def test_open_loop_equals_dense_adam():
    embedding = _embedding()
    optimiser = _lazy(embedding)
    for indices, gradient in _stream(200):
        _step(optimiser.rows[0], embedding, indices, gradient)
    optimiser.finish()
    assert _error(embedding, _dense(_stream(200))) < 1e-6


@pytest.mark.parametrize(
    "last", [1, 2, 50, adam.EARLY - 1, adam.EARLY, adam.EARLY + 1, 5_000, 10**6]
)
@pytest.mark.parametrize("gap", [1, 2, 3, 17, adam.REACH - 1, adam.REACH + 1, 2_000])
def test_a_gap_equals_its_steps_one_by_one(last, gap):
    """Moments over twenty orders of magnitude, so that epsilon matters, dominates, or neither."""
    embedding = _embedding()
    optimiser = _lazy(embedding).rows[0]
    rng = np.random.default_rng(last + gap)
    root = 10.0 ** rng.uniform(-12, 0, (N_ROWS, DIMENSION))
    optimiser.moments[:, 0] += torch.from_numpy(root * rng.standard_normal(root.shape)).float()
    optimiser.moments[:, 1] += torch.from_numpy(root**2).float()
    optimiser.last += last
    optimiser.count = last + gap
    start = embedding.weight.detach().double().numpy().copy()
    first, second = (
        optimiser.moments[:, 0].double().numpy(),
        optimiser.moments[:, 1].double().numpy(),
    )
    steps = np.arange(1.0, gap + 1)[:, None, None]
    pace = RATE * 0.9**steps / (1 - 0.9 ** (last + steps))
    spread = np.sqrt(second * 0.999**steps / (1 - 0.999 ** (last + steps)))
    motion = first * (pace / (spread + 1e-8)).sum(axis=0)
    optimiser.finish()
    moved = embedding.weight.detach().double().numpy() - start
    assert np.all(np.abs(moved + motion) <= 6e-7 * np.abs(motion) + 1e-8 + 1e-7 * np.abs(start))
    np.testing.assert_allclose(optimiser.moments[:, 1], second * 0.999**gap, rtol=3e-7, atol=1e-20)
    np.testing.assert_allclose(optimiser.moments[:, 0], first * 0.9**gap, rtol=3e-7, atol=1e-20)


def test_rows_never_used_never_move():
    embedding = _embedding()
    before = embedding.weight.detach().clone()
    optimiser = _lazy(embedding)
    for indices, gradient in _stream(50):
        _step(optimiser.rows[0], embedding, indices, gradient)
    optimiser.finish()
    assert torch.equal(embedding.weight[N_ROWS // 2 :], before[N_ROWS // 2 :])
    assert not torch.equal(embedding.weight[: N_ROWS // 2], before[: N_ROWS // 2])


@pytest.mark.parametrize("finished", [True, False])
def test_saved_and_restored_goes_on_as_if_unbroken(finished):
    """With or without bringing the rows up to date first, to the last bit."""
    torch.manual_seed(0)
    model = nn.Sequential(_embedding(), nn.Linear(DIMENSION, 1))
    stream = list(_stream(60))

    def train(model, optimiser, part):
        for indices, _ in part:
            optimiser.before(indices)
            optimiser.zero_grad()
            model(indices).square().sum().backward()
            optimiser.step()

    optimiser = adam.Adam(model, RATE)
    train(model, optimiser, stream[:30])
    if finished:
        optimiser.finish()
    saved = copy.deepcopy((model.state_dict(), optimiser.state_dict()))
    train(model, optimiser, stream[30:])
    optimiser.finish()
    other = nn.Sequential(_embedding(seed=9), nn.Linear(DIMENSION, 1))
    restored = adam.Adam(other, RATE)
    other.load_state_dict(saved[0])
    restored.load_state_dict(saved[1])
    train(other, restored, stream[30:])
    restored.finish()
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_whole_model_follows_torchs_adam():
    torch.manual_seed(0)
    model = nn.Sequential(_embedding(), nn.Linear(DIMENSION, 1))
    twin = copy.deepcopy(model)
    lazy, dense = adam.Adam(model, RATE), torch.optim.Adam(twin.parameters(), lr=RATE)
    for indices, _ in _stream(20):
        lazy.before(indices)
        for network, optimiser in ((model, lazy), (twin, dense)):
            optimiser.zero_grad()
            (network(indices) - 1.0).square().mean().backward()
            optimiser.step()
    lazy.finish()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=0, atol=2e-5)


def test_a_model_without_embedding_needs_no_indices():
    model = nn.Linear(4, 1)
    optimiser = adam.Adam(model, RATE)
    before = model.weight.detach().clone()
    optimiser.before(torch.zeros(2, 4))
    model(torch.ones(2, 4)).sum().backward()
    optimiser.step()
    optimiser.finish()
    torch.testing.assert_close(model.weight.detach(), before - RATE, rtol=0, atol=1e-6)


def test_elsewhere_than_on_the_processor_every_parameter_is_torchs():
    model = nn.Sequential(_embedding(), nn.Linear(DIMENSION, 1)).to("meta")
    optimiser = adam.Adam(model, RATE)
    [group] = optimiser.dense.param_groups
    assert not optimiser.rows and len(group["params"]) == len(list(model.parameters()))
    assert all(weights.requires_grad for weights in model.parameters())


def test_misuse_is_refused():
    embedding = _embedding()
    optimiser = _lazy(embedding).rows[0]
    with pytest.raises(RuntimeError, match="before"):
        optimiser.step()
    optimiser.before(torch.tensor([[1, 2]]))
    embedding(torch.tensor([[1, 3]]))
    with pytest.raises(RuntimeError, match="before"):
        optimiser.step()
    with pytest.raises(IndexError, match=f"0..{N_ROWS - 1}"):
        optimiser.before(torch.tensor([[N_ROWS]]))
    with pytest.raises(ValueError, match="axes"):
        optimiser.before(torch.tensor([1, 2]))
    for rate in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="learning rate"):
            adam.Adam(nn.Linear(2, 1), rate)
    with pytest.raises(ValueError, match="sums"):
        adam.Adam(nn.EmbeddingBag(10, 2, mode="mean"), RATE)
    tied = nn.ModuleList([_embedding(), _embedding()])
    tied[1].weight = tied[0].weight
    with pytest.raises(ValueError, match=r"unlike 0\.weight, 1\.weight"):
        adam.Adam(tied, RATE)
    with pytest.raises(ValueError, match="embeddings"):
        adam.Adam(nn.Linear(2, 1), RATE).load_state_dict({"dense": {}, "rows": [{}]})
