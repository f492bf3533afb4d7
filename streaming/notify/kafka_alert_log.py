"""The alerts topic as one receiver reads it, in Kafka."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from alerts.delivery import AlertRecord, Cursor
from streaming.kafka_clients import OffsetAndMetadata, TopicPartition

_PARTITIONS_CHECKED_S = 60.0


class KafkaAlertLog:
    """Reads through a kafka-python consumer without a subscription and without automatic commits."""

    def __init__(self, consumer: Any, topic: str, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Assign every partition of ``topic``.

        Args:
            consumer: a ``KafkaConsumer`` made with ``group_id`` (see ``GROUP_PREFIX``),
                ``enable_auto_commit=False`` and ``auto_offset_reset="earliest"``.
            topic: the alerts topic.
            clock_s: a clock, for looking for new partitions at intervals.

        Raises:
            LookupError: if there is no such topic (yet).
        """
        self._consumer = consumer
        self._topic = topic
        self._clock_s = clock_s
        self._assigned: list[Any] = []
        self._assign()
        if not self._assigned:
            raise LookupError(f"there is no topic {topic}")

    def _assign(self) -> None:
        """Assign partitions that are not assigned yet; the others keep their positions."""
        self._checked_s = self._clock_s()
        found = sorted(self._consumer.partitions_for_topic(self._topic) or ())
        new = [p for n in found if (p := TopicPartition(self._topic, n)) not in self._assigned]
        if new:
            self._assigned.extend(new)
            self._consumer.assign(self._assigned)
            self._consumer.seek_to_beginning(*new)

    def committed(self) -> Mapping[int, Cursor]:
        """Return the cursor of each partition that has one."""
        found = ((p.partition, self._consumer.committed(p, metadata=True)) for p in self._assigned)
        return {n: Cursor(c.offset, c.metadata or "") for n, c in found if c is not None and c.offset >= 0}

    def ends(self) -> Mapping[int, int]:
        """Return the current end offset of every partition."""
        return {p.partition: end for p, end in self._consumer.end_offsets(self._assigned).items()}

    def positions(self) -> Mapping[int, int]:
        """Return the offset of the next record to read, for every partition."""
        return {p.partition: self._consumer.position(p) for p in self._assigned}

    def seek(self, positions: Mapping[int, int]) -> None:
        """Continue reading at ``positions``; read partitions not named from their beginning."""
        for partition in self._assigned:
            if partition.partition in positions:
                self._consumer.seek(partition, positions[partition.partition])
            else:
                self._consumer.seek_to_beginning(partition)

    def poll(self, timeout_ms: int) -> list[AlertRecord]:
        """Return the next records."""
        if self._clock_s() - self._checked_s > _PARTITIONS_CHECKED_S:
            self._assign()
        polled = self._consumer.poll(timeout_ms=timeout_ms)
        return [
            AlertRecord(r.partition, r.offset, r.timestamp, r.key, r.value)
            for records in polled.values()
            for r in records
        ]

    def commit(self, cursors: Mapping[int, Cursor]) -> None:
        """Commit cursors; return once Kafka has stored them."""
        self._consumer.commit(
            {
                TopicPartition(self._topic, n): OffsetAndMetadata(cursor.offset, cursor.metadata, -1)
                for n, cursor in cursors.items()
            }
        )

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
