"""Reads whole topics."""

import time

from kafka import KafkaConsumer
from kafka.structs import TopicPartition

_READ_S = 60.0


def read_whole(reader: KafkaConsumer, topic: str) -> list[tuple[bytes, bytes | None]]:
    """Return key and value of every record of ``topic``, in order within each partition.

    Raises:
        TimeoutError: the topic could not be read to its end.
        kafka.errors.KafkaError: Kafka does not answer.
    """
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
