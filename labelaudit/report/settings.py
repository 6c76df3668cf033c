"""What an audit compares: every mechanism asked for, at every parameter value it takes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from labelaudit.mechanisms import Mechanism
from labelaudit.report.families import Family, family_of
from labelaudit.report.trial import OwnFault, check_own


@dataclass(frozen=True)
class Setting:
    """One mechanism with its parameters, as the report speaks of it.

    `checked` says whether epsilon was read off the law of the release. Where that law is not known
    epsilon is what the mechanism declares, and promises nothing.
    """

    family: Family
    # A user's own class may not be hashable; family and parameters tell settings apart.
    mechanism: Mechanism = field(compare=False)
    parameters: tuple[tuple[str, float], ...]
    checked: bool = True

    @property
    def title(self) -> str:
        """Short name and parameters."""
        words = {"bag_size": "bags of {:g}", "epsilon": "epsilon {:g}"}
        said = ", ".join(words[name].format(value) for name, value in self.parameters)
        return f"{self.family.short} ({said})" if said else self.family.short

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Whatever a mechanism of the user's raises becomes one line that names it."""
        try:
            yield
        except Exception as error:
            if not self.family.own or isinstance(error, OwnFault):
                raise
            raise OwnFault(f"{self.title} failed: {type(error).__name__}: {error}") from error


def settings_of(
    names: Sequence[str], bag_sizes: Sequence[int], epsilons: Sequence[float]
) -> tuple[Setting, ...]:
    """Each mechanism at every combination of the parameters it takes.

    >>> [setting.title for setting in settings_of(["rr"], [8], [0.5, 1.0])]
    ['RR (epsilon 0.5)', 'RR (epsilon 1)']
    """
    families = {name: family_of(name) for name in dict.fromkeys(names)}
    often = Counter(family.short for family in families.values())
    found = []
    for name, family in families.items():
        if often[family.short] > 1:
            # Of several mechanisms with one name each is told apart by its file.
            family = replace(family, name=f"{family.short} of {name}", short=name)
        values = {"bag_size": bag_sizes, "epsilon": epsilons}
        taken = [one for one in values if one in family.parameters]
        for combination in itertools.product(*(values[one] for one in taken)):
            chosen = dict(zip(taken, combination, strict=True))
            setting = Setting(family, family.made(chosen), tuple(chosen.items()))
            if family.own:
                setting = replace(setting, checked=check_own(setting.mechanism, setting.title))
            found.append(setting)
    return tuple(found)
