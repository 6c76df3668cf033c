"""What the kernels have in common: reading a bag's priors, and the recursion over its count.

One fact carries it. Write P for the distribution of a bag's label count, P_i for the distribution
without example i, and eta_i for its prior. For any noise that is added to the count, with R and R_i
the distributions of the noisy count,

    R(z) = eta_i R_i(z - 1) + (1 - eta_i) R_i(z).

So the posterior b(z) = eta_i R_i(z - 1) / R(z) obeys

    b(z) = odds_i * R(z - 1) / R(z) * (1 - b(z - 1)).

R is log-concave, so odds_i R(z-1)/R(z) grows with z: run upwards while it is at most 1, and
downwards while it is above 1, the recursion shrinks every error it is handed. It never
subtracts nearly equal numbers, and costs one multiplication a step instead of a convolution.
Clipping two-sided geometric noise to 0..k loses nothing: below 0 and above k the release only
repeats what 0 and k say. All noise is two-sided geometric or Laplace, with q = exp(-epsilon)
the ratio of neighbouring terms; q = 0 is no noise at all.
"""

from labelaudit.kernels import compiled
from labelaudit.kernels.count import NEGLIGIBLE, TINY, count_pmf, noisy_pmf

# With a prior below this, a count of negligible probability can determine the shift at the next
# count, whose probability is not negligible. Then no count is left out.
FAINT = 1e-18


@compiled(any_order=True)
def _moments(eta, p, c, odds, member):
    """Copy a bag as if no label were known. Returns the number of known labels and the moments.

    The moments only decide whether to tilt, so their sums may be taken in any order.
    """
    known = 0
    mean = 0.0
    variance = 0.0
    for j in range(eta.size):
        value = eta[j]
        member[j] = j
        p[j] = value
        c[j] = 1.0 - value
        odds[j] = value / (1.0 - value)
        known += (value <= 0.0) | (value >= 1.0)
        mean += value
        variance += value * (1.0 - value)
    return known, mean, variance


@compiled()
def read_bag(eta, p, c, odds, member):
    """List the members whose label is unknown.

    Returns their number, the number of labels known to be 1, and the mean and variance of the count
    of the unknown labels.
    """
    known, mean, variance = _moments(eta, p, c, odds, member)
    if known == 0:
        return eta.size, 0, mean, variance
    n = 0
    ones = 0
    for j in range(eta.size):
        if eta[j] >= 1.0:
            ones += 1
        elif eta[j] > 0.0:
            p[n] = p[j]
            c[n] = c[j]
            odds[n] = odds[j]
            member[n] = j
            n += 1
    return n, ones, mean - ones, variance


@compiled()
def padded_pmf(p, c, n, floor, rows):
    """Distribution of the count, with one count more than its window, which noise may reach."""
    pmf, lo, hi = count_pmf(p, c, n, floor, rows)
    if hi < n:
        hi += 1
        pmf[hi] = max(floor * floor, 0.01 * TINY)
    return pmf, lo, hi


@compiled()
def release_pmf(p, c, n, q, rows, work, mass):
    """The distribution of the noisy count of n members, for `member_ratios`, without its scale.

    mass[z] becomes the probability of release z. Each end includes all releases beyond it, which
    have the same posteriors.
    """
    floor = NEGLIGIBLE
    for j in range(n):
        if p[j] < FAINT:
            floor = TINY
    pmf, lo, hi = padded_pmf(p, c, n, floor, rows)
    noisy_pmf(pmf, lo, hi, 0.0, q, q, work)
    noisy = work[lo + 1 : hi + 2]
    for z in range(noisy.size):
        inside = 0 < z < noisy.size - 1
        mass[z] = noisy[z] * (1.0 - q if inside else 1.0) / (1.0 + q)
    return noisy


@compiled()
def member_ratios(odds, pmf, first, last, ratios):
    """Likelihood ratios R_i(z - 1) / R_i(z) of one example for all z; `pmf` is R, unscaled.

    They are `first` and `last` at the two ends. The recursion runs upwards while it shrinks errors
    and the posterior is at most 0.9, and downwards from the top for the rest.
    """
    top = pmf.size - 1
    ratios[0] = first
    posterior = odds * first / (1.0 + odds * first)
    turn = 1
    while turn < top:
        step = odds * pmf[turn - 1] / pmf[turn]
        posterior = step * (1.0 - posterior)
        if not (step <= 1.0 and posterior <= 0.9):
            break
        ratios[turn] = posterior / ((1.0 - posterior) * odds)
        turn += 1
    ratios[top] = last
    other = 1.0 / (1.0 + odds * last)
    for z in range(top - 1, turn - 1, -1):
        other = min(pmf[z + 1] / pmf[z] / odds * (1.0 - other), 1.0)
        ratios[z] = (1.0 - other) / (other * odds)
