"""The inputs and outputs of one cluster's query, taken from the configuration."""

from dataclasses import dataclass

from streaming.config.config import ClusterConfig, Config, ProbeConfig, settings_json
from streaming.config.evidence import EvidenceConfig
from streaming.kafka_address import KafkaAddress


@dataclass(frozen=True)
class ClusterPlan:
    """One monitored cluster: addresses, topics and the rhythm of its query."""

    cluster: str
    kafka: KafkaAddress
    output: KafkaAddress
    """The cluster with the control, transitions and alerts topics; often ``kafka`` itself."""
    offsets_topic: str | None
    """None: this source is off."""
    events_topic: str | None
    timezone: str
    control_topic: str
    transitions_topic: str
    alerts_topic: str
    checkpoint: str
    """URI of this cluster's own folder."""
    trigger_ms: int
    settings: bytes
    """The executors' settings as canonical JSON."""
    probe: ProbeConfig | None = None
    """How the brokers are asked about groups; None: not at all."""
    evidence: EvidenceConfig | None = None
    """Which request logs may be raised, and for how long; None: none."""
    evidence_topic: str = "groupwatch-evidence"
    silences_topic: str = "groupwatch-silences"
    receivers: tuple[str, ...] = ()
    """The receivers of alerts, served by this process or another."""

    @property
    def has_own_output(self) -> bool:
        """True if the outputs are on another cluster than the watched one."""
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
        probe=cluster.probe if cluster.probe.enabled else None,
        evidence=cluster.evidence if cluster.evidence.enabled else None,
        evidence_topic=config.output.evidence_topic,
        silences_topic=config.output.silences_topic,
        receivers=tuple(receiver.name for receiver in config.receivers),
    )


def folder_of(name: str) -> str:
    """Return a folder name for a cluster name; different names give different folders."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else f"%{ord(c):x}%" for c in name)
