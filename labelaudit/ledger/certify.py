"""Make the certificates of the inequalities in `claims.yml`, with python-flint (extra `certify`).

A tree is grown part by part. A polynomial is decided by its Bernstein coefficients, computed from
Taylor shifts in FLINT's rationals. Any other expression is decided by its enclosure over the whole
part in ball arithmetic (Arb), without the choice of ends that `verify.py` relies on.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from itertools import product
from math import comb
from typing import Any

_END = re.compile(r"\bv[01]\b")
DEEPEST = 26
"""A part that is still undecided after so many halvings is left so, and marked."""


def claims() -> list[dict[str, Any]]:
    """The table of claims, with every field filled in.

    >>> [claim["name"] for claim in claims()][:2]
    ['independent-root', 'geometric-noise']
    """
    import yaml

    table = yaml.safe_load(files(__package__).joinpath("claims.yml").read_text(encoding="utf-8"))
    return [{"whole": {}, **claim} for claim in table]


def certificate(claim: dict[str, Any]) -> dict[str, Any]:
    """The claim with its trees, one for each choice of the whole numbers."""
    import flint

    decided = _polynomial if claim["method"] == "bernstein" else _balls
    ends = [flint.fmpq(*map(int, end.split("/"))) for end in claim["interval"]]
    ranges = (range(first, last + 1) for first, last in claim["whole"].values())
    trees = []
    for numbers in product(*ranges):
        whole = dict(zip(claim["whole"], numbers, strict=True))
        trees.append(_tree(partial(decided, claim["positive"], whole), ends[0], ends[1]))
    return {**claim, "trees": trees}


def _tree(decided: Callable[[Any, Any], bool], low: Any, high: Any, depth: int = 0) -> str:
    if decided(low, high):
        return "."
    if depth == DEEPEST or low == high:
        return "?"
    middle = (low + high) / 2
    halves = (_tree(decided, *part, depth + 1) for part in ((low, middle), (middle, high)))
    return "/" + "".join(halves)


def _polynomial(texts: Sequence[str], whole: Mapping[str, int], low: Any, high: Any) -> bool:
    """No Bernstein coefficient is negative: those of the reversed polynomial, shifted by one."""
    import flint

    names = {"__builtins__": {}, "sum": sum, "range": range, "comb": comb, **whole}
    names["v"] = flint.fmpq_poly([low, high - low])
    backwards = (flint.fmpq_poly(eval(text, names).coeffs()[::-1]) for text in texts)
    shifted = (polynomial(flint.fmpq_poly([1, 1])) for polynomial in backwards)
    return all(coefficient >= 0 for polynomial in shifted for coefficient in polynomial.coeffs())


def _balls(texts: Sequence[str], whole: Mapping[str, int], low: Any, high: Any) -> bool:
    """The enclosure of each expression over the whole part is positive."""
    import flint

    v = flint.arb(low).union(flint.arb(high))

    def bessel(ball: Any) -> Any:  # the mean value theorem; e^-v I0(v) has this derivative
        centre = flint.arb(ball.mid())
        slope = (-ball).exp() * (ball.bessel_i(1) - ball.bessel_i(0))
        return (-centre).exp() * centre.bessel_i(0) + slope * (ball - centre)

    names = {"__builtins__": {}, "v": v, "D": flint.arb, "pi": flint.arb.pi(), "g": bessel, **whole}
    readable = (_END.sub("v", text).replace(".ln()", ".log()") for text in texts)
    return all(bool(eval(text, names) > 0) for text in readable)
