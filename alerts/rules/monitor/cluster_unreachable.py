"""ClusterUnreachable: the cluster answers nobody.

Made by the driver's supervisor and sent straight to the receivers, since nothing that an alert needs
may lie on the cluster in trouble.
"""

from alerts.alert import Alert, Severity, clock, span
from alerts.rules.engine import Closing, Finding, fire, resolve

CLUSTER_UNREACHABLE = "ClusterUnreachable"


def find_unreachable(
    cluster: str,
    since_ms: int,
    now_ms: int,
    detail: str,
    *,
    severity: Severity = Severity.CRITICAL,
    runbook_base: str = "",
) -> Alert:
    """Return the alert at revision 0; ``since_ms`` is the last answer, ``detail`` the last error."""
    finding = Finding(
        starts_at_ms=since_ms,
        severity=severity,
        summary=f"Kafka cluster {cluster} has not answered for {span(now_ms - since_ms)}: none of its "
        "groups is being watched.",
        cause=detail,
        evidence=(f"Last answer at {clock(since_ms)}; since then: {detail}",),
        cost="Whatever happens to any group of this cluster goes unnoticed; the last known states are "
        "not current.",
        advice="Try kafka-broker-api-versions.sh with the same bootstrap servers from the monitor's "
        "host: is it the network, "
        "DNS, credentials or a certificate that ran out, or the brokers themselves?",
    )
    opened = fire(
        finding,
        cluster=cluster,
        group="",
        name=CLUSTER_UNREACHABLE,
        detected_at_ms=now_ms,
        runbook_base=runbook_base,
    )
    return opened.alert


def cluster_reachable(alert: Alert, now_ms: int) -> Alert:
    """Return the last revision of an open ``alert``."""
    lasted = span(now_ms - alert.starts_at_ms)
    summary = (
        f"Kafka cluster {alert.cluster} answers again after {lasted}; what happened meanwhile is being read."
    )
    return resolve(alert, Closing(ends_at_ms=now_ms, summary=summary))
