"""What the workers of the sweeps under test do: small runs in a module that imports quickly."""

import itertools
import math
import os
import time

CALLS = itertools.count()


def constant(data, configuration):
    """A run that takes no time and whose result is a function of its configuration."""
    return {
        **{"auc": 0.6 + configuration["seed"] / 1e5, "log_loss": 0.6, "validation_loss": 0.7},
        **{"best_epoch": 1, "epochs_run": 1, "dropped": 0, "diverged": None},
        **{"seconds": 0.01, "cpu_seconds": 0.01, "curve": []},
    }


def slow(data, configuration):
    time.sleep(0.03)
    return constant(data, configuration)


def failing(data, configuration):
    if configuration["trial"] == 1:
        raise MemoryError("out of memory")
    return constant(data, configuration)


def endless(data, configuration):
    """Only the first run of each process ends."""
    if next(CALLS):
        time.sleep(3600)
    return constant(data, configuration)


def deadly(data, configuration):
    """The work of which workers die, but for one run in four."""
    if configuration["trial"] == 0:
        return constant(data, configuration)
    os._exit(1)


def threads(values, configuration):
    """The threads that torch may use in this worker, and the sum of the values it was sent."""
    import torch

    return {"threads": torch.get_num_threads(), "sum": float(values.sum())}


def valley(data, configuration):
    """A run whose validation loss is least at a learning rate that depends on the loss."""
    rate, loss = configuration["settings"]["learning_rate"], configuration["settings"]["loss"]
    best = {"cross_entropy": 1e-3, "squared": 0.05, "easy_llp": 1e-9}[loss]
    return constant(data, configuration) | {"validation_loss": abs(math.log(rate / best))}
