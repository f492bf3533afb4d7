"""What the executors are told when a job starts: the settings, and alerts left open by an earlier job."""

import time

import msgspec
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from streaming.beginning import Beginning
from streaming.decoding_control import AdoptRecord, SettingsRecord, encode_record
from streaming.kafka_io import consumer
from streaming.plan import ClusterPlan

_READ_S = 60.0
_ANSWER_S = 10.0
_ADOPT_BATCH = 200
"""Alerts in one control record, so that it stays far below the largest record Kafka takes."""


class _Open(msgspec.Struct):
    """What must be known of an alert to say whether it is still open."""

    cluster: str
    status: str
    revision: int = 0


def announce(plan: ClusterPlan, beginning: Beginning, producer: KafkaProducer, *, adopt: bool) -> None:
    """Write the settings, and with ``adopt`` the open alerts of a job whose checkpoint is gone.

    Raises:
        kafka.errors.KafkaError: the control topic did not acknowledge, or the alerts cannot be read.
    """
    now_ms = time.time_ns() // 1_000_000
    settings = msgspec.json.decode(plan.settings)
    records: list[SettingsRecord | AdoptRecord] = [
        SettingsRecord(at_ms=now_ms, run=beginning.run, settings=settings)
    ]
    if adopt:
        alerts = open_alerts(plan)
        records += [
            AdoptRecord(at_ms=now_ms, run=beginning.run, alerts=[msgspec.Raw(one) for one in part])
            for part in (alerts[n : n + _ADOPT_BATCH] for n in range(0, len(alerts), _ADOPT_BATCH))
        ]
    for record in records:
        producer.send(plan.control_topic, value=encode_record(record), partition=0).get(timeout=_ANSWER_S)


def open_alerts(plan: ClusterPlan) -> list[bytes]:
    """Return the newest revision of each alert of this cluster that is firing, from the alerts topic.

    Raises:
        TimeoutError: the topic could not be read to its end.
        kafka.errors.KafkaError: Kafka does not answer.
    """
    newest: dict[bytes, bytes | None] = {}
    reader = consumer(plan.output)
    try:
        for key, value in _read_whole(reader, plan.alerts_topic):
            newest[key] = value
    finally:
        reader.close()
    return [value for value in newest.values() if value is not None and _is_open(value, plan.cluster)]


def _is_open(value: bytes, cluster: str) -> bool:
    try:
        alert = msgspec.json.decode(value, type=_Open)
    except msgspec.MsgspecError:
        return False  # anybody may write into a topic
    return alert.cluster == cluster and alert.status == "firing"


def _read_whole(reader: KafkaConsumer, topic: str) -> list[tuple[bytes, bytes | None]]:
    partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
    reader.assign(partitions)
    reader.seek_to_beginning()
    ends = reader.end_offsets(partitions)
    records: list[tuple[bytes, bytes | None]] = []
    deadline = time.monotonic() + _READ_S
    while any(reader.position(partition) < ends[partition] for partition in partitions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} could not be read to its end within {_READ_S:.0f} s")
        for found in reader.poll(timeout_ms=200).values():
            records += [(record.key or b"", record.value) for record in found]
    return records
