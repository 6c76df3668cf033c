"""An audit of a table of your own: a table with a sensitive label in, a recommendation out.

`audit` does all of it; each step is a function of its own, and a file. A row goes through them in
one direction: `table` reads it, `options` and `settings` say what to compare, `eta` learns the
attacker's prior, `attack` averages the attack on every setting, `given_bags` on the table's own
bags, `decisions` says what meets the target, `search` looks between the settings, `utility`
measures what one costs, `scenarios` shows what the average does not and `leaks` what misleads.
`report` holds the numbers, and `page` and `figures` show them in the sentences of `words`. `flow`
calls them all. The settings stand in one data frame, a row for each. `priors` is for priors of any
size, without labels.

>>> from labelaudit.auditing import settings_of
>>> [setting.title for setting in settings_of(["rr"], [], [1.0])]
['RR (epsilon 1)']
"""

from importlib import import_module
from typing import Any

# Each name and the module that it is loaded from, when it is first used.
_MODULES = {
    "attack": "SURE Attacks attack_settings",
    "decisions": "Choice Guarantee Recommendation choose decide decide_all recommend",
    "eta": "Eta estimate_eta trusted_eta",
    "given_bags": "BagFacts attack_given_bags bag_facts",
    "options": "Options Target",
    "page": "as_html",
    "priors": "PriorsReport audit_priors",
    "report": "Report as_json",
    "flow": "audit run",
    "scenarios": "by_group drawn_again knowing_more most_exposed",
    "settings": "Setting settings_for settings_of",
    "table": "Columns Feature Table read",
    "utility": "measure_utility worth_of",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a name on first use, so that a command answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
