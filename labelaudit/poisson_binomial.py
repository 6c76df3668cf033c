"""The Poisson binomial: the distribution of a bag's label count, a sum of Bernoulli trials."""

from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats

__all__ = ["leave_one_out", "pmf"]


def pmf(eta: ArrayLike) -> Floats:
    """P(count = s) for s = 0..k, for priors of shape (..., k); the result is (..., k + 1).

    Sums of positive terms only, so the relative error stays near k units in the last place down
    to probabilities of 1e-300.

    >>> pmf([0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    from labelaudit.kernels.poisson_binomial import count_pmfs

    priors = checks.members(eta)
    k = priors.shape[-1]
    flat = checks.kernel_ready(priors.reshape(-1, k))
    return count_pmfs(flat).reshape(*priors.shape[:-1], k + 1)


def leave_one_out(eta: ArrayLike) -> Floats:
    """P(count of the others = s) for each member: (..., k) to (..., k, k).

    Entry [..., i, s] is for the bag without member i. It follows from the whole bag's distribution
    by the posterior recursion, at the relative precision of `pmf`.

    >>> leave_one_out([0.5, 0.25]).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    from labelaudit.kernels import poisson_binomial as kernels

    priors = checks.members(eta)
    k = priors.shape[-1]
    flat = checks.kernel_ready(priors.reshape(-1, k))
    return kernels.leave_one_out(flat).reshape(*priors.shape, k)
