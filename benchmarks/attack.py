"""The attacker against the ways people compute it today.

*Naive* is a loop over examples, each with its own leave-one-out Poisson binomial from
`fast-poibin`, the quickest library for one such law. *Batched numpy* is the forward-backward
pass over all bags at once that the tests use as a reference. Everything runs in one process,
so the ratios hold although the machine is noisy.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

import fast_poibin
import numpy as np

from benchmarks.tools import seconds
from labelaudit import (
    GeometricProportions,
    LabelProportions,
    additive_advantage,
    posterior,
)
from tests.reference import numpy_posterior

LAWS = {"Beta(2,30)": (2, 30), "Beta(2,2)": (2, 2)}
EXAMPLES = 1_000_000


def _bags(law: str, k: int, n_examples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    eta = rng.beta(*LAWS[law], size=(max(1, n_examples // k), k))
    return eta, (rng.random(eta.shape) < eta).mean(axis=1)


def naive_posterior(eta: np.ndarray, count: int) -> list[float]:
    """Posteriors of one bag, one example at a time."""
    result = []
    for i, prior in enumerate(eta):
        rest = fast_poibin.PoiBin(np.delete(eta, i)).pmf
        one = prior * rest[count - 1] if count else 0.0
        zero = (1 - prior) * rest[count] if count < len(eta) else 0.0
        result.append(one / (one + zero))
    return result


def naive_advantage(eta: np.ndarray, channel: np.ndarray) -> list[float]:
    """Additive advantages of one bag, one example at a time."""
    result = []
    for i, prior in enumerate(eta):
        rest = np.asarray(fast_poibin.PoiBin(np.delete(eta, i)).pmf)
        one, zero = prior * (rest @ channel[1:]), (1 - prior) * (rest @ channel[:-1])
        result.append(np.maximum(one, zero).sum() - max(prior, 1 - prior))
    return result


def _channel(mechanism: Any) -> np.ndarray:
    k = mechanism.bag_size
    columns = mechanism.likelihood(np.arange(k + 1) / k).T
    if np.isfinite(mechanism.epsilon):
        q = np.exp(-mechanism.epsilon)
        columns = columns * (1 - q) / (1 + q)
        columns[:, [0, k]] /= 1 - q
    return columns


def _row(work: str, k: int, law: str, peer: str, slow: float, fast: float, least: int) -> dict:
    row = {
        "work": work, "k": k, "law": law, "against": peer, "peer_ns": slow * 1e9,
        "ours_ns": fast * 1e9, "ratio": slow / fast, "least": least,
    }  # fmt: skip
    print(
        f"{work:22} k={k:<4} {law:11} {peer:14} {slow * 1e9:12,.0f} ns {fast * 1e9:8.1f} ns "
        f"{slow / fast:8,.0f}x  (least {least}x){'' if slow / fast >= least else '  SHORT'}"
    )
    return row


def _posterior_rows(law: str, k: int) -> list[dict]:
    eta, releases = _bags(law, k, EXAMPLES)
    mechanism = LabelProportions(k)
    ours = seconds(lambda: posterior(eta, mechanism, releases)) / eta.size
    bag, count = eta[0], round(float(releases[0]) * k)
    naive = seconds(lambda: naive_posterior(bag, count), 3) / k
    rows = [_row("posterior", k, law, "naive", naive, ours, 1000)]
    if k > 8:
        part, some = _bags(law, k, 64 * k)
        likelihood = mechanism.likelihood(some)
        batched = seconds(lambda: numpy_posterior(part, likelihood), 3) / part.size
        least = 10 if k == 64 else 15
        rows.append(_row("posterior", k, law, "batched numpy", batched, ours, least))
    return rows


def _advantage_row(law: str, mechanism: Any, name: str, least: int) -> dict:
    k = mechanism.bag_size
    eta, _ = _bags(law, k, EXAMPLES)
    ours = seconds(lambda: additive_advantage(eta, mechanism)) / eta.size
    channel, bag = _channel(mechanism), eta[0]
    naive = seconds(lambda: naive_advantage(bag, channel), 3) / k
    return _row(f"advantage, {name}", k, law, "naive", naive, ours, least)


def _memory_row() -> dict:
    """Peak memory of 11 million posteriors at k = 512 beyond the input, in a process of its own."""
    script = "import benchmarks.attack as attack; print(attack.peak_bytes())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    used = int(done.stdout)
    print(f"posterior of 11 million examples at k=512: {used / 1e9:.2f} GB beyond the input")
    return {"work": "memory, 11 million at k = 512", "bytes": used, "most": 2_000_000_000}


def peak_bytes() -> int:
    """Peak resident memory that the attack adds to what its input takes."""
    rng = np.random.default_rng(0)
    eta = rng.random((11_000_000 // 512, 512))
    releases = rng.binomial(512, 0.5, len(eta)) / 512
    # The compiler's own memory is not the attack's.
    posterior(eta[:1], LabelProportions(512), releases[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    posterior(eta, LabelProportions(512), releases)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def run() -> list[dict]:
    """The whole table."""
    rows = []
    for law in LAWS:
        for k in (8, 64, 512):
            rows += _posterior_rows(law, k)
        for k in (8, 64, 512):
            rows.append(_advantage_row(law, GeometricProportions(k, 1.0), "geometric", 200))
        rows.append(_advantage_row(law, LabelProportions(64), "LLP", 500))
    return [*rows, _memory_row()]
