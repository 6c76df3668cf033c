"""Training on what a mechanism releases: one loop, minibatch Adam, a mechanism in, metrics out.

The paper trains with minibatch Adam and says no more (appendix C). Batch size, number of epochs
and stopping rule are ours. Debiased losses are unbounded below, and run away when trained for
long; so training stops on the loss of *released* validation labels, evaluated with the logits
clamped, which bounds it. The training loss has no floor: one would bias it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from scipy import special
from tqdm import tqdm

from labelaudit.checks import Floats
from labelaudit.learning import bags, evaluation
from labelaudit.learning.models import Network
from labelaudit.learning.runs import Run
from labelaudit.learning.settings import Settings
from labelaudit.learning.streams import stream
from labelaudit.mechanisms import Mechanism

__all__ = ["Outcome", "Settings", "train"]

# Steps between two looks at the losses: each look waits for the device.
LOOK_EVERY = 256


@dataclass(frozen=True)
class Outcome:
    """A trained model and how it did. Metrics on test labels are nan without a test split."""

    auc: float
    log_loss: float
    validation_loss: float
    """On held-out released labels, logits clamped: what chose the epoch, and may choose a rate."""
    curve: list[dict[str, float]]
    """For each epoch: epoch, training_loss, validation_loss, auc, log_loss."""
    best_epoch: int
    """The epoch whose weights the model has, from 1; 0 if training diverged in the first."""
    epochs_run: int
    seconds: float
    dropped: int
    """Examples not used, because they do not fill a bag."""
    diverged: str | None
    """What went wrong, with step and learning rate; None if nothing did."""
    settings: Settings
    model: Network = field(repr=False)

    def predict(self, features: ArrayLike) -> Floats:
        """P(y = 1) for each row of features."""
        rows = bags.features(features, self.settings.buckets)
        if rows.shape[1] != self.model.shape.fields:
            raise ValueError(
                f"the model takes {self.model.shape.fields} features, not {rows.shape[1]}"
            )
        return special.expit(evaluation.logits(self.model, rows))


def train(
    split: Any,
    mechanism: Mechanism | None,
    settings: Settings,
    *,
    seed: int,
    test: Any = None,
    device: str = "auto",
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> Outcome:
    """Train on what `mechanism` releases of the labels of `split`; None trains on the labels.

    `split` and `test` have `.features` and `.labels`. Bags are drawn at random once and kept.
    Initialisation, bags, noise and shuffling have streams of their own, all from `seed`: the same
    seed gives the same weights. With a `checkpoint` file a killed run goes on where it stood, and
    ends as it would have. `test` is only measured, never used to choose.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from labelaudit.mechanisms import LabelProportions
    >>> x = np.random.default_rng(0).standard_normal((2000, 3))
    >>> data = SimpleNamespace(features=x, labels=x[:, 0] > 0)
    >>> settings = Settings("linear", learning_rate=0.03, batch_size=64, epochs=5)
    >>> outcome = train(data, LabelProportions(4), settings, seed=1, test=data)
    >>> outcome.auc > 0.98
    True
    """
    run = Run(split, mechanism, settings, seed, test, device, checkpoint)
    run.resume()
    state, n_batches = run.state, run.n_batches
    done = (state.epoch - 1) * n_batches + state.batch
    with tqdm(total=settings.epochs * n_batches, initial=done, disable=not progress) as bar:
        if progress and run.dropped:
            bar.write(f"{run.dropped} examples do not fill a bag of {run.bag_size}: not used")
        while not state.finished(settings):
            _run_epoch(run, bar)
            _end_epoch(run)
            run.save()
    return _outcome(run)


def _run_epoch(run: Run, bar: Any) -> None:
    """The training loop: every bag once, in the epoch's own random order."""
    model, optimiser, loss, state = run.model, run.optimiser, run.loss, run.state
    order = stream(run.seed, "shuffling", state.epoch).permutation(len(run.training))
    batches = torch.from_numpy(order).to(run.device).tensor_split(run.n_batches)
    while state.batch < run.n_batches:
        features, targets = run.training.batch(batches[state.batch])
        optimiser.before(features)
        optimiser.zero_grad()
        value = loss(model(features), targets)
        value.backward()
        optimiser.step()
        run.values[state.batch] = value.detach()
        state.batch += 1
        if state.batch % LOOK_EVERY == 0 or state.batch == run.n_batches:
            bar.update((state.epoch - 1) * run.n_batches + state.batch - bar.n)
            if not run.values[: state.batch].isfinite().all():
                break
            run.save_if_due()
    optimiser.finish()


def _end_epoch(run: Run) -> None:
    """Measure, keep the best weights, and notice divergence."""
    state, settings = run.state, run.settings
    values = run.values[: state.batch]
    wrong = (~values.isfinite()).nonzero()
    if len(wrong):
        batch = int(wrong[0])
        return _diverge(run, f"the loss became {values[batch]:g}", batch + 1)
    if not evaluation.finite(run.model):
        return _diverge(run, "the weights overflowed", state.batch)
    held_out = evaluation.validation_loss(run.model, run.loss, run.validation, settings.clamp)
    if run.validation is not None and not math.isfinite(held_out):
        return _diverge(run, f"the validation loss became {held_out:g}", state.batch)
    auc, log_loss = evaluation.measure(run.model, run.test)
    state.curve.append(
        {
            "epoch": state.epoch,
            "training_loss": values.mean().item(),
            "validation_loss": held_out,
            "auc": auc,
            "log_loss": log_loss,
        }
    )
    if settings.patience is None or state.best_epoch == 0 or held_out < state.best_loss:
        state.best_epoch, state.best_loss = state.epoch, held_out
        weights = run.model.state_dict()
        state.best_weights = {name: weights[name].clone() for name in weights}
    state.epoch, state.batch = state.epoch + 1, 0


def _diverge(run: Run, what: str, batch: int) -> None:
    """Note what went wrong, after so many batches of the epoch: the run is finished."""
    step = (run.state.epoch - 1) * run.n_batches + batch
    rate = f"{run.settings.learning_rate:g}"
    run.state.diverged = f"{what} at step {step} with learning rate {rate}: try a smaller one"


def _outcome(run: Run) -> Outcome:
    """The best weights, measured; divergence is said aloud."""
    state = run.state
    if state.best_weights is not None:
        run.model.load_state_dict(state.best_weights)
    if state.diverged is not None:
        warnings.warn(state.diverged, RuntimeWarning, stacklevel=3)
    kept = state.curve[state.best_epoch - 1] if state.best_epoch else {}
    return Outcome(
        auc=kept.get("auc", math.nan),
        log_loss=kept.get("log_loss", math.nan),
        validation_loss=state.best_loss,
        curve=state.curve,
        best_epoch=state.best_epoch,
        epochs_run=len(state.curve),
        seconds=state.seconds,
        dropped=run.dropped,
        diverged=state.diverged,
        settings=run.settings,
        model=run.model,
    )
