"""An audit of a table of your own: a table with a sensitive label in, a report out.

`labelaudit.audit` does all of it; each step is a function of its own. A row of the table goes
through them in one direction: `plan` reads and checks the table, `eta` learns the attacker's prior,
`attack` averages the attack on every setting, `utility` measures what a setting costs, `decisions`
decides what meets the target, `scenarios` shows what the average does not, and `page` writes all of
it. `audit` calls them; `words` holds the sentences, `intervals` the errors of numbers. `stream` is
for priors of any size, without labels.

>>> from labelaudit.auditing import AuditPlan
>>> [setting.title for setting in AuditPlan(mechanisms=["rr"], epsilons=[1.0]).settings]
['RR (epsilon 1)']
"""

from labelaudit.auditing.attack import SURE, compare_bags, expose
from labelaudit.auditing.audit import Report, audit, run
from labelaudit.auditing.decisions import (
    Advice,
    Decision,
    Guarantee,
    Recommendation,
    advise,
    decide,
    recommend,
)
from labelaudit.auditing.eta import EtaEstimates, bag_facts, estimate_eta
from labelaudit.auditing.page import as_html, as_json, tables
from labelaudit.auditing.plan import AuditPlan, Target
from labelaudit.auditing.scenarios import knowing_more, most_exposed
from labelaudit.auditing.stream import stream_priors
from labelaudit.auditing.table import Table, read_table
from labelaudit.auditing.utility import measure_utility

__all__ = [
    "SURE",
    "Advice",
    "AuditPlan",
    "Decision",
    "EtaEstimates",
    "Guarantee",
    "Recommendation",
    "Report",
    "Table",
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
    "read_table",
    "recommend",
    "run",
    "stream_priors",
    "tables",
]
