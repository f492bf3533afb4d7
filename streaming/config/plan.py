"""What one cluster's query reads and writes, taken from the configuration."""

from dataclasses import dataclass
from typing import NamedTuple

from streaming.config.config import ClusterConfig, Config, settings_json
from streaming.config.kafka_address import KafkaAddress


class Terms(NamedTuple):
    """What the operator allows; durations in milliseconds."""

    alerts: frozenset[str]
    """Names of the alerts that evidence is sought for."""
    for_ms: int
    every_ms: int
    """From one raise of a broker to the next, at least."""
    brokers: int
    """How many may be raised at once."""


@dataclass(frozen=True)
class ClusterPlan:
    """One monitored cluster: addresses, topics and the rhythm of its query."""

    cluster: str
    kafka: KafkaAddress
    output: KafkaAddress
    """Where control, transitions and alerts live; often ``kafka`` itself."""
    offsets_topic: str | None
    """None: this source is disabled."""
    events_topic: str | None
    timezone: str
    control_topic: str
    transitions_topic: str
    alerts_topic: str
    checkpoint: str
    """URI of this cluster's own folder."""
    trigger_ms: int
    settings: bytes
    """Canonical JSON of what the executors need to know."""
    groups_per_second: float = 0
    """How many groups the brokers are asked about; 0: none."""
    evidence: Terms | None = None
    """Whose request logs may be raised, and for how long; None: nobody's."""
    evidence_topic: str = "groupwatch-evidence"
    receivers: tuple[str, ...] = ()
    """Who is told of alerts, by this process or another."""

    @property
    def has_own_output(self) -> bool:
        """True if outputs live on another cluster than the one watched."""
        return self.kafka.identity != self.output.identity


def plan_of(config: Config, cluster: ClusterConfig) -> ClusterPlan:
    """Return the plan for one cluster of ``config``."""
    kafka = KafkaAddress(tuple(cluster.bootstrap_servers), cluster.client)
    output = kafka
    if config.output.bootstrap_servers:
        output = KafkaAddress(tuple(config.output.bootstrap_servers), config.output.client)
    return ClusterPlan(
        cluster=cluster.name,
        kafka=kafka,
        output=output,
        offsets_topic=cluster.offsets.topic if cluster.offsets.enabled else None,
        events_topic=cluster.events.topic if cluster.events.enabled else None,
        timezone=cluster.events.timezone,
        control_topic=config.output.control_topic,
        transitions_topic=config.output.transitions_topic,
        alerts_topic=config.output.alerts_topic,
        checkpoint=f"{config.checkpoint.rstrip('/')}/{folder_of(cluster.name)}",
        trigger_ms=config.trigger_interval_ms,
        settings=settings_json(config, cluster),
        groups_per_second=cluster.probe.groups_per_second if cluster.probe.enabled else 0,
        evidence=_terms(cluster),
        evidence_topic=config.output.evidence_topic,
        receivers=tuple(receiver.name for receiver in config.receivers),
    )


def _terms(cluster: ClusterConfig) -> Terms | None:
    wanted = cluster.evidence
    if not wanted.enabled:
        return None
    return Terms(
        alerts=frozenset(wanted.alerts),
        for_ms=wanted.for_ms,
        every_ms=wanted.every_ms,
        brokers=wanted.brokers,
    )


def folder_of(name: str) -> str:
    """Return a folder name for a cluster name, the same for the same name and another for any other."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else f"%{ord(c):x}%" for c in name)
