"""An audit of a table of your own: a table with a sensitive label in, a report out.

`labelaudit.audit` does all of it; each step is a function of its own. A row of the table goes
through them in one direction: `plan` reads and checks the table, `eta` learns the attacker's prior,
`attack` averages the attack on every setting, `utility` measures what a setting costs, `decisions`
decides what meets the target, `scenarios` shows what the average does not, and `page` writes all of
it. `audit` calls them; `words` holds the sentences, `intervals` the errors of numbers. `stream` is
for priors of any size, without labels.

>>> from labelaudit.report import AuditPlan
>>> [setting.title for setting in AuditPlan(mechanisms=["rr"], epsilons=[1.0]).settings]
['RR (epsilon 1)']
"""

from labelaudit.report.attack import SURE, compare_bags, expose
from labelaudit.report.audit import Report, audit, run
from labelaudit.report.decisions import (
    Advice,
    Decision,
    Guarantee,
    Recommendation,
    advise,
    decide,
    recommend,
)
from labelaudit.report.eta import EtaEstimates, bag_facts, estimate_eta
from labelaudit.report.page import as_html, as_json, tables
from labelaudit.report.plan import AuditPlan, Target
from labelaudit.report.scenarios import knowing_more, most_exposed
from labelaudit.report.stream import stream_priors
from labelaudit.report.utility import measure_utility

__all__ = [
    "SURE",
    "Advice",
    "AuditPlan",
    "Decision",
    "EtaEstimates",
    "Guarantee",
    "Recommendation",
    "Report",
    "Target",
    "advise",
    "as_html",
    "as_json",
    "audit",
    "bag_facts",
    "compare_bags",
    "decide",
    "estimate_eta",
    "expose",
    "knowing_more",
    "measure_utility",
    "most_exposed",
    "recommend",
    "run",
    "stream_priors",
    "tables",
]
