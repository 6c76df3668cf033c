"""Audit how much a release of private labels helps an attacker guess them.

The executable companion to *Auditing Privacy Mechanisms via Label Inference Attacks*. Every
mechanism of the paper is a noisy channel on a bag's label count, so one exact attacker works for
all of them.

>>> from labelaudit import LabelProportions, additive_advantage, posterior
>>> eta = [[0.1, 0.4, 0.7]]
>>> posterior(eta, LabelProportions(3), [1 / 3]).round(3).tolist()
[[0.036, 0.214, 0.75]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelaudit import poisson_binomial, priors
from labelaudit.advantage import (
    additive_advantage,
    label_advantage,
    multiplicative_advantage,
    worth,
)
from labelaudit.attack import (
    bayes_guess,
    likelihood_ratios,
    log_evidence,
    posterior,
    posterior_and_shift,
)
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.estimates import (
    Estimate,
    advantage_with_known_members,
    expected_advantage,
    expected_worth,
    high_probability_advantage,
    realised_advantage,
    sampled_advantage,
)
from labelaudit.mechanisms import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    NoRelease,
    RandomizedResponse,
)
from labelaudit.redrawn import Redrawn, redrawn_attack
from labelaudit.repeated import Repeated

if TYPE_CHECKING:
    from labelaudit import bounds, design, multiclass

    # Loaded by `__getattr__` from `report`, which stands above what is here.
    audit: Any

__all__ = ["CountChannel", "Estimate", "GeometricProportions", "LabelProportions"]
__all__ += ["LaplaceProportions", "Mechanism", "NoRelease", "RandomizedResponse", "Redrawn"]
__all__ += ["Repeated"]
__all__ += ["additive_advantage", "advantage_with_known_members", "audit", "bayes_guess", "bounds"]
__all__ += ["design", "expected_advantage", "expected_worth", "high_probability_advantage"]
__all__ += ["label_advantage", "likelihood_ratios", "log_evidence", "multiclass"]
__all__ += ["multiplicative_advantage", "multiplicative_cdf", "multiplicative_quantile"]
__all__ += ["poisson_binomial", "posterior", "posterior_and_shift", "priors", "realised_advantage"]
__all__ += ["redrawn_attack", "sampled_advantage", "worth"]


def __getattr__(name: str) -> Any:
    """Load these on first use: the other functions do without them."""
    if name == "audit":
        return import_module("labelaudit.auditing").audit
    if name in ("bounds", "design", "multiclass"):
        return import_module(f"labelaudit.{name}")
    raise AttributeError(f"module 'labelaudit' has no attribute {name!r}")
