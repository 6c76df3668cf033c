"""The laws that a chapter's parameter names, with what its figures and captions say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labelaudit.priors import Beta, Empirical, TwoPoint


@dataclass(frozen=True)
class Laws:
    """Laws by name, in the order given: `laws` themselves, and `sources`, where each is from."""

    laws: dict[str, Beta | TwoPoint | Empirical]
    sources: dict[str, str]

    @property
    def titles(self) -> dict[str, str]:
        """The sources in lines short enough for the title of a panel."""
        return {
            name: source.replace(", ", "\n").replace("estimated on a ", "")
            for name, source in self.sources.items()
        }

    @property
    def caption(self) -> str:
        """The sources in one line."""
        return "; ".join(self.sources.values())


def laws_of(names: Iterable[str], *, train_rows: int, seed: int) -> Laws:
    r"""Every law named, once; that of a data set is the law of its estimated priors.

    >>> found = laws_of(["uniform", "uniform"], train_rows=0, seed=0)
    >>> found.laws, found.titles
    ({'uniform': Beta(a=1.0, b=1.0)}, {'uniform': 'uniform\nsimulated'})
    """
    from labelaudit.learning.eta import law_of

    found = {name: law_of(name, train_rows=train_rows, seed=seed) for name in dict.fromkeys(names)}
    return Laws(
        {name: law for name, (law, _) in found.items()},
        {name: source for name, (_, source) in found.items()},
    )
