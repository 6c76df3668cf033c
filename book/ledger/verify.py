"""Verify certificates of inequalities with the standard library alone: `python verify.py FILE`.

A certificate says that expressions are not negative for every v of an interval and each listed
whole number. A tree cuts the interval: `/` halves a part, `.` is to be checked, `?` is undecided.
A polynomial must have no negative Bernstein coefficient on a part. Any other expression is a lower
bound by the ends v0 and v1 of the part, as its sentence says; with 60 digits it must exceed 1e-30.
Trusted: Python's numbers and the sentences. No Python in a file is run: an expression may have the
forms that `value` lists and no other, so the worst that a hostile file can do is to take long.
"""

import ast
import json
import operator
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


OPERATORS: dict[type, Any] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow},
}


def value(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression; each form that is allowed has a line."""
    match node:
        case ast.Constant(int(number)):
            return number
        case ast.Name(name) if name in names and name not in ("D", "g", "comb"):
            return names[name]
        case ast.UnaryOp(ast.USub(), part):
            return -value(part, names)
        case ast.BinOp(left, sign, right) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)](value(left, names), value(right, names))
        case ast.Call(ast.Name("D"), [ast.Constant(str(digits))], []):
            return names["D"](digits)
        case ast.Call(ast.Name("D" | "g" | "comb" as name), parts, []) if name in names:
            return names[name](*(value(part, names) for part in parts))
        case ast.Call(ast.Attribute(part, "ln" | "log" | "exp" | "sqrt" as name), [], []):
            return getattr(value(part, names), name)()
        case ast.Call(ast.Name("sum"), [ast.GeneratorExp(term, [loop])], []):
            match loop:
                case ast.comprehension(ast.Name(name), ast.Call(ast.Name("range"), ends, []), []):
                    whole = range(*(value(end, names) for end in ends))
                    return sum(value(term, {**names, name: number}) for number in whole)
    raise ValueError(f"not allowed in a certificate: {ast.unparse(node)}")


def holds(certificate: dict[str, Any], low: Fraction, high: Fraction, whole: Any) -> bool:
    """Whether no expression is negative on a part of the interval."""
    trees = [ast.parse(text, mode="eval").body for text in certificate["positive"]]
    if certificate["method"] == "bernstein":
        v = Polynomial(tuple(int(end) if end == int(end) else end for end in (low, high - low)))
        names = {**whole, "v": v, "comb": comb}
        return all(value(tree, names).nonnegative() for tree in trees)
    with localcontext(prec=60) as context:
        context.traps[FloatOperation] = True
        ends = {f"v{i}": Decimal(e.numerator) / e.denominator for i, e in enumerate((low, high))}
        names = {**whole, **ends, "D": Decimal, "pi": PI, "g": bessel}
        return all(value(tree, names) > Decimal("1e-30") for tree in trees)


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
