"""The old name of `labelaudit.auditing`: what was public here can be imported for one version."""

from typing import Any

from labelaudit._deprecated import deprecated

_NEW = {
    "Advice": "Choice",
    "AuditPlan": "Options",
    "Decision": "decisions:Row",
    "EtaEstimates": "Eta",
    "advise": "choose",
    "compare_bags": "attack_given_bags",
    "expose": "attack_settings",
    "stream_priors": "audit_priors",
}
_SAME = (
    "SURE Guarantee Recommendation Report Target as_html as_json audit bag_facts decide"
    " estimate_eta knowing_more measure_utility most_exposed recommend run"
)
_MOVED = {name: f"labelaudit.auditing:{name}" for name in _SAME.split()}
_MOVED |= {
    old: f"labelaudit.auditing{'.' if ':' in new else ':'}{new}" for old, new in _NEW.items()
}
__getattr__ = deprecated("labelaudit.report", _MOVED)


def tables(report: Any) -> Any:
    """The tables of a report, which are `report.tables`."""
    return report.tables


def read_table(source: Any, **columns: Any) -> Any:
    """A table, as `labelaudit.auditing.read(source, Columns(...))` gives it."""
    from labelaudit.auditing import Columns, read

    return read(source, Columns(**columns))
