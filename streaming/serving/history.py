"""Reads one group's records from the transitions and alerts topics: the past of its story.

Anybody may write into a topic, so records that groupwatch cannot have written are counted and left out.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from alerts.alert import Alert, Refused, read_alert, span, times
from alerts.delivery import wall_clock_ms
from alerts.story import transition_refusal
from coordinator_model.state import Transition
from streaming.config import ClusterPlan, Config, plan_of
from streaming.kafka_clients import READ_COMMITTED, KafkaConsumer, KafkaError, TopicPartition, consumer

READ_S = 20.0
"""How long a search through a cluster's topics may take from the command line …"""
READ_HTTP_S = 5.0
"""… and over HTTP, where one search runs at a time."""
RECORDS_MAX = 50_000
"""Most records of one group and topic in a story: what a storm makes in days."""
_SIZE_MAX = 64 << 20
"""Most bytes of those: forged records are long."""


class History(NamedTuple):
    """The topics' records of one group."""

    transitions: list[Transition]
    alerts: list[Alert]
    notes: list[str]
    """What could not be read, as sentences."""


ReadHistory = Callable[[str, str, int], History]
"""(cluster, group, since in epoch ms) → the topics' records."""


def read_history(plan: ClusterPlan, group: str, since_ms: int, within_s: float) -> History:
    """Return the records of one group in a cluster's transitions and alerts topics.

    Raises:
        kafka.errors.KafkaError: Kafka does not answer.
    """
    search = _Search(plan.cluster, group, time.monotonic() + within_s)
    reader = consumer(plan.output, isolation_level=READ_COMMITTED)
    try:
        moves = search.topic(reader, plan.transitions_topic, since_ms, Transition, refused_transition)
        told = search.topic(reader, plan.alerts_topic, -1, Alert, refused_alert)
    finally:
        reader.close()
    notes = []
    if not search.is_whole:
        notes.append(
            f"The topics could not be searched to their ends within {span(within_s * 1_000)}, so the newest "
            "events may be missing; ask for a shorter time."
        )
    return History(moves, told, [*notes, *search.notes])


T = TypeVar("T", Transition, Alert)


def refused_transition(one: Transition, record: Any, now_ms: int) -> Refused | None:
    """Return why no groupwatch can have written a transition's record; None if one can."""
    return transition_refusal(one, record.key, timestamp_ms=record.timestamp, now_ms=now_ms)


def refused_alert(_: Alert, record: Any, now_ms: int) -> Refused | None:
    """Return why no groupwatch can have written an alert's record; None if one can."""
    found = read_alert(record.key, record.value, timestamp_ms=record.timestamp, now_ms=now_ms)
    return found if isinstance(found, Refused) else None


def decoded(value: bytes, kind: type[T]) -> T | None:
    """Return what a record holds; None if that is something else: anybody may write into a topic."""
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class _Newest(Generic[T]):
    """The newest records, up to the limits of a story."""

    def __init__(self) -> None:
        self._kept: deque[tuple[T, int]] = deque()
        self._size = 0
        self.dropped = 0
        """How many older ones were dropped."""

    def add(self, one: T, size: int) -> None:
        """Add one record of ``size`` bytes."""
        self._kept.append((one, size))
        self._size += size
        while len(self._kept) > RECORDS_MAX or self._size > _SIZE_MAX:
            self._size -= self._kept.popleft()[1]
            self.dropped += 1

    def all(self) -> list[T]:
        """Return the records in their order."""
        return [one for one, _ in self._kept]


class _Search:
    """A search for one group's records in several topics, within one time limit."""

    def __init__(self, cluster: str, group: str, deadline_s: float) -> None:
        self._cluster = cluster
        self._group = group
        # Looking for the name first saves decoding other groups' records; the decoded value decides.
        self._name = msgspec.json.encode(group)
        self._deadline_s = deadline_s
        self.is_whole = True
        """Every topic was read to its end."""
        self.notes: list[str] = []
        """What was left out, as sentences."""

    def topic(
        self,
        reader: KafkaConsumer,
        topic: str,
        since_ms: int,
        kind: type[T],
        refused: Callable[[T, Any, int], Refused | None],
    ) -> list[T]:
        """Return the group's records in one topic that were written since then (-1: all).

        Records that ``refused`` gives a reason against are counted and left out.
        """
        partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
        found: _Newest[T] = _Newest()
        reasons: Counter[str] = Counter()
        now_ms = wall_clock_ms()
        for record in self._records(reader, partitions, since_ms):
            one = self._decoded(record.value, kind)
            why = refused(one, record, now_ms) if one else None
            if why is not None:
                reasons[why.reason] += 1
            elif one is not None:
                found.add(one, len(record.value))
        self._note(topic, reasons, found.dropped)
        return found.all()

    def _records(
        self, reader: KafkaConsumer, partitions: list[TopicPartition], since_ms: int
    ) -> Iterator[Any]:
        if not partitions:
            return
        reader.assign(partitions)
        _seek(reader, partitions, since_ms)
        ends = reader.end_offsets(partitions)
        while any(reader.position(partition) < ends[partition] for partition in partitions):
            if time.monotonic() > self._deadline_s:
                self.is_whole = False
                return
            for records in reader.poll(timeout_ms=200).values():
                yield from (one for one in records if one.value and self._name in one.value)

    def _decoded(self, value: bytes, kind: type[T]) -> T | None:
        one = decoded(value, kind)
        # Several clusters may write to the same topics.
        return one if one and (one.group, one.cluster) == (self._group, self._cluster) else None

    def _note(self, topic: str, reasons: Counter[str], dropped: int) -> None:
        if reasons:
            why = ", ".join(sorted(reasons))
            self.notes.append(
                f"Left out of the story: {times(reasons.total(), 'record')} of {topic} that groupwatch "
                f"cannot have written ({why})."
            )
        if dropped:
            self.notes.append(f"Left out of the story: the oldest {times(dropped, 'record')} of {topic}.")


def _seek(reader: KafkaConsumer, partitions: list[TopicPartition], since_ms: int) -> None:
    if since_ms < 0:
        reader.seek_to_beginning(*partitions)
        return
    starts = reader.offsets_for_times(dict.fromkeys(partitions, since_ms))
    for partition in partitions:
        start = starts.get(partition)
        if start is None:
            reader.seek_to_end(partition)
        else:
            reader.seek(partition, start.offset)


class TopicReader:
    """Reads the past for the HTTP server, one search at a time."""

    def __init__(self, config: Config) -> None:
        self._plans = {cluster.name: plan_of(config, cluster) for cluster in config.clusters}
        self._busy = threading.Lock()

    def __call__(self, cluster: str, group: str, since_ms: int) -> History:
        """Return the topics' records, or why they cannot be read."""
        plan = self._plans.get(cluster)
        if plan is None:
            return History([], [], [])
        if not self._busy.acquire(timeout=READ_HTTP_S):
            return History(
                [],
                [],
                ["Another story is being read; this one comes from the job's memory only."],
            )
        try:
            return read_history(plan, group, since_ms, READ_HTTP_S)
        except KafkaError as error:
            why = f"The topics could not be read ({type(error).__name__}); this is the job's memory only."
            return History([], [], [why])
        finally:
            self._busy.release()
