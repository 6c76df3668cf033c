"""An audit of a table of your own: a table with a sensitive label in, a report out.

`labelaudit.audit` does all of it; each step is a function of its own. The steps are in `plan`,
`eta`, `attack`, `people`, `scenarios`, `utility` and `decisions`; the sentences in `words`.

>>> from labelaudit.report import AuditPlan
>>> [setting.title for setting in AuditPlan(mechanisms=["rr"], epsilons=[1.0]).settings]
['RR (epsilon 1)']
"""

from labelaudit.report.attack import SURE, expose, most_exposed
from labelaudit.report.decisions import Advice, Decision, advise, decide
from labelaudit.report.eta import EtaEstimates, estimate_eta
from labelaudit.report.numbers import as_json, tables
from labelaudit.report.page import as_html
from labelaudit.report.plan import AuditPlan, Target
from labelaudit.report.scenarios import bag_facts, compare_bags, knowing_more
from labelaudit.report.steps import Report, audit, run
from labelaudit.report.stream import stream_priors
from labelaudit.report.utility import measure_utility

__all__ = [
    "SURE",
    "Advice",
    "AuditPlan",
    "Decision",
    "EtaEstimates",
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
    "run",
    "stream_priors",
    "tables",
]
