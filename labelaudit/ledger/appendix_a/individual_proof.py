"""The proof of Theorem 3.4, the bound on the individual advantage of label aggregation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.spread import sum_bound
from labelaudit.ledger.appendix_a.tools import BESSEL_CONSTANT, Smallest, differences
from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"


@statement(
    "T3.4-range",
    1026,
    "IEAdv(x_{k+1}) <= mu_{k+1} E sum_{s=0}^k |P(Z_k=s) - P(Z_k=s-1)|",
    chapter=CHAPTER,
    mutants=[{"last": 1}],
)
def range_of_the_sum(search: Search, last: int = 0) -> Finding:
    """Proof of Theorem 3.4: the sum must run to k + 1, as in (eq:exp_factor)."""
    slack = Smallest()
    for k in range(1, search.pick(7, 13)):
        steps = differences(exact.binomial(k, HALF))[: k + 1 + last]
        bound = Fraction(1, 4) * sum(map(abs, steps))
        slack.see(
            [bound - exact.independent_advantage_fraction(HALF, k + 1)], [f"k = {k}, eta = 1/2"]
        )
    pair = exact.independent_advantage_fraction(HALF, 2)
    return Finding(
        "misprint" if slack.value < 0 else "holds",
        f"Two fair coins (k = 1): IEAdv = {pair}, but the sum over s = 0, 1 gives 1/4 * (1/2 + 0) "
        "= 1/8. With the term s = 2 it is 1/4 * (1/2 + 0 + 1/2) = 1/4, equality."
        if slack.value < 0
        else f"The smallest slack is {slack}.",
        f"eta = 1/2, k up to {k}, exact",
        mended="the sum runs over s = 0, ..., k+1, as in the factorisation it quotes"
        if slack.value < 0
        else None,
    )


def printed_roots(k: Any, mu: Any, power: float) -> tuple[Any, Any]:
    """The two roots of the display at line 1030 for a constant eta, p(1-p) = mu."""
    first = mu**0.25 * np.sqrt((1 - 2 * mu) ** k * np.sqrt(k) + 1 / (mu**1.5 * k))
    second = np.sqrt(((1 - 2 * mu) ** k + 1 / (mu * k) ** 1.5) * k ** (-power))
    return first, second


@statement(
    "T3.4-2nd",
    1030,
    "from Lemma A.3 the second root is sqrt((1-2mu)^k/sqrt(k) + 1/(mu^(3/2) k^2))",
    chapter=CHAPTER,
    mutants=[{"power": 0.0}],
)
def second_root(search: Search, power: float = 0.5) -> Finding:
    """Proof of Theorem 3.4: put c_k = sqrt(p(1-p)) + 1/sqrt(k) into Lemma A.3.

    The part 1/sqrt(k) of c_k gives k^(1/4) sqrt(1/sqrt(k)) = 1 times sqrt(A^k + 1/(mu k)^(3/2)).
    """
    mu, k, ratio = np.geomspace(1e-6, 0.25, 60), 16.0, Smallest()
    ratio.see(printed_roots(k, mu, power)[1] / printed_roots(k, mu, 0)[1], list(mu))
    factor = float(ratio.value)
    largest = 0.0
    for stretch in np.geomspace(1, 1e4, search.pick(40, 400)):
        k = np.ceil(2 / mu * np.log(1 / mu) * stretch)
        first, second = printed_roots(k, mu, 0.5)
        largest = max(largest, (sum_bound(k, mu, mu) / (first + second) / np.log(8 * k)).max())
        confirm((BESSEL_CONSTANT / np.sqrt(k * mu) <= first).all(), "the first root is enough")
    confirm(largest <= 2, "the display bounds Lemma A.3 up to 2 log(8k) under the condition on k")
    short = abs(factor - 1) > 1e-9
    return Finding(
        "gap" if short else "holds",
        f"At k = 16 the printed second root is {factor:.3g} times what Lemma A.3 gives: the part "
        "1/sqrt(k) of c_k contributes k^(1/4) * k^(-1/4) = 1, not k^(-1/4). As a bound the display "
        "is true all the same: its first root alone exceeds 0.93765/sqrt(k mu), the bound that "
        "holds for every law, since p(1-p) >= mu. And where k >= (2/mu) log(1/mu) Lemma A.3 is "
        f"at most {largest:.2f} log(8k) times the display, so Theorem 3.4 follows as printed.",
        "mu from 1e-6 to 1/4, k from (2/mu) log(1/mu) to 10^4 times that",
        mended="second root sqrt((1-2mu)^k + 1/(mu k)^(3/2)), up to the same logarithms"
        if short
        else None,
    )


@statement(
    "T3.4-cond",
    1035,
    "(1-2mu)^k sqrt(k) < mu/k for k >= (2/mu) log(1/mu)",
    chapter=CHAPTER,
    mutants=[{"factor": 1.0}],
)
def condition_on_size(search: Search, factor: float = 2.0) -> Finding:
    """Proof of Theorem 3.4: logarithms of the two sides; beyond the threshold the left falls."""
    mu = np.geomspace(1e-12, 0.25, search.pick(400, 4000))
    start = factor / mu * np.log(1 / mu)
    slack = Smallest()
    for stretch in np.geomspace(1, 1e6, search.pick(30, 200)):
        k = start * stretch
        left = k * np.log1p(-2 * mu) + 1.5 * np.log(k)
        slack.see(
            np.log(mu) - left, [f"mu = {m:.4g}, k = {j:.4g}" for m, j in zip(mu, k, strict=True)]
        )
    falling = bool((1.5 / start < 2 * mu).all())
    return Finding(
        "holds" if slack.value > 0 and falling else "false",
        f"The smallest log(right/left) is {slack}. k^(3/2) (1-2mu)^k falls once k > 3/(4 mu), "
        "which the condition implies, so the threshold is the worst case.",
        f"{len(mu)} values of mu from 1e-12 to 1/4, real k from the threshold to 1e6 times it",
    )
