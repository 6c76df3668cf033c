"""Verify certificates of inequalities with the standard library alone: `python verify.py FILE`.

A certificate says that expressions are not negative for every v of an interval and each listed
whole number. A tree cuts the interval: `/` halves a part, `.` is to be checked, `?` is undecided.
A polynomial must have no negative Bernstein coefficient on a part. Any other expression is a lower
bound by the ends v0 and v1 of the part, as its sentence says; with 60 digits it must exceed 1e-30.
Trusted: Python's numbers and the sentences. Expressions are evaluated as Python: read them first.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, FloatOperation, localcontext
from fractions import Fraction
from itertools import accumulate, product, zip_longest
from math import comb, prod
from pathlib import Path
from typing import Any

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


@dataclass(frozen=True)
class Polynomial:
    """A polynomial by its coefficients, the constant first."""

    terms: tuple[Any, ...]

    def __add__(self, other: Any) -> "Polynomial":
        pairs = zip_longest(self.terms, getattr(other, "terms", (other,)), fillvalue=0)
        return Polynomial(tuple(map(sum, pairs)))

    def __mul__(self, other: Any) -> "Polynomial":
        right = getattr(other, "terms", (other,))
        result = [0] * (len(self.terms) + len(right) - 1)
        for (i, a), (j, b) in product(enumerate(self.terms), enumerate(right)):
            result[i + j] += a * b
        return Polynomial(tuple(result))

    def __rsub__(self, other: Any) -> "Polynomial":
        return self * -1 + other

    def __pow__(self, power: int) -> Any:
        return prod([self] * power)

    __radd__, __rmul__ = __add__, __mul__

    def nonnegative(self) -> bool:
        """No Bernstein coefficient on [0, 1] is negative; each value is a weighted mean of them."""
        terms = [Fraction(a, comb(len(self.terms) - 1, n)) for n, a in enumerate(self.terms)]
        return all(sum(comb(j, n) * terms[n] for n in range(j + 1)) >= 0 for j in range(len(terms)))


def bessel(v: Decimal) -> Decimal:
    """e^-v I0(v), which decreases, for v in [0, 4]; the terms left out are below 1e-60."""
    steps = (v * v / (4 * n * n) for n in range(1, 60))
    return sum(accumulate(steps, Decimal.__mul__, initial=Decimal(1))) / v.exp()


def holds(certificate: dict[str, Any], low: Fraction, high: Fraction, names: Any) -> bool:
    """Whether no expression is negative on a part of the interval."""
    names = {"__builtins__": {}, "sum": sum, "range": range, "comb": comb, **names}
    if certificate["method"] == "bernstein":
        names["v"] = Polynomial(tuple(int(e) if e == int(e) else e for e in (low, high - low)))
        return all(eval(text, names).nonnegative() for text in certificate["positive"])
    with localcontext(prec=60) as context:
        context.traps[FloatOperation] = True
        ends = {f"v{i}": Decimal(e.numerator) / e.denominator for i, e in enumerate((low, high))}
        names |= {"D": Decimal, "pi": PI, "g": bessel, **ends}
        return all(eval(text, names) > Decimal("1e-30") for text in certificate["positive"])


def verify(certificate: dict[str, Any]) -> Counter[str]:
    """How many parts are verified, wrong, undecided or missing."""
    counts, interval = Counter[str](), tuple(map(Fraction, certificate["interval"]))
    if not certificate["positive"] or interval[0] > interval[1]:
        raise ValueError(f"{certificate['name']}: no expression, or no point in the interval")
    cases = product(*(range(first, last + 1) for first, last in certificate["whole"].values()))
    for values, tree in zip(cases, certificate["trees"], strict=True):
        whole, parts = dict(zip(certificate["whole"], values, strict=True)), [interval]
        for mark in tree:
            low, high = parts.pop()
            if mark == "/":
                parts += [((low + high) / 2, high), (low, (low + high) / 2)]
            else:
                right = mark == "." and holds(certificate, low, high, whole)
                counts["undecided" if mark == "?" else "verified" if right else "wrong"] += 1
        counts["missing"] += len(parts)
    return +counts


if __name__ == "__main__":
    table = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    if not table or len({certificate["name"] for certificate in table}) < len(table):
        sys.exit("no certificates, or two of one name")
    results = [(certificate["name"], dict(verify(certificate))) for certificate in table]
    print(*(f"{name}: {counts}" for name, counts in results), sep="\n")
    sys.exit(any(set(counts) != {"verified"} for _, counts in results))
