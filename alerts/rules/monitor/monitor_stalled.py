"""MonitorStalled: Kafka answers, but the job finishes no batch, or its watermark falls behind.

The driver's supervisor makes it, outside the stream that it watches.
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

NAME = "MonitorStalled"


class Options(RuleOptions, frozen=True, kw_only=True):
    """How long the job may finish no batch while Kafka answers."""

    severity: Severity = Severity.CRITICAL
    after_ms: Annotated[DurationMs, "time without a finished batch while Kafka answers"] = 2 * MINUTE_MS


def find_stalled(
    cluster: str,
    since_ms: int,
    now_ms: int,
    detail: str,
    *,
    severity: Severity = Severity.CRITICAL,
    runbook_base: str = "",
    is_late: bool = False,
) -> Alert:
    """Return the alert at revision 0; ``detail`` says what is known.

    ``since_ms`` is the end of the last batch.  With ``is_late`` batches still end, and ``since_ms`` is when
    they began to fall behind.
    """
    for_s = span(now_ms - since_ms)
    summary = f"groupwatch has finished no batch for cluster {cluster} for {for_s}, though Kafka answers."
    evidence = f"Last finished batch at {clock(since_ms)}."
    if is_late:
        summary = (
            f"groupwatch has been falling behind on cluster {cluster} for {for_s}, though Kafka answers."
        )
        evidence = f"Batches end, but since {clock(since_ms)} they have not caught up with the wall clock."
    finding = Finding(
        starts_at_ms=since_ms,
        severity=severity,
        summary=summary,
        cause=detail,
        evidence=(evidence, detail),
        cost="groupwatch judges no group of this cluster: alerts come late, and the page and the metrics "
        "show old states.",
        advice="Look at the job's log, at /healthz and at /ready. If a batch hangs, or the job cannot write "
        "its checkpoint, restart the job: it continues where it stopped and judges what it missed.",
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


def monitor_running(alert: Alert, now_ms: int) -> Alert:
    """Return the last revision of an open ``alert``."""
    lasted = span(now_ms - alert.starts_at_ms)
    summary = f"groupwatch finishes batches for cluster {alert.cluster} again after {lasted}."
    return resolve(alert, Closing(ends_at_ms=now_ms, summary=summary))


MONITOR_STALLED = SupervisorRule(
    name=NAME,
    options=Options,
    needs=Sees.NOTHING,
    stops=Stops.CLUSTER,
    blames_nobody="no member: groupwatch itself",
)
