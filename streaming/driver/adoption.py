"""Writes what a starting job tells the executors: the settings, and alerts that an earlier job left open."""

import time
from collections.abc import Iterator, Sequence

import msgspec

from alerts.alert import Alert
from streaming.config import ClusterPlan
from streaming.control import AdoptRecord, ControlRecord, SettingsRecord, encode_record
from streaming.kafka_clients import KafkaProducer
from streaming.pipeline import Beginning

_ANSWER_S = 10.0
_ADOPT_BATCH = 200
"""Alerts per control record; keeps it far below the largest record that Kafka accepts."""


def announce(
    plan: ClusterPlan, beginning: Beginning, producer: KafkaProducer, *, adopt: Sequence[Alert]
) -> None:
    """Write the settings, and the open alerts if the job's checkpoint is gone.

    Raises:
        kafka.errors.KafkaError: the control topic did not acknowledge.
    """
    for record in records(plan, beginning, adopt, time.time_ns() // 1_000_000):
        write(plan, producer, record)


def write(plan: ClusterPlan, producer: KafkaProducer, record: ControlRecord) -> None:
    """Write one control record and wait for the acknowledgement.

    Raises:
        kafka.errors.KafkaError: the control topic did not acknowledge.
    """
    producer.send(plan.control_topic, value=encode_record(record), partition=0).get(timeout=_ANSWER_S)


def records(
    plan: ClusterPlan, beginning: Beginning, adopt: Sequence[Alert], now_ms: int
) -> Iterator[SettingsRecord | AdoptRecord]:
    """Yield the control records that a start writes first."""
    settings = msgspec.json.decode(plan.settings)
    yield SettingsRecord(at_ms=now_ms, run=beginning.run, settings=settings)
    yield from adoptions(beginning.run, adopt, now_ms)


def adoptions(run: str, adopt: Sequence[Alert], now_ms: int) -> Iterator[AdoptRecord]:
    """Yield the control records that hand these alerts over."""
    for first in range(0, len(adopt), _ADOPT_BATCH):
        part = [msgspec.Raw(msgspec.json.encode(alert)) for alert in adopt[first : first + _ADOPT_BATCH]]
        yield AdoptRecord(at_ms=now_ms, run=run, alerts=part)
