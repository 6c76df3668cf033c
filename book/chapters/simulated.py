"""Simulated distributions of the prior, by the names that the parameters of chapters give them."""

import re

from labelaudit.priors import Beta, TwoPoint, Uniform

# Two priors, each with probability one half.
TWO_POINTS = {"zero-or-half": TwoPoint(0, 0.5), "tenth-or-half": TwoPoint(0.1, 0.5)}


def named(name: str) -> Beta | TwoPoint:
    """The simulated distribution that a chapter's parameter names.

    `uniform`; `beta-a-b` for Beta(a, b); `constant-p` for the single prior p; `zero-or-half` and
    `tenth-or-half` for two priors with probability one half each.

    >>> named("beta-2-30"), named("uniform")
    (Beta(a=2.0, b=30.0), Beta(a=1.0, b=1.0))
    >>> named("constant-0.1"), named("zero-or-half").mean
    (TwoPoint(low=0.1, high=0.1, weight=0.5), 0.25)
    """
    number = r"(\d+(?:\.\d+)?)"
    text = str(name)
    if text == "uniform":
        return Uniform()
    if text in TWO_POINTS:
        return TWO_POINTS[text]
    if match := re.fullmatch(f"constant-{number}", text):
        return TwoPoint(float(match[1]), float(match[1]))
    if match := re.fullmatch(f"beta-{number}-{number}", text):
        return Beta(float(match[1]), float(match[2]))
    allowed = f"uniform, {', '.join(TWO_POINTS)}, beta-a-b such as beta-2-30, constant-p"
    raise ValueError(f"a prior must be named one of {allowed} such as constant-0.1, not {name!r}")
