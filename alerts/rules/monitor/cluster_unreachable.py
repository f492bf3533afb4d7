"""ClusterUnreachable: no request to the cluster is answered.

The driver's supervisor makes the alert and sends it straight to the receivers: no part of its way may depend
on the cluster in trouble.
"""

from typing import Annotated

from alerts.alert import Alert, Severity, clock, span
from alerts.rules.engine import (
    MINUTE_MS,
    Closing,
    DurationMs,
    Finding,
    RuleOptions,
    Sees,
    Stops,
    SupervisorRule,
    fire,
    resolve,
)

NAME = "ClusterUnreachable"


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long a cluster may leave all requests unanswered."""

    severity: Severity = Severity.CRITICAL
    after_ms: Annotated[DurationMs, "time without any answer from the cluster"] = MINUTE_MS


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
        summary=f"Kafka cluster {cluster} has not answered for {span(now_ms - since_ms)}: groupwatch "
        "watches none of its groups.",
        cause=detail,
        evidence=(f"Last answer at {clock(since_ms)}; since then: {detail}",),
        cost="groupwatch sends no alert about any group of this cluster, and the states that it shows are "
        "old.",
        advice="Run kafka-broker-api-versions.sh with the same bootstrap servers on the monitor's host. Then "
        "check the network, DNS, credentials, expired certificates, and the brokers themselves.",
    )
    opened = fire(
        finding,
        cluster=cluster,
        group="",
        name=NAME,
        detected_at_ms=now_ms,
        runbook_base=runbook_base,
    )
    return opened.alert


def cluster_reachable(alert: Alert, now_ms: int) -> Alert:
    """Return the last revision of an open ``alert``."""
    lasted = span(now_ms - alert.starts_at_ms)
    summary = (
        f"Kafka cluster {alert.cluster} answers again after {lasted}; groupwatch now reads what happened "
        "meanwhile."
    )
    return resolve(alert, Closing(ends_at_ms=now_ms, summary=summary))


CLUSTER_UNREACHABLE = SupervisorRule(
    name=NAME,
    options=Options,
    needs=Sees.NOTHING,
    stops=Stops.CLUSTER,
    blames_nobody="no member: the cluster itself, or the way to it",
)
