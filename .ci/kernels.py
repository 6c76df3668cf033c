"""Compile the inner loops before the tests start, each once.

The tests and the chapters' kernels are many processes. Where nothing is compiled yet, each of them
would compile the same loops at the same time. Here two processes do it, which have no loop in
common: one for large batches on several threads, one for small batches and for training.
"""

import subprocess
import sys
from pathlib import Path

from labelaudit import kernels

# numba keeps the loops below this folder, whose name has a digest of their sources.
DONE = Path(kernels._FOLDER) / "complete"
BATCH = """\
import numpy as np

import labelaudit as la

eta = np.random.default_rng(0).uniform(0.1, 0.9, ({n_bags}, 4))
releases = np.full({n_bags}, 0.5)
la.poisson_binomial.pmf(eta)
la.poisson_binomial.leave_one_out(eta)
for kind in (la.LabelProportions, la.GeometricProportions, la.LaplaceProportions):
    mechanism = kind(4) if kind is la.LabelProportions else kind(4, 1.0)
    la.posterior(eta, mechanism, releases)
    la.multiplicative_advantage(eta, mechanism, releases)
    la.additive_advantage(eta, mechanism)
    la.multiplicative_quantile(eta, mechanism, 0.98)
    la.multiplicative_cdf(eta, mechanism, 0.5)
"""
TRAINING = """\
import torch

from labelaudit import datasets
from labelaudit.learning.training import TrainingSettings, train

data = datasets.load("kdd12-like", train_rows=2000)
settings = TrainingSettings("small", loss="likelihood", epochs=1, buckets=data.buckets)
for threads in (2, 1):
    torch.set_num_threads(threads)
    train(data.train, la.LabelProportions(4), settings, seed=0)
"""


def main() -> int:
    """Compile what is not compiled yet; the status is that of a process that failed, or 0."""
    if DONE.is_file():
        return 0
    print("compiling the inner loops; this happens once and takes half a minute", flush=True)
    parts = [BATCH.format(n_bags=6000), BATCH.format(n_bags=6) + TRAINING]
    running = [subprocess.Popen([sys.executable, "-c", part]) for part in parts]
    status = max(process.wait() for process in running)
    if status == 0:
        DONE.parent.mkdir(parents=True, exist_ok=True)
        DONE.touch()
    return status


if __name__ == "__main__":
    sys.exit(main())
