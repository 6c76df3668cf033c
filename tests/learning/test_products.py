"""The faster routine for matrix products: only in training, only where it is exact, given back."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from labelaudit.learning import products, training

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def asked_for(monkeypatch):
    """The suite itself asks for torch's own products."""
    monkeypatch.setattr(products, "PRODUCTS", "auto")


def precision_in_training(monkeypatch, *, exact=True):
    """The precisions that the losses of a training see."""
    monkeypatch.setattr(products, "_is_exact", lambda precision: exact)
    seen = set()
    cross_entropy = training.LOSSES["cross_entropy"]

    def loss(*arguments):
        seen.add(torch.get_float32_matmul_precision())
        return cross_entropy(*arguments)

    monkeypatch.setitem(training.LOSSES, "cross_entropy", loss)
    features = np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32)
    split = SimpleNamespace(features=features, labels=features[:, 0] > 0)
    settings = training.TrainingSettings("linear", batch_size=32, epochs=1, patience=None)
    training.train(split, None, settings, seed=1)
    return seen


def test_training_takes_the_faster_products_and_gives_them_back(monkeypatch):
    assert precision_in_training(monkeypatch) == {"medium"}
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("why", ["not exact", "not asked for"])
def test_training_keeps_the_products_of_torch(monkeypatch, why):
    if why == "not asked for":
        monkeypatch.setattr(products, "PRODUCTS", "highest")
    assert precision_in_training(monkeypatch, exact=why != "not exact") == {"highest"}


def test_a_precision_that_the_caller_lowered_is_kept_and_restored(monkeypatch):
    monkeypatch.setattr(products, "_is_exact", lambda precision: True)
    torch.set_float32_matmul_precision("high")
    try:
        with products.fast_products(CPU):
            assert torch.get_float32_matmul_precision() == "high"
        with pytest.raises(ZeroDivisionError), products.fast_products(CPU):
            raise ZeroDivisionError
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_other_devices_keep_theirs():
    with products.fast_products(torch.device("meta")):
        assert torch.get_float32_matmul_precision() == "highest"


def test_a_processor_that_would_use_bfloat16_is_told_by_a_product(monkeypatch):
    assert products._is_exact.__wrapped__("highest")

    def multiply(left, right):
        if left.dtype == torch.float32:
            return torch.matmul(left.bfloat16(), right.bfloat16()).float()
        return torch.matmul(left, right)

    monkeypatch.setattr(torch.Tensor, "__matmul__", multiply)
    assert not products._is_exact.__wrapped__("medium")
    assert torch.get_float32_matmul_precision() == "highest"
