"""The distribution of a bag's count, to the last digits and into the far tails."""

import mpmath
import numpy as np
import pytest
from cases import BAGS, exact, relative_error
from reference import Bag, precise_pmf

from labelaudit import poisson_binomial

SMALLEST = mpmath.mpf("1e-300")


def worst_error(actual, truth):
    """The largest relative error over the probabilities of at least 1e-300."""
    assert len(actual) == len(truth)
    pairs = zip(actual, truth, strict=True)
    return max(relative_error(value, p) for value, p in pairs if p == 0 or p >= SMALLEST)


def binomial(n, p):
    """All binomial probabilities, by their ratios."""
    p = mpmath.mpf(float(p))
    terms = [(1 - p) ** n]
    for s in range(n):
        terms.append(terms[-1] * (n - s) / (s + 1) * p / (1 - p))
    return terms


@pytest.mark.parametrize("eta", BAGS, ids=str)
def test_pmf_and_leave_one_out_by_enumeration(eta):
    bag = Bag(exact(eta))
    assert worst_error(poisson_binomial.pmf(eta), bag.pmf) <= 1e-14
    for i, (p, pmf) in enumerate(zip(exact(eta), poisson_binomial.leave_one_out(eta), strict=True)):
        rest = bag.ones[i][1:] if p == 1 else [mass / (1 - p) for mass in bag.zeros[i][:-1]]
        assert worst_error(pmf, rest) <= 1e-14


@pytest.mark.parametrize("p", [0.5, 0.3, 0.01, 1e-9, 1 - 1e-9, 0.999])
@pytest.mark.parametrize("bag_size", [17, 512, 4096])
def test_pmf_of_a_homogeneous_bag_is_binomial(p, bag_size):
    actual = poisson_binomial.pmf(np.full(bag_size, p))
    assert worst_error(actual, binomial(bag_size, p)) <= 1e-12


@pytest.mark.parametrize("low, high", [(0.02, 0.9), (1e-9, 0.5), (1e-9, 1 - 1e-9)])
def test_pmf_of_a_large_bag_of_two_kinds(low, high):
    """Convolved binomials, at counts near the mean and far away; the members come shuffled."""
    eta = np.repeat([low, high], 2048)
    np.random.default_rng(0).shuffle(eta)
    actual = poisson_binomial.pmf(eta)
    first, second = binomial(2048, low), binomial(2048, high)
    checked = 0
    for s in round(eta.sum()) + np.array([-400, -100, -20, -5, 0, 5, 20, 100, 400]):
        least, most = max(0, s - 2048), min(s, 2048)
        truth = mpmath.fdot(first[least : most + 1], second[s - most : s - least + 1][::-1])
        if truth >= SMALLEST:
            assert relative_error(actual[s], truth) <= 1e-12
            checked += 1
    assert checked >= 5


@pytest.mark.parametrize("a, b", [(2, 30), (2, 2), (0.05, 0.05)])
def test_pmf_of_a_random_bag(a, b):
    eta = np.random.default_rng(1).beta(a, b, 300)
    assert worst_error(poisson_binomial.pmf(eta), precise_pmf(eta)) <= 1e-12


def test_pmf_where_a_likely_member_follows_an_unlikely_run():
    """What is below 1e-300 half-way can matter for what is above it in the end."""
    eta = [0.9e-9] * 34 + [0.01]
    assert worst_error(poisson_binomial.pmf(eta), precise_pmf(eta)) <= 1e-12
    assert worst_error(poisson_binomial.pmf(eta[::-1]), precise_pmf(eta)) <= 1e-12


@pytest.mark.parametrize("bag_size", [5, 40, 200])
def test_leave_one_out_of_a_random_bag(bag_size):
    rng = np.random.default_rng(bag_size)
    eta = rng.choice([1e-9, 1 - 1e-9, 0.5, 0.03, 0.0, 1.0, *rng.random(4)], bag_size)
    actual = poisson_binomial.leave_one_out(eta)
    for i in rng.choice(bag_size, 4, replace=False):
        assert worst_error(actual[i], precise_pmf(np.delete(eta, i))) <= 1e-12


def test_leading_axes_are_kept_and_an_empty_batch_is_legal():
    assert poisson_binomial.pmf(np.zeros((0, 3))).shape == (0, 4)
    assert poisson_binomial.leave_one_out(np.zeros((0, 3))).shape == (0, 3, 3)
    eta = np.random.default_rng(2).random((2, 3, 4))
    pmf, rest = poisson_binomial.pmf(eta), poisson_binomial.leave_one_out(eta)
    assert pmf.shape == (2, 3, 5)
    assert rest.shape == (2, 3, 4, 4)
    assert np.array_equal(pmf[1, 2], poisson_binomial.pmf(eta[1, 2]))
    assert np.array_equal(rest[1, 2], poisson_binomial.leave_one_out(eta[1, 2]))
    np.testing.assert_allclose(pmf.sum(axis=-1), 1, rtol=1e-14)


def test_known_labels_only_shift_the_count():
    assert poisson_binomial.pmf([1.0, 0.0, 1.0]).tolist() == [0, 0, 1, 0]
    assert poisson_binomial.leave_one_out([1.0, 0.0]).tolist() == [[1, 0], [0, 1]]
