"""The plan of a cluster, as tests need it."""

from typing import Any

from streaming.config.plan import ClusterPlan
from streaming.kafka_address import KafkaAddress


def plan(**changes: Any) -> ClusterPlan:
    """Return the plan of a cluster like any other, with changes."""
    address = KafkaAddress(("127.0.0.1:1",))
    whole: dict[str, Any] = {
        "cluster": "prod",
        "kafka": address,
        "output": address,
        "offsets_topic": "__consumer_offsets",
        "events_topic": "events",
        "timezone": "UTC",
        "control_topic": "control",
        "transitions_topic": "transitions",
        "alerts_topic": "alerts",
        "checkpoint": "/nowhere",
        "trigger_ms": 1_000,
        "settings": b"{}",
    }
    return ClusterPlan(**(whole | changes))
