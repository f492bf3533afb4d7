"""A real Kafka on this machine: its brokers, their logs, and a webhook receiver that remembers."""

from streaming.devkit.kafka.interruption import interruptible, uninterrupted
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import EVENTS_TOPIC, EmbeddedKafkaError, free_ports
from streaming.devkit.kafka.webhook_probe import ReceivedAlert, WebhookProbe

__all__ = [
    "EVENTS_TOPIC",
    "EmbeddedKafka",
    "EmbeddedKafkaError",
    "ReceivedAlert",
    "WebhookProbe",
    "free_ports",
    "interruptible",
    "uninterrupted",
]
