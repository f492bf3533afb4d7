"""Reads the past of all groups of a cluster from the transitions and alerts topics, in small portions.

For a history that lacks it.  Transitions come newest first, six hours at a time, so that what the bound
leaves out is the oldest.  Whoever takes the portions decides how fast: nothing is read ahead of them.
"""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from alerts.alert import Alert, Refused
from alerts.delivery import wall_clock_ms
from coordinator_model.state import Transition
from streaming.config import ClusterPlan, Config, plan_of
from streaming.kafka_clients import READ_COMMITTED, KafkaConsumer, TopicPartition, consumer
from streaming.serving.history import decoded, refused_alert, refused_transition

_log = logging.getLogger("groupwatch.history")

PORTION_RECORDS = 2_000
"""Most records that are read for one portion, kept or not."""
PORTION_BYTES = 4 << 20
SLICE_MS = 6 * 3_600_000
_POLL_RECORDS = 500
_MEGABYTE = 1_000_000

Row = tuple[str, str, bytes]
Offsets = Mapping[TopicPartition, int]
T = TypeVar("T", Transition, Alert)


class PastReader:
    """Reads the past of clusters, up to a number of bytes each."""

    def __init__(self, config: Config) -> None:
        self._plans = {cluster.name: plan_of(config, cluster) for cluster in config.clusters}
        # The file holds them as they come, beside what it keeps of lag and members.
        self._bytes_max = config.history.max_size_mb * _MEGABYTE // 2

    def __call__(self, cluster: str, since_ms: int) -> Generator[list[Row]]:
        """Yield the rows since then, as batches give them.

        Raises:
            kafka.errors.KafkaError: Kafka does not answer.
        """
        plan = self._plans[cluster]
        reader = consumer(
            plan.output,
            isolation_level=READ_COMMITTED,
            max_poll_records=_POLL_RECORDS,
            fetch_max_bytes=PORTION_BYTES,
            max_partition_fetch_bytes=PORTION_BYTES // 4,
        )
        try:
            yield from _Past(reader, plan, self._bytes_max).rows(since_ms)
        finally:
            reader.close()


class _Past:
    """The past of one cluster."""

    def __init__(self, reader: KafkaConsumer, plan: ClusterPlan, bytes_max: int) -> None:
        self._reader = reader
        self._plan = plan
        self._left = bytes_max
        self._is_cut = False

    def rows(self, since_ms: int) -> Generator[list[Row]]:
        """Yield all rows since then: alerts, which are few, and then transitions."""
        alerts, moves = (
            self._partitions(self._plan.alerts_topic),
            self._partitions(self._plan.transitions_topic),
        )
        starts, ends = self._reader.beginning_offsets(alerts), self._reader.end_offsets(alerts)
        yield from self._portions(starts, ends, Alert, partial(_is_open_since, since_ms), refused_alert)
        last = self._reader.end_offsets(moves)
        edges = [self._offsets_at(at_ms, last) for at_ms in edges_of(since_ms, wall_clock_ms())]
        for starts, ends in reversed(list(pairwise([*edges, last]))):
            yield from self._portions(
                starts, ends, Transition, lambda one: one.at_ms >= since_ms, refused_transition
            )
        if self._is_cut:
            _log.warning(
                "history: the topics of %s hold more than fits into half of history.max_size_mb; the oldest "
                "transitions are left out",
                self._plan.cluster,
            )

    def _partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, n) for n in sorted(self._reader.partitions_for_topic(topic) or ())]

    def _offsets_at(self, at_ms: int, ends: Offsets) -> Offsets:
        """Return the first offsets whose records were written at a time or later."""
        found = self._reader.offsets_for_times(dict.fromkeys(ends, at_ms)) if ends else {}
        return {one: end if found.get(one) is None else found[one].offset for one, end in ends.items()}

    def _portions(
        self,
        starts: Offsets,
        ends: Offsets,
        kind: type[T],
        is_wanted: Callable[[T], bool],
        refused: Callable[[T, Any, int], Refused | None],
    ) -> Generator[list[Row]]:
        """Yield the wanted records between two offsets of each partition, until the bound is reached."""
        name = "alert" if kind is Alert else "transition"
        rows: list[Row] = []
        count = size = 0
        for record in self._records(starts, ends):
            if self._left <= 0:
                self._is_cut = True
                return
            count, size = count + 1, size + len(record.value)
            one = decoded(record.value, kind)
            if one is None or one.cluster != self._plan.cluster or not is_wanted(one):
                pass  # several clusters may write to the same topics
            elif refused(one, record, wall_clock_ms()) is None:
                rows.append((name, one.group, record.value))
                self._left -= len(record.value)
            if count >= PORTION_RECORDS or size >= PORTION_BYTES:
                yield rows
                rows, count, size = [], 0, 0
        if rows:
            yield rows

    def _records(self, starts: Offsets, ends: Offsets) -> Iterator[Any]:
        reader = self._reader
        reading = [one for one in starts if starts[one] < ends[one]]
        reader.assign(reading)
        reader.resume(*reading)
        for one in reading:
            reader.seek(one, starts[one])
        while reading := [one for one in reading if reader.position(one) < ends[one]]:
            reader.pause(*(one for one in reader.assignment() if one not in reading))
            for one, records in reader.poll(timeout_ms=200).items():
                yield from (record for record in records if record.value and record.offset < ends[one])


def _is_open_since(since_ms: int, one: Alert) -> bool:
    return one.ends_at_ms is None or one.ends_at_ms >= since_ms


def edges_of(since_ms: int, now_ms: int) -> list[int]:
    """Return the beginnings of the slices between two times, the oldest first."""
    return list(range(since_ms, max(now_ms, since_ms + 1), SLICE_MS))
