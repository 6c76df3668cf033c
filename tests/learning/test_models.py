"""The networks: the shapes of the appendix, weights from the seed alone, refusals."""

import numpy as np
import pytest
import torch
from torch import nn

from labelaudit import datasets
from labelaudit.learning.models import MODELS, Shape, Standardise, build


def dense_layers(model):
    return [
        (layer.in_features, layer.out_features)
        for layer in model.modules()
        if isinstance(layer, nn.Linear)
    ]


def test_higgs_network_is_that_of_the_appendix():
    model = build("higgs", 28, seed=0)
    assert dense_layers(model) == [(28, 300), (300, 300), (300, 300), (300, 300), (300, 1)]
    assert sum(isinstance(layer, nn.ReLU) for layer in model.modules()) == 4
    assert isinstance(model.first, nn.Identity)


def test_kdd12_network_is_that_of_the_appendix():
    model = build("kdd12", datasets.load("kdd12-like"), seed=0)
    assert tuple(model.first.weight.shape) == (500_000, 50)
    assert dense_layers(model) == [(50, 100), (100, 50), (50, 1)]
    assert sum(isinstance(layer, nn.ReLU) for layer in model.modules()) == 2


@pytest.mark.parametrize("fields", [10, 11])
def test_embeddings_are_summed_over_the_row(fields):
    model = build("kdd12", Shape(fields, 40), seed=1)
    rows = torch.from_numpy(np.random.default_rng(0).integers(0, 40, (5, fields), dtype=np.int32))
    slow = torch.stack([sum(model.first.weight[index] for index in row) for row in rows])
    torch.testing.assert_close(model.first(rows), slow)
    assert model(rows).shape == (5,)


@pytest.mark.parametrize("name", MODELS)
def test_weights_come_from_the_seed_and_nothing_else(name):
    shape = Shape(28) if name == "higgs" else Shape(5, 30)
    before = torch.random.get_rng_state()
    first, again, other = build(name, shape, 3), build(name, shape, 3), build(name, shape, 4)
    assert torch.equal(torch.random.get_rng_state(), before)
    for weights, same_weights in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(weights, same_weights)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


def test_weights_have_the_stated_size():
    wide = build("higgs", 28, seed=0).dense[2]
    assert wide.weight.abs().max().item() <= (6 / 600) ** 0.5
    np.testing.assert_allclose(wide.weight.var().item(), 2 / 600, rtol=0.02)
    assert not wide.bias.any()
    embedding = build("kdd12", Shape(11, 2000), seed=0).first.weight
    np.testing.assert_allclose(embedding.var().item(), 0.1**2 / 12, rtol=0.02)


def test_a_long_batch_in_pieces_is_the_batch_at_once():
    model = build("higgs", 28, seed=0)
    rows = torch.randn(1300, 28, generator=torch.Generator().manual_seed(1))
    at_once = model.dense(rows).squeeze(1)
    torch.testing.assert_close(model(rows), at_once, rtol=1e-5, atol=1e-6)
    for value in (at_once, model(rows)):
        value.square().mean().backward()
    doubled = [weights.grad.clone() for weights in model.parameters()]
    model.zero_grad()
    model(rows).square().mean().backward()
    for both, pieces in zip(doubled, model.parameters(), strict=True):
        torch.testing.assert_close(both, 2 * pieces.grad, rtol=1e-4, atol=1e-6)


def test_standardise_is_nothing_until_fitted():
    layer = Standardise(2)
    rows = np.array([[1.0, 7.0], [3.0, 7.0]], dtype=np.float32)
    assert torch.equal(layer(torch.from_numpy(rows)), torch.from_numpy(rows))
    layer.fit(rows)
    assert layer(torch.from_numpy(rows)).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("name", "data", "seed", "word"),
    [
        ("hgigs", 28, 0, "a model is one of higgs, kdd12, small, linear, not 'hgigs'"),
        ("higgs", 27, 0, "28 measured features, not 27 features"),
        ("higgs", Shape(28, 100), 0, "not hashed indices"),
        ("kdd12", 11, 0, "number of buckets"),
        ("small", 0, 0, "at least 1, not 0"),
        ("small", 3, -1, "seed must be a whole number of at least 0, not -1"),
        ("linear", Shape(3, 0), 0, "buckets must be a whole number of at least 1, not 0"),
    ],
)
def test_what_does_not_fit_is_refused(name, data, seed, word):
    with pytest.raises(ValueError, match=word):
        build(name, data, seed)
