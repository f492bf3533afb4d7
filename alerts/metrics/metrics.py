"""Every metric of the product: name, labels, help.  Names are an interface; changes are announced.

This module creates the counters and histograms that the process keeps, with every label combination that
can be foreseen, so that each starts at 0 (``rate`` misses the first value of a series that appears late).
``exporter.py`` reads the other metrics from the latest snapshot.  Names of members, clients and hosts are
never labels: their number has no bound.
"""

import platform
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
)

from alerts.delivery import EXPIRED
from alerts.delivery.receivers import Outcome


class Metric(NamedTuple):
    """One metric that is read from the snapshot at each scrape."""

    name: str
    kind: str
    """gauge or counter; the name of a counter omits ``_total``."""
    labels: tuple[str, ...]
    help: str


_GROUP = ("cluster", "group")

GROUP_STATE = Metric(
    "groupwatch_group_state",
    "gauge",
    (*_GROUP, "group_type", "state"),
    "1 for the state the group is in, 0 for the others that its type can have.",
)
GROUP_MEMBERS = Metric("groupwatch_group_members", "gauge", _GROUP, "Members of the group.")
GROUP_GENERATION = Metric(
    "groupwatch_group_generation", "gauge", _GROUP, "Generation of a classic group; epoch of a modern group."
)
GROUP_STATE_CHANGED = Metric(
    "groupwatch_group_state_changed_timestamp_seconds", "gauge", _GROUP, "When the group entered its state."
)
GROUP_STATE_SECONDS = Metric(
    "groupwatch_group_state_seconds",
    "gauge",
    _GROUP,
    "How long the group has been in its state. Deprecated: groupwatch_group_state_changed_timestamp_seconds.",
)
GROUP_REBALANCES = Metric(
    "groupwatch_group_rebalances",
    "counter",
    (*_GROUP, "cause"),
    "Rebalances that started since groupwatch watches the group, by cause.",
)
GROUP_LAG = Metric(
    "groupwatch_group_lag",
    "gauge",
    (*_GROUP, "topic"),
    "Records that the group has not read yet, in all partitions; absent while an end offset is unknown.",
)
GROUP_LAG_SECONDS = Metric(
    "groupwatch_group_lag_seconds",
    "gauge",
    (*_GROUP, "topic"),
    "Smallest possible age of the oldest record that waits; absent while an end offset is unknown.",
)
GROUP_PARTITION_LAG = Metric(
    "groupwatch_group_partition_lag",
    "gauge",
    (*_GROUP, "topic", "partition"),
    "Records of one partition that the group has not read yet; only with http.partition_lag.",
)
ALERTS_FIRING = Metric(
    "groupwatch_alerts_firing",
    "gauge",
    (*_GROUP, "alertname", "severity", "silenced"),
    "1 for each open alert; the group is empty for alerts about a whole cluster; silenced is true or false.",
)
GROUPS = Metric(
    "groupwatch_groups",
    "gauge",
    ("cluster",),
    "Groups that groupwatch watches, also those without series of their own.",
)
EVENTS = Metric(
    "groupwatch_events", "counter", ("cluster", "source", "kind"), "Observations taken from the sources."
)
UNDECODABLE = Metric(
    "groupwatch_undecodable",
    "counter",
    ("cluster", "source", "reason"),
    "Records and lines that groupwatch could not decode and skipped.",
)
DIVERGENCE = Metric(
    "groupwatch_divergence",
    "counter",
    ("cluster", "kind"),
    "Disagreements between the mirror and what the brokers said.",
)
QUARANTINED = Metric(
    "groupwatch_quarantined_groups",
    "gauge",
    ("cluster",),
    "Groups on which groupwatch's own code failed lately, or whose saved state was lost and is rebuilt.",
)
SOURCE_NEWEST = Metric(
    "groupwatch_source_newest_timestamp_seconds",
    "gauge",
    ("cluster", "source"),
    "Time of the newest event of a source.",
)

AGREEMENT_RATIO = Metric(
    "groupwatch_agreement_ratio",
    "gauge",
    ("cluster",),
    "Share of the brokers' answers in the last 15 minutes that agreed with the mirror, 0 to 1.",
)
ANSWERS = Metric(
    "groupwatch_answers",
    "counter",
    ("cluster", "outcome"),
    "Answers of brokers about groups that groupwatch compared with the mirror, by outcome.",
)
PROBE_REQUESTS = Metric(
    "groupwatch_probe_requests",
    "counter",
    ("cluster", "request"),
    "Requests about groups that groupwatch sent to the brokers.",
)

SNAPSHOT_METRICS = (
    GROUP_STATE,
    GROUP_MEMBERS,
    GROUP_GENERATION,
    GROUP_STATE_CHANGED,
    GROUP_STATE_SECONDS,
    GROUP_REBALANCES,
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_PARTITION_LAG,
    ALERTS_FIRING,
    GROUPS,
    EVENTS,
    UNDECODABLE,
    DIVERGENCE,
    QUARANTINED,
    SOURCE_NEWEST,
    AGREEMENT_RATIO,
    ANSWERS,
    PROBE_REQUESTS,
)
"""The metrics that are read from the snapshot."""

READY = Metric(
    "groupwatch_ready",
    "gauge",
    ("cluster",),
    "1 if the cluster's data is complete and current, as /ready says.",
)
SOURCE_DELAY = Metric(
    "groupwatch_source_delay_seconds",
    "gauge",
    ("cluster", "source"),
    "How far behind the end of its topic groupwatch reads a source; small also while the source is silent.",
)
LAST_BATCH = Metric(
    "groupwatch_last_batch_timestamp_seconds",
    "gauge",
    ("cluster",),
    "When the last batch ended.",
)

HEALTH = (READY, SOURCE_DELAY, LAST_BATCH)
"""The metrics that are read from the health of each cluster's job."""

HISTORY_DROPPED = Metric(
    "groupwatch_history_dropped_rows",
    "counter",
    ("reason",),
    "Rows that the history on local disk lost: no_room, more came than could be written; not_written, the "
    "file did not take them. No alert depends on them.",
)
HISTORY = (HISTORY_DROPPED,)
"""The metrics that are read from the history."""

_RECEIVER = ("receiver",)

OLDEST_UNDELIVERED = Metric(
    "groupwatch_oldest_undelivered_seconds",
    "gauge",
    _RECEIVER,
    "Longest time that an alert has waited for this receiver, without silenced alerts; 0: none waits.",
)
UNDELIVERED = Metric(
    "groupwatch_undelivered_alerts",
    "gauge",
    _RECEIVER,
    "Alerts that wait for this receiver, or for the end of a silence.",
)
RECEIVER_UP = Metric(
    "groupwatch_receiver_up",
    "gauge",
    _RECEIVER,
    "1 unless the last delivery to this receiver failed.",
)
SENDER_ERRORS = Metric(
    "groupwatch_sender_errors",
    "counter",
    _RECEIVER,
    "Errors in groupwatch's own code while it sent to this receiver; the sender continued.",
)

REFUSED_RECORDS = Metric(
    "groupwatch_refused_alert_records",
    "counter",
    ("receiver", "reason"),
    "Records of the alerts topic that groupwatch skipped, because it cannot have written them.",
)

DELIVERY = (OLDEST_UNDELIVERED, UNDELIVERED, RECEIVER_UP, SENDER_ERRORS, REFUSED_RECORDS)
"""The metrics that are read from the outboxes."""

SILENCES = Metric(
    "groupwatch_silences",
    "gauge",
    ("state",),
    "Silences that were added at run time, by state: pending, active, expired.",
)
REFUSED_SILENCES = Metric(
    "groupwatch_refused_silence_records",
    "counter",
    ("reason",),
    "Records of the silences topic that groupwatch skipped, because they are no silences.",
)
SILENCE_METRICS = (SILENCES, REFUSED_SILENCES)
"""The metrics that are read from the silences."""

JOB_LAST_RECORD = Metric(
    "groupwatch_job_last_record_timestamp_seconds",
    "gauge",
    ("cluster",),
    "When the cluster's job last wrote a record; if it never did, start of this process.",
)
KAFKA_LAST_ANSWER = Metric(
    "groupwatch_kafka_last_answer_timestamp_seconds",
    "gauge",
    ("cluster",),
    "When the cluster last answered this process; if it never did, start of this process.",
)
JOB_SILENT = Metric(
    "groupwatch_job_silent_seconds",
    "gauge",
    ("cluster",),
    "Age of the job's last record. Deprecated: groupwatch_job_last_record_timestamp_seconds.",
)
KAFKA_SILENT = Metric(
    "groupwatch_kafka_silent_seconds",
    "gauge",
    ("cluster",),
    "Time since the cluster's last answer. Deprecated: groupwatch_kafka_last_answer_timestamp_seconds.",
)

FAR_JOB = (JOB_LAST_RECORD, KAFKA_LAST_ANSWER, JOB_SILENT, KAFKA_SILENT)
"""The metrics by which ``groupwatch notify`` shows a job of another process."""

READ = (*SNAPSHOT_METRICS, *HEALTH, *HISTORY, *DELIVERY, *SILENCE_METRICS, *FAR_JOB)
"""All metrics that collectors read from elsewhere; ``OwnMetrics`` has the others."""

_REBALANCE_BUCKETS_S = (0.1, 0.3, 1, 3, 5, 10, 20, 30, 60, 120, 300, 600)
_BATCH_BUCKETS_S = (0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300)
_DETECTION_BUCKETS_S = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 10, 20, 60, 300)


EVIDENCE_OUTCOMES = ("raised", "put_back", "left", "already_on", "refused", "failed")
"""The possible outcomes of raising or restoring a broker's request log level."""


class NotifierMetrics:
    """The counters of a process that delivers alerts."""

    def __init__(
        self,
        registry: CollectorRegistry,
        receivers: Iterable[str] = (),
        *,
        version: str = "unknown",
        external_url: str = "",
    ) -> None:
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        build = Gauge(
            "groupwatch_build_info",
            "Always 1; the labels name the versions of groupwatch and of Python.",
            ["version", "python"],
            registry=registry,
        )
        build.labels(version, platform.python_version()).set(1)
        self._url = Gauge(
            "groupwatch_external_url_info",
            "Always 1; the label is the address of the page for people, if one is configured.",
            ["url"],
            registry=registry,
        )
        if external_url:
            self._url.labels(external_url.rstrip("/")).set(1)
        self._notifications = Counter(
            "groupwatch_notifications",
            "Attempts to deliver a notification, by outcome.",
            ["receiver", "outcome"],
            registry=registry,
        )
        for receiver in receivers:
            for outcome in (*Outcome, EXPIRED):
                self._notifications.labels(receiver, str(outcome))
        self._reload_good = Gauge(
            "groupwatch_config_last_reload_successful",
            "1 if the configuration was good when it was last read; 0: the one of before holds.",
            registry=registry,
        )
        self._reloaded_at = Gauge(
            "groupwatch_config_last_reload_success_timestamp_seconds",
            "When the configuration that holds was read.",
            registry=registry,
        )
        self.reloaded(is_good=True)

    def reloaded(self, *, is_good: bool) -> None:
        """Show whether the configuration could be read; if so, it holds from now on."""
        self._reload_good.set(is_good)
        if is_good:
            self._reloaded_at.set_to_current_time()

    def notified(self, receiver: str, outcome: str) -> None:
        """Count one attempt to deliver."""
        self._notifications.labels(receiver, outcome).inc()


class OwnMetrics(NotifierMetrics):
    """The counters of the job's process."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        clusters: Iterable[str] = (),
        receivers: Iterable[str] = (),
        version: str = "unknown",
        external_url: str = "",
    ) -> None:
        super().__init__(registry, receivers, version=version, external_url=external_url)
        self._rebalances = Histogram(
            "groupwatch_rebalance_duration_seconds",
            "Time from the start of a rebalance until the group is Stable or Empty.",
            ["cluster"],
            buckets=_REBALANCE_BUCKETS_S,
            registry=registry,
        )
        self._batches = Histogram(
            "groupwatch_batch_duration_seconds",
            "Time from the start of a batch's work until its outputs were written.",
            ["cluster"],
            buckets=_BATCH_BUCKETS_S,
            registry=registry,
        )
        self._detection = Histogram(
            "groupwatch_detection_seconds",
            "Time from when an alert's condition held (brokers' clocks) until groupwatch wrote the alert.",
            registry=registry,
            buckets=_DETECTION_BUCKETS_S,
        )
        self._evidence = Counter(
            "groupwatch_evidence_requests",
            "Attempts to raise or restore the level of a broker's request log, by outcome.",
            ["cluster", "outcome"],
            registry=registry,
        )
        self._evidence_brokers = Gauge(
            "groupwatch_evidence_brokers",
            "Brokers whose request log groupwatch has raised now.",
            ["cluster"],
            registry=registry,
        )
        self._leader = Gauge(
            "groupwatch_leader",
            "1 while this process watches the cluster; 0 while it stands by, because another one does.",
            ["cluster"],
            registry=registry,
        )
        self._watermark = Gauge(
            "groupwatch_watermark_delay_seconds",
            "How far the watermark is behind the wall clock: alerts are late by this much.",
            ["cluster"],
            registry=registry,
        )
        self._missed = Counter(
            "groupwatch_missed_records",
            "Records of an input that were deleted before groupwatch read them, at least.",
            ["cluster", "topic"],
            registry=registry,
        )
        self._corrections = Gauge(
            "groupwatch_broker_time_correction_seconds",
            "Seconds that groupwatch adds to a broker's times because its time zone or its clock is wrong.",
            ["cluster", "broker"],
            registry=registry,
        )
        for cluster in clusters:
            self._rebalances.labels(cluster)
            self._batches.labels(cluster)
            self._watermark.labels(cluster)
            self._evidence_brokers.labels(cluster)
            for outcome in EVIDENCE_OUTCOMES:
                self._evidence.labels(cluster, outcome)

    def rebalanced(self, cluster: str, seconds: float) -> None:
        """Record how long a rebalance took."""
        self._rebalances.labels(cluster).observe(seconds)

    def batch(self, cluster: str, seconds: float) -> None:
        """Record how long a batch took."""
        self._batches.labels(cluster).observe(seconds)

    def sought(self, cluster: str, outcome: str) -> None:
        """Count one attempt to raise or restore a broker's request log level."""
        self._evidence.labels(cluster, outcome).inc()

    def raised(self, cluster: str, brokers: int) -> None:
        """Show how many brokers have a raised request log."""
        self._evidence_brokers.labels(cluster).set(brokers)

    def corrected(self, cluster: str, broker: int, seconds: float) -> None:
        """Show the correction that is added to the times of a broker whose zone or clock is wrong."""
        self._corrections.labels(cluster, str(broker)).set(seconds)

    def leader(self, cluster: str, is_leader: Callable[[], bool]) -> None:
        """Show whether this process has a cluster's lease; ``is_leader`` is called at each scrape."""
        self._leader.labels(cluster).set_function(lambda: float(is_leader()))

    def watermark(self, cluster: str, behind_s: Callable[[], float]) -> None:
        """Show how far a cluster's watermark lags; ``behind_s`` is called at each scrape."""
        self._watermark.labels(cluster).set_function(behind_s)

    def missed(self, cluster: str, topic: str, records: int) -> None:
        """Count records that were deleted before they were read; 0 creates the series."""
        self._missed.labels(cluster, topic).inc(records)

    def detected(self, seconds: float) -> None:
        """Record the time from the event until its alert was written."""
        self._detection.observe(seconds)
