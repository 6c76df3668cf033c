"""Compiled code: the same numbers from any number of threads, and compiled only once."""

import os
import shutil
import subprocess
import sys

import numba
import numpy as np
import pytest
from commands import ROOT, run_python

from book.tools.checkout import Checkout
from labelaudit import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    additive_advantage,
    kernels,
    label_advantage,
    multiplicative_cdf,
    poisson_binomial,
    posterior,
)

MECHANISMS = (LabelProportions(40), GeometricProportions(40, 1.0), LaplaceProportions(40, 1.0))


def everything(n_bags=600):
    """Results for a batch that is large enough for threads."""
    rng = np.random.default_rng(0)
    eta = rng.beta(2, 30, (n_bags, 40))
    assert eta.size >= kernels.SMALL_BATCH
    labels = rng.random(eta.shape) < eta
    results = [poisson_binomial.pmf(eta), poisson_binomial.leave_one_out(eta[:20])]
    for mechanism in MECHANISMS:
        results.append(posterior(eta, mechanism, mechanism.release(labels, rng)))
        results.append(additive_advantage(eta, mechanism))
        results.append(label_advantage(eta, mechanism))
        results.append(multiplicative_cdf(eta, mechanism, np.linspace(0, 2, 9)))
    return results


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has a single thread")
def test_results_do_not_depend_on_the_number_of_threads():
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = everything()
        numba.set_num_threads(2)
        together = everything()
    finally:
        numba.set_num_threads(before)
    for first, second in zip(alone, together, strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize("n_bags", [130, 600])
def test_results_do_not_depend_on_the_rest_of_the_batch(n_bags):
    eta = np.random.default_rng(1).beta(2, 5, (n_bags, 40))
    for mechanism in MECHANISMS:
        whole = additive_advantage(eta, mechanism)
        assert np.array_equal(whole[[7]], additive_advantage(eta[[7]], mechanism))
        releases = np.full(n_bags, 0.25)
        whole = posterior(eta, mechanism, releases)
        assert np.array_equal(whole[[129]], posterior(eta[[129]], mechanism, releases[:1]))


# Prints whether numba has started its threads.
STARTED = """
import numpy as np, torch
torch.set_num_threads(1)
from types import SimpleNamespace
from numba.np.ufunc import parallel
from labelaudit import GeometricProportions, additive_advantage, posterior
from labelaudit.learning.training import TrainingSettings, train
mechanism = GeometricProportions(8, 1.0)
posterior(np.full((32, 8), 0.3), mechanism, np.full(32, 0.5))
additive_advantage(np.full((32, 8), 0.3), mechanism)
rng = np.random.default_rng(0)
for model, features in (
    ("linear", rng.random((30_000, 2))),
    ("kdd12", rng.integers(0, 100_000, (1000, 3))),
):
    split = SimpleNamespace(features=features, labels=rng.integers(0, 2, len(features)))
    settings = TrainingSettings(model, loss="likelihood", batch_size=25_000, epochs=1)
    train(split, mechanism, settings, seed=0)
print(parallel._is_initialized)
posterior(np.full((3200, 8), 0.3), mechanism, np.full(3200, 0.5))
print(parallel._is_initialized)
"""


def test_small_batches_and_a_training_on_one_thread_start_no_threads():
    assert run_python(STARTED).stdout.split() == ["False", "True"]


# Prints torch's number of threads before and after the first kernel with threads.
TORCH = """
import numpy as np, torch
from labelaudit import LabelProportions, posterior
torch.set_num_threads(1)
torch.ones(300, 300) @ torch.ones(300, 300)
posterior(np.full((3200, 8), 0.3), LabelProportions(8), np.full(3200, 0.5))
print(torch.get_num_threads())
"""


def test_kernels_leave_torch_its_number_of_threads():
    done = run_python(TORCH, env=os.environ | {"NUMBA_NUM_THREADS": "2"})
    assert done.stdout.split() == ["1"], done.stderr


def test_inputs_are_left_alone_and_may_have_any_layout():
    eta = np.random.default_rng(2).random((6, 8))
    kept = eta.copy()
    eta.setflags(write=False)
    plain = posterior(eta, LabelProportions(8), np.full(6, 0.5))
    assert np.array_equal(eta, kept)
    for layout in (np.asfortranarray(eta), np.repeat(eta, 2, axis=0)[::2], eta.astype(">f8")):
        assert np.array_equal(posterior(layout, LabelProportions(8), np.full(6, 0.5)), plain)


# Prints how many compilations were loaded from disk and how many were made afresh.
COUNT = """
import numpy as np
from labelaudit import LabelProportions, additive_advantage, poisson_binomial, posterior
eta = np.full((3, 4), 0.3)
posterior(eta, LabelProportions(4), [0.25] * 3)
additive_advantage(eta, LabelProportions(4))
poisson_binomial.pmf(eta)
from labelaudit.kernels import advantage, attack, poisson_binomial
loaded = made = 0
for module in (advantage, attack, poisson_binomial):
    for kernel in vars(module).values():
        kernel = getattr(kernel, "alone", kernel)
        if hasattr(kernel, "stats"):
            loaded += sum(kernel.stats.cache_hits.values())
            made += sum(kernel.stats.cache_misses.values())
print(loaded, made)
"""


def test_a_second_process_starts_warm():
    exec(COUNT, {})
    loaded, made = map(int, run_python(COUNT).stdout.split())
    assert loaded > 0 and made == 0


def test_a_checkout_made_of_links_shares_the_compiled_code(tmp_path):
    """numba keeps it by the path of its source, so chapters import the package by one path."""
    (tmp_path / "labelaudit").symlink_to(ROOT / "labelaudit")
    assert Checkout(tmp_path).package == ROOT / "labelaudit"


# A kernel of its own, which compiles in no time; says how often it was loaded and compiled.
TINY = """\
from labelaudit.kernels import compiled

@compiled()
def half(x):
    return x / 2

value = half(3.0)
print(value, sum(half.stats.cache_hits.values()), sum(half.stats.cache_misses.values()))
"""


def run_tiny(folder, **environment):
    """What the kernel prints, in a process that may keep code in `folder`."""
    (folder / "tiny.py").write_text(TINY)
    before = {name: os.environ[name] for name in os.environ if name != "XDG_CACHE_HOME"}
    done = subprocess.run(
        [sys.executable, folder / "tiny.py"],
        env=before | {name: str(environment[name]) for name in environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def truncate(content, rng):
    return content[: rng.integers(len(content))]


def flip(content, rng):
    changed = bytearray(content)
    changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def empty(content, rng):
    return b""


def zero(content, rng):
    first = rng.integers(len(content) - 20)
    return content[:first] + bytes(20) + content[first + 20 :]


# numba's index of a kernel, and its code.
@pytest.mark.parametrize(
    ("suffix", "damage"), [(".nbi", truncate), (".nbc", flip), (".nbi", zero), (".nbc", empty)]
)
def test_damaged_compiled_code_is_never_used_and_repairs_itself(tmp_path, suffix, damage):
    place = {"NUMBA_CACHE_DIR": tmp_path / "kept"}
    assert run_tiny(tmp_path, **place) == ["1.5", "0", "1"]
    [file] = (tmp_path / "kept").rglob(f"*{suffix}")
    sound = file.read_bytes()
    file.write_bytes(damage(sound, np.random.default_rng(7)))
    assert file.read_bytes() != sound
    assert run_tiny(tmp_path, **place) == ["1.5", "0", "1"], "compiled again"
    assert run_tiny(tmp_path, **place) == ["1.5", "1", "0"], "and kept again"


def unwritable_package(folder):
    """An installed package, a home and a temporary folder of which only the last can be written.

    The superuser may write everywhere; so files stand where folders would be made.
    """
    ignored = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(ROOT / "labelaudit", folder / "labelaudit", ignore=ignored)
    for place in (package / "kernels", folder):
        (place / "__pycache__").touch()
    (folder / "temporary").mkdir()
    return {
        "PYTHONPATH": folder,
        "NUMBA_CACHE_DIR": "",
        "HOME": os.devnull,
        "TMPDIR": folder / "temporary",
    }


def test_where_nothing_else_can_be_written_compiled_code_is_kept_in_a_folder_of_ones_own(tmp_path):
    place = unwritable_package(tmp_path)
    assert run_tiny(tmp_path, **place) == ["1.5", "0", "1"]
    assert run_tiny(tmp_path, **place) == ["1.5", "1", "0"]
    [own] = (tmp_path / "temporary").glob("labelaudit-*")
    assert own.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("taken", ["by a link", "by a folder that others can write"])
def test_code_of_somebody_else_in_the_temporary_folder_is_not_run(tmp_path, taken):
    place = unwritable_package(tmp_path)
    name = tmp_path / "temporary" / f"labelaudit-{os.getuid()}"
    strange = tmp_path / "strange"
    strange.mkdir()
    if taken == "by a link":
        name.symlink_to(strange)
    else:
        name.mkdir()
        name.chmod(0o777)
    assert run_tiny(tmp_path, **place) == ["1.5", "0", "1"]
    assert list(strange.iterdir()) == list(name.iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == [name], (
        "a fresh folder goes with its process"
    )


def test_a_user_without_a_home_can_use_the_package(tmp_path):
    homeless = "import pathlib\n\ndef home(): raise RuntimeError\n\npathlib.Path.home = home\n"
    (tmp_path / "sitecustomize.py").write_text(homeless)
    place = unwritable_package(tmp_path)
    assert run_tiny(tmp_path, **place) == ["1.5", "0", "1"]
