"""An audit of one's own data: a table with a sensitive label in, a report to act on out.

`audit` does all of it; each step is a function of its own, which chapter 14 calls one by one.

>>> from labelaudit.report import Plan
>>> [setting.title for setting in Plan(mechanisms=["rr"], epsilons=[1.0]).settings]
['RR (epsilon 1)']
"""

from __future__ import annotations

from labelaudit.report.advice import advise, judge
from labelaudit.report.beliefs import believe, calibration_ratio_said, calibration_test
from labelaudit.report.exposure import SURE, expose
from labelaudit.report.page import as_html
from labelaudit.report.plan import Plan, Target
from labelaudit.report.recommendation import summary
from labelaudit.report.records import most_exposed
from labelaudit.report.report import Report, as_json, audit
from labelaudit.report.scenarios import bag_facts, given_bags, knowing_more
from labelaudit.report.utility import measure_utility

__all__ = [
    "SURE",
    "Plan",
    "Report",
    "Target",
    "advise",
    "as_html",
    "as_json",
    "audit",
    "bag_facts",
    "believe",
    "calibration_ratio_said",
    "calibration_test",
    "expose",
    "given_bags",
    "judge",
    "knowing_more",
    "measure_utility",
    "most_exposed",
    "summary",
]
