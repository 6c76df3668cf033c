"""Make the certificates of the inequalities in `claims.yml`, with python-flint (extra `certify`).

A tree is grown part by part. A polynomial is decided by its Bernstein coefficients, computed from
Taylor shifts in FLINT's rationals. Any other expression is decided by its enclosure over the whole
part in ball arithmetic (Arb), without the choice of ends that `verify.py` relies on.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

from book.ledger import verify
from book.ledger.check import claims
from labelaudit.command_line import CommandError, must_be_writable
from labelaudit.files import write_atomically

_END = re.compile(r"\bv[01]\b")
DEEPEST = 26
"""A part that is still undecided after this many halvings stays undecided, and is marked."""


def certify(path: Path) -> int:
    """Make each certificate, verify it in arithmetic that is not FLINT, keep all."""
    if find_spec("flint") is None:
        raise CommandError("certificates need python-flint: pip install '.[certify]' in the clone")
    must_be_writable(path)
    certificates, complete = [], True
    for claim in claims():
        certificates.append(certificate(claim))
        counts = verify.verify(certificates[-1])
        complete &= set(counts) == {"verified"}
        parts = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(f"{claim['name']:<19} parts: {parts}", flush=True)
    write_atomically(path, json.dumps(certificates, indent=1) + "\n")
    return 0 if complete else 1


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

    names = {**whole, "comb": comb, "v": flint.fmpq_poly([low, high - low])}
    backwards = (flint.fmpq_poly(_value(text, names).coeffs()[::-1]) for text in texts)
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

    names = {**whole, "v": v, "D": flint.arb, "pi": flint.arb.pi(), "g": bessel}
    readable = (_END.sub("v", text).replace(".ln()", ".log()") for text in texts)
    return all(bool(_value(text, names) > 0) for text in readable)


def _value(text: str, names: dict[str, Any]) -> Any:
    """The value of an expression, as the verifier reads it, in FLINT's arithmetic."""
    return verify.value(ast.parse(text, mode="eval").body, names)
