"""The distribution of a bag's label count, and of the count with noise."""

from labelaudit.kernels import compiled

N_CHUNKS = 64
# The least number of priors in a chunk: every chunk allocates memory to work in.
CHUNK_PRIORS = 256
# Counts less likely than this are left out: sixteen orders of magnitude for the digits of the
# result, and as many so that a recursion forgets the value it started with.
NEGLIGIBLE = 1e-36
# The floor where nothing may be left out: above 1e-300 every number keeps its full precision.
TINY = 1e-306


@compiled()
def n_chunks_of(eta):
    """The number of parts that threads work on, at least one."""
    return max(1, min(N_CHUNKS, eta.shape[0], eta.size // CHUNK_PRIORS))


@compiled()
def _trim(row, lo, hi, floor):
    """The window lo..hi of `row` without the ends that are below `floor`."""
    while row[lo] < floor and lo < hi:
        lo += 1
    while row[hi] < floor and lo < hi:
        hi -= 1
    return lo, hi


@compiled()
def count_pmf(p, c, n, floor, rows):
    """Distribution of the sum of n Bernoulli(p[j]), c = 1 - p, and the window that it fills.

    Four members a pass, from one row of `rows` (2 x at least n + 9) to the other. Entry s + 4
    of the returned row is P(count = s); those outside lo..hi + 4 are below `floor`, and unset.
    """
    source, target = rows[0], rows[1]
    source[:9] = 0.0
    source[4] = 1.0
    lo = 4
    hi = 4
    for j in range(0, n - 3, 4):
        a0, a1, a2 = c[j] * c[j + 1], p[j] * c[j + 1] + c[j] * p[j + 1], p[j] * p[j + 1]
        j += 2
        b0, b1, b2 = c[j] * c[j + 1], p[j] * c[j + 1] + c[j] * p[j + 1], p[j] * p[j + 1]
        w0, w1, w2 = a0 * b0, a0 * b1 + a1 * b0, a0 * b2 + a1 * b1 + a2 * b0
        w3, w4 = a1 * b2 + a2 * b1, a2 * b2
        source[lo - 4 : lo] = 0.0
        source[hi + 1 : hi + 5] = 0.0
        new = target[lo : hi + 5]
        s0, s1, s2 = source[lo : hi + 5], source[lo - 1 : hi + 4], source[lo - 2 : hi + 3]
        s3, s4 = source[lo - 3 : hi + 2], source[lo - 4 : hi + 1]
        for s in range(new.size):
            new[s] = w0 * s0[s] + w1 * s1[s] + w2 * s2[s] + w3 * s3[s] + w4 * s4[s]
        lo, hi = _trim(target, lo, hi + 4, floor)
        source, target = target, source
    for j in range(n - n % 4, n):
        source[lo - 1] = 0.0
        source[hi + 1] = 0.0
        for s in range(lo, hi + 2):
            target[s] = c[j] * source[s] + p[j] * source[s - 1]
        lo, hi = _trim(target, lo, hi + 1, floor)
        source, target = target, source
    return source[4:], lo - 4, hi - 4


@compiled()
def noisy_pmf(pmf, lo, hi, tau, left, right, noisy):
    """Distribution of the count plus noise, unscaled, on the grid tau + (lo - 1 .. hi).

    `left` and `right` are the noise's decays: noisy[j + 1] is the value at tau + j, that is
    sum_{s <= j} pmf[s] left^(tau + j - s) + sum_{s > j} pmf[s] right^(s - tau - j).
    """
    noisy[lo] = 0.0
    reach = left**tau
    run = 0.0
    for j in range(lo, hi + 1):
        run = run * left + pmf[j]
        noisy[j + 1] = run * reach
    if right > 0.0:
        reach = right ** (1.0 - tau)
        run = 0.0
        for j in range(hi - 1, lo - 2, -1):
            run = run * right + pmf[j + 1]
            noisy[j + 1] += run * reach


@compiled()
def run_sums(pmf, lo, hi, q, below, above):
    """below[j] = sum_{s <= j} pmf[s] q^(j-s) and above[j] = sum_{s >= j} pmf[s] q^(s-j), lo..hi.

    With t in [0, 1], the density of the count plus Laplace noise at j + t is below[j] q^t +
    above[j + 1] q^(1 - t), up to a factor.
    """
    run = 0.0
    for j in range(lo, hi + 1):
        run = run * q + pmf[j]
        below[j] = run
    run = 0.0
    above[hi + 1] = 0.0
    for j in range(hi, lo - 1, -1):
        run = run * q + pmf[j]
        above[j] = run
