"""Training on what a mechanism releases: one loop of minibatch Adam, read from top to bottom.

The paper trains with minibatch Adam and says no more (appendix C); the rest is ours. Debiased
losses are unbounded below, and run away when trained for long. So training stops on the loss of
*released* validation labels with the logits clamped; a floor on the training loss would bias it.
"""

from __future__ import annotations

import hashlib
import io
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special
from torch import Tensor
from tqdm import tqdm

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.files import write_atomically
from labelaudit.learning import bags, losses
from labelaudit.learning.adam import Adam
from labelaudit.learning.bags import Bags, Examples
from labelaudit.learning.calibration import auc, log_loss
from labelaudit.learning.likelihood import Likelihood
from labelaudit.learning.models import KDD12_BUCKETS, MODELS, Network, Shape, Standardise, build
from labelaudit.learning.products import fast_products
from labelaudit.mechanisms import Mechanism

__all__ = ["Outcome", "TrainingSettings", "train"]

# The loss of a batch, from the logits of its members and the targets of its bags.
LOSSES: dict[str, Any] = {
    "cross_entropy": losses.matching_cross_entropy,
    "squared": losses.matching_squared,
    "easy_llp": losses.easy_llp,
    "centred_llp": losses.centred_llp,
    "likelihood": Likelihood,
}
# Every stored result was made with these numbers: a purpose may be added, no number changed.
STREAMS = {
    **{"initialisation": 0, "bags": 1, "noise": 2, "shuffling": 3},  # of a training
    **{"folds": 100, "rows": 101, "partitions": 102},  # of a sweep's advantages
}
# Steps between two checks of the losses: each check waits for the device.
CHECK_EVERY = 256
# Seconds between two checkpoints within an epoch.
CHECKPOINT_EVERY = 300.0
CHECKPOINT_VERSION = 1
# Examples in one forward pass of an evaluation.
TOGETHER = 8192


def stream(seed: int, purpose: str, *key: int) -> np.random.Generator:
    """The random numbers for one purpose; with a `key`, such as the epoch, a stream for each."""
    spawned = np.random.SeedSequence(seed, spawn_key=(STREAMS[purpose], *key))
    return np.random.default_rng(spawned)


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. Of these the paper gives the models, the loss and the learning rates.

    >>> settings = TrainingSettings("kdd12", learning_rate=5e-4, epochs=2)
    >>> settings.buckets, settings.batch_size
    (500000, 1024)
    """

    model: str = "small"
    """One of `models.MODELS`: "higgs" and "kdd12" are the paper's, "small" and "linear" ours."""
    loss: str = "cross_entropy"
    """How a bag's predictions are compared with what was released:

    - "likelihood": -log P(release). Use it unless you compare with the paper; the only one for a
      mechanism that cannot be debiased.
    - "cross_entropy": the mean prediction is matched to the debiased proportion. Use it to compare
      with the paper, whose loss it is.
    - "squared": the same with the squared error. Use it where noise makes the paper's loss run
      away: its gradients stay bounded.
    - "easy_llp": each member has a label made of the proportion. Use it for small bags, no noise.
    - "centred_llp": the same with a variance that does not grow with the bag. Use it in place of
      "easy_llp" for larger bags.
    """
    learning_rate: float = 1e-3
    """Adam's step; the paper searches eight from 1e-6 to 1e-2."""
    batch_size: int = 1024
    """The most examples in a batch. Batches hold whole bags, as evenly as possible."""
    epochs: int = 20
    """The most passes over the training bags."""
    patience: int | None = 3
    """Stop after this many epochs without a smaller validation loss, and return the weights of the
    best epoch; None trains all epochs and returns the last."""
    validation: float = 0.1
    """The fraction of bags held out from training; the same mechanism releases their labels."""
    clamp: float = 3.0
    """The largest absolute logit that the validation loss sees."""
    buckets: int | None = None
    """The bound of hashed indices, 500,000 for "kdd12"; None where features are measurements."""

    def __post_init__(self) -> None:
        for name, known in (("model", MODELS), ("loss", LOSSES)):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        for name in ("learning_rate", "clamp"):
            number = checks.real_number(getattr(self, name), name, 0, math.inf)
            if not 0 < number < math.inf:
                raise ValueError(f"{name} must be positive and finite, not {number}")
            object.__setattr__(self, name, number)
        if self.model == "kdd12" and self.buckets is None:
            object.__setattr__(self, "buckets", KDD12_BUCKETS)
        for name in ("batch_size", "epochs", "patience", "buckets"):
            value = getattr(self, name)
            if value is not None or name in ("batch_size", "epochs"):
                object.__setattr__(self, name, checks.whole_number(value, name))
        fraction = checks.real_number(self.validation, "validation", 0, 0.9)
        object.__setattr__(self, "validation", fraction)
        if fraction == 0 and self.patience is not None:
            raise ValueError("patience needs validation labels: with validation 0, set it to None")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A trained model and its measures. Those on test labels are nan without a test split."""

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
    settings: TrainingSettings
    model: Network = field(repr=False)

    def predict(self, features: ArrayLike) -> Floats:
        """P(y = 1) for each row of features."""
        rows = bags.features(features, self.settings.buckets)
        if rows.shape[1] != self.model.shape.fields:
            raise ValueError(
                f"the model takes {self.model.shape.fields} features, not {rows.shape[1]}"
            )
        return special.expit(logits(self.model, rows))


def train(
    split: Any,
    mechanism: Mechanism | None,
    settings: TrainingSettings,
    *,
    seed: int,
    test: Any = None,
    device: str = "auto",
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> Outcome:
    """Train on what `mechanism` releases of the labels of `split`; None trains on the labels.

    `split` and `test` have `.features` and `.labels`. Bags are drawn at random once and kept. The
    same `seed` gives the same weights. With a `checkpoint` file a killed run continues where it
    was, and ends as it would have. `test` is only measured, never used to choose.

    >>> from types import SimpleNamespace
    >>> from labelaudit.mechanisms import LabelProportions
    >>> x = np.random.default_rng(0).standard_normal((2000, 3))
    >>> data = SimpleNamespace(features=x, labels=x[:, 0] > 0)
    >>> settings = TrainingSettings("linear", learning_rate=0.03, batch_size=64, epochs=5)
    >>> outcome = train(data, LabelProportions(4), settings, seed=1, test=data)
    >>> outcome.auc > 0.98
    True
    """
    run = Run(split, mechanism, settings, seed, test, device, checkpoint)
    run.resume()
    state, n_batches = run.state, run.n_batches
    done = (state.epoch - 1) * n_batches + state.batch
    bar = tqdm(total=settings.epochs * n_batches, initial=done, disable=not progress)
    with fast_products(run.device), bar:
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
        if state.batch % CHECK_EVERY == 0 or state.batch == run.n_batches:
            bar.update((state.epoch - 1) * run.n_batches + state.batch - bar.n)
            if not run.values[: state.batch].isfinite().all():
                break
            if time.perf_counter() - run.saved > CHECKPOINT_EVERY:
                run.save()
    optimiser.finish()


def _end_epoch(run: Run) -> None:
    """Measure, keep the best weights, and notice divergence."""
    state, settings = run.state, run.settings
    values = run.values[: state.batch]
    wrong = (~values.isfinite()).nonzero()
    if len(wrong):
        first = int(wrong[0])
        return _diverge(run, f"the loss became {values[first]:g}", first + 1)
    if not all(bool(weights.isfinite().all()) for weights in run.model.parameters()):
        return _diverge(run, "the weights overflowed", state.batch)
    held_out = validation_loss(run.model, run.loss, run.validation, settings.clamp)
    if run.validation is not None and not math.isfinite(held_out):
        return _diverge(run, f"the validation loss became {held_out:g}", state.batch)
    measures = {"epoch": state.epoch, "training_loss": values.mean().item()}
    measures |= {"validation_loss": held_out, "auc": math.nan, "log_loss": math.nan}
    if run.test is not None:
        scores = logits(run.model, run.test.features)
        measures["auc"] = auc(run.test.labels, scores)
        measures["log_loss"] = log_loss(run.test.labels, scores)
    state.curve.append(measures)
    if settings.patience is None or state.best_epoch == 0 or held_out < state.best_loss:
        state.best_epoch, state.best_loss = state.epoch, held_out
        weights = run.model.state_dict()
        state.best_weights = {name: weights[name].clone() for name in weights}
    state.epoch, state.batch = state.epoch + 1, 0


def _diverge(run: Run, what: str, batch: int) -> None:
    """Note what went wrong after `batch` batches of the epoch: the run is finished."""
    step = (run.state.epoch - 1) * run.n_batches + batch
    rate = f"{run.settings.learning_rate:g}"
    run.state.diverged = f"{what} at step {step} with learning rate {rate}: try a smaller one"


def _outcome(run: Run) -> Outcome:
    """The best weights with their measures; a run that diverged gives a warning too."""
    state, best = run.state, {"auc": math.nan, "log_loss": math.nan}
    if state.best_weights is not None:
        run.model.load_state_dict(state.best_weights)
        best = state.curve[state.best_epoch - 1]
    if state.diverged is not None:
        warnings.warn(state.diverged, RuntimeWarning, stacklevel=3)
    return Outcome(
        auc=best["auc"],
        log_loss=best["log_loss"],
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


@dataclass(kw_only=True)
class State:
    """How far a run is: after `batch` batches of epoch `epoch`."""

    epoch: int = 1
    batch: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    best_loss: float = math.nan
    best_weights: dict[str, Tensor] | None = None
    curve: list[dict[str, float]] = field(default_factory=list)
    diverged: str | None = None

    def finished(self, settings: TrainingSettings) -> bool:
        """Whether nothing is left to do."""
        waited = len(self.curve) - self.best_epoch
        impatient = settings.patience is not None and waited >= settings.patience
        return self.diverged is not None or self.epoch > settings.epochs or impatient


class Run:
    """All that one run works with. Every input is checked before anything is trained."""

    def __init__(
        self,
        split: Any,
        mechanism: Mechanism | None,
        settings: TrainingSettings,
        seed: int,
        test: Any,
        device: str,
        checkpoint: str | Path | None,
    ) -> None:
        if not isinstance(settings, TrainingSettings):
            raise TypeError(f"settings must be TrainingSettings(...), not {settings!r}")
        self.settings, self.seed = settings, checks.whole_number(seed, "seed", least=0)
        self.bag_size = 1 if mechanism is None else checks.bag_size(mechanism)
        if self.bag_size > settings.batch_size:
            raise ValueError(
                f"batch_size must hold a whole bag of {self.bag_size}, not {settings.batch_size}"
            )
        self.device = _device(device)
        data = bags.examples(split, settings.buckets, "the training split")
        self.test = (
            None if test is None else bags.examples(test, settings.buckets, "the test split")
        )
        self.dropped, fields = len(data) % self.bag_size, data.features.shape[1]
        if self.test is not None and (actual := self.test.features.shape[1]) != fields:
            raise ValueError(f"the test split has {actual} features, the training split {fields}")
        self.model = _model(settings, data, seed).to(self.device)
        self.optimiser = Adam(self.model, settings.learning_rate)
        self.loss: losses.Loss = LOSSES[settings.loss]
        encode: Callable[[Floats], Tensor] = partial(bags.debiased, mechanism=mechanism)
        if settings.loss == "likelihood":
            self.loss = likelihood = Likelihood(mechanism, self.device)
            encode = likelihood.targets
        rngs = stream(seed, "bags"), stream(seed, "noise")
        self.training, self.validation = bags.draw(
            data, mechanism, settings.validation, self.device, *rngs, encode
        )
        if settings.loss in ("easy_llp", "centred_llp"):
            prior = self.training.targets.double().mean().item()
            self.loss = partial(LOSSES[settings.loss], prior=prior)
        self.n_batches = math.ceil(len(self.training) / (settings.batch_size // self.bag_size))
        self.values = torch.zeros(self.n_batches, device=self.device)
        self.state = State()
        self.checkpoint, self.identity = None, dict[str, Any]()
        # A digest reads all data once more, which only a checkpoint needs.
        if checkpoint is not None:
            self.checkpoint = _writable(checkpoint)
            self.identity = {
                "settings": asdict(settings),
                "mechanism": repr(mechanism),
                "seed": self.seed,
                "training data": data.digest(),
                "test data": None if self.test is None else self.test.digest(),
            }
        self.started = self.saved = time.perf_counter()

    def resume(self) -> None:
        """Continue from the checkpoint, if there is one; that of another run is an error."""
        path = self.checkpoint
        try:
            # Another sweep may remove it at any moment.
            sealed = None if path is None else path.read_bytes()
        except FileNotFoundError:
            sealed = None
        if sealed is None:
            return
        try:
            content = torch.load(_unsealed(sealed), map_location=self.device, weights_only=True)
            identity = {"version": content["version"], **content["identity"]}
        except Exception as error:
            raise ValueError(
                f"{path} is not a checkpoint of a training run: {error}; remove it to begin again"
            ) from error
        for name, value in {"version": CHECKPOINT_VERSION, **self.identity}.items():
            if (actual := identity.get(name)) != value:
                difference = f"its {name} is {actual!r}, not {value!r}"
                raise ValueError(f"{path} is the checkpoint of another run: {difference}")
        saved = content["state"]
        self.model.load_state_dict(saved["model"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.values.copy_(saved["values"])
        self.state = State(**saved["state"])
        self.started -= self.state.seconds

    def save(self) -> None:
        """Note the time, and write the checkpoint if one is wanted.

        Rows of embeddings are not brought up to date for it, which would round differently.
        """
        self.saved = time.perf_counter()
        self.state.seconds = self.saved - self.started
        if self.checkpoint is not None:
            state = {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "values": self.values,
                "state": vars(self.state),
            }
            content = {"version": CHECKPOINT_VERSION, "identity": self.identity, "state": state}
            packed = io.BytesIO()
            torch.save(content, packed)
            write_atomically(self.checkpoint, _sealed(packed.getvalue()))


def _sealed(content: bytes) -> bytes:
    """A checkpoint's bytes behind a checksum: torch reads damaged numbers without a complaint."""
    return hashlib.sha256(content).digest() + content


def _unsealed(sealed: bytes) -> io.BytesIO:
    start = hashlib.sha256().digest_size
    if _sealed(sealed[start:]) != sealed:
        raise ValueError("its checksum is wrong")
    return io.BytesIO(sealed[start:])


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be auto, cpu or cuda where there is one: {error}") from None
    return device


def _model(settings: TrainingSettings, data: Examples, seed: int) -> Network:
    """The network before its first step; measurements are standardised by at most 200,000 rows."""
    shape = Shape(data.features.shape[1], settings.buckets)
    model = build(settings.model, shape, int(stream(seed, "initialisation").integers(2**63)))
    if isinstance(model.first, Standardise):
        model.first.fit(data.features[:: max(1, len(data) // 100_000)])
    return model


def _writable(path: str | Path) -> Path:
    """A file that can be written, its folder created if missing: checked before training begins."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"checkpoint {file} cannot be written: {error.strerror}") from None
    if file.is_dir():
        raise ValueError(f"checkpoint {file} is a folder, not a file")
    return file


@torch.inference_mode()
def logits(model: Network, features: NDArray[Any]) -> Floats:
    """The model's logits for checked features, which need not fit on its device."""
    device = next(model.parameters()).device
    values = np.empty(len(features))
    for start in range(0, len(features), TOGETHER):
        block = torch.from_numpy(np.array(features[start : start + TOGETHER])).to(device)
        values[start : start + TOGETHER] = model(block).double().cpu().numpy()
    return values


@torch.inference_mode()
def validation_loss(
    model: Network, loss: losses.Loss, validation: Bags | None, clamp: float
) -> float:
    """The mean loss of released validation labels with logits clamped; nan without any."""
    if validation is None:
        return math.nan
    total = torch.zeros((), dtype=torch.float64, device=validation.device)
    indices = torch.arange(len(validation), device=validation.device)
    for chosen in indices.split(max(1, TOGETHER // validation.bag_size)):
        features, targets = validation.batch(chosen)
        total += len(chosen) * loss(model(features).clamp(-clamp, clamp), targets)
    return total.item() / len(validation)
