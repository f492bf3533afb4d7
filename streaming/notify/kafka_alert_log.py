"""The alerts topic as one receiver reads it, in Kafka."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from alerts.delivery import AlertRecord, Cursor
from streaming.kafka_clients import OffsetAndMetadata, TopicPartition

_PARTITIONS_CHECKED_S = 60.0


class KafkaAlertLog:
    """The real one, over a kafka-python consumer that has no subscription and does not commit by itself."""

    def __init__(self, consumer: Any, topic: str, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Assign every partition of ``topic``.

        Args:
            consumer: a ``KafkaConsumer`` made with ``group_id`` (see ``GROUP_PREFIX``),
                ``enable_auto_commit=False`` and ``auto_offset_reset="earliest"``.
            topic: the alerts topic.
            clock_s: for looking for new partitions now and then.

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
        """Take partitions not taken yet; the positions of the others are kept."""
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
        """Return the end offset of every partition, now."""
        return {p.partition: end for p, end in self._consumer.end_offsets(self._assigned).items()}

    def positions(self) -> Mapping[int, int]:
        """Return for every partition the offset of the next record to be read."""
        return {p.partition: self._consumer.position(p) for p in self._assigned}

    def seek(self, positions: Mapping[int, int]) -> None:
        """Go on reading there; partitions not named are read from their beginning."""
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
        """Store cursors; returns when they are stored."""
        self._consumer.commit(
            {
                TopicPartition(self._topic, n): OffsetAndMetadata(cursor.offset, cursor.metadata, -1)
                for n, cursor in cursors.items()
            }
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()
