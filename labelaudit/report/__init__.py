"""The old name of `labelaudit.auditing`: what was public here can be imported for one version."""

from labelaudit._deprecated import deprecated

_NAMES = (
    "SURE Advice AuditPlan Decision EtaEstimates Guarantee Recommendation Report Target advise"
    " as_html as_json audit bag_facts compare_bags decide estimate_eta expose knowing_more"
    " measure_utility most_exposed recommend run stream_priors tables"
)
__getattr__ = deprecated(
    "labelaudit.report", {name: f"labelaudit.auditing:{name}" for name in _NAMES.split()}
)
